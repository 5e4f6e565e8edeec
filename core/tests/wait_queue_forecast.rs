//! What one who comes to a wait queue is told beforehand.
#![cfg(feature = "alloc")]

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use sluicegate_core::{
    AdjustableBucket, FixedShard, Limiter, ManualClock, Nanos, PER_SECOND, Quota, Rate, Shard, ShardedWindow,
    SlidingCounter, TokenBucket, WaitQueue, Waiting, WindowLimit, quota,
};
use support::Numbers;
use support::waiting::Bucket;

fn bucket(quota: Quota) -> TokenBucket<ManualClock> {
    TokenBucket::with_clock(quota, ManualClock::new())
}

#[test]
fn a_newcomer_is_told_exactly_when_it_could_go() {
    let mut numbers = Numbers(3);
    for quota in [quota!("10/1s burst 7"), quota!("7/3s burst 20"), quota!("11/1s"), quota!("999_999_937/1s burst 5")] {
        for _ in 0..60 {
            // Costs below the capacity: of what flows in while a full bucket waits for the next nanosecond, a part is lost.
            let largest = quota.capacity().min(20) - 1;
            let (bucket, now) = (bucket(quota), Nanos::from_secs(numbers.below(1_000)));
            let _ = bucket.try_acquire_at(now, numbers.below(quota.capacity().min(30) + 1));
            let mut queue = WaitQueue::new(100);
            for number in 0..numbers.below(12) {
                queue.push(1 + numbers.below(largest), None, number).unwrap();
            }
            let cost = 1 + numbers.below(largest);
            let earliest = queue.earliest_for_new_at(now, &bucket, cost).unwrap();
            // Whoever points to the bucket knows as much.
            assert_eq!(queue.earliest_for_new_at(now, &Arc::new(&bucket), cost), Ok(earliest));
            // Let all go, each as soon as it can.
            queue.push(cost, None, 99).unwrap();
            let mut reading = now;
            let mut last = None;
            while let Some(wake) = queue.next_wake_at(reading, &bucket) {
                reading = wake;
                queue.grant_at(reading, &bucket, |served| last = Some(served.payload));
            }
            assert_eq!((last, reading), (Some(99), earliest), "{quota}");
            let newest = WaitQueue::<Vec<Waiting<()>>>::new(5).newest_first();
            assert!(newest.earliest_for_new_at(now, &bucket, cost).unwrap() >= now);
        }
    }
    let off = TokenBucket::with_clock(sluicegate_core::Limit::Unlimited, ManualClock::new());
    let queue = WaitQueue::<Vec<Waiting<()>>>::new(5);
    assert_eq!(queue.earliest_for_new_at(Nanos::new(5), &off, u64::MAX), Ok(Nanos::new(5)));
}

#[test]
fn a_lower_bound_is_told_where_the_limiter_knows_no_more() {
    let bucket = Bucket::full(quota!("10/1s"));
    let _ = bucket.try_acquire_at(Nanos::ZERO, 10);
    let mut queue = WaitQueue::new(100);
    assert_eq!(queue.earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_millis(200)));
    queue.push(5, None, ()).unwrap();
    assert_eq!(queue.earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_millis(700)));
    (0..99).for_each(|_| {
        queue.push(10, None, ()).unwrap();
    });
    assert_eq!(queue.earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_secs(1)));
    assert_eq!(queue.newest_first().earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_millis(200)));
}

/// How a wait of one more ends: when it goes if nobody leaves.
fn turn<L: Limiter + ?Sized>(mut queue: WaitQueue<Vec<Waiting<u64>>>, limiter: &L, now: Nanos, cost: u64) -> Nanos {
    queue.push(cost, None, NEWCOMER).unwrap();
    let mut reading = now;
    loop {
        reading = queue.next_wake_at(reading, limiter).unwrap();
        while let Some(served) = queue.grant_next_at(reading, limiter) {
            if served.payload == NEWCOMER {
                return reading;
            }
        }
    }
}

const NEWCOMER: u64 = u64::MAX;

#[test]
fn b05_nobody_is_refused_whose_wait_would_have_succeeded() {
    let second = |tokens| WindowLimit::from_rate(Rate::new(tokens, PER_SECOND).unwrap()).unwrap();
    let mut numbers = Numbers(17);
    let kinds = if cfg!(feature = "lock_api") { 6 } else { 5 };
    let mut late = vec![0; kinds];
    for round in 0..3_000_u64 {
        let now = Nanos::new(1_000_000_000 + numbers.below(4_000_000_000));
        let (limit, kind) = (1 + numbers.below(12), (round as usize) % kinds);
        let quota = Quota::per_second(limit).unwrap();
        let limiter: Box<dyn Limiter> = match kind {
            0 => Box::new(bucket(quota)),
            1 => Box::new(AdjustableBucket::with_clock(quota, ManualClock::new())),
            2 => Box::new(ShardedWindow::<[Shard; 2], _, _>::with_array(
                second(limit),
                ManualClock::new(),
                FixedShard(0),
            )),
            3 => Box::new(SlidingCounter::with_clock(second(limit), ManualClock::new()).unwrap()),
            #[cfg(feature = "lock_api")]
            5 => {
                let log = sluicegate_core::SlidingLog::new(quota.rate());
                Box::new(sluicegate_core::SharedSlidingLog::<parking_lot::RawMutex, _>::new(log))
            }
            _ => Box::new(Bucket::full(quota)),
        };
        for _ in 0..numbers.below(4) {
            let _ = limiter
                .try_acquire_at(Nanos::new(now.as_u64() - numbers.below(1_000_000_000)), numbers.below(limit + 1));
        }
        let mut queue = WaitQueue::new(100);
        for number in 0..numbers.below(12) {
            // Some for more than there ever is, and some whose deadline comes before they can go.
            let cost = numbers.below(limit + 1) + if numbers.below(12) == 0 { limit } else { 0 };
            let deadline = (numbers.below(3) == 0).then(|| now + Duration::from_millis(numbers.below(4_000)));
            queue.push(cost, deadline, number).unwrap();
        }
        let queue = if numbers.below(5) == 0 { queue.newest_first() } else { queue };
        let cost = 1 + numbers.below(limit);
        let earliest = queue.earliest_for_new_at(now, &*limiter, cost).unwrap();
        let expected = queue.expected_for_new_at(now, &*limiter, cost).unwrap();
        let turn = turn(queue, &*limiter, now, cost);
        assert!(now <= earliest && earliest <= expected && earliest <= turn, "{earliest}, {turn}: {kind} in {round}");
        late[kind] += u32::from(earliest > now);
    }
    assert!(late.iter().all(|&count| count > 100), "the bounds say something: {late:?}");
}

#[test]
fn b05_a_cost_that_will_be_refused_or_too_late_delays_no_newcomer_in_the_forecast() {
    let now = Nanos::ZERO;
    let at = Nanos::from_millis;
    let bucket = bucket(quota!("10/1s"));
    bucket.try_acquire_at(now, 10).unwrap();
    let mut queue = WaitQueue::new(100);
    let forecast = |queue: &WaitQueue<Vec<Waiting<u64>>>| {
        (queue.earliest_for_new_at(now, &bucket, 1).unwrap(), queue.expected_for_new_at(now, &bucket, 1).unwrap())
    };
    queue.push(5, None, 1).unwrap();
    assert_eq!(forecast(&queue), (at(600), at(600)));
    // Its deadline comes before it can go, and the newcomer follows the first one.
    let hasty = queue.push(10, Some(at(550)), 2).unwrap();
    assert_eq!(forecast(&queue), (at(600), at(1_600)));
    // Later than that, and the newcomer may follow at the deadline.
    queue.cancel(hasty).unwrap();
    let hasty = queue.push(10, Some(at(700)), 3).unwrap();
    assert_eq!(forecast(&queue), (at(700), at(1_600)));
    // A deadline after all have gone changes nothing.
    queue.cancel(hasty).unwrap();
    let patient = queue.push(2, Some(at(800)), 4).unwrap();
    assert_eq!(forecast(&queue), (at(800), at(800)));
    queue.cancel(patient).unwrap();
    // One that will be refused counts for nobody; and once it has been, all others count again.
    queue.push(11, None, 5).unwrap();
    assert_eq!(forecast(&queue), (at(100), at(1_700)));
    assert_eq!(queue.refuse_at(now, &bucket, |served| assert_eq!(served.payload, 5)), 1);
    assert_eq!(forecast(&queue), (at(600), at(600)));
    // So they do when nobody has waited in between.
    queue.push(11, None, 6).unwrap();
    while queue.pop().is_some() {}
    queue.push(5, None, 7).unwrap();
    assert_eq!(forecast(&queue), (at(600), at(600)));
}

#[test]
fn parts_of_a_cost_pass_a_sliding_counter_no_earlier_than_the_forecast() {
    let limit = WindowLimit::from_rate("10/1s".parse().unwrap()).unwrap();
    let counter = SlidingCounter::with_clock(limit, ManualClock::new()).unwrap();
    let now = Nanos::from_millis(5_500);
    counter.try_acquire_at(now, 5).unwrap();
    // All ten at once fit at 7 s only; five now and five at 6.5 s are sooner.
    assert_eq!(counter.peek_at(now, 10).unwrap_err().retry_after(), Some(Duration::from_millis(1_500)));
    let mut queue = WaitQueue::new(2);
    queue.push(5, None, 0).unwrap();
    assert_eq!(queue.earliest_for_new_at(now, &counter, 5), Ok(Nanos::from_secs(6)));
    assert_eq!(turn(queue, &counter, now, 5), Nanos::from_millis(6_500));
}
