//! What one who comes to a wait queue is told beforehand.
#![cfg(feature = "alloc")]

mod support;

use sluicegate_core::{Limiter, ManualClock, Nanos, Quota, TokenBucket, WaitQueue, Waiting, quota};
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
        queue.push(u64::MAX, None, ()).unwrap();
    });
    assert_eq!(queue.earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_secs(1)));
    assert_eq!(queue.newest_first().earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_millis(200)));
}
