//! Tokio's paused time moves limiters, and bad readings harm nobody.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Waker};
use core::time::Duration;

use sluicegate_tokio::{Clock, Nanos, Runtime, TokenBucket, TokioRuntime, quota};
use tokio::runtime::Builder;

#[tokio::test(start_paused = true)]
async fn d04_readings_follow_paused_time() {
    let begin = TokioRuntime.now();
    assert_eq!(TokioRuntime.now(), begin);
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert_eq!(TokioRuntime.now(), begin + Duration::from_secs(3_600));
    tokio::time::resume();
    tokio::time::pause();
    assert!(TokioRuntime.now() >= begin + Duration::from_secs(3_600));
}

#[tokio::test(start_paused = true)]
async fn d04_advance_lets_a_waiter_go() {
    let bucket = TokenBucket::of(quota!("1/1h"));
    bucket.acquire(1).await.unwrap();
    let mut turn = pin!(bucket.acquire(1));
    let mut context = Context::from_waker(Waker::noop());
    assert!(turn.as_mut().poll(&mut context).is_pending());
    tokio::time::advance(Duration::from_secs(3_599)).await;
    assert!(turn.as_mut().poll(&mut context).is_pending());
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(turn.as_mut().poll(&mut context).is_ready());
}

/// Its clock stood still before there was an origin.
#[test]
fn a_paused_clock_older_than_the_origin_reads_and_sleeps() {
    let paused = || Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (old, new) = (paused(), paused());
    let origin = new.block_on(async { TokioRuntime.now() });
    old.block_on(async {
        let begin = TokioRuntime.now();
        assert!(begin <= origin && begin > Nanos::ZERO);
        TokioRuntime.sleep_until(begin + Duration::from_secs(60)).await;
        let late = TokioRuntime.now().saturating_duration_since(begin + Duration::from_secs(60));
        assert!(TokioRuntime.now() >= begin + Duration::from_secs(60) && late <= Duration::from_millis(1));
    });
}

#[tokio::test(start_paused = true)]
async fn does_not_panic_on_bad_readings() {
    let begin = TokioRuntime.now();
    TokioRuntime.sleep_until(Nanos::ZERO).await;
    TokioRuntime.sleep_until(begin).await;
    assert!(TokioRuntime.now() <= begin + Duration::from_millis(1));
    let mut sleep = pin!(TokioRuntime.sleep_until(Nanos::new(u64::MAX)));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// What does not wait needs no runtime.
#[test]
fn it_decides_outside_of_a_runtime() {
    let bucket = TokenBucket::of(quota!("1/1h"));
    let before = TokioRuntime.now();
    let admitted = bucket.try_acquire(1).unwrap();
    assert!(before <= admitted.at && admitted.at <= TokioRuntime.now());
    assert!(bucket.try_acquire(1).is_err());
}
