//! Taking from, and giving back to, many shards at once.
//!
//! # How it stays exact
//!
//! The limit is split into caps, one a shard, that sum to it exactly. A shard's word holds a window number and a count,
//! and changes only by compare-and-swap, so no shard ever exceeds its cap and no window its limit.
//!
//! What needs an argument is a *denial*: it must be right at some instant between call and return, although the shards
//! are read one after another. Within one window free units only shrink, as long as nothing is given back. So the sum of
//! what one sweep saw free bounds what is free at its end, and a sweep that found too little is a right denial if
//! meanwhile (a) nothing was given back and nobody held units that might be, and (b) no shard moved on to a later window.
//! For (a) there is the control word: everything that gives units back does so while holding its flag, and counts itself
//! there when it lets go. For (b) the shards' window numbers are read once more after the sweep. If either fails, the
//! caller looks again; that happens only when another call has moved, so calls as a whole always make progress.
//!
//! A cost that no single shard can serve is taken from several while holding the flag. Such costs serialise among
//! themselves, so one of them comes up short only when single-shard calls really took the units; then it gives back what
//! it has and looks again. Who finds nothing free while the flag is held waits for the holder, for some tens of
//! instructions. Nothing of the caller's runs while the flag is held: no panic or cancellation can leave it so.
//!
//! Units within one window are interchangeable: giving back subtracts from whichever shards count that window, first the
//! caller's own. As only the holder of the flag subtracts, counts otherwise grow, and one sweep finds all there is.
//!
//! # Memory order
//!
//! Shard words change with acquire and release and are read with acquire; the flag is taken with acquire and let go with
//! release. A sweep that saw an effect of a holder therefore also sees that holder's flag, or its count, when it reads
//! the control word for the second time. A sweep that saw no effect may be ordered before that holder.

use super::shards::Shard;
use super::step::Layout;
use crate::decision::{Admitted, Decision, Remaining};
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Nanos, ShardId};

/// Bit 0 is the flag; the bits above count how often units were given back.
#[derive(Default)]
pub(super) struct Control(AtomicU64);

impl Control {
    const_unless_loom! {
        pub(super) fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    /// The count, or `None` while the flag is held.
    #[inline]
    fn read(&self) -> Option<u64> {
        // Acquire: what is read afterwards is read after this.
        let control = self.0.load(Ordering::Acquire);
        if control & FLAG == 0 { Some(control) } else { None }
    }

    /// Takes the flag if the control word still is `control`.
    #[inline]
    fn try_hold(&self, control: u64) -> bool {
        // Acquire: the holder sees what the previous one did. That others see the flag before the holder's effects
        // follows from the release of those effects.
        self.0.compare_exchange(control, control | FLAG, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Lets go of the flag.
    #[inline]
    fn release(&self, control: u64, gave_back: bool) {
        let next = if gave_back { control.wrapping_add(FLAG << 1) } else { control };
        // Release: pairs with the acquire in `read` and `try_hold`. A plain store, because nobody else writes meanwhile.
        self.0.store(next, Ordering::Release);
    }
}

/// The slices of the shards: they sum to the limit, and the remainder lies on the low shards, one unit each.
#[derive(Clone, Copy)]
pub(super) struct Caps {
    least: u64,
    /// How many shards have one more.
    larger: usize,
}

impl Caps {
    /// `limit` over `shards`, which is at least 1.
    pub(super) const fn new(limit: u64, shards: usize) -> Self {
        Self { least: limit / shards as u64, larger: (limit % shards as u64) as usize }
    }

    #[inline]
    pub(super) const fn of(self, index: usize) -> u64 {
        if index < self.larger { self.least + 1 } else { self.least }
    }
}

/// A view of a sharded window for one call.
pub(super) struct Counts<'a> {
    pub(super) layout: &'a Layout,
    pub(super) caps: Caps,
    pub(super) shards: &'a [Shard],
    pub(super) control: &'a Control,
}

impl Counts<'_> {
    /// Takes `cost` at `now`, starting at the caller's shard.
    #[inline]
    pub(super) fn try_acquire(&self, now: Nanos, cost: u64, shard_id: &impl ShardId) -> Decision {
        let window = self.layout.window_of(now);
        let start = self.first_shard(shard_id);
        match self.take(start, window, cost) {
            Taken::All { window, left } => Ok(self.admitted(window, now, left)),
            Taken::Short { .. } => self.search(now, cost, start, shard_id),
        }
    }

    /// What `try_acquire` would answer.
    pub(super) fn peek(&self, now: Nanos, cost: u64, shard_id: &impl ShardId) -> Decision {
        let (window, free) = self.settled_sweep(self.layout.window_of(now), shard_id);
        match free.checked_sub(cost) {
            Some(left) => Ok(self.admitted(window, now, left)),
            None => Err(self.layout.denial(window, now, cost)),
        }
    }

    /// What is free at `now`: at most what was free when the call began, and at least what is when it ends.
    pub(super) fn free(&self, now: Nanos, shard_id: &impl ShardId) -> u64 {
        self.settled_sweep(self.layout.window_of(now), shard_id).1
    }

    /// Gives `cost` back to the window of `taken_at`, as far as that is still counted.
    pub(super) fn refund(&self, taken_at: Nanos, cost: u64, shard_id: &impl ShardId) {
        let window = self.layout.window_of(taken_at);
        let start = self.first_shard(shard_id);
        if self.shards.len() == 1 {
            self.give_back(0, window, cost);
            return;
        }
        let control = self.hold(shard_id);
        self.give_back(start, window, cost);
        self.control.release(control, true);
    }

    /// The slow path: the caller's shard was too short.
    #[cold]
    fn search(&self, now: Nanos, cost: u64, start: usize, shard_id: &impl ShardId) -> Decision {
        let mut window = self.layout.window_of(now);
        if cost > self.layout.rate.tokens() {
            return Err(self.layout.denial(window, now, cost));
        }
        let mut attempt = 0;
        loop {
            let control = self.control.read();
            match self.sweep(start, window, |index, window| self.take(index, window, cost)) {
                Swept::Taken { window, left } => return Ok(self.admitted(window, now, left)),
                Swept::Later { window: later } => {
                    window = later;
                    continue;
                }
                Swept::Short { free } if free < cost => {
                    if self.is_still_in(window) && control.is_some() && self.control.read() == control {
                        return Err(self.layout.denial(window, now, cost));
                    }
                }
                // Enough is free, but in several shards.
                Swept::Short { .. } => {
                    if let Some(control) = control.filter(|&control| self.control.try_hold(control)) {
                        let (taken, gave_back) = self.take_from_several(start, window, cost);
                        self.control.release(control, gave_back);
                        if let Some(left) = taken {
                            return Ok(self.admitted(window, now, left));
                        }
                    }
                }
            }
            shard_id.give_way(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// Takes `cost` from shards of `window` while the flag is held, or gives back what it got. Returns what the last
    /// shard had left, and whether anything was given back.
    fn take_from_several(&self, start: usize, window: u64, cost: u64) -> (Option<u64>, bool) {
        let mut needed = cost;
        for index in self.from(start) {
            let (taken, left) = self.take_up_to(index, window, needed);
            needed -= taken;
            if needed == 0 {
                return (Some(left), false);
            }
        }
        self.give_back(start, window, cost - needed);
        (None, cost > needed)
    }

    /// The window to count in, which may be later than `window`, and what is free in it: at most what was free when the
    /// call began, and at least what is when it ends.
    fn settled_sweep(&self, mut window: u64, shard_id: &impl ShardId) -> (u64, u64) {
        let start = self.first_shard(shard_id);
        let mut attempt = 0;
        loop {
            let control = self.control.read();
            match self.sweep(start, window, |index, window| self.look(index, window)) {
                Swept::Later { window: later } => {
                    window = later;
                    continue;
                }
                Swept::Short { free } => {
                    if self.is_still_in(window) && control.is_some() && self.control.read() == control {
                        return (window, free);
                    }
                }
                Swept::Taken { .. } => {}
            }
            shard_id.give_way(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    /// Visits the shards until one gives all, or one is found in a later window.
    fn sweep(&self, start: usize, window: u64, visit: impl Fn(usize, u64) -> Taken) -> Swept {
        let mut free = 0;
        for index in self.from(start) {
            match visit(index, window) {
                Taken::All { window, left } => return Swept::Taken { window, left },
                Taken::Short { window: seen, .. } if seen > window => return Swept::Later { window: seen },
                Taken::Short { free: more, .. } => free += more,
            }
        }
        Swept::Short { free }
    }

    /// Whether no shard has moved on to a window after `window`.
    fn is_still_in(&self, window: u64) -> bool {
        // Acquire: see the module's text.
        self.shards.iter().all(|shard| self.layout.number(shard.word.load(Ordering::Acquire)) <= window)
    }

    /// Takes `cost` from one shard, in `window` or in the later one that the shard is in.
    #[inline]
    fn take(&self, index: usize, window: u64, cost: u64) -> Taken {
        let (word, cap) = (&self.shards[index].word, self.cap(index));
        // Acquire here, and acquire and release below: see the module's text.
        let mut current = word.load(Ordering::Acquire);
        loop {
            let (window, free) = self.layout.view(current, window, cap);
            if cost > free {
                return Taken::Short { window, free };
            }
            if cost == 0 {
                return Taken::All { window, left: free };
            }
            let next = self.layout.word(window, cap - free + cost);
            match word.compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Taken::All { window, left: free - cost },
                Err(seen) => current = seen,
            }
        }
    }

    /// Takes what one shard has in `window`, at most `needed`; nothing if it is in a later one. Returns what it took and
    /// what is left.
    fn take_up_to(&self, index: usize, window: u64, needed: u64) -> (u64, u64) {
        let (word, cap) = (&self.shards[index].word, self.cap(index));
        // Orders as in `take`.
        let mut current = word.load(Ordering::Acquire);
        loop {
            let (seen, free) = self.layout.view(current, window, cap);
            let taken = if seen == window { free.min(needed) } else { 0 };
            if taken == 0 {
                return (0, free);
            }
            let next = self.layout.word(window, cap - free + taken);
            match word.compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return (taken, free - taken),
                Err(seen) => current = seen,
            }
        }
    }

    /// What one shard has free.
    fn look(&self, index: usize, window: u64) -> Taken {
        // Acquire: see the module's text.
        let word = self.shards[index].word.load(Ordering::Acquire);
        let (window, free) = self.layout.view(word, window, self.cap(index));
        Taken::Short { window, free }
    }

    /// Gives back up to `cost` of what is counted in `window`. With several shards, only under the flag.
    fn give_back(&self, start: usize, window: u64, cost: u64) {
        let mut owed = cost;
        for index in self.from(start) {
            if owed == 0 {
                return;
            }
            let word = &self.shards[index].word;
            // Orders as in `take`.
            let mut current = word.load(Ordering::Acquire);
            loop {
                let (next, returned) = self.layout.give_back(current, window, owed);
                if returned == 0 {
                    break;
                }
                match word.compare_exchange_weak(current, next, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => {
                        owed -= returned;
                        break;
                    }
                    Err(seen) => current = seen,
                }
            }
        }
    }

    /// Waits for the flag.
    fn hold(&self, shard_id: &impl ShardId) -> u64 {
        let mut attempt = 0;
        loop {
            if let Some(control) = self.control.read() {
                if self.control.try_hold(control) {
                    return control;
                }
            }
            shard_id.give_way(attempt);
            attempt = attempt.saturating_add(1);
        }
    }

    #[inline]
    fn cap(&self, index: usize) -> u64 {
        self.caps.of(index)
    }

    #[inline]
    fn first_shard(&self, shard_id: &impl ShardId) -> usize {
        let (shard, count) = (shard_id.shard(), self.shards.len());
        // Numbers are usually small already, and a division costs more than everything else here.
        if shard < count { shard } else { shard % count }
    }

    /// All shards, from `start` on and around.
    fn from(&self, start: usize) -> impl Iterator<Item = usize> {
        (start..self.shards.len()).chain(0..start)
    }

    #[inline]
    fn admitted(&self, window: u64, now: Nanos, left: u64) -> Admitted {
        let remaining = if self.shards.len() == 1 { Remaining::Exactly(left) } else { Remaining::AtLeast(left) };
        Admitted::new(remaining, self.layout.reading_in(window, now))
    }
}

/// What one shard gave.
enum Taken {
    /// The whole cost, in `window`.
    All { window: u64, left: u64 },
    /// Nothing: only `free` units are free in `window`.
    Short { window: u64, free: u64 },
}

/// What a visit to all shards gave.
enum Swept {
    Taken {
        window: u64,
        left: u64,
    },
    Short {
        free: u64,
    },
    /// A shard has moved on to `window`.
    Later {
        window: u64,
    },
}

const FLAG: u64 = 1;
