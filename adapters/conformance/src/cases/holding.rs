//! What is held until it is known what it cost, and what is held at several levels.

use alloc::sync::Arc;
use core::time::Duration;

use sluicegate_runtime::{
    AdjustableBucket, Clock, Denied, Hierarchy, Level, OwnedHierarchy, Queued, Quota, WaitOptions, quota,
};

use crate::executor::Executor;
use crate::limiters::{Waited, adjustable};
use crate::tasks::{assert_on_time, settle, start};

/// A reservation waits in the line of all others, and its end lets those behind it go, before any clock would.
pub async fn d02_what_a_reservation_did_not_need_goes_to_who_waits_at_once<E: Executor>(runtime: E::Runtime) {
    let bucket = adjustable::<E>(&runtime, quota!("10/10h"));
    let begin = runtime.now();
    let all = bucket.reserve_owned(10).await.expect("it is full");
    let second = start::<E, _>(&runtime, bucket.reserve_owned(6)).await;
    let third = start::<E, _>(&runtime, bucket.acquire_owned(2)).await;
    assert_eq!(bucket.try_reserve(1).err(), Some(Denied::ConcurrencyLimited), "all of it is held");
    settle::<E>(&runtime).await;
    let at = runtime.now();
    assert_eq!(all.settle(3).charged, 3);
    let second = second.await;
    assert_eq!(second.at, at);
    // Seven were left, and six of them are held now.
    assert_eq!(bucket.waiters(), 1);
    settle::<E>(&runtime).await;
    let at = runtime.now();
    drop(second.with.expect("it was granted"));
    let third = third.await;
    assert!(third.with.is_ok());
    assert_eq!(third.at, at);
    assert!(at < begin + Duration::from_secs(60), "nothing was refilled");
    assert_eq!((bucket.limiter().held(), bucket.limiter().inspect_at(at).level), (0, 5));
}

/// What it was granted, and nobody knows of, is let go as if it had never been held.
pub async fn b06_who_waits_for_a_reservation_and_is_dropped_holds_nothing<E: Executor>(runtime: E::Runtime) {
    let bucket = adjustable::<E>(&runtime, quota!("10/10h"));
    let all = bucket.try_reserve(10).expect("it is full");
    let mut granted = Box::pin(bucket.reserve(10));
    assert!(futures_lite::future::poll_once(&mut granted).await.is_none());
    let behind = start::<E, _>(&runtime, bucket.acquire_owned(4)).await;
    all.cancel();
    assert_eq!(bucket.limiter().held(), 10, "it is granted, and was not polled since");
    drop(granted);
    assert!(behind.await.with.is_ok());
    let now = runtime.now();
    assert_eq!((bucket.limiter().held(), bucket.limiter().inspect_at(now).level), (0, 6));
}

type Levels<E> = Waited<E, OwnedHierarchy<2>>;

/// A tenant's level of `quota` below `global`.
fn tenant<E: Executor>(runtime: &E::Runtime, global: &Arc<Level<AdjustableBucket<()>>>, quota: Quota) -> Levels<E> {
    let own = Arc::new(Level::new("tenant", AdjustableBucket::with_limit(quota.into(), ())));
    let levels = OwnedHierarchy::new([global.clone(), own]).expect("two levels");
    Arc::new(Queued::new(levels, runtime.clone(), WaitOptions::new()))
}

/// The answer tells what remains at every level or which of them refused, and each cost may differ.
pub async fn c09_a_hierarchy_is_waited_for_as_a_whole<E: Executor>(runtime: E::Runtime) {
    let global = Arc::new(Level::new("global", AdjustableBucket::with_limit(quota!("100/100s").into(), ())));
    let tenant = tenant::<E>(&runtime, &global, quota!("10/20s"));
    let begin = runtime.now();
    let at_once = tenant.acquire([1, 10]).await.expect("all is there");
    assert_eq!(at_once.map(|admitted| admitted.remaining.exactly()), [Some(99), Some(0)]);
    assert_eq!(tenant.try_acquire([1, 1]).unwrap_err().name, "tenant");
    assert_eq!(tenant.acquire([101, 1]).await.unwrap_err().name, "global");
    // Its own level is what it waits for, and who does not have the time for that is told so.
    let waiting = start::<E, _>(&runtime, tenant.acquire_owned([5, 3])).await;
    let refused = tenant.acquire_timeout([1, 1], Duration::from_secs(7)).await.unwrap_err();
    assert_eq!((refused.level, refused.name), (1, "tenant"));
    let waited = waiting.await;
    assert_on_time::<E>(waited.at, begin + Duration::from_secs(6));
    assert!(waited.with.is_ok());
}

/// What a waiter was granted and did not learn of is let go at every level.
pub async fn c09_who_waits_for_a_hierarchy_and_is_dropped_takes_nothing_at_any_level<E: Executor>(runtime: E::Runtime) {
    let global = Arc::new(Level::new("global", AdjustableBucket::with_limit(quota!("10/10h").into(), ())));
    let tenant = tenant::<E>(&runtime, &global, quota!("20/20h"));
    let all = tenant.acquire([10, 10]).await.expect("all is there");
    let mut granted = Box::pin(tenant.acquire([6, 4]));
    assert!(futures_lite::future::poll_once(&mut granted).await.is_none());
    let behind = start::<E, _>(&runtime, tenant.acquire_owned([7, 1])).await;
    tenant.give_back([10, 10], all);
    drop(granted);
    assert!(behind.await.with.is_ok());
    let now = runtime.now();
    let left = |hierarchy: Hierarchy<'_, 2>| hierarchy.inspect_at(now).map(|inspection| inspection.level);
    assert_eq!(left(tenant.limiter().hierarchy()), [3, 19]);
}
