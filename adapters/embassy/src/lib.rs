#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

use embassy_time::{Instant, TICK_HZ, Timer};

// Every item of runtime and core, except those that are defined below under the same name for embassy.
pub use sluicegate_runtime::*;

/// The lock around those who wait: one that spins. The crate's page says who may use one limiter.
///
/// ```
/// use sluicegate_embassy::{EmbassyTime, Fixed, Lock, Queued, WaitOptions, quota};
///
/// // A limiter of your own, with the crate's lock and room for four.
/// let limiter = sluicegate_embassy::sluicegate_core::TokenBucket::with_limit(quota!("5/1s").into(), ());
/// let limiter: Queued<_, EmbassyTime, Lock, Fixed<4>> = Queued::new(limiter, EmbassyTime, WaitOptions::new().fair(true));
/// assert!(limiter.try_acquire(5).is_ok());
/// ```
pub type Lock = spin::mutex::SpinMutex<()>;

/// A token bucket that up to `N` tasks wait for at once, in order; made by `TokenBucket::of(limit)` or `TokenBucket::with_options`.
///
/// Those count too whose wait has ended and who were not polled since; one more is told [`Denied::QueueFull`].
///
/// ```
/// use core::time::Duration;
/// use sluicegate_embassy::{Denied, TokenBucket, quota};
///
/// async fn send(limiter: &TokenBucket<4>) -> Result<(), Denied> {
///     limiter.acquire(1).await?;
///     // No longer than this, and not at all if that is certainly too short.
///     limiter.acquire_timeout(2, Duration::from_millis(100)).await?;
///     Ok(())
/// }
///
/// let limiter = TokenBucket::<4>::of(quota!("5/1s burst 2"));
/// assert!(limiter.try_acquire(2).is_ok());
/// assert!(limiter.try_acquire(1).is_err());
/// # drop(send(&limiter));
/// ```
pub type TokenBucket<const N: usize> = Queued<sluicegate_core::TokenBucket<()>, EmbassyTime, Lock, Fixed<N>>;

/// The same for a limit that may change and whose tokens can be reserved; made as a [`TokenBucket`].
///
/// ```
/// use sluicegate_embassy::{AdjustableBucket, Clock, EmbassyTime, Inheritance, quota};
///
/// let limiter = AdjustableBucket::<4>::of(quota!("5/1s"));
/// assert!(limiter.try_acquire(5).is_ok());
/// limiter.limiter().adjust_at(EmbassyTime.now(), quota!("50/1s").into(), Inheritance::Spent);
/// // Those who wait see the change at once.
/// limiter.recheck();
/// assert!(limiter.try_acquire(45).is_ok());
/// ```
pub type AdjustableBucket<const N: usize> = Queued<sluicegate_core::AdjustableBucket<()>, EmbassyTime, Lock, Fixed<N>>;

/// About what no interval of one length may exceed, in one word; made by `SlidingCounter::of(limit)`.
///
/// ```
/// use sluicegate_embassy::{QuotaError, SlidingCounter, quota};
///
/// let limiter = SlidingCounter::<4>::of(quota!("300/1m"))?;
/// assert!(limiter.try_acquire(300).is_ok());
/// assert!(limiter.try_acquire(1).is_err());
/// # Ok::<(), QuotaError>(())
/// ```
pub type SlidingCounter<const N: usize> = Queued<sluicegate_core::SlidingCounter<()>, EmbassyTime, Lock, Fixed<N>>;

/// Departures at a constant rate; made by `LeakyBucket::of(pacing)`. Any number of tasks may wait, as far as the queue's bound goes.
///
/// ```
/// use sluicegate_embassy::{Denied, LeakyBucket, PER_SECOND, Pacing, QuotaError, Rate};
///
/// async fn blink(pace: &LeakyBucket) -> Result<(), Denied> {
///     loop {
///         pace.pace(1).await?;
///         // Toggles the light.
///     }
/// }
///
/// // Ten a second, at even distances, and up to three in the queue.
/// let pace = LeakyBucket::of(Pacing::new(Rate::new(10, PER_SECOND)?, 3)?);
/// # drop(blink(&pace));
/// # Ok::<(), QuotaError>(())
/// ```
pub type LeakyBucket = Paced<EmbassyTime>;

/// Embassy's clock and timer.
///
/// Readings are embassy-time's, rounded down to nanoseconds; a sleep ends at the first tick that is not before its instant.
///
/// ```
/// use sluicegate_embassy::{Clock, EmbassyTime, Runtime};
///
/// async fn a_second_later() {
///     let at = EmbassyTime.now() + core::time::Duration::from_secs(1);
///     EmbassyTime.sleep_until(at).await;
///     assert!(EmbassyTime.now() >= at);
/// }
/// # drop(a_second_later());
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
///
/// ```
/// use sluicegate_embassy::{Nanos, nanos_of_ticks};
///
/// assert_eq!(nanos_of_ticks(embassy_time::TICK_HZ), Nanos::from_secs(1));
/// ```
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
///
/// ```
/// use sluicegate_embassy::{Nanos, ticks_of_nanos};
///
/// assert_eq!(ticks_of_nanos(Nanos::from_secs(1)), embassy_time::TICK_HZ);
/// // Never too early.
/// assert_eq!(ticks_of_nanos(Nanos::new(1)), 1);
/// ```
pub const fn ticks_of_nanos(at: Nanos) -> u64 {
    let ticks = (at.as_u64() as u128 * TICK_HZ as u128).div_ceil(PER_SECOND_NANOS as u128);
    if ticks > u64::MAX as u128 { u64::MAX } else { ticks as u64 }
}

const PER_SECOND_NANOS: u64 = 1_000_000_000;
