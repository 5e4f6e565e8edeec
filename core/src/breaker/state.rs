//! The breaker as a state machine: what it does at each reading, and nothing of who calls it.

use core::time::Duration;

use super::policy::BreakerPolicy;
use super::window::{Counts, Window};
use crate::{Denied, Nanos, Outcome};

/// A circuit breaker without a clock, a lock or an allocation: give it readings, and it decides.
///
/// Use it where one caller owns it, or behind a lock of your own; [`CircuitBreaker`](crate::CircuitBreaker) is that.
///
/// # What is exact
///
/// - *Closed*: it trips at the first result by which a share or a row of the policy is reached, and at no other. Results count for as long
///   as [`BreakerOptions::window`](crate::BreakerOptions::window) says.
/// - *Open*: no call passes until the cool-down is over, and one that asks then does.
/// - *Half-open*: exactly as many calls pass as there are probes, whoever asks. When all of them have succeeded it closes, and what counted
///   before is forgotten; one failure opens it again.
/// - *Results of another time are no results*: what was begun before the breaker last changed says nothing about now, and is ignored.
/// - A call that is [forgotten](Self::forget) leaves no trace; a probe gives its place to the next.
///
/// # A clock that misbehaves
///
/// A reading that is late, by up to a cool-down before the trip, or by up to the patience before a probe passed, counts as of that moment: callers who race, or who took their
/// reading some time ago, neither end a cool-down nor let one probe too many pass. One that is earlier still means that the clock went back, and both begin anew; so no
/// step shuts anybody out for longer than two cool-downs from then on. A leap ahead ends a cool-down early. Results at earlier readings count as those of the newest part of the window, and begin a new window where they are a whole one behind. Nothing panics or wraps.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{BreakerOptions, BreakerPhase, BreakerState, CallOutcome, Denied, Nanos};
///
/// let policy = BreakerOptions::new().any_failure_share().consecutive_failures(2).probes(1).build()?;
/// let mut breaker = BreakerState::new(policy);
/// for second in [0, 1] {
///     let call = breaker.try_call(Nanos::from_secs(second))?;
///     breaker.settle(Nanos::from_secs(second), call, CallOutcome::Failure);
/// }
/// assert_eq!(breaker.phase(), BreakerPhase::Open);
/// let retry_after = Some(Duration::from_secs(4));
/// assert_eq!(breaker.try_call(Nanos::from_secs(2)), Err(Denied::CircuitOpen { retry_after }));
///
/// let probe = breaker.try_call(Nanos::from_secs(6))?;
/// assert_eq!(breaker.try_call(Nanos::from_secs(6)), Err(Denied::CircuitOpen { retry_after: None }));
/// breaker.settle(Nanos::from_secs(7), probe, CallOutcome::Success);
/// assert_eq!(breaker.phase(), BreakerPhase::Closed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BreakerState {
    policy: BreakerPolicy,
    phase: Phase,
    /// Another number after each change of phase, so that a call knows whether its result is still of interest.
    epoch: u64,
    window: Window,
    /// Failures since the last success, and the reading of the last of them.
    in_a_row: u32,
    last_failure: Nanos,
    /// How often it has tripped since it was last closed.
    trips: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    Open {
        until: Nanos,
    },
    /// Since when a probe was out and none came back, how many have passed, and how many of them have succeeded.
    HalfOpen {
        since: Nanos,
        passed: u32,
        succeeded: u32,
    },
}

/// How a call passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// In the phase that there is.
    AsItIs,
    /// As the first probe.
    Anew,
}

impl BreakerState {
    /// Closed, with no results.
    pub const fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            phase: Phase::Closed,
            epoch: 0,
            window: Window::new(),
            in_a_row: 0,
            last_failure: Nanos::ZERO,
            trips: 0,
        }
    }

    /// The policy.
    pub const fn policy(&self) -> &BreakerPolicy {
        &self.policy
    }

    /// Lets a call pass at `now`, or not. Whoever passes has to [`settle`](Self::settle) the call, or [`forget`](Self::forget) it.
    ///
    /// # Errors
    /// [`Denied::CircuitOpen`], with the time after which a call passes; none is known while probes are out.
    pub fn try_call(&mut self, now: Nanos) -> Result<Call, Denied> {
        self.follow(now);
        match self.entry(now)? {
            Entry::Anew => self.enter(Phase::HalfOpen { since: now, passed: 1, succeeded: 0 }),
            Entry::AsItIs => {
                if let Phase::HalfOpen { since, passed, succeeded } = &mut self.phase {
                    if passed == succeeded {
                        // None was out: patience is with this one.
                        *since = now;
                    }
                    *passed += 1;
                }
            }
        }
        Ok(Call { epoch: self.epoch, since: now })
    }

    /// What [`try_call`](Self::try_call) would answer, letting nothing pass.
    ///
    /// # Errors
    /// As `try_call`.
    pub fn peek(&self, now: Nanos) -> Result<(), Denied> {
        self.entry(now).map(drop)
    }

    /// Counts how a call that passed has ended, at `now`.
    #[inline]
    pub fn settle(&mut self, now: Nanos, call: Call, outcome: CallOutcome) {
        if call.epoch != self.epoch {
            return;
        }
        let is_failure = match outcome {
            CallOutcome::Ignored => return self.forget(call),
            CallOutcome::Failure | CallOutcome::Overloaded => true,
            CallOutcome::Success => false,
        };
        let took = now.as_u64().saturating_sub(call.since.as_u64());
        let is_slow = self.policy.slow_from.is_some_and(|from| took >= from);
        if !matches!(self.phase, Phase::Closed) {
            return self.settle_probe(now, is_failure || is_slow);
        }
        let counts = self.window.add(self.policy.part, now, is_failure, is_slow);
        if is_failure {
            self.count_failure(now);
        } else {
            self.in_a_row = 0;
        }
        // Of successes alone none is too much.
        if counts.failures | counts.slow != 0 && self.is_too_much(counts) {
            self.trip(now);
        }
    }

    #[cold]
    fn settle_probe(&mut self, now: Nanos, is_failure: bool) {
        match &mut self.phase {
            Phase::HalfOpen { .. } if is_failure => self.trip(now),
            Phase::HalfOpen { since, succeeded, .. } => {
                // Those that are still out have as much time again: that they are slow is known to be no sign that they hang.
                *since = now;
                *succeeded += 1;
                if *succeeded >= self.policy.options().probes {
                    self.close();
                }
            }
            // No call passes in an epoch in which it is open.
            Phase::Open { .. } | Phase::Closed => {}
        }
    }

    /// Whether it trips at these counts and failures in a row.
    fn is_too_much(&self, counts: Counts) -> bool {
        let options = self.policy.options();
        let by_share = |share: Option<crate::Share>, part: u64| {
            // No product is needed where there were none.
            part > 0 && share.is_some_and(|share| share.is_reached(part, counts.calls))
        };
        options.consecutive.is_some_and(|most| self.in_a_row >= most)
            || (counts.calls >= options.least_calls()
                && (by_share(options.failures, counts.failures)
                    || by_share(options.slow.map(|(_, share)| share), counts.slow)))
    }

    /// A call that passed has come to nothing: it was cancelled, say. No clock is read.
    pub fn forget(&mut self, call: Call) {
        if call.epoch == self.epoch {
            if let Phase::HalfOpen { passed, .. } = &mut self.phase {
                // It passed, and was counted.
                *passed = passed.saturating_sub(1);
            }
        }
    }

    /// The phase. It is [`BreakerPhase::Open`] until a call passes after the cool-down.
    pub const fn phase(&self) -> BreakerPhase {
        match self.phase {
            Phase::Closed => BreakerPhase::Closed,
            Phase::Open { .. } => BreakerPhase::Open,
            Phase::HalfOpen { .. } => BreakerPhase::HalfOpen,
        }
    }

    /// Opens it at `now`, as if it had tripped: before maintenance, say.
    #[cold]
    pub fn trip(&mut self, now: Nanos) {
        self.trips = self.trips.saturating_add(1);
        let until = now.saturating_add(self.policy.cool_down(self.trips));
        self.enter(Phase::Open { until });
    }

    /// Closes it, and forgets all results.
    pub fn close(&mut self) {
        self.trips = 0;
        self.enter(Phase::Closed);
    }

    /// How often it has tripped since it was last closed.
    pub const fn trips(&self) -> u32 {
        self.trips
    }

    /// The epoch, and whether it is closed, in a word.
    #[cfg(feature = "lock_api")]
    pub(super) const fn door(&self) -> u64 {
        self.epoch << 1 | matches!(self.phase, Phase::Closed) as u64
    }

    /// The call that passes at `now` by this [`door`](Self::door): what [`try_call`](Self::try_call) answers in that epoch, if it is closed.
    #[cfg(feature = "lock_api")]
    pub(super) const fn pass(door: u64, now: Nanos) -> Option<Call> {
        if door & 1 == 1 { Some(Call { epoch: door >> 1, since: now }) } else { None }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        // 2^63 changes do not happen.
        self.epoch = self.epoch.wrapping_add(1);
        self.window = Window::new();
        self.in_a_row = 0;
    }

    /// How a call would pass at `now`.
    fn entry(&self, now: Nanos) -> Result<Entry, Denied> {
        match self.phase {
            Phase::Closed => Ok(Entry::AsItIs),
            Phase::Open { until } => match until.saturating_duration_since(now) {
                Duration::ZERO => Ok(Entry::Anew),
                left => {
                    let cool_down = self.policy.cool_down(self.trips);
                    let retry_after = if left > most_late(cool_down) { cool_down } else { left };
                    Err(Denied::CircuitOpen { retry_after: Some(retry_after) })
                }
            },
            Phase::HalfOpen { since, passed, succeeded }
                if passed > succeeded && now.saturating_duration_since(since) >= self.policy.patience() =>
            {
                Ok(Entry::Anew)
            }
            Phase::HalfOpen { passed, .. } if passed < self.policy.options().probes => Ok(Entry::AsItIs),
            Phase::HalfOpen { .. } => Err(Denied::CircuitOpen { retry_after: None }),
        }
    }

    /// Has what lies further ahead than a late reading explains begin anew at `now`, because it is the clock that went back.
    pub(super) fn follow(&mut self, now: Nanos) {
        let (cool_down, patience) = (self.policy.cool_down(self.trips), self.policy.patience());
        match &mut self.phase {
            Phase::Open { until } if until.saturating_duration_since(now) > most_late(cool_down) => {
                *until = now.saturating_add(cool_down);
            }
            Phase::HalfOpen { since, .. } if since.saturating_duration_since(now) > patience => *since = now,
            Phase::Closed | Phase::Open { .. } | Phase::HalfOpen { .. } => {}
        }
    }

    fn count_failure(&mut self, now: Nanos) {
        let is_over = now.saturating_duration_since(self.last_failure) >= self.policy.options().span();
        self.in_a_row = if is_over { 1 } else { self.in_a_row.saturating_add(1) };
        self.last_failure = now;
    }
}

/// How long before the end of a cool-down a reading may be that is only late: as long before the trip as the cool-down takes after it.
const fn most_late(cool_down: Duration) -> Duration {
    cool_down.saturating_mul(2)
}

/// A call that passed, until it is settled or forgotten.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a call that passed has to be settled or forgotten: a probe keeps its place until then"]
pub struct Call {
    epoch: u64,
    since: Nanos,
}

impl Call {
    /// The reading at which it passed.
    pub const fn since(&self) -> Nanos {
        self.since
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallOutcome {
    /// It did what it should.
    Success,
    /// It failed in a way that another one like it may fail too: an error of the other side's, a panic.
    Failure,
    /// It failed because the other side has too much to do: a timeout, 429, 503. To a breaker that is a failure; what adapts gives way.
    Overloaded,
    /// It says nothing about the other side: it was cancelled, or the request was wrong.
    Ignored,
}

impl CallOutcome {
    /// `Ok` is a success, and every error a failure: what a call counts as where nobody knows better.
    ///
    /// ```
    /// use sluicegate_core::CallOutcome;
    /// assert_eq!(CallOutcome::of(&Ok::<_, ()>(7)), CallOutcome::Success);
    /// assert_eq!(CallOutcome::of(&Err::<(), _>("broken")), CallOutcome::Failure);
    /// ```
    #[inline]
    pub const fn of<T, E>(answer: &Result<T, E>) -> Self {
        match answer {
            Ok(_) => Self::Success,
            Err(_) => Self::Failure,
        }
    }
}

/// What it says about load.
impl From<CallOutcome> for Outcome {
    fn from(outcome: CallOutcome) -> Self {
        match outcome {
            CallOutcome::Success => Self::Success,
            // How fast something fails says nothing.
            CallOutcome::Failure | CallOutcome::Ignored => Self::Ignored,
            CallOutcome::Overloaded => Self::Dropped,
        }
    }
}

/// What a breaker does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerPhase {
    /// They pass, and their results count.
    Closed,
    /// None passes.
    Open,
    /// So many pass as there are probes.
    HalfOpen,
}
