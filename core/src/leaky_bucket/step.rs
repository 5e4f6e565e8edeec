//! One decision of a leaky bucket, as a pure function.

use core::time::Duration;

use super::Pacing;
use crate::Nanos;
use crate::decision::{Denied, Inspection};
use crate::token_bucket::Grid;

/// The whole state of a leaky bucket: one word, the place of the next free slot.
///
/// The default is a bucket that was never used, which equals one that has been idle. Every value is a valid state. It is
/// meaningful only with the pacing and the clock origin that it was written under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeakyBucketState(u64);

impl LeakyBucketState {
    /// A bucket that was never used.
    pub const IDLE: Self = Self(0);

    /// The state that [`to_bits`](Self::to_bits) took apart.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The word, for storage of the caller's own.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// When an item departs. It has its slot; until then it waits, and nothing else is to be asked.
///
/// It is no plain value: giving the slot up ([`LeakyBucket::cancel`](super::LeakyBucket::cancel)) consumes it, so that a slot is
/// given up once. Dropping it gives nothing up.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the item departs at `at` and not before"]
#[non_exhaustive]
pub struct Departure {
    /// The reading at which the item departs: not before the reading of the decision.
    pub at: Nanos,
    /// How long it waits from the reading of the decision on; zero if it departs at once.
    pub delay: Duration,
    pub(super) cost: u64,
    before: LeakyBucketState,
    after: LeakyBucketState,
}

impl Departure {
    /// Whether it departs without waiting.
    #[inline]
    pub const fn is_immediate(&self) -> bool {
        self.delay.is_zero()
    }

    /// What it costs.
    #[inline]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// The state that giving the slot up replaces, and by which; `None` if it has no slot.
    #[inline]
    pub(super) fn swap(&self) -> Option<(LeakyBucketState, LeakyBucketState)> {
        (self.cost > 0).then_some((self.after, self.before))
    }
}

/// A pacing made ready for deciding: the leaky bucket as a pure function of state, reading and cost.
///
/// Use it to keep states where you like, one word a key; [`LeakyBucket`](super::LeakyBucket) runs this same step atomically
/// and says what it guarantees.
///
/// # What is exact
///
/// Time is counted in units of 1/D of a token, with `a(now)` the units generated since the clock's origin. The state is where
/// the next free slot begins; an item takes the slot at `max(state, a(now))`, `a` being rounded up to a whole unit, and the
/// next one begins cost·D later. With a slack of S, an item departs at the first reading whose `a`, rounded down, is S·D
/// short of its slot. It is refused if `state` is more than (Q + S)·D ahead of `a(now)`, rounded up. `a` is computed from the
/// absolute reading each time, so no error ever accumulates.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Denied, LeakyBucketState, LeakyBucketStep, Nanos, Pacing, Rate};
///
/// let step = LeakyBucketStep::new(Pacing::new("7/3s".parse::<Rate>()?, 2)?);
/// let (mut state, mut departures) = (LeakyBucketState::IDLE, Vec::new());
/// for _ in 0..3 {
///     let (next, departure) = step.try_acquire(state, Nanos::ZERO, 1);
///     departures.push(departure?.at.as_u64());
///     state = next;
/// }
/// // A seventh of three seconds is 428 571 428.57... ns.
/// assert_eq!(departures, [0, 428_571_429, 857_142_858]);
/// let retry_after = Duration::from_nanos(428_571_429);
/// assert_eq!(step.try_acquire(state, Nanos::ZERO, 1).1, Err(Denied::RateLimited { retry_after }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucketStep {
    grid: Grid,
    /// Units that the state may be ahead with slots still departing at once.
    slack_units: u64,
    /// Units that it may be ahead with items still accepted.
    bound_units: u64,
    pacing: Pacing,
}

impl LeakyBucketStep {
    /// Prepares `pacing`.
    pub const fn new(pacing: Pacing) -> Self {
        match pacing.grid() {
            Ok(grid) => {
                // No overflow: the grid has room for all of the tokens together.
                let slack_units = pacing.slack() * grid.units_per_token;
                let bound_units = slack_units + pacing.queue() * grid.units_per_token;
                Self { grid, slack_units, bound_units, pacing }
            }
            // A pacing can only be made where this succeeds.
            Err(_) => unreachable!(),
        }
    }

    /// The pacing.
    #[inline]
    pub const fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// Gives an item of `cost` tokens that arrives at `now` its slot, and returns the state to keep; a refusal returns the
    /// state it was given.
    ///
    /// A cost of 0 needs no slot: it departs at once and changes nothing.
    ///
    /// # Errors
    /// [`Denied::RateLimited`] when it would have to wait behind more than the queue holds, [`Denied::CostExceedsLimit`] when
    /// it costs more than any item may.
    #[inline(always)]
    pub const fn try_acquire(
        &self,
        state: LeakyBucketState,
        now: Nanos,
        cost: u64,
    ) -> (LeakyBucketState, Result<Departure, Denied>) {
        if cost > self.pacing.largest_cost() {
            return (state, Err(Denied::CostExceedsLimit { cost, limit: self.pacing.largest_cost() }));
        }
        if cost == 0 {
            return (state, Ok(Departure { at: now, delay: Duration::ZERO, cost, before: state, after: state }));
        }
        // Units generated and everything a state is ahead of them have room in 63 bits, but for a unit of rounding up.
        let accrued = self.grid.accrued_up(now);
        if state.0 > accrued + self.bound_units {
            return (state, Err(self.denial(state, now)));
        }
        let slot = if state.0 > accrued { state.0 } else { accrued };
        let after = LeakyBucketState(slot + cost * self.grid.units_per_token);
        let delay = Duration::from_nanos(self.delay(state, now));
        (after, Ok(Departure { at: now.saturating_add(delay), delay, cost, before: state, after }))
    }

    /// As [`try_acquire`](Self::try_acquire), but refuses an item that would wait longer than `longest_wait`, which is
    /// [`Denied::RateLimited`] too.
    #[inline(always)]
    pub const fn try_acquire_within(
        &self,
        state: LeakyBucketState,
        now: Nanos,
        cost: u64,
        longest_wait: Duration,
    ) -> (LeakyBucketState, Result<Departure, Denied>) {
        let (after, decision) = self.try_acquire(state, now, cost);
        let (queue_full_for, delay) = match &decision {
            Ok(departure) => (Duration::ZERO, departure.delay),
            // There will be room in the queue before the wait is short enough, or the other way round.
            Err(Denied::RateLimited { retry_after }) => (*retry_after, Duration::from_nanos(self.delay(state, now))),
            Err(_) => return (after, decision),
        };
        match delay.checked_sub(longest_wait) {
            Some(too_long) if too_long.as_nanos() > queue_full_for.as_nanos() => {
                (state, Err(Denied::RateLimited { retry_after: too_long }))
            }
            _ => (after, decision),
        }
    }

    /// The state without the slot of `departure`, if no later item has one; a later item keeps its own, and the slot stays
    /// used.
    ///
    /// # Errors
    /// Gives the departure back.
    #[inline]
    pub fn cancel(&self, state: LeakyBucketState, departure: Departure) -> Result<LeakyBucketState, Departure> {
        match departure.swap() {
            None => Ok(state),
            Some((from, to)) if state == from => Ok(to),
            Some(_) => Err(departure),
        }
    }

    /// How many items of one token would be accepted at `now`, of as many as an idle bucket accepts at once: its queue, its
    /// slack and the one that departs.
    #[inline]
    pub const fn inspect(&self, state: LeakyBucketState, now: Nanos) -> Inspection {
        let accrued = self.grid.accrued_up(now);
        let slot = if state.0 > accrued { state.0 } else { accrued };
        let capacity = self.pacing.queue() + self.pacing.slack() + 1;
        match (accrued + self.bound_units).checked_sub(slot) {
            Some(room) => Inspection::new(self.grid.whole_tokens(room) + 1, capacity),
            None => Inspection::new(0, capacity),
        }
    }

    /// Whether `state` equals at `now` one that was never used: a store may forget it.
    #[inline]
    pub const fn is_idle(&self, state: LeakyBucketState, now: Nanos) -> bool {
        state.0 <= self.grid.accrued(now)
    }

    /// Nanoseconds from `now` to the first reading at which the slot at `state` departs.
    #[inline]
    const fn delay(&self, state: LeakyBucketState, now: Nanos) -> u64 {
        if state.0 <= self.grid.accrued(now) + self.slack_units {
            return 0;
        }
        self.grid.first_reading_of(state.0 - self.slack_units) - now.within_horizon()
    }

    /// The answer when the state is too far ahead. The first reading at which it is not is later than now.
    #[inline]
    const fn denial(&self, state: LeakyBucketState, now: Nanos) -> Denied {
        let reading = self.grid.first_reading_up_of(state.0 - self.bound_units);
        Denied::RateLimited { retry_after: Duration::from_nanos(reading - now.within_horizon()) }
    }
}
