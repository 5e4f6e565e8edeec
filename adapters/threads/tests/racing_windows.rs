//! Sharded windows under 200 and 400 racing threads, over several shard counts and sources of shard numbers.

mod common;

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use common::{Choices, race};
use sluicegate_threads::sluicegate_core::ShardedWindow;
use sluicegate_threads::{
    Clock, CounterShard, Denied, ManualClock, Nanos, OsClock, PER_HOUR, Rate, Shard, ShardId, ThreadShard, quota,
    sharded_window, sharded_window_with,
};

#[test]
fn a17_limit_n_admits_exactly_n_and_denies_the_next() {
    over_all_shards(|threads, window_of| {
        for limit in [1, threads as u64 - 1, 7 * threads as u64 + 3] {
            let window = window_of(limit);
            let admitted: usize =
                race(threads, |_| (0..10).filter(|_| window.try_acquire(1).is_ok()).count()).iter().sum();
            assert_eq!(admitted as u64, limit);
            assert!(matches!(window.try_acquire(1), Err(Denied::RateLimited { .. })));
            assert_eq!(window.inspect().level, 0);
        }
    });
}

#[test]
fn a16_demand_that_fits_is_admitted_whole() {
    over_all_shards(|threads, window_of| {
        let window = window_of(5 * threads as u64);
        let denied: usize = race(threads, |_| (0..5).filter(|_| window.try_acquire(1).is_err()).count()).iter().sum();
        assert_eq!(denied, 0);
    });
}

#[test]
fn a17_denied_retries_cannot_run_a_counter_away() {
    over_all_shards(|threads, window_of| {
        let window = window_of(100);
        let taken = window.try_acquire(100).unwrap();
        let admitted: usize = race(threads, |_| (0..50).filter(|_| window.try_acquire(1).is_ok()).count()).iter().sum();
        assert_eq!(admitted, 0);

        // What comes free afterwards, in this window or the next, is neither less nor more for it.
        window.refund(taken.at, 3);
        assert_eq!(
            race(threads, |_| window.try_acquire(1).is_ok()).into_iter().filter(|&admitted| admitted).count(),
            3
        );
        window.clock().advance(PER_HOUR);
        let admitted: usize = race(threads, |_| usize::from(window.try_acquire(1).is_ok())).iter().sum();
        assert_eq!(admitted, 100);
    });
}

#[test]
fn a18_costs_over_several_shards_are_never_denied_while_they_fit() {
    over_all_shards(|threads, window_of| {
        // Half the callers ask for one unit at a time, half for 23 at once; all of it together is just the limit.
        let limit = threads as u64 / 2 * (10 + 23);
        let window = window_of(limit);
        let denied: usize = race(threads, |index| match index % 2 {
            0 => (0..10).filter(|_| window.try_acquire(1).is_err()).count(),
            _ => usize::from(window.try_acquire(23).is_err()),
        })
        .iter()
        .sum();
        assert_eq!(denied, 0);
        assert!(window.try_acquire(1).is_err());
    });
}

#[test]
fn a18_nobody_is_denied_while_all_that_anyone_ever_holds_fits() {
    // Each caller takes its cost and gives it back, again and again. All costs together are the limit, so at every instant
    // enough is free for whoever asks, and every denial is wrong; tentative holds and half-done refunds are no excuse.
    // Shard numbers that change with each call also move the free units about.
    for (callers, turns) in [(4, 20_000), (200, 200)] {
        let costs: Vec<u64> = (0..callers).map(|index| [1, 3, 1, 5][index % 4]).collect();
        let limit = costs.iter().sum();
        for shards in [2, 8] {
            let shards = NonZeroUsize::new(shards).unwrap();
            for window in [window(limit, shards, ThreadShard), window(limit, shards, CounterShard::new())] {
                let denied: usize = race(callers, |index| {
                    let is_denied = |_: &usize| match window.try_acquire(costs[index]) {
                        Ok(admitted) => {
                            window.refund(admitted.at, costs[index]);
                            false
                        }
                        Err(_) => true,
                    };
                    (0..turns).filter(is_denied).count()
                })
                .iter()
                .sum();
                assert_eq!(denied, 0, "{callers} callers, {shards} shards");
                assert_eq!(window.inspect().level, limit);
            }
        }
    }
}

#[test]
fn a17_costs_and_refunds_are_conserved() {
    const LIMIT: u64 = 1_000;
    over_all_shards(|threads, window_of| {
        let window = window_of(LIMIT);
        // Counted after it was admitted and uncounted before it is given back: never above what is really out.
        let out = AtomicU64::new(0);
        let kept: u64 = race(threads, |index| {
            let mut choices = Choices::new(index);
            let (mut mine, mut at) = (0, Nanos::ZERO);
            for _ in 0..30 {
                let cost = if choices.below(2) == 0 { 1 } else { 1 + choices.below(LIMIT / 4) };
                if let Ok(admitted) = window.try_acquire(cost) {
                    mine += cost;
                    at = admitted.at;
                    let seen = out.fetch_add(cost, Ordering::SeqCst) + cost;
                    assert!(seen <= LIMIT, "{seen} out of {LIMIT}");
                }
                if mine > 0 && choices.below(3) != 0 {
                    let back = 1 + choices.below(mine);
                    out.fetch_sub(back, Ordering::SeqCst);
                    window.refund(at, back);
                    mine -= back;
                }
            }
            mine
        })
        .iter()
        .sum();
        let free = window.inspect().level;
        assert_eq!(kept + free, LIMIT);
        window.try_acquire(free).unwrap();
        assert!(window.try_acquire(1).is_err());
    });
}

#[test]
fn a05_late_readings_neither_reopen_a_window_nor_reset_one() {
    over_all_shards(|threads, window_of| {
        let limit = threads as u64;
        let window = window_of(limit);
        let (before, after) = (Nanos::ZERO + 3 * PER_HOUR, Nanos::ZERO + 4 * PER_HOUR);
        assert!(window.try_acquire_at(before, limit).is_ok());
        assert!(window.try_acquire_at(after, limit).is_ok(), "a new window");
        // Both windows are spent now; every other caller is late.
        let admitted = race(threads, |index| {
            (0..10).any(|step| window.try_acquire_at(if (index + step) % 2 == 0 { before } else { after }, 1).is_ok())
        });
        assert!(!admitted.contains(&true));
    });
}

#[test]
fn a04_callers_race_across_a_boundary() {
    over_all_shards(|threads, window_of| {
        let limit = threads as u64 + 1;
        let window = window_of(limit);
        // All ask in the window of hour 7 and then in the next, so both are spent, each exactly.
        let admitted = race(threads, |_| {
            [7, 8].map(|hour| {
                let now = Nanos::ZERO + hour * PER_HOUR;
                (0..6).filter(|_| window.try_acquire_at(now, 1).is_ok()).count() as u64
            })
        });
        let early: u64 = admitted.iter().map(|[early, _]| early).sum();
        let late: u64 = admitted.iter().map(|[_, late]| late).sum();
        // A late reading may be counted into the new window, so only the sum and the bound of the new one are fixed.
        assert!(late <= limit && early + late <= 2 * limit, "{early} {late}");
        assert_eq!(window.inspect_at(Nanos::ZERO + 8 * PER_HOUR).level, 0);
        assert!(early + late >= limit);
    });
}

#[test]
fn a04_windows_are_named_by_the_monotonic_clock() {
    let window = sharded_window(quota!("10/1h")).unwrap();
    let now = window.try_acquire(10).unwrap().at;
    let Err(Denied::RateLimited { retry_after }) = window.try_acquire_at(now, 1) else { panic!("the window is spent") };
    // What is left of the window ends at a multiple of the width, counted from the clock's origin.
    assert!(!retry_after.is_zero() && retry_after <= PER_HOUR);
    assert_eq!((now + retry_after).as_u64() % PER_HOUR.as_nanos() as u64, 0);
    assert_eq!(window.inspect_at(now + retry_after - Duration::from_nanos(1)).level, 0);
    assert_eq!(window.inspect_at(now + retry_after).level, 10);
}

#[test]
fn a11_the_real_clock_admits_exactly_n_too() {
    // A window of a century: the test does not run across its end.
    let window = sharded_window(Rate::new(1_000, 36_525 * 24 * PER_HOUR).unwrap()).unwrap();
    let admitted: usize = race(200, |_| (0..10).filter(|_| window.try_acquire(1).is_ok()).count()).iter().sum();
    assert_eq!(admitted, 1_000);
    assert!(OsClock.now() < Nanos::HORIZON);
}

/// What the tests do with a window, whatever its source of shard numbers.
trait Window: Sync {
    fn clock(&self) -> &ManualClock;
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> sluicegate_threads::Decision;
    fn refund(&self, taken_at: Nanos, cost: u64);
    fn inspect_at(&self, now: Nanos) -> sluicegate_threads::Inspection;

    fn try_acquire(&self, cost: u64) -> sluicegate_threads::Decision {
        self.try_acquire_at(self.clock().now(), cost)
    }
    fn inspect(&self) -> sluicegate_threads::Inspection {
        self.inspect_at(self.clock().now())
    }
}

impl<I: ShardId + Sync> Window for ShardedWindow<Box<[Shard]>, ManualClock, I> {
    fn clock(&self) -> &ManualClock {
        self.clock()
    }
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> sluicegate_threads::Decision {
        self.try_acquire_at(now, cost)
    }
    fn refund(&self, taken_at: Nanos, cost: u64) {
        self.refund(taken_at, cost);
    }
    fn inspect_at(&self, now: Nanos) -> sluicegate_threads::Inspection {
        self.inspect_at(now)
    }
}

/// Runs `test` with the number of threads and a maker of windows of so many units an hour.
fn over_all_shards(test: impl Fn(usize, &dyn Fn(u64) -> Box<dyn Window>)) {
    for shards in [1, 3, 64] {
        let shards = NonZeroUsize::new(shards).unwrap();
        test(200, &|limit| window(limit, shards, ThreadShard));
        test(400, &|limit| window(limit, shards, CounterShard::new()));
        #[cfg(feature = "cpu")]
        test(400, &|limit| window(limit, shards, sluicegate_threads::CpuShard));
    }
}

fn window(limit: u64, shards: NonZeroUsize, shard_id: impl ShardId + Sync + 'static) -> Box<dyn Window> {
    let rate = Rate::new(limit, PER_HOUR).unwrap();
    Box::new(sharded_window_with(rate, shards, ManualClock::new(), shard_id).unwrap())
}
