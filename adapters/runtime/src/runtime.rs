//! What an executor has to bring along.

use core::future::Future;

use sluicegate_core::{Clock, Nanos};

/// An executor's time: its clock, and a way to sleep until a reading of that clock.
///
/// Clock and sleeper are one seam, so that a fake clock drives waits too. A custom executor implements this one trait, and every
/// limiter can be awaited on it.
///
/// # Contract
///
/// - [`Clock::now`] as its own contract says.
/// - The future of `sleep_until(at)` MUST complete once `now()` is `at` or later. It SHOULD NOT complete earlier; a waiter that is
///   woken too early looks at the clock and sleeps again. It may be dropped at any time, and then nothing of it may be left.
/// - It is polled with no lock of a limiter held, and may wake its waker from anywhere, also from within its own locks.
///
/// # Example
///
/// ```
/// use core::future::{Ready, ready};
/// use sluicegate_core::{Clock, Nanos};
/// use sluicegate_runtime::Runtime;
///
/// /// Time that never gets in anybody's way.
/// struct Never;
///
/// impl Clock for Never {
///     fn now(&self) -> Nanos {
///         Nanos::HORIZON
///     }
/// }
///
/// impl Runtime for Never {
///     type Sleep = Ready<()>;
///
///     fn sleep_until(&self, _at: Nanos) -> Self::Sleep {
///         ready(())
///     }
/// }
/// ```
pub trait Runtime: Clock {
    /// A future that completes at a reading.
    type Sleep: Future<Output = ()>;

    /// Sleeps until the clock reads `at`. A reading that has passed completes at once, or at the next tick of the timer.
    fn sleep_until(&self, at: Nanos) -> Self::Sleep;
}

impl<R: Runtime + ?Sized> Runtime for &R {
    type Sleep = R::Sleep;

    #[inline]
    fn sleep_until(&self, at: Nanos) -> Self::Sleep {
        (**self).sleep_until(at)
    }
}

#[cfg(feature = "alloc")]
impl<R: Runtime + ?Sized> Runtime for alloc::sync::Arc<R> {
    type Sleep = R::Sleep;

    #[inline]
    fn sleep_until(&self, at: Nanos) -> Self::Sleep {
        (**self).sleep_until(at)
    }
}

/// An executor that can start tasks besides: for what serves many limiters at once, and for tests that run on every executor.
///
/// Waiting for a limiter needs no task of its own.
pub trait Spawn: Runtime {
    /// Starts `task`, which nobody waits for.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static);
}
