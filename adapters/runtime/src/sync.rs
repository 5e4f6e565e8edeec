//! The only file that names atomics.

use core::sync::atomic::Ordering;
#[cfg(all(sluicegate_loom, feature = "loom"))]
use loom::sync::atomic::{AtomicUsize, fence};
#[cfg(not(all(sluicegate_loom, feature = "loom")))]
use portable_atomic::{AtomicUsize, fence};

/// How many wait, for those who would otherwise have to lock to see that nobody does.
///
/// Who gives something back changes the limiter and then looks here; who begins to wait is counted here and then looks at the
/// limiter. A fence between the two steps of each makes sure that at least one of them sees the other, so that nothing is given
/// back unseen.
#[derive(Debug)]
pub(crate) struct Waiting(AtomicUsize);

impl Waiting {
    pub(crate) fn none() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// A look that decides nothing but who is asked first.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Whether there is nobody who may have missed what the caller has just changed.
    #[inline]
    pub(crate) fn is_none_after_change(&self) -> bool {
        fence(Ordering::SeqCst);
        self.is_none()
    }

    /// Sets the number under the lock. Whoever looks at the limiter after this sees what was changed by those who did not see
    /// it.
    #[inline]
    pub(crate) fn set(&self, count: usize) {
        self.0.store(count, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}
