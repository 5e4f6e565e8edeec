//! Waiting for reservations, in one line with those who acquire.

#![cfg(feature = "alloc")]

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;
use std::panic::catch_unwind;

use parking_lot::RawMutex;
use sluicegate_runtime::{
    AdjustableBucket, Admitted, Clock, Debit, Denied, Growing, Inheritance, Limit, ManualRuntime, Nanos, Observer,
    Queued, Quota, Reserve, WaitOptions, quota,
};
use support::Waiter;

type Time = ManualRuntime<RawMutex>;
type Queue<O = ()> = Arc<Queued<AdjustableBucket<(), O>, Time, RawMutex, Growing>>;

fn bucket(quota: Quota, options: WaitOptions) -> (Queue, Time) {
    observed(quota, options, ())
}

fn observed<O: Observer>(quota: Quota, options: WaitOptions, observer: O) -> (Queue<O>, Time) {
    let time = Time::new();
    let bucket = AdjustableBucket::with_limit(quota.into(), ()).observed_by(observer);
    (Arc::new(Queued::new(bucket, time.clone(), options)), time)
}

const fn one_timer() -> WaitOptions {
    WaitOptions::new().relief(None)
}

#[track_caller]
fn waiting(queue: &Queue, cost: u64) -> Waiter<Reserve<Queue>> {
    Waiter::waiting(queue.reserve_owned(cost))
}

fn level(queue: &Queue) -> u64 {
    queue.limiter().inspect_at(queue.runtime().now()).level
}

#[test]
fn d02_what_is_free_is_reserved_at_once_and_comes_back() {
    let (queue, time) = bucket(quota!("10/1s"), WaitOptions::new());
    let Poll::Ready(Ok(reservation)) = Waiter::new(queue.reserve_owned(4)).poll() else { panic!("it is full") };
    assert_eq!((reservation.cost(), level(&queue), queue.limiter().held()), (4, 6, 4));
    let second = queue.try_reserve(6).unwrap();
    assert!(matches!(queue.try_reserve(1), Err(Denied::ConcurrencyLimited)));
    drop(reservation);
    second.cancel();
    assert_eq!((level(&queue), queue.waiters(), time.sleepers()), (10, 0, 0));
}

#[test]
fn b07_reservations_and_acquires_stand_in_one_line() {
    let (queue, time) = bucket(quota!("10/1s"), one_timer());
    queue.try_acquire(10).unwrap();
    let mut first = waiting(&queue, 6);
    let mut second = Waiter::waiting(queue.acquire_owned(2));
    let mut third = waiting(&queue, 1);
    assert_eq!(time.sleepers(), 1, "the head sleeps for all");
    time.advance(Duration::from_millis(599));
    assert!(first.run().is_none() && second.run().is_none() && third.run().is_none());
    time.advance(Duration::from_millis(1));
    let first = first.run().unwrap().unwrap();
    assert!(second.run().is_none() && third.run().is_none());
    time.advance(Duration::from_millis(200));
    assert!(second.run().unwrap().is_ok());
    // The first one ends, and what it did not need is the third one's at once.
    assert_eq!(first.settle(5).charged, 5);
    assert_eq!(third.run().unwrap().unwrap().cost(), 1);
    assert_eq!((level(&queue), queue.waiters(), time.sleepers()), (1, 0, 0));
}

#[test]
fn d02_settling_less_lets_the_next_go_at_once() {
    let (queue, time) = bucket(quota!("1/1h burst 10"), one_timer());
    let held = queue.try_reserve_owned(10).unwrap();
    let (mut second, mut third) = (waiting(&queue, 4), Waiter::waiting(queue.acquire_owned(3)));
    assert_eq!(time.sleepers(), 0, "no clock knows when");
    let debit = held.settle(4);
    assert_eq!((debit.charged, debit.unpaid), (4, 0));
    let second = second.run().unwrap().unwrap();
    assert!(third.run().is_none());
    assert_eq!(time.next_wake(), Some(Nanos::from_secs(3600)), "two of three are there");
    assert_eq!(second.settle_at(time.now(), 3).charged, 3);
    assert!(third.run().unwrap().is_ok());
    assert_eq!(level(&queue), 0);
}

#[test]
fn d02_settling_all_makes_the_head_sleep_until_refill() {
    let (queue, time) = bucket(quota!("10/1s"), one_timer());
    let held = queue.try_reserve_owned(10).unwrap();
    let mut second = waiting(&queue, 4);
    assert_eq!((second.run().is_none(), time.sleepers()), (true, 0));
    // Held for a while, which is not refilled.
    time.advance(Duration::from_secs(5));
    assert_eq!(held.settle(10).unpaid, 0);
    assert!(second.run().is_none());
    assert_eq!(time.next_wake(), Some(Nanos::from_millis(5_400)), "now a clock knows");
    time.advance(Duration::from_millis(400));
    assert!(second.run().unwrap().is_ok());
}

#[test]
fn d02_settling_more_leaves_a_debt_and_the_head_waits_for_it_too() {
    let (queue, time) = bucket(quota!("10/1s debt 5"), one_timer());
    let held = queue.try_reserve_owned(10).unwrap();
    let mut second = waiting(&queue, 2);
    let debit = held.settle(17);
    assert_eq!((debit.charged, debit.unpaid), (15, 2));
    assert!(second.run().is_none());
    assert_eq!(time.next_wake(), Some(Nanos::from_millis(700)));
    time.advance(Duration::from_millis(699));
    assert!(second.run().is_none());
    time.advance(Duration::from_millis(1));
    assert!(second.run().unwrap().is_ok());
}

#[test]
fn b06_a_reservation_that_was_granted_and_not_fetched_leaves_no_trace() {
    let (queue, time) = bucket(quota!("1/1s burst 1"), one_timer());
    queue.try_acquire(1).unwrap();
    let (first, mut second) = (waiting(&queue, 1), waiting(&queue, 1));
    time.advance(Duration::from_secs(1));
    queue.recheck();
    assert_eq!((queue.limiter().held(), queue.waiters()), (1, 1));
    // A second later another token would be there, had the first never come.
    time.advance(Duration::from_secs(1));
    assert!(second.run().is_none());
    drop(first);
    second.run().unwrap().unwrap().cancel();
    assert!(queue.try_acquire(1).is_ok());
    assert!(queue.try_acquire(1).is_err(), "two tokens at one instant, from a bucket of one");
}

#[test]
fn b05_a_reservation_has_its_timeouts() {
    let (queue, time) = bucket(quota!("10/1s"), WaitOptions::new());
    queue.try_acquire(10).unwrap();
    let mut hasty = Waiter::new(queue.reserve_timeout(5, Duration::from_millis(499)));
    let Poll::Ready(Err(denied)) = hasty.poll() else { panic!("it is too short") };
    assert_eq!(denied, Denied::RateLimited { retry_after: Duration::from_millis(500) });
    let mut patient = Waiter::waiting(queue.reserve_timeout_owned(5, Duration::from_millis(500)));
    time.advance(Duration::from_millis(500));
    let held = patient.run().unwrap().unwrap();
    // Five are held and none is left: refill fills what is not held only.
    let mut until = Waiter::waiting(queue.reserve_deadline_owned(6, Nanos::from_secs(2)));
    time.set(Nanos::from_secs(2));
    assert_eq!(until.run().unwrap().unwrap_err(), Denied::ConcurrencyLimited);
    drop(held);
    assert!(matches!(Waiter::new(queue.reserve_deadline(10, time.now())).poll(), Poll::Ready(Ok(_))));
    assert_eq!((queue.waiters(), time.sleepers(), level(&queue)), (0, 0, 10));
}

#[test]
fn b03_what_can_never_be_held_fails_at_once() {
    let (queue, _) = bucket(quota!("1/1h burst 2_000_000_000_000"), WaitOptions::new());
    let too_much = Denied::CostExceedsLimit { cost: 1 << 40, limit: (1 << 40) - 1 };
    assert_eq!(queue.try_reserve(1 << 40).unwrap_err(), too_much);
    assert!(matches!(Waiter::new(queue.reserve(1 << 40)).poll(), Poll::Ready(Err(denied)) if denied == too_much));
    let _held = queue.try_reserve((1 << 40) - 1).unwrap();
    let _second = Waiter::waiting(queue.reserve(2));
    assert!(matches!(Waiter::new(queue.reserve(1 << 40)).poll(), Poll::Ready(Err(denied)) if denied == too_much));
    assert_eq!(queue.waiters(), 1);
}

#[test]
fn closing_ends_waits_for_reservations_and_leaves_what_is_held() {
    let (queue, _) = bucket(quota!("10/1s"), WaitOptions::new());
    let held = queue.try_reserve(10).unwrap();
    let mut second = waiting(&queue, 1);
    queue.close();
    assert_eq!(second.run().unwrap().unwrap_err(), Denied::Closed);
    assert_eq!(queue.try_reserve(1).unwrap_err(), Denied::Closed);
    assert!(matches!(Waiter::new(queue.reserve_owned(1)).poll(), Poll::Ready(Err(Denied::Closed))));
    assert_eq!(held.settle(3).charged, 3);
    assert_eq!(level(&queue), 7);
}

#[test]
fn b07_a_fair_bucket_reserves_nothing_past_those_who_wait() {
    let (queue, time) = bucket(quota!("10/1s"), one_timer().fair(true));
    queue.try_acquire(10).unwrap();
    let _first = waiting(&queue, 10);
    time.advance(Duration::from_millis(500));
    let retry_after = Duration::from_millis(600);
    assert_eq!(queue.try_reserve(1).unwrap_err(), Denied::RateLimited { retry_after });
}

#[test]
fn b06_who_takes_the_whole_bucket_is_followed_in_time() {
    // What is held for one until it learns of it is not refilled, so for that long no clock knows the next one's turn.
    let (queue, time) = bucket(quota!("10/1s"), one_timer());
    queue.try_acquire(10).unwrap();
    let mut first = Waiter::waiting(queue.acquire_owned(10));
    let mut second = Waiter::waiting(queue.acquire_owned(10));
    time.advance(Duration::from_secs(1));
    assert!(first.run().unwrap().is_ok());
    assert!(second.run().is_none());
    assert_eq!(time.next_wake(), Some(Nanos::from_secs(2)), "the second one minds the time");
    time.advance(Duration::from_secs(1));
    assert!(second.run().unwrap().is_ok());
}

#[test]
fn b06_what_is_held_for_one_that_is_never_polled_again_is_refilled_after_all() {
    let (queue, time) = bucket(quota!("10/1s"), WaitOptions::new());
    queue.try_acquire(10).unwrap();
    let stuck = Waiter::waiting(queue.acquire_owned(10));
    let mut second = Waiter::waiting(queue.acquire_owned(10));
    // Its turn would come after 2 s. The first one was woken after 1 s, and does not move.
    let mut waited = Duration::ZERO;
    while second.run().is_none() {
        time.advance(Duration::from_millis(10));
        waited += Duration::from_millis(10);
        assert!(waited < Duration::from_secs(60), "it is locked up");
    }
    // Relieved at 2.1 s, it let the first one go. That one's ten count as taken then, once they were held for 100 ms.
    assert_eq!(waited, Duration::from_millis(3_100));
    drop(stuck);
    assert_eq!(level(&queue), 10, "what it had not learnt of has come back");
}

#[test]
fn b06_one_that_comes_late_for_what_was_held_for_it_has_taken_it_once() {
    let (queue, time) = bucket(quota!("10/1s"), WaitOptions::new());
    queue.try_acquire(10).unwrap();
    let mut late = Waiter::waiting(queue.acquire_owned(4));
    time.advance(Duration::from_millis(400));
    queue.recheck();
    time.advance(Duration::from_millis(100));
    assert_eq!(queue.limiter().held(), 4);
    // Anybody's look counts what was held for so long as taken.
    drop(Waiter::waiting(queue.acquire_owned(10)));
    assert_eq!((level(&queue), queue.limiter().held()), (1, 0));
    assert!(late.run().unwrap().is_ok());
    time.advance(Duration::from_millis(300));
    assert_eq!((level(&queue), queue.limiter().held()), (4, 0));
}

#[test]
fn b06_each_has_its_time_to_come_for_what_is_held_for_it() {
    let (queue, time) = bucket(quota!("20/1s burst 10"), one_timer().relief(Some(Duration::from_millis(100))));
    queue.try_acquire(10).unwrap();
    let mut reserved = waiting(&queue, 1);
    let _stuck = (Waiter::waiting(queue.acquire_owned(1)), Waiter::waiting(queue.acquire_owned(1)));
    let _behind = Waiter::waiting(queue.acquire_owned(10));
    for held in [0, 1, 2, 3, 2, 1, 1] {
        queue.recheck();
        assert_eq!(queue.limiter().held(), held, "at {:?}", time.now());
        time.advance(Duration::from_millis(50));
    }
    // A reservation is held for as long as it likes.
    let reserved = reserved.run().unwrap().unwrap();
    assert_eq!((reserved.settle(1).charged, queue.limiter().held()), (1, 0));
}

#[test]
fn b05_who_has_left_is_waited_for_no_longer() {
    let (queue, time) = bucket(quota!("10/1s"), one_timer());
    queue.try_acquire(10).unwrap();
    let first = waiting(&queue, 1);
    drop((waiting(&queue, 10), Waiter::waiting(queue.acquire_timeout_owned(9, Duration::from_secs(5)))));
    let mut hasty = Waiter::waiting(queue.reserve_timeout_owned(1, Duration::from_millis(200)));
    time.advance(Duration::from_millis(200));
    queue.recheck();
    assert!(hasty.run().unwrap().is_ok());
    drop(first);
}

#[test]
fn b06_many_that_are_never_polled_again_hold_up_nobody_for_long() {
    let (queue, time) = bucket(quota!("10/1s"), WaitOptions::new());
    queue.try_acquire(10).unwrap();
    let stuck: Vec<_> = (0..50).map(|_| Waiter::waiting(queue.acquire_owned(1))).collect();
    let mut waiter = Waiter::waiting(queue.acquire_owned(1));
    // Its turn would come after 5.1 s.
    let mut waited = Duration::ZERO;
    while waiter.run().is_none() {
        time.advance(Duration::from_millis(10));
        waited += Duration::from_millis(10);
        assert!(waited < Duration::from_secs(60), "it is locked up");
    }
    assert_eq!(waited, Duration::from_millis(5_200 + 4_100), "as if they had taken it when they were let go");
    drop(stuck);
    assert_eq!((level(&queue), queue.limiter().held(), queue.waiters(), time.sleepers()), (10, 0, 0, 0));
}

#[test]
fn b06_one_behind_a_reservation_and_a_stuck_waiter_goes_in_time() {
    let (queue, time) = bucket(quota!("10/1s"), WaitOptions::new());
    let held = queue.try_reserve_owned(10).unwrap();
    let stuck = Waiter::waiting(queue.acquire_owned(10));
    let mut waiter = Waiter::waiting(queue.acquire_owned(10));
    let mut run_until = |until: Nanos| {
        assert!(waiter.run().is_none());
        while let Some(at) = time.next_wake().filter(|at| *at <= until) {
            time.set(at);
            if waiter.run().is_some() {
                return Some(at);
            }
        }
        time.set(until);
        waiter.run().map(|_| until)
    };
    // By now it looks rarely.
    assert_eq!(run_until(Nanos::from_secs(5)), None);
    held.cancel();
    // What the stuck one was let have at 5 s counts as taken after 100 ms, and is refilled after a second.
    assert_eq!(run_until(Nanos::from_secs(60)), Some(Nanos::from_secs(6)));
    drop(stuck);
}

#[test]
fn b09_one_that_waits_for_the_end_of_a_reservation_looks_rarely() {
    let (queue, time) = bucket(quota!("10/1s"), WaitOptions::new());
    let held = queue.try_reserve_owned(10).unwrap();
    let mut second = waiting(&queue, 1);
    let mut wakes = 0;
    // As an executor would: its sleeps end one after another.
    while let Some(at) = time.next_wake().filter(|at| *at < Nanos::from_secs(3600)) {
        assert!(at > time.now(), "it looks again and again at one instant");
        time.set(at);
        assert!(second.run().is_none());
        wakes += 1;
    }
    assert!(wakes < 20, "{wakes} times in an hour");
    held.cancel();
    assert!(second.run().unwrap().is_ok());
    assert_eq!(time.sleepers(), 0);
}

/// Counts what is told: tokens taken, and what ended.
#[derive(Default)]
struct Told {
    admitted: AtomicI64,
    denied: AtomicU64,
    settled: AtomicU64,
    panics: AtomicBool,
}

impl Observer for &'static Told {
    fn admitted(&self, _: Nanos, cost: u64, _: &Admitted) {
        self.admitted.fetch_add(cost as i64, Ordering::Relaxed);
        assert!(!self.panics.load(Ordering::Relaxed), "told to panic");
    }
    fn denied(&self, _: Nanos, _: u64, _: &Denied) {
        self.denied.fetch_add(1, Ordering::Relaxed);
    }
    fn refunded(&self, cost: u64) {
        self.admitted.fetch_sub(cost as i64, Ordering::Relaxed);
    }
    fn settled(&self, _: Nanos, held: u64, debit: &Debit) {
        self.settled.fetch_add(debit.charged, Ordering::Relaxed);
        self.admitted.fetch_sub((held - debit.charged.min(held)) as i64, Ordering::Relaxed);
        assert!(!self.panics.load(Ordering::Relaxed), "told to panic");
    }
}

#[test]
fn c16_an_observer_is_told_of_what_a_waiter_learns_of_and_of_its_end() {
    let told: &'static Told = Box::leak(Box::default());
    let (queue, time) = observed(quota!("10/1s"), one_timer(), told);
    let counts = || {
        (
            told.admitted.load(Ordering::Relaxed),
            told.denied.load(Ordering::Relaxed),
            told.settled.load(Ordering::Relaxed),
        )
    };
    queue.try_acquire(10).unwrap();
    let (left, mut waiter) = (Waiter::waiting(queue.reserve_owned(1)), Waiter::waiting(queue.reserve_owned(4)));
    time.advance(Duration::from_millis(100));
    queue.recheck();
    drop(left);
    assert_eq!(counts(), (10, 0, 0), "nobody has learnt of anything");
    time.advance(Duration::from_millis(300));
    let reservation = waiter.run().unwrap().unwrap();
    assert_eq!(counts(), (14, 0, 0));
    assert_eq!(reservation.settle(3).charged, 3);
    assert_eq!(counts(), (13, 0, 3));
    assert!(queue.try_reserve(2).is_err());
    queue.try_reserve(1).unwrap().cancel();
    assert_eq!(counts(), (13, 1, 3));
}

#[test]
fn d02_an_observer_that_panics_leaves_nothing_held_and_wakes_those_behind() {
    let told: &'static Told = Box::leak(Box::default());
    let (queue, time) = observed(quota!("10/1s"), one_timer(), told);
    let held = queue.try_reserve_owned(10).unwrap();
    let mut second = Waiter::waiting(queue.reserve_owned(5));
    let mut third = Waiter::waiting(queue.acquire_owned(5));
    told.panics.store(true, Ordering::Relaxed);
    // In the end of one: it is settled, and the second one is woken.
    assert!(catch_unwind(AssertUnwindSafe(|| held.settle(0))).is_err());
    assert_eq!(queue.limiter().held(), 10, "for the second and the third");
    // In the beginning of another: it is as never reserved.
    assert!(catch_unwind(AssertUnwindSafe(|| second.run())).is_err());
    told.panics.store(false, Ordering::Relaxed);
    drop(second);
    assert!(third.run().unwrap().is_ok());
    assert_eq!((queue.limiter().held(), queue.limiter().inspect_at(time.now()).level), (0, 5));
}

#[test]
fn c08_a_lowered_limit_ends_all_that_can_never_be_and_lets_the_others_go_on() {
    let (queue, time) = bucket(quota!("1/1h burst 100"), one_timer());
    queue.try_acquire(100).unwrap();
    // More than are woken at a time.
    let mut small: Vec<_> = (0..40).map(|_| Waiter::waiting(queue.acquire_owned(2))).collect();
    let mut large: Vec<_> = (0..40).map(|_| waiting(&queue, 11)).collect();
    let mut last = Waiter::waiting(queue.acquire_owned(10));
    queue.adjust(quota!("10/1s"), Inheritance::Level);
    for waiter in &mut large {
        let never = Denied::CostExceedsLimit { cost: 11, limit: 10 };
        assert_eq!(waiter.run().expect("at once, wherever it is").unwrap_err(), never);
    }
    assert_eq!(queue.waiters(), 41);
    // The head minds the time by the new rate.
    for waiter in &mut small {
        assert!(waiter.run().is_none());
        time.advance(Duration::from_millis(200));
        assert!(waiter.run().unwrap().is_ok());
    }
    time.advance(Duration::from_secs(1));
    assert!(last.run().unwrap().is_ok());
    assert_eq!((queue.waiters(), time.sleepers()), (0, 0));
}

#[test]
fn c08_a_limit_that_is_raised_lifted_or_shut_reaches_all_at_once() {
    let (queue, _) = bucket(quota!("1/1h burst 4"), one_timer());
    queue.try_acquire(4).unwrap();
    let (mut first, mut second, mut third) = (waiting(&queue, 3), waiting(&queue, 2), waiting(&queue, 1));
    queue.adjust(quota!("1/1h burst 8"), Inheritance::Spent);
    let held = first.run().expect("four more are there").unwrap();
    assert!(second.run().is_none());
    queue.adjust(Limit::DenyAll, Inheritance::Level);
    assert_eq!(second.run().unwrap().unwrap_err(), Denied::Closed);
    assert_eq!(third.run().unwrap().unwrap_err(), Denied::Closed);
    queue.adjust(quota!("1/1h burst 8"), Inheritance::Level);
    let mut fourth = waiting(&queue, 8);
    queue.adjust(Limit::Unlimited, Inheritance::Level);
    assert!(fourth.run().unwrap().is_ok());
    held.cancel();
    assert_eq!(queue.limiter().held(), 0);
}

#[test]
fn c08_what_was_granted_without_a_limit_is_not_given_back_under_one() {
    let (queue, time) = bucket(quota!("1/1h burst 8"), WaitOptions::new());
    queue.try_acquire(8).unwrap();
    let late = Waiter::waiting(queue.acquire_owned(5));
    queue.adjust(Limit::Unlimited, Inheritance::Level);
    let used = queue.try_acquire(3).unwrap();
    queue.adjust(quota!("1/1h burst 8"), Inheritance::Level);
    queue.give_back(3, used);
    assert_eq!(level(&queue), 0);
    time.advance(Duration::from_secs(1));
    drop(Waiter::waiting(queue.acquire_owned(1)));
    drop(late);
    assert_eq!((level(&queue), queue.limiter().held()), (0, 0));
}

#[test]
fn c08_a_change_past_the_queue_is_seen_at_recheck_by_all_whom_it_concerns() {
    let (queue, time) = bucket(quota!("1/1h burst 10"), one_timer());
    queue.try_acquire(10).unwrap();
    let (mut small, mut large) = (waiting(&queue, 1), waiting(&queue, 10));
    queue.limiter().adjust_at(time.now(), Limit::Quota(quota!("1/1h burst 5")), Inheritance::Level);
    assert!(small.run().is_none() && large.run().is_none());
    queue.recheck();
    assert!(small.run().is_none());
    assert_eq!(large.run().unwrap().unwrap_err(), Denied::CostExceedsLimit { cost: 10, limit: 5 });
    // One that comes now waits behind the small one alone, and is not refused for what cannot be.
    let mut third = Waiter::waiting(queue.acquire_timeout_owned(1, Duration::from_secs(2 * 3600)));
    time.advance(Duration::from_secs(3600));
    assert_eq!(small.run().unwrap().unwrap().settle(1).charged, 1);
    assert!(third.run().is_none());
    time.advance(Duration::from_secs(3600));
    assert!(third.run().unwrap().is_ok());
}
