//! One decision of a token bucket, as a pure function.

use core::time::Duration;

use super::Grid;
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::{Nanos, Quota};

/// What a debit took: the answer of [`BucketStep::debit`] and [`TokenBucket::debit`](super::TokenBucket::debit).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "what could not be charged is only told here"]
#[non_exhaustive]
pub struct Debit {
    /// Tokens taken.
    pub charged: u64,
    /// Tokens that would have exceeded the quota's debt, and were not taken. `charged + unpaid` is what was asked for.
    pub unpaid: u64,
}

/// The whole state of a token bucket: one word that counts consumed units.
///
/// The default is a bucket that was never used, which is full. Every value is a valid state of every quota: a value that
/// lies behind the units generated so far is full, whatever it is. It is meaningful only with the quota and the clock
/// origin that it was written under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BucketState(u64);

impl BucketState {
    /// A bucket that was never used: full.
    pub const FULL: Self = Self(0);

    /// The state that [`BucketState::to_bits`] took apart.
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

/// A quota made ready for deciding: the token bucket as a pure function of state, reading and cost.
///
/// Use it to keep states where you like, one word a key; [`BucketCell`](super::BucketCell) and
/// [`TokenBucket`](super::TokenBucket) run this same step atomically.
///
/// # What is exact
///
/// With `a(now)` the units generated since the clock's origin, a cost of k tokens is admitted if and only if
/// `max(state, a(now)) + k·D <= a(now) + C·D`, and the left side becomes the state (D units make a token, C is the
/// capacity). `a` is computed from the absolute reading each time, so no error ever accumulates:
///
/// - between any two readings s < t the admitted cost is at most `C + N(t - s)/P`;
/// - a request is denied only when the ideal bucket, with real-valued refill, holds less than its cost;
/// - `retry_after` is exact to the nanosecond.
///
/// Where N tokens per P ns have no common unit that leaves room for 30 years, instants are right to within one unit of
/// refill, 0.1 to 0.2 ns, for ever. Decisions take two multiplications, and no division.
///
/// This is the virtual scheduling form of the generic cell rate algorithm (ITU-T I.371, annex A), turned around: the state
/// counts units of tokens rather than units of time, which is what makes every rate exact.
///
/// # A clock that misbehaves
///
/// A reading earlier than the latest one acted on counts what was consumed up to then, so it admits no more than that
/// latest reading would, and denies until the clock has caught up and no longer. Readings past [`Nanos::HORIZON`] count
/// as the horizon. Nothing panics or wraps.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{BucketState, BucketStep, Denied, Nanos, Remaining, quota};
///
/// let step = BucketStep::new(quota!("7/3s burst 1"));
/// let (state, decision) = step.try_acquire(BucketState::FULL, Nanos::ZERO, 1);
/// assert_eq!(decision?.remaining, Remaining::Exactly(0));
///
/// // A seventh of three seconds is 428 571 428.57... ns.
/// let retry_after = Duration::from_nanos(428_571_429);
/// let (state, decision) = step.try_acquire(state, Nanos::ZERO, 1);
/// assert_eq!(decision, Err(Denied::RateLimited { retry_after }));
/// assert!(step.try_acquire(state, Nanos::new(428_571_428), 1).1.is_err());
/// assert!(step.try_acquire(state, Nanos::new(428_571_429), 1).1.is_ok());
/// # Ok::<(), Denied>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketStep {
    pub(super) grid: Grid,
    quota: Quota,
}

impl BucketStep {
    /// Prepares `quota`.
    pub const fn new(quota: Quota) -> Self {
        match Grid::new(quota.rate(), quota.capacity(), quota.debt()) {
            Ok(grid) => Self { grid, quota },
            // A quota can only be made where this succeeds.
            Err(_) => unreachable!(),
        }
    }

    /// The quota.
    #[inline]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// Decides on `cost` tokens at `now`, and returns the state to keep; a denial returns the state it was given.
    ///
    /// A cost of 0 is always admitted and changes nothing: it is no use that a late reading would have to wait for.
    #[inline]
    pub const fn try_acquire(&self, state: BucketState, now: Nanos, cost: u64) -> (BucketState, Decision) {
        let accrued = self.accrued(now);
        match self.take(state, accrued, cost) {
            Some((next, left)) => (next, Ok(self.admission(now, left))),
            None => (state, Err(self.denial(state, accrued, now, cost))),
        }
    }

    /// The state after `cost` tokens were given back, whenever they were taken.
    ///
    /// The bucket never holds more than its capacity: what is given back to a full bucket is gone. Tokens that refill has
    /// replaced since they were taken come on top of that refill; to undo without a trace, reserve instead of taking, see
    /// [`AdjustableBucket`](crate::AdjustableBucket).
    #[inline]
    pub const fn refund(&self, state: BucketState, cost: u64) -> BucketState {
        self.give_back(state, cost).0
    }

    /// As [`refund`](Self::refund); also tells how many tokens came back, a begun one counted whole: all, but for those that no
    /// bucket has room for, and those that were not taken since the clock's origin.
    #[inline]
    pub(crate) const fn give_back(&self, state: BucketState, cost: u64) -> (BucketState, u64) {
        // No state is further ahead of the latest reading, so giving back this much fills any bucket.
        let most = self.quota.capacity() + self.quota.debt();
        let cost = if cost < most { cost } else { most };
        match state.0.checked_sub(cost * self.grid.units_per_token) {
            Some(next) => (BucketState(next), cost),
            None => (BucketState::FULL, state.0.div_ceil(self.grid.units_per_token)),
        }
    }

    /// Takes `cost` tokens at `now` whether or not they are there, for what has already happened, and returns the state to
    /// keep.
    ///
    /// The bucket may owe up to its quota's [`debt`](Quota::debt) afterwards, and no more: what exceeds that is not taken, and
    /// is told as [`Debit::unpaid`]. A debit of tokens that are there equals an acquire of them.
    ///
    /// ```
    /// use sluicegate_core::{BucketState, BucketStep, Nanos, quota};
    ///
    /// let step = BucketStep::new(quota!("10/1s debt 5"));
    /// let (state, debit) = step.debit(BucketState::FULL, Nanos::ZERO, 12);
    /// assert_eq!((debit.charged, debit.unpaid), (12, 0));
    /// assert_eq!(step.inspect(state, Nanos::ZERO).owed, 2);
    ///
    /// let (_, debit) = step.debit(state, Nanos::ZERO, 12);
    /// assert_eq!((debit.charged, debit.unpaid), (3, 9));
    /// ```
    #[inline]
    pub const fn debit(&self, state: BucketState, now: Nanos, cost: u64) -> (BucketState, Debit) {
        let accrued = self.accrued(now);
        let consumed = if state.0 > accrued { state.0 } else { accrued };
        let charged = self.overdraw(consumed, accrued + self.grid.capacity_units, 0, cost);
        // A debit of nothing is no use that a late reading would have to wait for.
        let next = if charged == 0 { state } else { BucketState(consumed + charged * self.grid.units_per_token) };
        (next, Debit { charged, unpaid: cost - charged })
    }

    /// How many tokens of `cost` fit on top of `consumed`, up to `ceiling` and the debt but for `held` units.
    #[inline]
    pub(crate) const fn overdraw(&self, consumed: u64, ceiling: u64, held: u64, cost: u64) -> u64 {
        // Below 2^64: 30 years, the capacity and the debt are below 2^63.
        let room = (ceiling + self.grid.debt_units).saturating_sub(held).saturating_sub(consumed);
        let most = self.grid.whole_tokens(room);
        if cost < most { cost } else { most }
    }

    /// The whole tokens that `state` holds at `now`.
    #[inline]
    pub const fn inspect(&self, state: BucketState, now: Nanos) -> Inspection {
        let accrued = self.grid.accrued(now);
        let consumed = if state.0 > accrued { state.0 } else { accrued };
        let ceiling = accrued + self.grid.capacity_units;
        let mut inspection =
            Inspection::new(self.grid.whole_tokens(ceiling.saturating_sub(consumed)), self.quota.capacity());
        if self.quota.debt() != 0 {
            inspection.owed = consumed.saturating_sub(ceiling).div_ceil(self.grid.units_per_token);
        }
        inspection
    }

    /// Whether `state` is full at `now`, and so equals one that was never used: a store may forget it.
    #[inline]
    pub const fn is_full(&self, state: BucketState, now: Nanos) -> bool {
        state.0 <= self.grid.accrued(now)
    }

    pub(super) const fn from_parts(grid: Grid, quota: Quota) -> Self {
        Self { grid, quota }
    }

    /// The units of `tokens`, which are at most the capacity and the debt.
    #[inline(always)]
    pub(crate) const fn units(&self, tokens: u64) -> u64 {
        tokens * self.grid.units_per_token
    }

    /// The first reading at which so many units are generated.
    #[inline(always)]
    pub(crate) const fn first_reading_of(&self, units: u64) -> u64 {
        self.grid.first_reading_of(units)
    }

    /// The first reading from `now` on at which `total` tokens can have been taken, in parts of at most the capacity each, as soon
    /// as each fits.
    pub(crate) const fn earliest(&self, state: BucketState, now: Nanos, total: u128) -> Nanos {
        let accrued = self.grid.accrued(now);
        let consumed = if state.0 > accrued { state.0 } else { accrued };
        let target = total.saturating_mul(self.grid.units_per_token as u128).saturating_add(consumed as u128);
        let target = target.saturating_sub(self.grid.capacity_units as u128);
        if total == 0 || target <= accrued as u128 {
            return now;
        }
        if target > u64::MAX as u128 {
            return Nanos::MAX;
        }
        let wait = self.grid.first_reading_of(target as u64) - now.within_horizon();
        now.saturating_add(Duration::from_nanos(wait))
    }

    /// The units generated up to `now`, which [`take`](Self::take) and [`denial`](Self::denial) go by.
    #[inline(always)]
    pub(crate) const fn accrued(&self, now: Nanos) -> u64 {
        self.grid.accrued(now)
    }

    /// The next state and the units left, if `cost` can be taken.
    #[inline(always)]
    pub(super) const fn take(&self, state: BucketState, accrued: u64, cost: u64) -> Option<(BucketState, u64)> {
        if cost > self.quota.capacity() {
            return None;
        }
        let consumed = if state.0 > accrued { state.0 } else { accrued };
        // At most `capacity_units`. That and `accrued` are below 2^63.
        let needed = cost * self.grid.units_per_token;
        let most = accrued + (self.grid.capacity_units - needed);
        if consumed > most {
            // A cost of 0 is no use: nothing is left, which is enough.
            return if cost == 0 { Some((state, 0)) } else { None };
        }
        Some((if cost == 0 { state } else { BucketState(consumed + needed) }, most - consumed))
    }

    /// The answer when `left` units are left.
    #[inline(always)]
    pub(crate) const fn admission(&self, now: Nanos, left: u64) -> Admitted {
        Admitted::new(Remaining::Exactly(self.grid.whole_tokens(left)), now)
    }

    /// The answer when [`take`](Self::take) gives nothing.
    #[inline(always)]
    pub(super) const fn denial(&self, state: BucketState, accrued: u64, now: Nanos, cost: u64) -> Denied {
        if cost > self.quota.capacity() {
            return Denied::CostExceedsLimit { cost, limit: self.quota.capacity() };
        }
        let consumed = if state.0 > accrued { state.0 } else { accrued };
        // The first instant whose ceiling reaches what would be consumed. It is later than now: at now it does not.
        let target = consumed.saturating_add(cost * self.grid.units_per_token) - self.grid.capacity_units;
        let reading = self.grid.first_reading_of(target);
        Denied::RateLimited { retry_after: Duration::from_nanos(reading - now.within_horizon()) }
    }
}
