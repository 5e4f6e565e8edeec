//! The token bucket that most programs use: a limit, its state, a clock and an observer.

use core::fmt;

use super::{BucketCell, BucketState, BucketStep, Debit};
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::observer::{Observer, report};
use crate::{Clock, Limit, Limiter, Nanos};

/// A token bucket: the exact door for smooth limits.
///
/// It starts full, admits bursts up to its capacity and refills continuously. Of all instants at which a request could
/// be admitted without breaking the law below, it is admitted at the first.
///
/// # Guarantees
///
/// - *Safety*: between any two readings s < t the cost admitted is at most `C + N(t - s)/P`, for N tokens per P ns and a
///   capacity of C. Any number of racing callers, any costs.
/// - *Liveness*: a request is denied only when the ideal bucket holds less than its cost at that reading.
/// - *Hint*: denied with `retry_after = r`, the same request alone succeeds r later and fails 1 ns before.
/// - *Conservation*: a denial takes nothing; what is refunded can be taken again, and no more.
/// - Calls are lock-free and allocate nothing. A call is synchronous, so there is nothing to cancel.
///
/// [`BucketStep`] says how, and what happens under a clock that misbehaves.
///
/// # Trade-off
///
/// All callers share one word. Where many cores hammer one limit, a [`ShardedWindow`](crate::ShardedWindow) scales and
/// the bucket does not; the window in return may admit twice its limit across a boundary.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Denied, ManualClock, TokenBucket, quota};
///
/// let bucket = TokenBucket::with_clock(quota!("100/1s burst 5"), ManualClock::new());
/// bucket.try_acquire(5)?;
/// assert!(bucket.try_acquire(1).is_err());
///
/// bucket.clock().advance(Duration::from_millis(10));
/// bucket.try_acquire(1)?;
/// # Ok::<(), Denied>(())
/// ```
///
/// As a static, with everything decided by the compiler:
///
/// ```
/// use sluicegate_core::{Limit, ManualClock, TokenBucket, quota};
///
/// static LOGINS: TokenBucket<ManualClock> =
///     TokenBucket::with_limit(Limit::Quota(quota!("10/1m")), ManualClock::new());
/// assert!(LOGINS.try_acquire(1).is_ok());
/// ```
pub struct TokenBucket<C, O = ()> {
    rule: Rule,
    cell: BucketCell,
    clock: C,
    observer: O,
}

impl<C: Clock + Default> TokenBucket<C> {
    /// A full bucket on the default clock.
    pub fn new(limit: impl Into<Limit>) -> Self {
        Self::with_limit(limit.into(), C::default())
    }
}

impl<C: Clock> TokenBucket<C> {
    /// A full bucket on `clock`.
    pub fn with_clock(limit: impl Into<Limit>, clock: C) -> Self {
        Self::with_limit(limit.into(), clock)
    }
}

impl<C> TokenBucket<C> {
    crate::sync::const_unless_loom! {
        /// A full bucket on `clock`, in a constant too.
        pub fn with_limit(limit: Limit, clock: C) -> Self {
            let rule = match limit {
                Limit::Unlimited => Rule::Unlimited,
                Limit::DenyAll => Rule::DenyAll,
                Limit::Quota(quota) => Rule::Step(BucketStep::new(quota)),
            };
            Self { rule, cell: BucketCell::new(), clock, observer: () }
        }
    }

    /// The same bucket, which from now on tells `observer` of every decision.
    pub fn observed_by<O: Observer>(self, observer: O) -> TokenBucket<C, O> {
        TokenBucket { rule: self.rule, cell: self.cell, clock: self.clock, observer }
    }
}

impl<C, O> TokenBucket<C, O> {
    /// The limit.
    pub const fn limit(&self) -> Limit {
        match &self.rule {
            Rule::Unlimited => Limit::Unlimited,
            Rule::DenyAll => Limit::DenyAll,
            Rule::Step(step) => Limit::Quota(step.quota()),
        }
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

    /// The state, to be kept across a restart of a process whose clock keeps its origin.
    pub fn state(&self) -> BucketState {
        self.cell.state()
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    #[inline]
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        match &self.rule {
            Rule::Step(step) => self.cell.peek(step, now, cost),
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
            Rule::DenyAll => Err(Denied::Closed),
        }
    }

    /// The tokens at `now`. Changes nothing.
    #[inline]
    pub fn inspect_at(&self, now: Nanos) -> Inspection {
        match &self.rule {
            Rule::Step(step) => self.cell.inspect(step, now),
            Rule::Unlimited => Inspection::new(u64::MAX, u64::MAX),
            Rule::DenyAll => Inspection::new(0, 0),
        }
    }
}

impl<C, O: Observer> TokenBucket<C, O> {
    /// Takes `cost` tokens at the reading `now`, or nothing.
    ///
    /// One reading can serve all limiters of a request. It must come from a clock with the same origin every time.
    /// Without a limit the request is admitted and nobody is told.
    ///
    /// # Errors
    /// [`Denied::RateLimited`] when too little is left, [`Denied::CostExceedsLimit`] when `cost` is more than the
    /// capacity, [`Denied::Closed`] under [`Limit::DenyAll`]. A denial takes nothing.
    #[inline(always)]
    pub fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        match &self.rule {
            Rule::Step(step) => report(&self.observer, now, cost, self.cell.try_acquire(step, now, cost)),
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
            Rule::DenyAll => report(&self.observer, now, cost, Err(Denied::Closed)),
        }
    }

    /// Gives `cost` tokens back, whenever they were taken: for work that turned out not to be done.
    ///
    /// The bucket never holds more than its capacity. Tokens that refill has replaced since they were taken come on top of
    /// that refill; to undo without a trace, [`reserve`](crate::AdjustableBucket::reserve) instead of taking. No clock is
    /// read.
    #[inline]
    pub fn refund(&self, cost: u64) {
        if let Rule::Step(step) = &self.rule {
            let returned = self.cell.give_back(step, cost);
            self.observer.refunded(returned);
        }
    }

    /// Takes `cost` tokens at `now` whether or not they are there, for what has already happened, as far as the quota's
    /// [`debt`](crate::Quota::debt) reaches. See [`BucketStep::debit`].
    ///
    /// Without a limit all of it counts as charged; under [`Limit::DenyAll`] none of it does.
    #[inline]
    pub fn debit_at(&self, now: Nanos, cost: u64) -> Debit {
        match &self.rule {
            Rule::Step(step) => {
                let debit = self.cell.debit(step, now, cost);
                self.observer.debited(now, &debit);
                debit
            }
            Rule::Unlimited => Debit { charged: cost, unpaid: 0 },
            Rule::DenyAll => Debit { charged: 0, unpaid: cost },
        }
    }
}

impl<C: Clock, O: Observer> TokenBucket<C, O> {
    /// Takes `cost` tokens now, or nothing.
    ///
    /// A denial is right at an instant within the call, however long the caller was suspended in it: who is overtaken between
    /// reading the clock and deciding reads it again before it is denied. Without a limit the request is admitted at
    /// [`Nanos::ZERO`]: no clock is read and nobody is told.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    #[inline(always)]
    pub fn try_acquire(&self, cost: u64) -> Decision {
        match &self.rule {
            Rule::Step(step) => {
                let (now, decision) = self.cell.try_acquire_by(step, &self.clock, cost);
                report(&self.observer, now, cost, decision)
            }
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, Nanos::ZERO)),
            Rule::DenyAll => report(&self.observer, self.clock.now(), cost, Err(Denied::Closed)),
        }
    }

    /// Takes `cost` tokens now whether or not they are there. See [`debit_at`](Self::debit_at).
    ///
    /// What is told as unpaid could be paid for at no instant within the call.
    #[inline]
    pub fn debit(&self, cost: u64) -> Debit {
        match &self.rule {
            Rule::Step(step) => {
                let (now, debit) = self.cell.debit_by(step, &self.clock, cost);
                self.observer.debited(now, &debit);
                debit
            }
            Rule::Unlimited | Rule::DenyAll => self.debit_at(Nanos::ZERO, cost),
        }
    }

    /// What [`try_acquire`](Self::try_acquire) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire`.
    #[inline]
    pub fn peek(&self, cost: u64) -> Decision {
        match &self.rule {
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, Nanos::ZERO)),
            Rule::DenyAll => Err(Denied::Closed),
            // The word before the clock: see `BucketCell::try_acquire_by`.
            Rule::Step(step) => {
                let state = self.cell.seen();
                step.try_acquire(state, self.clock.now(), cost).1
            }
        }
    }

    /// The tokens now. Changes nothing.
    #[inline]
    pub fn inspect(&self) -> Inspection {
        self.inspect_at(if let Rule::Step(_) = &self.rule { self.clock.now() } else { Nanos::ZERO })
    }
}

impl<C, O: Observer> Limiter for TokenBucket<C, O> {
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

    /// The reading at which the last part is admitted if each is as soon as it fits: exact, but for up to 1 ns for each part that
    /// takes the whole capacity, while the bucket is full until the next whole nanosecond.
    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        match &self.rule {
            Rule::Step(step) => Some(step.earliest(self.cell.state(), now, total)),
            Rule::Unlimited => Some(now),
            Rule::DenyAll => None,
        }
    }

    #[inline(always)]
    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        match &self.rule {
            Rule::Step(step) => self.cell.try_acquire(step, now, cost),
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
            Rule::DenyAll => Err(Denied::Closed),
        }
    }

    #[inline]
    fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
        if !matches!(self.rule, Rule::Unlimited) {
            let _ = report(&self.observer, now, cost, *decision);
        }
    }
}

impl<C, O> fmt::Debug for TokenBucket<C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenBucket").field("limit", &self.limit()).field("state", &self.cell).finish_non_exhaustive()
    }
}

enum Rule {
    Unlimited,
    DenyAll,
    Step(BucketStep),
}
