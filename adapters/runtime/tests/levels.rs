//! Waiting for all levels of a hierarchy, with a cost for each.

#![cfg(feature = "alloc")]

extern crate alloc;

mod support;

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::task::Poll;
use core::time::Duration;

use parking_lot::RawMutex;
use proptest::prelude::*;
use sluicegate_runtime::{
    Acquire, AdjustableBucket, Admitted, Clock, Denied, DeniedBy, FixedShard, Growing, Hierarchy, Holding, Inheritance,
    Level, Limit, ManualRuntime, Nanos, OwnedHierarchy, Queued, Quota, Rate, Run, Shard, ShardedWindow,
    SharedSlidingLog, SlidingCounter, SlidingLog, WaitOptions, WindowLimit, quota,
};
use support::Waiter;

type Time = ManualRuntime<RawMutex>;
type AnyLevel = Arc<Level<dyn Holding + Send + Sync>>;
type Levels<const N: usize> = Arc<Queued<OwnedHierarchy<N>, Time, RawMutex, Growing>>;

fn level(name: &'static str, quota: Quota) -> Arc<Level<AdjustableBucket<()>>> {
    Arc::new(Level::new(name, AdjustableBucket::with_limit(quota.into(), ())))
}

fn queued<const N: usize>(levels: [AnyLevel; N], time: &Time, options: WaitOptions) -> Levels<N> {
    Arc::new(Queued::new(OwnedHierarchy::new(levels).unwrap(), time.clone(), options))
}

const fn one_timer() -> WaitOptions {
    WaitOptions::new().relief(None)
}

#[track_caller]
fn waiting<const N: usize>(levels: &Levels<N>, costs: [u64; N]) -> Waiter<Acquire<Levels<N>>> {
    Waiter::waiting(levels.acquire_owned(costs))
}

fn free<const N: usize>(levels: &Levels<N>) -> [u64; N] {
    levels.limiter().hierarchy().inspect_at(levels.runtime().now()).map(|inspection| inspection.level)
}

fn remaining<const N: usize>(admitted: &[Admitted; N]) -> [u64; N] {
    admitted.map(|admitted| admitted.remaining.at_least())
}

/// A burst of 10 each; the inner one comes back ten times as slowly.
fn two(time: &Time) -> Levels<2> {
    queued([level("outer", quota!("10/1s")), level("inner", quota!("1/1s burst 10"))], time, one_timer())
}

#[test]
fn c09_all_levels_are_waited_for_in_order_and_each_remaining_is_told() {
    let time = Time::new();
    let levels = two(&time);
    assert_eq!(remaining(&levels.try_acquire([3, 10]).unwrap()), [7, 0]);
    let mut first = waiting(&levels, [10, 1]);
    let mut second = waiting(&levels, [1, 2]);
    let mut third = waiting(&levels, [4, 0]);
    assert_eq!(time.next_wake(), Some(Nanos::from_secs(1)), "the head sleeps until both levels have enough");
    assert_eq!(time.sleepers(), 1);
    time.advance(Duration::from_secs(1));
    assert_eq!(remaining(&first.run().unwrap().unwrap()), [0, 0]);
    assert!(second.run().is_none());
    assert_eq!(time.next_wake(), Some(Nanos::from_secs(3)));
    time.advance(Duration::from_secs(2));
    assert_eq!(remaining(&second.run().unwrap().unwrap()), [9, 0]);
    assert_eq!(remaining(&third.run().unwrap().unwrap()), [5, 0], "it could go earlier, and did not overtake");
    assert_eq!((levels.waiters(), time.sleepers()), (0, 0));
}

#[test]
fn c09_whoever_denies_is_named() {
    let time = Time::new();
    let levels = two(&time);
    levels.try_acquire([0, 10]).unwrap();
    let rate_limited = |millis| Denied::RateLimited { retry_after: Duration::from_millis(millis) };
    let by = |answer: Result<[Admitted; 2], DeniedBy>| {
        let DeniedBy { level, name, denied, .. } = answer.unwrap_err();
        (level, name, denied)
    };
    assert_eq!(by(levels.try_acquire([1, 1])), (1, "inner", rate_limited(1_000)));
    // At once, where the time is certainly too short, and for ever.
    let at_once = |costs, millis| match Waiter::new(levels.acquire_timeout(costs, Duration::from_millis(millis))).poll()
    {
        Poll::Ready(answer) => by(answer),
        Poll::Pending => panic!("it waits"),
    };
    assert_eq!(at_once([1, 1], 999), (1, "inner", rate_limited(1_000)));
    assert_eq!(at_once([11, 1], u64::MAX), (0, "outer", Denied::CostExceedsLimit { cost: 11, limit: 10 }));
    // At its deadline: another one took the unit that it waited for.
    let mut waiter = Waiter::waiting(levels.acquire_timeout_owned([1, 1], Duration::from_secs(1)));
    time.advance(Duration::from_millis(500));
    levels.limiter().levels()[0].limiter().try_acquire_at(time.now(), 10).unwrap();
    levels.limiter().levels()[0].limiter().try_acquire_at(time.now() + Duration::from_millis(500), 5).unwrap();
    time.advance(Duration::from_millis(500));
    assert_eq!(by(waiter.run().unwrap()), (0, "outer", rate_limited(100)));
    // Behind others: the level that they use up.
    let mut first = waiting(&levels, [1, 3]);
    assert_eq!(at_once([1, 1], 2_999), (1, "inner", rate_limited(3_000)));
    let mut hasty = Waiter::waiting(levels.acquire_timeout_owned([1, 1], Duration::from_secs(3)));
    levels.limiter().levels()[1].limiter().try_acquire_at(time.now(), 1).unwrap();
    time.advance(Duration::from_secs(3));
    assert!(first.run().unwrap().is_ok());
    assert_eq!(by(hasty.run().unwrap()), (1, "inner", rate_limited(1_000)));
    // The queue itself is no level.
    let full = queued([level("only", quota!("1/1s"))], &time, one_timer().bound(0));
    full.try_acquire([1]).unwrap();
    let Poll::Ready(Err(denied)) = Waiter::new(full.acquire([1])).poll() else { panic!("nobody may wait") };
    assert_eq!((denied.level, denied.name, denied.denied), (1, "", Denied::QueueFull));
    full.close();
    assert_eq!(full.try_acquire([1]).unwrap_err().denied, Denied::Closed);
}

/// One level of each kind that can be one, with so much in a second.
fn every_kind(limit: u64) -> [AnyLevel; 4] {
    let rate = format!("{limit}/1s").parse::<Rate>().unwrap();
    let window = WindowLimit::try_from(rate).unwrap();
    let log = SharedSlidingLog::<RawMutex, VecDeque<Run>>::new(SlidingLog::new(rate));
    [
        Arc::new(Level::new("bucket", AdjustableBucket::with_limit(Quota::new(rate).unwrap().into(), ()))),
        Arc::new(Level::new("window", ShardedWindow::<[Shard; 2], _, _>::with_array(window, (), FixedShard(0)))),
        Arc::new(Level::new("counter", SlidingCounter::with_limit(window, ()).unwrap())),
        Arc::new(Level::new("log", log)),
    ]
}

#[test]
fn b06_one_that_leaves_unfetched_leaves_every_level_as_if_it_had_never_come() {
    let time = Time::new();
    let (levels, reference) = (queued(every_kind(8), &time, one_timer()), queued(every_kind(8), &time, one_timer()));
    for both in [&levels, &reference] {
        both.try_acquire([8, 1, 7, 3]).unwrap();
    }
    let gone = waiting(&levels, [8, 7, 6, 8]);
    time.advance(Duration::from_secs(2));
    levels.recheck();
    assert_eq!((levels.waiters(), free(&levels)[0]), (0, 0), "it was granted");
    assert_ne!(free(&levels), free(&reference));
    time.advance(Duration::from_millis(100));
    drop(gone);
    assert_eq!(free(&levels), free(&reference));
    // And later too, whatever is taken meanwhile.
    for both in [&levels, &reference] {
        assert!(both.try_acquire([5, 4, 3, 2]).is_ok());
    }
    for _ in 0..30 {
        time.advance(Duration::from_millis(100));
        assert_eq!(free(&levels), free(&reference));
    }
}

#[test]
fn c09_what_is_given_back_comes_back_at_every_level() {
    let time = Time::new();
    let levels = queued(every_kind(8), &time, one_timer());
    let admitted = levels.try_acquire([8, 7, 6, 5]).unwrap();
    let mut waiter = waiting(&levels, [2, 2, 2, 2]);
    assert_eq!(free(&levels), [0, 1, 2, 3]);
    levels.give_back([8, 7, 6, 5], admitted);
    assert!(waiter.run().unwrap().is_ok());
    assert_eq!(free(&levels), [6, 6, 6, 6]);
    // So it does what a waiter was granted that has been held for too long to be let go.
    let late = Waiter::waiting(levels.acquire_owned([7, 1, 1, 1]));
    time.advance(Duration::from_millis(200));
    let levels_of = free(&levels);
    drop(late);
    assert_eq!(free(&levels), levels_of);
}

#[test]
fn c09_what_is_held_until_it_is_fetched_is_denied_to_others_at_once() {
    let time = Time::new();
    let (outer, inner) = (level("outer", quota!("10/1s")), level("inner", quota!("10/1s")));
    let levels = queued([outer.clone(), inner.clone()], &time, one_timer());
    levels.try_acquire([10, 10]).unwrap();
    let mut held = waiting(&levels, [10, 4]);
    time.advance(Duration::from_secs(1));
    levels.recheck();
    // Were it in flight, each of these would look again until the waiter's task comes to fetch it: for ever, here.
    assert_eq!(outer.try_acquire_at(time.now(), 1), Err(Denied::ConcurrencyLimited));
    assert!(outer.peek_at(time.now(), 1).is_err());
    let denied = Hierarchy::of([&*outer, &*inner]).unwrap().try_acquire_at(time.now(), [1, 1]).unwrap_err();
    assert_eq!((denied.name, denied.denied), ("outer", Denied::ConcurrencyLimited));
    assert!(inner.try_acquire_at(time.now(), 6).is_ok());
    assert!(held.run().unwrap().is_ok());
    let retry_after = Duration::from_millis(100);
    assert_eq!(outer.try_acquire_at(time.now(), 1), Err(Denied::RateLimited { retry_after }));
}

#[test]
fn c09_queues_that_share_a_level_retry_at_their_hints_and_when_told_to() {
    let time = Time::new();
    let global = level("global", quota!("1/1s burst 4"));
    let tenant = |name| queued([global.clone(), level(name, quota!("10/1s"))], &time, one_timer());
    let (ada, grace) = (tenant("ada"), tenant("grace"));
    let all = ada.try_acquire([4, 1]).unwrap();
    let mut of_ada = waiting(&ada, [2, 1]);
    let mut of_grace = waiting(&grace, [1, 1]);
    // Each sleeps until its own turn, as if the other were not there.
    assert_eq!((time.sleepers(), time.next_wake()), (2, Some(Nanos::from_secs(1))));
    time.advance(Duration::from_secs(1));
    assert!(of_grace.run().unwrap().is_ok(), "no order holds between them: its turn came first");
    assert!(of_ada.run().is_none());
    // What was taken meanwhile shifts the other one's hint when it looks, and it sleeps again.
    time.advance(Duration::from_secs(1));
    assert!(of_ada.run().is_none());
    assert_eq!(time.next_wake(), Some(Nanos::from_secs(3)));
    // What one queue gets back the others learn of when they are told to look.
    let mut of_grace = waiting(&grace, [2, 1]);
    ada.give_back([4, 1], all);
    assert!(of_ada.run().unwrap().is_ok(), "its own queue is told");
    assert!(of_grace.run().is_none(), "another is not");
    grace.recheck();
    assert!(of_grace.run().unwrap().is_ok());
    assert_eq!((ada.waiters() + grace.waiters(), time.sleepers(), free(&ada)[0]), (0, 0, 0));
}

#[test]
fn b06_what_another_queue_holds_for_one_that_is_never_polled_again_comes_into_reach() {
    let time = Time::new();
    let global = level("global", quota!("10/1s"));
    let tenant = |name| queued([global.clone(), level(name, quota!("10/1s"))], &time, WaitOptions::new());
    let (ada, grace) = (tenant("ada"), tenant("grace"));
    ada.try_acquire([10, 1]).unwrap();
    let stuck = waiting(&ada, [10, 1]);
    let mut waiter = waiting(&grace, [10, 1]);
    time.advance(Duration::from_secs(1));
    ada.recheck();
    // Held for the one that is stuck: no clock knows. It looks again after its relief, and less and less often.
    assert!(waiter.run().is_none());
    time.advance(Duration::from_millis(100));
    assert!(waiter.run().is_none());
    // Any wait of that queue counts what was held as taken.
    drop(waiting(&ada, [2, 1]));
    let mut waited = Duration::ZERO;
    while waiter.run().is_none() {
        time.advance(Duration::from_millis(10));
        waited += Duration::from_millis(10);
        assert!(waited < Duration::from_secs(60), "it is locked up");
    }
    assert!(waited <= Duration::from_millis(2_000), "{waited:?}");
    drop(stuck);
}

#[test]
fn c08_a_level_that_is_lowered_ends_all_that_it_can_never_serve() {
    let time = Time::new();
    let (outer, inner) = (level("outer", quota!("100/1s")), level("inner", quota!("1/1s burst 100")));
    let levels = queued([outer, inner.clone()], &time, one_timer());
    levels.try_acquire([0, 100]).unwrap();
    let mut small = waiting(&levels, [50, 1]);
    // What it asks for at every level is small.
    let mut large: Vec<_> = (0..20).map(|_| waiting(&levels, [1, 60])).collect();
    inner.limiter().adjust_at(time.now(), Limit::Quota(quota!("1/1s burst 50")), Inheritance::Level);
    // Who comes now is not refused for those who will be.
    let mut late = Waiter::waiting(levels.acquire_timeout_owned([1, 1], Duration::from_secs(2)));
    levels.recheck();
    for waiter in &mut large {
        let denied = waiter.run().unwrap().unwrap_err();
        let never = Denied::CostExceedsLimit { cost: 60, limit: 50 };
        assert_eq!((denied.level, denied.name, denied.denied), (1, "inner", never));
    }
    assert_eq!(levels.waiters(), 2);
    time.advance(Duration::from_secs(1));
    assert!(small.run().unwrap().is_ok());
    time.advance(Duration::from_secs(1));
    assert!(late.run().unwrap().is_ok());
}

#[test]
fn a_hierarchy_can_be_borrowed_and_levels_can_be_anywhere() {
    const LEVELS: [&str; 2] = ["outer", "inner"];
    static OUTER: Level<AdjustableBucket<()>> =
        Level::new(LEVELS[0], AdjustableBucket::with_limit(Limit::Quota(quota!("2/1s")), ()));
    let inner = Level::new(LEVELS[1], AdjustableBucket::with_limit(Limit::Quota(quota!("1/1s")), ()));
    let time = Time::new();
    let levels: Queued<_, _, RawMutex, Growing> =
        Queued::new(Hierarchy::new([&OUTER, &inner]).unwrap(), time.clone(), WaitOptions::new());
    assert!(matches!(Waiter::new(levels.acquire([1, 1])).poll(), Poll::Ready(Ok(_))));
    let mut waiter = Waiter::waiting(levels.acquire([1, 1]));
    time.advance(Duration::from_secs(1));
    assert!(waiter.run().unwrap().is_ok());

    fn goes_anywhere<T: Send + Sync + 'static>(_: &T) {}
    let owned = queued([level("only", quota!("1/1s"))], &time, WaitOptions::new());
    goes_anywhere(&owned);
    fn can_be_sent<T: Send + 'static>(_: &T) {}
    can_be_sent(&owned.acquire_owned([1]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Who is refused for its deadline, at once or then, could not have gone by then.
    #[test]
    fn b05_nobody_is_refused_who_would_have_gone(
        rates in prop::array::uniform2(1_u64..20),
        ahead in prop::collection::vec((prop::array::uniform2(0_u64..=10), prop::option::of(0_u64..8_000)), 0..8),
        costs in prop::array::uniform2(0_u64..=10),
        millis in 0_u64..12_000,
    ) {
        let make = || {
            let time = Time::new();
            let quota = |rate: u64| format!("{rate}/1s burst 10").parse::<Quota>().unwrap();
            let levels = queued([level("outer", quota(rates[0])), level("inner", quota(rates[1]))], &time, one_timer());
            levels.try_acquire([3, 3]).unwrap();
            let ahead: Vec<_> = ahead
                .iter()
                .map(|(costs, millis)| {
                    let mut waiter = Waiter::new(match millis {
                        Some(millis) => levels.acquire_timeout_owned(*costs, Duration::from_millis(*millis)),
                        None => levels.acquire_owned(*costs),
                    });
                    let is_over = waiter.poll().is_ready();
                    (waiter, is_over)
                })
                .collect();
            // Another one barges in, and some of those ahead will be too late.
            levels.try_acquire(free(&levels)).unwrap();
            (levels, ahead)
        };
        let deadline = Duration::from_millis(millis);
        let (levels, mut ahead_of_it) = make();
        let (went, _) = drive(levels.acquire_owned(costs), levels.runtime(), &mut ahead_of_it);
        let (levels, mut ahead_of_it) = make();
        let (over, answer) = drive(levels.acquire_timeout_owned(costs, deadline), levels.runtime(), &mut ahead_of_it);
        prop_assert_eq!(answer.is_ok(), went <= Nanos::ZERO + deadline, "it went at {:?}; {:?} at {:?}", went, answer, over);
    }
}

/// Polls one as time goes on, and those ahead of it, until it is told; and tells when that was.
fn drive(acquire: Acquire<Levels<2>>, time: &Time, ahead: &mut [Ahead]) -> (Nanos, Result<[Admitted; 2], DeniedBy>) {
    let mut waiter = Waiter::new(acquire);
    if let Poll::Ready(answer) = waiter.poll() {
        return (time.now(), answer);
    }
    loop {
        time.set(time.next_wake().expect("somebody minds the time"));
        for (ahead, is_over) in &mut *ahead {
            *is_over = *is_over || ahead.run().is_some();
        }
        if let Some(answer) = waiter.run() {
            return (time.now(), answer);
        }
    }
}

type Ahead = (Waiter<Acquire<Levels<2>>>, bool);
