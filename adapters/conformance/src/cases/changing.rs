//! What changes while somebody waits.

use core::time::Duration;

use sluicegate_runtime::{Clock, Denied, Inheritance, quota};

use crate::executor::Executor;
use crate::limiters::{adjustable, empty};
use crate::tasks::{assert_on_time, pass, settle, start};

/// They sleep until another turn.
pub async fn c08_waiters_see_a_change_of_rate_at_once<E: Executor>(runtime: E::Runtime) {
    let bucket = adjustable::<E>(&runtime, quota!("10/10h"));
    assert!(bucket.try_acquire(10).is_ok());
    let first = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    let second = start::<E, _>(&runtime, bucket.acquire_owned(1)).await;
    pass::<E>(&runtime, Duration::from_secs(1_800)).await;
    let now = runtime.now();
    // Half a token is there; the other half comes in half a minute.
    bucket.limiter().adjust_at(now, quota!("10/10m").into(), Inheritance::Level);
    bucket.recheck();
    assert_on_time::<E>(first.await.at, now + Duration::from_secs(30));
    // And back to slower: what was a minute away is an hour away.
    settle::<E>(&runtime).await;
    let now = now + Duration::from_secs(60);
    let after = runtime.now();
    bucket.limiter().adjust_at(after, quota!("10/10h").into(), Inheritance::Empty);
    bucket.recheck();
    let second = second.await;
    assert!(second.with.is_ok());
    assert!(second.at > now);
    assert_on_time::<E>(second.at, after + Duration::from_secs(3_600));
}

/// Those whom it lets go, go.
pub async fn c08_waiters_see_a_larger_limit_at_once<E: Executor>(runtime: E::Runtime) {
    let bucket = adjustable::<E>(&runtime, quota!("10/10h"));
    assert!(bucket.try_acquire(10).is_ok());
    let mut waiters = Vec::new();
    for _ in 0..25 {
        waiters.push(start::<E, _>(&runtime, bucket.acquire_owned(1)).await);
    }
    settle::<E>(&runtime).await;
    let now = runtime.now();
    bucket.limiter().adjust_at(now, quota!("30/30h").into(), Inheritance::Spent);
    bucket.recheck();
    assert_eq!(bucket.waiters(), 5, "twenty more are there");
    for (waiter, number) in waiters.into_iter().zip(0_u32..) {
        let waiter = waiter.await;
        assert!(waiter.with.is_ok());
        match number {
            0..20 => assert_eq!(waiter.at, now),
            _ => assert!(waiter.at > now),
        }
    }
}

/// What can never be any more is not waited for.
pub async fn c08_waiters_see_a_limit_below_their_cost_at_once<E: Executor>(runtime: E::Runtime) {
    let bucket = adjustable::<E>(&runtime, quota!("10/10h"));
    assert!(bucket.try_acquire(10).is_ok());
    let large = start::<E, _>(&runtime, bucket.acquire_owned(8)).await;
    let small = start::<E, _>(&runtime, bucket.acquire_owned(2)).await;
    pass::<E>(&runtime, Duration::from_secs(3 * 3_600)).await;
    let now = runtime.now();
    bucket.limiter().adjust_at(now, quota!("5/5h").into(), Inheritance::Level);
    bucket.recheck();
    let (large, small) = (large.await, small.await);
    assert_eq!((large.at, large.with), (now, Err(Denied::CostExceedsLimit { cost: 8, limit: 5 })));
    // Three are there, and nobody stands ahead any more.
    assert_eq!(small.at, now);
    assert!(small.with.is_ok());
}

/// As far as it reaches; and who is then at the head sleeps until its own turn.
pub async fn d02_what_is_given_back_goes_to_who_waits_at_once<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10h"));
    let begin = runtime.now();
    let first = start::<E, _>(&runtime, bucket.acquire_owned(3)).await;
    let second = start::<E, _>(&runtime, bucket.acquire_owned(3)).await;
    settle::<E>(&runtime).await;
    let now = runtime.now();
    let taken = bucket.try_acquire(0).expect("nothing");
    bucket.give_back(4, taken);
    let first = first.await;
    assert_eq!(first.at, now);
    assert!(first.with.is_ok());
    assert_eq!(bucket.waiters(), 1);
    let second = second.await;
    assert!(second.with.is_ok());
    assert_on_time::<E>(second.at, begin + Duration::from_secs(2 * 3_600));
    // Too little for the head, which now sleeps for less.
    let third = start::<E, _>(&runtime, bucket.acquire_owned(3)).await;
    bucket.give_back(1, taken);
    let third = third.await;
    assert!(third.with.is_ok());
    assert_on_time::<E>(third.at, begin + Duration::from_secs(4 * 3_600));
}
