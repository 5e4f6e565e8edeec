//! Readings of a clock.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// A reading of a [`Clock`](crate::Clock): nanoseconds since that clock's fixed origin.
///
/// It is a point in time, not a span; spans are [`Duration`]s. Readings of two clocks with different origins must not
/// be mixed. All arithmetic saturates, so no reading, however absurd, can panic or wrap.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::Nanos;
///
/// let start = Nanos::from_secs(10);
/// let later = start + Duration::from_millis(1500);
/// assert_eq!(later.as_u64(), 11_500_000_000);
/// assert_eq!(later.saturating_duration_since(start), Duration::from_millis(1500));
/// assert_eq!(start.saturating_duration_since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(u64);

impl Nanos {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The latest reading that limiters tell apart: 30 years of 365.25 days after the origin.
    ///
    /// A later reading counts as this one, so time stands still for a limiter from here on. A clock's origin is
    /// therefore best near the start of the process or of the data, not at the Unix epoch.
    pub const HORIZON: Self = Self(946_728_000_000_000_000);

    /// The largest value.
    pub const MAX: Self = Self(u64::MAX);

    /// A reading of `nanoseconds` since the origin.
    #[inline]
    pub const fn new(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// A reading of `seconds` since the origin; past 584 years it saturates.
    #[inline]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// A reading of `milliseconds` since the origin; past 584 years it saturates.
    #[inline]
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// This reading `span` later, or [`Nanos::MAX`].
    #[inline]
    pub const fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(duration_to_nanos(span)))
    }

    /// This reading `span` earlier, or the origin.
    #[inline]
    pub const fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(duration_to_nanos(span)))
    }

    /// The span from `earlier` to this reading, or zero when `earlier` is the later one.
    #[inline]
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This reading, or [`Nanos::HORIZON`] when it lies beyond.
    #[inline(always)]
    pub(crate) const fn within_horizon(self) -> u64 {
        if self.0 < Self::HORIZON.0 { self.0 } else { Self::HORIZON.0 }
    }
}

/// Nanoseconds in `span`, or `u64::MAX` when there are more.
#[inline]
pub(crate) const fn duration_to_nanos(span: Duration) -> u64 {
    let nanoseconds = span.as_nanos();
    if nanoseconds > u64::MAX as u128 { u64::MAX } else { nanoseconds as u64 }
}

/// A span of `nanoseconds`, which may be more than 64 bits hold; past 584 billion years it saturates.
#[inline]
pub(crate) const fn nanos_to_duration(nanoseconds: u128) -> Duration {
    if nanoseconds <= u64::MAX as u128 {
        return Duration::from_nanos(nanoseconds as u64);
    }
    let seconds = nanoseconds / 1_000_000_000;
    if seconds > u64::MAX as u128 {
        return Duration::MAX;
    }
    Duration::new(seconds as u64, (nanoseconds % 1_000_000_000) as u32)
}

impl Add<Duration> for Nanos {
    type Output = Self;

    #[inline]
    fn add(self, span: Duration) -> Self {
        self.saturating_add(span)
    }
}

impl Sub<Duration> for Nanos {
    type Output = Self;

    #[inline]
    fn sub(self, span: Duration) -> Self {
        self.saturating_sub(span)
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nanos({})", self.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}
