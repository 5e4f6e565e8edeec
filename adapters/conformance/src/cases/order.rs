//! Whose turn it is.

use core::time::Duration;

use sluicegate_runtime::{Clock, Denied, WaitOptions, quota};

use crate::executor::Executor;
use crate::limiters::{empty, empty_with, window};
use crate::tasks::{assert_on_time, pass, settle, start};

/// Costs included: each goes when all ahead of it have had theirs.
pub async fn b07_waiters_go_first_in_first_out<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let begin = runtime.now();
    let mut waiters = Vec::new();
    let mut ahead = 0;
    for number in 0..100_u32 {
        let cost = [3, 1, 10, 1, 2][number as usize % 5];
        ahead += cost;
        waiters.push((ahead, start::<E, _>(&runtime, bucket.acquire_owned(cost)).await));
    }
    for (due, waiter) in waiters {
        let waiter = waiter.await;
        assert_on_time::<E>(waiter.at, begin + Duration::from_secs(due));
        assert!(waiter.with.is_ok());
    }
    assert_eq!(bucket.waiters(), 0);
}

/// Though there would long be enough for those behind it, and for whoever comes then.
pub async fn b07_a_large_head_is_not_overtaken<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let begin = runtime.now();
    let large = start::<E, _>(&runtime, bucket.acquire_owned(10)).await;
    let small = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    pass::<E>(&runtime, Duration::from_secs(9)).await;
    bucket.recheck();
    let newest = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    settle::<E>(&runtime).await;
    assert_eq!(bucket.waiters(), 3);
    assert_on_time::<E>(large.await.at, begin + Duration::from_secs(10));
    assert_on_time::<E>(small.await.at, begin + Duration::from_secs(11));
    assert_on_time::<E>(newest.await.at, begin + Duration::from_secs(12));
}

/// It takes what is there, and those who wait, wait for longer.
pub async fn b07_try_acquire_barges_by_default<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let begin = runtime.now();
    let waiter = start::<E, _>(&runtime, bucket.acquire_owned(10)).await;
    pass::<E>(&runtime, Duration::from_millis(5_500)).await;
    assert!(bucket.try_acquire(2).is_ok());
    assert_on_time::<E>(waiter.await.at, begin + Duration::from_secs(12));
}

/// It takes nothing while others wait, and is told when its turn would be.
pub async fn b07_try_acquire_queues_when_fair<E: Executor>(runtime: E::Runtime) {
    let bucket = empty_with::<E>(&runtime, quota!("10/10s"), WaitOptions::new().fair(true));
    let begin = runtime.now();
    let waiter = start::<E, _>(&runtime, bucket.acquire_owned(10)).await;
    pass::<E>(&runtime, Duration::from_millis(5_500)).await;
    let Err(Denied::RateLimited { retry_after }) = bucket.try_acquire(1) else { panic!("it must not overtake") };
    assert_eq!(runtime.now() + retry_after, begin + Duration::from_secs(11));
    assert_on_time::<E>(waiter.await.at, begin + Duration::from_secs(10));
    pass::<E>(&runtime, Duration::from_secs(1)).await;
    assert!(bucket.try_acquire(1).is_ok());
}

/// Ten in each window, whoever came first.
pub async fn b07_waiters_of_a_window_go_first_in_first_out<E: Executor>(runtime: E::Runtime) {
    let window = window::<E>(&runtime, quota!("10/1h"), 3);
    let mut waiters = Vec::new();
    for _ in 0..45 {
        waiters.push(start::<E, _>(&runtime, window.acquire_owned(1)).await);
    }
    let first = runtime.now().as_u64() / HOUR;
    for (waiter, number) in waiters.into_iter().zip(0..) {
        let waiter = waiter.await;
        assert!(waiter.with.is_ok());
        assert_eq!(waiter.at.as_u64() / HOUR, first + number / 10);
        if number >= 10 {
            assert_on_time::<E>(waiter.at, sluicegate_runtime::Nanos::new((first + number / 10) * HOUR));
        }
    }
}

const HOUR: u64 = 3_600_000_000_000;
