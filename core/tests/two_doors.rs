//! Part A of CONFORMANCE.md, as far as it is the core's: the two doors.

mod support;

use core::sync::atomic::{AtomicI64, Ordering};
use core::time::Duration;

use sluicegate_core::{
    BucketState, BucketStep, Clock, CounterShard, Denied, FixedShard, HashedShard, ManualClock, Nanos, Quota, Rate,
    Remaining, Shard, ShardedWindow, TokenBucket, WindowLimit, WindowStep, quota,
};
use support::{Numbers, SHARDS, ThreadShard, Wandering, Yielding, race, sharded, window_limit};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;

#[test]
fn a04_the_monotonic_clock_names_the_window() {
    for width in [1, 7, 1_000, SECOND, MINUTE, 86_400 * SECOND] {
        let step = WindowStep::new(Rate::new(2, Duration::from_nanos(width)).unwrap()).unwrap();
        for number in [0, 1, 2, 10_003] {
            for within in [0, 1, width / 2, width - 1] {
                let now = Nanos::new(number * width + within % width);
                assert_eq!(step.start_of(now), Nanos::new(number * width), "{now} in windows of {width}");
            }
        }
    }
    // The first reading of a window opens it, and the last one is still in it.
    let window = sharded(window_limit(1, SECOND), 2, ThreadShard);
    for number in [0, 1, 2, 1_000_003, 1_000_004] {
        assert!(window.try_acquire_at(Nanos::new(number * SECOND), 1).is_ok());
        assert!(window.try_acquire_at(Nanos::new(number * SECOND + SECOND - 1), 1).is_err());
    }
}

/// A computer: its wall clock can be set, its monotonic clock only goes on.
#[derive(Default)]
struct Computer {
    wall: AtomicI64,
    uptime: ManualClock,
}

impl Computer {
    fn pass(&self, span: u64) {
        self.uptime.advance(Duration::from_nanos(span));
        self.wall.fetch_add(span as i64, Ordering::Relaxed);
    }

    fn set_wall_clock(&self, by: i64) {
        self.wall.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for &'static Computer {
    fn now(&self) -> Nanos {
        self.uptime.now()
    }
}

#[test]
fn a05_a_step_of_the_system_clock_neither_opens_nor_extends_a_window() {
    let computer: &'static Computer = Box::leak(Box::default());
    let window: ShardedWindow<[Shard; 3], _, _> =
        ShardedWindow::with_array(window_limit(5, MINUTE), computer, FixedShard(0));
    let year = 31_557_600 * SECOND as i64;
    for step in [0, MINUTE as i64, -(MINUTE as i64), year, -year, 1, -1] {
        for _ in 0..5 {
            assert!(window.try_acquire(1).is_ok());
        }
        computer.pass(MINUTE / 4);
        computer.set_wall_clock(step);
        let left = Duration::from_nanos(MINUTE - MINUTE / 4);
        assert_eq!(window.try_acquire(1), Err(Denied::RateLimited { retry_after: left }), "not opened");
        computer.pass(MINUTE - MINUTE / 4 - 1);
        assert!(window.try_acquire(1).is_err(), "not opened");
        computer.pass(1);
        assert_eq!(window.inspect().level, 5, "not extended");
    }
}

#[test]
fn a05_nor_does_a_step_of_the_limiters_own_clock() {
    let window = sharded(window_limit(5, MINUTE), 3, ThreadShard);
    let clock = window.clock();
    clock.set(Nanos::new(10 * MINUTE + MINUTE / 2));
    assert!(window.try_acquire(5).is_ok());
    for back in [MINUTE / 2, MINUTE, 5 * MINUTE] {
        clock.set(Nanos::new(10 * MINUTE + MINUTE / 2 - back));
        let until_the_end = Duration::from_nanos(MINUTE / 2 + back);
        assert_eq!(window.try_acquire(1), Err(Denied::RateLimited { retry_after: until_the_end }));
    }
    clock.set(Nanos::new(11 * MINUTE));
    assert_eq!(window.try_acquire(5).map(|admitted| admitted.at), Ok(Nanos::new(11 * MINUTE)));
}

#[test]
fn a11_a_limit_of_n_admits_exactly_n_racing_callers() {
    for limit in [1, 7, 100, 1_000] {
        for threads in [2, 16, 200] {
            let quota = Quota::per_minute(limit).unwrap();
            let bucket = TokenBucket::with_clock(quota, ManualClock::at(Nanos::new(17)));
            let demand = (2 * limit).div_ceil(threads as u64) + 1;
            let admitted = race(threads, |_| (0..demand).filter(|_| bucket.try_acquire(1).is_ok()).count() as u64);
            assert_eq!(admitted.iter().sum::<u64>(), limit, "{threads} threads");
            assert!(bucket.try_acquire(1).is_err());
        }
    }
}

#[test]
fn a11_also_at_differing_costs() {
    let bucket = TokenBucket::with_clock(quota!("1000/1h"), ManualClock::new());
    let admitted = race(16, |index| {
        let cost = 1 + index as u64 % 4;
        let mut sum = 0;
        while bucket.try_acquire(cost).is_ok() {
            sum += cost;
        }
        sum
    });
    assert_eq!(admitted.iter().sum::<u64>(), 1000, "those who ask for 1 take the rest");
}

#[test]
fn a12_every_polling_pattern_earns_the_same_tokens() {
    for text in ["7/3s burst 1_000", "1_000/1s", "300/1m burst 10_000", "999_983/1s", "1/97s burst 100"] {
        let quota = Quota::parse(text).unwrap();
        let step = BucketStep::new(quota);
        let end = 100 * SECOND;
        let earned = |next: &mut dyn FnMut(u64) -> u64| {
            let (state, decision) = step.try_acquire(BucketState::FULL, Nanos::ZERO, quota.capacity());
            assert!(decision.is_ok());
            let (mut state, mut now, mut total) = (state, 0, 0);
            loop {
                let level = step.inspect(state, Nanos::new(now)).level;
                assert!(level < quota.capacity(), "nothing may be lost to a full bucket");
                state = step.try_acquire(state, Nanos::new(now), level).0;
                total += level;
                if now == end {
                    return total;
                }
                now = next(now).min(end);
            }
        };
        let expected =
            (u128::from(end) * u128::from(quota.rate().tokens()) / u128::from(quota.rate().period_nanos())) as u64;
        let mut numbers = Numbers(1);
        // Every millisecond and often much more rarely; in steps that fit nothing; at random; in bursts of nanoseconds.
        assert_eq!(earned(&mut |now| now + 10_000_000), expected, "{text}");
        assert_eq!(earned(&mut |now| now + 7_654_321), expected, "{text}");
        assert_eq!(earned(&mut |now| now + 900_000_000 / (1 + quota.rate().tokens() / 1_000)), expected, "{text}");
        assert_eq!(earned(&mut |now| now + 1 + numbers.below(20_000_000)), expected, "{text}");
        assert_eq!(earned(&mut |now| if now % 50 < 40 { now + 1 } else { now + 9_000_003 }), expected, "{text}");
    }
}

#[test]
fn a13_retry_after_is_when_the_next_sufficient_token_arrives() {
    let bucket = TokenBucket::with_clock(quota!("10/1m"), ManualClock::at(Nanos::new(50 * SECOND)));
    assert!(bucket.try_acquire(10).is_ok());
    let retry_after = |cost| bucket.try_acquire(cost).unwrap_err().retry_after();
    assert_eq!(retry_after(1), Some(Duration::from_secs(6)), "not the 10 s to the end of the minute");
    assert_eq!(retry_after(3), Some(Duration::from_secs(18)));
    assert_eq!(retry_after(10), Some(Duration::from_secs(60)));
    assert_eq!(retry_after(11), None, "never");

    bucket.clock().advance(Duration::from_millis(4_500));
    assert_eq!(retry_after(1), Some(Duration::from_millis(1_500)), "part of it has flowed in");
    bucket.clock().advance(Duration::from_nanos(1_499_999_999));
    assert_eq!(retry_after(1), Some(Duration::from_nanos(1)));
    bucket.clock().advance(Duration::from_nanos(1));
    assert!(bucket.try_acquire(1).is_ok());

    // A seventh of 3 s is no whole number of nanoseconds: the first one after it.
    let bucket = TokenBucket::with_clock(quota!("7/3s"), ManualClock::new());
    assert!(bucket.try_acquire(7).is_ok());
    assert_eq!(bucket.try_acquire(1).unwrap_err().retry_after(), Some(Duration::from_nanos(428_571_429)));
    assert_eq!(bucket.try_acquire(2).unwrap_err().retry_after(), Some(Duration::from_nanos(857_142_858)));
}

#[test]
fn a15_shard_caps_sum_to_exactly_the_limit() {
    for shards in SHARDS {
        for limit in (1..=100).chain([1_000_003, u64::from(u32::MAX)]) {
            let caps = sharded(window_limit(limit, MINUTE), shards, ThreadShard).caps();
            assert_eq!(caps.iter().sum::<u64>(), limit);
            let larger = (limit % shards as u64) as usize;
            for (index, &cap) in caps.iter().enumerate() {
                assert_eq!(cap, limit / shards as u64 + u64::from(index < larger), "{limit} over {shards}");
            }
        }
    }
}

#[test]
fn a15_each_shard_is_held_to_its_cap() {
    // Callers of shard 1 alone fill shard 1 first: what they leave free there is all that `remaining` counts.
    let window = sharded(window_limit(11, MINUTE), 4, FixedShard(1));
    let remaining: Vec<_> = (0..11).map(|_| window.try_acquire(1).unwrap().remaining.at_least()).collect();
    assert_eq!(remaining, [2, 1, 0, 2, 1, 0, 1, 0, 2, 1, 0]);
}

#[test]
fn a16_a_caller_whose_shard_is_spent_sweeps_the_others() {
    for shards in SHARDS {
        for limit in [1, 2, 3, 5, 16, 17, 100] {
            for shard in [0, 1, shards - 1, shards, usize::MAX] {
                let window = sharded(window_limit(limit, MINUTE), shards, FixedShard(shard));
                for taken in 0..limit {
                    assert!(window.try_acquire(1).is_ok(), "{taken} of {limit} over {shards}");
                }
                let retry_after = Duration::from_nanos(MINUTE);
                assert_eq!(window.try_acquire(1), Err(Denied::RateLimited { retry_after }));
            }
        }
    }
}

#[test]
fn a16_uneven_load_never_denies_early() {
    let window = sharded(window_limit(100, MINUTE), 8, Wandering);
    let mut numbers = Numbers(3);
    for taken in 0..100 {
        // Nine of ten callers on one shard.
        Wandering::go_to(if taken % 10 == 0 { numbers.below(8) as usize } else { 5 });
        assert!(window.try_acquire(1).is_ok(), "{taken}");
    }
    for shard in 0..8 {
        Wandering::go_to(shard);
        assert!(window.try_acquire(1).is_err());
    }
}

#[test]
fn a17_racing_callers_are_admitted_exactly_to_the_limit() {
    for threads in [200, 400] {
        for (shards, limit) in [(1, 100), (2, 199), (3, 1), (4, 250), (7, 150), (8, 3), (16, 399), (16, 100)] {
            let limit_of = window_limit(limit, MINUTE);
            for window in [
                sharded(limit_of, shards, Yielding(CounterShard::new())),
                sharded(limit_of, shards, Yielding(HashedShard::of("all alike"))),
                sharded(limit_of, shards, Yielding(FixedShard(0))),
                sharded(limit_of, shards, ThreadShard),
            ] {
                let admitted = race(threads, |_| window.try_acquire(1).is_ok());
                let admitted = admitted.iter().filter(|&&is| is).count() as u64;
                assert_eq!(admitted, limit.min(threads as u64), "{threads} threads, {limit} over {shards}");
            }
        }
    }
}

#[test]
fn a17_denied_retries_cannot_run_a_counter_away() {
    for (shards, limit) in [(1, 1), (4, 3), (4, 100)] {
        let window = sharded(window_limit(limit, MINUTE), shards, ThreadShard);
        let admitted = race(4, |index| {
            let costs = [1, 2, limit, u64::MAX - index as u64];
            (0..20_000).map(|round| costs[round % 4]).filter(|&cost| window.try_acquire(cost).is_ok()).sum::<u64>()
        });
        assert_eq!(admitted.iter().sum::<u64>(), limit);
        // A count that had run on would swallow what is given back.
        window.refund(Nanos::ZERO, 1);
        assert_eq!(window.inspect_at(Nanos::ZERO).level, 1);
        assert!(window.try_acquire(1).is_ok());
        assert!(window.try_acquire(1).is_err());
        // And it would have spilled into the window's number.
        window.clock().set(Nanos::new(MINUTE));
        assert!(window.try_acquire(limit).is_ok());
        assert!(window.try_acquire(1).is_err());
    }
}

#[test]
fn a18_a_cost_above_a_slice_takes_from_several_all_or_nothing() {
    for shards in SHARDS {
        let window = sharded(window_limit(20, MINUTE), shards, Wandering);
        for cost in [7, 0, 6, 5] {
            Wandering::go_to(cost as usize);
            assert!(window.try_acquire(cost).is_ok(), "{cost} over {shards}");
        }
        for cost in [3, 20] {
            assert!(window.try_acquire(cost).is_err());
            assert_eq!(window.inspect_at(Nanos::ZERO).level, 2, "a denied cost takes nothing");
        }
        let (limit, cost) = (20, 21);
        assert_eq!(window.try_acquire(cost), Err(Denied::CostExceedsLimit { cost, limit }));
        assert!(window.try_acquire(2).is_ok(), "the last units, wherever they lie");
        assert_eq!(window.inspect_at(Nanos::ZERO).level, 0);
    }
    // A unit free in each of many shards is enough for a cost of that many.
    let window = sharded(window_limit(32, MINUTE), 16, Wandering);
    for shard in 0..16 {
        Wandering::go_to(shard);
        assert!(window.try_acquire(1).is_ok());
    }
    assert!(window.try_acquire(17).is_err());
    assert!(window.try_acquire(16).is_ok());
}

#[test]
fn a18_is_never_denied_while_enough_is_free() {
    // Of 24 units three racing callers need at most 8 each: none may ever be denied.
    let window = sharded(window_limit(24, MINUTE), 6, ThreadShard);
    race(3, |_| {
        for _ in 0..5_000 {
            let admitted = window.try_acquire(8).expect("8 are free");
            window.refund(admitted.at, 8);
        }
    });
    assert_eq!(window.inspect_at(Nanos::ZERO).level, 24);
}

#[test]
fn a19_a_change_in_available_cores_moves_no_cap() {
    let window = sharded(window_limit(13, MINUTE), 4, Wandering);
    let caps = window.caps();
    for cores in [1_usize, 2, 4, 64, 1_000_000, usize::MAX] {
        let mut admitted = 0;
        for caller in 0..40 {
            Wandering::go_to(caller % cores);
            admitted += u64::from(window.try_acquire(1).is_ok());
        }
        assert_eq!(admitted, 13, "{cores} cores");
        assert_eq!((window.shard_count(), window.caps()), (4, caps.clone()));
        window.clock().advance(Duration::from_nanos(MINUTE));
    }
}

#[test]
fn a20_retry_after_is_what_is_left_of_the_window() {
    for shards in [1, 4] {
        let window = sharded(window_limit(10, MINUTE), shards, ThreadShard);
        for within in [0, 1, 50 * SECOND, MINUTE - 1] {
            let start = (window.clock().now().as_u64() / MINUTE + 1) * MINUTE;
            window.clock().set(Nanos::new(start + within));
            assert!(window.try_acquire(10).is_ok());
            for cost in [1, 10] {
                let retry_after = Duration::from_nanos(MINUTE - within);
                assert_eq!(window.try_acquire(cost), Err(Denied::RateLimited { retry_after }));
                let hinted = Nanos::new(start + within) + retry_after;
                assert!(window.peek_at(hinted, cost).is_ok());
                assert!(window.peek_at(hinted - Duration::from_nanos(1), cost).is_err());
            }
        }
    }
}

#[test]
fn a20_the_only_burst_is_twice_the_limit_across_one_boundary() {
    let (limit, width) = (10, 1_000);
    let window = sharded(window_limit(limit, width), 4, ThreadShard);
    // All of window 0 at its end, all of the next at its start.
    let mut admitted = Vec::new();
    for now in [999, 1_000, 1_001, 1_500, 1_999, 2_000, 2_999, 3_000, 3_001, 4_999] {
        while window.try_acquire_at(Nanos::new(now), 1).is_ok() {
            admitted.push(now);
        }
    }
    let within = |from: u64, until: u64| admitted.iter().filter(|&&at| from <= at && at < until).count() as u64;
    assert_eq!(within(999, 1_001), 2 * limit, "the burst");
    for from in 0..5_000 {
        assert!(within(from, from + width) <= 2 * limit);
        if from % width == 0 {
            assert!(within(from, from + width) <= limit);
        }
    }
}

#[test]
fn a21_the_two_doors_count_independently() {
    let limit = quota!("5/1m");
    let clock = ManualClock::new();
    let bucket = TokenBucket::with_clock(limit, &clock);
    let window: ShardedWindow<[Shard; 2], _, _> =
        ShardedWindow::with_array(WindowLimit::try_from(limit).unwrap(), &clock, FixedShard(0));
    assert!(bucket.try_acquire(5).is_ok() && bucket.try_acquire(1).is_err());
    assert_eq!(window.inspect().level, 5);
    assert_eq!(window.try_acquire(1).map(|admitted| admitted.remaining), Ok(Remaining::AtLeast(2)));
}
