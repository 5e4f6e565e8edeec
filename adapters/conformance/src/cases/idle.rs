//! What a limiter costs that nobody uses.

use alloc::sync::Arc;
use core::time::Duration;

use sluicegate_runtime::{Clock, Queued, TokenBucket, WaitOptions, quota};

use crate::counted::CountedRuntime;
use crate::executor::Executor;
use crate::tasks::{at_once, pass, settle, start, unless};

type Counted<E> = Arc<
    Queued<TokenBucket<()>, CountedRuntime<<E as Executor>::Runtime>, <E as Executor>::Lock, <E as Executor>::Room>,
>;

fn counted<E: Executor>(runtime: &E::Runtime, options: WaitOptions) -> (Counted<E>, CountedRuntime<E::Runtime>) {
    let counted = CountedRuntime::new(runtime.clone());
    let bucket = TokenBucket::with_limit(quota!("10/10s").into(), ());
    (Arc::new(Queued::new(bucket, counted.clone(), options)), counted)
}

/// No timer is made where nobody has to wait, and none is kept once everybody is served, refused or gone. No task is ever started:
/// a limiter asks of its runtime nothing but the time and sleep.
pub async fn b09_nothing_is_left_when_nobody_waits<E: Executor>(runtime: E::Runtime) {
    let (bucket, counted) = counted::<E>(&runtime, WaitOptions::new());
    assert!(matches!(at_once(bucket.acquire(4)).await, Some(Ok(_))));
    assert!(matches!(at_once(bucket.acquire_timeout(7, Duration::ZERO)).await, Some(Err(_))));
    assert!(bucket.try_acquire(6).is_ok());
    assert_eq!(counted.sleeps_ever(), 0);

    let mut waiters = Vec::new();
    for number in 0..30_u64 {
        let leaves = runtime.now() + Duration::from_millis(if number % 3 == 0 { 2_500 } else { 3_600_000 });
        let timeout = Duration::from_secs(40 + number);
        waiters.push(
            start::<E, _>(&runtime, unless(runtime.clone(), leaves, bucket.acquire_timeout_owned(1, timeout))).await,
        );
    }
    settle::<E>(&runtime).await;
    assert!(counted.sleeps() > 0);
    for waiter in waiters {
        waiter.await;
    }
    assert_eq!((bucket.waiters(), counted.sleeps()), (0, 0));

    // A future that is over keeps nothing, though it is kept.
    let mut over = Box::pin(bucket.acquire_owned(10));
    assert_eq!(at_once(&mut over).await, None);
    assert_eq!(counted.sleeps(), 1);
    assert!((&mut over).await.is_ok());
    assert_eq!((bucket.waiters(), counted.sleeps()), (0, 0));
    drop(over);

    let mut dropped = Box::pin(bucket.acquire_owned(10));
    assert_eq!(at_once(&mut dropped).await, None);
    drop(dropped);
    assert_eq!((bucket.waiters(), counted.sleeps()), (0, 0));
    assert_eq!(Arc::strong_count(&bucket), 1, "nobody keeps the limiter");
}

/// However many wait, as long as they are told not to mind those ahead.
pub async fn b09_only_the_head_has_a_timer<E: Executor>(runtime: E::Runtime) {
    let (bucket, counted) = counted::<E>(&runtime, WaitOptions::new().relief(None));
    assert!(bucket.try_acquire(10).is_ok());
    let mut waiters = Vec::new();
    for _ in 0..20 {
        waiters.push(start::<E, _>(&runtime, bucket.acquire_owned(1)).await);
    }
    pass::<E>(&runtime, Duration::from_millis(500)).await;
    for waiting in (0..20).rev() {
        assert_eq!((bucket.waiters(), counted.sleeps()), (waiting + 1, 1));
        pass::<E>(&runtime, Duration::from_secs(1)).await;
    }
    assert_eq!((bucket.waiters(), counted.sleeps()), (0, 0));
    for waiter in waiters {
        assert!(waiter.await.with.is_ok());
    }
}
