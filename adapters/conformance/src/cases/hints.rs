//! What is refused, and what a refusal says.

use core::time::Duration;

use sluicegate_runtime::{Clock, Denied, WaitOptions, quota};

use crate::executor::Executor;
use crate::limiters::{bucket, bucket_with, empty, is_granted, is_rate_limited, level};
use crate::tasks::{assert_on_time, at_once, pass, start};

/// Also while others wait, and with all the time in the world. Nobody's place is touched by it.
pub async fn b03_what_can_never_be_is_refused_at_once<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/1s"));
    let never = Denied::CostExceedsLimit { cost: 11, limit: 10 };
    let first = start::<E, _>(&runtime, bucket.acquire_owned(10)).await;
    let due = runtime.now() + Duration::from_secs(1);
    assert_eq!(at_once(bucket.acquire(11)).await, Some(Err(never)));
    assert_eq!(at_once(bucket.acquire_timeout(11, Duration::MAX)).await, Some(Err(never)));
    assert_eq!(bucket.try_acquire(11), Err(never));
    assert_eq!(bucket.waiters(), 1);
    let first = first.await;
    assert!(first.with.is_ok());
    assert_on_time::<E>(first.at, due);
    assert_eq!(at_once(bucket.acquire(11)).await, Some(Err(never)));
}

/// Neither by trying, nor by not waiting, nor by waiting in vain.
pub async fn b03_a_refusal_takes_nothing<E: Executor>(runtime: E::Runtime) {
    let bucket = bucket::<E>(&runtime, quota!("10/10h"));
    assert!(bucket.try_acquire(4).is_ok());
    assert!(is_rate_limited(Some(bucket.try_acquire(7))));
    assert!(is_rate_limited(at_once(bucket.acquire_timeout(7, Duration::ZERO)).await));
    assert!(is_rate_limited(at_once(bucket.acquire_timeout(7, Duration::from_secs(3599))).await));
    assert_eq!(level::<E>(&bucket, runtime.now()), 6);
    assert!(is_granted(at_once(bucket.acquire(6)).await));
}

/// The request succeeds when the hint says, and fails a nanosecond before.
pub async fn b04_the_hint_is_exact<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("3/7s"));
    let start = runtime.now();
    let Err(Denied::RateLimited { retry_after }) = bucket.try_acquire(2) else { panic!("it is empty") };
    assert_eq!(retry_after, Duration::from_nanos(4_666_666_667));
    let nearly = start + (retry_after - Duration::from_nanos(1));
    assert!(bucket.limiter().peek_at(nearly, 2).is_err());
    // As near as the executor's timer can be trusted to come.
    let before = retry_after - E::GRAIN - Duration::from_nanos(1);
    pass::<E>(&runtime, before).await;
    assert!(is_rate_limited(Some(bucket.try_acquire(2))));
    pass::<E>(&runtime, start.saturating_add(retry_after).saturating_duration_since(runtime.now())).await;
    assert!(bucket.try_acquire(2).is_ok());
}

/// A wait that is certainly too short fails before it begins, and says how long would do. That long does.
pub async fn b05_a_timeout_of_the_hint_is_long_enough<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/1s"));
    let begin = runtime.now();
    let _first = start::<E, _>(&runtime, bucket.acquire_owned(5)).await;
    let short = Duration::from_millis(700) - Duration::from_nanos(1);
    let Some(Err(Denied::RateLimited { retry_after })) = at_once(bucket.acquire_timeout(2, short)).await else {
        panic!("too short a time");
    };
    assert_eq!(retry_after, Duration::from_millis(700));
    let patient = start::<E, _>(&runtime, bucket.acquire_timeout_owned(2, retry_after + E::GRAIN)).await.await;
    assert!(patient.with.is_ok());
    assert_on_time::<E>(patient.at, begin + retry_after);
}

/// Looking neither takes nor makes anything, and whoever waits is not disturbed.
pub async fn b08_looking_takes_nothing<E: Executor>(runtime: E::Runtime) {
    let bucket = bucket_with::<E>(&runtime, quota!("10/10h"), WaitOptions::new());
    assert!(bucket.try_acquire(8).is_ok());
    let waiter = start::<E, _>(&runtime, bucket.acquire_owned(3)).await;
    let due = runtime.now() + Duration::from_secs(3600);
    for _ in 0..100 {
        let now = runtime.now();
        assert_eq!((level::<E>(&bucket, now), bucket.waiters()), (2, 1));
        assert!(bucket.limiter().peek_at(now, 2).is_ok() && bucket.limiter().peek_at(now, 3).is_err());
        bucket.recheck();
    }
    let waiter = waiter.await;
    assert!(waiter.with.is_ok());
    assert_on_time::<E>(waiter.at, due);
}
