//! Threads that race on buckets that are held and changed, and on hierarchies: no hold is lost, nothing is admitted twice.

mod support;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use sluicegate_core::{
    AdjustableBucket, Clock, Denied, FixedShard, Hierarchy, Holding, Inheritance, Level, Limit, Limiter, ManualClock,
    Nanos, Reservation, Shard, ShardedWindow, TokenBucket, quota,
};
use support::{Numbers, race, window_limit};

type Bucket = AdjustableBucket<ManualClock>;

fn bucket(limit: impl Into<Limit>) -> Bucket {
    AdjustableBucket::with_clock(limit, ManualClock::new())
}

/// Counts a thread that has finished, also by a panic: so nobody waits for one that failed.
struct Finished<'a>(&'a AtomicU64);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn give_way(_attempt: u32) {
    std::thread::yield_now();
}

fn level(name: &'static str, limit: impl Into<Limit>) -> Level<Bucket> {
    Level::with_give_way(name, bucket(limit), give_way)
}

#[test]
fn d02_the_last_token_goes_to_one_taker_or_holder() {
    for round in 0..300 {
        let bucket = bucket(quota!("1/1h burst 3"));
        let now = Nanos::new(round);
        assert!(bucket.try_acquire_at(now, 2).is_ok());
        let won = race(4, |index| match index % 2 {
            0 => u64::from(bucket.try_acquire_at(now, 1).is_ok()),
            _ => bucket.reserve_at(now, 1).map_or(0, |reservation| reservation.settle_at(now, 1).charged),
        });
        assert_eq!(won.iter().sum::<u64>(), 1);
        assert_eq!(bucket.held(), 0);
    }
}

#[test]
fn d02_what_is_taken_settled_and_left_is_the_capacity() {
    let bucket = bucket(quota!("1/30d burst 400 debt 30"));
    let charged = race(4, |index| {
        let mut numbers = Numbers(index as u64);
        let mut held: Vec<Reservation<&Bucket>> = Vec::new();
        let (mut taken, mut given) = (0, 0);
        for _ in 0..20_000 {
            match numbers.below(6) {
                0 => {
                    let cost = numbers.below(20);
                    taken += bucket.try_acquire(cost).map_or(0, |_| cost);
                }
                1 | 2 => held.extend(bucket.reserve(numbers.below(20))),
                3 if !held.is_empty() => {
                    let reservation = held.swap_remove(numbers.below(held.len() as u64) as usize);
                    taken += reservation.settle(numbers.below(30)).charged;
                }
                4 if !held.is_empty() => drop(held.swap_remove(numbers.below(held.len() as u64) as usize)),
                5 if taken > given => {
                    // Never more than this thread took, so that no bucket is over-full.
                    let cost = 1 + numbers.below(taken - given);
                    bucket.refund(cost);
                    given += cost;
                }
                _ => taken += bucket.debit(numbers.below(3)).charged,
            }
        }
        (taken, given)
    });
    let (taken, given) = charged.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(bucket.held(), 0);
    let inspection = bucket.inspect();
    assert_eq!(400 + given, taken + inspection.level - inspection.owed);
}

#[test]
fn d02_no_reservation_is_refused_while_there_is_room_for_it() {
    // Three of three: whoever holds none finds one free.
    let bucket = bucket(quota!("1/30d burst 3"));
    race(3, |_| {
        for round in 0..100_000 {
            match bucket.reserve(1) {
                Ok(reservation) => reservation.cancel(),
                Err(denied) => panic!("round {round}: {denied}"),
            }
        }
    });
    assert_eq!((bucket.held(), bucket.inspect().level), (0, 3));
}

#[test]
fn c08_changes_race_takers_and_holders_and_nothing_is_lost() {
    // The capacity stays, so that what is taken, held and left is always the same, whichever quota is in force. A torn
    // quota, or a decision that lands under another one than it was made under, has other units: the sum would be off.
    let quotas = [
        quota!("1/30d burst 1000"),
        quota!("1/360d burst 1000"),
        quota!("3/10d burst 1000 debt 5"),
        quota!("7/29d burst 1000"),
    ];
    let bucket = bucket(quotas[0]);
    let done = AtomicU64::new(0);
    let taken = race(4, |index| {
        let mut numbers = Numbers(index as u64);
        let mut taken = 0_u64;
        if index == 0 {
            let mut changes = 0_u64;
            while done.load(Ordering::Relaxed) < 3 {
                let quota = quotas[numbers.below(4) as usize];
                if numbers.below(2) == 0 {
                    bucket.adjust(quota, Inheritance::Level);
                } else {
                    let _ = bucket.try_adjust_at(Nanos::ZERO, quota.into(), Inheritance::Level);
                }
                changes += 1;
            }
            assert!(changes > 100);
            return 0;
        }
        let _finished = Finished(&done);
        for _ in 0..60_000 {
            let cost = 1 + numbers.below(5);
            match numbers.below(4) {
                0 => {
                    if bucket.try_acquire(cost).is_ok() {
                        taken += cost;
                    }
                }
                1 => {
                    if let Ok(reservation) = bucket.reserve(cost) {
                        taken += reservation.settle(cost - 1).charged;
                    }
                }
                2 => drop(bucket.reserve(cost)),
                _ => {
                    let cost = cost.min(taken);
                    bucket.refund(cost);
                    taken -= cost;
                }
            }
            let inspection = bucket.inspect();
            assert!(inspection.level <= 1_000 && inspection.capacity == 1_000);
        }
        taken
    });
    assert_eq!((bucket.held(), taken.iter().sum::<u64>() + bucket.inspect().level), (0, 1_000));
}

#[test]
fn c08_limits_are_read_whole_while_two_change_them() {
    let quotas: Vec<_> =
        (1..=64_u64).map(|index| quota!("1/1s").burst(index * 1_000_003).unwrap().with_debt(index).unwrap()).collect();
    let bucket = bucket(quotas[0]);
    let stop = AtomicBool::new(false);
    race(4, |index| {
        let mut numbers = Numbers(index as u64);
        for _ in 0..30_000 {
            if index < 2 {
                bucket.adjust(quotas[numbers.below(64) as usize], Inheritance::Full);
            } else if !stop.load(Ordering::Relaxed) {
                let quota = bucket.limit().quota().unwrap();
                assert_eq!(quota.capacity(), quota.debt() * 1_000_003);
                // A full bucket under whichever quota: its level is its capacity.
                let inspection = bucket.inspect();
                assert_eq!(inspection.level, inspection.capacity);
                assert!(bucket.peek(64 * 1_000_003 + 1).is_err());
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn c08_no_more_is_admitted_than_the_fastest_quota_allows_while_time_goes_on() {
    let quotas = [quota!("7/3us burst 20"), quota!("1/1us burst 20"), quota!("2/1us burst 10")];
    let bucket = bucket(quotas[0]);
    let mut admitted: Vec<(u64, u64)> = race(4, |index| {
        let mut numbers = Numbers(index as u64);
        let mut admitted = Vec::new();
        for _ in 0..4_000 {
            match numbers.below(5) {
                0 => bucket.adjust(quotas[numbers.below(3) as usize], Inheritance::Level),
                1 => bucket.clock().advance(Duration::from_nanos(numbers.below(2_000))),
                2 => {
                    let cost = 1 + numbers.below(4);
                    if let Ok(reservation) = bucket.reserve(cost) {
                        // It counts at some reading from here to there.
                        let before = bucket.clock().now();
                        assert_eq!(reservation.settle(cost).charged, cost);
                        let after = bucket.clock().now();
                        if before == after {
                            admitted.push((before.as_u64(), cost));
                        }
                    }
                }
                _ => {
                    let cost = 1 + numbers.below(5);
                    admitted.extend(bucket.try_acquire(cost).ok().map(|got| (got.at.as_u64(), cost)));
                }
            }
        }
        admitted
    })
    .into_iter()
    .flatten()
    .collect();
    admitted.sort_unstable();
    assert!(admitted.len() > 1_000 && bucket.held() == 0);
    for (index, &(start, _)) in admitted.iter().enumerate() {
        let mut cost = 0;
        for &(end, more) in admitted[index..].iter().take(200) {
            cost += more;
            // All three are exact, and a change rounds down.
            assert!(3_000 * cost <= 3_000 * 20 + 7 * (end - start), "{cost} in {start}..={end}");
        }
    }
}

/// Requests from many threads over shared levels; what each level counted is what was admitted there.
fn spend(threads: usize, opposite: bool) {
    let levels = [
        level("global", quota!("1/30d burst 1000")),
        level("application", quota!("1/30d burst 700")),
        level("feature", quota!("1/30d burst 500")),
    ];
    let tenants: Vec<_> = (0..4).map(|_| level("tenant", quota!("1/30d burst 200"))).collect();
    let admitted = race(threads, |index| {
        let tenant = &tenants[index % 4];
        let mut given: [&Level<dyn Holding + Send + Sync>; 4] = [&levels[0], &levels[1], &levels[2], tenant];
        if opposite && index % 2 == 1 {
            given.reverse();
        }
        let hierarchy = Hierarchy::new(given).unwrap();
        let mut count = 0_u64;
        loop {
            match hierarchy.try_acquire_at(Nanos::ZERO, [1; 4]) {
                Ok(_) => count += 1,
                Err(denied) => {
                    // 4 tenants would have 800: the feature is spent first, unless this tenant is.
                    assert!(denied.name == "feature" || denied.name == "tenant", "{denied}");
                    return (index % 4, count);
                }
            }
        }
    });
    let mut by_tenant = [0; 4];
    admitted.iter().for_each(|&(tenant, count)| by_tenant[tenant] += count);
    let total: u64 = by_tenant.iter().sum();
    assert_eq!(total, 500, "all tenants were asked for until the feature was spent");
    for (level, capacity) in levels.iter().zip([1_000, 700, 500]) {
        assert_eq!(level.limiter().held(), 0);
        assert_eq!(level.limiter().inspect_at(Nanos::ZERO).level, capacity - total, "{}", level.name());
    }
    for (tenant, count) in tenants.iter().zip(by_tenant) {
        assert_eq!((tenant.limiter().held(), tenant.limiter().inspect_at(Nanos::ZERO).level), (0, 200 - count));
    }
}

#[test]
fn c09_threads_in_the_same_order_spend_every_level_exactly() {
    for _ in 0..20 {
        spend(8, false);
    }
    spend(200, false);
}

#[test]
fn c09_threads_in_opposite_orders_spend_every_level_exactly() {
    for _ in 0..20 {
        spend(8, true);
    }
    spend(200, true);
}

#[test]
fn c09_no_request_is_denied_by_a_hold_that_comes_to_nothing() {
    // Two tokens at each level for two threads that have at most one; a third asks for what the last limiter never gives,
    // and so only ever holds.
    struct Never;
    impl Limiter for Never {
        fn try_acquire_at(&self, _: Nanos, _: u64) -> Result<sluicegate_core::Admitted, Denied> {
            Err(Denied::ConcurrencyLimited)
        }
        fn peek_at(&self, now: Nanos, cost: u64) -> Result<sluicegate_core::Admitted, Denied> {
            TokenBucket::with_clock(Limit::Unlimited, ManualClock::new()).peek_at(now, cost)
        }
        fn inspect_at(&self, now: Nanos) -> sluicegate_core::Inspection {
            TokenBucket::with_clock(Limit::Unlimited, ManualClock::new()).inspect_at(now)
        }
    }
    let outer = level("outer", quota!("1/30d burst 2"));
    let inner = Level::with_give_way(
        "inner",
        ShardedWindow::<[Shard; 2], _, _>::with_array(window_limit(2, 1_000_000), ManualClock::new(), FixedShard(0)),
        give_way,
    );
    let stop = AtomicU64::new(0);
    race(3, |index| {
        let hierarchy = Hierarchy::of([&outer as &Level<dyn Holding>, &inner]).unwrap();
        if index == 0 {
            while stop.load(Ordering::Relaxed) < 2 {
                assert!(hierarchy.try_acquire_with_at(Nanos::ZERO, [2, 2], &Never, 1).is_err());
            }
            return;
        }
        let _finished = Finished(&stop);
        for round in 0..20_000 {
            let admitted = hierarchy.try_acquire_at(Nanos::ZERO, [1, 1]);
            assert!(admitted.is_ok(), "round {round}: {admitted:?}");
            outer.limiter().refund(1);
            inner.limiter().refund(Nanos::ZERO, 1);
        }
    });
    assert_eq!((outer.limiter().held(), outer.limiter().inspect_at(Nanos::ZERO).level), (0, 2));
    assert_eq!(inner.limiter().inspect_at(Nanos::ZERO).level, 2);
}

#[test]
fn c09_a_denial_does_not_wait_until_a_busy_level_is_quiet() {
    // Eight threads on few cores hold all the time, one or another of them suspended while it does. What they hold is far
    // less than what the ninth lacks.
    let (outer, inner) =
        (level("outer", quota!("1/30d burst 4_000_000_000")), level("inner", quota!("1/30d burst 4_000_000_000")));
    assert!(inner.try_acquire_at(Nanos::ZERO, 3_000_000_000).is_ok());
    let stop = AtomicU64::new(0);
    race(9, |index| {
        let hierarchy = Hierarchy::new([&outer, &inner]).unwrap();
        if index > 0 {
            while stop.load(Ordering::Relaxed) == 0 {
                assert!(hierarchy.try_acquire_at(Nanos::ZERO, [1, 1]).is_ok());
            }
            return;
        }
        let _finished = Finished(&stop);
        for _ in 0..2_000 {
            let denied = hierarchy.try_acquire_at(Nanos::ZERO, [1, 2_000_000_000]).unwrap_err();
            assert!(denied.level == 1 && denied.denied.retry_after().is_some(), "{denied}");
            assert!(inner.try_acquire_at(Nanos::ZERO, 2_000_000_000).is_err());
        }
    });
    assert_eq!(outer.limiter().held() + inner.limiter().held(), 0);
}
