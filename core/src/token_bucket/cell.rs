//! The step, run atomically on one shared word.

use core::fmt;

use super::{BucketState, BucketStep, Debit};
use crate::decision::{Decision, Denied};
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Clock, Inspection, Nanos};

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
    // The word is the whole state, and all read-modify-writes of one word are in one total order, in which each decision is
    // right. What takes is a release and what is read before a clock an acquire, for the readings alone: so whoever meets what
    // was taken reads a clock no earlier than its taker did. Everything else is relaxed: a refund leaves readings out of it, and
    // the takers before it are still acquired through it.
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
    /// [`Denied`] says whether to come back and when.
    #[inline(always)]
    pub fn try_acquire(&self, step: &BucketStep, now: Nanos, cost: u64) -> Decision {
        self.take_from(self.state.load(Ordering::Relaxed), step, now, cost).0
    }

    /// The same at a reading of `clock`, and that reading.
    ///
    /// A caller may be suspended between reading the clock and deciding, while others take at later readings what refill has
    /// brought since. So the word is read before the clock: if it is by this word that the request is denied, there was too
    /// little when it was read, and no more than at the reading. If it is by another, the clock is read again.
    #[inline(always)]
    pub(crate) fn try_acquire_by(&self, step: &BucketStep, clock: &impl Clock, cost: u64) -> (Nanos, Decision) {
        let seen = self.state.load(Ordering::Acquire);
        let now = clock.now();
        match self.take_from(seen, step, now, cost) {
            (Err(Denied::RateLimited { .. }), decided_on) if decided_on != seen => self.overtaken(step, clock, cost),
            (decision, _) => (now, decision),
        }
    }

    /// Begins anew: another caller has changed the word meanwhile, so calls as a whole make progress.
    #[cold]
    fn overtaken(&self, step: &BucketStep, clock: &impl Clock, cost: u64) -> (Nanos, Decision) {
        loop {
            let seen = self.state.load(Ordering::Acquire);
            let now = clock.now();
            match self.take_from(seen, step, now, cost) {
                (Err(Denied::RateLimited { .. }), decided_on) if decided_on != seen => {}
                (decision, _) => return (now, decision),
            }
        }
    }

    /// Takes `cost` from `current` or from what has replaced it; also tells what was decided on.
    #[inline(always)]
    fn take_from(&self, mut current: u64, step: &BucketStep, now: Nanos, cost: u64) -> (Decision, u64) {
        let accrued = step.accrued(now);
        loop {
            let state = BucketState::from_bits(current);
            let Some((next, left)) = step.take(state, accrued, cost) else {
                return (Err(step.denial(state, accrued, now, cost)), current);
            };
            // A cost of 0 changes nothing. (Any other does, and a cost is mostly known to the compiler.)
            if cost == 0 {
                return (Ok(step.admission(now, left)), current);
            }
            let next = next.to_bits();
            // The answer is made after the swap, so that a caller who asks only whether it may pass does not pay for it.
            match self.state.compare_exchange_weak(current, next, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return (Ok(step.admission(now, left)), current),
                Err(seen) => current = seen,
            }
        }
    }

    /// Gives `cost` tokens back, whenever they were taken; the bucket never holds more than its capacity.
    #[inline]
    pub fn refund(&self, step: &BucketStep, cost: u64) {
        let _ = self.give_back(step, cost);
    }

    /// As [`refund`](Self::refund); tells how many tokens came back.
    #[inline]
    pub(crate) fn give_back(&self, step: &BucketStep, cost: u64) -> u64 {
        let mut current = self.state.load(Ordering::Relaxed);
        loop {
            let (next, returned) = step.give_back(BucketState::from_bits(current), cost);
            match self.state.compare_exchange_weak(current, next.to_bits(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return returned,
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
            match self.state.compare_exchange_weak(current, next.to_bits(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return debit,
                Err(seen) => current = seen,
            }
        }
    }

    /// The same at a reading of `clock`, and that reading. What is told as unpaid could not be paid for at that reading either:
    /// see [`try_acquire_by`](Self::try_acquire_by).
    #[inline]
    pub(crate) fn debit_by(&self, step: &BucketStep, clock: &impl Clock, cost: u64) -> (Nanos, Debit) {
        let mut seen = self.state.load(Ordering::Acquire);
        loop {
            let now = clock.now();
            let mut current = seen;
            seen = loop {
                let (next, debit) = step.debit(BucketState::from_bits(current), now, cost);
                if debit.unpaid > 0 && current != seen {
                    break current;
                }
                match self.state.compare_exchange_weak(current, next.to_bits(), Ordering::Release, Ordering::Acquire) {
                    Ok(_) => return (now, debit),
                    Err(now_there) => current = now_there,
                }
            };
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

    /// Ends the cell and tells the state that it had. From then on every request is denied, or costs nothing, and whoever gets
    /// such an answer asks whether the cell [has ended](Self::has_ended); nothing else may be done with it.
    ///
    /// Acquire: a clock that is read afterwards is not behind those of the takers before.
    #[cfg(feature = "keyed")]
    pub(crate) fn end(&self) -> BucketState {
        BucketState::from_bits(self.state.swap(ENDED, Ordering::Acquire))
    }

    #[cfg(feature = "keyed")]
    #[inline(always)]
    pub(crate) fn has_ended(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ENDED
    }

    /// The state, before whatever the caller does next.
    #[inline]
    pub(crate) fn seen(&self) -> BucketState {
        BucketState::from_bits(self.state.load(Ordering::Acquire))
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

/// No state that a quota comes to by itself: those are below 2^63. Whoever ends cells gives them no other.
#[cfg(feature = "keyed")]
const ENDED: u64 = u64::MAX;
