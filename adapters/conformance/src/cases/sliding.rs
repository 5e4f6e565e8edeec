//! Waiting for limits over a sliding window, and for one that can be adjusted.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::time::Duration;

use parking_lot::RawMutex;
use sluicegate_runtime::{
    AdjustableBucket, Admitted, Clock, Denied, Grantor, Limiter, Nanos, Queued, Run, SharedSlidingLog, SlidingCounter,
    SlidingLog, WaitOptions, quota,
};

use crate::executor::Executor;
use crate::limiters::{Waited, is_granted};
use crate::tasks::{assert_on_time, at_once, pass, settle, start, unless};

type Log = SharedSlidingLog<RawMutex, VecDeque<Run>>;

/// Ten in ten seconds.
fn log() -> Log {
    SharedSlidingLog::new(SlidingLog::new("10/10s".parse().expect("a rate")))
}

/// Ten in ten seconds, by estimate.
fn counter() -> SlidingCounter<()> {
    SlidingCounter::with_limit(quota!("10/10s").try_into().expect("a quota without a burst"), ()).expect("it fits")
}

/// Ten, and one a second.
fn adjustable() -> AdjustableBucket<()> {
    AdjustableBucket::with_limit(quota!("10/10s").into(), ())
}

fn queued<E: Executor, L: Grantor>(runtime: &E::Runtime, limiter: L) -> Waited<E, L> {
    Arc::new(Queued::new(limiter, runtime.clone(), WaitOptions::new().relief(None)))
}

/// Whoever waits, whoever leaves meanwhile, and whoever barges in: counted one by one.
pub async fn b02_no_window_holds_more_than_the_count_whoever_waits<E: Executor>(runtime: E::Runtime) {
    let log = queued::<E, _>(&runtime, log());
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let (mut waiters, mut taken) = (Vec::new(), Vec::new());
    for _ in 0..150 {
        let cost = 1 + next(6);
        if next(4) == 0 {
            // It takes what is there, before those who wait.
            if let Ok(admitted) = log.try_acquire(cost) {
                taken.push((admitted.at, cost));
            }
        }
        let at = runtime.now() + Duration::from_millis(next(90_000));
        let acquire = log.acquire_owned(cost);
        let waiter = match next(3) {
            0 => start::<E, _>(&runtime, unless(runtime.clone(), at, acquire)).await,
            _ => start::<E, _>(&runtime, async { Some(acquire.await) }).await,
        };
        waiters.push((cost, waiter));
        pass::<E>(&runtime, Duration::from_millis(next(2_000))).await;
    }
    for (cost, waiter) in waiters {
        if let Some(decision) = waiter.await.with {
            taken.push((decision.expect("never closed").at, cost));
        }
    }
    assert!(taken.len() > 100, "{}", taken.len());
    for &(from, _) in &taken {
        let is_within = |at: Nanos| from <= at && at < from + Duration::from_secs(10);
        let held: u64 = taken.iter().filter(|(at, _)| is_within(*at)).map(|(_, cost)| cost).sum();
        assert!(held <= 10, "{held} from {from:?} on");
    }
    assert_eq!(log.waiters(), 0);
}

/// Each as soon as what went before it lets it.
pub async fn b07_waiters_of_a_sliding_log_go_first_in_first_out<E: Executor>(runtime: E::Runtime) {
    go_first_in_first_out::<E, _>(runtime, log).await;
}

/// Each as soon as the estimate lets it.
pub async fn b07_waiters_of_a_sliding_counter_go_first_in_first_out<E: Executor>(runtime: E::Runtime) {
    go_first_in_first_out::<E, _>(runtime, counter).await;
}

/// Each when its tokens are there.
pub async fn b07_waiters_of_an_adjustable_bucket_go_first_in_first_out<E: Executor>(runtime: E::Runtime) {
    go_first_in_first_out::<E, _>(runtime, adjustable).await;
}

/// Compares with a limiter that is asked for one after the other.
async fn go_first_in_first_out<E: Executor, L>(runtime: E::Runtime, limiter: fn() -> L)
where
    L: Grantor<Cost = u64, Grant = Admitted, Denial = Denied> + Limiter + Send + Sync + 'static,
{
    let (waited, model) = (queued::<E, _>(&runtime, limiter()), limiter());
    pass::<E>(&runtime, Duration::from_secs(3)).await;
    let mut after = runtime.now();
    let mut waiters = Vec::new();
    for number in 0..40_u32 {
        let cost = [3, 1, 10, 1, 2][number as usize % 5];
        waiters.push((cost, start::<E, _>(&runtime, waited.acquire_owned(cost)).await));
        if number % 8 == 0 {
            settle::<E>(&runtime).await;
        }
    }
    for (number, (cost, waiter)) in waiters.into_iter().enumerate() {
        let waiter = waiter.await;
        let at = waiter.with.expect("granted").at;
        let mut turn = after;
        while let Err(denied) = Limiter::peek_at(&model, turn, cost) {
            turn = turn + denied.retry_after().expect("it will be there");
        }
        // Those who come while the first ones go have no earlier turn than they came.
        if number >= 5 {
            assert_on_time::<E>(at, turn);
        }
        assert!(model.try_acquire_at(at, cost).is_ok(), "{number} went too early");
        after = at;
    }
    assert_eq!(waited.waiters(), 0);
}

/// Granted by somebody else's call, and dropped before it was polled again, after so long that all would have come back in any case.
pub async fn b06_what_nobody_fetched_leaves_no_trace<E: Executor>(runtime: E::Runtime) {
    leaves_no_trace::<E, _>(&runtime, log()).await;
    leaves_no_trace::<E, _>(&runtime, counter()).await;
    leaves_no_trace::<E, _>(&runtime, adjustable()).await;
}

async fn leaves_no_trace<E: Executor, L>(runtime: &E::Runtime, limiter: L)
where
    L: Grantor<Cost = u64, Grant = Admitted, Denial = Denied> + Limiter + Send + Sync + 'static,
{
    let waited = queued::<E, _>(runtime, limiter);
    assert!(waited.try_acquire(10).is_ok());
    for wait in [5, 15, 60] {
        let mut waiter = Box::pin(waited.acquire_owned(10));
        assert_eq!(at_once(&mut waiter).await, None);
        pass::<E>(runtime, Duration::from_secs(20)).await;
        waited.recheck();
        assert_eq!(waited.waiters(), 0, "it was granted");
        pass::<E>(runtime, Duration::from_secs(wait)).await;
        // Whether it counts until it leaves or has come back by itself: all is there once.
        let before = waited.try_acquire(10).is_ok();
        assert!(!before || wait > 5, "it has not come back yet");
        drop(waiter);
        let after = waited.try_acquire(10).is_ok();
        assert!(before != after, "after {wait} s: {before}, {after}");
        assert!(waited.try_acquire(1).is_err(), "more than there is");
        pass::<E>(runtime, Duration::from_secs(30)).await;
        assert!(is_granted(at_once(waited.acquire(10)).await));
    }
}
