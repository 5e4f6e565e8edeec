//! The step, run atomically on one shared word.

use core::fmt;

use super::{SlidingCounterState, SlidingCounterStep};
use crate::decision::{Decision, Denied};
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Clock, Inspection, Nanos};

/// One sliding counter's state, shared by any number of callers: eight bytes.
///
/// It does not know its rate, so that many counters can share one [`SlidingCounterStep`]. Give every call the same step, and
/// readings of the same clock. Every decision takes effect at one instant between its call and its return, whatever the
/// interleaving, and one swap both moves on to a new window and takes the cost there; a denial writes nothing. Calls are
/// lock-free: one is repeated only when another one succeeded.
///
/// ```
/// use sluicegate_core::{Nanos, Rate, SlidingCounterCell, SlidingCounterStep};
///
/// static CELL: SlidingCounterCell = SlidingCounterCell::new();
///
/// let step = SlidingCounterStep::new("2/1s".parse::<Rate>()?)?;
/// let taken_at = CELL.try_acquire(&step, Nanos::ZERO, 2)?.at;
/// assert!(CELL.try_acquire(&step, Nanos::ZERO, 1).is_err());
/// CELL.refund(&step, taken_at, 1);
/// assert!(CELL.try_acquire(&step, Nanos::ZERO, 1).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct SlidingCounterCell {
    // The word is the whole state, and all read-modify-writes of one word are in one total order, in which each decision is
    // right. A word that comes back is the same state again, so a swap that finds it is right too. What is written is a release
    // and what decides an acquire: so whoever meets what was taken reads a clock no earlier than its taker did, and whoever
    // meets what is held sees that its holder has announced it (see `hierarchy`).
    state: AtomicU64,
}

impl SlidingCounterCell {
    const_unless_loom! {
        /// A counter at which nothing was taken.
        pub fn new() -> Self {
            Self::with_state(SlidingCounterState::UNUSED)
        }

        /// A counter in `state`, as [`SlidingCounterCell::state`] returned it.
        pub fn with_state(state: SlidingCounterState) -> Self {
            Self { state: AtomicU64::new(state.to_bits()) }
        }
    }

    /// Takes `cost` at `now`, or nothing.
    ///
    /// # Errors
    /// [`Denied`] says whether to come back and when.
    #[inline]
    pub fn try_acquire(&self, step: &SlidingCounterStep, now: Nanos, cost: u64) -> Decision {
        self.take_from(self.state.load(Ordering::Acquire), step, now, cost).0
    }

    /// The same at a reading of `clock`, and that reading.
    ///
    /// A caller may be suspended between reading the clock and deciding, while others take at later readings what was let go
    /// since. So the word is read before the clock: if it is by this word that the request is denied, the estimate was too
    /// large when it was read, and no smaller than at the reading. If it is by another, the clock is read again.
    #[inline(always)]
    pub(super) fn try_acquire_by(&self, step: &SlidingCounterStep, clock: &impl Clock, cost: u64) -> (Nanos, Decision) {
        let seen = self.state.load(Ordering::Acquire);
        let now = clock.now();
        match self.take_from(seen, step, now, cost) {
            (Err(Denied::RateLimited { .. }), decided_on) if decided_on != seen => self.overtaken(step, clock, cost),
            (decision, _) => (now, decision),
        }
    }

    /// Begins anew.
    #[cold]
    fn overtaken(&self, step: &SlidingCounterStep, clock: &impl Clock, cost: u64) -> (Nanos, Decision) {
        loop {
            let seen = self.state.load(Ordering::Acquire);
            let now = clock.now();
            match self.take_from(seen, step, now, cost) {
                // Another caller has changed the word meanwhile: as a whole, calls make progress.
                (Err(Denied::RateLimited { .. }), decided_on) if decided_on != seen => {}
                (decision, _) => return (now, decision),
            }
        }
    }

    /// Takes `cost` from `current` or from what has replaced it; also tells what was decided on.
    #[inline(always)]
    fn take_from(&self, mut current: u64, step: &SlidingCounterStep, now: Nanos, cost: u64) -> (Decision, u64) {
        loop {
            let state = SlidingCounterState::from_bits(current);
            let met = step.met_at(state, now);
            let Some((next, left)) = step.take(state, &met, cost) else {
                return (Err(step.denial(&met, now, cost)), current);
            };
            // A cost of 0 changes nothing.
            if cost == 0 {
                return (Ok(step.admission(&met, now, left)), current);
            }
            let next = next.to_bits();
            match self.state.compare_exchange_weak(current, next, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return (Ok(step.admission(&met, now, left)), current),
                Err(seen) => current = seen,
            }
        }
    }

    /// Gives back `cost` that was admitted at `taken_at`, to the window it was taken in.
    #[inline]
    pub fn refund(&self, step: &SlidingCounterStep, taken_at: Nanos, cost: u64) {
        let _ = self.give_back(step, taken_at, cost);
    }

    /// As [`refund`](Self::refund); tells how much came back.
    #[inline]
    pub(super) fn give_back(&self, step: &SlidingCounterStep, taken_at: Nanos, cost: u64) -> u64 {
        let mut current = self.state.load(Ordering::Acquire);
        loop {
            let (next, returned) = step.give_back(SlidingCounterState::from_bits(current), taken_at, cost);
            if returned == 0 {
                return 0;
            }
            let next = next.to_bits();
            match self.state.compare_exchange_weak(current, next, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return returned,
                Err(seen) => current = seen,
            }
        }
    }

    /// What [`try_acquire`](Self::try_acquire) would answer, taking nothing.
    ///
    /// # Errors
    /// As `try_acquire`.
    #[inline]
    pub fn peek(&self, step: &SlidingCounterStep, now: Nanos, cost: u64) -> Decision {
        step.try_acquire(self.state(), now, cost).1
    }

    /// What could be taken at `now`.
    #[inline]
    pub fn inspect(&self, step: &SlidingCounterStep, now: Nanos) -> Inspection {
        step.inspect(self.state(), now)
    }

    /// The state.
    #[inline]
    pub fn state(&self) -> SlidingCounterState {
        SlidingCounterState::from_bits(self.state.load(Ordering::Acquire))
    }
}

impl fmt::Debug for SlidingCounterCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SlidingCounterCell").field(&self.state().to_bits()).finish()
    }
}
