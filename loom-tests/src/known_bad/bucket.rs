//! A compact token bucket, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use sluicegate_core::{Nanos, Quota, Remaining};

use crate::shim::AtomicU64;
use crate::{Answer, Bucket, Taken};

/// Bugs that a bucket may have, one type each.
pub trait BucketFlaws: Send + Sync + 'static {
    /// Stores the new state back without looking whether the old one is still there.
    const STORES_BACK: bool = false;
    /// Takes first, looks then, and gives back what was too much.
    const TAKES_FIRST: bool = false;
    /// Turns its last reading back to a late one, so that the same refill is earned twice.
    const LATE_READING_TURNS_BACK: bool = false;
    /// Adds what is given back to whatever is there.
    const REFUNDS_ABOVE_CAPACITY: bool = false;
}

/// The word holds the last reading in milliseconds above, and thousandths of tokens below.
pub struct CompactBucket<F> {
    word: AtomicU64,
    per_second: u64,
    capacity: u64,
    flaws: PhantomData<F>,
}

#[derive(Clone, Copy)]
struct State {
    last: u64,
    level: u64,
}

impl<F: BucketFlaws> CompactBucket<F> {
    fn refilled(&self, word: u64, now: u64) -> State {
        let state = State::from_word(word);
        if now > state.last {
            let level = state.level + (now - state.last) * self.per_second;
            return State { last: now, level: level.min(self.capacity) };
        }
        if F::LATE_READING_TURNS_BACK { State { last: now, ..state } } else { state }
    }

    /// Replaces the state unless `change` denies, and returns the new one or what `change` denied.
    fn update(&self, change: impl Fn(u64) -> Result<State, State>) -> Result<State, State> {
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

    fn take(&self, now: u64, cost: u64) -> Result<State, State> {
        if F::TAKES_FIRST {
            let _ = self.update(|word| Ok(self.refilled(word, now)));
            let before = State::from_word(self.word.fetch_sub(cost, Relaxed));
            if before.level >= cost {
                return Ok(State { level: before.level - cost, ..before });
            }
            self.word.fetch_add(cost, Relaxed);
            return Err(before);
        }
        self.update(|word| {
            let state = self.refilled(word, now);
            if state.level >= cost { Ok(State { level: state.level - cost, ..state }) } else { Err(state) }
        })
    }

    fn answer(&self, now: Nanos, cost: u64, outcome: Result<State, State>) -> Answer {
        match outcome {
            Ok(left) => Ok(Taken { at: now, remaining: Remaining::Exactly(left.level / TOKEN) }),
            Err(state) => {
                let refill = (cost - state.level).div_ceil(self.per_second);
                Err(Duration::from_millis(refill + state.last - milliseconds(now)))
            }
        }
    }
}

impl<F: BucketFlaws> Bucket for CompactBucket<F> {
    fn new(quota: Quota) -> Self {
        let (per_second, capacity) = (quota.rate().tokens(), quota.capacity() * TOKEN);
        let word = AtomicU64::new(State { last: 0, level: capacity }.to_word());
        Self { word, per_second, capacity, flaws: PhantomData }
    }

    fn try_acquire(&self, now: Nanos, cost: u64) -> Answer {
        self.answer(now, cost * TOKEN, self.take(milliseconds(now), cost * TOKEN))
    }

    fn refund(&self, cost: u64) {
        let _ = self.update(|word| {
            let State { last, level } = State::from_word(word);
            let level = level + cost * TOKEN;
            Ok(State { last, level: if F::REFUNDS_ABOVE_CAPACITY { level } else { level.min(self.capacity) } })
        });
    }

    fn peek(&self, now: Nanos, cost: u64) -> Answer {
        let (state, cost) = (self.refilled(self.word.load(Relaxed), milliseconds(now)), cost * TOKEN);
        let left = state.level.checked_sub(cost).map(|level| State { level, ..state });
        self.answer(now, cost, left.ok_or(state))
    }

    fn level(&self, now: Nanos) -> u64 {
        self.refilled(self.word.load(Relaxed), milliseconds(now)).level / TOKEN
    }
}

impl State {
    fn from_word(word: u64) -> Self {
        Self { last: word >> LEVEL_BITS, level: (word & LEVEL_MASK).saturating_sub(EMPTY) }
    }

    fn to_word(self) -> u64 {
        self.last << LEVEL_BITS | (self.level + EMPTY)
    }
}

impl<F> fmt::Debug for CompactBucket<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactBucket").finish_non_exhaustive()
    }
}

fn milliseconds(now: Nanos) -> u64 {
    now.as_u64() / 1_000_000
}

const TOKEN: u64 = 1_000;
const LEVEL_BITS: u32 = 32;
const LEVEL_MASK: u64 = (1 << LEVEL_BITS) - 1;
/// An empty bucket's level, so far above 0 that taking first cannot borrow from the reading.
const EMPTY: u64 = 1 << 31;
