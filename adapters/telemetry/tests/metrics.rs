//! What ends up in metrics, that they are looked up once, and that any thread may tell them.
#![allow(clippy::std_instead_of_alloc, reason = "tests run on a host")]

#[path = "support/flow.rs"]
mod flow;

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use flow::use_a_flow;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use sluicegate_telemetry::{
    AdjustableBucket, AlertOptions, Alerts, BreakerPolicy, CallOutcome, CircuitBreaker, CounterSnapshot, Counters,
    Denied, FlowObserver, FlowRefusal, FlowStage, Inheritance, Inspection, Limit, ManualClock, MetricsAlerts,
    MetricsBreakerObserver, MetricsFlowObserver, MetricsObserver, Nanos, Quota, TokenBucket, describe, quota,
};

const LIMIT: Quota = quota!("10/2s burst 20");

fn recorder() -> PrometheusRecorder {
    PrometheusBuilder::new().build_recorder()
}

/// Every sample by its name and labels.
fn samples(recorder: &PrometheusRecorder) -> BTreeMap<String, f64> {
    let text = recorder.handle().render();
    let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    samples.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

#[test]
fn c16_events_are_counted_under_the_name_of_their_limiter() {
    let recorder = recorder();
    let observer = with_local_recorder(&recorder, || MetricsObserver::new("api", LIMIT));
    let of = |metric: &str, outcome: &str| {
        samples(&recorder)[&format!("sluicegate_{metric}_total{{limiter=\"api\",outcome=\"{outcome}\"}}")]
    };
    let gauge = |metric: &str| samples(&recorder)[&format!("sluicegate_{metric}{{limiter=\"api\"}}")];
    assert!(gauge("fill_ratio").is_nan(), "nothing was seen yet");
    assert_eq!((gauge("limit_tokens"), gauge("limit_tokens_per_second")), (20.0, 5.0));

    let bucket = AdjustableBucket::with_clock(LIMIT, ManualClock::new()).observed_by((Counters::new(LIMIT), observer));
    bucket.try_acquire(5).unwrap();
    assert_eq!(gauge("fill_ratio"), 0.75);
    bucket.try_acquire(16).unwrap_err();
    bucket.try_acquire(u64::MAX).unwrap_err();
    bucket.refund(2);
    let _ = bucket.debit_at(Nanos::ZERO, 3);
    let _ = bucket.reserve(4).unwrap().settle(1);
    let _ = bucket.reserve(1).unwrap().settle(6);
    drop(bucket.reserve(1).unwrap());

    let counted = bucket.observer().0.snapshot();
    assert_eq!((of("requests", "admitted"), of("requests", "denied")), (4.0, 2.0));
    let costs = ["admitted", "denied", "refunded", "debited"].map(|outcome| of("cost", outcome) as u64);
    assert_eq!(costs, [11, 16, 6, 8]);
    let by_counters = [counted.admitted_cost, counted.denied_cost, counted.refunded_cost, counted.debited_cost];
    assert_eq!(by_counters, costs, "as `Counters` count");

    bucket.adjust(quota!("3/1s burst 40"), Inheritance::Full);
    assert_eq!((gauge("limit_tokens"), gauge("limit_tokens_per_second"), gauge("adjustments_total")), (40.0, 3.0, 1.0));
    assert!(gauge("fill_ratio").is_nan(), "nothing was seen under the new limit");
    bucket.try_acquire(10).unwrap();
    assert_eq!(gauge("fill_ratio"), 0.75);
    bucket.observer().1.show(&Inspection::new(40, 40));
    assert_eq!(gauge("fill_ratio"), 1.0);
    bucket.adjust(Limit::Unlimited, Inheritance::Level);
    assert_eq!((gauge("limit_tokens"), gauge("limit_tokens_per_second")), (f64::INFINITY, f64::INFINITY));
    bucket.adjust(Limit::DenyAll, Inheritance::Level);
    assert_eq!((gauge("limit_tokens"), gauge("adjustments_total")), (0.0, 3.0));
    bucket.observer().1.show(&bucket.inspect());
    assert!(gauge("fill_ratio").is_nan());
}

#[test]
fn c16_of_many_keys_no_fill_is_shown() {
    let recorder = recorder();
    let observer = with_local_recorder(&recorder, || MetricsObserver::without_fill("logins"));
    let bucket = AdjustableBucket::with_clock(LIMIT, ManualClock::new()).observed_by(observer);
    bucket.try_acquire(1).unwrap();
    bucket.adjust(quota!("5/1s"), Inheritance::Level);
    bucket.observer().show(&bucket.inspect());
    let samples = samples(&recorder);
    assert!(samples.keys().all(|name| !name.contains("fill") && !name.contains("limit_")), "{samples:?}");
    assert_eq!(samples["sluicegate_adjustments_total{limiter=\"logins\"}"], 1.0);
}

#[test]
fn c16_breakers_show_their_phase_and_alerts_whether_they_are_raised() {
    let recorder = recorder();
    let (observer, alerts_shown) =
        with_local_recorder(&recorder, || (MetricsBreakerObserver::new("db"), MetricsAlerts::new("api")));
    let of = |name: &str| samples(&recorder)[&format!("sluicegate_{name}}}")];
    let breaker: CircuitBreaker<parking_lot::RawMutex, _> =
        CircuitBreaker::with_clock(BreakerPolicy::default(), ManualClock::new());
    let breaker = breaker.observed_by(((), observer));
    assert_eq!(of("breaker_state{breaker=\"db\""), 0.0);
    breaker.trip_at(Nanos::ZERO);
    assert!(breaker.try_call().is_err());
    assert_eq!(of("breaker_state{breaker=\"db\""), 2.0);
    let probe = breaker.try_call_at(Nanos::from_secs(5)).unwrap();
    assert_eq!(of("breaker_state{breaker=\"db\""), 1.0);
    drop(probe);
    breaker.close_at(Nanos::from_secs(6));
    assert_eq!(of("breaker_state{breaker=\"db\""), 0.0);
    for to in ["open", "half_open", "closed"] {
        assert_eq!(of(&format!("breaker_transitions_total{{breaker=\"db\",to=\"{to}\"")), 1.0);
    }
    assert_eq!(of("breaker_refusals_total{breaker=\"db\""), 1.0);

    let mut alerts = Alerts::new(AlertOptions::new().build().unwrap());
    let low_fill = "alert_active{limiter=\"api\",alert=\"low_fill\"";
    for (level, active) in [(10, 0.0), (9, 1.0), (19, 1.0), (20, 0.0)] {
        let changes = alerts.evaluate(Nanos::ZERO, &CounterSnapshot::default(), Inspection::new(level, 100));
        changes.for_each(|change| alerts_shown.show(&change));
        assert_eq!(of(low_fill), active);
    }
    for other in ["rejections", "bursts", "adjustments", "slow_recovery"] {
        assert_eq!(of(&format!("alert_active{{limiter=\"api\",alert=\"{other}\"")), 0.0);
    }
}

#[test]
fn c16_of_a_flow_its_limiter_its_breaker_and_its_calls_are_counted_under_one_name() {
    let recorder = PrometheusBuilder::new().set_buckets(&[0.005, 0.5, 2.0]).unwrap().build_recorder();
    let observer = Arc::new(with_local_recorder(&recorder, || MetricsFlowObserver::new("mail", flow::LIMIT)));
    let before = samples(&recorder);
    for name in
        ["calls_total{flow=\"mail\",outcome=\"failure\"}", "calls_refused_total{flow=\"mail\",stage=\"breaker\"}"]
    {
        assert_eq!(before[&format!("sluicegate_{name}")], 0.0, "it is there from the beginning");
    }
    use_a_flow(observer.clone());
    let samples_of_flow = samples(&recorder);
    let expected = [
        ("calls_total{flow=\"mail\",outcome=\"success\"}", 1.0),
        ("calls_total{flow=\"mail\",outcome=\"failure\"}", 1.0),
        ("calls_total{flow=\"mail\",outcome=\"overloaded\"}", 1.0),
        ("calls_total{flow=\"mail\",outcome=\"ignored\"}", 1.0),
        ("calls_refused_total{flow=\"mail\",stage=\"limiter\"}", 1.0),
        ("calls_refused_total{flow=\"mail\",stage=\"breaker\"}", 1.0),
        ("calls_refused_total{flow=\"mail\",stage=\"concurrency\"}", 1.0),
        // 0 s, 0 s, 7 ms and 1 s.
        ("call_seconds_bucket{flow=\"mail\",le=\"0.005\"}", 2.0),
        ("call_seconds_bucket{flow=\"mail\",le=\"0.5\"}", 3.0),
        ("call_seconds_bucket{flow=\"mail\",le=\"2\"}", 4.0),
        ("call_seconds_sum{flow=\"mail\"}", 1.007),
        ("call_seconds_count{flow=\"mail\"}", 4.0),
        ("requests_total{limiter=\"mail\",outcome=\"admitted\"}", 4.0),
        ("requests_total{limiter=\"mail\",outcome=\"denied\"}", 1.0),
        ("cost_total{limiter=\"mail\",outcome=\"denied\"}", 3.0),
        ("fill_ratio{limiter=\"mail\"}", 0.75),
        ("breaker_state{breaker=\"mail\"}", 2.0),
        ("breaker_transitions_total{breaker=\"mail\",to=\"open\"}", 1.0),
        ("breaker_refusals_total{breaker=\"mail\"}", 1.0),
    ];
    for (name, value) in expected {
        assert_eq!(samples_of_flow.get(&format!("sluicegate_{name}")), Some(&value), "{name}: {samples_of_flow:#?}");
    }

    // Each has a counter of its own.
    let outcomes = [CallOutcome::Success, CallOutcome::Failure, CallOutcome::Overloaded, CallOutcome::Ignored];
    for (times, outcome) in outcomes.into_iter().enumerate() {
        (0..times).for_each(|_| observer.call_ended(Nanos::ZERO, Duration::ZERO, outcome));
    }
    for (times, stage) in [FlowStage::Limiter, FlowStage::Breaker, FlowStage::Concurrency].into_iter().enumerate() {
        let refusal = FlowRefusal { stage, denied: Denied::Closed };
        (0..times).for_each(|_| observer.call_refused(Nanos::ZERO, 1, &refusal));
    }
    let of = |name: &str| samples(&recorder)[&format!("sluicegate_{name}}}")];
    let ended = ["success", "failure", "overloaded", "ignored"];
    let ended = ended.map(|outcome| of(&format!("calls_total{{flow=\"mail\",outcome=\"{outcome}\"")));
    assert_eq!(ended, [1.0, 2.0, 3.0, 4.0]);
    let refused = ["limiter", "breaker", "concurrency"];
    let refused = refused.map(|stage| of(&format!("calls_refused_total{{flow=\"mail\",stage=\"{stage}\"")));
    assert_eq!(refused, [1.0, 2.0, 3.0]);

    // What is told of reservations, charges and changes goes to the limiter's metrics, too.
    let bucket = AdjustableBucket::with_clock(flow::LIMIT, ManualClock::new()).observed_by(observer.clone());
    bucket.try_acquire(1).unwrap();
    bucket.refund(1);
    assert_eq!(of("cost_total{limiter=\"mail\",outcome=\"refunded\""), 1.0);
    let _ = bucket.debit_at(Nanos::ZERO, 2);
    assert_eq!(of("cost_total{limiter=\"mail\",outcome=\"debited\""), 2.0);
    let _ = bucket.reserve(1).unwrap().settle(2);
    assert_eq!(of("cost_total{limiter=\"mail\",outcome=\"debited\""), 3.0);
    bucket.adjust(quota!("8/1s"), Inheritance::Level);
    assert_eq!((of("adjustments_total{limiter=\"mail\""), of("limit_tokens{limiter=\"mail\"")), (1.0, 8.0));
    observer.show(&Inspection::new(2, 8));
    assert_eq!(of("fill_ratio{limiter=\"mail\""), 0.25);
}

/// Counts look-ups and descriptions, and hands everything on.
struct Counting {
    recorder: PrometheusRecorder,
    looked_up: Arc<AtomicUsize>,
    described: Arc<AtomicUsize>,
}

impl Recorder for Counting {
    fn describe_counter(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.described.fetch_add(1, Ordering::Relaxed);
        self.recorder.describe_counter(key, unit, description);
    }
    fn describe_gauge(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.described.fetch_add(1, Ordering::Relaxed);
        self.recorder.describe_gauge(key, unit, description);
    }
    fn describe_histogram(&self, key: KeyName, unit: Option<Unit>, description: SharedString) {
        self.described.fetch_add(1, Ordering::Relaxed);
        self.recorder.describe_histogram(key, unit, description);
    }
    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        self.looked_up.fetch_add(1, Ordering::Relaxed);
        self.recorder.register_counter(key, metadata)
    }
    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.looked_up.fetch_add(1, Ordering::Relaxed);
        self.recorder.register_gauge(key, metadata)
    }
    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        self.looked_up.fetch_add(1, Ordering::Relaxed);
        self.recorder.register_histogram(key, metadata)
    }
}

#[test]
fn c16_metrics_are_looked_up_once_and_told_by_any_thread() {
    let counting = Counting { recorder: recorder(), looked_up: Arc::default(), described: Arc::default() };
    let bucket = with_local_recorder(&counting, || {
        describe();
        let limit = quota!("1000/1h");
        TokenBucket::with_clock(limit, ManualClock::new()).observed_by(MetricsObserver::new("api", limit))
    });
    let before = counting.looked_up.load(Ordering::Relaxed);
    with_local_recorder(&counting, || (0..100).for_each(|_| _ = bucket.try_acquire(1)));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..500).for_each(|_| _ = bucket.try_acquire(1)));
        }
    });
    assert_eq!(counting.looked_up.load(Ordering::Relaxed), before);
    let samples = samples(&counting.recorder);
    assert_eq!(samples["sluicegate_requests_total{limiter=\"api\",outcome=\"admitted\"}"], 1_000.0);
    assert_eq!(samples["sluicegate_requests_total{limiter=\"api\",outcome=\"denied\"}"], 1_100.0);
}

#[test]
fn c16_calls_look_nothing_up() {
    let counting = Counting { recorder: recorder(), looked_up: Arc::default(), described: Arc::default() };
    with_local_recorder(&counting, || {
        let observer = Arc::new(MetricsFlowObserver::new("mail", flow::LIMIT));
        let before = counting.looked_up.load(Ordering::Relaxed);
        use_a_flow(observer);
        assert_eq!(counting.looked_up.load(Ordering::Relaxed), before);
    });
}

#[test]
fn c16_each_metric_has_a_description_and_a_row_in_the_readme() {
    let recorder = PrometheusBuilder::new().set_buckets(&[1.0]).unwrap().build_recorder();
    let counting = Counting { recorder, looked_up: Arc::default(), described: Arc::default() };
    with_local_recorder(&counting, || {
        describe();
        use_a_flow(Arc::new(MetricsFlowObserver::new("mail", flow::LIMIT)));
        let _ = MetricsAlerts::new("mail");
        #[cfg(feature = "runtime")]
        sluicegate_runtime::RegistryObserver::added(&sluicegate_telemetry::MetricsRegistryObserver::new(), "mail");
    });
    let text = counting.recorder.handle().render();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    for (name, kind) in types.clone() {
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
        let row = format!("| `{name}` | {kind} |");
        assert!(include_str!("../README.md").contains(&row), "{row}");
    }
    let all = if cfg!(feature = "runtime") { 17 } else { 13 };
    assert_eq!((types.count(), counting.described.load(Ordering::Relaxed)), (all, all));
}
