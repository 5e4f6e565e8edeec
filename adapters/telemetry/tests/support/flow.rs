//! One of everything that can happen to a call of a flow.

use core::future::{Future, pending};
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use parking_lot::RawMutex;
use sluicegate_runtime::{
    BreakerOptions, CallOutcome, FlowError, FlowEvents, FlowOptions, FlowStage, ManualRuntime, QueuedFlow,
};
use sluicegate_telemetry::{Quota, quota};

pub(crate) const LIMIT: Quota = quota!("4/1s");

/// A success after 7 ms, an answer that says nothing, a refusal by each part, a timeout after 1 s, and a failure that trips the breaker.
pub(crate) fn use_a_flow(observer: impl FlowEvents) {
    let time = ManualRuntime::<RawMutex>::new();
    let breaker = BreakerOptions::new().any_failure_share().consecutive_failures(2).build().unwrap();
    let options = FlowOptions::new(LIMIT).breaker(breaker).in_flight(1).time_limit(Duration::from_secs(1));
    let flow = QueuedFlow::<_, RawMutex, _>::observed_by(options, time.clone(), observer).unwrap();

    let fetch = || async {
        time.advance(Duration::from_millis(7));
        Ok::<_, ()>(())
    };
    assert!(at_once(flow.call(1, fetch)).is_ok());
    let (held, _) = at_once(flow.enter(1)).unwrap();
    let refused = |cost| at_once(flow.enter(cost)).map(drop).unwrap_err().stage;
    assert_eq!(refused(1), FlowStage::Concurrency);
    held.finish(CallOutcome::Ignored);
    assert_eq!(refused(3), FlowStage::Limiter);

    let mut late = pin!(flow.call(1, pending::<Result<(), ()>>));
    assert!(polled(late.as_mut()).is_pending());
    time.advance(Duration::from_secs(1));
    let too_late = Poll::Ready(Err(FlowError::TimedOut { after: Duration::from_secs(1) }));
    assert_eq!(polled(late.as_mut()), too_late);
    assert_eq!(at_once(flow.call(1, || async { Err::<(), _>("broken") })).unwrap_err(), FlowError::Failed("broken"));
    assert_eq!(refused(1), FlowStage::Breaker);
}

fn polled<F: Future>(future: core::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// What a future answers that does not wait.
fn at_once<F: Future>(future: F) -> F::Output {
    match polled(pin!(future)) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("it waits"),
    }
}
