//! Part C of CONFORMANCE.md, as far as it is the core's: the token bucket.

use core::time::Duration;

use sluicegate_core::{Denied, ManualClock, Nanos, Quota, Remaining, TokenBucket, quota};

const SECOND: u64 = 1_000_000_000;

fn full(quota: Quota) -> TokenBucket<ManualClock> {
    TokenBucket::with_clock(quota, ManualClock::at(Nanos::new(12_345_678_900)))
}

#[test]
fn c01_the_level_stays_between_0_and_the_capacity() {
    let bucket = full(quota!("10/1s burst 30"));
    let check = || {
        let inspection = bucket.inspect();
        assert!(inspection.level <= 30 && inspection.capacity == 30 && inspection.fill_percent() <= 100);
    };
    for round in 0..2_000_u64 {
        match round % 7 {
            0 => bucket.refund(round % 50),
            1 => bucket.clock().step_back(Duration::from_millis(round % 90)),
            2 => bucket.clock().advance(Duration::from_millis(round % 5_000)),
            _ => _ = bucket.try_acquire(round % 35),
        }
        check();
    }
    bucket.refund(u64::MAX);
    check();
    bucket.clock().set(Nanos::MAX);
    check();
}

#[test]
fn c01_steady_throughput_burst_and_time_to_fill() {
    for (quota, cost) in [
        (quota!("100/1s burst 500"), 7),
        (quota!("9/1s burst 20"), 3),
        (quota!("1/1m burst 4"), 2),
        (quota!("7/3s burst 20"), 1),
    ] {
        check_row(quota, cost);
    }
}

#[test]
fn c01_costs_differ_per_call() {
    let bucket = full(quota!("10/1s burst 30"));
    let mut left = 30;
    for cost in [1, 0, 12, 5, 7, 4] {
        left -= cost;
        assert_eq!(bucket.try_acquire(cost).map(|admitted| admitted.remaining), Ok(Remaining::Exactly(left)));
    }
    assert_eq!(left, 1);
    assert!(bucket.try_acquire(2).is_err());
}

#[test]
fn c02_draining_to_exactly_0_is_a_success() {
    for (quota, costs) in [
        (quota!("10/1s burst 30"), &[30][..]),
        (quota!("10/1s burst 30"), &[10, 10, 10]),
        (quota!("1/30d"), &[1]),
        (quota!("999_999_937/1s"), &[999_999_937]),
        (quota!("7/3s burst 1_000_000"), &[999_999, 1]),
    ] {
        let bucket = full(quota);
        let last = costs.iter().map(|&cost| bucket.try_acquire(cost).unwrap().remaining).last();
        assert_eq!(last, Some(Remaining::Exactly(0)));
        assert_eq!(bucket.inspect().level, 0);
        assert!(bucket.try_acquire(1).is_err());
    }
}

#[test]
fn c03_a_denied_cost_takes_nothing() {
    let bucket = full(quota!("10/1s burst 30"));
    bucket.try_acquire(25).unwrap();
    let state = bucket.state();
    for cost in [6, 30, 31, u64::MAX] {
        for _ in 0..1_000 {
            assert!(bucket.try_acquire(cost).is_err());
        }
        assert_eq!((bucket.state(), bucket.inspect().level), (state, 5));
    }
    assert!(bucket.try_acquire(5).is_ok());
    // Nor does it put off what flows in: denied every millisecond, the token still arrives after 100.
    for _ in 0..99 {
        bucket.clock().advance(Duration::from_millis(1));
        assert!(bucket.try_acquire(1).is_err());
    }
    bucket.clock().advance(Duration::from_millis(1));
    assert!(bucket.try_acquire(1).is_ok());
}

#[test]
fn c04_row_1_100_a_second_capacity_500_cost_1() {
    let row = check_row(quota!("100/1s burst 500"), 1);
    assert_eq!(row, Row { burst: 500, admitted_in_30_s: 3_000, fills_in: Duration::from_secs(5) });
}

#[test]
fn c04_row_2_10_a_second_capacity_30_cost_1() {
    let row = check_row(quota!("10/1s burst 30"), 1);
    assert_eq!(row, Row { burst: 30, admitted_in_30_s: 300, fills_in: Duration::from_secs(3) });
}

#[test]
fn c04_row_3_50_a_second_capacity_200_costs_1_to_10() {
    for cost in 1..=10 {
        let row = check_row(quota!("50/1s burst 200"), cost);
        let (burst, admitted_in_30_s) = (200 / cost, 1_500 / cost);
        assert_eq!(row, Row { burst, admitted_in_30_s, fills_in: Duration::from_secs(4) });
    }
    // Mixed: 1 to 10 in turn are 55 tokens, and three rounds of them fit into the burst.
    let bucket = full(quota!("50/1s burst 200"));
    for cost in (1..=10).cycle().take(30) {
        assert!(bucket.try_acquire(cost).is_ok());
    }
    assert_eq!(bucket.inspect().level, 35);
    assert_eq!((1..=10).filter(|&cost| bucket.try_acquire(cost).is_ok()).sum::<u64>(), 28, "1 to 7");
}

#[test]
fn c04_row_4_30_a_second_capacity_100_cost_1() {
    let row = check_row(quota!("30/1s burst 100"), 1);
    // A hundred thirtieths of a second, up to the next nanosecond.
    assert_eq!(row, Row { burst: 100, admitted_in_30_s: 900, fills_in: Duration::from_nanos(3_333_333_334) });
}

#[test]
fn c04_row_5_5_a_second_capacity_15_cost_3() {
    let row = check_row(quota!("5/1s burst 15"), 3);
    // 1.67 a second: 50 in half a minute.
    assert_eq!(row, Row { burst: 5, admitted_in_30_s: 50, fills_in: Duration::from_secs(3) });
}

#[derive(Debug, PartialEq, Eq)]
struct Row {
    burst: u64,
    admitted_in_30_s: u64,
    fills_in: Duration,
}

/// Measures a quota, with the law beside it: r/k, floor(C/k) and C/r.
fn check_row(quota: Quota, cost: u64) -> Row {
    let (tokens, period, capacity) = (quota.rate().tokens(), quota.rate().period_nanos(), quota.capacity());
    let bucket = full(quota);
    let mut burst = 0;
    while bucket.try_acquire(cost).is_ok() {
        burst += 1;
    }
    assert_eq!(burst, capacity / cost);

    // Empty to full, to the nanosecond.
    bucket.try_acquire(capacity % cost).unwrap();
    assert_eq!(bucket.inspect().level, 0);
    let fills_in = Duration::from_nanos((capacity * period).div_ceil(tokens));
    assert_eq!(bucket.try_acquire(capacity), Err(Denied::RateLimited { retry_after: fills_in }));
    bucket.clock().advance(fills_in - Duration::from_nanos(1));
    assert_eq!(bucket.inspect().level, capacity - 1);
    bucket.clock().advance(Duration::from_nanos(1));
    assert_eq!(bucket.inspect().level, capacity);

    // Steadily, from empty.
    bucket.try_acquire(capacity).unwrap();
    let (mut admitted_in_30_s, span, step) = (0, 30 * SECOND, 4_000_000);
    for _ in 0..span / step {
        bucket.clock().advance(Duration::from_nanos(step));
        while bucket.try_acquire(cost).is_ok() {
            admitted_in_30_s += 1;
        }
    }
    assert_eq!(admitted_in_30_s, span * tokens / period / cost);
    Row { burst, admitted_in_30_s, fills_in }
}
