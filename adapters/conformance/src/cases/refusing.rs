//! Calls through flows that are refused while others wait, or that wait for what others have.

use alloc::sync::Arc;
use core::time::Duration;

use parking_lot::Mutex;
use sluicegate_runtime::{
    AdjustableBucket, AimdOptions, BreakerObserver, BreakerOptions, BreakerPhase, Clock, Denied, FlowError,
    FlowObserver, FlowOptions, FlowRefusal, FlowStage, InFlightLaw, Inheritance, Limit, Nanos, Observer, Queued,
    QueuedFlow, Runtime, SampleOptions, WaitOptions, WhenEmpty, quota,
};

use crate::executor::Executor;
use crate::limiters::Waited;
use crate::tasks::{at_once, pass, settle, start, unless};

async fn nothing() -> Result<(), ()> {
    Ok(())
}

fn refused(stage: FlowStage, denied: Denied) -> Result<(), FlowError<()>> {
    Err(FlowError::Refused(FlowRefusal { stage, denied }))
}

/// Neither an open breaker nor a full line of others hides it, and closing says the same to who waits for a place.
pub async fn b03_what_can_never_be_is_refused_at_once_by_a_flow<E: Executor>(runtime: E::Runtime) {
    let breaker = BreakerOptions::new().build().expect("a policy");
    for when_empty in [WhenEmpty::Reject, WhenEmpty::Queue, WhenEmpty::QueueFor(Duration::from_secs(60))] {
        let options = FlowOptions::new(quota!("5/1s")).when_empty(when_empty).breaker(breaker).in_flight(1);
        let flow: Arc<QueuedFlow<E::Runtime, E::Lock>> =
            Arc::new(QueuedFlow::new(options, runtime.clone()).expect("options"));
        let held = flow.enter(1).await.map(|(permit, _)| permit).expect("the only place");
        let never = refused(FlowStage::Limiter, Denied::CostExceedsLimit { cost: 6, limit: 5 });
        assert_eq!(at_once(flow.call(6, nothing)).await.map(|answer| answer.map(drop)), Some(never));
        flow.breaker().expect("one").trip_at(runtime.now());
        assert_eq!(at_once(flow.call(6, nothing)).await.map(|answer| answer.map(drop)), Some(never));
        flow.breaker().expect("one").close_at(runtime.now());

        let closed = refused(FlowStage::Limiter, Denied::Closed);
        let waits = {
            let flow = Arc::clone(&flow);
            start::<E, _>(&runtime, async move { flow.call(1, nothing).await.map(drop) }).await
        };
        settle::<E>(&runtime).await;
        flow.close();
        let waited = waits.await.with;
        if when_empty == WhenEmpty::Reject {
            assert_eq!(waited, refused(FlowStage::Concurrency, Denied::ConcurrencyLimited));
        } else {
            assert_eq!(waited, closed);
        }
        flow.breaker().expect("one").trip_at(runtime.now());
        assert_eq!(at_once(flow.call(1, nothing)).await.map(|answer| answer.map(drop)), Some(closed));
        let looked = flow.peek_at(runtime.now(), 1);
        assert_eq!(looked, Err(FlowRefusal { stage: FlowStage::Limiter, denied: Denied::Closed }));
        assert_eq!((flow.bucket().limiter().held(), flow.bucket().waiters()), (0, 0));
        drop(held);
    }
}

/// Those who have a place and wait for a token are no calls: to the law of the places they are not in use, and whether they give up says nothing.
pub async fn c17_waiting_for_tokens_is_no_call_in_flight<E: Executor>(runtime: E::Runtime) {
    let samples = SampleOptions::new().lasting(Duration::from_millis(100), Duration::from_secs(600)).samples(4);
    let law = AimdOptions::new().limits(1, 8, 64).build().expect("a law");
    let options = FlowOptions::new(quota!("10/1s burst 1")).when_empty(WhenEmpty::Queue);
    let options = options.adaptive_in_flight(samples, InFlightLaw::Aimd(law));
    let flow: Arc<QueuedFlow<E::Runtime, E::Lock>> =
        Arc::new(QueuedFlow::new(options, runtime.clone()).expect("options"));
    let usage = |flow: &QueuedFlow<E::Runtime, E::Lock>| flow.in_flight().expect("a limit").usage();
    let begin = runtime.now();
    let mut calls = Vec::new();
    for number in 0..60_u64 {
        let (flow, clock) = (Arc::clone(&flow), runtime.clone());
        let call = async move {
            let call = || async move {
                let at = clock.now();
                clock.sleep_until(at + Duration::from_millis(20)).await;
                Ok::<_, ()>(())
            };
            flow.call(1, call).await.map(drop)
        };
        // Every other one gives up long before its turn.
        let leaves = begin + if number % 2 == 0 { Duration::from_secs(3_600) } else { Duration::from_millis(55) };
        calls.push(start::<E, _>(&runtime, unless(runtime.clone(), leaves, call)).await);
    }
    settle::<E>(&runtime).await;
    assert_eq!((usage(&flow).in_use, flow.bucket().waiters()), (8, 7));
    let mut answered = 0;
    for call in calls {
        answered += u64::from(call.await.with == Some(Ok(())));
    }
    assert_eq!(answered, 30);
    // One call at a time is less than half of eight: nothing was learnt that would raise it, nor any that would lower it.
    assert_eq!((usage(&flow).limit, usage(&flow).in_use), (8, 0));
    let controller = flow.in_flight().expect("a limit").limit().observer().as_ref().expect("a law").controller();
    assert!(controller.closed_windows() >= 5, "{} windows", controller.closed_windows());
}

/// A call that turns out to cost more may wait for that: those who wait for its place hold no token.
pub async fn c17_a_call_in_flight_may_wait_for_more_tokens<E: Executor>(runtime: E::Runtime) {
    let options = FlowOptions::new(quota!("10/1s burst 3")).when_empty(WhenEmpty::Queue).in_flight(1);
    let flow: Arc<QueuedFlow<E::Runtime, E::Lock>> =
        Arc::new(QueuedFlow::new(options, runtime.clone()).expect("options"));
    let begin = runtime.now();
    let mut calls = Vec::new();
    for _ in 0..5 {
        let flow = Arc::clone(&flow);
        let call = async move {
            let bucket = flow.bucket();
            let settle = || async { bucket.acquire(2).await.map(drop) };
            flow.call(1, settle).await.map(drop)
        };
        calls.push(start::<E, _>(&runtime, call).await);
    }
    for (call, number) in calls.into_iter().zip(0_u32..) {
        let call = call.await;
        assert_eq!(call.with, Ok(()));
        assert!(call.at <= begin + (Duration::from_millis(300) + 3 * E::GRAIN) * number, "{number} at {:?}", call.at);
    }
}

/// Whose turn has come, and who has not come for it, does not enter a flow that was closed meanwhile, or lets nothing pass any more.
pub async fn b05_closing_comes_before_a_turn_that_nobody_has_come_for<E: Executor>(runtime: E::Runtime) {
    for deny in [false, true] {
        let options = FlowOptions::new(quota!("10/10s")).when_empty(WhenEmpty::Queue).in_flight(2);
        let flow: Arc<QueuedFlow<E::Runtime, E::Lock>> =
            Arc::new(QueuedFlow::new(options, runtime.clone()).expect("options"));
        let all = flow.enter(10).await.map(|(permit, _)| permit).expect("all of it");
        let mut granted = Box::pin(flow.enter(1));
        assert!(at_once(&mut granted).await.is_none());
        pass::<E>(&runtime, Duration::from_secs(2)).await;
        flow.bucket().recheck();
        assert_eq!((flow.bucket().waiters(), flow.bucket().limiter().held()), (0, 1), "its turn has come");
        if deny {
            flow.adjust(Limit::DenyAll, Inheritance::Level);
        } else {
            flow.close();
        }
        let refusal = granted.await.map(drop).expect_err("it is too late");
        assert_eq!(refusal, FlowRefusal { stage: FlowStage::Limiter, denied: Denied::Closed });
        assert_eq!((flow.bucket().limiter().held(), flow.in_flight().expect("a limit").usage().in_use), (0, 1));
        drop(all);
    }
}

#[derive(Debug, Default)]
struct Told(Mutex<Vec<&'static str>>);

impl Observer for Told {
    fn denied(&self, _now: Nanos, _cost: u64, _denied: &Denied) {
        self.0.lock().push("denied");
    }
}

impl BreakerObserver for Told {
    fn changed(&self, _now: Nanos, _from: BreakerPhase, _to: BreakerPhase) {
        self.0.lock().push("changed");
    }

    fn refused(&self, _now: Nanos, _denied: &Denied) {
        self.0.lock().push("refused");
    }
}

impl FlowObserver for Told {
    fn call_refused(&self, _now: Nanos, _cost: u64, _refusal: &FlowRefusal) {
        self.0.lock().push("call refused");
    }
}

/// By each part that refuses, once: also where a flow waits, and nobody gets as far as to wait.
pub async fn c16_refusals_of_a_flow_are_told_once<E: Executor>(runtime: E::Runtime) {
    let breaker = BreakerOptions::new().build().expect("a policy");
    for when_empty in [WhenEmpty::Reject, WhenEmpty::Queue] {
        let told = Arc::new(Told::default());
        let options = FlowOptions::new(quota!("5/1s")).when_empty(when_empty).breaker(breaker).in_flight(1);
        let flow: QueuedFlow<E::Runtime, E::Lock, _> =
            QueuedFlow::observed_by(options, runtime.clone(), Arc::clone(&told)).expect("options");
        assert!(flow.enter(6).await.is_err());
        assert_eq!(core::mem::take(&mut *told.0.lock()), ["denied", "call refused"], "{when_empty:?}");
        flow.breaker().expect("one").trip_at(runtime.now());
        assert!(flow.enter(1).await.is_err());
        assert_eq!(core::mem::take(&mut *told.0.lock()), ["changed", "refused", "call refused"], "{when_empty:?}");
        assert_eq!(flow.bucket().limiter().inspect_at(runtime.now()).level, 5);
    }
}

/// Nobody waits behind one that was granted and never comes for it; those who only try find at some time that it counts as taken, and is refilled.
pub async fn b06_who_only_tries_is_not_kept_out_by_what_a_stuck_one_was_granted<E: Executor>(runtime: E::Runtime) {
    let relief = Duration::from_millis(100);
    let bucket = AdjustableBucket::with_limit(quota!("10/1s").into(), ());
    let bucket: Waited<E, _> = Arc::new(Queued::new(bucket, runtime.clone(), WaitOptions::new().relief(Some(relief))));
    assert!(bucket.try_acquire(10).is_ok());
    let mut stuck = Box::pin(bucket.acquire_owned(10));
    assert_eq!(at_once(&mut stuck).await, None);
    pass::<E>(&runtime, Duration::from_secs(1)).await;
    // Somebody looks, and so it is granted; from then on it is held.
    bucket.recheck();
    assert_eq!((bucket.limiter().held(), bucket.waiters()), (10, 0));
    assert!(bucket.try_acquire(1).is_err());
    pass::<E>(&runtime, relief / 2).await;
    assert!(bucket.try_acquire(1).is_err(), "it may come for it yet");
    pass::<E>(&runtime, relief).await;
    assert!(bucket.try_acquire(1).is_ok(), "it counts as taken, and what has come since is there");
    pass::<E>(&runtime, Duration::from_secs(1)).await;
    assert!(bucket.try_acquire(10).is_ok());
    assert_eq!(bucket.limiter().held(), 0);
    drop(stuck);
}
