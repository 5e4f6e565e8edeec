//! How a flow is composed, and what it does when its bucket is empty.

use core::fmt;
use core::time::Duration;

use sluicegate_core::{BreakerPolicy, CallOutcome, Limit};

use crate::options::WaitOptions;

/// What a flow does with a call for which there are no tokens, or no place in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenEmpty {
    /// Refuses it at once.
    #[default]
    Reject,
    /// Lets it wait, in order, for as long as that takes.
    Queue,
    /// Lets it wait, in order, for so long at most: for the place and the tokens together.
    QueueFor(Duration),
    /// Has something else take its place: see [`QueuedFlow::call_or`](super::QueuedFlow::call_or).
    Degrade,
}

/// What a [`QueuedFlow`](super::QueuedFlow) is composed of.
///
/// | | what | default |
/// |---|---|---|
/// | [`when_empty`](Self::when_empty) | reject, queue or degrade | reject |
/// | [`waiting`](Self::waiting) | who waits, how many and in which order | any number, first come first served |
/// | [`breaker`](Self::breaker) | a circuit breaker | none |
/// | [`in_flight`](Self::in_flight) | so many calls at once | any number |
/// | [`time_limit`](Self::time_limit) | how long a call may take | for ever |
/// | [`cancelled_as`](Self::cancelled_as) | what a cancelled call counts as | `Ignored` |
///
/// ```
/// use core::time::Duration;
/// use sluicegate_runtime::{BreakerPolicy, FlowOptions, FlowOptionsError, WhenEmpty, quota};
///
/// let options = FlowOptions::new(quota!("100/1s"))
///     .when_empty(WhenEmpty::QueueFor(Duration::from_millis(250)))
///     .breaker(BreakerPolicy::default())
///     .in_flight(20)
///     .time_limit(Duration::from_secs(2));
/// assert!(options.check().is_ok());
/// assert_eq!(options.in_flight(0).check(), Err(FlowOptionsError::NothingInFlight));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a flow is made of them"]
pub struct FlowOptions {
    pub(crate) limit: Limit,
    pub(crate) when_empty: WhenEmpty,
    pub(crate) waiting: WaitOptions,
    pub(crate) breaker: Option<BreakerPolicy>,
    pub(crate) in_flight: Option<u32>,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) cancelled_as: CallOutcome,
}

impl FlowOptions {
    /// Calls at the pace of `limit`: a [`Quota`](sluicegate_core::Quota), a [`Rate`](sluicegate_core::Rate) or a [`Limit`].
    pub fn new(limit: impl Into<Limit>) -> Self {
        Self {
            limit: limit.into(),
            when_empty: WhenEmpty::Reject,
            waiting: WaitOptions::new(),
            breaker: None,
            in_flight: None,
            time_limit: None,
            cancelled_as: CallOutcome::Ignored,
        }
    }

    /// What becomes of a call for which there are no tokens, or no place.
    pub const fn when_empty(self, when_empty: WhenEmpty) -> Self {
        Self { when_empty, ..self }
    }

    /// How those who wait are treated, in the line for tokens and in that for places.
    pub const fn waiting(self, waiting: WaitOptions) -> Self {
        Self { waiting, ..self }
    }

    /// Behind a circuit breaker.
    pub const fn breaker(self, policy: BreakerPolicy) -> Self {
        Self { breaker: Some(policy), ..self }
    }

    /// With so many calls in flight at most. At least 1.
    pub const fn in_flight(self, calls: u32) -> Self {
        Self { in_flight: Some(calls), ..self }
    }

    /// How long a call may take, once it is made: then it is dropped, and counts as [`CallOutcome::Overloaded`]. Above 0 s.
    pub const fn time_limit(self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self }
    }

    /// What a call counts as that is cancelled; see [`Flow::cancelled_as`](sluicegate_core::Flow::cancelled_as).
    pub const fn cancelled_as(self, outcome: CallOutcome) -> Self {
        Self { cancelled_as: outcome, ..self }
    }

    /// Whether a flow can be made of them.
    ///
    /// # Errors
    /// [`FlowOptionsError`] names what cannot be, and what can.
    pub const fn check(&self) -> Result<(), FlowOptionsError> {
        if let Some(0) = self.in_flight {
            return Err(FlowOptionsError::NothingInFlight);
        }
        if let Some(Duration::ZERO) = self.time_limit {
            return Err(FlowOptionsError::NoTime);
        }
        Ok(())
    }
}

/// Why there is no such flow. It is the configuration's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlowOptionsError {
    /// With 0 calls in flight none is ever made. Whoever wants that has `Limit::DenyAll`.
    NothingInFlight,
    /// A call that may take 0 s always takes too long.
    NoTime,
}

impl fmt::Display for FlowOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingInFlight => "0 calls in flight: there has to be room for at least 1",
            Self::NoTime => "a time limit of 0 s: it has to be longer",
        })
    }
}

impl core::error::Error for FlowOptionsError {}
