//! Threads that race: nothing is admitted twice, lost, or denied while it is there.
//!
//! The models in `loom-tests` visit every interleaving of few operations; these visit few interleavings of very many.

mod support;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::HashMap;

use sluicegate_core::{
    BucketCell, BucketStep, Clock, CounterShard, Denied, FixedShard, HashedShard, ManualClock, Nanos, Shard,
    ShardedWindow, TokenBucket, quota,
};
use support::{AnyWindow, Numbers, ThreadShard, Wandering, Yielding, race, sharded, window_limit};

const WIDTH: u64 = 1_000_000;

/// A window of each kind of shard number.
fn windows(limit: u64, shards: usize) -> [Box<dyn AnyWindow>; 4] {
    let limit = window_limit(limit, WIDTH);
    [
        sharded(limit, shards, ThreadShard),
        sharded(limit, shards, Yielding(CounterShard::new())),
        sharded(limit, shards, Yielding(HashedShard::of(&shards))),
        sharded(limit, shards, Yielding(FixedShard(1))),
    ]
}

#[test]
fn the_last_token_goes_to_one() {
    let step = BucketStep::new(quota!("1/1h burst 3"));
    for round in 0..300 {
        let cell = BucketCell::new();
        let now = Nanos::new(round);
        assert!(cell.try_acquire(&step, now, 2).is_ok());
        let winners = race(4, |_| cell.try_acquire(&step, now, 1).is_ok()).into_iter().filter(|&won| won).count();
        assert_eq!(winners, 1);
    }
}

#[test]
fn the_last_unit_of_a_window_goes_to_one_wherever_it_lies() {
    for shards in [1, 2, 5] {
        for round in 0..60 {
            for window in windows(7, shards) {
                let now = Nanos::new(round);
                assert!(window.try_acquire_at(now, 6).is_ok());
                let winners = race(4, |_| window.try_acquire_at(now, 1).is_ok()).into_iter().filter(|&won| won).count();
                assert_eq!(winners, 1, "{shards} shards");
            }
        }
    }
}

/// What a thread that takes and gives back at random still holds at the end.
fn churn(
    rounds: u64,
    seed: u64,
    largest: u64,
    mut acquire: impl FnMut(u64) -> Option<Nanos>,
    mut refund: impl FnMut(Nanos, u64),
) -> u64 {
    let mut numbers = Numbers(seed);
    let mut held: Vec<(Nanos, u64)> = Vec::new();
    for _ in 0..rounds {
        if numbers.below(2) == 0 {
            let cost = 1 + numbers.below(largest);
            held.extend(acquire(cost).map(|at| (at, cost)));
        } else if let Some((at, cost)) = held.pop() {
            // All of it, or a part.
            let back = 1 + numbers.below(cost);
            refund(at, back);
            if back < cost {
                held.push((at, cost - back));
            }
        }
    }
    held.iter().map(|&(_, cost)| cost).sum()
}

#[test]
fn what_is_held_and_what_is_free_make_a_full_bucket() {
    let bucket = TokenBucket::with_clock(quota!("100/1h burst 40"), ManualClock::at(Nanos::new(5)));
    let held = race(4, |index| {
        churn(
            20_000,
            index as u64,
            15,
            |cost| bucket.try_acquire(cost).ok().map(|admitted| admitted.at),
            |_, cost| bucket.refund(cost),
        )
    });
    assert_eq!(held.iter().sum::<u64>() + bucket.inspect().level, 40);
}

#[test]
fn no_refund_is_lost_and_no_token_denied_while_it_is_there() {
    // Nothing between the calls, so that they meet as often as they can.
    let step = BucketStep::new(quota!("1/30d burst 4"));
    let cell = BucketCell::new();
    let now = Nanos::new(5);
    race(4, |_| {
        for round in 0..300_000 {
            assert!(cell.try_acquire(&step, now, 1).is_ok(), "round {round}");
            cell.refund(&step, 1);
        }
    });
    assert_eq!(cell.inspect(&step, now).level, 4);
}

#[test]
fn what_is_held_and_what_is_free_make_a_full_window() {
    for shards in [1, 2, 3, 8, 16] {
        for window in windows(40, shards) {
            let held = race(4, |index| {
                churn(
                    3_000,
                    index as u64,
                    15,
                    |cost| window.try_acquire(cost).ok().map(|admitted| admitted.at),
                    |at, cost| window.refund(at, cost),
                )
            });
            let free = window.inspect_at(Nanos::ZERO).level;
            assert_eq!(held.iter().sum::<u64>() + free, 40, "{shards} shards");
            for _ in 0..free {
                assert!(window.try_acquire(1).is_ok());
            }
            assert!(window.try_acquire(1).is_err());
        }
    }
}

#[test]
fn costs_over_several_shards_and_single_ones_spend_a_window_exactly() {
    for shards in [2, 4, 7] {
        for round in 0..40 {
            for window in windows(101, shards) {
                // Slices are 50, 25 and 14; the large costs take from several shards and the last of them give up.
                let costs = [1, 60, 33, 1 + round % 20];
                let taken = race(4, |index| {
                    let mut sum = 0;
                    while window.try_acquire(costs[index]).is_ok() {
                        sum += costs[index];
                    }
                    sum
                });
                assert_eq!(taken.iter().sum::<u64>(), 101, "{shards} shards: who asks for 1 is denied only at the end");
            }
        }
    }
}

/// Three threads hold at most `cost` each, of three times that: whoever holds nothing finds `cost` free.
fn never_denied(shards: usize, cost: u64, rounds: u64, pieces: u64) {
    for window in windows(3 * cost, shards) {
        race(3, |_| {
            for round in 0..rounds {
                match window.try_acquire(cost) {
                    // Given back at once, or piece by piece.
                    Ok(admitted) => (0..pieces).for_each(|_| window.refund(admitted.at, cost / pieces)),
                    Err(denied) => panic!("round {round}, {cost} over {shards}: {denied}"),
                }
            }
        });
        assert_eq!(window.inspect_at(Nanos::ZERO).level, 3 * cost);
    }
}

#[test]
fn no_single_unit_is_denied_while_one_is_free() {
    never_denied(2, 1, 20_000, 1);
    never_denied(3, 1, 10_000, 1);
    never_denied(8, 1, 5_000, 1);
}

#[test]
fn no_cost_over_several_shards_is_denied_while_enough_is_free() {
    never_denied(2, 4, 5_000, 1);
    never_denied(5, 4, 3_000, 2);
    never_denied(16, 10, 1_000, 5);
}

#[test]
fn no_unit_is_denied_while_the_free_ones_move_about() {
    // Two units are free among very many shards, for two callers who hold one at most. The unit that a caller looks for
    // may be taken before it gets there and another be given back behind it: it has to look again.
    const SHARDS: usize = 256;
    for cost in [1, 2] {
        let units = SHARDS as u64;
        let window: ShardedWindow<[Shard; SHARDS], _, _> =
            ShardedWindow::with_array(window_limit(units, WIDTH), ManualClock::new(), Wandering);
        let now = Nanos::ZERO;
        assert!(window.try_acquire_at(now, units - 2 * cost).is_ok());
        race(2, |index| {
            let mut numbers = Numbers(index as u64);
            for round in 0..15_000 {
                Wandering::go_to(numbers.below(units) as usize);
                let admitted = window.try_acquire_at(now, cost);
                assert!(admitted.is_ok(), "{cost} are free in round {round}: {admitted:?}");
                Wandering::go_to(numbers.below(units) as usize);
                window.refund(now, cost);
            }
        });
        assert_eq!(window.inspect_at(now).level, 2 * cost);
    }
}

#[test]
fn no_unit_is_denied_while_a_large_cost_tries_and_fails() {
    // One unit is held for good, so that the large cost never fits. Four are free for two threads that hold two at most.
    for shards in [2, 3, 5] {
        for window in windows(6, shards) {
            assert!(window.try_acquire(1).is_ok());
            let stop = AtomicBool::new(false);
            race(3, |index| {
                if index == 0 {
                    while !stop.load(Ordering::Relaxed) {
                        assert!(window.try_acquire(6).is_err(), "5 are free at most");
                    }
                    return;
                }
                for _ in 0..4_000 {
                    let admitted = window.try_acquire(2).expect("2 are free");
                    window.refund(admitted.at, 2);
                }
                stop.store(true, Ordering::Relaxed);
            });
            assert_eq!(window.inspect_at(Nanos::ZERO).level, 5);
        }
    }
}

#[test]
fn what_is_seen_free_only_shrinks_while_others_take() {
    for shards in [1, 4, 16] {
        for window in windows(20_000, shards) {
            let done = AtomicU64::new(0);
            race(3, |index| {
                if index == 0 {
                    let mut last = 20_000;
                    while done.load(Ordering::Relaxed) < 2 {
                        let level = window.inspect_at(Nanos::ZERO).level;
                        assert!(level <= last, "{level} after {last}");
                        last = level;
                    }
                    return;
                }
                while window.try_acquire(3).is_ok() {}
                done.fetch_add(1, Ordering::Relaxed);
            });
            assert!(window.inspect_at(Nanos::ZERO).level < 3);
        }
    }
}

#[test]
fn each_window_is_spent_exactly_while_readings_are_late_and_time_goes_on() {
    for (shards, limit) in [(1, 5), (2, 7), (3, 2), (4, 50), (8, 9)] {
        for window in windows(limit, shards) {
            // One thread's reading is taken and used at once; others use theirs only after a while.
            let clock = ManualClock::new();
            let records = race(4, |index| {
                let mut numbers = Numbers(index as u64);
                let (mut admitted, mut denied) = (HashMap::<u64, u64>::new(), HashMap::<u64, u64>::new());
                let mut readings = [Nanos::ZERO; 4];
                for round in 0..4_000 {
                    readings[round % 4] = clock.now();
                    let now = readings[(round + index) % 4];
                    match window.try_acquire_at(now, 1) {
                        Ok(got) => {
                            assert!(got.at.as_u64() / WIDTH >= now.as_u64() / WIDTH);
                            *admitted.entry(got.at.as_u64() / WIDTH).or_default() += 1;
                        }
                        Err(Denied::RateLimited { retry_after }) => {
                            let end = (now + retry_after).as_u64();
                            assert_eq!(end % WIDTH, 0, "the end of a window");
                            *denied.entry(end / WIDTH - 1).or_default() += 1;
                        }
                        Err(other) => panic!("{other}"),
                    }
                    if numbers.below(8) == 0 {
                        clock.advance(Duration::from_nanos(numbers.below(WIDTH)));
                    }
                }
                (admitted, denied)
            });
            let (mut admitted, mut denied) = (HashMap::<u64, u64>::new(), HashMap::<u64, u64>::new());
            for (ours, theirs) in &records {
                ours.iter().for_each(|(&window, count)| *admitted.entry(window).or_default() += count);
                theirs.iter().for_each(|(&window, count)| *denied.entry(window).or_default() += count);
            }
            for (window, &count) in &admitted {
                assert!(count <= limit, "{count} of {limit} in window {window} over {shards}");
            }
            for window in denied.keys() {
                assert_eq!(admitted.get(window), Some(&limit), "denied in window {window} over {shards}");
            }
            assert!(!denied.is_empty() && admitted.len() > 100, "windows were spent, and many");
        }
    }
}

#[test]
fn a_bucket_keeps_to_the_law_while_time_goes_on() {
    let quota = quota!("7/3us burst 20");
    let bucket = TokenBucket::with_clock(quota, ManualClock::new());
    let mut admitted: Vec<(u64, u64)> = race(4, |index| {
        let mut numbers = Numbers(index as u64);
        let mut admitted = Vec::new();
        for _ in 0..3_000 {
            let cost = 1 + numbers.below(5);
            admitted.extend(bucket.try_acquire(cost).ok().map(|got| (got.at.as_u64(), cost)));
            if numbers.below(4) == 0 {
                bucket.clock().advance(Duration::from_nanos(numbers.below(2_000)));
            }
        }
        admitted
    })
    .into_iter()
    .flatten()
    .collect();
    admitted.sort_unstable();
    assert!(admitted.len() > 1_000);
    for (index, &(start, _)) in admitted.iter().enumerate() {
        let mut cost = 0;
        for &(end, more) in admitted[index..].iter().take(200) {
            cost += more;
            assert!(3_000 * cost <= 3_000 * 20 + 7 * (end - start), "{cost} in {start}..={end}");
        }
    }
}
