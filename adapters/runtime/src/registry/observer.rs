//! Being told what becomes of flows.

use sluicegate_core::{Adapted, AlertChange, Nanos, Quota};

use super::plan::OnRestart;

/// Is told what a registry does with its flows, with no lock held. `()` is the observer that does nothing.
///
/// `adapted`, `alerted` and `restarted` are called in the flow's own task. A panic there restarts that task.
pub trait RegistryObserver {
    /// `id` is there from now on.
    fn added(&self, id: &str) {
        let _ = id;
    }

    /// `id` is there no more.
    fn removed(&self, id: &str) {
        let _ = id;
    }

    /// The quota of `id` was changed to `quota` at `now`; `adapted` says what each rule allowed.
    fn adapted(&self, id: &str, now: Nanos, adapted: &Adapted, quota: Quota) {
        let _ = (id, now, adapted, quota);
    }

    /// An alert of `id` was raised or cleared at `now`.
    fn alerted(&self, id: &str, now: Nanos, change: &AlertChange) {
        let _ = (id, now, change);
    }

    /// The task of `id` had panicked, and has begun again at `now`.
    fn restarted(&self, id: &str, now: Nanos, how: OnRestart) {
        let _ = (id, now, how);
    }
}

impl RegistryObserver for () {}

impl<O: RegistryObserver + ?Sized> RegistryObserver for alloc::sync::Arc<O> {
    fn added(&self, id: &str) {
        (**self).added(id);
    }

    fn removed(&self, id: &str) {
        (**self).removed(id);
    }

    fn adapted(&self, id: &str, now: Nanos, adapted: &Adapted, quota: Quota) {
        (**self).adapted(id, now, adapted, quota);
    }

    fn alerted(&self, id: &str, now: Nanos, change: &AlertChange) {
        (**self).alerted(id, now, change);
    }

    fn restarted(&self, id: &str, now: Nanos, how: OnRestart) {
        (**self).restarted(id, now, how);
    }
}
