//! What the feature `alloc` adds: shard counts chosen at run time, clocks that are shared or chosen at run time.
#![cfg(feature = "alloc")]

mod support;

extern crate alloc;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::num::NonZeroUsize;
use core::time::Duration;

use sluicegate_core::{Clock, ManualClock, Nanos, Shard, ShardedWindow, TokenBucket, quota};
use support::{Numbers, SHARDS, ThreadShard, Wandering, race, sharded, window_limit};

const WIDTH: u64 = 1_000_000;

fn boxed(limit: u64, shards: usize) -> ShardedWindow<Box<[Shard]>, ManualClock, Wandering> {
    let shards = NonZeroUsize::new(shards).unwrap();
    ShardedWindow::with_shards(window_limit(limit, WIDTH), shards, ManualClock::new(), Wandering)
}

#[test]
fn shards_in_a_box_decide_as_those_in_an_array() {
    for shards in SHARDS {
        let (array, boxed) = (sharded(window_limit(23, WIDTH), shards, Wandering), boxed(23, shards));
        assert_eq!((boxed.shard_count(), boxed.caps().collect()), (shards, array.caps()));
        let mut numbers = Numbers(shards as u64);
        for index in 0..1_000 {
            let now = Nanos::new(index * WIDTH / 50 + numbers.below(WIDTH));
            let cost = numbers.below(12);
            Wandering::go_to(numbers.below(20) as usize);
            let decision = array.try_acquire_at(now, cost);
            assert_eq!(boxed.try_acquire_at(now, cost), decision);
            if let (Ok(admitted), 0) = (decision, numbers.below(3)) {
                array.refund(admitted.at, cost);
                boxed.refund(admitted.at, cost);
            }
            assert_eq!(boxed.inspect_at(now), array.inspect_at(now));
        }
    }
}

#[test]
fn far_more_shards_than_the_limit_do_no_harm() {
    let window = boxed(3, 1_000);
    assert_eq!(window.caps().sum::<u64>(), 3);
    Wandering::go_to(999);
    assert!(window.try_acquire(2).is_ok() && window.try_acquire(2).is_err() && window.try_acquire(1).is_ok());
    assert!(window.try_acquire(1).is_err());
}

#[test]
fn a_clock_may_be_shared_or_chosen_at_run_time() {
    let clock = Arc::new(ManualClock::new());
    let chosen: Box<dyn Clock + Send + Sync> = Box::new(Arc::clone(&clock));
    let (shared, chosen) =
        (TokenBucket::with_clock(quota!("1/1s"), Arc::clone(&clock)), TokenBucket::with_clock(quota!("1/1s"), chosen));
    assert!(shared.try_acquire(1).is_ok() && chosen.try_acquire(1).is_ok());
    assert!(shared.try_acquire(1).is_err() && chosen.try_acquire(1).is_err());
    clock.advance(Duration::from_secs(1));
    assert!(shared.try_acquire(1).is_ok() && chosen.try_acquire(1).is_ok());
}

#[test]
fn threads_share_a_window_whose_shards_were_counted_at_run_time() {
    let shards = NonZeroUsize::new(5).unwrap();
    let window = ShardedWindow::with_shards(window_limit(1_000, WIDTH), shards, ManualClock::new(), ThreadShard);
    let admitted = race(4, |_| (0..500).filter(|_| window.try_acquire(1).is_ok()).count());
    assert_eq!(admitted.iter().sum::<usize>(), 1_000);
}
