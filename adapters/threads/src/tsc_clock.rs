//! The processor's time-stamp counter.

use core::fmt;
use std::sync::OnceLock;

use sluicegate_core::{Clock, Nanos};

/// The processor's time-stamp counter, scaled to nanoseconds: the fastest reading that is not late.
///
/// Needs the feature `tsc`. [quanta] detects the counter when the process makes its first `TscClock` and calibrates it
/// against the operating system's clock, which takes about a millisecond, and at most 200. Where the counter is missing
/// or not invariant, readings come from the operating system's monotonic clock at its cost. Copies share one origin and
/// one calibration, so all `TscClock`s of a process agree. They do **not** agree with [`OsClock`]: never give one
/// limiter readings of both.
///
/// # Guarantees and limits
///
/// - Nanoseconds here are nanoseconds of the calibrated counter. Limits are exact in these; against the system's clock
///   they run fast or slow by the error of the calibration, typically some parts per million.
/// - On one core readings do not go back. Between threads on different cores they may by some nanoseconds: the counter
///   is read without a fence, and the cores' counters are as far apart as the machine leaves them. A limiter treats a late
///   reading as time that stalled, admits no more for it and never panics.
/// - Suspending the machine, or moving a virtual machine to another host, may stop the counter, reset it or change its
///   speed. After a reset readings stand at the origin until the counter has caught up, so limits may stay closed for as
///   long as the machine had been running. Use [`OsClock`] where that happens.
///
/// # Example
///
/// ```
/// use sluicegate_threads::{TscClock, TscTokenBucket, quota};
///
/// let limiter = TscTokenBucket::with_clock(quota!("1000000/1s"), TscClock::new());
/// assert!(limiter.try_acquire(1).is_ok());
/// ```
///
/// [quanta]: https://docs.rs/quanta
/// [`OsClock`]: crate::OsClock
#[derive(Clone, Copy)]
pub struct TscClock {
    // A reference and not a static looked up by `now`: a clock that exists is calibrated, so a reading checks nothing.
    source: &'static Source,
}

impl TscClock {
    /// The process's clock. Calibrates when it is called for the first time; make one before the first request.
    pub fn new() -> Self {
        static SOURCE: OnceLock<Source> = OnceLock::new();
        Self { source: SOURCE.get_or_init(|| Source::new(quanta::Clock::new())) }
    }
}

impl Clock for TscClock {
    #[inline]
    fn now(&self) -> Nanos {
        self.source.reading_of(self.source.clock.raw())
    }
}

impl Default for TscClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TscClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TscClock").finish_non_exhaustive()
    }
}

struct Source {
    clock: quanta::Clock,
    /// The counter's value at the origin.
    origin: u64,
    /// Nanoseconds in 2^48 counts.
    scale: u64,
}

impl Source {
    fn new(clock: quanta::Clock) -> Self {
        // quanta scales by a fraction over a power of two, which calibration of up to 200 ms keeps below 2^48 for counters
        // up to 1 THz. So this is that fraction exactly, and 2^48 itself where readings are nanoseconds already. Asking once
        // and multiplying here saves a call per reading, which quanta does not offer for inlining.
        let scale = clock.delta_as_nanos(0, 1 << SCALE_BITS);
        let origin = clock.raw();
        Self { clock, origin, scale }
    }

    /// [`Nanos::ZERO`] for a counter behind the origin.
    #[inline]
    fn reading_of(&self, raw: u64) -> Nanos {
        let counts = u128::from(raw.saturating_sub(self.origin));
        // Above 1 GHz a count is less than a nanosecond, and half of a product, without a shift over both, is all it takes.
        let nanoseconds = if self.scale < 1 << SCALE_BITS {
            (counts * u128::from(self.scale << (u64::BITS - SCALE_BITS))) >> u64::BITS
        } else {
            (counts * u128::from(self.scale)) >> SCALE_BITS
        };
        Nanos::new(nanoseconds as u64)
    }
}

const SCALE_BITS: u32 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_as_quanta_does() {
        let (mocked, _) = quanta::Clock::mock();
        for clock in [quanta::Clock::new(), mocked] {
            let source = Source::new(clock);
            // A nanosecond, an hour, 30 years of a counter of some gigahertz, and numbers in between.
            for counts in (0..62).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits, 3 << bits >> 1]) {
                let Some(raw) = source.origin.checked_add(counts) else { continue };
                assert_eq!(source.reading_of(raw).as_u64(), source.clock.delta_as_nanos(source.origin, raw));
            }
            assert_eq!(source.reading_of(source.origin.saturating_sub(1)), Nanos::ZERO);
        }
    }
}
