//! A compact sliding counter, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use sluicegate_core::{Nanos, Remaining};

use crate::shim::AtomicU64;
use crate::{Answer, Counter, Taken};

/// Bugs that a counter may have, one type each.
pub trait CounterFlaws: Send + Sync + 'static {
    /// Stores the new word back without looking whether the old one is still there.
    const STORES_BACK: bool = false;
    /// Takes first, looks then, and gives back what was too much.
    const TAKES_FIRST: bool = false;
    /// Moves on to a new window in a step of its own, which stores what it made of an old word.
    const ROLLS_OVER_APART: bool = false;
    /// Forgets what the window before took when the new one is opened.
    const FORGETS_PREVIOUS: bool = false;
    /// Starts the window of a late reading anew.
    const LATE_READING_RESETS: bool = false;
    /// Gives back to whatever window is counted now.
    const REFUNDS_INTO_LATER_WINDOW: bool = false;
    /// Gives back more than a window counts.
    const REFUNDS_UNCHECKED: bool = false;
}

/// The word holds the second above, then what was taken in the one before, then in this one; counts begin at [`NONE`].
pub struct CompactCounter<F> {
    word: AtomicU64,
    limit: u64,
    flaws: PhantomData<F>,
}

#[derive(Clone, Copy)]
struct State {
    second: u64,
    previous: u64,
    current: u64,
}

impl<F: CounterFlaws> CompactCounter<F> {
    /// The state as a caller at `now` meets it, and how many milliseconds are left of its second.
    fn met(word: u64, now: Nanos) -> (State, u64) {
        let state = State::from_word(word);
        let (second, left) = (milliseconds(now) / 1_000, 1_000 - milliseconds(now) % 1_000);
        if second == state.second {
            return (state, left);
        }
        if second < state.second {
            let reset = State { second, previous: 0, current: 0 };
            return if F::LATE_READING_RESETS { (reset, left) } else { (state, 1_000) };
        }
        let is_next = second == state.second + 1 && !F::FORGETS_PREVIOUS;
        (State { second, previous: if is_next { state.current } else { 0 }, current: 0 }, left)
    }

    /// What is free, in whole units; negative when too much was taken.
    fn free_of((state, left): (State, u64), limit: u64) -> i64 {
        limit as i64 - (state.current + (state.previous * left).div_ceil(1_000)) as i64
    }

    /// Replaces the word unless `change` gives none.
    fn update<T>(&self, change: impl Fn(u64) -> Result<State, T>) -> Result<State, T> {
        let mut current = self.word.load(Relaxed);
        loop {
            let next = change(current)?;
            if F::STORES_BACK {
                self.word.store(next.to_word(), Relaxed);
                return Ok(next);
            }
            match self.word.compare_exchange(current, next.to_word(), Relaxed, Relaxed) {
                Ok(_) => return Ok(next),
                Err(seen) => current = seen,
            }
        }
    }

    fn answer(&self, now: Nanos, cost: u64, met: (State, u64)) -> Answer {
        let left = Self::free_of(met, self.limit) - cost as i64;
        let (state, _) = met;
        if let Ok(left) = u64::try_from(left) {
            let start = Nanos::from_secs(state.second);
            return Ok(Taken { at: now.max(start), remaining: Remaining::Exactly(left) });
        }
        // The slow way: the first millisecond at which it fits.
        let fits = |wait: &u64| {
            let then = Nanos::from_millis(milliseconds(now) + wait);
            Self::free_of(Self::met(state.to_word(), then), self.limit) >= cost as i64
        };
        Err(Duration::from_millis((1..).find(fits).unwrap_or(0)))
    }
}

impl<F: CounterFlaws> Counter for CompactCounter<F> {
    fn new(limit: u64) -> Self {
        let state = State { second: 0, previous: 0, current: 0 };
        Self { word: AtomicU64::new(state.to_word()), limit, flaws: PhantomData }
    }

    fn try_acquire(&self, now: Nanos, cost: u64) -> Answer {
        if F::ROLLS_OVER_APART {
            let word = self.word.load(Relaxed);
            let (state, _) = Self::met(word, now);
            if state.second > State::from_word(word).second {
                self.word.store(state.to_word(), Relaxed);
            }
        }
        if F::TAKES_FIRST {
            let met = Self::met(self.word.fetch_add(cost, Relaxed), now);
            let answer = self.answer(now, cost, met);
            if answer.is_err() {
                self.word.fetch_sub(cost, Relaxed);
            }
            return answer;
        }
        let taken = self.update(|word| {
            let met = Self::met(word, now);
            let (state, _) = met;
            let fits = Self::free_of(met, self.limit) >= cost as i64;
            if fits { Ok(State { current: state.current + cost, ..state }) } else { Err(met) }
        });
        match taken {
            Ok(state) => {
                let before = State { current: state.current - cost, ..state };
                self.answer(now, cost, Self::met(before.to_word(), now))
            }
            Err(met) => self.answer(now, cost, met),
        }
    }

    fn refund(&self, taken_at: Nanos, cost: u64) {
        let second = milliseconds(taken_at) / 1_000;
        let _ = self.update(|word| {
            let state = State::from_word(word);
            let less =
                |count: u64| if F::REFUNDS_UNCHECKED { count.wrapping_sub(cost) } else { count.saturating_sub(cost) };
            if second == state.second || F::REFUNDS_INTO_LATER_WINDOW {
                Ok(State { current: less(state.current), ..state })
            } else if second + 1 == state.second {
                Ok(State { previous: less(state.previous), ..state })
            } else {
                Err(())
            }
        });
    }

    fn peek(&self, now: Nanos, cost: u64) -> Answer {
        self.answer(now, cost, Self::met(self.word.load(Relaxed), now))
    }

    fn free(&self, now: Nanos) -> u64 {
        Self::free_of(Self::met(self.word.load(Relaxed), now), self.limit).max(0) as u64
    }
}

impl State {
    fn from_word(word: u64) -> Self {
        let count = |shift: u32| (word >> shift & COUNT_MASK).wrapping_sub(NONE);
        Self { second: word >> (2 * COUNT_BITS), previous: count(COUNT_BITS), current: count(0) }
    }

    fn to_word(self) -> u64 {
        let count = |count: u64| count.wrapping_add(NONE) & COUNT_MASK;
        self.second << (2 * COUNT_BITS) | count(self.previous) << COUNT_BITS | count(self.current)
    }
}

impl<F> fmt::Debug for CompactCounter<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactCounter").finish_non_exhaustive()
    }
}

fn milliseconds(now: Nanos) -> u64 {
    now.as_u64() / 1_000_000
}

const COUNT_BITS: u32 = 16;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// Far above 0, so that no flaw borrows from the bits above.
const NONE: u64 = 1 << 8;
