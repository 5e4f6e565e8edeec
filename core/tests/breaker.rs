//! The circuit breaker: every transition, against a slow model that keeps each result, and raced by many callers.
#![cfg(feature = "lock_api")]

mod support;

use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{
    BreakerObserver, BreakerOptions, BreakerOptionsError, BreakerPhase, BreakerPolicy, BreakerState, Call, CallOutcome,
    CircuitBreaker, Denied, ManualClock, Nanos, Share,
};
use support::{cases, race};

type Breaker<O = ()> = CircuitBreaker<parking_lot::RawMutex, ManualClock, O>;

fn seconds(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

/// Trips at the second failure in a row, for 5 s, then 10, then 20, then 30; two probes.
fn twice() -> BreakerPolicy {
    let cool_down = (Duration::from_secs(5), Duration::from_secs(30));
    let options = BreakerOptions::new().any_failure_share().consecutive_failures(2).cool_down(cool_down.0, cool_down.1);
    options.probes(2).build().unwrap()
}

fn call(state: &mut BreakerState, now: Nanos, outcome: CallOutcome) {
    let call = state.try_call(now).unwrap();
    state.settle(now, call, outcome);
}

#[test]
fn c14_a_breaker_opens_cools_down_lets_its_probes_pass_and_closes() {
    let mut state = BreakerState::new(twice());
    call(&mut state, seconds(1), CallOutcome::Failure);
    call(&mut state, seconds(1), CallOutcome::Success);
    call(&mut state, seconds(2), CallOutcome::Failure);
    assert_eq!(state.phase(), BreakerPhase::Closed, "not two in a row");
    call(&mut state, seconds(2), CallOutcome::Failure);
    assert_eq!((state.phase(), state.trips()), (BreakerPhase::Open, 1));

    for now in [seconds(2), Nanos::new(seconds(7).as_u64() - 1)] {
        let retry_after = Some(Duration::from_nanos(seconds(7).as_u64() - now.as_u64()));
        assert_eq!(state.peek(now), Err(Denied::CircuitOpen { retry_after }));
        assert_eq!(state.try_call(now), Err(Denied::CircuitOpen { retry_after }));
    }
    assert_eq!(state.peek(seconds(7)), Ok(()));
    assert_eq!(state.phase(), BreakerPhase::Open, "looking changes nothing");
    let first = state.try_call(seconds(7)).unwrap();
    assert_eq!(state.phase(), BreakerPhase::HalfOpen);
    let second = state.try_call(seconds(7)).unwrap();
    assert_eq!(state.try_call(seconds(8)), Err(Denied::CircuitOpen { retry_after: None }));
    state.settle(seconds(9), first, CallOutcome::Success);
    assert_eq!(state.phase(), BreakerPhase::HalfOpen, "all of them have to succeed");
    assert!(state.try_call(seconds(9)).is_err(), "one that came back is no place for another");
    state.settle(seconds(9), second, CallOutcome::Success);
    assert_eq!((state.phase(), state.trips()), (BreakerPhase::Closed, 0));
}

#[test]
fn c14_each_further_cool_down_is_twice_as_long_up_to_the_longest() {
    let mut state = BreakerState::new(twice());
    let mut now = seconds(100);
    for expected in [5, 10, 20, 30, 30, 30] {
        if state.phase() == BreakerPhase::Closed {
            call(&mut state, now, CallOutcome::Failure);
        }
        call(&mut state, now, CallOutcome::Failure);
        let Err(Denied::CircuitOpen { retry_after: Some(left) }) = state.peek(now) else { panic!("it is not open") };
        assert_eq!(left, Duration::from_secs(expected));
        now = now + left;
    }
    // Once it has closed it begins again.
    call(&mut state, now, CallOutcome::Success);
    call(&mut state, now, CallOutcome::Success);
    state.trip(now);
    assert_eq!(state.peek(now), Err(Denied::CircuitOpen { retry_after: Some(Duration::from_secs(5)) }));

    // However often, and however long.
    let cool_down = (Duration::from_nanos(3), Duration::MAX);
    let policy = BreakerOptions::new().cool_down(cool_down.0, cool_down.1).build().unwrap();
    let mut state = BreakerState::new(policy);
    (0..200).for_each(|_| state.trip(Nanos::ZERO));
    assert!(matches!(state.peek(Nanos::ZERO), Err(Denied::CircuitOpen { retry_after: Some(_) })));
}

#[test]
fn c14_results_of_calls_from_before_a_change_are_ignored() {
    let mut state = BreakerState::new(twice());
    let late: Vec<Call> = (0..6).map(|_| state.try_call(seconds(1)).unwrap()).collect();
    let mut late = late.into_iter();
    call(&mut state, seconds(1), CallOutcome::Failure);
    call(&mut state, seconds(1), CallOutcome::Failure);
    state.settle(seconds(2), late.next().unwrap(), CallOutcome::Success);
    assert_eq!(state.phase(), BreakerPhase::Open);
    let probe = state.try_call(seconds(6)).unwrap();
    state.settle(seconds(6), late.next().unwrap(), CallOutcome::Success);
    state.settle(seconds(6), late.next().unwrap(), CallOutcome::Success);
    state.settle(seconds(6), late.next().unwrap(), CallOutcome::Failure);
    state.forget(late.next().unwrap());
    assert_eq!(state.phase(), BreakerPhase::HalfOpen, "neither closed nor opened by what came late");
    let other = state.try_call(seconds(6)).unwrap();
    assert!(state.try_call(seconds(6)).is_err(), "a late one that is forgotten gives no place");
    state.settle(seconds(6), probe, CallOutcome::Success);
    state.settle(seconds(6), other, CallOutcome::Success);
    call(&mut state, seconds(7), CallOutcome::Failure);
    state.settle(seconds(7), late.next().unwrap(), CallOutcome::Failure);
    assert_eq!(state.phase(), BreakerPhase::Closed);
}

#[test]
fn c14_a_probe_that_comes_to_nothing_gives_its_place_back() {
    let breaker = Breaker::with_clock(twice(), ManualClock::new());
    breaker.trip_at(Nanos::ZERO);
    breaker.clock().set(seconds(5));
    let kept = breaker.try_call().unwrap();
    for _ in 0..5 {
        drop(breaker.try_call().unwrap());
        breaker.try_call().unwrap().settle(CallOutcome::Ignored);
    }
    let second = breaker.try_call().unwrap();
    assert!(breaker.try_call().is_err());
    let panicking = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        let _second = second;
        panic!("in the call");
    }));
    assert!(panicking.is_err());
    let second = breaker.try_call().unwrap();
    kept.success();
    second.success();
    assert_eq!(breaker.phase(), BreakerPhase::Closed);
}

#[test]
fn c14_a_probe_that_never_comes_back_shuts_nobody_out_for_ever() {
    let policy = BreakerOptions::new().probes(2).probe_patience(Duration::from_secs(3)).build().unwrap();
    let mut state = BreakerState::new(policy);
    state.trip(Nanos::ZERO);
    let lost = [(); 2].map(|()| state.try_call(seconds(5)).unwrap());
    assert!(state.try_call(Nanos::new(seconds(8).as_u64() - 1)).is_err());
    let probe = state.try_call(seconds(8)).unwrap();
    let other = state.try_call(seconds(8)).unwrap();
    assert!(state.try_call(seconds(8)).is_err());
    for lost in lost {
        state.settle(seconds(9), lost, CallOutcome::Failure);
    }
    assert_eq!(state.phase(), BreakerPhase::HalfOpen, "those were given up");
    state.settle(seconds(9), probe, CallOutcome::Success);
    state.settle(seconds(9), other, CallOutcome::Success);
    assert_eq!(state.phase(), BreakerPhase::Closed);
}

#[test]
fn c14_a_probe_that_comes_back_renews_the_patience_with_the_others() {
    let policy = BreakerOptions::new().probes(3).probe_patience(Duration::from_secs(10)).build().unwrap();
    let mut state = BreakerState::new(policy);
    state.trip(Nanos::ZERO);
    let probes = [5, 13, 14].map(|now| state.try_call(seconds(now)).unwrap());
    let [first, second, third] = probes;
    state.settle(seconds(14), first, CallOutcome::Success);
    // Ten seconds after the first one passed, but the others are healthy.
    assert_eq!(state.try_call(seconds(15)), Err(Denied::CircuitOpen { retry_after: None }));
    state.settle(seconds(22), second, CallOutcome::Success);
    assert_eq!(state.try_call(seconds(31)), Err(Denied::CircuitOpen { retry_after: None }));
    state.settle(seconds(31), third, CallOutcome::Success);
    assert_eq!(state.phase(), BreakerPhase::Closed);
}

#[test]
fn c14_who_only_looks_is_not_shut_out_by_a_clock_that_went_back() {
    let breaker = Breaker::with_clock(twice(), ManualClock::new());
    breaker.trip_at(seconds(1_000_000));
    let retry_after = Some(Duration::from_secs(5));
    assert_eq!(breaker.peek_at(seconds(10)), Err(Denied::CircuitOpen { retry_after }));
    assert_eq!(
        breaker.peek_at(Nanos::from_millis(14_999)),
        Err(Denied::CircuitOpen { retry_after: Some(Duration::from_millis(1)) })
    );
    assert_eq!(breaker.peek_at(seconds(15)), Ok(()));
}

#[test]
fn c14_a_late_reading_neither_ends_a_cool_down_nor_lets_one_probe_more_pass() {
    let policy = BreakerOptions::new().any_failure_share().consecutive_failures(1).probes(1);
    let policy = policy.probe_patience(Duration::from_secs(60)).build().unwrap();
    let mut state = BreakerState::new(policy);
    state.trip(seconds(100));
    // Who asks took its reading up to a cool-down before the trip.
    for late in [95, 99] {
        let retry_after = Some(Duration::from_secs(105 - late));
        assert_eq!(state.try_call(seconds(late)), Err(Denied::CircuitOpen { retry_after }));
        assert!(state.try_call(Nanos::from_millis(104_999)).is_err(), "after a reading of {late} s");
    }
    let probe = state.try_call(seconds(200)).unwrap();
    for late in [199, 140] {
        assert!(state.try_call(seconds(late)).is_err());
        assert!(state.try_call(seconds(201)).is_err(), "one probe is out");
    }
    state.settle(seconds(202), probe, CallOutcome::Success);
    assert_eq!(state.phase(), BreakerPhase::Closed);
    // Further behind than that, it is the clock.
    state.trip(seconds(1_000));
    let retry_after = Some(Duration::from_secs(5));
    assert_eq!(state.try_call(seconds(994)), Err(Denied::CircuitOpen { retry_after }));
    let _probe = state.try_call(seconds(999)).unwrap();
    assert!(state.try_call(seconds(938)).is_err());
    assert!(state.try_call(seconds(998)).is_ok());
}

#[test]
fn c14_patience_begins_with_the_first_probe_that_is_not_forgotten() {
    let mut state = BreakerState::new(twice());
    state.trip(seconds(0));
    let forgotten = state.try_call(seconds(5)).unwrap();
    state.forget(forgotten);
    let _out = [state.try_call(seconds(34)).unwrap(), state.try_call(seconds(34)).unwrap()];
    assert_eq!(state.try_call(seconds(35)), Err(Denied::CircuitOpen { retry_after: None }));
    assert!(state.try_call(seconds(63)).is_err());
    assert!(state.try_call(seconds(64)).is_ok());
}

#[test]
fn c14_slow_calls_trip_and_a_slow_probe_fails() {
    let options = BreakerOptions::new().any_failure_share().minimum_calls(4);
    let policy = options.slow_calls(Duration::from_millis(100), Share::HALF).probes(1).build().unwrap();
    let mut state = BreakerState::new(policy);
    let lasting = |state: &mut BreakerState, from: Nanos, took: u64| {
        let call = state.try_call(from).unwrap();
        state.settle(from + Duration::from_millis(took), call, CallOutcome::Success);
    };
    for took in [100, 99, 500] {
        lasting(&mut state, seconds(1), took);
        assert_eq!(state.phase(), BreakerPhase::Closed, "too few calls");
    }
    lasting(&mut state, seconds(1), 0);
    assert_eq!(state.phase(), BreakerPhase::Open, "two of four");
    lasting(&mut state, seconds(10), 100);
    assert_eq!(state.phase(), BreakerPhase::Open);
    lasting(&mut state, seconds(30), 99);
    assert_eq!(state.phase(), BreakerPhase::Closed);
}

#[test]
fn c14_a_thousand_callers_at_half_open_are_exactly_the_probes() {
    for round in 0..50 {
        let probes = [1, 2, 3, 10][round % 4];
        let policy = BreakerOptions::new().probes(probes).build().unwrap();
        let breaker = Breaker::with_clock(policy, ManualClock::new());
        breaker.trip_at(Nanos::ZERO);
        breaker.clock().set(seconds(5));
        let passed = AtomicU64::new(0);
        let permits = race(20, |_| {
            (0..50)
                .filter_map(|_| breaker.try_call().ok())
                .inspect(|_| _ = passed.fetch_add(1, Ordering::Relaxed))
                .collect::<Vec<_>>()
        });
        assert_eq!(passed.into_inner(), u64::from(probes));
        permits.into_iter().flatten().for_each(|permit| permit.success());
        assert_eq!(breaker.phase(), BreakerPhase::Closed);
    }
}

#[test]
fn c14_racing_probes_that_are_dropped_never_let_more_pass_at_once() {
    let policy = BreakerOptions::new().probes(2).build().unwrap();
    let breaker = Breaker::with_clock(policy, ManualClock::new());
    breaker.trip_at(Nanos::ZERO);
    breaker.clock().set(seconds(5));
    let out = AtomicU64::new(0);
    race(16, |_| {
        for _ in 0..2_000 {
            if let Ok(permit) = breaker.try_call() {
                assert!(out.fetch_add(1, Ordering::SeqCst) < 2);
                out.fetch_sub(1, Ordering::SeqCst);
                drop(permit);
            }
        }
    });
    assert_eq!(breaker.phase(), BreakerPhase::HalfOpen);
    assert!(breaker.try_call().is_ok());
}

#[derive(Default)]
struct Told(RefCell<Vec<String>>);

impl BreakerObserver for Told {
    fn changed(&self, now: Nanos, from: BreakerPhase, to: BreakerPhase) {
        self.0.borrow_mut().push(format!("{} {from:?} {to:?}", now.as_u64() / 1_000_000_000));
    }

    fn refused(&self, now: Nanos, denied: &Denied) {
        self.0.borrow_mut().push(format!("{} {denied}", now.as_u64() / 1_000_000_000));
    }
}

#[test]
fn c16_an_observer_is_told_of_each_change_and_refusal_once() {
    let breaker = Breaker::with_clock(twice(), ManualClock::new()).observed_by(Told::default());
    breaker.try_call().unwrap().failure();
    breaker.try_call().unwrap().failure();
    assert!(breaker.try_call().is_err());
    breaker.clock().set(seconds(5));
    let probes = [(); 2].map(|()| breaker.try_call().unwrap());
    assert!(breaker.try_call().is_err());
    probes.into_iter().for_each(|probe| probe.success());
    assert_eq!(
        breaker.observer().0.take(),
        [
            "0 Closed Open",
            "0 circuit open, retry after 5s",
            "5 Open HalfOpen",
            "5 circuit half-open, retry once its probes have come back",
            "5 HalfOpen Closed",
        ]
    );
}

#[test]
fn what_cannot_be_a_policy_says_why() {
    let options = BreakerOptions::new();
    let second = Duration::from_secs(1);
    let bad = [
        (options.window(Duration::from_nanos(15)), "a window of 15ns: it has to be 16 ns to 30 years"),
        (options.window(Duration::MAX), "a window of 18446744073709551615.999999999s: it has to be 16 ns to 30 years"),
        (options.minimum_calls(0), "0 minimum calls: there has to be at least 1"),
        (options.slow_calls(Duration::ZERO, Share::ALL), "calls are slow from 0 s on: it has to be longer"),
        (options.consecutive_failures(0), "0 failures in a row: there has to be at least 1"),
        (
            options.any_failure_share(),
            "nothing trips it: give a share of failures, a share of slow calls or failures in a row",
        ),
        (
            options.cool_down(Duration::ZERO, second),
            "a cool-down of 0ns and at most 1s: the first has to be above 0 s, and no longer",
        ),
        (
            options.cool_down(second * 2, second),
            "a cool-down of 2s and at most 1s: the first has to be above 0 s, and no longer",
        ),
        (options.probes(0), "0 probes: there has to be at least 1"),
        (options.probe_patience(Duration::ZERO), "no patience with probes: it has to be above 0 s"),
    ];
    for (options, why) in bad {
        assert_eq!(options.build().unwrap_err().to_string(), why);
    }
    assert_eq!(options.build(), Ok(BreakerPolicy::default()));
    assert_eq!(options.probes(0).build(), Err(BreakerOptionsError::NoProbes));
    assert_eq!(Share::parts_per_million(123_400).unwrap().to_string(), "12.34 %");
    assert_eq!(Share::parts_per_million(1_000_001).unwrap_err().parts_per_million, 1_000_001);
    assert_eq!(Share::percent(u32::MAX).map_err(|error| error.to_string().len() > 40), Err(true));
}

#[test]
fn c14_patience_is_with_the_probe_that_is_out_and_not_with_one_that_was_forgotten() {
    let mut state = BreakerState::new(twice());
    state.trip(seconds(0));
    let forgotten = state.try_call(seconds(5)).unwrap();
    state.forget(forgotten);
    // A minute later, when the other's time would long be over.
    let probe = state.try_call(seconds(64)).unwrap();
    let other = state.try_call(seconds(66)).unwrap();
    assert_eq!(state.try_call(seconds(93)), Err(Denied::CircuitOpen { retry_after: None }));
    state.settle(seconds(93), probe, CallOutcome::Success);
    state.settle(seconds(93), other, CallOutcome::Success);
    assert_eq!(state.phase(), BreakerPhase::Closed);
}

/// Keeps every result, and counts them anew each time.
struct Model {
    policy: BreakerPolicy,
    window: u64,
    least: u64,
    share: Share,
    row: u32,
    results: Vec<(u64, bool)>,
    in_a_row: Vec<u64>,
}

impl Model {
    fn trips(&mut self, now: u64, is_failure: bool) -> bool {
        self.results.push((now, is_failure));
        if is_failure {
            if self.in_a_row.last().is_some_and(|last| now - last >= self.window) {
                self.in_a_row.clear();
            }
            self.in_a_row.push(now);
        } else {
            self.in_a_row.clear();
        }
        let part = self.window / 16;
        let counted: Vec<_> = self.results.iter().filter(|(at, _)| now / part - at / part < 16).collect();
        let failures = counted.iter().filter(|(_, is_failure)| *is_failure).count() as u64;
        let calls = counted.len() as u64;
        (calls >= self.least && self.share.is_reached(failures, calls)) || self.in_a_row.len() as u32 >= self.row
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn c14_a_breaker_trips_exactly_when_a_model_that_keeps_every_result_does(
        results in prop::collection::vec((0..2_000_000_000_u64, any::<bool>(), 0..8_u8), 1..120),
        percent in 1..100_u32,
        least in 1..12_u32,
        row in 2..12_u32,
        window in 16..20_000_000_000_u64,
    ) {
        let window = window / 16 * 16;
        let share = Share::percent(percent).unwrap();
        let options = BreakerOptions::new().window(Duration::from_nanos(window)).minimum_calls(least);
        let policy = options.failure_share(share).consecutive_failures(row).build().unwrap();
        let mut state = BreakerState::new(policy);
        let model = |policy| Model { policy, window, least: least.into(), share, row, results: vec![], in_a_row: vec![] };
        let mut reference = model(policy);
        let mut now = 0;
        for (span, is_failure, forgotten) in results {
            now += span;
            let call = state.try_call(Nanos::new(now)).unwrap();
            if forgotten == 0 {
                state.forget(call);
                continue;
            }
            let outcome = if is_failure { CallOutcome::Failure } else { CallOutcome::Success };
            state.settle(Nanos::new(now), call, outcome);
            let trips = reference.trips(now, is_failure);
            prop_assert_eq!(state.phase() == BreakerPhase::Open, trips);
            if trips {
                state.close();
                reference = model(reference.policy);
            }
        }
    }

    // Whatever the clock does, nobody is shut out for longer than two cool-downs, and nothing panics.
    #[test]
    fn d01_no_reading_shuts_a_breaker_for_longer_than_two_cool_downs(
        steps in prop::collection::vec((any::<u64>(), 0..4_u8, 0..64_u32), 1..100),
    ) {
        let policy = BreakerOptions::new().minimum_calls(2).probes(1).build().unwrap();
        let mut state = BreakerState::new(policy);
        let mut out = Vec::new();
        for (reading, what, shift) in steps {
            let now = Nanos::new(reading >> shift);
            match (what, state.try_call(now)) {
                (0, Ok(call)) => out.push(call),
                (1, Ok(call)) => state.settle(now, call, CallOutcome::Success),
                (2, Ok(call)) => state.settle(now, call, CallOutcome::Failure),
                (_, Ok(call)) => state.forget(call),
                (_, Err(Denied::CircuitOpen { retry_after: Some(left) })) => {
                    prop_assert!(left <= Duration::from_secs(120));
                    let mut later = state.clone();
                    prop_assert!(now.as_u64() > u64::MAX - 120_000_000_000 || later.try_call(now + left).is_ok());
                }
                (_, Err(denied)) => {
                    prop_assert_eq!(denied, Denied::CircuitOpen { retry_after: None });
                    if let Some(call) = out.pop() {
                        state.settle(now, call, CallOutcome::Failure);
                    }
                }
            }
        }
    }
}
