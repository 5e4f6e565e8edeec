//! Waiting, by hand: every poll is one that the test makes.

#![cfg(feature = "alloc")]

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::task::Poll;
use core::time::Duration;

use parking_lot::RawMutex;
use sluicegate_runtime::{
    Acquire, Admitted, Clock, Denied, Growing, ManualRuntime, Nanos, Queued, Quota, TokenBucket, WaitOptions, quota,
};
use support::Waiter;

type Bucket = Arc<Queued<TokenBucket<()>, ManualRuntime<RawMutex>, RawMutex, Growing>>;

fn bucket(quota: Quota, options: WaitOptions) -> (Bucket, ManualRuntime<RawMutex>) {
    let time = ManualRuntime::new();
    (Arc::new(Queued::new(TokenBucket::with_limit(quota.into(), ()), time.clone(), options)), time)
}

#[track_caller]
fn waiting(bucket: &Bucket, cost: u64) -> Waiter<Acquire<Bucket>> {
    Waiter::waiting(bucket.acquire_owned(cost))
}

fn granted(decision: Option<Result<Admitted, Denied>>) -> bool {
    matches!(decision, Some(Ok(_)))
}

#[test]
fn b05_what_is_free_is_taken_at_once() {
    let (bucket, time) = bucket(quota!("10/1s"), WaitOptions::new());
    let mut waiter = Waiter::new(bucket.acquire_owned(10));
    assert!(matches!(waiter.poll(), Poll::Ready(Ok(_))));
    assert_eq!((bucket.waiters(), time.sleepers()), (0, 0));
}

#[test]
fn b07_a_large_head_is_not_overtaken() {
    let (bucket, time) = bucket(quota!("10/1s"), WaitOptions::new().relief(None));
    bucket.try_acquire(10).unwrap();
    let mut large = waiting(&bucket, 10);
    let mut small = waiting(&bucket, 1);
    assert_eq!(time.sleepers(), 1, "the head sleeps for all");
    time.advance(Duration::from_millis(999));
    assert!(large.run().is_none() && small.run().is_none());
    time.advance(Duration::from_millis(1));
    assert!(granted(large.run()));
    assert!(small.run().is_none());
    time.advance(Duration::from_millis(100));
    assert!(granted(small.run()));
    assert_eq!((bucket.waiters(), time.sleepers()), (0, 0), "nothing is left");
}

#[test]
fn b06_who_leaves_holds_nothing_and_those_behind_move_up() {
    let (bucket, time) = bucket(quota!("10/1s"), WaitOptions::new().relief(None));
    bucket.try_acquire(10).unwrap();
    let large = waiting(&bucket, 10);
    let mut small = waiting(&bucket, 1);
    time.advance(Duration::from_millis(200));
    drop(large);
    assert!(granted(small.run()));
    assert_eq!(bucket.limiter().inspect_at(time.now()).level, 1);
    assert_eq!((bucket.waiters(), time.sleepers()), (0, 0));
}

#[test]
fn b06_who_leaves_after_it_was_granted_passes_it_on() {
    let (bucket, time) = bucket(quota!("10/1s"), WaitOptions::new().relief(None));
    bucket.try_acquire(10).unwrap();
    let first = waiting(&bucket, 2);
    let mut second = waiting(&bucket, 2);
    time.advance(Duration::from_millis(200));
    // Granted by whoever looks, and not polled since.
    bucket.recheck();
    assert_eq!(bucket.limiter().inspect_at(time.now()).level, 0);
    assert!(second.run().is_none());
    drop(first);
    assert!(granted(second.run()));
    assert_eq!(bucket.limiter().inspect_at(time.now()).level, 0);
}

#[test]
fn b05_a_timeout_ends_the_wait_and_takes_nothing() {
    let (bucket, time) = bucket(quota!("10/1s"), WaitOptions::new().relief(None));
    bucket.try_acquire(10).unwrap();
    let first = waiting(&bucket, 5);
    let mut hasty = Waiter::new(bucket.acquire_timeout_owned(5, Duration::from_millis(999)));
    let Poll::Ready(Err(Denied::RateLimited { retry_after })) = hasty.poll() else { panic!("too short a time") };
    assert_eq!(retry_after, Duration::from_secs(1));
    let mut patient = Waiter::new(bucket.acquire_timeout_owned(5, Duration::from_secs(1)));
    assert!(patient.poll().is_pending());
    // Another one barges in.
    time.advance(Duration::from_millis(300));
    bucket.try_acquire(1).unwrap();
    time.advance(Duration::from_millis(700));
    let Some(Err(Denied::RateLimited { retry_after })) = patient.run() else { panic!("its time is over") };
    assert_eq!(retry_after, Duration::from_millis(100));
    drop(first);
    assert_eq!((bucket.waiters(), time.sleepers()), (0, 0));
    // `first` had been granted its five, and gave them back.
    assert_eq!(bucket.limiter().inspect_at(time.now()).level, 9);
}

#[test]
fn b05_zero_succeeds_only_if_it_is_free_now() {
    let (bucket, _) = bucket(quota!("10/1s"), WaitOptions::new());
    let mut waiter = Waiter::new(bucket.acquire_timeout_owned(10, Duration::ZERO));
    assert!(matches!(waiter.poll(), Poll::Ready(Ok(_))));
    let mut waiter = Waiter::new(bucket.acquire_timeout_owned(1, Duration::ZERO));
    assert!(matches!(waiter.poll(), Poll::Ready(Err(Denied::RateLimited { .. }))));
}

#[test]
fn b03_what_can_never_be_fails_at_once_though_others_wait() {
    let (bucket, _) = bucket(quota!("10/1s"), WaitOptions::new());
    bucket.try_acquire(10).unwrap();
    let _first = waiting(&bucket, 10);
    let mut waiter = Waiter::new(bucket.acquire_owned(11));
    assert_eq!(waiter.poll(), Poll::Ready(Err(Denied::CostExceedsLimit { cost: 11, limit: 10 })));
    assert_eq!(bucket.waiters(), 1);
}

#[test]
fn giving_back_wakes_whom_it_concerns() {
    let (bucket, time) = bucket(quota!("1/1h burst 10"), WaitOptions::new().relief(None));
    let admitted = bucket.try_acquire(10).unwrap();
    let mut first = waiting(&bucket, 3);
    let mut second = waiting(&bucket, 3);
    bucket.give_back(4, admitted);
    assert!(granted(first.run()));
    assert!(second.run().is_none());
    assert_eq!(time.next_wake(), Some(Nanos::from_secs(2 * 3600)), "the second one is in charge of time");
    bucket.give_back(2, admitted);
    assert!(granted(second.run()));
}

#[test]
fn giving_back_too_little_makes_the_head_sleep_less() {
    let (bucket, time) = bucket(quota!("1/1h burst 10"), WaitOptions::new().relief(None));
    let admitted = bucket.try_acquire(10).unwrap();
    let mut waiter = waiting(&bucket, 3);
    assert_eq!(time.next_wake(), Some(Nanos::from_secs(3 * 3600)));
    bucket.give_back(1, admitted);
    assert!(waiter.run().is_none());
    assert_eq!(time.next_wake(), Some(Nanos::from_secs(2 * 3600)));
}

#[test]
fn closing_ends_every_wait() {
    let (bucket, time) = bucket(quota!("1/1h"), WaitOptions::new());
    bucket.try_acquire(1).unwrap();
    let mut waiters: Vec<_> = (0..100).map(|_| waiting(&bucket, 1)).collect();
    bucket.close();
    for waiter in &mut waiters {
        assert_eq!(waiter.run(), Some(Err(Denied::Closed)));
    }
    assert_eq!(bucket.try_acquire(1), Err(Denied::Closed));
    assert_eq!(Waiter::new(bucket.acquire_owned(1)).poll(), Poll::Ready(Err(Denied::Closed)));
    assert_eq!((bucket.waiters(), time.sleepers()), (0, 0));
}

#[test]
fn a_full_queue_refuses_or_makes_room() {
    let (bucket, _) = bucket(quota!("1/1h"), WaitOptions::new().bound(2));
    bucket.try_acquire(1).unwrap();
    let _both = (waiting(&bucket, 1), waiting(&bucket, 1));
    assert_eq!(Waiter::new(bucket.acquire_owned(1)).poll(), Poll::Ready(Err(Denied::QueueFull)));

    let (bucket, _) = self::bucket(quota!("1/1h"), WaitOptions::new().bound(2).evict_oldest(true));
    bucket.try_acquire(1).unwrap();
    let (mut oldest, _second) = (waiting(&bucket, 1), waiting(&bucket, 1));
    let _third = waiting(&bucket, 1);
    assert_eq!(oldest.run(), Some(Err(Denied::QueueFull)));
    assert_eq!(bucket.waiters(), 2);
}

#[test]
fn b07_try_acquire_barges_or_queues() {
    let (bucket, time) = bucket(quota!("10/1s"), WaitOptions::new());
    bucket.try_acquire(10).unwrap();
    let _first = waiting(&bucket, 10);
    time.advance(Duration::from_millis(500));
    assert!(bucket.try_acquire(1).is_ok());

    let (bucket, time) = self::bucket(quota!("10/1s"), WaitOptions::new().fair(true));
    bucket.try_acquire(10).unwrap();
    let _first = waiting(&bucket, 10);
    time.advance(Duration::from_millis(500));
    let retry_after = Duration::from_millis(600);
    assert_eq!(bucket.try_acquire(1), Err(Denied::RateLimited { retry_after }));
}

#[test]
fn b06_a_head_that_is_never_polled_again_holds_up_nobody_for_long() {
    let (bucket, time) = bucket(quota!("10/1s"), WaitOptions::new());
    bucket.try_acquire(10).unwrap();
    let stuck: Vec<_> = (0..50).map(|_| waiting(&bucket, 1)).collect();
    let mut waiter = waiting(&bucket, 1);
    // Its turn would come after 5.1 s, and the stuck ones are woken and do not move.
    time.advance(Duration::from_millis(5_100));
    assert!(waiter.run().is_none());
    // From then on it minds the time: ten tokens are there, and 41 more come.
    let mut waited = Duration::ZERO;
    while !granted(waiter.run()) {
        time.advance(Duration::from_millis(10));
        waited += Duration::from_millis(10);
    }
    assert_eq!(waited, Duration::from_millis(100 + 4_100));
    drop(stuck);
    assert_eq!((bucket.waiters(), time.sleepers()), (0, 0));
    assert_eq!(bucket.limiter().inspect_at(time.now()).level, 10, "what the stuck ones were granted has come back");
}

#[test]
fn a_leaked_head_is_passed_by_whoever_calls() {
    let (bucket, time) = bucket(quota!("10/1s"), WaitOptions::new().relief(None));
    bucket.try_acquire(10).unwrap();
    let leaked = waiting(&bucket, 1);
    core::mem::forget(leaked);
    let mut waiter = waiting(&bucket, 1);
    time.advance(Duration::from_secs(1));
    assert!(waiter.run().is_none());
    bucket.recheck();
    assert!(granted(waiter.run()));
}

#[test]
fn d04_an_hour_is_waited_in_no_time() {
    let (bucket, time) = bucket(quota!("1/1h"), WaitOptions::new());
    bucket.try_acquire(1).unwrap();
    let mut waiter = waiting(&bucket, 1);
    time.advance(Duration::from_secs(3600) - Duration::from_nanos(1));
    assert!(waiter.run().is_none());
    time.advance(Duration::from_nanos(1));
    assert!(granted(waiter.run()));
}

#[test]
fn b06_what_a_waiter_did_not_fetch_leaves_no_trace_in_an_adjustable_bucket() {
    use sluicegate_runtime::{AdjustableBucket, Observer};

    /// Counts tokens, and refunds as negative ones.
    #[derive(Default)]
    struct Told(core::sync::atomic::AtomicI64);
    impl Observer for &'static Told {
        fn admitted(&self, _: Nanos, cost: u64, _: &Admitted) {
            self.0.fetch_add(cost as i64, core::sync::atomic::Ordering::Relaxed);
        }
        fn refunded(&self, cost: u64) {
            self.0.fetch_sub(cost as i64, core::sync::atomic::Ordering::Relaxed);
        }
    }
    let told: &'static Told = Box::leak(Box::default());
    let time = ManualRuntime::<RawMutex>::new();
    let bucket = AdjustableBucket::with_limit(quota!("1/1s burst 1").into(), ()).observed_by(told);
    let bucket =
        Arc::new(Queued::<_, _, RawMutex, Growing>::new(bucket, time.clone(), WaitOptions::new().relief(None)));
    bucket.try_acquire(1).unwrap();
    let waiter = Waiter::waiting(bucket.acquire_owned(1));
    time.advance(Duration::from_secs(1));
    bucket.recheck();
    // Granted and not fetched. A second later another token would be there, had this one not been.
    time.advance(Duration::from_secs(1));
    drop(waiter);
    assert!(bucket.try_acquire(1).is_ok());
    assert!(bucket.try_acquire(1).is_err(), "two tokens at one instant, from a bucket of one");
    assert_eq!(told.0.load(core::sync::atomic::Ordering::Relaxed), 2);
    // One that is fetched counts, and is told, once.
    let mut waiter = Waiter::waiting(bucket.acquire_owned(1));
    time.advance(Duration::from_secs(1));
    assert!(granted(waiter.run()));
    assert_eq!(told.0.load(core::sync::atomic::Ordering::Relaxed), 3);
    assert!(bucket.try_acquire(1).is_err());
}

#[test]
fn b05_a_timer_that_is_late_takes_nothing_from_who_could_go_at_its_deadline() {
    let (bucket, time) = bucket(quota!("10/1s"), WaitOptions::new());
    bucket.try_acquire(10).unwrap();
    let Err(Denied::RateLimited { retry_after }) = bucket.try_acquire(1) else { panic!("it is empty") };
    let mut waiter = Waiter::waiting(bucket.acquire_timeout_owned(1, retry_after));
    time.advance(retry_after + Duration::from_millis(1));
    assert_eq!(waiter.run().map(|decision| decision.map(|admitted| admitted.at)), Some(Ok(Nanos::from_millis(100))));
    // But not what is there only after its deadline: another one has taken the token of 200 ms.
    let mut unlucky = Waiter::waiting(bucket.acquire_timeout_owned(1, Duration::from_millis(99)));
    bucket.limiter().try_acquire_at(Nanos::from_millis(200), 1).unwrap();
    time.set(Nanos::from_millis(300));
    assert!(matches!(unlucky.run(), Some(Err(Denied::RateLimited { .. }))));
    assert_eq!(bucket.limiter().inspect_at(time.now()).level, 1);
}

#[test]
fn b06_who_minds_the_time_for_all_is_not_busy_where_no_clock_knows_the_turn() {
    use core::sync::atomic::{AtomicBool, Ordering};
    use sluicegate_runtime::Grantor;

    /// Tokens, for as long as something else lets them be had that no clock knows of.
    struct Gated(TokenBucket<()>, AtomicBool);
    impl Gated {
        fn is_open(&self) -> Result<(), Denied> {
            if self.1.load(Ordering::Relaxed) { Ok(()) } else { Err(Denied::ConcurrencyLimited) }
        }
    }
    impl Grantor for Gated {
        type Cost = u64;
        type Denial = Denied;
        type Grant = Admitted;
        fn take_at(&self, now: Nanos, cost: u64) -> Result<Admitted, Denied> {
            self.is_open().and_then(|()| self.0.take_at(now, cost))
        }
        fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), Denied> {
            self.is_open().and_then(|()| Grantor::peek_at(&self.0, now, cost))
        }
        fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
            Grantor::earliest_at(&self.0, now, total)
        }
        fn denial(&self, _: Nanos, _: u128, denied: Denied) -> Denied {
            denied
        }
        fn give_back(&self, cost: u64, _: Admitted) {
            self.0.refund(cost);
        }
    }
    let time = ManualRuntime::<RawMutex>::new();
    let gated = Gated(TokenBucket::with_limit(quota!("10/1s").into(), ()), AtomicBool::new(true));
    let queued = Arc::new(Queued::<_, _, RawMutex, Growing>::new(gated, time.clone(), WaitOptions::new()));
    queued.try_acquire(10).unwrap();
    let mut head = Waiter::waiting(queued.acquire_owned(1));
    let mut second = Waiter::waiting(queued.acquire_owned(1));
    queued.limiter().1.store(false, Ordering::Relaxed);
    for _ in 0..3 {
        // Past its turn and the relief.
        time.advance(Duration::from_secs(1));
        for waiter in [&mut head, &mut second] {
            assert!(waiter.run_once().is_none());
            assert!(!waiter.is_woken(), "it looks again and again");
        }
    }
    queued.limiter().1.store(true, Ordering::Relaxed);
    queued.recheck();
    assert!(granted(head.run()) && granted(second.run()));
    assert_eq!((queued.waiters(), time.sleepers()), (0, 0));
}
