//! How a flow is composed, and what it does when its bucket is empty.

use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;

use sluicegate_core::{
    AimdLaw, BreakerPolicy, CallOutcome, ClosedWindow, ConcurrencyLaw, GradientLaw, Limit, SampleOptions,
    SampleOptionsError,
};

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
/// | [`in_flight`](Self::in_flight) or [`adaptive_in_flight`](Self::adaptive_in_flight) | so many calls at once, or as many as a law finds right | any number |
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
    pub(crate) in_flight: Option<InFlight>,
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
        Self { in_flight: Some(InFlight::Fixed(calls)), ..self }
    }

    /// With as many calls in flight as `law` finds right, by windows of `samples`: see [`AdaptiveConcurrency`](sluicegate_core::AdaptiveConcurrency). A call that
    /// is [cancelled](Self::cancelled_as) counts as dropped.
    pub const fn adaptive_in_flight(self, samples: SampleOptions, law: InFlightLaw) -> Self {
        Self { in_flight: Some(InFlight::Adaptive { samples, law }), ..self }
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
        match self.in_flight {
            Some(InFlight::Fixed(0)) => return Err(FlowOptionsError::NothingInFlight),
            Some(InFlight::Adaptive { samples, .. }) => {
                if let Err(error) = samples.build() {
                    return Err(FlowOptionsError::Samples(error));
                }
            }
            Some(InFlight::Fixed(_)) | None => {}
        }
        if let Some(Duration::ZERO) = self.time_limit {
            return Err(FlowOptionsError::NoTime);
        }
        Ok(())
    }
}

/// How many calls may be in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InFlight {
    Fixed(u32),
    Adaptive { samples: SampleOptions, law: InFlightLaw },
}

/// How a flow finds out how many calls may be in flight.
///
/// ```
/// use sluicegate_runtime::{AimdLaw, FlowOptions, GradientLaw, InFlightLaw, SampleOptions, quota};
///
/// let options = FlowOptions::new(quota!("100/1s"));
/// let by_latency = options.adaptive_in_flight(SampleOptions::new(), InFlightLaw::Gradient(GradientLaw::default()));
/// let by_drops = options.adaptive_in_flight(SampleOptions::new(), InFlightLaw::Aimd(AimdLaw::default()));
/// assert!(by_latency.check().is_ok() && by_drops.check().is_ok());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlightLaw {
    /// By calls that are dropped.
    Aimd(AimdLaw),
    /// By their latency.
    Gradient(GradientLaw),
}

impl ConcurrencyLaw for InFlightLaw {
    fn limit(&self) -> u32 {
        match self {
            Self::Aimd(law) => law.limit(),
            Self::Gradient(law) => law.limit(),
        }
    }

    fn bounds(&self) -> RangeInclusive<u32> {
        match self {
            Self::Aimd(law) => law.bounds(),
            Self::Gradient(law) => law.bounds(),
        }
    }

    fn update(&mut self, window: &ClosedWindow) -> u32 {
        match self {
            Self::Aimd(law) => law.update(window),
            Self::Gradient(law) => law.update(window),
        }
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
    /// There are no such windows for a law to go by.
    Samples(SampleOptionsError),
}

impl fmt::Display for FlowOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingInFlight => f.write_str("0 calls in flight: there has to be room for at least 1"),
            Self::NoTime => f.write_str("a time limit of 0 s: it has to be longer"),
            Self::Samples(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for FlowOptionsError {}
