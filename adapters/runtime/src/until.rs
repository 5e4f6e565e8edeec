//! How long somebody is willing to wait.

use core::time::Duration;

use sluicegate_core::Nanos;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Ever,
    After(Duration),
    At(Nanos),
}

impl Until {
    #[cfg(any(feature = "alloc", feature = "heapless"))]
    pub(crate) fn deadline(self, now: Nanos) -> Option<Nanos> {
        match self {
            Self::Ever => None,
            Self::After(timeout) => Some(now.saturating_add(timeout)),
            Self::At(deadline) => Some(deadline),
        }
    }

    /// How long that is at most; `None` if it is over.
    pub(crate) fn longest_wait(self, now: Nanos) -> Option<Duration> {
        match self {
            Self::Ever => Some(Duration::MAX),
            Self::After(timeout) => Some(timeout),
            Self::At(deadline) => (deadline >= now).then(|| deadline.saturating_duration_since(now)),
        }
    }
}
