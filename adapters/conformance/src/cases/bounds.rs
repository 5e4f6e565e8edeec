//! How many may wait, and who goes first where that is not who came first.

use core::time::Duration;

use sluicegate_runtime::{Clock, Denied, WaitOptions, quota};

use crate::executor::Executor;
use crate::limiters::{empty_with, is_granted, level};
use crate::tasks::{assert_on_time, at_once, pass, settle, start};

/// One more than may wait is refused at once, and takes nobody's place; there is room again once anybody has left.
pub async fn c05_a_full_queue_refuses_one_more<E: Executor>(runtime: E::Runtime) {
    let bucket = empty_with::<E>(&runtime, quota!("10/10s"), WaitOptions::new().bound(3));
    let begin = runtime.now();
    let first = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    let mut leaves = Box::pin(bucket.acquire_owned(1));
    assert_eq!(at_once(&mut leaves).await, None);
    let third = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    assert_eq!(at_once(bucket.acquire(1)).await, Some(Err(Denied::QueueFull)));
    assert_eq!(at_once(bucket.acquire_timeout(1, Duration::from_secs(60))).await, Some(Err(Denied::QueueFull)));
    assert_eq!(bucket.waiters(), 3);
    drop(leaves);
    let last = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    assert_eq!(at_once(bucket.acquire(1)).await, Some(Err(Denied::QueueFull)));
    for (waiter, due) in [first, third, last].into_iter().zip(1..) {
        let waiter = waiter.await;
        assert!(waiter.with.is_ok());
        assert_on_time::<E>(waiter.at, begin + Duration::from_secs(due));
    }
    let nobody = empty_with::<E>(&runtime, quota!("10/10s"), WaitOptions::new().bound(0).evict_oldest(true));
    assert_eq!(at_once(nobody.acquire(1)).await, Some(Err(Denied::QueueFull)));
    pass::<E>(&runtime, Duration::from_secs(1)).await;
    assert!(is_granted(at_once(nobody.acquire(1)).await), "what is there needs no queue");
}

/// It is told so at once, has taken nothing, and the others are served as if it had never come: also the one who is then at the
/// head, which minds the time from then on.
pub async fn c05_the_oldest_makes_room_for_one_more<E: Executor>(runtime: E::Runtime) {
    let options = WaitOptions::new().bound(3).evict_oldest(true).relief(None);
    let bucket = empty_with::<E>(&runtime, quota!("10/10s"), options);
    let begin = runtime.now();
    let mut waiters = Vec::new();
    for _ in 0..3 {
        waiters.push(start::<E, _>(&runtime, bucket.acquire_owned(2)).await);
    }
    settle::<E>(&runtime).await;
    for _ in 0..4 {
        let now = runtime.now();
        waiters.push(start::<E, _>(&runtime, bucket.acquire_owned(2)).await);
        assert_eq!(bucket.waiters(), 3);
        let oldest = waiters.remove(0).await;
        assert_eq!((oldest.at, oldest.with), (now, Err(Denied::QueueFull)));
        settle::<E>(&runtime).await;
    }
    for (waiter, turn) in waiters.into_iter().zip(1..) {
        let waiter = waiter.await;
        assert!(waiter.with.is_ok());
        assert_on_time::<E>(waiter.at, begin + Duration::from_secs(2 * turn));
    }
    assert_eq!((level::<E>(&bucket, runtime.now()), bucket.waiters()), (0, 0));
}

/// Of those who wait, whoever came last; and each minds the time from when it is at the head.
pub async fn b07_the_newest_goes_first_if_so_chosen<E: Executor>(runtime: E::Runtime) {
    let bucket = empty_with::<E>(&runtime, quota!("10/10s"), WaitOptions::new().newest_first(true).relief(None));
    let begin = runtime.now();
    let oldest = start::<E, _>(&runtime, bucket.acquire_owned(3)).await;
    let middle = start::<E, _>(&runtime, bucket.acquire_owned(2)).await;
    let newest = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    // A timeout is too short by what it waits for alone, since it goes before them all.
    let hasty = start::<E, _>(&runtime, bucket.acquire_timeout_owned(1, Duration::from_millis(999))).await;
    assert!(hasty.await.with.is_err());
    assert_eq!(bucket.waiters(), 3);
    let newest = newest.await;
    assert!(newest.with.is_ok());
    assert_on_time::<E>(newest.at, begin + Duration::from_secs(1));
    settle::<E>(&runtime).await;
    // One that comes now goes before those who have waited all the time.
    let later = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    for (waiter, due) in [(later, 2), (middle, 4), (oldest, 7)] {
        let waiter = waiter.await;
        assert!(waiter.with.is_ok());
        assert_on_time::<E>(waiter.at, begin + Duration::from_secs(due));
    }
    assert_eq!((level::<E>(&bucket, runtime.now()), bucket.waiters()), (0, 0));
}

/// Also where the newest goes first: it is the one who has waited longest who makes room.
pub async fn c05_the_oldest_makes_room_where_the_newest_goes_first<E: Executor>(runtime: E::Runtime) {
    let options = WaitOptions::new().bound(2).evict_oldest(true).newest_first(true).relief(None);
    let bucket = empty_with::<E>(&runtime, quota!("10/10s"), options);
    let begin = runtime.now();
    let oldest = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    let middle = start::<E, _>(&runtime, bucket.acquire_owned(2)).await;
    let newest = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    let oldest = oldest.await;
    assert_eq!((oldest.at, oldest.with), (begin, Err(Denied::QueueFull)));
    for (waiter, due) in [(newest, 1), (middle, 3)] {
        let waiter = waiter.await;
        assert!(waiter.with.is_ok());
        assert_on_time::<E>(waiter.at, begin + Duration::from_secs(due));
    }
}
