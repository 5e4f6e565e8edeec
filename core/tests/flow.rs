//! Flows: who pays when whom refuses, what every end of a call does, and what holds of any script beside a model.
#![cfg(feature = "lock_api")]

mod support;

use core::cell::RefCell;
use core::future::{Future, pending};
use core::panic::AssertUnwindSafe;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Waker};
use core::time::Duration;
use std::panic::catch_unwind;

use proptest::prelude::*;
use sluicegate_core::{
    AdjustableBucket, BreakerOptions, BreakerPhase, CallOutcome, CircuitBreaker, Clock, ConcurrencyLimit, Denied, Flow,
    FlowError, FlowObserver, FlowRefusal, FlowStage, Limiter, ManualClock, Nanos, Outcome, PermitObserver, Quota,
    TokenBucket, Usage, quota,
};
use support::{cases, race};

type Breaker = CircuitBreaker<parking_lot::RawMutex, ()>;
type Whole<P = (), O = ()> = Flow<TokenBucket<()>, ManualClock, Breaker, ConcurrencyLimit<P>, O>;

/// Two failures in a row trip it for 5 s; then `probes` have to succeed.
fn breaker(probes: u32) -> Breaker {
    let options = BreakerOptions::new().any_failure_share().consecutive_failures(2).probes(probes);
    CircuitBreaker::with_clock(options.build().unwrap(), ())
}

fn whole(quota: Quota, in_flight: u32, probes: u32) -> Whole {
    Flow::new(TokenBucket::with_limit(quota.into(), ()), ManualClock::new())
        .breaker(breaker(probes))
        .concurrency(ConcurrencyLimit::new(in_flight))
}

fn fail<L: Limiter, C: Clock>(flow: &Flow<L, C, Breaker, ConcurrencyLimit>) {
    assert_eq!(flow.call(1, || Err::<(), _>(())), Err(FlowError::Failed(())));
}

fn level<P: PermitObserver, O>(flow: &Whole<P, O>) -> u64 {
    flow.limiter().inspect_at(flow.clock().now()).level
}

#[test]
fn c14_an_open_breaker_burns_no_token_and_a_denied_token_is_no_failure() {
    let flow = whole(quota!("4/1h"), 1, 1);
    fail(&flow);
    fail(&flow);
    assert_eq!((flow.circuit_breaker().phase(), level(&flow)), (BreakerPhase::Open, 2));
    for _ in 0..50 {
        let refusal = flow.enter(1).unwrap_err();
        assert_eq!(refusal.stage, FlowStage::Breaker);
        assert_eq!(refusal.denied, Denied::CircuitOpen { retry_after: Some(Duration::from_secs(5)) });
    }
    assert_eq!((level(&flow), flow.in_flight().in_use()), (2, 0));

    flow.clock().advance(Duration::from_secs(5));
    assert_eq!(flow.call(1, || Ok::<_, ()>(1)), Ok(1));
    assert_eq!(flow.call(1, || Ok::<_, ()>(2)), Ok(2));
    for _ in 0..50 {
        assert_eq!(flow.enter(1).unwrap_err().stage, FlowStage::Limiter);
    }
    assert_eq!(flow.circuit_breaker().phase(), BreakerPhase::Closed);
    assert_eq!(flow.circuit_breaker().state().trips(), 0);
    assert_eq!(flow.in_flight().in_use(), 0);
}

#[test]
fn c14_half_open_lets_exactly_its_probes_through_still_rate_limited() {
    let flow = whole(quota!("3/30s"), 10, 2);
    fail(&flow);
    fail(&flow);
    flow.clock().advance(Duration::from_secs(5));
    // One token is left for two probes: who is denied one keeps no probe's place.
    let probe = flow.enter(1).unwrap();
    for _ in 0..5 {
        assert_eq!(flow.enter(1).unwrap_err().stage, FlowStage::Limiter);
    }
    assert_eq!(flow.circuit_breaker().phase(), BreakerPhase::HalfOpen);
    flow.clock().advance(Duration::from_secs(30));
    let other = flow.enter(1).unwrap();
    let refusal = flow.enter(1).unwrap_err();
    assert_eq!((refusal.stage, refusal.denied), (FlowStage::Breaker, Denied::CircuitOpen { retry_after: None }));
    assert_eq!(level(&flow), 2);
    probe.finish(CallOutcome::Success);
    assert_eq!(flow.circuit_breaker().phase(), BreakerPhase::HalfOpen);
    other.finish(CallOutcome::Success);
    assert_eq!(flow.circuit_breaker().phase(), BreakerPhase::Closed);
}

#[test]
fn c14_a_denied_token_does_not_open_the_breaker_half() {
    let flow = whole(quota!("2/1h"), 10, 1);
    fail(&flow);
    fail(&flow);
    flow.clock().advance(Duration::from_secs(6));
    assert_eq!(flow.enter(1).unwrap_err().stage, FlowStage::Limiter);
    assert_eq!(flow.circuit_breaker().phase(), BreakerPhase::Open);
}

#[test]
fn c14_the_first_that_refuses_is_named_and_none_keeps_a_trace() {
    let flow = whole(quota!("3/1h"), 1, 1);
    let held = flow.enter(1).unwrap();
    assert_eq!(flow.enter(1).unwrap_err().stage, FlowStage::Concurrency);
    assert_eq!(level(&flow), 2, "a full limit takes no token");
    flow.circuit_breaker().trip_at(Nanos::ZERO);
    assert_eq!(flow.enter(1).unwrap_err().stage, FlowStage::Breaker);
    assert_eq!(flow.enter(3).unwrap_err().stage, FlowStage::Limiter, "it is asked for more than is left");
    assert_eq!(flow.enter(4).unwrap_err().denied, Denied::CostExceedsLimit { cost: 4, limit: 3 });
    assert_eq!(flow.peek_at(Nanos::ZERO, 3).unwrap_err().stage, FlowStage::Limiter);
    held.finish(CallOutcome::Success);
    assert_eq!(flow.peek_at(Nanos::ZERO, 2).unwrap_err().stage, FlowStage::Breaker);
    assert_eq!((level(&flow), flow.in_flight().in_use()), (2, 0));
}

/// What each part is told.
#[derive(Default)]
struct Told {
    ends: RefCell<Vec<(Duration, CallOutcome)>>,
    refusals: RefCell<Vec<FlowRefusal>>,
    releases: RefCell<Vec<Outcome>>,
}

impl FlowObserver for &Told {
    fn call_refused(&self, _now: Nanos, _cost: u64, refusal: &FlowRefusal) {
        self.refusals.borrow_mut().push(*refusal);
    }

    fn call_ended(&self, _now: Nanos, took: Duration, outcome: CallOutcome) {
        self.ends.borrow_mut().push((took, outcome));
    }
}

impl PermitObserver for &Told {
    type Mark = ();

    fn acquired(&self, _cost: u64, _usage: Usage) {}

    fn released(&self, (): &(), _cost: u64, outcome: Outcome, _usage: Usage) {
        self.releases.borrow_mut().push(outcome);
    }
}

fn told(told: &Told) -> Whole<&Told, &Told> {
    Flow::new(TokenBucket::with_limit(quota!("100/1s").into(), ()), ManualClock::new())
        .breaker(breaker(1))
        .concurrency(ConcurrencyLimit::new(3).observed_by(told))
        .observed_by(told)
}

#[test]
fn c14_who_would_wait_is_turned_away_by_what_no_wait_helps_against_and_takes_nothing() {
    let seen = Told::default();
    let flow = told(&seen);
    let now = flow.clock().now();
    assert_eq!(flow.turn_away_at(now, 1), Ok(()));
    // An empty bucket, and no place, are waited for.
    let held = flow.enter(level(&flow)).unwrap();
    assert!(flow.enter(1).is_err());
    assert_eq!(flow.turn_away_at(now, 1), Ok(()));
    drop(held);
    seen.refusals.take();
    let never = flow.turn_away_at(now, 1_000).unwrap_err();
    assert!(matches!(never, FlowRefusal { stage: FlowStage::Limiter, denied: Denied::CostExceedsLimit { .. } }));
    flow.circuit_breaker().trip_at(now);
    assert_eq!(flow.turn_away_at(now, 1_000), Err(never), "the limiter is named first");
    let open = flow.turn_away_at(now, 1).unwrap_err();
    assert_eq!(open.stage, FlowStage::Breaker);
    assert_eq!(seen.refusals.take().len(), 3, "each refusal is told once");
    // A breaker that has cooled down lets who waits pass, and stays as it is until somebody enters.
    flow.clock().advance(Duration::from_secs(5));
    assert_eq!(flow.turn_away_at(flow.clock().now(), 1), Ok(()));
    assert_eq!(flow.circuit_breaker().phase(), BreakerPhase::Open);
}

#[test]
fn c14_every_end_goes_back_to_the_parts_that_it_concerns() {
    use CallOutcome::{Failure, Ignored, Overloaded, Success};
    let table = [
        (Success, Outcome::Success, false, 0),
        (Failure, Outcome::Ignored, true, 0),
        (Overloaded, Outcome::Dropped, true, 1),
        (Ignored, Outcome::Ignored, false, 0),
    ];
    for (outcome, of_place, is_failure, overloaded) in table {
        let parts = Told::default();
        let flow = told(&parts);
        // One failure before it, so that another one trips.
        flow.enter(1).unwrap().finish(Failure);
        flow.call_judged(1, |_| outcome, || flow.clock().advance(Duration::from_millis(7))).unwrap();
        assert_eq!(*parts.releases.borrow(), [Outcome::Ignored, of_place], "{outcome:?}");
        assert_eq!(parts.ends.borrow()[1], (Duration::from_millis(7), outcome));
        assert_eq!(flow.circuit_breaker().phase() == BreakerPhase::Open, is_failure, "{outcome:?}");
        assert_eq!((flow.take_overloaded(), flow.take_overloaded()), (overloaded, 0));
        assert_eq!(level(&flow), 98, "it was called, and has paid");
    }
}

/// Says what it is told, under its name, after the others that share its page.
struct Log<'p> {
    name: &'static str,
    page: &'p RefCell<Vec<String>>,
}

impl FlowObserver for Log<'_> {
    fn call_refused(&self, now: Nanos, cost: u64, refusal: &FlowRefusal) {
        self.page.borrow_mut().push(format!("{}: {now}: {cost}, {}", self.name, refusal.stage));
    }

    fn call_ended(&self, now: Nanos, took: Duration, outcome: CallOutcome) {
        self.page.borrow_mut().push(format!("{}: {now}: {took:?}, {outcome:?}", self.name));
    }
}

#[test]
fn c16_two_observers_of_calls_are_told_everything_one_after_the_other() {
    let page = RefCell::new(Vec::new());
    let log = |name| Log { name, page: &page };
    let flow = whole(quota!("2/1h"), 1, 1).observed_by((log("first"), (log("second"), ())));
    flow.call_judged(2, |()| CallOutcome::Success, || flow.clock().advance(Duration::from_nanos(7))).unwrap();
    flow.enter(1).unwrap_err();
    let told = ["7 ns: 7ns, Success", "7 ns: 1, limiter"];
    let twice = told.iter().flat_map(|event| ["first", "second"].map(|name| format!("{name}: {event}")));
    assert_eq!(*page.borrow(), twice.collect::<Vec<_>>());
}

#[test]
fn c14_a_panic_in_the_call_or_its_judge_is_a_failure_and_leaks_nothing() {
    let parts = Told::default();
    let flow = told(&parts);
    let call = catch_unwind(AssertUnwindSafe(|| flow.call(1, || -> Result<(), ()> { panic!("in the call") })));
    assert!(call.is_err());
    let judge = catch_unwind(AssertUnwindSafe(|| flow.call_judged(1, |_| panic!("in the judge"), || ())));
    assert!(judge.is_err());
    assert_eq!(flow.circuit_breaker().phase(), BreakerPhase::Open, "two failures");
    assert_eq!(*parts.releases.borrow(), [Outcome::Dropped; 2]);
    assert_eq!(flow.in_flight().in_use(), 0);
    assert_eq!(flow.enter(1).unwrap_err().stage, FlowStage::Breaker);
    assert_eq!(parts.refusals.borrow().len(), 1);
}

fn polled<F: Future>(future: core::pin::Pin<&mut F>) -> core::task::Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn c14_a_future_that_is_cancelled_gives_its_places_back_and_one_that_panics_fails() {
    for (cancelled_as, phase) in
        [(CallOutcome::Ignored, BreakerPhase::Closed), (CallOutcome::Overloaded, BreakerPhase::Open)]
    {
        let parts = Told::default();
        let flow = told(&parts).cancelled_as(cancelled_as);
        for _ in 0..2 {
            let mut call = pin!(flow.call_async(1, pending::<Result<(), ()>>));
            assert_eq!(flow.in_flight().in_use(), 0, "nothing before the first poll");
            assert!(polled(call.as_mut()).is_pending());
            assert_eq!(flow.in_flight().in_use(), 1);
            call.set(flow.call_async(1, pending::<Result<(), ()>>));
            assert_eq!(flow.in_flight().in_use(), 0);
        }
        assert_eq!(flow.circuit_breaker().phase(), phase);
        assert_eq!(*parts.releases.borrow(), [Outcome::Dropped; 2]);
        assert_eq!(parts.ends.borrow()[0].1, cancelled_as);
        assert_eq!(flow.take_overloaded(), 2 * u64::from(cancelled_as == CallOutcome::Overloaded));
    }

    let parts = Told::default();
    let flow = told(&parts);
    for _ in 0..2 {
        let mut call =
            Box::pin(flow.call_async(1, || async { if true { panic!("in the future") } else { Ok::<(), ()>(()) } }));
        assert!(catch_unwind(AssertUnwindSafe(|| polled(call.as_mut()))).is_err());
    }
    assert_eq!(flow.circuit_breaker().phase(), BreakerPhase::Open);
    assert_eq!(flow.in_flight().in_use(), 0);

    let mut call = pin!(flow.call_async(1, || async { Ok::<_, ()>(5) }));
    let core::task::Poll::Ready(Err(FlowError::Refused(refusal))) = polled(call.as_mut()) else { panic!("it is open") };
    assert_eq!(refusal.stage, FlowStage::Breaker);
    flow.clock().advance(Duration::from_secs(5));
    let mut call = pin!(flow.call_async(1, || async { Ok::<_, ()>(5) }));
    assert_eq!(polled(call.as_mut()), core::task::Poll::Ready(Ok(5)));
    assert_eq!(flow.circuit_breaker().phase(), BreakerPhase::Closed);
}

#[test]
fn c17_parts_may_be_left_out_at_run_time() {
    let of = |breaker: Option<Breaker>, limit: Option<ConcurrencyLimit>| {
        Flow::new(TokenBucket::with_limit(quota!("1/1s").into(), ()), ManualClock::new())
            .breaker(breaker)
            .concurrency(limit)
    };
    let (none, both) = (of(None, None), of(Some(breaker(1)), Some(ConcurrencyLimit::new(3))));
    for flow in [&none, &both] {
        assert!(flow.call(1, || Ok::<_, ()>(())).is_ok());
        assert_eq!(flow.enter(1).unwrap_err().stage, FlowStage::Limiter);
    }
    both.clock().advance(Duration::from_secs(1));
    let held = both.enter(1).unwrap();
    assert_eq!(both.in_flight().as_ref().map(ConcurrencyLimit::in_use), Some(1));
    drop(held);
    assert!(both.circuit_breaker().as_ref().is_some_and(|breaker| breaker.phase() == BreakerPhase::Closed));
}

#[test]
fn c14_of_a_thousand_callers_at_half_open_exactly_the_probes_pass_and_pay() {
    for probes in [1, 3, 7] {
        let clock = ManualClock::new();
        let flow = Flow::new(AdjustableBucket::with_limit(quota!("10000/1h").into(), ()), &clock)
            .breaker(breaker(probes))
            .concurrency(ConcurrencyLimit::new(2000));
        fail(&flow);
        fail(&flow);
        clock.advance(Duration::from_secs(5));
        let before = flow.limiter().inspect_at(clock.now()).level;
        let passed = AtomicU64::new(0);
        race(20, |_| {
            for _ in 0..50 {
                if let Ok(permit) = flow.enter(1) {
                    passed.fetch_add(1, Ordering::Relaxed);
                    // It does not come back while the others come.
                    core::mem::forget(permit);
                }
            }
        });
        assert_eq!(passed.into_inner(), u64::from(probes));
        assert_eq!(flow.limiter().inspect_at(clock.now()).level, before - u64::from(probes));
    }
}

#[test]
fn c14_racing_calls_pay_for_what_is_called_whatever_trips_meanwhile() {
    let clock = ManualClock::new();
    let flow = Flow::new(TokenBucket::with_limit(quota!("1000000/3650d").into(), ()), &clock)
        .breaker(breaker(2))
        .concurrency(ConcurrencyLimit::new(3));
    let called = AtomicU64::new(0);
    race(8, |thread| {
        for turn in 0..4_000_u64 {
            let outcome = match (thread as u64 + turn) % 11 {
                0 | 1 => CallOutcome::Failure,
                2 => CallOutcome::Ignored,
                _ => CallOutcome::Success,
            };
            if let Ok(permit) = flow.enter(1) {
                called.fetch_add(1, Ordering::Relaxed);
                if turn % 7 > 0 {
                    permit.finish(outcome);
                }
            } else {
                clock.advance(Duration::from_millis(50));
            }
        }
    });
    assert_eq!(flow.in_flight().in_use(), 0);
    let spent = 1_000_000 - flow.limiter().inspect_at(Nanos::ZERO).level;
    let refilled = clock.now().as_u64() / (3_650 * 86_400 * 1_000);
    let called = called.into_inner();
    // By an early reading nothing of what flowed in meanwhile is there, which what was taken since counts against.
    assert!(called <= spent + refilled + 1 && spent <= called, "{called} calls, {spent} tokens, {refilled} refilled");
    assert!(flow.circuit_breaker().state().trips() > 0 || called > 0);
}

proptest! {
    #![proptest_config(cases(300))]

    // Every part is asked in turn by the model, which takes nothing before all have said yes.
    #[test]
    fn c14_a_flow_decides_and_accounts_as_its_parts_one_after_the_other(
        steps in prop::collection::vec((0..3_000_u64, 0..4_u64, 0..6_u8), 1..120),
        in_flight in 1..4_u32,
        probes in 1..4_u32,
    ) {
        let flow = whole(quota!("3/1s burst 4"), in_flight, probes);
        let (bucket, reference) = (TokenBucket::with_limit(quota!("3/1s burst 4").into(), ()), breaker(probes));
        let mut out = Vec::new();
        for (wait, cost, end) in steps {
            flow.clock().advance(Duration::from_millis(wait));
            let now = flow.clock().now();
            let expected = if let Err(denied) = bucket.peek_at(now, cost) {
                Err(FlowRefusal { stage: FlowStage::Limiter, denied })
            } else if let Err(denied) = reference.peek_at(now) {
                Err(FlowRefusal { stage: FlowStage::Breaker, denied })
            } else if out.len() as u32 >= in_flight {
                Err(FlowRefusal { stage: FlowStage::Concurrency, denied: Denied::ConcurrencyLimited })
            } else {
                Ok((bucket.try_acquire_at(now, cost).unwrap(), reference.try_call_at(now).unwrap()))
            };
            match (flow.enter(cost), expected) {
                (Ok(permit), Ok((_, call))) => out.push((permit, call)),
                (Err(found), Err(expected)) => prop_assert_eq!(found, expected),
                (found, expected) => prop_assert!(false, "{:?} and not {:?}", found.err(), expected.err()),
            }
            let outcome = match end {
                0 => CallOutcome::Failure,
                1 => CallOutcome::Overloaded,
                2 | 3 => CallOutcome::Success,
                4 => CallOutcome::Ignored,
                _ => continue,
            };
            if !out.is_empty() {
                let (permit, call) = out.swap_remove(cost as usize % out.len());
                permit.finish(outcome);
                call.settle_at(now, outcome);
            }
            prop_assert_eq!(flow.circuit_breaker().phase(), reference.phase());
            prop_assert_eq!(flow.in_flight().in_use() as usize, out.len());
            prop_assert_eq!(flow.limiter().inspect_at(now), bucket.inspect_at(now));
        }
    }
}
