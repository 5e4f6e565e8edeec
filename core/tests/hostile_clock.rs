//! Clocks that stall, jump, step back and run past the end of the limiter's time, at both doors.
//!
//! Nothing may panic or wrap; the same tests run in debug and release builds, and CI runs both.

mod support;

use core::time::Duration;

use sluicegate_core::{Denied, ManualClock, Nanos, Quota, TokenBucket, quota};
use support::{AnyWindow, Numbers, ThreadShard, sharded, window_limit};

const SECOND: u64 = 1_000_000_000;
const YEAR: u64 = 31_557_600 * SECOND;

fn quotas() -> Vec<Quota> {
    let texts = [
        "1/1s",
        "7/3s burst 20",
        "300/1m",
        "1/30d",
        "700_000_000/1s",
        "9_700_000_000/1s burst 1",
        "1/1ns",
        "1/18446744073709551615ns",
        "1/18446744073709551615ns burst 9223372036854775000",
        "1/1s burst 9_000_000_000_000_000_000",
        "18446744073709551615/18446744073709551615ns burst 5",
    ];
    texts.iter().map(|text| text.parse().unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn windows() -> Vec<Box<dyn AnyWindow>> {
    let limits = [(1, 1), (15, 1), (10, SECOND), (300, 60 * SECOND), (1, u64::MAX), (u64::MAX, u64::MAX), (7, YEAR)];
    limits
        .iter()
        .flat_map(|&(limit, width)| [1, 3].map(|shards| sharded(window_limit(limit, width), shards, ThreadShard)))
        .collect()
}

/// Drives both doors over the readings with costs of every size, and checks what holds whatever the clock does.
fn drive(readings: impl Iterator<Item = u64> + Clone) {
    for quota in quotas() {
        let bucket = TokenBucket::with_clock(quota, ManualClock::new());
        for (index, reading) in readings.clone().enumerate() {
            bucket.clock().set(Nanos::new(reading));
            let capacity = quota.capacity();
            let cost = [1, capacity, 0, capacity / 2, u64::MAX, capacity.saturating_add(1), 2][index % 7];
            let before = bucket.inspect().level;
            assert!(before <= capacity);
            match bucket.try_acquire(cost) {
                Ok(admitted) => assert_eq!(admitted.remaining.at_least(), before - cost),
                Err(Denied::RateLimited { retry_after }) => assert!(cost > before && !retry_after.is_zero()),
                Err(_) => assert!(cost > capacity),
            }
            if index % 5 == 4 {
                bucket.refund([1, capacity, u64::MAX][index % 3]);
                assert!(bucket.inspect().level <= capacity);
            }
        }
    }
    for window in windows() {
        for (index, reading) in readings.clone().enumerate() {
            let now = Nanos::new(reading);
            let limit = window.inspect_at(now).capacity;
            let cost = [1, limit, 0, limit / 2, u64::MAX, limit.saturating_add(1), 2][index % 7];
            let before = window.inspect_at(now).level;
            assert!(before <= limit);
            match window.try_acquire_at(now, cost) {
                Ok(admitted) if index % 5 == 4 => window.refund(admitted.at, cost),
                Ok(_) => assert!(window.inspect_at(now).level <= limit),
                Err(Denied::RateLimited { retry_after }) => assert!(cost > before && !retry_after.is_zero()),
                Err(_) => assert!(cost > limit),
            }
        }
    }
}

#[test]
fn does_not_panic_on_a_clock_that_stalls() {
    for reading in [0, 1, SECOND, 29 * YEAR] {
        drive((0..100).map(move |_| reading));
    }
}

#[test]
fn does_not_panic_on_a_clock_that_jumps_by_years() {
    drive((0..29).map(|year| year * YEAR));
    drive((0..60).map(|index| index / 3 * YEAR + index));
}

#[test]
fn does_not_panic_on_a_clock_that_steps_back() {
    drive((0..100).rev().map(|index| index * YEAR / 4));
    drive((0..100).map(|index| 20 * YEAR - index * index * SECOND));
    drive([29 * YEAR, 0, 29 * YEAR, 1, 0, 15 * YEAR, 0].into_iter().cycle().take(100));
}

#[test]
fn does_not_panic_on_a_clock_past_the_horizon() {
    let horizon = Nanos::HORIZON.as_u64();
    drive((0..100).map(|index| horizon - 50 + index));
    drive((0..100).map(|index| u64::MAX - 99 + index));
    drive([horizon, u64::MAX, horizon + 1, 0, u64::MAX, horizon - 1].into_iter().cycle().take(100));
}

#[test]
fn does_not_panic_on_a_clock_without_any_sense() {
    let mut numbers = Numbers(11);
    let readings: Vec<u64> = (0..300).map(|_| numbers.below(u64::MAX) >> numbers.below(64)).collect();
    drive(readings.into_iter());
}

#[test]
fn a_stalled_clock_admits_the_capacity_once() {
    let bucket = TokenBucket::with_clock(quota!("700_000_000/1s burst 50"), ManualClock::at(Nanos::new(YEAR)));
    assert_eq!((0..1_000).filter(|_| bucket.try_acquire(1).is_ok()).count(), 50);
}

#[test]
fn a_clock_that_stepped_back_locks_nobody_out_for_longer_than_it_takes_to_catch_up() {
    let bucket = TokenBucket::with_clock(quota!("1/1s burst 10"), ManualClock::at(Nanos::from_secs(1_000)));
    assert!(bucket.try_acquire(4).is_ok());
    bucket.clock().set(Nanos::from_secs(100));
    // Six were left at 1000 s, and none is minted by living the time again.
    let retry_after = Duration::from_secs(900);
    assert_eq!(bucket.try_acquire(6), Err(Denied::RateLimited { retry_after }));
    assert_eq!(bucket.inspect().level, 0);
    bucket.clock().advance(retry_after - Duration::from_nanos(1));
    assert!(bucket.try_acquire(6).is_err());
    bucket.clock().advance(Duration::from_nanos(1));
    assert!(bucket.try_acquire(6).is_ok());
}

#[test]
fn a_clock_that_swings_mints_nothing() {
    let bucket = TokenBucket::with_clock(quota!("1/1s burst 10"), ManualClock::at(Nanos::from_secs(1_000)));
    let mut admitted = 0;
    for _ in 0..100 {
        for reading in [1_000, 990, 995, 0] {
            bucket.clock().set(Nanos::from_secs(reading));
            admitted += (0..20).filter(|_| bucket.try_acquire(1).is_ok()).count();
        }
    }
    assert_eq!(admitted, 10);

    let window = sharded(window_limit(10, SECOND), 3, ThreadShard);
    let mut admitted = 0;
    for _ in 0..100 {
        for reading in [1_000, 990, 995, 0] {
            admitted += (0..20).filter(|_| window.try_acquire_at(Nanos::from_secs(reading), 1).is_ok()).count();
        }
    }
    assert_eq!(admitted, 10, "late readings count into the latest window");
}

#[test]
fn past_the_horizon_time_stands_still() {
    let bucket = TokenBucket::with_clock(quota!("10/1s"), ManualClock::at(Nanos::HORIZON));
    assert!(bucket.try_acquire(10).is_ok());
    for reading in [Nanos::HORIZON, Nanos::HORIZON + Duration::from_secs(3_600), Nanos::MAX] {
        bucket.clock().set(reading);
        let retry_after = bucket.try_acquire(1).unwrap_err().retry_after().unwrap();
        let wait = Duration::from_millis(100);
        assert!(retry_after.abs_diff(wait) <= Duration::from_nanos(2), "as if time went on: {retry_after:?}");
    }
    let window = sharded(window_limit(10, SECOND), 3, ThreadShard);
    assert!(window.try_acquire_at(Nanos::MAX, 10).is_ok());
    assert!(window.try_acquire_at(Nanos::HORIZON, 1).is_err());
    assert!(window.try_acquire_at(Nanos::MAX, 1).is_err());
}

#[test]
fn readings_and_spans_saturate() {
    let clock = ManualClock::new();
    clock.step_back(Duration::MAX);
    assert_eq!(sluicegate_core::Clock::now(&clock), Nanos::ZERO);
    clock.advance(Duration::MAX);
    assert_eq!(sluicegate_core::Clock::now(&clock), Nanos::MAX);
    assert_eq!(Nanos::MAX + Duration::from_nanos(1), Nanos::MAX);
    assert_eq!(Nanos::ZERO - Duration::from_nanos(1), Nanos::ZERO);
    assert_eq!(Nanos::from_secs(u64::MAX), Nanos::MAX);
    assert_eq!(Nanos::from_millis(u64::MAX), Nanos::MAX);
    assert_eq!(Nanos::ZERO.saturating_duration_since(Nanos::MAX), Duration::ZERO);
}
