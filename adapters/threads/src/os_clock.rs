//! The operating system's monotonic clock.

use std::sync::OnceLock;
use std::time::Instant;

use sluicegate_core::{Clock, Nanos};

/// The operating system's monotonic clock, [`Instant`].
///
/// It takes no memory, is free to copy and can stand in a constant. The origin is one for the whole process, set by
/// the first reading: all `OsClock`s agree, and one reading can serve all limiters of a request. [`CoarseClock`] shares
/// the origin. The resolution is the system's, on current ones 1 to 100 ns.
///
/// # Guarantees
///
/// - Readings never go back, on one thread or between threads that otherwise agree on an order, because `Instant`'s do
///   not. Setting the date, a leap second and a change of time zone do not move them.
/// - While the machine is suspended the clock stands still on Linux, Android, macOS and iOS, and goes on on Windows: there
///   a limiter finds the time passed, elsewhere a limit counts the time that the machine was awake.
///
/// # Example
///
/// ```
/// use sluicegate_threads::sluicegate_core::TokenBucket;
/// use sluicegate_threads::{Clock, Limit, OsClock, quota};
///
/// static LOGINS: TokenBucket<OsClock> = TokenBucket::with_limit(Limit::Quota(quota!("10/1m")), OsClock);
///
/// let now = OsClock.now();
/// assert!(LOGINS.try_acquire_at(now, 1).is_ok());
/// ```
///
/// [`CoarseClock`]: crate::CoarseClock
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OsClock;

impl OsClock {
    /// The reading that belongs to `instant`; [`Nanos::ZERO`] for one before the origin.
    ///
    /// For callers who have an `Instant` already. Reads no clock, except for the origin in the process's first call.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use sluicegate_threads::OsClock;
    ///
    /// let started = Instant::now() + Duration::from_secs(1);
    /// let later = started + Duration::from_millis(5);
    /// assert_eq!(OsClock::reading_of(later), OsClock::reading_of(started) + Duration::from_millis(5));
    /// ```
    #[inline]
    pub fn reading_of(instant: Instant) -> Nanos {
        Nanos::ZERO + instant.saturating_duration_since(origin())
    }
}

impl Clock for OsClock {
    #[inline]
    fn now(&self) -> Nanos {
        // The origin first: it must not be later than the reading.
        let origin = origin();
        Nanos::ZERO + Instant::now().saturating_duration_since(origin)
    }
}

#[inline]
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}
