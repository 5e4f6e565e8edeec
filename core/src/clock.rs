//! Where readings come from.

use core::fmt;
use core::time::Duration;

use crate::Nanos;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};

/// A source of monotonic readings.
///
/// # Contract
///
/// - Readings MUST be nanoseconds since an origin that is fixed for as long as any limiter uses the clock.
/// - Readings SHOULD NOT go back, on one thread or between threads that otherwise agree on an order. One that does is
///   harmless: a limiter then behaves as if time had stalled until the clock has caught up with the latest reading that
///   it acted on. It admits no more than it would have at that latest reading, and denies for no longer.
/// - A reading MAY stall or jump ahead by any amount.
/// - Readings past [`Nanos::HORIZON`] (30 years) count as the horizon. Choose the origin so that this does not happen.
/// - `now` MUST NOT be a wall clock that an operator or a network can set back: windows would stay closed for as long.
/// - `now` MUST NOT call a limiter that uses this clock, nor wait for who does: a store of keys reads it while a part of its keys is
///   locked.
///
/// # Example
///
/// ```
/// use sluicegate_core::{Clock, Nanos};
///
/// /// A timer peripheral that counts at 1 MHz.
/// struct Microseconds(fn() -> u64);
///
/// impl Clock for Microseconds {
///     fn now(&self) -> Nanos {
///         Nanos::new((self.0)().saturating_mul(1_000))
///     }
/// }
/// assert_eq!(Microseconds(|| 7).now(), Nanos::new(7_000));
/// ```
pub trait Clock {
    /// The reading now.
    fn now(&self) -> Nanos;
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now(&self) -> Nanos {
        (**self).now()
    }
}

#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
impl<C: Clock + ?Sized> Clock for alloc::sync::Arc<C> {
    #[inline]
    fn now(&self) -> Nanos {
        (**self).now()
    }
}

#[cfg(feature = "alloc")]
impl<C: Clock + ?Sized> Clock for alloc::boxed::Box<C> {
    #[inline]
    fn now(&self) -> Nanos {
        (**self).now()
    }
}

/// A clock that moves only when told to: for tests, simulations and replays.
///
/// It may also do what a real clock must not: stall, jump ahead by years and step back. Share it by reference or, with
/// the feature `alloc`, by `Arc`.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Clock, ManualClock, Nanos};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_secs(3600));
/// assert_eq!(clock.now(), Nanos::from_secs(3600));
/// clock.step_back(Duration::from_secs(60));
/// assert_eq!(clock.now(), Nanos::from_secs(3540));
/// clock.set(Nanos::MAX);
/// assert_eq!(clock.now(), Nanos::MAX);
/// ```
#[derive(Default)]
pub struct ManualClock {
    reading: AtomicU64,
}

impl ManualClock {
    const_unless_loom! {
        /// A clock that stands at the origin.
        pub fn new() -> Self {
            Self::at(Nanos::ZERO)
        }

        /// A clock that stands at `reading`.
        pub fn at(reading: Nanos) -> Self {
            Self { reading: AtomicU64::new(reading.as_u64()) }
        }
    }

    /// Moves ahead by `span`, stopping at [`Nanos::MAX`].
    pub fn advance(&self, span: Duration) {
        self.update(|reading| reading.saturating_add(span));
    }

    /// Moves back by `span`, stopping at the origin.
    pub fn step_back(&self, span: Duration) {
        self.update(|reading| reading.saturating_sub(span));
    }

    /// Moves to `reading`, ahead or back.
    pub fn set(&self, reading: Nanos) {
        // Release, paired with the acquire in `now`: who sees the new time also sees what its mover did before.
        self.reading.store(reading.as_u64(), Ordering::Release);
    }

    fn update(&self, change: impl Fn(Nanos) -> Nanos) {
        // Release as in `set`; acquire keeps movers in one order with each other.
        let _ = self
            .reading
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |reading| Some(change(Nanos::new(reading)).as_u64()));
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now(&self) -> Nanos {
        // Acquire: pairs with the release of whoever moved the clock.
        Nanos::new(self.reading.load(Ordering::Acquire))
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&self.now()).finish()
    }
}
