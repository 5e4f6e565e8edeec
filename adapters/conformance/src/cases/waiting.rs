//! How long one waits, and what it gets.

use core::time::Duration;

use sluicegate_runtime::{Clock, Denied, Nanos, WaitOptions, quota};

use crate::executor::Executor;
use crate::limiters::{bucket, bucket_with, empty, is_granted, is_rate_limited, level};
use crate::tasks::{assert_on_time, at_once, pass, settle, start};

/// What is free is had at once. Otherwise all of it at once, and until then nothing is held.
pub async fn b05_it_waits_until_all_can_be_taken_at_once<E: Executor>(runtime: E::Runtime) {
    let bucket = bucket::<E>(&runtime, quota!("10/10s"));
    assert!(is_granted(at_once(bucket.acquire(10)).await));
    let begin = runtime.now();
    let waiter = start::<E, _>(&runtime, bucket.acquire_owned(10)).await;
    pass::<E>(&runtime, Duration::from_millis(5_500)).await;
    assert_eq!((level::<E>(&bucket, runtime.now()), bucket.waiters()), (5, 1));
    let waiter = waiter.await;
    assert_on_time::<E>(waiter.at, begin + Duration::from_secs(10));
    assert_eq!(waiter.with.map(|admitted| admitted.at), Ok(waiter.at));
    assert_eq!((level::<E>(&bucket, waiter.at), bucket.waiters()), (0, 0));
}

/// And if nobody waits for it already.
pub async fn b05_zero_succeeds_only_if_it_is_free_now<E: Executor>(runtime: E::Runtime) {
    let bucket = bucket::<E>(&runtime, quota!("10/10s"));
    assert!(is_granted(at_once(bucket.acquire_timeout(9, Duration::ZERO)).await));
    assert!(is_rate_limited(at_once(bucket.acquire_timeout(2, Duration::ZERO)).await));
    assert!(is_rate_limited(at_once(bucket.acquire_deadline(2, runtime.now())).await));
    let first = start::<E, _>(&runtime, bucket.acquire_owned(2)).await;
    assert!(is_rate_limited(at_once(bucket.acquire_timeout(1, Duration::ZERO)).await));
    assert!(first.await.with.is_ok());
    pass::<E>(&runtime, Duration::from_secs(1)).await;
    assert!(is_granted(at_once(bucket.acquire_timeout(1, Duration::ZERO)).await));
}

/// At the instant it said, when others have taken what it waited for. It has then taken nothing.
pub async fn b05_a_timeout_ends_the_wait<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let begin = runtime.now();
    let waiter = start::<E, _>(&runtime, bucket.acquire_timeout_owned(5, Duration::from_millis(5_500))).await;
    pass::<E>(&runtime, Duration::from_secs(3)).await;
    assert!(bucket.try_acquire(1).is_ok());
    let waiter = waiter.await;
    let Err(Denied::RateLimited { retry_after }) = waiter.with else { panic!("{waiter:?}") };
    assert_on_time::<E>(waiter.at, begin + Duration::from_millis(5_500));
    assert_eq!(waiter.at + retry_after, begin + Duration::from_secs(6));
    assert_eq!((level::<E>(&bucket, waiter.at), bucket.waiters()), (4, 0));
}

/// As a timeout does, by the reading. One that has passed is no time to wait.
pub async fn b05_a_deadline_ends_the_wait<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let begin = runtime.now();
    assert!(is_rate_limited(at_once(bucket.acquire_deadline(1, Nanos::ZERO)).await));
    let in_time = start::<E, _>(&runtime, bucket.acquire_deadline_owned(1, begin + Duration::from_millis(1_500))).await;
    let in_time = in_time.await;
    assert!(in_time.with.is_ok());
    assert_on_time::<E>(in_time.at, begin + Duration::from_secs(1));
    // It would be in time, too, but somebody barges in.
    let deadline = begin + Duration::from_millis(3_500);
    let late = start::<E, _>(&runtime, bucket.acquire_deadline_owned(2, deadline)).await;
    pass::<E>(&runtime, Duration::from_millis(1_500)).await;
    assert!(bucket.try_acquire(1).is_ok());
    let late = late.await;
    assert!(is_rate_limited(Some(late.with)));
    assert_on_time::<E>(late.at, deadline);
    assert_eq!((level::<E>(&bucket, late.at), bucket.waiters()), (1, 0));
}

/// At once, and for whoever comes later.
pub async fn b05_closing_ends_every_wait<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10h"));
    let mut waiters = Vec::new();
    for cost in 1..=10 {
        waiters.push(start::<E, _>(&runtime, bucket.acquire_owned(cost)).await);
    }
    settle::<E>(&runtime).await;
    let now = runtime.now();
    bucket.close();
    for waiter in waiters {
        let waiter = waiter.await;
        assert_eq!((waiter.at, waiter.with), (now, Err(Denied::Closed)));
    }
    assert_eq!(bucket.try_acquire(1), Err(Denied::Closed));
    assert_eq!(at_once(bucket.acquire(1)).await, Some(Err(Denied::Closed)));
    assert_eq!(bucket.waiters(), 0);
}

/// When there is none left: it is refused, waits, or goes a cheaper way, as its caller and the options choose; the answer tells which.
pub async fn c05_the_outcome_says_what_was_done<E: Executor>(runtime: E::Runtime) {
    let bucket = bucket_with::<E>(&runtime, quota!("10/10s"), WaitOptions::new().bound(1));
    assert!(bucket.try_acquire(10).is_ok());
    // Refused, which says when to come back.
    assert_eq!(bucket.try_acquire(1), Err(Denied::RateLimited { retry_after: Duration::from_secs(1) }));
    // It waits, and is granted later; a queue that is full says so.
    let queued = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    assert_eq!(at_once(bucket.acquire(1)).await, Some(Err(Denied::QueueFull)));
    // A cheaper way, where waiting would take too long.
    let patience = Duration::from_millis(1_999);
    let begin = runtime.now();
    let queued = queued.await;
    assert_on_time::<E>(queued.at, begin + Duration::from_secs(1));
    let _next = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    let served = match at_once(bucket.acquire_timeout(1, patience - Duration::from_secs(1))).await {
        Some(Ok(_)) => "in full",
        Some(Err(Denied::RateLimited { .. } | Denied::QueueFull)) => "degraded",
        other => panic!("{other:?}"),
    };
    assert_eq!(served, "degraded");

    let evicting = bucket_with::<E>(&runtime, quota!("10/10s"), WaitOptions::new().bound(1).evict_oldest(true));
    assert!(evicting.try_acquire(10).is_ok());
    let oldest = start::<E, _>(&runtime, evicting.acquire_owned(1)).await;
    let newest = start::<E, _>(&runtime, evicting.acquire_owned(1)).await;
    assert_eq!(oldest.await.with, Err(Denied::QueueFull));
    assert!(newest.await.with.is_ok());
}

/// And a month.
pub async fn d04_an_hour_is_waited_in_no_time<E: Executor>(runtime: E::Runtime) {
    for (quota, span) in [(quota!("1/1h"), 3_600), (quota!("1/30d"), 30 * 86_400)] {
        let bucket = empty::<E>(&runtime, quota);
        let due = runtime.now() + Duration::from_secs(span);
        let waiter = start::<E, _>(&runtime, bucket.acquire_owned(1)).await.await;
        assert!(waiter.with.is_ok());
        assert_on_time::<E>(waiter.at, due);
    }
}
