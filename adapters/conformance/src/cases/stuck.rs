//! Who holds a place and does nothing, goes elsewhere, or breaks.

use core::panic::AssertUnwindSafe;
use core::time::Duration;

use futures_lite::FutureExt;
use futures_lite::future::or;
use sluicegate_runtime::{Clock, Runtime, WaitOptions, quota};

use crate::executor::{AS_TOLD, Executor};
use crate::limiters::{adjustable, empty_with, level};
use crate::tasks::{assert_on_time, at_once, pass, settle, spawn, start};

/// Without relief nobody looks by itself; but whoever calls the limiter lets all go whose turn it is: who tries, who looks, who
/// comes to wait, and who leaves.
pub async fn b06_any_call_moves_those_up_who_are_behind_one_that_is_stuck<E: Executor>(runtime: E::Runtime) {
    for call in 0..4 {
        let bucket = empty_with::<E>(&runtime, quota!("10/1s"), WaitOptions::new().relief(None));
        let mut stuck = Box::pin(bucket.acquire_owned(1));
        assert_eq!(at_once(&mut stuck).await, None);
        let waiter = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
        let mut leaves = Box::pin(bucket.acquire_owned(9));
        assert_eq!(at_once(&mut leaves).await, None);
        pass::<E>(&runtime, Duration::from_millis(350)).await;
        assert_eq!(bucket.waiters(), 3, "nobody has looked");
        let now = runtime.now();
        match call {
            0 => bucket.recheck(),
            1 => drop(leaves),
            2 => assert_eq!(at_once(bucket.acquire(1)).await, None),
            _ => bucket.give_back(0, bucket.try_acquire(0).expect("nothing")),
        }
        let waiter = waiter.await;
        assert_eq!(waiter.at, now);
        assert!(waiter.with.is_ok());
        drop(stuck);
        // Of what came in 350 ms, the waiter has one, and what the stuck one had is back.
        assert_eq!(level::<E>(&bucket, now), 2);
    }
}

/// The first of those behind it takes charge once its relief has passed, and who comes after that is served on time.
pub async fn b06_relief_lets_those_behind_one_that_is_stuck_go_on_time<E: Executor>(runtime: E::Runtime) {
    let relief = Duration::from_millis(150);
    let bucket = empty_with::<E>(&runtime, quota!("10/1s"), WaitOptions::new().relief(Some(relief)));
    let begin = runtime.now();
    let mut stuck = Box::pin(bucket.acquire_owned(1));
    assert_eq!(at_once(&mut stuck).await, None);
    let mut waiters = Vec::new();
    for _ in 0..8 {
        waiters.push(start::<E, _>(&runtime, bucket.acquire_owned(1)).await);
    }
    // The first one's turn is after 200 ms, and its relief after 350: then two more are there.
    for (waiter, turn) in waiters.into_iter().zip(2..) {
        let waiter = waiter.await;
        assert!(waiter.with.is_ok());
        let due = begin + (Duration::from_millis(100) * turn).max(Duration::from_millis(200) + relief);
        assert_on_time::<E>(waiter.at, due);
    }
    drop(stuck);
    assert_eq!((level::<E>(&bucket, runtime.now()), bucket.waiters()), (1, 0), "what the stuck one had is back");
}

/// One of them after another gets stuck at the head: relief serves all others in the end, within the bound that it states.
pub async fn b06_relief_holds_however_many_get_stuck_meanwhile<E: Executor>(runtime: E::Runtime) {
    let relief = Duration::from_millis(100);
    let bucket = empty_with::<E>(&runtime, quota!("10/1s"), WaitOptions::new().relief(Some(relief)));
    let begin = runtime.now();
    let (mut stuck, mut waiters) = (Vec::new(), Vec::new());
    for turn in 1..=30_u32 {
        if turn % 3 == 0 {
            waiters.push((turn, start::<E, _>(&runtime, bucket.acquire_owned(1)).await));
        } else {
            let mut one = Box::pin(bucket.acquire_owned(1));
            assert_eq!(at_once(&mut one).await, None);
            stuck.push(one);
        }
    }
    for (turn, waiter) in waiters {
        let waiter = waiter.await;
        assert!(waiter.with.is_ok());
        let turn = Duration::from_millis(100) * turn;
        assert!(waiter.at >= begin + turn && waiter.at <= begin + (turn * 2 + relief + 2 * E::GRAIN), "{waiter:?}");
    }
    drop(stuck);
    assert_eq!(bucket.waiters(), 0);
}

/// Of a bucket that holds for a waiter what it has not fetched: one that needs all of the bucket goes all the same, and what the
/// stuck one had comes back when it is dropped.
pub async fn b06_what_a_stuck_one_was_granted_is_in_nobodys_way_for_good<E: Executor>(runtime: E::Runtime) {
    let bucket = adjustable::<E>(&runtime, quota!("10/1s"));
    assert!(bucket.try_acquire(10).is_ok());
    let begin = runtime.now();
    let mut stuck = Box::pin(bucket.acquire_owned(4));
    assert_eq!(at_once(&mut stuck).await, None);
    let waiter = start::<E, _>(&runtime, bucket.acquire_owned(10)).await.await;
    assert!(waiter.with.is_ok());
    let expected = Duration::from_millis(1_400);
    assert!(waiter.at >= begin + expected, "the other one went first");
    assert!(waiter.at <= begin + (expected * 2 + Duration::from_millis(100) + 2 * E::GRAIN), "{:?}", waiter.at);
    let now = runtime.now();
    assert_eq!((bucket.limiter().held(), bucket.limiter().inspect_at(now).level), (0, 0));
    drop(stuck);
    assert_eq!(bucket.limiter().inspect_at(now).level, 4);
    assert_eq!(bucket.waiters(), 0);
}

/// It unwinds, and its place and what it was granted go to those behind it.
pub async fn b06_who_panics_gives_its_place_up<E: Executor>(runtime: E::Runtime) {
    let bucket = empty_with::<E>(&runtime, quota!("10/10s"), WaitOptions::new().relief(None));
    let begin = runtime.now();
    let (clock, queued) = (runtime.clone(), bucket.clone());
    let panics = start::<E, _>(
        &runtime,
        AssertUnwindSafe(async move {
            let breaks = async {
                clock.sleep_until(begin + Duration::from_millis(2_500)).await;
                std::panic::panic_any(AS_TOLD);
            };
            or(async { queued.acquire(10).await.map(drop) }, breaks).await
        })
        .catch_unwind(),
    )
    .await;
    let behind = start::<E, _>(&runtime, bucket.acquire_owned(2)).await;
    let panics = panics.await;
    assert!(panics.with.is_err(), "it has panicked");
    let behind = behind.await;
    assert!(behind.with.is_ok());
    assert_eq!(behind.at, panics.at);
    assert_eq!((level::<E>(&bucket, behind.at), bucket.waiters()), (0, 0));
}

/// The task that polled it last is woken, and no other: where it was granted, and where it has to mind the time.
pub async fn b06_who_goes_to_another_task_is_woken_there<E: Executor>(runtime: E::Runtime) {
    let bucket = empty_with::<E>(&runtime, quota!("10/10s"), WaitOptions::new().relief(None));
    let begin = runtime.now();
    let mut waiters = Vec::new();
    for _ in 0..3 {
        // Here, in a task that ends while it waits, and in one that stays.
        let mut acquire = Box::pin(bucket.acquire_owned(2));
        assert_eq!(at_once(&mut acquire).await, None);
        let passing = spawn::<E, _>(&runtime, async move {
            assert_eq!(at_once(&mut acquire).await, None);
            (acquire,)
        });
        let (acquire,) = passing.await;
        waiters.push(start::<E, _>(&runtime, acquire).await);
    }
    settle::<E>(&runtime).await;
    let now = runtime.now();
    bucket.give_back(2, bucket.try_acquire(0).expect("nothing"));
    let mut waiters = waiters.into_iter();
    let granted = waiters.next().expect("three").await;
    assert_eq!(granted.at, now);
    assert!(granted.with.is_ok());
    for (waiter, turn) in waiters.zip(1..) {
        let waiter = waiter.await;
        assert!(waiter.with.is_ok());
        assert_on_time::<E>(waiter.at, begin + Duration::from_secs(2 * turn));
    }
}
