//! Waits by embassy's mocked clock, whose time is the process's: so one test, step by step.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use critical_section as _;
use embassy_time::{Duration, MockDriver};
use sluicegate_embassy::{Clock, Denied, EmbassyTime, Nanos, TokenBucket, WaitOptions, quota};

#[test]
fn waits_follow_the_mocked_clock() {
    let time = MockDriver::get();
    time.reset();
    let mut context = Context::from_waker(Waker::noop());

    // D4: an hour is waited in no time, and not a tick less.
    let bucket = TokenBucket::<2>::of(quota!("1/1h"));
    bucket.try_acquire(1).unwrap();
    let mut waiter = pin!(bucket.acquire(1));
    assert!(waiter.as_mut().poll(&mut context).is_pending());
    time.advance(Duration::from_secs(3600) - Duration::from_ticks(1));
    assert!(waiter.as_mut().poll(&mut context).is_pending());
    time.advance(Duration::from_ticks(1));
    assert!(matches!(waiter.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
    assert_eq!(EmbassyTime.now(), Nanos::from_secs(3600));

    // B7: first in, first out, and no more than there is room for.
    let bucket = TokenBucket::<2>::with_options(quota!("10/1s"), WaitOptions::new());
    bucket.try_acquire(10).unwrap();
    {
        let (mut large, mut small) = (pin!(bucket.acquire(10)), pin!(bucket.acquire(1)));
        assert!(large.as_mut().poll(&mut context).is_pending());
        assert!(small.as_mut().poll(&mut context).is_pending());
        assert_eq!(pin!(bucket.acquire(1)).poll(&mut context), Poll::Ready(Err(Denied::QueueFull)));
        time.advance(Duration::from_millis(500));
        assert!(small.as_mut().poll(&mut context).is_pending());
        time.advance(Duration::from_millis(500));
        assert!(matches!(large.as_mut().poll(&mut context), Poll::Ready(Ok(_))));
        assert!(small.as_mut().poll(&mut context).is_pending());
    }
    // B6: who left has taken nothing.
    assert_eq!(bucket.waiters(), 0);
    time.advance(Duration::from_millis(100));
    assert!(bucket.try_acquire(1).is_ok());

    // B5: a timeout ends the wait.
    let mut hasty = pin!(bucket.acquire_timeout(1, core::time::Duration::from_millis(99)));
    assert!(matches!(hasty.as_mut().poll(&mut context), Poll::Ready(Err(Denied::RateLimited { .. }))));
}
