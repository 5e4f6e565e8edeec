//! What every limiter can do.

use crate::{Decision, Inspection, Nanos};

/// A limiter that any number of callers share: it decides on a cost at a reading.
///
/// Code that does not care which algorithm decides takes a `&dyn Limiter` or an `impl Limiter`; a wait queue asks one when
/// its head can go.
///
/// # Contract
///
/// - `try_acquire_at` MUST take all of the cost or nothing, as one step, whoever races it.
/// - `peek_at` MUST answer as `try_acquire_at` would and change nothing.
/// - A denial's [`retry_after`](crate::Denied::retry_after), if there is one, MUST be the time after which the same request
///   succeeds if nobody else takes or gives back anything meanwhile.
/// - Where a cost can never be taken ([`Denied::is_final`](crate::Denied::is_final)), no larger one may be.
/// - None of them may panic, wait for a caller or call back into its caller's limiters, whatever the reading and the cost. (An
///   observer may, where it is told.)
///
/// ```
/// use sluicegate_core::{Limiter, ManualClock, Nanos, TokenBucket, quota};
///
/// fn largest_that_fits(limiter: &dyn Limiter, now: Nanos) -> u64 {
///     limiter.inspect_at(now).level
/// }
///
/// let bucket = TokenBucket::with_clock(quota!("5/1s"), ManualClock::new());
/// assert!(Limiter::try_acquire_at(&bucket, Nanos::ZERO, 2).is_ok());
/// assert_eq!(largest_that_fits(&bucket, Nanos::ZERO), 3);
/// ```
pub trait Limiter {
    /// Takes `cost` at the reading `now`, or nothing.
    ///
    /// # Errors
    /// [`Denied`](crate::Denied) says whether to come back and when. A denial takes nothing.
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision;

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking nothing.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    fn peek_at(&self, now: Nanos, cost: u64) -> Decision;

    /// What could be taken at `now`. Changes nothing.
    fn inspect_at(&self, now: Nanos) -> Inspection;

    /// As [`try_acquire_at`](Self::try_acquire_at), but tells no observer: the caller does so with [`tell`](Self::tell), once
    /// the decision stands. A limiter without an observer needs neither.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    #[inline]
    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        self.try_acquire_at(now, cost)
    }

    /// Tells the limiter's observer of a decision of [`take_at`](Self::take_at) or [`peek_at`](Self::peek_at) that stands.
    #[inline]
    fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
        let _ = (now, cost, decision);
    }

    /// A reading before which `total` cannot have been taken from `now` on, in however many parts that fit one by one; `None`
    /// where only a release or a change of the limit could tell. Changes nothing.
    ///
    /// What a queue of requests is told before it lets another one wait. This is a lower bound, which looks no further than
    /// the largest single cost; a limiter that knows its rate says more. One at which the whole comes to be admitted earlier if
    /// a part was taken before, as at a sliding counter, must say so itself.
    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        let most = self.inspect_at(now).capacity;
        let cost = u64::try_from(total).map_or(most, |total| total.min(most));
        match self.peek_at(now, cost) {
            Ok(_) => Some(now),
            Err(denied) => denied.retry_after().map(|wait| now.saturating_add(wait)),
        }
    }
}

/// Whoever points to a limiter is one, by every method of its own.
macro_rules! points_to_limiter {
    ($pointer:ty) => {
        impl<L: Limiter + ?Sized> Limiter for $pointer {
            #[inline]
            fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
                (**self).try_acquire_at(now, cost)
            }

            #[inline]
            fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
                (**self).peek_at(now, cost)
            }

            #[inline]
            fn inspect_at(&self, now: Nanos) -> Inspection {
                (**self).inspect_at(now)
            }

            #[inline]
            fn take_at(&self, now: Nanos, cost: u64) -> Decision {
                (**self).take_at(now, cost)
            }

            #[inline]
            fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
                (**self).tell(now, cost, decision);
            }

            #[inline]
            fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
                (**self).earliest_at(now, total)
            }
        }
    };
}

points_to_limiter!(&L);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
points_to_limiter!(alloc::sync::Arc<L>);
#[cfg(feature = "alloc")]
points_to_limiter!(alloc::boxed::Box<L>);
