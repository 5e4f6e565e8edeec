//! Who leaves before its turn, at its turn, or without saying so.

use alloc::collections::VecDeque;
use core::time::Duration;

use sluicegate_runtime::{Clock, WaitOptions, quota};

use crate::executor::Executor;
use crate::limiters::{empty, empty_with, is_granted, is_rate_limited, level};
use crate::tasks::{assert_on_time, at_once, pass, settle, start, unless};

/// Dropped in a task of its own, while everybody waits.
pub async fn b06_who_is_dropped_while_all_wait_takes_nothing<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let begin = runtime.now();
    let mut leaving = Vec::new();
    for number in 1..=20 {
        let acquire = bucket.acquire_owned(1 + number % 3);
        let leaves = begin + Duration::from_millis(500 + number);
        leaving.push(start::<E, _>(&runtime, unless(runtime.clone(), leaves, acquire)).await);
    }
    let stays = start::<E, _>(&runtime, bucket.acquire_owned(10)).await;
    for leaving in leaving {
        assert_eq!(leaving.await.with, None);
    }
    assert_eq!(bucket.waiters(), 1);
    let stays = stays.await;
    assert!(stays.with.is_ok());
    assert_on_time::<E>(stays.at, begin + Duration::from_secs(10));
    assert_eq!((level::<E>(&bucket, stays.at), bucket.waiters()), (0, 0));
}

/// At once, if what was kept for the one ahead is enough for them.
pub async fn b06_who_is_dropped_lets_those_behind_move_up<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let mut large = Box::pin(bucket.acquire_owned(10));
    assert_eq!(at_once(&mut large).await, None);
    let small = start::<E, _>(&runtime, bucket.acquire_owned(2)).await;
    pass::<E>(&runtime, Duration::from_millis(2_500)).await;
    assert_eq!(bucket.waiters(), 2);
    let now = runtime.now();
    drop(large);
    let small = small.await;
    assert_eq!(small.at, now);
    assert!(small.with.is_ok());
    assert_eq!((level::<E>(&bucket, now), bucket.waiters()), (0, 0));
}

/// A wait that ends by its timeout is a wait that ends.
pub async fn b06_who_times_out_lets_those_behind_move_up<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let begin = runtime.now();
    let large = start::<E, _>(&runtime, bucket.acquire_timeout_owned(10, Duration::from_millis(10_500))).await;
    let small = start::<E, _>(&runtime, bucket.acquire_owned(2)).await;
    pass::<E>(&runtime, Duration::from_millis(5_500)).await;
    assert!(bucket.try_acquire(2).is_ok());
    let (large, small) = (large.await, small.await);
    assert!(is_rate_limited(Some(large.with)));
    assert!(small.with.is_ok());
    assert_on_time::<E>(large.at, begin + Duration::from_millis(10_500));
    assert_on_time::<E>(small.at, large.at);
    assert_eq!(level::<E>(&bucket, small.at), 6);
}

/// Granted by somebody else's call, dropped before it was polled again: the next one has what it was granted.
pub async fn b06_who_was_granted_and_is_dropped_passes_it_on<E: Executor>(runtime: E::Runtime) {
    let bucket = empty_with::<E>(&runtime, quota!("10/10h"), WaitOptions::new().relief(None));
    let mut first = Box::pin(bucket.acquire_owned(2));
    assert_eq!(at_once(&mut first).await, None);
    let second = start::<E, _>(&runtime, bucket.acquire_owned(2)).await;
    pass::<E>(&runtime, Duration::from_secs(2 * 3600)).await;
    bucket.recheck();
    assert_eq!((level::<E>(&bucket, runtime.now()), bucket.waiters()), (0, 1));
    settle::<E>(&runtime).await;
    let now = runtime.now();
    drop(first);
    let second = second.await;
    assert_eq!(second.at, now);
    assert!(second.with.is_ok());
    assert_eq!((level::<E>(&bucket, now), bucket.waiters()), (0, 0));
}

/// Fifty futures that were polled once and never again stand ahead of one that is.
pub async fn b06_who_is_never_polled_again_holds_nobody_up_for_good<E: Executor>(runtime: E::Runtime) {
    let relief = Duration::from_millis(100);
    let bucket = empty_with::<E>(&runtime, quota!("10/1s"), WaitOptions::new().relief(Some(relief)));
    let begin = runtime.now();
    let mut stuck: Vec<_> = (0..50).map(|_| Box::pin(bucket.acquire_owned(1))).collect();
    for stuck in &mut stuck {
        assert_eq!(at_once(stuck).await, None);
    }
    let waiter = start::<E, _>(&runtime, bucket.acquire_owned(1)).await.await;
    assert!(waiter.with.is_ok());
    let expected = Duration::from_millis(5_100);
    assert!(waiter.at > begin + expected, "the others went first");
    assert!(waiter.at <= begin + (expected * 2 + relief + 2 * E::GRAIN), "{:?}", waiter.at);
    drop(stuck);
    assert_eq!(
        (level::<E>(&bucket, runtime.now()), bucket.waiters()),
        (10, 0),
        "what the stuck ones had has come back"
    );
}

/// Three hundred wait, a third of them not to the end. The rest is served as if those had never come, save for what was served
/// before they left.
pub async fn b06_cancellations_at_random_change_nothing_for_the_rest<E: Executor>(runtime: E::Runtime) {
    let bucket = empty_with::<E>(&runtime, quota!("100/1s burst 10"), WaitOptions::new());
    let begin = runtime.now();
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut waiters = Vec::new();
    for _ in 0..300 {
        let cost = 1 + next(10);
        // In between two tokens, so that no two things happen at once.
        let leaves = (next(3) == 0).then(|| next(1_000));
        let acquire = bucket.acquire_owned(cost);
        let end = match leaves {
            Some(tick) => {
                let at = begin + (TICK * u32::try_from(tick).expect("a thousand") + TICK / 2);
                start::<E, _>(&runtime, unless(runtime.clone(), at, acquire)).await
            }
            None => start::<E, _>(&runtime, async { Some(acquire.await) }).await,
        };
        waiters.push((cost, leaves, end));
    }
    let model = served(&waiters.iter().map(|(cost, leaves, _)| (*cost, *leaves)).collect::<Vec<_>>());
    for (number, ((_, _, end), half_ticks)) in waiters.into_iter().zip(model).enumerate() {
        let end = end.await.with;
        let Some(half_ticks) = half_ticks else {
            assert_eq!(end, None, "{number}");
            continue;
        };
        let admitted = end.unwrap_or_else(|| panic!("{number} was not served")).expect("granted");
        assert_on_time::<E>(admitted.at, begin + TICK / 2 * half_ticks);
    }
    assert_eq!(bucket.waiters(), 0);
    // Nothing was lost: it has what it would have had with the last one served and nobody else there.
    settle::<E>(&runtime).await;
    pass::<E>(&runtime, Duration::from_secs(1)).await;
    assert_eq!(level::<E>(&bucket, runtime.now()), 10);
    assert!(is_granted(at_once(bucket.acquire(10)).await));
}

/// Each may leave at the very reading at which one of them is served: whoever loses that race, no token is lost or made.
pub async fn b06_cancellations_that_race_with_grants_lose_nothing<E: Executor>(runtime: E::Runtime) {
    let bucket = empty_with::<E>(&runtime, quota!("100/1s burst 1000"), WaitOptions::new());
    let begin = runtime.now();
    let mut waiters = Vec::new();
    for number in 0..400_u32 {
        // One that leaves lets several go behind it, some of which leave at the same reading and have not learnt of it.
        let cost = if number % 4 == 0 { 9 } else { 1 };
        let leaves = begin + TICK * (1 + number / 4);
        let acquire = unless(runtime.clone(), leaves, bucket.acquire_owned(cost));
        waiters.push((cost, start::<E, _>(&runtime, acquire).await));
    }
    let mut admitted = 0;
    for (cost, waiter) in waiters {
        if is_granted(waiter.await.with) {
            admitted += u128::from(cost);
        }
    }
    assert_eq!(bucket.waiters(), 0);
    let flowed = runtime.now().saturating_duration_since(begin).as_nanos() / TICK.as_nanos();
    assert_eq!(u128::from(level::<E>(&bucket, runtime.now())), flowed - admitted);
    assert!(admitted > 0);
}

/// In which half of a tick each waiter is served by a bucket that gets one token a tick, from its cost and the tick after which it
/// leaves; `None` if it has left by then.
fn served(waiters: &[(u64, Option<u64>)]) -> Vec<Option<u32>> {
    let mut served = vec![None; waiters.len()];
    let mut queue: VecDeque<usize> = (0..waiters.len()).collect();
    let mut taken = 0;
    let mut now = 0;
    while !queue.is_empty() {
        queue.retain(|&number| waiters[number].1.is_none_or(|tick| 2 * tick + 1 > u64::from(now)));
        while let Some(&head) = queue.front().filter(|&&head| taken + waiters[head].0 <= u64::from(now / 2)) {
            taken += waiters[head].0;
            served[head] = Some(now);
            queue.pop_front();
        }
        now += 1;
    }
    served
}

const TICK: Duration = Duration::from_millis(10);
