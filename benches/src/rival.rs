//! The governor crate's direct limiter, on readings that are given.

use core::cell::Cell;
use core::num::NonZeroU32;
use core::ops::Add;

use governor::clock::{Clock, Reference};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

/// governor's in-memory limiter on some clock.
pub type Direct<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// A reading in nanoseconds.
///
/// `ID` makes a type of each use. Whether the compiler inlines governor's generic `check` depends on how many calls of one
/// type of reading there are, which is worth some 5 ns. With a type for each use there is one call, and it is inlined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reading<const ID: u32>(u64);

impl<const ID: u32> Add<Nanos> for Reading<ID> {
    type Output = Self;

    #[inline]
    fn add(self, span: Nanos) -> Self {
        Self(self.0 + span.as_u64())
    }
}

impl<const ID: u32> Reference for Reading<ID> {
    #[inline]
    fn duration_since(&self, earlier: Self) -> Nanos {
        self.0.saturating_sub(earlier.0).into()
    }

    #[inline]
    fn saturating_sub(&self, span: Nanos) -> Self {
        Self(self.0.saturating_sub(span.as_u64()))
    }
}

/// The cheapest clock that hands governor a reading: one load, not atomic, from a place that the caller wrote.
///
/// Its own `FakeRelativeClock` also follows a reference count's pointer and loads with acquire.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a, const ID: u32>(pub &'a Cell<u64>);

impl<const ID: u32> Clock for Given<'_, ID> {
    type Instant = Reading<ID>;

    #[inline]
    fn now(&self) -> Reading<ID> {
        Reading(self.0.get())
    }
}

/// What governor's default clock does, from the same calls of quanta, with a type for each use.
#[derive(Clone, Debug, Default)]
pub struct Quanta<const ID: u32>(quanta::Clock);

impl<const ID: u32> Clock for Quanta<ID> {
    type Instant = Reading<ID>;

    #[inline]
    fn now(&self) -> Reading<ID> {
        Reading(self.0.delta_as_nanos(0, self.0.raw()))
    }
}

/// `number` as governor takes it.
///
/// # Panics
/// If it is 0.
pub const fn count(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("a count of at least 1")
}

/// A limiter of `quota` whose readings are in `reading`.
pub fn given<const ID: u32>(quota: Quota, reading: &Cell<u64>) -> Direct<Given<'_, ID>> {
    RateLimiter::direct_with_clock(quota, Given(reading))
}

/// A limiter of `quota` on what its default clock reads.
pub fn timed<const ID: u32>(quota: Quota) -> Direct<Quanta<ID>> {
    RateLimiter::direct_with_clock(quota, Quanta::default())
}
