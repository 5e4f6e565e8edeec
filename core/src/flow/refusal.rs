//! Why a flow let a call not pass, and who said so.

use core::fmt;
use core::time::Duration;

use crate::Denied;

/// A part of a flow that may refuse a call, in the order in which they are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FlowStage {
    /// The limiter: a token bucket, mostly.
    Limiter,
    /// The circuit breaker.
    Breaker,
    /// The limit on calls in flight.
    Concurrency,
}

impl fmt::Display for FlowStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limiter => "limiter",
            Self::Breaker => "circuit breaker",
            Self::Concurrency => "concurrency limit",
        })
    }
}

/// A flow did not let a call pass: it was not made, and no part of the flow keeps a trace of it.
///
/// ```
/// use sluicegate_core::{Flow, FlowStage, ManualClock, TokenBucket, quota};
///
/// let clock = ManualClock::new();
/// let flow = Flow::new(TokenBucket::with_limit(quota!("1/1m").into(), ()), &clock);
/// assert!(flow.call(1, || Ok::<_, ()>("done")).is_ok());
/// let refused = flow.enter(1).unwrap_err();
/// assert_eq!(refused.stage, FlowStage::Limiter);
/// assert_eq!(refused.to_string(), "limiter: rate limited, retry after 60s");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowRefusal {
    /// The first part that refuses it.
    pub stage: FlowStage,
    /// Why, and when to come back.
    pub denied: Denied,
}

impl fmt::Display for FlowRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.stage, self.denied)
    }
}

impl core::error::Error for FlowRefusal {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.denied)
    }
}

impl From<FlowRefusal> for Denied {
    fn from(refused: FlowRefusal) -> Self {
        refused.denied
    }
}

/// Why a call came to nothing: it was not made, or it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlowError<E> {
    /// It was not made.
    Refused(FlowRefusal),
    /// It was made, and this is its error.
    Failed(E),
    /// It was made, and given up after so long: by a flow that has a timer. It may have taken effect on the other side.
    TimedOut {
        /// The flow's time limit.
        after: Duration,
    },
}

impl<E> FlowError<E> {
    /// The refusal, where it was not made.
    pub const fn refused(&self) -> Option<&FlowRefusal> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Failed(_) | Self::TimedOut { .. } => None,
        }
    }
}

impl<E> From<FlowRefusal> for FlowError<E> {
    fn from(refused: FlowRefusal) -> Self {
        Self::Refused(refused)
    }
}

impl<E: fmt::Display> fmt::Display for FlowError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::Failed(error) => error.fmt(f),
            Self::TimedOut { after } => write!(f, "timed out after {after:?}"),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for FlowError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Failed(error) => error.source(),
            Self::TimedOut { .. } => None,
        }
    }
}
