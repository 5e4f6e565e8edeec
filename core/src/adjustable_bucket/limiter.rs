//! The bucket that can be changed and reserved from while it is in use.

use core::fmt;

use super::cell::{Cell, Snapshot};
use super::words::{Kind, Rule};
use crate::decision::{Decision, Inspection};
use crate::observer::Observer;
use crate::{Clock, Limit, Limiter, Nanos};

/// A token bucket whose limit may change while it is in use, and from which tokens can be reserved.
///
/// It decides as a [`TokenBucket`](crate::TokenBucket) does, exactly. What it adds:
///
/// - [`adjust`](Self::adjust) changes the limit.
/// - [`reserve`](Self::reserve) holds tokens for a request whose cost is known only afterwards.
/// - As a level of a [`Hierarchy`](crate::Hierarchy) it can be held until all levels agree.
///
/// # Guarantees
///
/// - All that a `TokenBucket` guarantees, for each stretch under one quota.
/// - *A change is one step*: the bucket is settled under the old quota up to the reading of the change and goes on under the
///   new one, with what [`Inheritance`](crate::Inheritance) says. Nothing decided under the old quota takes effect after the change. No change
///   makes a token or takes one, but for those that a smaller capacity has no room for, and less than a unit of refill: 1 ns
///   of it, see [`BucketStep::inherit`](crate::BucketStep::inherit).
/// - *A hold leaves no trace*: see [`Reservation`](crate::Reservation).
/// - Decisions are lock-free and allocate nothing. Changes exclude one another, and nobody else.
///
/// # Trade-off
///
/// Its state is 128 bits, and its rule is read at each decision from where it can be changed: a denial takes two to three
/// times as long as a `TokenBucket`'s, an admission about four times. The whole takes 16 bytes of state, 224 of rules and the
/// clock. Where a target has no 128-bit atomics, portable-atomic emulates them.
///
/// At most 2^40 - 1 tokens can be held at once; more is [`Denied::ConcurrencyLimited`](crate::Denied::ConcurrencyLimited). A single reservation or request of a
/// [`Hierarchy`](crate::Hierarchy) that asks for more than that is [`Denied::CostExceedsLimit`](crate::Denied::CostExceedsLimit).
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{AdjustableBucket, Denied, Inheritance, Limit, ManualClock, quota};
///
/// let bucket = AdjustableBucket::with_clock(quota!("100/1s"), ManualClock::new());
/// bucket.try_acquire(90)?;
///
/// // Half the rate, but what is left stays.
/// bucket.adjust(Limit::Quota(quota!("50/1s")), Inheritance::Level);
/// assert_eq!(bucket.inspect().level, 10);
/// bucket.clock().advance(Duration::from_millis(100));
/// assert_eq!(bucket.inspect().level, 15);
/// # Ok::<(), Denied>(())
/// ```
pub struct AdjustableBucket<C, O = ()> {
    pub(super) cell: Cell,
    pub(super) clock: C,
    pub(super) observer: O,
}

impl<C: Clock + Default> AdjustableBucket<C> {
    /// A full bucket on the default clock.
    pub fn new(limit: impl Into<Limit>) -> Self {
        Self::with_limit(limit.into(), C::default())
    }
}

impl<C: Clock> AdjustableBucket<C> {
    /// A full bucket on `clock`.
    pub fn with_clock(limit: impl Into<Limit>, clock: C) -> Self {
        Self::with_limit(limit.into(), clock)
    }
}

impl<C> AdjustableBucket<C> {
    crate::sync::const_unless_loom! {
        /// A full bucket on `clock`, in a constant too.
        pub fn with_limit(limit: Limit, clock: C) -> Self {
            Self { cell: Cell::new(Rule::new(limit)), clock, observer: () }
        }
    }

    /// The same bucket, which from now on tells `observer` of every decision and change.
    pub fn observed_by<O: Observer>(self, observer: O) -> AdjustableBucket<C, O> {
        AdjustableBucket { cell: self.cell, clock: self.clock, observer }
    }
}

impl<C, O> AdjustableBucket<C, O> {
    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.cell.read().rule.limit()
    }

    /// The tokens that reservations hold.
    pub fn held(&self) -> u64 {
        self.cell.read().account().held
    }

    /// The clock.
    #[inline]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The observer.
    #[inline]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    #[inline]
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.cell.read().peek(now, cost)
    }

    /// The tokens at `now` that nobody holds. Changes nothing.
    pub fn inspect_at(&self, now: Nanos) -> Inspection {
        self.cell.read().inspect(now)
    }
}

impl<C: Clock, O: Observer> AdjustableBucket<C, O> {
    /// What [`try_acquire`](Self::try_acquire) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire`.
    pub fn peek(&self, cost: u64) -> Decision {
        let (seen, now) = self.look();
        seen.peek(now, cost)
    }

    /// The tokens now that nobody holds. Changes nothing.
    pub fn inspect(&self) -> Inspection {
        let (seen, now) = self.look();
        seen.inspect(now)
    }

    /// What there is, and a reading to decide it by. Both are from here on: where there is no limit the clock is not read,
    /// and a limit that comes meanwhile must not be asked at a reading that none was.
    #[inline(always)]
    pub(super) fn look(&self) -> (Snapshot, Nanos) {
        self.look_by(&self.clock)
    }
}

impl<C, O> AdjustableBucket<C, O> {
    /// The same by a clock that the caller lends.
    #[inline(always)]
    pub(super) fn look_by(&self, clock: &impl Clock) -> (Snapshot, Nanos) {
        let seen = self.cell.read();
        let now = if let Kind::Unlimited = seen.rule.kind { Nanos::ZERO } else { clock.now() };
        (seen, now)
    }
}

impl<C, O: Observer> Limiter for AdjustableBucket<C, O> {
    #[inline]
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        self.try_acquire_at(now, cost)
    }

    #[inline]
    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.peek_at(now, cost)
    }

    #[inline]
    fn inspect_at(&self, now: Nanos) -> Inspection {
        self.inspect_at(now)
    }

    /// As a `TokenBucket`'s. What is held is left out, because it may be let go.
    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        let seen = self.cell.read();
        match seen.rule.step() {
            Ok(step) => Some(step.earliest(seen.account().state, now, total)),
            Err(Kind::Unlimited) => Some(now),
            Err(_) => None,
        }
    }

    #[inline]
    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        self.take_silently(now, cost)
    }

    #[inline]
    fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
        let _ = self.tell(now, cost, *decision);
    }
}

impl<C, O> fmt::Debug for AdjustableBucket<C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.cell.read();
        f.debug_struct("AdjustableBucket")
            .field("limit", &seen.rule.limit())
            .field("state", &seen.account().state.to_bits())
            .field("held", &seen.account().held)
            .finish_non_exhaustive()
    }
}
