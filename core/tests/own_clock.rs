//! Limiters that read their own clock: a caller who is suspended between reading it and deciding is overtaken by others who
//! take at later readings. What it is denied, it must have lacked at an instant within its call.

extern crate alloc;

mod support;

use alloc::rc::Rc;

use core::cell::{Cell, RefCell};
use core::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{
    AdjustableBucket, Clock, Debit, Denied, FixedShard, LeakyBucket, Limit, Nanos, Observer, Pacing, Rate, Remaining,
    Shard, ShardedWindow, SlidingCounter, TokenBucket, WindowLimit, quota,
};
use support::cases;

/// A clock that suspends its caller after each reading for as long as there is something that happens meanwhile.
#[derive(Default)]
struct Suspending {
    reading: Cell<u64>,
    readings: Cell<u64>,
    meanwhile: RefCell<Vec<Box<dyn FnOnce()>>>,
}

impl Suspending {
    fn set_millis(&self, millis: u64) {
        self.reading.set(millis * 1_000_000);
    }
}

impl Clock for Suspending {
    fn now(&self) -> Nanos {
        let now = Nanos::new(self.reading.get());
        self.readings.set(self.readings.get() + 1);
        let meanwhile = self.meanwhile.borrow_mut().pop();
        if let Some(meanwhile) = meanwhile {
            meanwhile();
        }
        now
    }
}

/// The limiter, and a way to say what happens while its next caller is suspended.
struct Overtaken<L>(Rc<L>, fn(&L) -> &Suspending);

impl<L: 'static> Overtaken<L> {
    fn new(limiter: L, clock: fn(&L) -> &Suspending) -> Self {
        Self(Rc::new(limiter), clock)
    }

    fn clock(&self) -> &Suspending {
        (self.1)(&self.0)
    }

    /// After the next reading the clock moves to `millis`, and then `meanwhile` happens.
    fn at_millis(&self, millis: u64, meanwhile: impl FnOnce(&L) + 'static) {
        let (limiter, clock) = (Rc::clone(&self.0), self.1);
        self.clock().meanwhile.borrow_mut().push(Box::new(move || {
            clock(&limiter).set_millis(millis);
            meanwhile(&limiter);
        }));
    }

    fn readings(&self) -> u64 {
        self.clock().readings.take()
    }
}

fn token_bucket(limit: impl Into<Limit>) -> Overtaken<TokenBucket<Suspending>> {
    Overtaken::new(TokenBucket::with_clock(limit, Suspending::default()), TokenBucket::clock)
}

fn adjustable(limit: impl Into<Limit>) -> Overtaken<AdjustableBucket<Suspending>> {
    Overtaken::new(AdjustableBucket::with_clock(limit, Suspending::default()), AdjustableBucket::clock)
}

/// What was charged, and what could not be.
fn paid(debit: Debit) -> (u64, u64) {
    (debit.charged, debit.unpaid)
}

const fn millis(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

#[test]
fn a_token_that_is_there_at_every_instant_is_given_to_who_was_overtaken() {
    let bucket = token_bucket(quota!("2/1s"));
    assert!(bucket.0.try_acquire_at(millis(0), 1).is_ok());
    // One of two is left at 0; at 500 another is there, and one is taken: at no instant less than one.
    bucket.at_millis(500, |bucket| assert!(bucket.try_acquire_at(millis(500), 1).is_ok()));
    let admitted = bucket.0.try_acquire(1).expect("a token was there all the time");
    assert_eq!((admitted.at, admitted.remaining), (millis(500), Remaining::Exactly(0)));
    assert_eq!(bucket.readings(), 2);

    let bucket = adjustable(quota!("2/1s"));
    assert!(bucket.0.try_acquire_at(millis(0), 1).is_ok());
    bucket.at_millis(500, |bucket| assert!(bucket.try_acquire_at(millis(500), 1).is_ok()));
    let admitted = bucket.0.try_acquire(1).expect("a token was there all the time");
    assert_eq!((admitted.at, admitted.remaining), (millis(500), Remaining::Exactly(0)));
    assert_eq!(bucket.readings(), 2);
    bucket.clock().set_millis(1_000);
    bucket.at_millis(1_500, |bucket| assert!(bucket.try_acquire_at(millis(1_500), 1).is_ok()));
    assert_eq!(bucket.0.reserve(1).expect("a token was there all the time").cost(), 1);
}

#[test]
fn what_is_overtaken_again_and_again_reads_the_clock_each_time() {
    let bucket = token_bucket(quota!("2/1s"));
    assert!(bucket.0.try_acquire_at(millis(0), 1).is_ok());
    // The last that is pushed happens first.
    for turn in (1..=5).rev() {
        bucket.at_millis(turn * 500, move |bucket| assert!(bucket.try_acquire_at(millis(turn * 500), 1).is_ok()));
    }
    assert_eq!(bucket.0.try_acquire(1).map(|admitted| admitted.at), Ok(millis(2_500)));
    assert_eq!(bucket.readings(), 6);
}

#[test]
fn who_lacked_it_is_denied_and_told_when_to_come_back_from_the_latest_reading() {
    let bucket = token_bucket(quota!("2/1s"));
    assert!(bucket.0.try_acquire_at(millis(0), 1).is_ok());
    bucket.at_millis(400, |bucket| assert!(bucket.try_acquire_at(millis(400), 1).is_ok()));
    let retry_after = Duration::from_millis(100);
    assert_eq!(bucket.0.try_acquire(1), Err(Denied::RateLimited { retry_after }));
    assert_eq!(bucket.readings(), 2);
    // What never fits needs no second reading.
    bucket.at_millis(900, |bucket| assert!(bucket.try_acquire_at(millis(900), 1).is_ok()));
    assert_eq!(bucket.0.try_acquire(3), Err(Denied::CostExceedsLimit { cost: 3, limit: 2 }));
    assert_eq!(bucket.readings(), 1);
}

#[test]
fn what_is_charged_afterwards_is_paid_where_refill_has_covered_it() {
    let bucket = token_bucket(quota!("2/1s"));
    assert!(bucket.0.try_acquire_at(millis(0), 1).is_ok());
    bucket.at_millis(500, |bucket| assert!(bucket.try_acquire_at(millis(500), 1).is_ok()));
    assert_eq!(paid(bucket.0.debit(1)), (1, 0));
    assert_eq!((bucket.readings(), bucket.0.inspect_at(millis(500)).level), (2, 0));
    assert_eq!(paid(bucket.0.debit(1)), (0, 1));
    assert_eq!(bucket.readings(), 1, "unpaid by what was seen before the reading");

    let bucket = adjustable(quota!("2/1s"));
    assert!(bucket.0.try_acquire_at(millis(0), 1).is_ok());
    bucket.at_millis(500, |bucket| assert!(bucket.try_acquire_at(millis(500), 1).is_ok()));
    assert_eq!(paid(bucket.0.debit(1)), (1, 0));
    assert_eq!((bucket.readings(), bucket.0.inspect_at(millis(500)).level), (2, 0));
    assert_eq!(paid(bucket.0.debit(1)), (0, 1));
    assert_eq!(bucket.readings(), 1, "unpaid by what was seen before the reading");
}

#[test]
fn a_settlement_above_what_was_held_is_paid_where_refill_has_covered_it() {
    let bucket = adjustable(quota!("2/1s burst 3"));
    let reservation = bucket.0.reserve_at(millis(0), 1).unwrap();
    assert!(bucket.0.try_acquire_at(millis(0), 1).is_ok());
    // One beside what is held at 0. At 500 there are two, and one is taken.
    bucket.at_millis(500, |bucket| assert!(bucket.try_acquire_at(millis(500), 1).is_ok()));
    assert_eq!(paid(reservation.settle(2)), (2, 0));
    assert_eq!((bucket.readings(), bucket.0.held(), bucket.0.inspect_at(millis(500)).level), (2, 0, 0));
}

#[test]
fn what_a_sliding_counter_has_let_go_is_given_to_who_was_overtaken() {
    let counter = SlidingCounter::with_clock("10/1s".parse::<WindowLimit>().unwrap(), Suspending::default()).unwrap();
    let counter = Overtaken::new(counter, SlidingCounter::clock);
    assert!(counter.0.try_acquire_at(millis(0), 10).is_ok());
    counter.clock().set_millis(1_100);
    // One is free at 1100; two are at 1200, of which one is taken.
    counter.at_millis(1_200, |counter| assert!(counter.try_acquire_at(millis(1_200), 1).is_ok()));
    let admitted = counter.0.try_acquire(1).expect("a unit was free all the time");
    assert_eq!((admitted.at, admitted.remaining), (millis(1_200), Remaining::Exactly(0)));
    assert_eq!(counter.readings(), 2);
    assert_eq!(counter.0.try_acquire(1).unwrap_err().retry_after(), Some(Duration::from_millis(100)));
    assert_eq!(counter.readings(), 1);
}

#[test]
fn a_place_in_a_leaky_bucket_is_given_to_who_was_overtaken() {
    let pacing = Pacing::new("1/1s".parse::<Rate>().unwrap(), 1).unwrap();
    let bucket = Overtaken::new(LeakyBucket::with_clock(pacing, Suspending::default()), LeakyBucket::clock);
    assert!(bucket.0.try_acquire_at(millis(0), 1).is_ok() && bucket.0.try_acquire_at(millis(0), 1).is_ok());
    bucket.clock().set_millis(1_000);
    // A place from 1000 on; at 2000 there is another one.
    bucket.at_millis(2_000, |bucket| assert!(bucket.try_acquire_at(millis(2_000), 1).is_ok()));
    let departure = bucket.0.try_acquire(1).expect("there was a place all the time");
    assert_eq!((departure.at, departure.delay), (millis(3_000), Duration::from_secs(1)));
    assert_eq!(bucket.readings(), 2);
    assert_eq!(bucket.0.try_acquire(1).unwrap_err().retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(bucket.readings(), 1);
}

type Window<const N: usize> = ShardedWindow<[Shard; N], Suspending, FixedShard>;

fn window<const N: usize>(limit: &str) -> Overtaken<Window<N>> {
    let limit = limit.parse::<WindowLimit>().unwrap();
    Overtaken::new(ShardedWindow::with_array(limit, Suspending::default(), FixedShard(0)), ShardedWindow::clock)
}

#[test]
fn a_window_that_has_passed_denies_nobody() {
    // The caller's shard had room when it was read; the last of the window was taken after its end.
    let one = window::<1>("1/1s");
    one.at_millis(1_000, |window| assert!(window.try_acquire_at(millis(999), 1).is_ok()));
    assert_eq!(one.0.try_acquire(1).map(|admitted| admitted.at), Ok(millis(1_000)));

    // The caller's shard was spent, and another one was not.
    let two = window::<2>("2/1s");
    assert!(two.0.try_acquire_at(millis(0), 1).is_ok());
    two.at_millis(1_000, |window| assert!(window.try_acquire_at(millis(999), 1).is_ok()));
    assert_eq!(two.0.try_acquire(1).map(|admitted| admitted.at), Ok(millis(1_000)));

    // Within a window, the wait is told from the latest reading.
    let spent = window::<2>("2/1s");
    assert!(spent.0.try_acquire_at(millis(0), 2).is_ok());
    spent.clock().set_millis(400);
    spent.at_millis(900, |_| {});
    assert_eq!(spent.0.try_acquire(1).unwrap_err().retry_after(), Some(Duration::from_millis(100)));
    assert_eq!(spent.readings(), 2);
    // What never fits needs no second reading.
    assert!(spent.0.try_acquire(3).unwrap_err().is_final());
    assert_eq!(spent.readings(), 1);
}

#[test]
fn a_decision_reads_the_clock_once_where_nobody_overtakes_it() {
    let bucket = token_bucket(quota!("1/1h"));
    let slow = adjustable(quota!("1/1h"));
    let counter = SlidingCounter::with_clock("1/1h".parse::<WindowLimit>().unwrap(), Suspending::default()).unwrap();
    let counter = Overtaken::new(counter, SlidingCounter::clock);
    let shards = window::<2>("1/1h");
    for (turn, is_admitted) in [true, false, false, false].into_iter().enumerate() {
        assert_eq!((bucket.0.try_acquire(1).is_ok(), bucket.readings()), (is_admitted, 1));
        assert_eq!((slow.0.try_acquire(1).is_ok(), slow.readings()), (is_admitted, 1));
        assert_eq!((counter.0.try_acquire(1).is_ok(), counter.readings()), (is_admitted, 1));
        // But for the first that a window denies.
        assert_eq!((shards.0.try_acquire(1).is_ok(), shards.readings()), (is_admitted, if turn == 1 { 2 } else { 1 }));
    }
    // Without a limit none is read, and where all is denied one is, for the observer.
    for (limit, readings) in [(Limit::Unlimited, 0), (Limit::DenyAll, 1)] {
        let (bucket, slow) = (token_bucket(limit), adjustable(limit));
        assert_eq!((bucket.0.try_acquire(1).is_ok(), bucket.readings()), (readings == 0, readings));
        assert_eq!((slow.0.try_acquire(1).is_ok(), slow.readings()), (readings == 0, readings));
    }
}

/// Remembers the readings it was told of.
#[derive(Default)]
struct Told(RefCell<Vec<Nanos>>);

impl Observer for Told {
    fn admitted(&self, now: Nanos, _: u64, _: &sluicegate_core::Admitted) {
        self.0.borrow_mut().push(now);
    }
    fn denied(&self, now: Nanos, _: u64, _: &Denied) {
        self.0.borrow_mut().push(now);
    }
    fn debited(&self, now: Nanos, _: &Debit) {
        self.0.borrow_mut().push(now);
    }
}

#[test]
fn observers_are_told_once_and_of_the_reading_that_decided() {
    let bucket = TokenBucket::with_clock(quota!("2/1s"), Suspending::default()).observed_by(Told::default());
    let bucket = Overtaken::new(bucket, TokenBucket::clock);
    assert!(bucket.0.try_acquire_at(millis(0), 1).is_ok());
    bucket.at_millis(500, |bucket| assert!(bucket.try_acquire_at(millis(500), 1).is_ok()));
    assert!(bucket.0.try_acquire(1).is_ok());
    bucket.at_millis(800, |bucket| assert!(bucket.try_acquire_at(millis(800), 1).is_err()));
    assert!(bucket.0.try_acquire(1).is_err());
    assert_eq!(*bucket.0.observer().0.borrow(), [0, 500, 500, 800, 500].map(millis));
}

proptest! {
    #![proptest_config(cases(300))]

    /// Whatever others take meanwhile: who is denied lacked it at the beginning, or right after one of the others.
    #[test]
    fn a_denial_is_right_at_an_instant_of_the_call(
        start in 0_u64..4_000,
        before in 0_u64..5,
        cost in 1_u64..5,
        others in proptest::collection::vec((0_u64..2_000, 0_u64..5), 0..5),
    ) {
        let bucket = token_bucket(quota!("3/1s burst 4"));
        let _ = bucket.0.try_acquire_at(millis(start), before);
        bucket.clock().set_millis(start);
        let was_short = Rc::new(Cell::new(bucket.0.inspect_at(millis(start)).level < cost));
        let mut at = start + others.iter().map(|other| other.0).sum::<u64>();
        for (wait, other_cost) in others.into_iter().rev() {
            let was_short = Rc::clone(&was_short);
            bucket.at_millis(at, move |bucket| {
                let _ = bucket.try_acquire_at(millis(at), other_cost);
                was_short.set(was_short.get() || bucket.inspect_at(millis(at)).level < cost);
            });
            at -= wait;
        }
        if bucket.0.try_acquire(cost).is_err() {
            prop_assert!(was_short.get());
        }
    }
}
