//! The clock and the shard number that core brings along, and the model checker itself.

#![allow(clippy::std_instead_of_alloc, reason = "models run on a host")]

use core::time::Duration;
use std::sync::Arc;

use sluicegate_core::{Clock, CounterShard, ManualClock, Nanos, ShardId, TokenBucket, quota};
use sluicegate_loom_tests::{Bound, model, promise, race2};

// Two movers of one clock, neither of which is lost. 2 threads, every interleaving.
#[test]
fn clock_is_moved_by_both() {
    fn two_movers() {
        let clock = Arc::new(ManualClock::at(Nanos::from_secs(10)));
        race2(&clock, |clock| clock.advance(Duration::from_secs(3)), |clock| clock.step_back(Duration::from_secs(1)));
        promise!(clock.now() == Nanos::from_secs(12), "a move was lost: {clock:?}");
    }
    model(Bound::NONE, two_movers);
}

// Who reads the new time sees what its mover did before: here a refund to an empty bucket. 2 threads, every interleaving.
#[test]
fn new_time_brings_what_was_done_before() {
    fn mover_and_reader() {
        let bucket = Arc::new(TokenBucket::with_clock(quota!("2/1s"), ManualClock::at(Nanos::from_secs(100))));
        promise!(bucket.try_acquire(2).is_ok(), "nobody races yet");
        let mover = |bucket: &TokenBucket<ManualClock>| {
            bucket.refund(1);
            bucket.clock().set(Nanos::from_millis(100_250));
        };
        let reader = |bucket: &TokenBucket<ManualClock>| {
            let reading = bucket.clock().now();
            (reading, bucket.try_acquire_at(reading, 1))
        };
        let ((reading, decision), ()) = race2(&bucket, reader, mover);
        let is_new = reading == Nanos::from_millis(100_250);
        promise!(!is_new || decision.is_ok(), "the refund was over before the clock moved: {decision:?}");
    }
    model(Bound::NONE, mover_and_reader);
}

// Two callers get two numbers. 2 threads, every interleaving.
#[test]
fn counter_gives_each_its_own_number() {
    fn two_callers() {
        let numbers = Arc::new(CounterShard::new());
        let (a, b) = race2(&numbers, CounterShard::shard, CounterShard::shard);
        promise!(a + b == 1, "one of 0 and 1 each: {a}, {b}");
    }
    model(Bound::NONE, two_callers);
}

/// loom must try the swap before the other thread's load too, although the swapping thread loads first. Its own atomics
/// do not see to that; core's stand-in for them does.
#[cfg(sluicegate_loom)]
#[test]
fn no_race_hides_behind_a_load() {
    use core::sync::atomic::AtomicBool;
    use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

    use sluicegate_core::ModelAtomicU64;

    // Outside of the model: it collects over all interleavings.
    let seen = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let collected = Arc::clone(&seen);
    model(Bound::NONE, move || {
        let word = Arc::new(ModelAtomicU64::new(0));
        let load_and_swap = |word: &ModelAtomicU64| word.compare_exchange(word.load(Acquire), 1, AcqRel, Acquire);
        let (_, loaded) = race2(&word, load_and_swap, |word| word.load(Acquire));
        collected[loaded as usize].store(true, Relaxed);
    });
    assert!(seen.iter().all(|seen| seen.load(Relaxed)), "an order of load and swap was not tried: {seen:?}");
}
