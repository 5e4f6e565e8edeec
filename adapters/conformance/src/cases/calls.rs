//! Calls through flows that wait.

use alloc::sync::Arc;
use core::future::pending;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use sluicegate_runtime::{
    AimdOptions, BreakerOptions, BreakerPhase, BreakerPolicy, CallOutcome, Clock, Denied, FlowError, FlowOptions,
    FlowPath, FlowRefusal, FlowStage, Flowed, InFlightLaw, Inheritance, QueuedFlow, Runtime, SampleOptions,
    WaitOptions, WhenEmpty, quota,
};

use crate::executor::Executor;
use crate::tasks::{assert_on_time, at_once, pass, settle, start, unless};

type Flow<E> = Arc<QueuedFlow<<E as Executor>::Runtime, <E as Executor>::Lock>>;

fn flow<E: Executor>(runtime: &E::Runtime, options: FlowOptions) -> Flow<E> {
    Arc::new(QueuedFlow::new(options, runtime.clone()).expect("options"))
}

/// Trips at the second failure in a row for 5 s, and closes at one success.
fn breaker() -> BreakerPolicy {
    BreakerOptions::new().any_failure_share().consecutive_failures(2).probes(1).build().expect("a policy")
}

fn level<E: Executor>(flow: &Flow<E>) -> u64 {
    flow.bucket().limiter().inspect_at(flow.runtime().now()).level
}

async fn answer(number: u32) -> Result<u32, &'static str> {
    Ok(number)
}

async fn failure() -> Result<u32, &'static str> {
    Err("broken")
}

/// What the configuration says is done when the bucket is empty, and the outcome says which it was.
pub async fn c05_a_flow_rejects_queues_or_degrades_as_configured<E: Executor>(runtime: E::Runtime) {
    let judge = |_: &Result<u32, &str>| CallOutcome::Success;
    let of = |when_empty| flow::<E>(&runtime, FlowOptions::new(quota!("1/1s")).when_empty(when_empty));
    let ways = [
        WhenEmpty::Reject,
        WhenEmpty::Degrade,
        WhenEmpty::Queue,
        WhenEmpty::QueueFor(Duration::from_secs(2)),
        WhenEmpty::QueueFor(Duration::from_millis(500)),
    ];
    for when_empty in ways {
        let flow = of(when_empty);
        let first = flow.call(1, || answer(1)).await;
        assert_eq!(first, Ok(Flowed { value: 1, path: FlowPath::Direct }));
        let begin = runtime.now();
        let second = flow.call_or(1, judge, || answer(2), |_refusal| answer(3)).await;
        let refusal = |retry_after| {
            let denied = Denied::RateLimited { retry_after };
            FlowRefusal { stage: FlowStage::Limiter, denied }
        };
        let second_away = Duration::from_secs(1);
        match when_empty {
            WhenEmpty::Reject => assert_eq!(second, Err(FlowError::Refused(refusal(second_away)))),
            WhenEmpty::Degrade => {
                let path = FlowPath::Degraded(refusal(second_away));
                assert_eq!(second, Ok(Flowed { value: 3, path }));
                assert_eq!(flow.call(1, || answer(4)).await, Err(FlowError::Refused(refusal(second_away))));
            }
            WhenEmpty::QueueFor(longest) if longest < second_away => {
                let Err(FlowError::Refused(refusal)) = second else { panic!("{second:?}") };
                assert_eq!(refusal.stage, FlowStage::Limiter);
                assert!(runtime.now() <= begin + (longest + E::GRAIN), "it gave up in time");
            }
            WhenEmpty::Queue | WhenEmpty::QueueFor(_) => {
                let Ok(Flowed { value: 2, path: FlowPath::Queued { waited } }) = second else { panic!("{second:?}") };
                assert_on_time::<E>(begin + waited, begin + second_away);
                assert_on_time::<E>(runtime.now(), begin + second_away);
            }
        }
        assert_eq!(level::<E>(&flow), 0);
    }
}

/// Who has waited for a token while the breaker opened is refused, and the token is the next one's.
pub async fn c14_a_breaker_that_opens_meanwhile_burns_no_token<E: Executor>(runtime: E::Runtime) {
    let options = FlowOptions::new(quota!("1/2s burst 2")).when_empty(WhenEmpty::Queue).breaker(breaker()).in_flight(2);
    let flow = flow::<E>(&runtime, options);
    let begin = runtime.now();
    assert_eq!(flow.call(1, failure).await, Err(FlowError::Failed("broken")));
    assert!(flow.call(1, || answer(1)).await.is_ok());
    assert_eq!(level::<E>(&flow), 0);
    let waits = {
        let flow = Arc::clone(&flow);
        start::<E, _>(&runtime, async move { flow.call(1, || answer(2)).await }).await
    };
    settle::<E>(&runtime).await;
    assert_eq!((flow.bucket().waiters(), flow.in_flight().expect("a limit").usage().in_use), (1, 1));
    flow.breaker().expect("one").trip_at(runtime.now());
    let refused = at_once(flow.call(1, || answer(3))).await.expect("nobody waits for an open breaker");
    assert!(matches!(refused, Err(FlowError::Refused(FlowRefusal { stage: FlowStage::Breaker, .. }))));

    let waited = waits.await;
    assert_on_time::<E>(waited.at, begin + Duration::from_secs(2));
    let Err(FlowError::Refused(refusal)) = waited.with else { panic!("{:?}", waited.with) };
    assert_eq!(refusal.stage, FlowStage::Breaker);
    assert_eq!((level::<E>(&flow), flow.bucket().limiter().held()), (1, 0));
    assert_eq!(flow.in_flight().expect("a limit").usage().in_use, 0);
    assert_eq!(flow.breaker().expect("one").phase(), BreakerPhase::Open);
}

/// It is dropped at its time, the place is free, and it counts as overload: in the breaker, and for what adapts.
pub async fn c14_a_call_that_takes_too_long_is_given_up<E: Executor>(runtime: E::Runtime) {
    let limit = Duration::from_secs(3);
    let options = FlowOptions::new(quota!("100/1s")).breaker(breaker()).in_flight(1).time_limit(limit);
    let flow = flow::<E>(&runtime, options);
    for turn in 1..=2 {
        let begin = runtime.now();
        let dropped = Arc::new(AtomicU64::new(0));
        let hangs = || {
            let alive = Count(Arc::clone(&dropped));
            async move {
                let _alive = alive;
                pending::<Result<u32, &str>>().await
            }
        };
        assert_eq!(flow.call(1, hangs).await, Err(FlowError::TimedOut { after: limit }));
        assert_on_time::<E>(runtime.now(), begin + limit);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        assert_eq!(flow.in_flight().expect("a limit").usage().in_use, 0);
        assert_eq!(flow.breaker().expect("one").phase() == BreakerPhase::Open, turn == 2);
    }
    assert_eq!(flow.take_overloaded(), 2);
    // One that is just in time is.
    pass::<E>(&runtime, Duration::from_secs(6)).await;
    let clock = runtime.clone();
    let in_time = flow.call(1, || async move {
        let at = clock.now() + Duration::from_secs(2);
        clock.sleep_until(at).await;
        answer(7).await
    });
    assert_eq!(in_time.await.map(|answer| answer.value), Ok(7));
    assert_eq!(flow.breaker().expect("one").phase(), BreakerPhase::Closed);
}

struct Count(Arc<AtomicU64>);

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Places go in order, and so do tokens; whoever waits for tokens keeps its place.
pub async fn c17_a_flow_has_so_many_in_flight_and_goes_in_order<E: Executor>(runtime: E::Runtime) {
    let options = FlowOptions::new(quota!("10/1s burst 1")).when_empty(WhenEmpty::Queue).in_flight(3);
    let flow = flow::<E>(&runtime, options);
    let begin = runtime.now();
    let mut calls = Vec::new();
    for number in 0..12 {
        let (flow, clock) = (Arc::clone(&flow), runtime.clone());
        let call = async move {
            let call = || async {
                let at = clock.now();
                clock.sleep_until(at + Duration::from_secs(1)).await;
                Ok::<_, &str>((number, at))
            };
            flow.call(1, call).await.map(|answer| answer.value)
        };
        calls.push(start::<E, _>(&runtime, call).await);
    }
    for (call, number) in calls.into_iter().zip(0_u32..) {
        let (found, at) = call.await.with.expect("there is time enough");
        // Three of them begin a tenth of a second apart; the others each a second after one that ended.
        let due = begin + Duration::from_millis(u64::from(1_000 * (number / 3) + 100 * (number % 3)));
        assert_eq!(found, number);
        assert!(due <= at && at <= due + E::GRAIN * (2 + 2 * number), "{number} at {at:?}, due at {due:?}");
    }
    assert_eq!((flow.in_flight().expect("a limit").usage().in_use, flow.bucket().waiters()), (0, 0));
}

/// The law goes by how calls end: where every one times out, fewer are let in, and those who wait go when it lets more in again.
pub async fn c17_the_places_of_a_flow_adapt_to_how_calls_end<E: Executor>(runtime: E::Runtime) {
    let samples = SampleOptions::new().lasting(Duration::from_millis(500), Duration::from_secs(60)).samples(2);
    let law = AimdOptions::new().limits(1, 8, 16).build().expect("a law");
    let options = FlowOptions::new(quota!("1000/1s")).when_empty(WhenEmpty::Queue);
    let options = options.adaptive_in_flight(samples, InFlightLaw::Aimd(law)).time_limit(Duration::from_secs(1));
    let flow = flow::<E>(&runtime, options);
    let limit = |flow: &Flow<E>| flow.in_flight().expect("a limit").usage().limit;
    assert_eq!(limit(&flow), 8);
    let mut hanging = Vec::new();
    for _ in 0..24 {
        let flow = Arc::clone(&flow);
        let call = async move { flow.call(1, pending::<Result<(), &str>>).await.map(drop) };
        hanging.push(start::<E, _>(&runtime, call).await);
    }
    for call in hanging {
        assert_eq!(call.await.with, Err(FlowError::TimedOut { after: Duration::from_secs(1) }));
    }
    let lowered = limit(&flow);
    assert!(lowered < 8, "all have timed out");
    for _ in 0..40 {
        let mut calls = Vec::new();
        for _ in 0..16 {
            let (flow, clock) = (Arc::clone(&flow), runtime.clone());
            let call = || async move {
                let at = clock.now();
                clock.sleep_until(at + Duration::from_millis(100)).await;
                Ok::<_, &str>(())
            };
            calls.push(start::<E, _>(&runtime, async move { flow.call(1, call).await.map(drop) }).await);
        }
        for call in calls {
            assert_eq!(call.await.with, Ok(()));
        }
    }
    assert_eq!(limit(&flow), 16, "nobody objects");
    assert_eq!(
        (flow.in_flight().expect("a limit").usage().in_use, flow.in_flight().expect("a limit").waiters()),
        (0, 0)
    );
}

/// While it waits for a place, for a token, and while it calls: dropped at any time, it leaves nothing but what it has paid.
pub async fn b06_who_is_cancelled_in_a_flow_leaves_nothing<E: Executor>(runtime: E::Runtime) {
    let options = FlowOptions::new(quota!("20/1s")).when_empty(WhenEmpty::Queue).breaker(breaker()).in_flight(2);
    let flow = flow::<E>(&runtime, options.waiting(WaitOptions::new().bound(100)));
    let begin = runtime.now();
    let called = Arc::new(AtomicU64::new(0));
    let mut calls = Vec::new();
    for number in 0..60_u64 {
        let (flow, clock, called) = (Arc::clone(&flow), runtime.clone(), Arc::clone(&called));
        let call = async move {
            let call = || async {
                called.fetch_add(1, Ordering::SeqCst);
                let at = clock.now();
                clock.sleep_until(at + Duration::from_millis(37 * (number % 5))).await;
                Ok::<_, &str>(number)
            };
            flow.call(1 + number % 3, call).await.map(|answer| answer.value)
        };
        let leaves = begin + Duration::from_millis(number * 29 % 700);
        calls.push(start::<E, _>(&runtime, unless(runtime.clone(), leaves, call)).await);
    }
    let mut ended = 0;
    for call in calls {
        ended += u64::from(call.await.with.is_some());
    }
    settle::<E>(&runtime).await;
    let called = called.load(Ordering::SeqCst);
    assert!(ended > 0 && ended <= called && called < 60, "{ended} of {called}");
    assert_eq!(flow.in_flight().expect("a limit").usage().in_use, 0);
    assert_eq!((flow.bucket().waiters(), flow.in_flight().expect("a limit").waiters()), (0, 0));
    assert_eq!(flow.bucket().limiter().held(), 0);
    assert_eq!(flow.breaker().expect("one").phase(), BreakerPhase::Closed, "a cancelled call is no failure");
    // Closing ends the rest, and what is to come.
    flow.adjust(quota!("1/1h"), Inheritance::Empty);
    let waits = {
        let flow = Arc::clone(&flow);
        start::<E, _>(&runtime, async move { flow.call(1, || answer(2)).await }).await
    };
    flow.close();
    let closed = Err(FlowError::Refused(FlowRefusal { stage: FlowStage::Limiter, denied: Denied::Closed }));
    assert_eq!(waits.await.with, closed);
    assert!(at_once(flow.call(1, || answer(2))).await.is_some_and(|answer| answer.is_err()));
}
