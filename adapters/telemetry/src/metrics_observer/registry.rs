//! What becomes of the flows of a registry.

extern crate alloc;

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use metrics::{Counter, Gauge, SharedString, counter, gauge};
use sluicegate_core::{Adapted, AlertChange, Nanos, Quota};
use sluicegate_runtime::{OnRestart, RegistryObserver};

use super::alerts::MetricsAlerts;
use super::describe::{FLOW, FLOW_RESTARTS, FLOW_RULE_SHARE, FLOW_SHARE, FLOWS};
use crate::names::part;

/// Shows which flows there are, by how much each has adapted and why, which alerts are raised, and how often a flow's task has begun again:
/// `sluicegate_flows` and the others of the [table](crate). Share it by `Arc`.
///
/// A flow's own events, such as what its bucket decides, are told to another observer: a [`MetricsFlowObserver`](super::MetricsFlowObserver).
///
/// # Guarantees
///
/// - The metrics of a flow are looked up once, when it is added. What is told afterwards writes to those that it concerns, under a lock and after a look-up
///   by name, O(log n); a registry tells so when something changes, at most once in an evaluation of seconds.
/// - *No gauge outlives its flow.* Of a flow that was removed the shares are not a number and no alert is raised, also where the flow's last evaluation tells
///   of itself after the removal. One that is removed and added again at the same time, by two threads, is shown as it was told last.
/// - It keeps nothing of flows that were removed.
///
/// # Trade-offs
///
/// - It writes to the recorder that is installed when it is made (the number of flows) and when a flow is added (all else).
/// - A recorder itself keeps a series for each name that there ever was. So take names from a set that does not grow.
/// - A registry tells of a change of the quota. So the shares that rules allow are those of the last change. [Show](Self::show) what `FlowRegistry::adapted`
///   finds from time to time where that matters.
///
/// ```
/// use sluicegate_runtime::{OnRestart, RegistryObserver};
/// use sluicegate_telemetry::{MetricsRegistryObserver, Nanos};
///
/// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
/// metrics::with_local_recorder(&recorder, || {
///     // As `FlowRegistry::observed_by(runtime, Arc::new(MetricsRegistryObserver::new()))` does.
///     let observer = MetricsRegistryObserver::new();
///     observer.added("search");
///     observer.added("mail");
///     observer.restarted("search", Nanos::ZERO, OnRestart::Full);
///     observer.removed("mail");
/// });
/// let text = recorder.handle().render();
/// assert!(text.contains("sluicegate_flows 1"));
/// assert!(text.contains("sluicegate_flow_restarts_total{flow=\"search\"} 1"));
/// assert!(text.contains("sluicegate_flow_share{flow=\"search\"} 1"));
/// assert!(text.contains("sluicegate_flow_share{flow=\"mail\"} NaN"));
/// ```
pub struct MetricsRegistryObserver {
    flows: Gauge,
    shown: Mutex<BTreeMap<String, Shown>>,
}

/// What is shown of the flows of one name.
struct Shown {
    /// How many there are by what was told: mostly one. A removal and an addition of the same name, by two threads, may be told in either order; until both
    /// were there are two or -1.
    flows: i64,
    share: Gauge,
    rules: [Gauge; RULES.len()],
    alerts: MetricsAlerts,
    restarts: Counter,
}

impl MetricsRegistryObserver {
    /// Of no flows. One can be told by several registries whose flows have different names.
    pub fn new() -> Self {
        Self { flows: gauge!(FLOWS), shown: Mutex::new(BTreeMap::new()) }
    }

    /// Shows what the rules of a flow were found to allow, and which share is in force. Nothing is shown of a flow that there is not.
    ///
    /// ```
    /// use sluicegate_runtime::{AdaptiveOptions, Load, LoadRule, Nanos, RegistryObserver, Signals, quota};
    /// use sluicegate_telemetry::MetricsRegistryObserver;
    ///
    /// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    /// let observer = metrics::with_local_recorder(&recorder, || {
    ///     let observer = MetricsRegistryObserver::new();
    ///     observer.added("search");
    ///     observer
    /// });
    /// // A policy that has adapted before, such as `FlowRegistry::adapted` tells of.
    /// let mut policy = AdaptiveOptions::new(quota!("100/1s")).cpu(LoadRule::new()).build()?;
    /// policy.evaluate(Nanos::ZERO, &Signals::default().with_cpu(Load::percent(100)));
    /// observer.show("search", &policy.allowed());
    /// assert!(recorder.handle().render().contains("sluicegate_flow_share{flow=\"search\"} 0.5"));
    /// # Ok::<(), sluicegate_runtime::AdaptiveOptionsError>(())
    /// ```
    pub fn show(&self, id: &str, adapted: &Adapted) {
        self.of(id, |shown| shown.adapted(adapted));
    }

    /// Does it with the lock taken, so that nothing is shown after a removal.
    fn of(&self, id: &str, show: impl FnOnce(&Shown)) {
        if let Some(shown) = self.shown().get(id).filter(|shown| shown.flows > 0) {
            show(shown);
        }
    }

    fn shown(&self) -> MutexGuard<'_, BTreeMap<String, Shown>> {
        // A recorder that panicked has left at worst a gauge as it was.
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, id: &str, by: i64) {
        self.flows.increment(by as f64);
        let mut all = self.shown();
        let shown = all.entry(id.to_owned()).or_insert_with(|| Shown::look_up(id));
        shown.flows += by;
        if shown.flows == 0 {
            shown.forget();
            all.remove(id);
        } else if by > 0 {
            shown.begin();
        }
    }
}

impl Default for MetricsRegistryObserver {
    fn default() -> Self {
        Self::new()
    }
}

impl RegistryObserver for MetricsRegistryObserver {
    fn added(&self, id: &str) {
        self.count(id, 1);
    }

    fn removed(&self, id: &str) {
        self.count(id, -1);
    }

    fn adapted(&self, id: &str, _now: Nanos, adapted: &Adapted, _quota: Quota) {
        self.show(id, adapted);
    }

    fn alerted(&self, id: &str, _now: Nanos, change: &AlertChange) {
        self.of(id, |shown| shown.alerts.show(change));
    }

    fn restarted(&self, id: &str, _now: Nanos, _how: OnRestart) {
        // Of shares that it has changed it has told by `adapted`.
        self.of(id, |shown| shown.restarts.increment(1));
    }
}

impl Shown {
    fn look_up(id: &str) -> Self {
        let name = SharedString::from(id.to_owned());
        Self {
            flows: 0,
            share: gauge!(FLOW_SHARE, FLOW => name.clone()),
            rules: RULES.map(|rule| gauge!(FLOW_RULE_SHARE, FLOW => name.clone(), "rule" => rule)),
            restarts: counter!(FLOW_RESTARTS, FLOW => name.clone()),
            alerts: MetricsAlerts::new(name),
        }
    }

    /// Nothing has spoken against its base yet.
    fn begin(&self) {
        self.shares(WHOLE, [WHOLE; RULES.len()]);
        self.alerts.clear();
    }

    /// There is no such flow.
    fn forget(&self) {
        self.shares(f64::NAN, [f64::NAN; RULES.len()]);
        self.alerts.clear();
    }

    fn adapted(&self, adapted: &Adapted) {
        let Adapted { cpu, memory, errors, pace, share, .. } = *adapted;
        self.shares(part(share), [cpu, memory, errors, pace].map(part));
    }

    /// Those of the rules in the order of [`RULES`].
    fn shares(&self, share: f64, of_rules: [f64; RULES.len()]) {
        self.share.set(share);
        for (gauge, share) in self.rules.iter().zip(of_rules) {
            gauge.set(share);
        }
    }
}

impl fmt::Debug for MetricsRegistryObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsRegistryObserver").finish_non_exhaustive()
    }
}

/// All of the base.
const WHOLE: f64 = 1.0;

const RULES: [&str; 4] = ["cpu", "memory", "errors", "pace"];
