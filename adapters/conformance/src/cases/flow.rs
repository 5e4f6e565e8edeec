//! What is limited in its flow: departures, and what is in flight.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use sluicegate_runtime::{
    Clock, ConcurrencyLimit, Denied, PER_SECOND, Paced, Pacing, QueuedPermits, Rate, Runtime, WaitOptions, quota,
};

use crate::executor::Executor;
use crate::limiters::{bucket, is_rate_limited};
use crate::tasks::{assert_on_time, at_once, settle, start, unless};

type InFlight<E> = Arc<QueuedPermits<<E as Executor>::Runtime, <E as Executor>::Lock, <E as Executor>::Room>>;

fn in_flight<E: Executor>(runtime: &E::Runtime, limit: u32) -> InFlight<E> {
    Arc::new(QueuedPermits::new(ConcurrencyLimit::new(limit), runtime.clone(), WaitOptions::new()))
}

/// It queues up to its bound, and goes at even distances; beyond the bound it is refused at once.
pub async fn c06_a_burst_departs_at_the_rate<E: Executor>(runtime: E::Runtime) {
    let pacing = Pacing::new(Rate::new(1, PER_SECOND).expect("a rate"), 20).expect("a bound");
    let paced = Arc::new(Paced::new(pacing, runtime.clone()));
    let begin = runtime.now();
    let mut departures = Vec::new();
    while paced.bucket().peek_at(begin, 1).is_ok() {
        departures.push(start::<E, _>(&runtime, paced.pace_owned(1)).await);
    }
    assert_eq!(departures.len(), 21, "one goes at once, and twenty wait");
    assert!(matches!(at_once(paced.pace(1)).await, Some(Err(_))));
    for (departure, number) in departures.into_iter().zip(0..) {
        let departure = departure.await;
        assert!(departure.with.is_ok());
        assert_on_time::<E>(departure.at, begin + Duration::from_secs(number));
    }
}

/// Three in flight at once, and each of them paid for with a token: both limits hold, in order, whoever leaves
/// meanwhile.
pub async fn c17_permits_compose_with_tokens_and_go_in_order<E: Executor>(runtime: E::Runtime) {
    let in_flight = in_flight::<E>(&runtime, 3);
    let tokens = bucket::<E>(&runtime, quota!("40/40h"));
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let begin = runtime.now();
    let mut calls = Vec::new();
    for _ in 0..40 {
        let (running, most, tokens, clock) = (running.clone(), most.clone(), tokens.clone(), runtime.clone());
        let permit = in_flight.acquire_permit_owned(1);
        calls.push(
            start::<E, _>(&runtime, async move {
                let permit = permit.await.expect("never closed");
                let at = clock.now();
                tokens.acquire(1).await.expect("enough for all");
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                clock.sleep_until(at + Duration::from_secs(1)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                drop(permit);
                at
            })
            .await,
        );
    }
    // Most of these leave while they wait.
    let mut leaving = Vec::new();
    for number in 1..=30 {
        let leaves = begin + Duration::from_millis(500 * number);
        leaving.push(start::<E, _>(&runtime, unless(runtime.clone(), leaves, in_flight.acquire_permit_owned(1))).await);
    }
    for (call, number) in calls.into_iter().zip(0_u32..) {
        let at = call.await.with;
        let due = begin + Duration::from_secs(u64::from(number / 3));
        assert!(due <= at && at <= due + E::GRAIN * (number / 3), "{number} at {at:?}");
    }
    for leaving in leaving {
        drop(leaving.await);
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert_eq!((in_flight.usage().in_use, in_flight.waiters()), (0, 0));
    assert!(is_rate_limited(Some(tokens.try_acquire(1))));
}

/// It was granted when another was released, and dropped before it was polled again.
pub async fn c17_a_permit_that_nobody_fetches_goes_to_the_next<E: Executor>(runtime: E::Runtime) {
    let in_flight = in_flight::<E>(&runtime, 1);
    let first = in_flight.try_acquire_permit(1).expect("a permit");
    let mut second = Box::pin(in_flight.acquire_permit_owned(1));
    assert!(at_once(&mut second).await.is_none());
    let third = start::<E, _>(&runtime, in_flight.acquire_permit_owned(1)).await;
    drop(first);
    settle::<E>(&runtime).await;
    assert_eq!((in_flight.usage().in_use, in_flight.waiters()), (1, 1));
    let now = runtime.now();
    drop(second);
    let third = third.await;
    assert_eq!(third.at, now);
    let permit = third.with.expect("a permit");
    assert_eq!((in_flight.usage().in_use, in_flight.waiters()), (1, 0));
    permit.success();
    assert_eq!(in_flight.usage().in_use, 0);
}

/// It says that too much is in use, and holds nothing; those behind it move up. One that is released in time is had in time.
pub async fn c17_a_timeout_ends_the_wait_for_a_permit<E: Executor>(runtime: E::Runtime) {
    let in_flight = in_flight::<E>(&runtime, 3);
    let begin = runtime.now();
    let (first, second) = (in_flight.try_acquire_permit(1).expect("three"), in_flight.try_acquire_permit(1));
    let zero = at_once(in_flight.acquire_permit_timeout(2, Duration::ZERO)).await.map(|permit| permit.map(drop));
    assert_eq!(zero, Some(Err(Denied::ConcurrencyLimited)));
    let large = in_flight.acquire_permit_timeout_owned(3, Duration::from_millis(1_500));
    let large = start::<E, _>(&runtime, large).await;
    let small = start::<E, _>(&runtime, in_flight.acquire_permit_owned(1)).await;
    let patient = in_flight.acquire_permit_timeout_owned(2, Duration::from_secs(4));
    let patient = start::<E, _>(&runtime, patient).await;
    settle::<E>(&runtime).await;
    assert_eq!(in_flight.waiters(), 3, "the large one is not overtaken");
    let large = large.await;
    assert_eq!(large.with.map(drop), Err(Denied::ConcurrencyLimited));
    assert_on_time::<E>(large.at, begin + Duration::from_millis(1_500));
    let small = small.await;
    assert_on_time::<E>(small.at, large.at);
    assert_eq!((in_flight.usage().in_use, in_flight.waiters()), (3, 1));
    drop((first, second));
    let patient = patient.await;
    assert_on_time::<E>(patient.at, small.at);
    assert_eq!(in_flight.usage().in_use, 3);
    drop((small.with, patient.with));
    assert_eq!((in_flight.usage().in_use, in_flight.waiters()), (0, 0));
}

/// And a limit that is below what somebody waits for ends its wait.
pub async fn c08_waiters_for_permits_see_a_limit_at_once<E: Executor>(runtime: E::Runtime) {
    let in_flight = in_flight::<E>(&runtime, 2);
    let _held = in_flight.try_acquire_permit(2).expect("two");
    let large = start::<E, _>(&runtime, in_flight.acquire_permit_owned(2)).await;
    let small = start::<E, _>(&runtime, in_flight.acquire_permit_owned(1)).await;
    settle::<E>(&runtime).await;
    let now = runtime.now();
    in_flight.set_limit(1);
    let large = large.await;
    assert_eq!((large.at, large.with.map(drop)), (now, Err(Denied::CostExceedsLimit { cost: 2, limit: 1 })));
    settle::<E>(&runtime).await;
    assert_eq!(in_flight.waiters(), 1);
    let now = runtime.now();
    in_flight.set_limit(3);
    let small = small.await;
    assert_eq!(small.at, now);
    assert!(small.with.is_ok());
}
