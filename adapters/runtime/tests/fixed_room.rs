//! Waiting where there is room for a fixed number, by hand.

#![cfg(all(feature = "alloc", feature = "heapless"))]

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::task::Poll;
use core::time::Duration;

use parking_lot::RawMutex;
use sluicegate_runtime::{Acquire, Denied, Fixed, ManualRuntime, Queued, TokenBucket, WaitOptions, quota};
use support::Waiter;

type Bucket = Arc<Queued<TokenBucket<()>, ManualRuntime<RawMutex>, RawMutex, Fixed<3>>>;

/// One token an hour, and none is there.
fn bucket(options: WaitOptions) -> (Bucket, ManualRuntime<RawMutex>) {
    let time = ManualRuntime::new();
    let bucket = Queued::new(TokenBucket::with_limit(quota!("1/1h").into(), ()), time.clone(), options);
    bucket.try_acquire(1).unwrap();
    (Arc::new(bucket), time)
}

#[track_caller]
fn waiting(bucket: &Bucket) -> Waiter<Acquire<Bucket>> {
    Waiter::waiting(bucket.acquire_owned(1))
}

#[track_caller]
fn assert_is_full(bucket: &Bucket) {
    assert_eq!(Waiter::new(bucket.acquire_owned(1)).poll(), Poll::Ready(Err(Denied::QueueFull)));
}

#[test]
fn one_more_than_there_is_room_for_is_refused() {
    let (bucket, _) = bucket(WaitOptions::new());
    let (_first, second, _third) = (waiting(&bucket), waiting(&bucket), waiting(&bucket));
    assert_is_full(&bucket);
    drop(second);
    let _fourth = waiting(&bucket);
    assert_is_full(&bucket);
}

#[test]
fn whoever_has_not_learnt_of_its_answer_takes_up_room() {
    let (bucket, time) = bucket(WaitOptions::new().relief(None));
    let (mut first, _second, _third) = (waiting(&bucket), waiting(&bucket), waiting(&bucket));
    time.advance(Duration::from_secs(3_600));
    bucket.recheck();
    assert_eq!(bucket.waiters(), 2);
    assert_is_full(&bucket);
    assert!(matches!(first.run(), Some(Ok(_))));
    let _fourth = waiting(&bucket);
    assert_eq!(bucket.waiters(), 3);
}

#[test]
fn a_bound_below_the_room_holds_and_leaves_room_to_evict() {
    let (bucket, _) = bucket(WaitOptions::new().bound(2));
    let _both = (waiting(&bucket), waiting(&bucket));
    assert_is_full(&bucket);

    let (bucket, _) = self::bucket(WaitOptions::new().bound(2).evict_oldest(true));
    let (mut oldest, mut second) = (waiting(&bucket), waiting(&bucket));
    let _third = waiting(&bucket);
    assert_is_full(&bucket);
    assert_eq!(oldest.run(), Some(Err(Denied::QueueFull)));
    let _fourth = waiting(&bucket);
    assert_eq!(second.run(), Some(Err(Denied::QueueFull)));
    assert_eq!(bucket.waiters(), 2);
}
