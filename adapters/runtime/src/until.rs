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

    /// How long that is at most.
    pub(crate) fn longest_wait(self, now: Nanos) -> Duration {
        match self {
            Self::Ever => Duration::MAX,
            Self::After(timeout) => timeout,
            Self::At(deadline) => deadline.saturating_duration_since(now),
        }
    }
}
