//! The sliding counter that programs use: a limit, its state, a clock and an observer.

use core::fmt;

use super::{SlidingCounterCell, SlidingCounterState, SlidingCounterStep};
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::observer::{Observer, report};
use crate::{Clock, Limiter, Nanos, QuotaError, WindowLimit};

/// A sliding counter: about what a sliding log admits, in one word.
///
/// It counts what was taken in this window and in the one before, and lets the latter go evenly as this window passes.
///
/// # Guarantees
///
/// - In each window of the clock at most the limit is admitted. In any other interval of one window's length that begins a
///   fraction f of a window after one did, at most `limit * (1 + f)`: always less than twice the limit.
/// - A request is denied only when the estimate and its cost exceed the limit. The estimate is exact: it is computed in
///   integers, and nothing accumulates. It may be above what the log counts, by at most what the window before admitted;
///   then a request is denied that the log would admit. [`SlidingCounterStep`] says by how much, and why.
/// - *Hint*: denied with `retry_after = r`, the same request alone succeeds r later and fails 1 ns before.
/// - A late reading can neither reopen an old window nor reset a new one. No window number is ever used again.
/// - *Conservation*: a denial takes nothing; what is refunded can be taken again, and no more.
/// - Calls are lock-free and allocate nothing. A call is synchronous, so there is nothing to cancel.
///
/// # Trade-off
///
/// It is an estimate, for when a record for each admission is too much: a `SlidingLog` (feature `alloc` or
/// `heapless`) is exact about every interval and takes up to 16 bytes a unit; a [`TokenBucket`](crate::TokenBucket) is exact in
/// one word about another law. All callers share one word. Limits are smaller than those of the others, because two counts
/// share the word: see [`SlidingCounterStep::new`].
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Denied, ManualClock, SlidingCounter, WindowLimit};
///
/// let limit = "10/1s".parse::<WindowLimit>()?;
/// let counter = SlidingCounter::with_clock(limit, ManualClock::new())?;
/// counter.try_acquire(10)?;
///
/// // Half a window later, five of the ten are let go.
/// counter.clock().advance(Duration::from_millis(1500));
/// counter.try_acquire(5)?;
/// let retry_after = Duration::from_millis(100);
/// assert_eq!(counter.try_acquire(1), Err(Denied::RateLimited { retry_after }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SlidingCounter<C, O = ()> {
    rule: Rule,
    cell: SlidingCounterCell,
    clock: C,
    observer: O,
}

impl<C: Clock + Default> SlidingCounter<C> {
    /// An unused counter on the default clock.
    ///
    /// # Errors
    /// As [`with_limit`](Self::with_limit).
    pub fn new(limit: WindowLimit) -> Result<Self, QuotaError> {
        Self::with_limit(limit, C::default())
    }
}

impl<C: Clock> SlidingCounter<C> {
    /// An unused counter on `clock`.
    ///
    /// # Errors
    /// As [`with_limit`](Self::with_limit).
    pub fn with_clock(limit: WindowLimit, clock: C) -> Result<Self, QuotaError> {
        Self::with_limit(limit, clock)
    }
}

impl<C> SlidingCounter<C> {
    /// An unused counter on `clock`.
    ///
    /// # Errors
    /// [`QuotaError::LimitAboveCounter`] as for [`SlidingCounterStep::new`].
    pub fn with_limit(limit: WindowLimit, clock: C) -> Result<Self, QuotaError> {
        let rule = match limit.step() {
            Some(step) => Rule::Step(SlidingCounterStep::new(step.rate())?),
            None if limit.denies_all() => Rule::DenyAll,
            None => Rule::Unlimited,
        };
        Ok(Self { rule, cell: SlidingCounterCell::new(), clock, observer: () })
    }

    crate::sync::const_unless_loom! {
        /// An unused counter of `step` on `clock`, in a constant too.
        ///
        /// ```
        /// use sluicegate_core::{ManualClock, Rate, SlidingCounter, SlidingCounterStep};
        ///
        /// const STEP: SlidingCounterStep = match Rate::parse("10/1m") {
        ///     Ok(rate) => match SlidingCounterStep::new(rate) {
        ///         Ok(step) => step,
        ///         Err(_) => panic!("ten a minute fit"),
        ///     },
        ///     Err(_) => panic!("a rate"),
        /// };
        /// static LOGINS: SlidingCounter<ManualClock> = SlidingCounter::with_step(STEP, ManualClock::new());
        /// assert!(LOGINS.try_acquire(1).is_ok());
        /// ```
        pub fn with_step(step: SlidingCounterStep, clock: C) -> Self {
            Self { rule: Rule::Step(step), cell: SlidingCounterCell::new(), clock, observer: () }
        }
    }

    /// The same counter, which from now on tells `observer` of every decision.
    pub fn observed_by<O: Observer>(self, observer: O) -> SlidingCounter<C, O> {
        SlidingCounter { rule: self.rule, cell: self.cell, clock: self.clock, observer }
    }
}

impl<C, O> SlidingCounter<C, O> {
    /// The step that enforces the limit, where there is something to count.
    pub const fn step(&self) -> Option<SlidingCounterStep> {
        match &self.rule {
            Rule::Step(step) => Some(*step),
            Rule::Unlimited | Rule::DenyAll => None,
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
    pub fn state(&self) -> SlidingCounterState {
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

    /// What could be taken at `now`. Changes nothing.
    #[inline]
    pub fn inspect_at(&self, now: Nanos) -> Inspection {
        match &self.rule {
            Rule::Step(step) => self.cell.inspect(step, now),
            Rule::Unlimited => Inspection::new(u64::MAX, u64::MAX),
            Rule::DenyAll => Inspection::new(0, 0),
        }
    }
}

impl<C, O: Observer> SlidingCounter<C, O> {
    /// Takes `cost` at the reading `now`, or nothing.
    ///
    /// One reading can serve all limiters of a request. It must come from a clock with the same origin every time.
    /// Without a limit the request is admitted and nobody is told.
    ///
    /// # Errors
    /// [`Denied::RateLimited`] when the estimate and `cost` exceed the limit, [`Denied::CostExceedsLimit`] when `cost` alone
    /// does, [`Denied::Closed`] under [`Limit::DenyAll`](crate::Limit::DenyAll). A denial takes nothing.
    #[inline]
    pub fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        match &self.rule {
            Rule::Step(step) => report(&self.observer, now, cost, self.cell.try_acquire(step, now, cost)),
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
            Rule::DenyAll => report(&self.observer, now, cost, Err(Denied::Closed)),
        }
    }

    /// Gives back `cost` that was admitted at the reading `taken_at`, which [`Admitted::at`] tells: for work that turned
    /// out not to be done.
    ///
    /// It is given back to the window it was taken in. What was taken before the window before the latest one is gone, and no
    /// more comes back than was taken in that window. No clock is read.
    #[inline]
    pub fn refund(&self, taken_at: Nanos, cost: u64) {
        if let Some(returned) = self.refund_silently(taken_at, cost) {
            self.observer.refunded(returned);
        }
    }

    /// Tells how much came back, where there is something to count.
    #[inline]
    pub(crate) fn refund_silently(&self, taken_at: Nanos, cost: u64) -> Option<u64> {
        match &self.rule {
            Rule::Step(step) => Some(self.cell.give_back(step, taken_at, cost)),
            Rule::Unlimited | Rule::DenyAll => None,
        }
    }
}

impl<C: Clock, O: Observer> SlidingCounter<C, O> {
    /// Takes `cost` now, or nothing.
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

    /// What [`try_acquire`](Self::try_acquire) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire`.
    #[inline]
    pub fn peek(&self, cost: u64) -> Decision {
        match &self.rule {
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, Nanos::ZERO)),
            _ => self.peek_at(self.clock.now(), cost),
        }
    }

    /// What could be taken now. Changes nothing.
    #[inline]
    pub fn inspect(&self) -> Inspection {
        self.inspect_at(if let Rule::Step(_) = &self.rule { self.clock.now() } else { Nanos::ZERO })
    }
}

impl<C, O: Observer> Limiter for SlidingCounter<C, O> {
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

    /// In the window of `now`, the reading at which `total` is admitted; no later than the end of that window, from which on
    /// what was taken in it counts less and less.
    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        match &self.rule {
            Rule::Step(step) => Some(step.earliest(self.cell.state(), now, total)),
            Rule::Unlimited => Some(now),
            Rule::DenyAll => None,
        }
    }

    #[inline]
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

impl<C, O> fmt::Debug for SlidingCounter<C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlidingCounter").field("limit", &self.rule).field("state", &self.cell).finish_non_exhaustive()
    }
}

enum Rule {
    Unlimited,
    DenyAll,
    Step(SlidingCounterStep),
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("off"),
            Self::DenyAll => f.write_str("deny"),
            Self::Step(step) => write!(f, "{}", step.rate()),
        }
    }
}
