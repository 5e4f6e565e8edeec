//! Token buckets under 200 and 400 racing threads. Readings are fixed, so nothing refills and every count is exact.

mod common;

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use common::{Choices, race};
use sluicegate_threads::sluicegate_core::TokenBucket;
use sluicegate_threads::{Denied, Limit, ManualClock, Nanos, PER_HOUR, Quota, Rate};

#[test]
fn a11_limit_n_admits_exactly_n_and_denies_the_next() {
    for threads in [200, 400] {
        // Fewer than one each, about one each, many each; an odd one, so that it divides among nobody evenly.
        for limit in [1, threads as u64 - 1, 7 * threads as u64 + 3] {
            let bucket = bucket(limit);
            let admitted: Vec<u64> =
                race(threads, |_| (0..10).filter(|_| bucket.try_acquire(1).is_ok()).count() as u64);
            assert_eq!(admitted.iter().sum::<u64>(), limit, "{threads} threads");
            assert!(matches!(bucket.try_acquire(1), Err(Denied::RateLimited { .. })));
        }
    }
}

#[test]
fn a11_demand_below_the_limit_is_admitted_whole() {
    for threads in [200, 400] {
        let bucket = bucket(10 * threads as u64);
        let denied: usize = race(threads, |_| (0..10).filter(|_| bucket.try_acquire(1).is_err()).count()).iter().sum();
        assert_eq!(denied, 0);
        assert_eq!(bucket.inspect().level, 0);
    }
}

#[test]
fn a17_denied_retries_cannot_run_a_counter_away() {
    for threads in [200, 400] {
        let bucket = bucket(100);
        bucket.try_acquire(100).unwrap();
        let state = bucket.state();
        let admitted: usize =
            race(threads, |_| (0..200).filter(|_| bucket.try_acquire(1).is_ok()).count()).iter().sum();
        assert_eq!(admitted, 0);
        assert_eq!(bucket.state(), state, "a denial wrote something");

        // The next token comes when it would have come without all these denials, and it is one.
        bucket.clock().advance(Duration::from_secs(36));
        let admitted: usize = race(threads, |_| usize::from(bucket.try_acquire(1).is_ok())).iter().sum();
        assert_eq!(admitted, 1);
    }
}

#[test]
fn a17_costs_and_refunds_are_conserved() {
    const LIMIT: u64 = 1_000;
    for threads in [200, 400] {
        let bucket = bucket(LIMIT);
        // Counted after it was admitted and uncounted before it is given back: never above what is really out.
        let out = AtomicU64::new(0);
        let kept: Vec<u64> = race(threads, |index| {
            let mut choices = Choices::new(index);
            let mut mine = 0;
            for _ in 0..100 {
                let cost = if choices.below(2) == 0 { 1 } else { 1 + choices.below(LIMIT / 4) };
                if bucket.try_acquire(cost).is_ok() {
                    mine += cost;
                    let seen = out.fetch_add(cost, Ordering::SeqCst) + cost;
                    assert!(seen <= LIMIT, "{seen} out of {LIMIT}");
                }
                if mine > 0 && choices.below(3) != 0 {
                    let back = 1 + choices.below(mine);
                    out.fetch_sub(back, Ordering::SeqCst);
                    bucket.refund(back);
                    mine -= back;
                }
            }
            mine
        });
        let kept: u64 = kept.iter().sum();
        let free = bucket.inspect().level;
        assert_eq!(kept + free, LIMIT);
        bucket.try_acquire(free).unwrap();
        assert!(bucket.try_acquire(1).is_err());
    }
}

#[test]
fn a11_readings_that_race_admit_what_the_latest_allows() {
    // One token a nanosecond: each caller's reading lies somewhere in the last 1000 ns, and the last one at the end.
    const THREADS: usize = 200;
    let quota = Quota::with_burst(Rate::new(1_000_000_000, Duration::from_secs(1)).unwrap(), 500).unwrap();
    let bucket = TokenBucket::with_clock(quota, ManualClock::new());
    let admitted: u64 = race(THREADS, |index| {
        let mut choices = Choices::new(index);
        let readings = (0..1_000).map(|step| Nanos::new(1_000 + step - choices.below(1_000)));
        readings.filter(|&now| bucket.try_acquire_at(now, 1).is_ok()).count() as u64
    })
    .iter()
    .sum();
    // The first reading may be as early as 1. Whatever the order, from there to 1999 no more than C + (t - s) pass.
    assert!(admitted <= 500 + 1_999, "{admitted}");
    let free = bucket.inspect_at(Nanos::new(1_999)).level;
    assert!(bucket.try_acquire_at(Nanos::new(1_999), free + 1).is_err());
    assert!(bucket.try_acquire_at(Nanos::new(1_999), free).is_ok());
}

#[test]
fn limits_without_a_count_race_too() {
    let open = TokenBucket::with_limit(Limit::Unlimited, ManualClock::new());
    let shut = TokenBucket::with_limit(Limit::DenyAll, ManualClock::new());
    assert!(race(200, |_| open.try_acquire(u64::MAX).is_ok()).into_iter().all(|admitted| admitted));
    assert!(race(200, |_| shut.try_acquire(0) == Err(Denied::Closed)).into_iter().all(|closed| closed));
}

fn bucket(limit: u64) -> TokenBucket<ManualClock> {
    TokenBucket::with_clock(Quota::new(Rate::new(limit, PER_HOUR).unwrap()).unwrap(), ManualClock::new())
}
