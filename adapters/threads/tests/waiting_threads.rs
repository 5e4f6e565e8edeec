//! Threads that wait, in virtual time and in a little of the real one.

#![cfg(feature = "wait")]

extern crate alloc;

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Mutex;
use std::thread;

use parking_lot::RawMutex;
use sluicegate_threads::sluicegate_core::TokenBucket;
use sluicegate_threads::{
    AdjustableBucket, ConcurrencyLimit, Denied, Growing, Hierarchy, Inheritance, Level, ManualRuntime, Nanos, Queued,
    ThreadTime, Wait, WaitOptions, WaitingAdjustableBucket, WaitingConcurrencyLimit, WaitingSlidingLog,
    WaitingTokenBucket, quota,
};

type Time = ManualRuntime<RawMutex>;
type Bucket = Queued<TokenBucket<()>, Time, RawMutex, Growing>;

fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

#[test]
fn b07_threads_are_served_in_the_order_in_which_they_came() {
    let time = Time::new();
    let bucket = TokenBucket::with_limit(quota!("1/1h").into(), ());
    let bucket = Arc::new(Bucket::new(bucket, time.clone(), WaitOptions::new().relief(None)));
    bucket.try_acquire(1).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let (waiting, order) = (Arc::clone(&bucket), Arc::clone(&order));
            let thread = thread::spawn(move || {
                waiting.acquire(1).wait().unwrap();
                order.lock().unwrap().push(number);
            });
            until(|| bucket.waiters() == number + 1);
            thread
        })
        .collect();
    for served in 1..=8 {
        until(|| time.next_wake().is_some());
        time.advance(Duration::from_secs(3600));
        until(|| order.lock().unwrap().len() == served);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!((bucket.waiters(), time.sleepers()), (0, 0));
}

#[test]
fn b05_a_thread_waits_for_its_tokens_and_no_longer_than_it_wants_to() {
    let bucket = WaitingTokenBucket::of(quota!("1000/1s burst 2"));
    bucket.try_acquire(2).unwrap();
    let admitted = bucket.acquire(2).wait().unwrap();
    assert!(admitted.at > Nanos::ZERO);
    assert!(matches!(bucket.acquire_timeout(2, Duration::ZERO).wait(), Err(Denied::RateLimited { .. })));
    bucket.close();
    assert_eq!(bucket.acquire(1).wait(), Err(Denied::Closed));
}

#[test]
fn a17_two_hundred_threads_take_exactly_the_limit() {
    let bucket = WaitingTokenBucket::of(quota!("100/1h"));
    let admitted = thread::scope(|scope| {
        let ask = || bucket.acquire_timeout(1, Duration::ZERO).wait().is_ok();
        let threads: Vec<_> = (0..200).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|is_admitted| *is_admitted).count()
    });
    assert_eq!(admitted, 100);
}

#[test]
fn c17_permits_pass_from_thread_to_thread() {
    let limit = WaitingConcurrencyLimit::new(ConcurrencyLimit::new(2), ThreadTime::default(), WaitOptions::new());
    let most = Mutex::new((0_u32, 0_u32));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let permit = limit.acquire_permit(1).wait().unwrap();
                {
                    let mut most = most.lock().unwrap();
                    most.0 += 1;
                    most.1 = most.1.max(most.0);
                }
                thread::yield_now();
                most.lock().unwrap().0 -= 1;
                permit.success();
            });
        }
    });
    assert!(most.lock().unwrap().1 <= 2);
    assert_eq!(limit.usage().in_use, 0);
}

#[test]
fn d02_a_thread_waits_for_what_another_reserved_and_did_not_need() {
    let bucket = WaitingAdjustableBucket::of(quota!("1/1h burst 10"));
    let held = bucket.try_reserve(10).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| bucket.reserve(6).wait().unwrap().settle(6));
        until(|| bucket.waiters() == 1);
        assert_eq!(held.settle(4).charged, 4);
        assert_eq!(waiting.join().unwrap().charged, 6);
    });
    assert!(bucket.try_reserve(1).is_err());
    // It waits until the limit is another one.
    thread::scope(|scope| {
        let waiting = scope.spawn(|| bucket.acquire(10).wait());
        until(|| bucket.waiters() == 1);
        bucket.adjust(quota!("1/1h burst 5"), Inheritance::Level);
        assert_eq!(waiting.join().unwrap(), Err(Denied::CostExceedsLimit { cost: 10, limit: 5 }));
    });
}

#[test]
fn c09_a_thread_waits_for_all_levels() {
    let level = |name| Level::new(name, AdjustableBucket::with_limit(quota!("1000/1s burst 2").into(), ()));
    let (outer, inner) = (level("outer"), level("inner"));
    let levels: Queued<_, ThreadTime, RawMutex, Growing> =
        Queued::new(Hierarchy::of([&outer, &inner]).unwrap(), ThreadTime::default(), WaitOptions::new());
    levels.try_acquire([1, 2]).unwrap();
    let [_, at_inner] = levels.acquire([1, 2]).wait().unwrap();
    assert!(at_inner.at > Nanos::ZERO);
    let denied = levels.acquire_timeout([2, 2], Duration::ZERO).wait().unwrap_err();
    assert_eq!(denied.level, 1, "{denied}");
}

#[test]
fn b02_a_thread_waits_for_a_log() {
    let log = WaitingSlidingLog::of("2/1ms".parse().unwrap());
    let first = log.acquire(2).wait().unwrap();
    let second = log.acquire(1).wait().unwrap();
    assert!(second.at.saturating_duration_since(first.at) >= Duration::from_millis(1));
}

#[test]
fn a_wait_within_a_wait_keeps_the_outer_ones_time() {
    use core::future::{Future, poll_fn};
    use core::pin::pin;
    use core::task::Poll;
    use sluicegate_threads::{Clock, Runtime};

    let time = ThreadTime::<sluicegate_threads::OsClock>::default();
    let at = time.now() + Duration::from_millis(2);
    let mut sleep = pin!(time.sleep_until(at));
    poll_fn(|context| {
        let polled = sleep.as_mut().poll(context);
        // Another wait, on the same thread, between the sleep's word and the parking.
        core::future::ready(()).wait();
        polled
    })
    .wait();
    assert!(time.now() >= at);
    assert_eq!(poll_fn(|_| Poll::Ready(7)).wait(), 7);
}

/// Polls each of its parts only when that was woken, as the combinators of many futures do.
struct OnlyWoken<F: Future>(Vec<PartOf<F>>);

/// `None` once it is ready.
type PartOf<F> = (Option<Pin<Box<F>>>, Arc<Part>);

impl<F: Future> Unpin for OnlyWoken<F> {}

struct Part {
    is_woken: AtomicBool,
    whole: Mutex<Option<Waker>>,
}

impl Wake for Part {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        let whole = self.whole.lock().unwrap().clone();
        if let Some(whole) = whole {
            whole.wake();
        }
    }
}

impl<F: Future> OnlyWoken<F> {
    fn new(parts: impl IntoIterator<Item = F>) -> Self {
        let part = || Arc::new(Part { is_woken: AtomicBool::new(true), whole: Mutex::new(None) });
        Self(parts.into_iter().map(|future| (Some(Box::pin(future)), part())).collect())
    }
}

impl<F: Future> Future for OnlyWoken<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        for (future, part) in &mut self.0 {
            *part.whole.lock().unwrap() = Some(context.waker().clone());
            if part.is_woken.swap(false, Ordering::SeqCst) {
                let waker = Waker::from(Arc::clone(part));
                let polled = future.as_mut().map(|future| future.as_mut().poll(&mut Context::from_waker(&waker)));
                if polled.is_some_and(|polled| polled.is_ready()) {
                    *future = None;
                }
            }
        }
        if self.0.iter().all(|(future, _)| future.is_none()) { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[test]
fn b05_a_wait_for_many_wakes_each_that_sleeps() {
    let limiters: Vec<_> = (0..3).map(|_| WaitingTokenBucket::of(quota!("1000/1s burst 1"))).collect();
    for limiter in &limiters {
        assert!(limiter.try_acquire(1).is_ok());
    }
    // One waits within another's poll as well.
    let within = async { limiters[0].acquire(1).wait() };
    assert!(within.wait().is_ok());
    OnlyWoken::new(limiters.iter().flat_map(|limiter| [limiter.acquire(1), limiter.acquire(1)])).wait();
    assert!(limiters.iter().all(|limiter| limiter.waiters() == 0));
}
