#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

use embassy_time::{Instant, TICK_HZ, Timer};

// Every item of runtime and core, except those that are defined below under the same name for embassy.
pub use sluicegate_runtime::*;

/// The lock around those who wait: see the crate's page for who may use one limiter.
pub type Lock = spin::mutex::SpinMutex<()>;

/// A token bucket that up to `N` tasks wait for at once, in order; made by `TokenBucket::of(limit)`.
///
/// Those count too who have been granted their tokens and were not polled since.
pub type TokenBucket<const N: usize> = Queued<sluicegate_core::TokenBucket<()>, EmbassyTime, Lock, Fixed<N>>;

/// The same for a limit that may change and whose tokens can be reserved.
pub type AdjustableBucket<const N: usize> = Queued<sluicegate_core::AdjustableBucket<()>, EmbassyTime, Lock, Fixed<N>>;

/// Embassy's clock and timer.
///
/// Readings are embassy-time's, rounded down to nanoseconds; a sleep ends at the first tick that is not before its instant.
///
/// ```
/// use sluicegate_embassy::{EmbassyTime, Nanos, nanos_of_ticks, ticks_of_nanos};
///
/// let second = nanos_of_ticks(embassy_time::TICK_HZ);
/// assert_eq!(second, Nanos::from_secs(1));
/// assert_eq!(ticks_of_nanos(second), embassy_time::TICK_HZ);
/// // Never too early.
/// assert_eq!(ticks_of_nanos(Nanos::new(1)), 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EmbassyTime;

impl Clock for EmbassyTime {
    #[inline]
    fn now(&self) -> Nanos {
        nanos_of_ticks(Instant::now().as_ticks())
    }
}

impl Runtime for EmbassyTime {
    type Sleep = Timer;

    fn sleep_until(&self, at: Nanos) -> Timer {
        Timer::at(Instant::from_ticks(ticks_of_nanos(at)))
    }
}

/// The reading after so many ticks, rounded down. It saturates.
#[inline]
pub const fn nanos_of_ticks(ticks: u64) -> Nanos {
    if PER_SECOND_NANOS.is_multiple_of(TICK_HZ) {
        // Most clocks tick at a power of ten up to 1 MHz, and then no wide division is needed.
        return Nanos::new(ticks.saturating_mul(PER_SECOND_NANOS / TICK_HZ));
    }
    let nanos = ticks as u128 * PER_SECOND_NANOS as u128 / TICK_HZ as u128;
    if nanos > u64::MAX as u128 { Nanos::MAX } else { Nanos::new(nanos as u64) }
}

/// The first tick at which a reading is `at` or later. It saturates.
pub const fn ticks_of_nanos(at: Nanos) -> u64 {
    let ticks = (at.as_u64() as u128 * TICK_HZ as u128).div_ceil(PER_SECOND_NANOS as u128);
    if ticks > u64::MAX as u128 { u64::MAX } else { ticks as u64 }
}

const PER_SECOND_NANOS: u64 = 1_000_000_000;
