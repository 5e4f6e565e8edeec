//! Waiting for permits, departures, keys and streams.

#![cfg(all(feature = "keyed", feature = "futures"))]

extern crate alloc;

mod support;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::hash::RandomState;

use futures_core::Stream;
use futures_sink::Sink;
use parking_lot::{RawMutex, RawRwLock};
use sluicegate_runtime::{
    AdaptiveConcurrency, AimdOptions, Clock, ConcurrencyController, ConcurrencyLimit, Denied, Growing, Inheritance,
    KeyedTokenBucket, LimitStream, LimitedSink, ManualClock, ManualRuntime, Nanos, PER_SECOND, Paced, Pacing, Queued,
    QueuedKeyed, QueuedPermits, Rate, Refused, SampleOptions, SetTierError, Tier, Tiers, TokenBucket, WaitOptions,
    quota,
};
use support::Waiter;

type Time = ManualRuntime<RawMutex>;
type InFlight = QueuedPermits<Time, RawMutex, Growing>;

fn in_flight(limit: u32) -> (Arc<InFlight>, Time) {
    let time = Time::new();
    (Arc::new(InFlight::new(ConcurrencyLimit::new(limit), time.clone(), WaitOptions::new())), time)
}

#[test]
fn c17_a_permit_is_waited_for_in_order_and_its_release_lets_the_next_go() {
    let (limit, time) = in_flight(3);
    let first = limit.try_acquire_permit(3).unwrap();
    let mut second = Waiter::waiting(limit.acquire_permit_owned(2));
    let mut third = Waiter::waiting(limit.acquire_permit_owned(1));
    let mut fourth = Waiter::waiting(limit.acquire_permit_owned(1));
    assert_eq!(time.sleepers(), 0, "no clock knows when");
    first.success();
    let second = second.run().unwrap().unwrap();
    let third = third.run().unwrap().unwrap();
    assert!(fourth.run().is_none());
    assert_eq!(limit.usage().in_use, 3);
    drop((second, third));
    assert!(fourth.run().unwrap().is_ok());
    assert_eq!(limit.usage().in_use, 0);
}

#[test]
fn c17_a_release_that_raises_an_adaptive_limit_lets_as_many_go_as_fit_then() {
    let window = SampleOptions::new().lasting(Duration::ZERO, Duration::from_secs(1)).samples(1).build().unwrap();
    let law = AimdOptions::new().limits(1, 2, 9).increase(2).build().unwrap();
    let time = Time::new();
    let adaptive: AdaptiveConcurrency<RawMutex, _, _> =
        AdaptiveConcurrency::new(ConcurrencyController::new(window, law), ManualClock::new());
    let limit: Arc<QueuedPermits<Time, RawMutex, Growing, _>> =
        Arc::new(QueuedPermits::new(adaptive.into_limit(), time, WaitOptions::new()));
    let (first, second) = (limit.try_acquire_permit(1).unwrap(), limit.try_acquire_permit(1).unwrap());
    let mut waiters: Vec<_> = (0..4).map(|_| Waiter::waiting(limit.acquire_permit_owned(1))).collect();
    first.success();
    assert_eq!((limit.usage().limit, limit.usage().in_use), (4, 4));
    let granted: Vec<_> = waiters.iter_mut().filter_map(|waiter| waiter.run()).collect();
    assert_eq!(granted.len(), 3);
    second.ignore();
    assert!(waiters[3].run().unwrap().is_ok());
}

#[test]
fn c17_a_permit_that_was_granted_and_not_fetched_goes_to_the_next() {
    let (limit, _) = in_flight(1);
    let first = limit.try_acquire_permit(1).unwrap();
    let second = Waiter::waiting(limit.acquire_permit_owned(1));
    let mut third = Waiter::waiting(limit.acquire_permit_owned(1));
    drop(first);
    assert_eq!(limit.usage().in_use, 1, "the second one has it");
    assert!(third.run().is_none());
    drop(second);
    assert!(third.run().unwrap().is_ok());
    assert_eq!(limit.usage().in_use, 0);
}

#[test]
fn c17_a_timeout_of_a_permit_says_that_too_much_is_in_use() {
    let (limit, time) = in_flight(1);
    let _first = limit.try_acquire_permit(1).unwrap();
    let mut second = Waiter::waiting(limit.acquire_permit_timeout(1, Duration::from_secs(1)));
    time.advance(Duration::from_secs(1));
    assert_eq!(second.run().unwrap().unwrap_err(), Denied::ConcurrencyLimited);
    assert_eq!(time.sleepers(), 0);
}

#[test]
fn c08_a_higher_limit_is_used_at_once_and_one_too_low_is_told() {
    let (limit, _) = in_flight(2);
    let _first = limit.try_acquire_permit(2).unwrap();
    let mut large = Waiter::waiting(limit.acquire_permit_owned(2));
    let mut small = Waiter::waiting(limit.acquire_permit_owned(1));
    limit.set_limit(1);
    assert_eq!(large.run().unwrap().unwrap_err(), Denied::CostExceedsLimit { cost: 2, limit: 1 });
    assert!(small.run().is_none());
    limit.set_limit(3);
    assert!(small.run().unwrap().is_ok());
}

#[test]
fn c06_departures_keep_their_distance_whenever_their_tasks_run() {
    let time = Time::new();
    let pacing = Pacing::new(Rate::new(10, PER_SECOND).unwrap(), 4).unwrap();
    let paced = Arc::new(Paced::new(pacing, time.clone()));
    let mut waiters: Vec<_> = (0..5).map(|_| Waiter::new(paced.pace_owned(1))).collect();
    assert_eq!(waiters[0].poll(), Poll::Ready(Ok(Nanos::ZERO)));
    for waiter in &mut waiters[1..] {
        assert!(waiter.poll().is_pending());
    }
    assert!(matches!(Waiter::new(paced.pace_owned(1)).poll(), Poll::Ready(Err(Denied::RateLimited { .. }))));
    // The second one wakes 150 ms late, which shifts nobody.
    time.advance(Duration::from_millis(250));
    assert_eq!(waiters[1].run(), Some(Ok(Nanos::from_millis(100))));
    assert_eq!(waiters[2].run(), Some(Ok(Nanos::from_millis(200))));
    time.advance(Duration::from_millis(49));
    assert!(waiters[3].run().is_none());
    time.advance(Duration::from_millis(1));
    assert_eq!(waiters[3].run(), Some(Ok(Nanos::from_millis(300))));
    // The last one leaves, and its slot is free again.
    waiters.truncate(4);
    assert_eq!(paced.bucket().try_acquire_at(time.now(), 1).map(|departure| departure.at), Ok(Nanos::from_millis(400)));
    assert_eq!(time.sleepers(), 0);
}

#[test]
fn c06_a_departure_that_would_be_too_late_is_refused_at_once_and_takes_no_slot() {
    let time = Time::new();
    time.set(Nanos::from_secs(1));
    let paced = Paced::new(Pacing::new(Rate::new(10, PER_SECOND).unwrap(), 100).unwrap(), time.clone());
    assert!(matches!(Waiter::new(paced.pace_timeout(2, Duration::ZERO)).poll(), Poll::Ready(Ok(_))));
    let wait = Duration::from_millis(150);
    let retry_after = Duration::from_millis(50);
    let refused = Poll::Ready(Err(Denied::RateLimited { retry_after }));
    assert_eq!(Waiter::new(paced.pace_timeout(1, wait)).poll(), refused);
    assert_eq!(Waiter::new(paced.pace_deadline(1, time.now() + wait)).poll(), refused);
    let mut in_time = Waiter::waiting(paced.pace_deadline(1, time.now() + wait + retry_after));
    let mut behind = Waiter::waiting(paced.pace_timeout(1, Duration::from_millis(300)));
    time.advance(Duration::from_millis(200));
    assert_eq!(in_time.run(), Some(Ok(Nanos::from_millis(1_200))));
    time.advance(Duration::from_millis(100));
    assert_eq!(behind.run(), Some(Ok(Nanos::from_millis(1_300))));
    // A deadline that has passed is a timeout of zero.
    time.advance(Duration::from_secs(1));
    let passed = time.now() - Duration::from_nanos(1);
    assert!(matches!(Waiter::new(paced.pace_deadline(1, passed)).poll(), Poll::Ready(Ok(_))));
    let retry_after = Duration::from_millis(100);
    assert_eq!(
        Waiter::new(paced.pace_deadline(1, passed)).poll(),
        Poll::Ready(Err(Denied::RateLimited { retry_after }))
    );
}

#[test]
fn c06_each_of_many_departs_at_its_turn() {
    let time = Time::new();
    let paced = Paced::new(Pacing::new(Rate::new(1, PER_SECOND).unwrap(), 1).unwrap(), time.clone());
    let departed = core::cell::RefCell::new(Vec::new());
    {
        let mut all = Waiter::new(paced.for_each(0..3, |item| {
            departed.borrow_mut().push((item, time.now()));
            core::future::ready(())
        }));
        let mut is_over = all.poll().is_ready();
        while !is_over {
            time.advance(Duration::from_millis(500));
            is_over = all.run().is_some();
        }
    }
    let expected: Vec<_> = (0..3).map(|second| (second, Nanos::from_secs(second))).collect();
    assert_eq!(departed.into_inner(), expected);
}

type Keys = QueuedKeyed<KeyedTokenBucket<u8, RawRwLock, RandomState, ManualClock>, Time, RawMutex>;

fn keys() -> (Keys, Time) {
    let time = Time::new();
    (Keys::new(KeyedTokenBucket::new(quota!("1/1s burst 2")), time.clone(), WaitOptions::new()), time)
}

#[test]
fn b07_each_key_has_a_queue_of_its_own_for_as_long_as_somebody_waits() {
    let (keys, time) = keys();
    assert!(keys.try_acquire(&1, 2).is_ok());
    let mut large = Waiter::waiting(keys.acquire(1, 2));
    let mut small = Waiter::waiting(keys.acquire(1, 1));
    assert!(matches!(Waiter::new(keys.acquire(2, 1)).poll(), Poll::Ready(Ok(_))), "another key does not wait");
    assert_eq!(keys.waited_for(), 1);
    time.advance(Duration::from_secs(2));
    assert!(large.run().unwrap().is_ok());
    assert!(small.run().is_none());
    drop(large);
    time.advance(Duration::from_secs(1));
    assert!(small.run().unwrap().is_ok());
    drop(small);
    assert_eq!((keys.waited_for(), time.sleepers()), (0, 0));
}

#[test]
fn b06_who_leaves_a_key_leaves_nothing() {
    let (keys, time) = keys();
    assert!(keys.try_acquire(&1, 2).is_ok());
    let large = Waiter::waiting(keys.acquire(1, 2));
    let mut small = Waiter::waiting(keys.acquire(1, 1));
    time.advance(Duration::from_secs(1));
    drop(large);
    assert!(small.run().unwrap().is_ok());
    drop(small);
    assert_eq!((keys.waited_for(), time.sleepers()), (0, 0));
    assert!(keys.try_acquire(&1, 1).is_err());
}

#[test]
fn b05_a_key_has_its_timeouts_and_its_refunds() {
    let (keys, time) = keys();
    assert!(keys.try_acquire(&1, 2).is_ok());
    let mut hasty = Waiter::new(keys.acquire_timeout(1, 1, Duration::from_millis(999)));
    assert!(matches!(hasty.poll(), Poll::Ready(Err(Denied::RateLimited { .. }))));
    drop(hasty);
    assert_eq!(keys.waited_for(), 0);
    let mut waiter = Waiter::waiting(keys.acquire(1, 2));
    assert!(keys.refund(&1, 1));
    assert!(waiter.run().is_none());
    time.advance(Duration::from_secs(1));
    assert!(waiter.run().unwrap().is_ok());
}

#[test]
fn c08_who_waits_for_a_key_sees_a_change_of_its_quota() {
    let (keys, time) = keys();
    assert!(keys.try_acquire(&1, 2).is_ok());
    let mut waiter = Waiter::waiting(keys.acquire(1, 2));
    keys.store().set_quota_at((), quota!("10/1s burst 2"), time.now(), Inheritance::Level).unwrap();
    keys.recheck_all();
    assert!(waiter.run().is_none());
    time.advance(Duration::from_millis(200));
    assert!(waiter.run().unwrap().is_ok());
}

#[test]
fn c08_a_quota_set_by_the_queue_reaches_all_who_wait_for_any_key() {
    let (keys, time) = keys();
    for key in 1..=3 {
        assert!(keys.try_acquire(&key, 2).is_ok());
    }
    let mut small: Vec<_> = (1..=3).map(|key| Waiter::waiting(keys.acquire(key, 1))).collect();
    let mut large: Vec<_> = (1..=3).map(|key| Waiter::waiting(keys.acquire(key, 2))).collect();
    keys.set_quota((), quota!("10/1s burst 1"), Inheritance::Level).unwrap();
    for waiter in &mut large {
        assert_eq!(waiter.run().unwrap(), Err(Denied::CostExceedsLimit { cost: 2, limit: 1 }));
    }
    for waiter in &mut small {
        assert!(waiter.run().is_none());
    }
    time.advance(Duration::from_millis(100));
    for waiter in &mut small {
        assert!(waiter.run().unwrap().is_ok());
    }
    drop((small, large));
    assert_eq!((keys.waited_for(), time.sleepers()), (0, 0));
}

#[test]
fn c08_who_waits_for_a_key_sees_its_new_tier() {
    type Tiered = QueuedKeyed<KeyedTokenBucket<u8, RawRwLock, RandomState, ManualClock, (), Tiers>, Time, RawMutex>;
    const PAID: Tier = Tier(1);

    let store = KeyedTokenBucket::with_tiers(
        quota!("1/1h burst 2"),
        &[quota!("1/1s burst 8")],
        RandomState::new(),
        ManualClock::new(),
    );
    let (time, options) = (Time::new(), WaitOptions::new());
    let keys = Tiered::new(store, time.clone(), options);
    assert!(keys.try_acquire(&1, 2).is_ok() && keys.try_acquire(&2, 2).is_ok());
    let (mut first, mut second) = (Waiter::waiting(keys.acquire(1, 1)), Waiter::waiting(keys.acquire(2, 1)));
    keys.set_tier(&1, PAID, Inheritance::Spent).unwrap();
    assert!(first.run().unwrap().is_ok());
    assert!(second.run().is_none());
    let mut third = Waiter::waiting(keys.acquire(1, 8));
    keys.set_tier(&1, Tier(0), Inheritance::Level).unwrap();
    assert_eq!(third.run().unwrap(), Err(Denied::CostExceedsLimit { cost: 8, limit: 2 }));
    assert_eq!(keys.set_tier(&1, Tier(9), Inheritance::Level), Err(SetTierError::UnknownTier));
}

#[test]
fn d03_no_more_keys_are_waited_for_than_may() {
    let (keys, _) = keys();
    let keys = keys.most_keys(1);
    assert!(keys.try_acquire(&1, 2).is_ok() && keys.try_acquire(&2, 2).is_ok());
    let _first = Waiter::waiting(keys.acquire(1, 1));
    assert_eq!(Waiter::new(keys.acquire(2, 1)).poll(), Poll::Ready(Err(Denied::QueueFull)));
}

#[test]
fn b09_no_queue_is_left_however_looks_race_with_the_last_who_leaves() {
    let (keys, _) = keys();
    assert!(keys.try_acquire(&1, 2).is_ok());
    let is_over = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(core::sync::atomic::Ordering::Relaxed) {
                let _ = keys.try_acquire(&1, 1);
                keys.recheck(&1);
            }
        });
        let is_left = (0..20_000).any(|_| {
            drop(Waiter::waiting(keys.acquire(1, 1)));
            // Whoever looks just now may still refer to it.
            (0..200_000).all(|_| {
                std::thread::yield_now();
                keys.waited_for() == 1
            })
        });
        is_over.store(true, core::sync::atomic::Ordering::Relaxed);
        assert!(!is_left);
    });
}

#[test]
fn b09_no_queue_is_left_when_several_give_it_up_at_once() {
    // The models visit every order; this is to see it on threads too.
    const ROUNDS: u32 = 3_000;
    let (keys, _) = keys();
    assert!(keys.try_acquire(&1, 2).is_ok());
    let barrier = std::sync::Barrier::new(2);
    let is_left = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (keys, barrier, is_left) = (&keys, &barrier, &is_left);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let waiter = Waiter::waiting(keys.acquire(1, 1));
                    barrier.wait();
                    drop(waiter);
                    // Nobody looks any more who could take away what the two have left.
                    barrier.wait();
                    if number == 0 && keys.waited_for() > 0 {
                        is_left.store(true, core::sync::atomic::Ordering::Relaxed);
                    }
                    barrier.wait();
                    if is_left.load(core::sync::atomic::Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
    });
    assert!(!is_left.into_inner());
}

#[test]
fn b09_a_future_that_is_over_keeps_no_queue() {
    let (keys, time) = keys();
    assert!(keys.try_acquire(&1, 2).is_ok());
    let mut granted = Waiter::waiting(keys.acquire(1, 1));
    let mut refused = Waiter::new(keys.acquire_timeout(1, 1, Duration::ZERO));
    assert!(matches!(refused.poll(), Poll::Ready(Err(Denied::RateLimited { .. }))));
    time.advance(Duration::from_secs(1));
    assert!(granted.run().unwrap().is_ok());
    assert_eq!((keys.waited_for(), time.sleepers()), (0, 0));
    // Neither does one that is refused before anybody waits, or once it had to wait.
    let mut hasty = Waiter::new(keys.acquire_timeout(1, 1, Duration::from_millis(999)));
    assert!(matches!(hasty.poll(), Poll::Ready(Err(Denied::RateLimited { .. }))));
    assert_eq!(keys.waited_for(), 0);
    drop((granted, refused, hasty));
}

#[test]
fn b05_closing_a_store_ends_the_wait_for_every_key() {
    let (keys, time) = keys();
    assert!(keys.try_acquire(&1, 2).is_ok() && keys.try_acquire(&2, 2).is_ok());
    let mut waiters: Vec<_> = [1, 1, 2].map(|key| Waiter::waiting(keys.acquire(key, 1))).into();
    assert!(!keys.is_closed());
    keys.close();
    assert!(keys.is_closed());
    for waiter in &mut waiters {
        assert_eq!(waiter.run(), Some(Err(Denied::Closed)));
    }
    for key in [1, 3] {
        assert_eq!(keys.try_acquire(&key, 1), Err(Denied::Closed));
        assert_eq!(Waiter::new(keys.acquire(key, 1)).poll(), Poll::Ready(Err(Denied::Closed)));
        assert_eq!(Waiter::new(keys.acquire(key, 9)).poll(), Poll::Ready(Err(Denied::Closed)));
    }
    assert_eq!((keys.waited_for(), time.sleepers()), (0, 0));
}

/// Items that are there at once.
struct Items(VecDeque<u8>);

impl Stream for Items {
    type Item = u8;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<u8>> {
        Poll::Ready(self.0.pop_front())
    }
}

impl Sink<u8> for Items {
    type Error = core::convert::Infallible;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn start_send(mut self: Pin<&mut Self>, item: u8) -> Result<(), Self::Error> {
        self.0.push_back(item);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
}

type Bucket = Queued<TokenBucket<()>, Time, RawMutex, Growing>;

fn bucket() -> (Arc<Bucket>, Time) {
    let time = Time::new();
    let bucket = TokenBucket::with_limit(quota!("1/1s burst 2").into(), ());
    (Arc::new(Bucket::new(bucket, time.clone(), WaitOptions::new())), time)
}

#[test]
fn a_stream_passes_its_items_on_in_order_at_the_limiters_pace() {
    let (bucket, time) = bucket();
    let mut stream = Box::pin(Items((0..4).collect()).limit_by(Arc::clone(&bucket)));
    assert_eq!(stream.size_hint(), (0, None));
    let mut passed = Vec::new();
    let mut next = Waiter::new(core::future::poll_fn(|context| {
        loop {
            match stream.as_mut().poll_next(context) {
                Poll::Ready(Some(item)) => passed.push((item.unwrap(), time.now())),
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }));
    assert!(next.poll().is_pending());
    time.advance(Duration::from_secs(1));
    assert!(next.run().is_none());
    time.advance(Duration::from_secs(1));
    assert!(next.run().is_some());
    drop(next);
    let at = Nanos::from_secs;
    assert_eq!(passed, [(0, at(0)), (1, at(0)), (2, at(1)), (3, at(2))]);
}

#[test]
fn a_sink_takes_items_at_the_limiters_pace() {
    let (bucket, time) = bucket();
    let mut sink = Box::pin(LimitedSink::new(Items(VecDeque::new()), Arc::clone(&bucket)));
    let mut context = Context::from_waker(core::task::Waker::noop());
    for item in 0..2 {
        assert_eq!(sink.as_mut().poll_ready(&mut context), Poll::Ready(Ok(())));
        // Asked again, it takes nothing more.
        assert_eq!(sink.as_mut().poll_ready(&mut context), Poll::Ready(Ok(())));
        sink.as_mut().start_send(item).unwrap();
    }
    assert!(sink.as_mut().poll_ready(&mut context).is_pending());
    time.advance(Duration::from_secs(1));
    assert_eq!(sink.as_mut().poll_ready(&mut context), Poll::Ready(Ok(())));
    assert_eq!(bucket.limiter().inspect_at(time.now()).level, 0);
}

#[test]
fn what_a_sink_was_granted_and_did_not_use_is_given_back() {
    let (bucket, time) = bucket();
    let mut sink = Box::pin(LimitedSink::<Items, _>::with_cost(Items(VecDeque::new()), Arc::clone(&bucket), 2));
    let mut context = Context::from_waker(core::task::Waker::noop());
    assert_eq!(sink.as_mut().poll_ready(&mut context), Poll::Ready(Ok(())));
    let mut behind = Waiter::waiting(bucket.acquire_owned(2));
    drop(sink);
    assert!(behind.run().is_some_and(|granted| granted.is_ok()));
    assert_eq!(bucket.limiter().inspect_at(time.now()).level, 0);
}

#[test]
fn a_stream_takes_what_each_item_costs_and_loses_none_that_costs_too_much() {
    let (bucket, time) = bucket();
    let mut stream = Box::pin(Items([1, 3, 2].into()).limit_by_cost(&*bucket, |item| u64::from(*item)));
    let mut context = Context::from_waker(core::task::Waker::noop());
    assert_eq!(stream.as_mut().poll_next(&mut context), Poll::Ready(Some(Ok(1))));
    let denial = Denied::CostExceedsLimit { cost: 3, limit: 2 };
    assert_eq!(stream.as_mut().poll_next(&mut context), Poll::Ready(Some(Err(Refused { item: 3, denial }))));
    assert!(stream.as_mut().poll_next(&mut context).is_pending());
    time.advance(Duration::from_secs(1));
    assert_eq!(stream.as_mut().poll_next(&mut context), Poll::Ready(Some(Ok(2))));
    assert_eq!(stream.as_mut().poll_next(&mut context), Poll::Ready(None));
}
