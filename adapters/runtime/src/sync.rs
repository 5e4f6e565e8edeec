//! The only file that names atomics.

use core::sync::atomic::Ordering;

use imp::{AtomicUsize, fence};

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

#[cfg(all(sluicegate_loom, feature = "loom"))]
mod imp {
    use core::sync::atomic::Ordering;

    use loom::sync::atomic;
    pub(super) use loom::sync::atomic::fence;

    /// loom's atomic, with every access in the race: a waiter loads and then stores, and loom would take its load for all that
    /// another's load could race with. See the one of `sluicegate_core`.
    #[derive(Debug)]
    pub(super) struct AtomicUsize {
        value: atomic::AtomicUsize,
        turn: atomic::AtomicUsize,
    }

    impl AtomicUsize {
        pub(super) fn new(value: usize) -> Self {
            Self { value: atomic::AtomicUsize::new(value), turn: atomic::AtomicUsize::new(0) }
        }

        pub(super) fn load(&self, order: Ordering) -> usize {
            self.touch();
            self.value.load(order)
        }

        pub(super) fn store(&self, value: usize, order: Ordering) {
            self.touch();
            self.value.store(value, order);
        }

        fn touch(&self) {
            self.turn.fetch_add(0, Ordering::Relaxed);
        }
    }
}

#[cfg(not(all(sluicegate_loom, feature = "loom")))]
mod imp {
    pub(super) use portable_atomic::{AtomicUsize, fence};
}
