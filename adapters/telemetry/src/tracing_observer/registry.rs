//! What becomes of the flows of a registry.

use sluicegate_core::{Adapted, AlertChange, Nanos, Quota};
use sluicegate_runtime::{OnRestart, RegistryObserver};
use tracing::{info, warn};

use super::{TARGET, tell_alert};
use crate::names::part;

/// Tells of what becomes of a registry's flows as events of the target `sluicegate`, with the flow's name in the field `flow`.
///
/// | event | level | fields beside the name |
/// |---|---|---|
/// | `flow added`, `flow removed` | info | |
/// | `flow adapted` | info | `now`, `quota`, `share`, `cpu`, `memory`, `errors`, `pace` |
/// | `flow restarted` | warn | `now`, `how` it goes on: `Full`, `Empty` or `Restore` |
/// | `alert raised`, `alert cleared` | warn, info | `now`, `alert`, `value`, `threshold`; the name is in the field `limiter` |
///
/// `now` is the flow's own reading in nanoseconds. The `quota` is in force from now on; it is `share` of the base, 0 to 1, and the four behind it are
/// the shares that each rule allowed.
///
/// A flow's own events, such as what its bucket decides, are told to another observer: a [`TracingObserver`](super::TracingObserver).
///
/// An event of a level that nobody listens to costs a load and a comparison; what the others cost is the subscriber's. It keeps nothing, and can be told
/// from any thread.
///
/// ```
/// use sluicegate_runtime::RegistryObserver;
/// use sluicegate_telemetry::TracingRegistryObserver;
///
/// // As `FlowRegistry::observed_by(runtime, TracingRegistryObserver::new())` does.
/// TracingRegistryObserver::new().added("search");
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TracingRegistryObserver;

impl TracingRegistryObserver {
    /// For any number of registries.
    pub const fn new() -> Self {
        Self
    }
}

impl RegistryObserver for TracingRegistryObserver {
    fn added(&self, flow: &str) {
        info!(target: TARGET, flow, "flow added");
    }

    fn removed(&self, flow: &str) {
        info!(target: TARGET, flow, "flow removed");
    }

    fn adapted(&self, flow: &str, now: Nanos, adapted: &Adapted, quota: Quota) {
        let [share, cpu, memory, errors, pace] =
            [adapted.share, adapted.cpu, adapted.memory, adapted.errors, adapted.pace].map(part);
        info!(
            target: TARGET, flow, now = now.as_u64(), %quota, share, cpu, memory, errors, pace, "flow adapted"
        );
    }

    fn alerted(&self, flow: &str, now: Nanos, change: &AlertChange) {
        tell_alert(flow, Some(now), change);
    }

    fn restarted(&self, flow: &str, now: Nanos, how: OnRestart) {
        warn!(target: TARGET, flow, now = now.as_u64(), ?how, "flow restarted");
    }
}
