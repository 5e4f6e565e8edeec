//! What a flow answers, and by which path.

use core::time::Duration;

use sluicegate_core::FlowRefusal;

/// What a call through a [`QueuedFlow`](super::QueuedFlow) came to, and by which path.
///
/// ```
/// use sluicegate_runtime::{FlowPath, Flowed};
///
/// let answer = Flowed { value: 7, path: FlowPath::Direct };
/// assert!(!answer.path.is_degraded());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flowed<T> {
    /// The answer of the call, or of what took its place.
    pub value: T,
    /// Where it comes from.
    pub path: FlowPath,
}

/// The path that an answer came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowPath {
    /// The call was made at once.
    Direct,
    /// The call was made once there were tokens and a place for it.
    Queued {
        /// After this long, by the executor's clock.
        waited: Duration,
    },
    /// The call was refused, and something else took its place.
    Degraded(FlowRefusal),
}

impl FlowPath {
    /// Whether something else took the place of the call.
    pub const fn is_degraded(&self) -> bool {
        matches!(self, Self::Degraded(_))
    }
}
