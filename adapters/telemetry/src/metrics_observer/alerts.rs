//! Which alerts are raised.

use core::fmt;

use metrics::{Gauge, SharedString, gauge};
use sluicegate_core::{Alert, AlertChange};

use super::describe::{ALERT_ACTIVE, LIMITER};

/// Shows which alerts of a limiter are raised: 1 for those that are, and 0 for the others. The metrics are looked up once, when it is made.
///
/// ```
/// use sluicegate_telemetry::{AlertPolicy, Alerts, Counters, Inspection, MetricsAlerts, Nanos};
///
/// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
/// let shown = metrics::with_local_recorder(&recorder, || MetricsAlerts::new("api"));
/// let mut alerts = Alerts::new(AlertPolicy::default());
/// let changes = alerts.evaluate(Nanos::ZERO, &Counters::default().snapshot(), Inspection::new(9, 100));
/// changes.for_each(|change| shown.show(&change));
/// let text = recorder.handle().render();
/// assert!(text.contains("sluicegate_alert_active{limiter=\"api\",alert=\"low_fill\"} 1"));
/// assert!(text.contains("sluicegate_alert_active{limiter=\"api\",alert=\"bursts\"} 0"));
/// ```
pub struct MetricsAlerts([Gauge; Alert::ALL.len()]);

impl MetricsAlerts {
    /// For the limiter of this name; none is raised.
    pub fn new(name: impl Into<SharedString>) -> Self {
        let name = name.into();
        Self(Alert::ALL.map(|alert| {
            let gauge = gauge!(ALERT_ACTIVE, LIMITER => name.clone(), "alert" => alert.name());
            gauge.set(0.0);
            gauge
        }))
    }

    /// Shows that none is raised.
    #[cfg(feature = "runtime")]
    pub(super) fn clear(&self) {
        self.0.iter().for_each(|gauge| gauge.set(0.0));
    }

    /// Shows a change.
    pub fn show(&self, change: &AlertChange) {
        for (alert, gauge) in Alert::ALL.iter().zip(&self.0) {
            if *alert == change.alert {
                gauge.set(if change.is_raised { 1.0 } else { 0.0 });
            }
        }
    }
}

impl fmt::Debug for MetricsAlerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsAlerts").finish_non_exhaustive()
    }
}
