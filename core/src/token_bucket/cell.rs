//! The step, run atomically on one shared word.

use core::fmt;

use super::{BucketState, BucketStep, Debit};
use crate::decision::Decision;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Inspection, Nanos};

/// One bucket's state, shared by any number of callers: eight bytes.
///
/// It does not know its quota, so that many buckets can share one [`BucketStep`]. Give every call the same step, and
/// readings of the same clock. Every decision takes effect at one instant between its call and its return, whatever the
/// interleaving; a denial writes nothing. Calls are lock-free: one is repeated only when another one succeeded.
///
/// ```
/// use sluicegate_core::{BucketCell, BucketStep, Nanos, quota};
///
/// const STEP: BucketStep = BucketStep::new(quota!("2/1s"));
/// static CELL: BucketCell = BucketCell::new();
///
/// assert!(CELL.try_acquire(&STEP, Nanos::ZERO, 2).is_ok());
/// assert!(CELL.try_acquire(&STEP, Nanos::ZERO, 1).is_err());
/// CELL.refund(&STEP, 1);
/// assert!(CELL.try_acquire(&STEP, Nanos::ZERO, 1).is_ok());
/// ```
#[derive(Default)]
pub struct BucketCell {
    // Every operation on the word is relaxed: it is the whole state and publishes nothing else, and all
    // read-modify-writes of one word are in one total order, in which each decision is right.
    state: AtomicU64,
}

impl BucketCell {
    const_unless_loom! {
        /// A full bucket.
        pub fn new() -> Self {
            Self::with_state(BucketState::FULL)
        }

        /// A bucket in `state`, as [`BucketCell::state`] returned it.
        pub fn with_state(state: BucketState) -> Self {
            Self { state: AtomicU64::new(state.to_bits()) }
        }
    }

    /// Takes `cost` tokens at `now`, or nothing.
    ///
    /// # Errors
    /// [`Denied`](crate::Denied) says whether to come back and when.
    #[inline(always)]
    pub fn try_acquire(&self, step: &BucketStep, now: Nanos, cost: u64) -> Decision {
        let accrued = step.accrued(now);
        let mut current = self.state.load(Ordering::Relaxed);
        loop {
            let state = BucketState::from_bits(current);
            let Some((next, left)) = step.take(state, accrued, cost) else {
                return Err(step.denial(state, accrued, now, cost));
            };
            // A cost of 0 changes nothing. (Any other does, and a cost is mostly known to the compiler.)
            if cost == 0 {
                return Ok(step.admission(now, left));
            }
            let next = next.to_bits();
            // The answer is made after the swap, so that a caller who asks only whether it may pass does not pay for it.
            match self.state.compare_exchange_weak(current, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(step.admission(now, left)),
                Err(seen) => current = seen,
            }
        }
    }

    /// Gives `cost` tokens back, whenever they were taken; the bucket never holds more than its capacity.
    #[inline]
    pub fn refund(&self, step: &BucketStep, cost: u64) {
        let mut current = self.state.load(Ordering::Relaxed);
        loop {
            let next = step.refund(BucketState::from_bits(current), cost).to_bits();
            match self.state.compare_exchange_weak(current, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => current = seen,
            }
        }
    }

    /// Takes `cost` tokens at `now` whether or not they are there, as [`BucketStep::debit`] does.
    #[inline]
    pub fn debit(&self, step: &BucketStep, now: Nanos, cost: u64) -> Debit {
        let mut current = self.state.load(Ordering::Relaxed);
        loop {
            let (next, debit) = step.debit(BucketState::from_bits(current), now, cost);
            match self.state.compare_exchange_weak(current, next.to_bits(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return debit,
                Err(seen) => current = seen,
            }
        }
    }

    /// Fills the bucket, whatever was spent.
    #[inline]
    pub fn reset(&self) {
        self.state.store(BucketState::FULL.to_bits(), Ordering::Relaxed);
    }

    /// What [`try_acquire`](Self::try_acquire) would answer, taking nothing.
    ///
    /// # Errors
    /// As `try_acquire`.
    #[inline]
    pub fn peek(&self, step: &BucketStep, now: Nanos, cost: u64) -> Decision {
        step.try_acquire(self.state(), now, cost).1
    }

    /// The tokens at `now`.
    #[inline]
    pub fn inspect(&self, step: &BucketStep, now: Nanos) -> Inspection {
        step.inspect(self.state(), now)
    }

    /// The state.
    #[inline]
    pub fn state(&self) -> BucketState {
        BucketState::from_bits(self.state.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for BucketCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BucketCell").field(&self.state().to_bits()).finish()
    }
}
