//! How many tokens a limiter hands out, beside the exact number.

use core::cell::Cell;
use core::time::Duration;

use governor::Quota;
use sluicegate_threads::sluicegate_core::TokenBucket;
use sluicegate_threads::{ManualClock, Nanos, PER_SECOND, Rate};

use crate::rival;

/// Tokens per second. 7 and 150 million do not divide a second into whole nanoseconds; the last is a prime below 10^9.
pub const RATES: [u32; 6] = [1_000_000, 7_000_000, 150_000_000, 300_000_000, 700_000_000, 999_999_937];

/// The most tokens at once.
pub const BURST: u32 = 1_000;

/// Nanoseconds that the record covers.
pub const SPAN: u64 = 10_000_000;

/// What came out at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Tokens per second.
    pub rate: u32,
    /// What the ideal bucket hands out.
    pub exact: u64,
    /// What ours did.
    pub ours: u64,
    /// What governor did with `Quota::per_second`.
    pub governor: u64,
    /// What governor did with `Quota::with_period` of the nearest whole number of nanoseconds.
    pub governor_nearest: u64,
}

/// Takes all that there is at each nanosecond from 0 to `span`, at `rate` tokens per second.
///
/// # Panics
/// If `rate` is 0.
pub fn outcome(rate: u32, span: u64) -> Outcome {
    let quota = Quota::per_second(rival::count(rate)).allow_burst(rival::count(BURST));
    let nearest = Duration::from_nanos((1_000_000_000 + u64::from(rate) / 2) / u64::from(rate));
    let nearest = Quota::with_period(nearest).expect("not 0").allow_burst(rival::count(BURST));
    Outcome {
        rate,
        exact: exact(rate, span),
        ours: taken_from_ours(rate, span),
        governor: taken_from_governor(quota, span),
        governor_nearest: taken_from_governor(nearest, span),
    }
}

/// `floor(burst + rate * span)`: polled every nanosecond, at no more than a token each, no token ever finds the bucket full.
pub fn exact(rate: u32, span: u64) -> u64 {
    // At no more than a token a nanosecond the sum is below 2^64 for any span below 500 years.
    u64::from(BURST) + (u128::from(rate) * u128::from(span) / 1_000_000_000) as u64
}

/// What our bucket hands out.
pub fn taken_from_ours(rate: u32, span: u64) -> u64 {
    let bucket = bucket(rate);
    let mut taken = 0;
    for now in 0..=span {
        while bucket.try_acquire_at(Nanos::new(now), 1).is_ok() {
            taken += 1;
        }
    }
    taken
}

fn taken_from_governor(quota: Quota, span: u64) -> u64 {
    let reading = Cell::new(0);
    let limiter = rival::given::<0>(quota, &reading);
    let mut taken = 0;
    for now in 0..=span {
        reading.set(now);
        while limiter.check().is_ok() {
            taken += 1;
        }
    }
    taken
}

fn bucket(rate: u32) -> TokenBucket<ManualClock> {
    let rate = Rate::new(rate.into(), PER_SECOND).expect("a rate above 0");
    let quota = sluicegate_threads::Quota::with_burst(rate, BURST.into()).expect("a quota within range");
    TokenBucket::with_clock(quota, ManualClock::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_exact_at_every_nanosecond() {
        for rate in RATES {
            let bucket = bucket(rate);
            let mut taken = 0;
            for now in 0..=50_000 {
                while bucket.try_acquire_at(Nanos::new(now), 1).is_ok() {
                    taken += 1;
                }
                assert_eq!(taken, exact(rate, now), "{rate}/s after {now} ns");
            }
        }
    }

    #[test]
    fn the_exact_figure_is_the_definition() {
        assert_eq!(exact(1_000_000, 10_000_000), 11_000);
        assert_eq!(exact(7_000_000, 142), 1_000);
        assert_eq!(exact(7_000_000, 143), 1_001);
    }

    #[test]
    fn the_rival_is_polled_fairly() {
        // At a rate that it can express it is exact too: the polling loop favours nobody.
        let outcome = outcome(1_000_000, 100_000);
        assert_eq!((outcome.governor, outcome.governor_nearest), (outcome.exact, outcome.exact));
    }
}
