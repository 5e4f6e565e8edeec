//! What the metrics show of the flows of a registry, for as long as there are any.
#![allow(clippy::std_instead_of_alloc, reason = "tests run on a host")]

#[path = "support/adapted.rs"]
mod adapted;
#[path = "support/tasks.rs"]
mod tasks;

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use adapted::by_every_rule;
use metrics::with_local_recorder;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use parking_lot::RawMutex;
use sluicegate_runtime::{
    AdaptiveOptions, AlertPolicy, Clock, FlowOptions, FlowPlan, FlowRegistry, Load, LoadRule, OnRestart, Quota,
    RegistryObserver, Signals, quota,
};
use sluicegate_telemetry::{MetricsFlowObserver, MetricsRegistryObserver, Nanos};
use tasks::Tasks;

const LIMIT: Quota = quota!("100/1h");

/// Every sample by its name and labels.
fn samples(recorder: &PrometheusRecorder) -> BTreeMap<String, f64> {
    let text = recorder.handle().render();
    let samples = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.rsplit_once(' '));
    samples.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).collect()
}

/// What is shown of the flow `mail`: the share in force, and what each rule allows.
fn shares(recorder: &PrometheusRecorder) -> [f64; 5] {
    let samples = samples(recorder);
    let rule = |rule| samples[&format!("sluicegate_flow_rule_share{{flow=\"mail\",rule=\"{rule}\"}}")];
    let share = samples["sluicegate_flow_share{flow=\"mail\"}"];
    [share, rule("cpu"), rule("memory"), rule("errors"), rule("pace")]
}

fn low_fill(recorder: &PrometheusRecorder) -> f64 {
    samples(recorder)["sluicegate_alert_active{limiter=\"mail\",alert=\"low_fill\"}"]
}

fn flows(recorder: &PrometheusRecorder) -> f64 {
    samples(recorder)["sluicegate_flows"]
}

fn restarts(recorder: &PrometheusRecorder) -> f64 {
    samples(recorder)["sluicegate_flow_restarts_total{flow=\"mail\"}"]
}

#[test]
fn c16_a_registry_shows_how_its_flows_adapt_and_nothing_of_those_that_are_gone() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let time = Tasks::new();
    let observer = Arc::new(with_local_recorder(&recorder, MetricsRegistryObserver::new));
    let registry: FlowRegistry<Tasks, RawMutex, Arc<MetricsFlowObserver>, _> =
        FlowRegistry::observed_by(time.clone(), observer.clone());
    assert_eq!(flows(&recorder), 0.0);

    // At 101 % measuring panics.
    let load = Arc::new(AtomicU32::new(0));
    let add = || {
        let load = load.clone();
        let measure = move |_now| match load.load(Ordering::Relaxed) {
            101 => panic!("it cannot be measured"),
            cpu => Signals::default().with_cpu(Load::percent(cpu)),
        };
        let adaptive = AdaptiveOptions::new(LIMIT).cpu(LoadRule::new()).build().unwrap();
        let plan = FlowPlan::new(FlowOptions::new(LIMIT)).adaptive(adaptive).alerts(AlertPolicy::default());
        with_local_recorder(&recorder, || {
            registry.add_observed("mail", plan, measure, Arc::new(MetricsFlowObserver::new("mail", LIMIT))).unwrap()
        })
    };
    let evaluate = |cpu| {
        load.store(cpu, Ordering::Relaxed);
        time.pass(Duration::from_secs(5));
    };

    let flow = add();
    assert_eq!((flows(&recorder), shares(&recorder), low_fill(&recorder)), (1.0, [1.0; 5], 0.0));
    evaluate(100);
    assert_eq!(shares(&recorder), [0.5, 0.5, 1.0, 1.0, 1.0]);
    assert_eq!(samples(&recorder)["sluicegate_limit_tokens{limiter=\"mail\"}"], 50.0, "by the flow's own observer");

    let _ = flow.bucket().limiter().try_acquire_at(time.now(), 48).unwrap();
    evaluate(100);
    assert_eq!(low_fill(&recorder), 1.0);
    evaluate(101);
    assert_eq!((restarts(&recorder), shares(&recorder)), (1.0, [1.0; 5]), "as it was configured");
    assert_eq!(low_fill(&recorder), 1.0, "nothing has been evaluated since");
    evaluate(100);
    assert_eq!((low_fill(&recorder), shares(&recorder)[0]), (0.0, 0.5), "a restart fills the bucket");
    let _ = flow.bucket().limiter().try_acquire_at(time.now(), 48).unwrap();
    evaluate(100);
    assert_eq!(low_fill(&recorder), 1.0);

    registry.remove("mail").unwrap();
    assert_eq!((flows(&recorder), low_fill(&recorder), restarts(&recorder)), (0.0, 0.0, 1.0));
    assert!(shares(&recorder).iter().all(|share| share.is_nan()), "{:?}", shares(&recorder));

    let _again = add();
    assert_eq!((flows(&recorder), shares(&recorder)), (1.0, [1.0; 5]));
    drop(registry);
    assert_eq!(flows(&recorder), 0.0);
    assert!(shares(&recorder)[0].is_nan());
}

#[test]
fn c16_what_is_told_late_is_not_shown_of_a_flow_that_is_gone() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let observer = with_local_recorder(&recorder, MetricsRegistryObserver::new);
    let add = || with_local_recorder(&recorder, || observer.added("mail"));
    let is_gone = || shares(&recorder).iter().all(|share| share.is_nan());
    let (adapted, quota) = by_every_rule();
    add();
    observer.adapted("mail", Nanos::ZERO, &adapted, quota);
    assert_eq!(shares(&recorder), [0.9, 0.5, 0.7, 0.8, 0.6]);
    observer.removed("mail");
    observer.adapted("mail", Nanos::ZERO, &adapted, quota);
    observer.restarted("mail", Nanos::ZERO, OnRestart::Full);
    observer.show("mail", &adapted);
    assert!(is_gone());
    assert_eq!(restarts(&recorder), 0.0);

    // Added again by a thread that is faster than the one that tells of the removal.
    add();
    observer.show("mail", &adapted);
    add();
    assert_eq!(shares(&recorder), [1.0; 5], "the other one has not adapted");
    observer.removed("mail");
    assert_eq!((flows(&recorder), shares(&recorder)), (1.0, [1.0; 5]));
    observer.removed("mail");

    // Removed by a thread that is faster than the one that tells of the addition.
    with_local_recorder(&recorder, || observer.removed("mail"));
    observer.show("mail", &adapted);
    assert!(is_gone());
    add();
    assert_eq!(flows(&recorder), 0.0);
    assert!(is_gone());
    add();
    assert_eq!((flows(&recorder), shares(&recorder)), (1.0, [1.0; 5]));
}

#[test]
fn c15_c16_a_restart_that_restores_changes_no_share_and_a_policy_that_has_adapted_begins_with_its_own() {
    for (how, share) in [(OnRestart::Restore, 0.75), (OnRestart::Full, 0.5), (OnRestart::Empty, 0.5)] {
        let recorder = PrometheusBuilder::new().build_recorder();
        let time = Tasks::new();
        let observer = Arc::new(with_local_recorder(&recorder, MetricsRegistryObserver::default));
        let registry: FlowRegistry<Tasks, RawMutex, (), _> = FlowRegistry::observed_by(time.clone(), observer);
        let mut policy = AdaptiveOptions::new(LIMIT).cpu(LoadRule::new()).build().unwrap();
        policy.evaluate(Nanos::ZERO, &Signals::default().with_cpu(Load::percent(100)));
        let load = Arc::new(AtomicU32::new(10));
        let measure = {
            let load = load.clone();
            move |_now| match load.load(Ordering::Relaxed) {
                101 => panic!("it cannot be measured"),
                cpu => Signals::default().with_cpu(Load::percent(cpu)),
            }
        };
        let plan = FlowPlan::new(FlowOptions::new(LIMIT)).adaptive(policy).on_restart(how);
        with_local_recorder(&recorder, || registry.add("mail", plan, measure).unwrap());
        assert_eq!(shares(&recorder)[0], 0.5, "as its policy had got to");
        // It recovers by a twentieth at a time, once it has found that the load is gone.
        while shares(&recorder)[0] < 0.75 {
            time.pass(Duration::from_secs(5));
        }
        load.store(101, Ordering::Relaxed);
        time.pass(Duration::from_secs(5));
        assert_eq!((restarts(&recorder), shares(&recorder)[0]), (1.0, share), "{how:?}");
    }
}
