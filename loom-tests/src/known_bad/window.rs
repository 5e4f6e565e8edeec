//! A compact sharded window, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use sluicegate_core::{Nanos, Remaining};

use crate::shim::{AtomicU64, give_way};
use crate::{Answer, Taken, Window};

/// Bugs that a window may have, one type each.
pub trait WindowFlaws: Send + Sync + 'static {
    /// Takes every reading of another window for the opening of a new one.
    const LATE_READING_RESETS: bool = false;
    /// Rounds the caps of the shards up.
    const CAPS_ROUND_UP: bool = false;
    /// Stores the new word back without looking whether the old one is still there.
    const STORES_BACK: bool = false;
    /// Takes first, looks then, and gives back what was too much.
    const TAKES_FIRST: bool = false;
    /// Gives back to the caller's shard whatever it counts, so that a count of 0 borrows from the window's number.
    const REFUNDS_UNCHECKED: bool = false;
    /// Gives what was taken in a window back in a later one.
    const REFUNDS_INTO_LATER_WINDOW: bool = false;
    /// Denies when the flag is free before and after, although units may have been given back in between.
    const IGNORES_GIVE_BACKS: bool = false;
    /// Takes from several shards without the flag.
    const HOLDS_UNSEEN: bool = false;
    /// Does not count what a hold over several shards gave back because it came up short.
    const FORGETS_BROKEN_HOLDS: bool = false;
    /// Denies without looking whether a later window has begun meanwhile.
    const SKIPS_LATER_WINDOWS: bool = false;
    /// Changes and reads the shards' words without ordering them with the control word.
    const RELAXED_WORDS: bool = false;
}

/// A word holds a window's number above and a count below; the control word, a count of give-backs above and a flag.
pub struct CompactWindow<F> {
    limit: u64,
    words: Vec<AtomicU64>,
    control: AtomicU64,
    flaws: PhantomData<F>,
}

/// What one shard, or all of them, gave.
enum Visit {
    Taken { window: u64, left: u64 },
    Short { window: u64, free: u64 },
}

impl<F: WindowFlaws> CompactWindow<F> {
    fn decide(&self, seat: usize, now: Nanos, cost: u64, mut visit: impl FnMut(usize, u64) -> Visit) -> Decided {
        let mut window = window_of(now);
        let mut attempts = 0..;
        loop {
            let control = self.control.load(Acquire);
            match self.sweep(seat, window, &mut visit) {
                Visit::Taken { window, left } => return Decided::Taken { window, left },
                Visit::Short { window: later, .. } if later > window => {
                    window = later;
                    continue;
                }
                Visit::Short { free, .. } if free >= cost => return Decided::Scattered { window, control },
                Visit::Short { free, .. } => {
                    if self.is_still_in(window) && self.is_settled(control) {
                        return Decided::Short { window, free };
                    }
                }
            }
            give_way(attempts.next().unwrap_or(u32::MAX));
        }
    }

    fn sweep(&self, seat: usize, window: u64, visit: &mut impl FnMut(usize, u64) -> Visit) -> Visit {
        let mut sum = 0;
        for index in self.from(seat) {
            match visit(index, window) {
                Visit::Short { window: seen, free } if seen == window => sum += free,
                other => return other,
            }
        }
        Visit::Short { window, free: sum }
    }

    fn is_settled(&self, before: u64) -> bool {
        let now = self.control.load(Acquire);
        if F::IGNORES_GIVE_BACKS { before & FLAG == 0 && now & FLAG == 0 } else { before & FLAG == 0 && now == before }
    }

    fn is_still_in(&self, window: u64) -> bool {
        F::SKIPS_LATER_WINDOWS || self.words.iter().all(|word| word.load(Self::LOAD) >> COUNT_BITS <= window)
    }

    /// The window that a caller meets in a word, and what is free there.
    fn view(&self, index: usize, word: u64, window: u64) -> (u64, u64) {
        let (number, count, cap) = (word >> COUNT_BITS, word & COUNT_MASK, self.cap(index));
        let is_old = if F::LATE_READING_RESETS { number != window } else { number < window };
        if is_old { (window, cap) } else { (number, cap.saturating_sub(count)) }
    }

    fn look(&self, index: usize, window: u64) -> Visit {
        let (window, free) = self.view(index, self.words[index].load(Self::LOAD), window);
        Visit::Short { window, free }
    }

    /// Takes from one shard `cost`, or what there is of it if `some` will do.
    fn take(&self, index: usize, window: u64, cost: u64, some: bool) -> Visit {
        let (word, cap) = (&self.words[index], self.cap(index));
        let mut current = word.load(Self::LOAD);
        loop {
            let (seen, free) = self.view(index, current, window);
            let taken = if some && seen == window { cost.min(free) } else { cost };
            if F::TAKES_FIRST && current >> COUNT_BITS == seen {
                let before = word.fetch_add(taken, AcqRel);
                if (before & COUNT_MASK) + taken <= cap {
                    return Visit::Taken { window: seen, left: taken };
                }
                word.fetch_sub(taken, AcqRel);
                return Visit::Short { window: seen, free };
            }
            if taken > free || taken == 0 {
                return Visit::Short { window: seen, free };
            }
            match self.replace(word, current, seen << COUNT_BITS | (cap - free + taken)) {
                Ok(_) => return Visit::Taken { window: seen, left: if some { taken } else { free - taken } },
                Err(changed) => current = changed,
            }
        }
    }

    fn give_back(&self, seat: usize, window: u64, mut owed: u64) {
        if F::REFUNDS_UNCHECKED {
            self.words[seat % self.words.len()].fetch_sub(owed, AcqRel);
            return;
        }
        for index in self.from(seat) {
            let word = &self.words[index];
            let mut current = word.load(Self::LOAD);
            loop {
                let is_same = current >> COUNT_BITS == window;
                let returned = if is_same || F::REFUNDS_INTO_LATER_WINDOW { owed.min(current & COUNT_MASK) } else { 0 };
                if returned == 0 {
                    break;
                }
                match self.replace(word, current, current - returned) {
                    Ok(_) => {
                        owed -= returned;
                        break;
                    }
                    Err(changed) => current = changed,
                }
            }
        }
    }

    /// Takes from several shards, all or nothing.
    fn take_from_several(&self, seat: usize, window: u64, cost: u64, control: u64) -> bool {
        if !F::HOLDS_UNSEEN && (control & FLAG != 0 || !self.try_hold(control)) {
            return false;
        }
        let mut needed = cost;
        for index in self.from(seat) {
            if needed > 0 {
                if let Visit::Taken { left: taken, .. } = self.take(index, window, needed, true) {
                    needed -= taken;
                }
            }
        }
        if needed > 0 {
            self.give_back(seat, window, cost - needed);
        }
        if !F::HOLDS_UNSEEN {
            let gave_back = needed > 0 && !F::FORGETS_BROKEN_HOLDS;
            self.control.store(if gave_back { control + GIVE_BACK } else { control }, Release);
        }
        needed == 0
    }

    fn try_hold(&self, control: u64) -> bool {
        self.control.compare_exchange(control, control | FLAG, Acquire, Relaxed).is_ok()
    }

    fn replace(&self, word: &AtomicU64, current: u64, next: u64) -> Result<u64, u64> {
        if F::STORES_BACK {
            word.store(next, Release);
            return Ok(current);
        }
        word.compare_exchange(current, next, Self::SWAP, Self::LOAD)
    }

    fn cap(&self, index: usize) -> u64 {
        let shards = self.words.len() as u64;
        if F::CAPS_ROUND_UP {
            return self.limit.div_ceil(shards);
        }
        self.limit / shards + u64::from((index as u64) < self.limit % shards)
    }

    fn from(&self, seat: usize) -> impl Iterator<Item = usize> + use<F> {
        let shards = self.words.len();
        (0..shards).map(move |step| (seat + step) % shards)
    }

    const LOAD: Ordering = if F::RELAXED_WORDS { Relaxed } else { Acquire };
    const SWAP: Ordering = if F::RELAXED_WORDS { Relaxed } else { AcqRel };
}

impl<F: WindowFlaws> Window for CompactWindow<F> {
    fn new(limit: u64, shards: usize) -> Self {
        let words = (0..shards).map(|_| AtomicU64::new(0)).collect();
        Self { limit, words, control: AtomicU64::new(0), flaws: PhantomData }
    }

    fn try_acquire(&self, seat: usize, now: Nanos, cost: u64) -> Answer {
        let mut attempts = 0..;
        loop {
            match self.decide(seat, now, cost, |index, window| self.take(index, window, cost, false)) {
                Decided::Taken { window, left } => return Ok(taken(window, now, left)),
                Decided::Short { window, .. } => return Err(end_of(window).saturating_duration_since(now)),
                Decided::Scattered { window, control } => {
                    if self.take_from_several(seat, window, cost, control) {
                        return Ok(taken(window, now, 0));
                    }
                    give_way(attempts.next().unwrap_or(u32::MAX));
                }
            }
        }
    }

    fn refund(&self, seat: usize, taken_at: Nanos, cost: u64) {
        for attempt in 0.. {
            let control = self.control.load(Acquire);
            if control & FLAG == 0 && self.try_hold(control) {
                self.give_back(seat, window_of(taken_at), cost);
                return self.control.store(control + GIVE_BACK, Release);
            }
            give_way(attempt);
        }
    }

    fn peek(&self, seat: usize, now: Nanos, cost: u64) -> Answer {
        let (window, free) = self.look_at_all(seat, now);
        match free.checked_sub(cost) {
            Some(left) => Ok(taken(window, now, left)),
            None => Err(end_of(window).saturating_duration_since(now)),
        }
    }

    fn free(&self, seat: usize, now: Nanos) -> u64 {
        self.look_at_all(seat, now).1
    }
}

/// Where a search for units ended.
enum Decided {
    Taken {
        window: u64,
        left: u64,
    },
    /// Enough is free, but in several shards.
    Scattered {
        window: u64,
        control: u64,
    },
    Short {
        window: u64,
        free: u64,
    },
}

impl<F: WindowFlaws> CompactWindow<F> {
    /// The window to count in, and what is free there.
    fn look_at_all(&self, seat: usize, now: Nanos) -> (u64, u64) {
        // So much is never free, so the search ends only where it is settled.
        match self.decide(seat, now, u64::MAX, |index, window| self.look(index, window)) {
            Decided::Short { window, free } => (window, free),
            Decided::Taken { .. } | Decided::Scattered { .. } => unreachable!("looking takes nothing"),
        }
    }
}

impl<F> fmt::Debug for CompactWindow<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactWindow").finish_non_exhaustive()
    }
}

fn taken(window: u64, now: Nanos, left: u64) -> Taken {
    let at = if window == window_of(now) { now } else { Nanos::new(window * WIDTH) };
    Taken { at, remaining: Remaining::Exactly(left) }
}

fn window_of(now: Nanos) -> u64 {
    now.as_u64() / WIDTH
}

fn end_of(window: u64) -> Nanos {
    Nanos::new((window + 1) * WIDTH)
}

const WIDTH: u64 = 1_000_000_000;
const COUNT_BITS: u32 = 8;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const FLAG: u64 = 1;
const GIVE_BACK: u64 = 2;
