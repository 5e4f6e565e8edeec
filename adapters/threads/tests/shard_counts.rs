//! The number of shards and the cores that there are.
#![cfg(all(feature = "cpu", target_os = "linux"))]

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use sluicegate_threads::{
    CpuShard, ManualClock, ShardId, quota, sharded_window, sharded_window_with, shards_for_this_machine,
};

#[test]
fn a19_a_change_in_available_cores_moves_no_cap() {
    let all = sched_getaffinity(None).unwrap();
    let window = sharded_window(quota!("101/1h")).unwrap();
    let shards = window.shard_count();
    assert_eq!(shards, shards_for_this_machine().get());
    let caps: Vec<u64> = window.caps().collect();
    assert_eq!(caps.iter().sum::<u64>(), 101);
    let now = window.try_acquire(50).unwrap().at;

    // This thread may now run on one core only, and the system says so.
    let core = (0..CpuSet::MAX_CPU).find(|&core| all.is_set(core)).unwrap();
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).unwrap();
    assert_eq!(shards_for_this_machine().get(), 1);
    assert_eq!(CpuShard.shard(), core);

    assert_eq!(window.shard_count(), shards);
    assert_eq!(window.caps().collect::<Vec<_>>(), caps);
    assert_eq!((0..100).filter(|_| window.try_acquire_at(now, 1).is_ok()).count(), 51);
    sched_setaffinity(None, &all).unwrap();
}

#[test]
fn a16_any_core_number_spends_the_whole_limit() {
    // More units than shards and fewer, one caller, whichever core it runs on.
    for (limit, shards) in [(2, 64), (100, 3)] {
        let rate = sluicegate_threads::Rate::new(limit, sluicegate_threads::PER_HOUR).unwrap();
        let window = sharded_window_with(rate, shards.try_into().unwrap(), ManualClock::new(), CpuShard).unwrap();
        assert_eq!((0..200).filter(|_| window.try_acquire(1).is_ok()).count() as u64, limit);
    }
}
