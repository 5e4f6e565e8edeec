//! What flows do: their limiter, their breaker, and their calls.

use core::fmt;
use core::time::Duration;

use metrics::{Counter, Histogram, SharedString, counter, histogram};
use sluicegate_core::{
    Admitted, BreakerObserver, BreakerPhase, CallOutcome, Debit, Denied, FlowObserver, FlowRefusal, FlowStage,
    Inspection, Limit, Nanos, Observer,
};

use super::breaker::MetricsBreakerObserver;
use super::describe::{CALL_SECONDS, CALLS, CALLS_REFUSED, FLOW, OUTCOME};
use super::limiter::MetricsObserver;
use crate::names::{of_outcome, of_stage};

/// Counts all that a flow does: what its limiter decides and its breaker does, as [`MetricsObserver`] and [`MetricsBreakerObserver`] do, how its
/// calls end and how long they take, and which part refuses those that are not made. One name labels all of it, as `limiter`, `breaker` and `flow`.
///
/// In an `Arc` it is a `FlowEvents` of sluicegate-runtime, so a `QueuedFlow` or a `FlowRegistry` can tell it of all that happens in a flow.
///
/// # Guarantees
///
/// - The metrics are looked up once, when it is made. The end of a call then writes to a counter and a histogram, and a refusal to a counter
///   beside those of the part that refused.
/// - It can be told from any thread.
///
/// # Trade-offs
///
/// - Those of a [`MetricsObserver`]: it writes to the recorder that is installed when it is made, and the fill is as the last admission left it, or as it was
///   [shown](Self::show).
/// - The breaker's metrics are there where the flow has no breaker, too: closed, with no refusals.
/// - A recorder keeps a series for each name that there ever was, and the last value of a gauge also once its flow is gone. So take names from a set that
///   does not grow.
/// - A recorder that was not told which buckets a histogram has may show quantiles, which cannot be added up over processes. That of
///   `metrics-exporter-prometheus` is told by `set_buckets_for_metric`.
///
/// ```
/// use sluicegate_telemetry::{CallOutcome, Flow, ManualClock, MetricsFlowObserver, TokenBucket, quota};
///
/// const LIMIT: sluicegate_telemetry::Quota = quota!("1/1m");
/// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
/// let observer = metrics::with_local_recorder(&recorder, || MetricsFlowObserver::new("mail", LIMIT));
///
/// // Each part has an observer; a reference to one is one, and so is an `Arc` of it.
/// let flow = Flow::new(TokenBucket::with_limit(LIMIT.into(), ()).observed_by(&observer), ManualClock::new());
/// let flow = flow.observed_by(&observer);
/// flow.enter(1)?.finish(CallOutcome::Failure);
/// assert!(flow.enter(1).is_err());
/// let text = recorder.handle().render();
/// assert!(text.contains("sluicegate_calls_total{flow=\"mail\",outcome=\"failure\"} 1"));
/// assert!(text.contains("sluicegate_calls_refused_total{flow=\"mail\",stage=\"limiter\"} 1"));
/// assert!(text.contains("sluicegate_requests_total{limiter=\"mail\",outcome=\"denied\"} 1"));
/// # Ok::<(), sluicegate_telemetry::FlowRefusal>(())
/// ```
pub struct MetricsFlowObserver {
    limiter: MetricsObserver,
    breaker: MetricsBreakerObserver,
    calls: Calls,
}

/// What becomes of calls.
struct Calls {
    succeeded: Counter,
    failed: Counter,
    overloaded: Counter,
    ignored: Counter,
    refused_by_limiter: Counter,
    refused_by_breaker: Counter,
    refused_by_concurrency: Counter,
    seconds: Histogram,
}

impl MetricsFlowObserver {
    /// For the flow of this name, whose limiter begins with `limit` and whose breaker is closed. Adjustments are followed.
    pub fn new(name: impl Into<SharedString>, limit: impl Into<Limit>) -> Self {
        let name = name.into();
        Self {
            limiter: MetricsObserver::new(name.clone(), limit),
            breaker: MetricsBreakerObserver::new(name.clone()),
            calls: Calls::of(name),
        }
    }

    /// Shows how full the flow's limiter was found to be; see [`MetricsObserver::show`].
    pub fn show(&self, holds: &Inspection) {
        self.limiter.show(holds);
    }
}

impl Calls {
    fn of(flow: SharedString) -> Self {
        let ended = |outcome| counter!(CALLS, FLOW => flow.clone(), OUTCOME => of_outcome(outcome));
        let refused = |stage| counter!(CALLS_REFUSED, FLOW => flow.clone(), "stage" => of_stage(stage));
        Self {
            succeeded: ended(CallOutcome::Success),
            failed: ended(CallOutcome::Failure),
            overloaded: ended(CallOutcome::Overloaded),
            ignored: ended(CallOutcome::Ignored),
            refused_by_limiter: refused(FlowStage::Limiter),
            refused_by_breaker: refused(FlowStage::Breaker),
            refused_by_concurrency: refused(FlowStage::Concurrency),
            seconds: histogram!(CALL_SECONDS, FLOW => flow),
        }
    }
}

impl FlowObserver for MetricsFlowObserver {
    #[inline]
    fn call_refused(&self, _now: Nanos, _cost: u64, refusal: &FlowRefusal) {
        let calls = &self.calls;
        let refused = match refusal.stage {
            FlowStage::Limiter => &calls.refused_by_limiter,
            FlowStage::Breaker => &calls.refused_by_breaker,
            FlowStage::Concurrency => &calls.refused_by_concurrency,
        };
        refused.increment(1);
    }

    #[inline]
    fn call_ended(&self, _now: Nanos, took: Duration, outcome: CallOutcome) {
        let calls = &self.calls;
        let ended = match outcome {
            CallOutcome::Success => &calls.succeeded,
            CallOutcome::Failure => &calls.failed,
            CallOutcome::Overloaded => &calls.overloaded,
            CallOutcome::Ignored => &calls.ignored,
        };
        ended.increment(1);
        calls.seconds.record(took.as_secs_f64());
    }
}

impl Observer for MetricsFlowObserver {
    #[inline]
    fn admitted(&self, now: Nanos, cost: u64, admitted: &Admitted) {
        self.limiter.admitted(now, cost, admitted);
    }

    #[inline]
    fn denied(&self, now: Nanos, cost: u64, denied: &Denied) {
        self.limiter.denied(now, cost, denied);
    }

    #[inline]
    fn refunded(&self, cost: u64) {
        self.limiter.refunded(cost);
    }

    #[inline]
    fn debited(&self, now: Nanos, debit: &Debit) {
        self.limiter.debited(now, debit);
    }

    #[inline]
    fn settled(&self, now: Nanos, held: u64, debit: &Debit) {
        self.limiter.settled(now, held, debit);
    }

    fn adjusted(&self, now: Nanos, from: Limit, to: Limit) {
        self.limiter.adjusted(now, from, to);
    }
}

impl BreakerObserver for MetricsFlowObserver {
    fn changed(&self, now: Nanos, from: BreakerPhase, to: BreakerPhase) {
        self.breaker.changed(now, from, to);
    }

    #[inline]
    fn refused(&self, now: Nanos, denied: &Denied) {
        self.breaker.refused(now, denied);
    }
}

impl fmt::Debug for MetricsFlowObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsFlowObserver").field("limiter", &self.limiter).finish_non_exhaustive()
    }
}
