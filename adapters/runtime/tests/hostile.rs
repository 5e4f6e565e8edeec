//! Those who panic, leak, or come at the worst moment leave nothing behind that others have to bear.

#![cfg(all(feature = "keyed", feature = "alloc"))]

extern crate alloc;

mod support;

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::panic::AssertUnwindSafe;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::hash::RandomState;
use std::panic::catch_unwind;
use std::sync::OnceLock;

use parking_lot::{RawMutex, RawRwLock};
use sluicegate_runtime::{
    AdjustableBucket, Admitted, Clock, Denied, Growing, KeyedTokenBucket, Limit, ManualRuntime, Nanos, Observer,
    Queued, QueuedKeyed, TokenBucket, WaitOptions, quota,
};
use support::Waiter;

type Time = ManualRuntime<RawMutex>;
type Bucket<O = ()> = Queued<TokenBucket<(), O>, Time, RawMutex, Growing>;

/// One that was full, and has just been emptied.
fn empty(limit: impl Into<Limit>, options: WaitOptions) -> (Bucket, Time) {
    let time = Time::new();
    let bucket = Bucket::new(TokenBucket::with_limit(limit.into(), ()), time.clone(), options);
    let all = bucket.limiter().inspect_at(time.now()).level;
    assert!(bucket.try_acquire(all).is_ok());
    (bucket, time)
}

/// Panics when it is next told of an admission, once.
#[derive(Default)]
struct Panics(AtomicBool);

impl Observer for Panics {
    fn admitted(&self, _: Nanos, _: u64, _: &Admitted) {
        assert!(!self.0.swap(false, Ordering::Relaxed), "told");
    }
}

struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("woken");
    }
}

fn panics<T>(run: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(run)).is_err()
}

fn poll_with<F: Future>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

#[test]
fn b06_one_in_charge_of_time_that_leaves_hands_it_to_the_head() {
    for is_dropped in [true, false] {
        let (bucket, time) = empty(quota!("1/1s burst 1000"), WaitOptions::new());
        let stuck = Waiter::waiting(bucket.acquire(1));
        let gone = Waiter::waiting(bucket.acquire(500));
        let mut head = Waiter::waiting(bucket.acquire(10));
        drop(gone);
        let mut in_charge = Waiter::waiting(bucket.acquire_timeout(1, Duration::from_secs(14)));
        time.set(Nanos::from_secs(5));
        // The stuck one has its token by then, and four are taken before the head's turn.
        assert!(bucket.try_acquire(4).is_ok());
        time.set(Nanos::from_millis(12_100));
        // Past its relief: it takes charge.
        assert!(in_charge.poll().is_pending());
        if is_dropped {
            time.set(Nanos::from_secs(13));
            drop(in_charge);
        } else {
            time.set(Nanos::from_secs(14));
            assert!(matches!(in_charge.poll(), Poll::Ready(Err(Denied::RateLimited { .. }))));
        }
        assert!(head.run().is_none());
        assert_eq!(time.next_wake(), Some(Nanos::from_secs(15)), "dropped: {is_dropped}");
        time.set(Nanos::from_secs(15));
        assert!(head.run().is_some_and(|granted| granted.is_ok()));
        drop(stuck);
    }
}

#[test]
fn b06_one_that_is_never_polled_again_fills_no_queue_for_good() {
    let (bucket, time) = empty(quota!("10/1s"), WaitOptions::new().bound(1));
    core::mem::forget(Waiter::waiting(bucket.acquire(1)));
    assert_eq!(Waiter::new(bucket.acquire(1)).poll(), Poll::Ready(Err(Denied::QueueFull)));
    time.advance(Duration::from_millis(100));
    let mut next = Waiter::waiting(bucket.acquire(1));
    time.advance(Duration::from_millis(100));
    assert!(next.run().is_some_and(|granted| granted.is_ok()));
}

#[test]
fn b06_one_that_is_never_polled_again_is_not_ahead_of_fair_callers_for_good() {
    let (bucket, time) = empty(quota!("10/1s"), WaitOptions::new().fair(true));
    core::mem::forget(Waiter::waiting(bucket.acquire(1)));
    let retry_after = Duration::from_millis(200);
    assert_eq!(bucket.try_acquire(1), Err(Denied::RateLimited { retry_after }));
    time.advance(retry_after);
    assert!(bucket.try_acquire(1).is_ok());
}

#[test]
fn b07_nobody_is_evicted_whose_turn_has_come() {
    let (bucket, time) = empty(quota!("10/1s"), WaitOptions::new().bound(1).evict_oldest(true));
    let mut first = Waiter::waiting(bucket.acquire(1));
    time.advance(Duration::from_millis(100));
    let _second = Waiter::waiting(bucket.acquire(1));
    assert!(first.run().is_some_and(|granted| granted.is_ok()));
}

#[test]
fn b06_a_future_whose_poll_panicked_gives_up_nobody_elses_place() {
    let time = Time::new();
    let limiter = TokenBucket::with_limit(quota!("10/1s").into(), ()).observed_by(Panics::default());
    let bucket = Queued::<_, _, RawMutex, Growing>::new(limiter, time.clone(), WaitOptions::new());
    assert!(bucket.try_acquire(10).is_ok());
    let mut panicking = Waiter::waiting(bucket.acquire(1));
    time.advance(Duration::from_millis(100));
    bucket.limiter().observer().0.store(true, Ordering::Relaxed);
    assert!(panics(|| panicking.poll()));
    let mut other = Waiter::waiting(bucket.acquire(1));
    assert!(panicking.poll().is_pending());
    drop(panicking);
    assert_eq!(bucket.waiters(), 1);
    time.advance(Duration::from_millis(100));
    assert!(other.run().is_some_and(|granted| granted.is_ok()));
}

#[test]
fn d02_a_reservation_whose_granting_panicked_holds_nothing() {
    let time = Time::new();
    let limiter = AdjustableBucket::with_limit(quota!("10/1s").into(), ()).observed_by(Panics::default());
    let bucket = Queued::<_, _, RawMutex, Growing>::new(limiter, time.clone(), WaitOptions::new());
    assert!(bucket.try_acquire(10).is_ok());
    let mut panicking = Waiter::waiting(bucket.reserve(1));
    time.advance(Duration::from_millis(100));
    bucket.limiter().observer().0.store(true, Ordering::Relaxed);
    assert!(panics(|| panicking.poll()));
    assert_eq!((bucket.limiter().held(), bucket.limiter().inspect_at(time.now()).level), (0, 1));
    drop(panicking);
    assert_eq!(bucket.waiters(), 0);
}

#[test]
fn b06_a_place_that_was_taken_when_a_waker_panicked_is_given_up() {
    let (bucket, time) = empty(quota!("10/1s"), WaitOptions::new().bound(1).evict_oldest(true));
    let mut evicted = Box::pin(bucket.acquire(1));
    assert!(poll_with(evicted.as_mut(), &Waker::from(Arc::new(PanickingWaker))).is_pending());
    let mut evicting = Waiter::new(bucket.acquire(5));
    assert!(panics(|| evicting.poll()));
    assert_eq!(bucket.waiters(), 1);
    drop((evicting, evicted));
    assert_eq!(bucket.waiters(), 0);
    time.advance(Duration::from_secs(1));
    assert_eq!(bucket.limiter().inspect_at(time.now()).level, 10);
}

#[test]
fn b05_closing_reaches_everybody_though_a_waker_panics() {
    let (bucket, _) = empty(quota!("10/1s"), WaitOptions::new().relief(None));
    let mut first = Box::pin(bucket.acquire(1));
    assert!(poll_with(first.as_mut(), &Waker::from(Arc::new(PanickingWaker))).is_pending());
    let mut others: Vec<_> = (0..40).map(|_| Waiter::waiting(bucket.acquire(1))).collect();
    assert!(panics(|| bucket.close()));
    for other in &mut others {
        assert_eq!(other.run(), Some(Err(Denied::Closed)));
    }
}

#[test]
fn b06_what_nobody_fetched_comes_back_though_an_observer_panics() {
    let time = Time::new();
    let limiter = TokenBucket::with_limit(quota!("10/1h").into(), ()).observed_by(Panics::default());
    let bucket = Queued::<_, _, RawMutex, Growing>::new(limiter, time.clone(), WaitOptions::new());
    let Poll::Ready(Ok(all)) = Waiter::new(bucket.acquire(10)).poll() else { panic!("it is full") };
    let granted = Waiter::waiting(bucket.acquire(10));
    let mut next = Waiter::waiting(bucket.acquire(10));
    bucket.give_back(10, all);
    bucket.limiter().observer().0.store(true, Ordering::Relaxed);
    assert!(panics(|| drop(granted)));
    assert!(next.run().is_some_and(|granted| granted.is_ok()));
}

/// Calls the limiter when it is cloned no more.
struct Calling(OnceLock<alloc::sync::Weak<Bucket>>, Arc<AtomicUsize>);

impl Wake for Calling {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Calling {
    fn drop(&mut self) {
        if let Some(bucket) = self.0.get().and_then(alloc::sync::Weak::upgrade) {
            self.1.fetch_add(1 + bucket.waiters(), Ordering::Relaxed);
        }
    }
}

#[test]
fn a_waker_that_calls_the_limiter_when_it_is_dropped_finds_it_unlocked() {
    let (bucket, _) = empty(quota!("10/1s"), WaitOptions::new().relief(None));
    let (bucket, calls) = (Arc::new(bucket), Arc::new(AtomicUsize::new(0)));
    let calling = || Waker::from(Arc::new(Calling(Arc::downgrade(&bucket).into(), Arc::clone(&calls))));
    let _first = Waiter::waiting(bucket.acquire(1));
    let mut second = Box::pin(bucket.acquire(1));
    assert!(poll_with(second.as_mut(), &calling()).is_pending());
    // Replaced by another, and then dropped with its place.
    assert!(poll_with(second.as_mut(), &calling()).is_pending());
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    drop(second);
    assert_eq!(calls.load(Ordering::Relaxed), 5);
}

#[test]
fn b04_who_comes_behind_one_that_only_a_release_helps_is_told_so() {
    let time = Time::new();
    for is_fair in [false, true] {
        let limiter = AdjustableBucket::with_limit(quota!("1/1s burst 3").into(), ());
        let options = WaitOptions::new().fair(is_fair);
        let bucket = Queued::<_, _, RawMutex, Growing>::new(limiter, time.clone(), options);
        let _held = bucket.try_reserve(2).unwrap();
        let _head = Waiter::waiting(bucket.acquire(2));
        for cost in 1..=3 {
            let denied = match is_fair {
                true => bucket.try_acquire(cost).map(drop),
                false => match Waiter::new(bucket.acquire_timeout(cost, Duration::from_millis(500))).poll() {
                    Poll::Ready(answer) => answer.map(drop),
                    Poll::Pending => continue,
                },
            };
            assert_eq!(denied, Err(Denied::ConcurrencyLimited), "fair: {is_fair}, {cost}");
        }
    }
}

#[test]
fn d03_the_most_keys_hold_for_every_clone() {
    let store: KeyedTokenBucket<u8, RawRwLock, RandomState, ()> =
        KeyedTokenBucket::with_parts(quota!("1/1h"), RandomState::new(), ());
    let keys: QueuedKeyed<_, Time, RawMutex> = QueuedKeyed::new(store, Time::new(), WaitOptions::new());
    let clone = keys.clone();
    let keys = keys.most_keys(1);
    for key in 0..2 {
        assert!(keys.try_acquire(&key, 1).is_ok());
    }
    let _first = Waiter::waiting(clone.acquire(0, 1));
    assert_eq!(Waiter::new(clone.acquire(1, 1)).poll(), Poll::Ready(Err(Denied::QueueFull)));
}

#[test]
fn b07_waiters_are_woken_in_their_order() {
    struct Tells(usize, Arc<std::sync::Mutex<Vec<usize>>>);
    impl Wake for Tells {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    let (bucket, _) = empty(quota!("40/1h"), WaitOptions::new().relief(None));
    let order = Arc::default();
    let mut waiters: Vec<_> = (0..40).map(|_| Box::pin(bucket.acquire(1))).collect();
    for (number, waiter) in waiters.iter_mut().enumerate() {
        assert!(poll_with(waiter.as_mut(), &Waker::from(Arc::new(Tells(number, Arc::clone(&order))))).is_pending());
    }
    bucket.limiter().refund(40);
    bucket.recheck();
    assert_eq!(*order.lock().unwrap(), (0..40).collect::<Vec<_>>());
}

#[test]
fn b05_closing_reaches_every_key_though_a_waker_panics() {
    let store: KeyedTokenBucket<u8, RawRwLock, RandomState, ()> =
        KeyedTokenBucket::with_parts(quota!("1/1h"), RandomState::new(), ());
    let keys: QueuedKeyed<_, Time, RawMutex> = QueuedKeyed::new(store, Time::new(), WaitOptions::new());
    for key in 0..20 {
        assert!(keys.try_acquire(&key, 1).is_ok());
    }
    let mut first = Box::pin(keys.acquire(0, 1));
    assert!(poll_with(first.as_mut(), &Waker::from(Arc::new(PanickingWaker))).is_pending());
    let mut others: Vec<_> = (1..20).map(|key| Waiter::waiting(keys.acquire(key, 1))).collect();
    assert!(panics(|| keys.close()));
    for other in &mut others {
        assert_eq!(other.run(), Some(Err(Denied::Closed)));
    }
}

#[test]
fn b05_who_has_no_time_makes_nobody_leave() {
    let (bucket, _) = empty(quota!("10/1s"), WaitOptions::new().bound(1).evict_oldest(true));
    let mut waiting = Waiter::waiting(bucket.acquire(1));
    let retry_after = Duration::from_millis(200);
    let refused = Poll::Ready(Err(Denied::RateLimited { retry_after }));
    assert_eq!(Waiter::new(bucket.acquire_timeout(1, Duration::ZERO)).poll(), refused);
    assert_eq!(bucket.waiters(), 1);
    assert!(waiting.poll().is_pending());
}

#[test]
fn d02_what_comes_back_reaches_who_waits_though_an_observer_panics() {
    struct Refunds;
    impl Observer for Refunds {
        fn refunded(&self, _: u64) {
            panic!("told");
        }
    }
    let limiter = TokenBucket::with_limit(quota!("10/1h").into(), ()).observed_by(Refunds);
    let bucket = Queued::<_, _, RawMutex, Growing>::new(limiter, Time::new(), WaitOptions::new().relief(None));
    let all = bucket.try_acquire(10).unwrap();
    let mut next = Waiter::waiting(bucket.acquire(10));
    assert!(panics(|| bucket.give_back(10, all)));
    assert!(next.run().is_some_and(|granted| granted.is_ok()));
}

#[test]
fn b05_nobody_is_refused_for_one_that_would_make_room() {
    let (bucket, time) = empty(quota!("10/1s"), WaitOptions::new().bound(1).evict_oldest(true));
    let mut large = Waiter::waiting(bucket.acquire(10));
    let mut small = Waiter::waiting(bucket.acquire_timeout(1, Duration::from_millis(500)));
    assert_eq!(large.run(), Some(Err(Denied::QueueFull)));
    time.advance(Duration::from_millis(100));
    assert!(small.run().is_some_and(|granted| granted.is_ok()));
}

#[test]
fn b04_a_fair_caller_is_told_when_the_line_is_empty_also_where_the_newest_goes_first() {
    let (bucket, time) = empty(quota!("10/1s"), WaitOptions::new().fair(true).newest_first(true));
    let mut waiters: Vec<_> = (0..3).map(|_| Waiter::waiting(bucket.acquire(1))).collect();
    let retry_after = Duration::from_millis(400);
    assert_eq!(bucket.try_acquire(1), Err(Denied::RateLimited { retry_after }));
    for _ in 0..3 {
        time.advance(Duration::from_millis(100));
        for waiter in &mut waiters {
            let _ = waiter.run();
        }
    }
    time.advance(Duration::from_millis(100));
    assert!(bucket.try_acquire(1).is_ok());
}

#[test]
fn d02_what_comes_back_reaches_all_who_wait_though_a_waker_panics() {
    let (bucket, _) = empty(quota!("50/1h"), WaitOptions::new().relief(None));
    let mut first = Box::pin(bucket.acquire(1));
    assert!(poll_with(first.as_mut(), &Waker::from(Arc::new(PanickingWaker))).is_pending());
    let mut others: Vec<_> = (0..40).map(|_| Waiter::waiting(bucket.acquire(1))).collect();
    bucket.limiter().refund(50);
    assert!(panics(|| bucket.recheck()));
    // Before any of them is polled, which would let the next go.
    assert!(others.iter().all(Waiter::is_woken));
    for other in &mut others {
        assert!(other.run_once().is_some_and(|granted| granted.is_ok()));
    }
}
