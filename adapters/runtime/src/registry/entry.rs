//! A flow of a registry, as the registry and the flow's task share it.

use alloc::sync::Arc;

use lock_api::{Mutex, RawMutex};
use sluicegate_core::{Adapted, AdaptivePolicy, Inheritance, Limit, Quota};

use super::flows::RegisteredFlow;
use super::plan::FlowPlan;
use super::stop::Stop;
use crate::flow::FlowEvents;
use crate::runtime::Runtime;

pub(super) struct Entry<R: Runtime, M: RawMutex, O: FlowEvents> {
    pub(super) id: Arc<str>,
    pub(super) flow: Arc<RegisteredFlow<R, M, O>>,
    pub(super) stop: Stop<M>,
    settings: Mutex<M, Settings>,
}

struct Settings {
    /// As it was configured last, which is how it begins again.
    plan: FlowPlan,
    /// As it has adapted.
    policy: Option<AdaptivePolicy>,
    /// How often any of this was changed.
    version: u64,
}

impl Settings {
    /// What is to be in force.
    fn limit(&self) -> Limit {
        match (self.plan.flow.limit, &self.policy) {
            (Limit::Quota(_), Some(policy)) => Limit::Quota(policy.quota()),
            // Off and deny have no shares: nothing adapts until there is a quota again.
            (limit, _) => limit,
        }
    }
}

impl<R: Runtime, M: RawMutex, O: FlowEvents> Entry<R, M, O> {
    pub(super) fn new(id: Arc<str>, flow: Arc<RegisteredFlow<R, M, O>>, plan: FlowPlan) -> Self {
        let policy = plan.adaptive.clone();
        Self { id, flow, stop: Stop::new(), settings: Mutex::new(Settings { plan, policy, version: 0 }) }
    }

    /// Has the policy evaluated, and puts in force what comes of it.
    pub(super) fn adapt(
        &self,
        evaluate: impl FnOnce(&mut AdaptivePolicy) -> Option<Quota>,
    ) -> Option<(Adapted, Quota)> {
        let adapted = self.change(|settings| {
            let policy = settings.policy.as_mut()?;
            let quota = evaluate(policy)?;
            Some((policy.allowed(), quota))
        })?;
        self.put_in_force(Inheritance::Level);
        Some(adapted)
    }

    /// Gives it another limit, from which it adapts by as much as it did before.
    pub(super) fn configure(&self, limit: Limit, inheritance: Inheritance) {
        self.change(|Settings { plan, policy, .. }| {
            plan.flow.limit = limit;
            if let Limit::Quota(base) = limit {
                [policy, &mut plan.adaptive].into_iter().flatten().for_each(|policy| policy.rebase(base));
            }
        });
        self.put_in_force(inheritance);
    }

    /// Begins again as it was configured last.
    pub(super) fn restart(&self) {
        let inheritance = self.change(|settings| {
            let inheritance = settings.plan.on_restart.inheritance()?;
            settings.policy = settings.plan.adaptive.clone();
            Some(inheritance)
        });
        let Some(inheritance) = inheritance else { return };
        if let Some(breaker) = self.flow.breaker() {
            breaker.close_at(self.flow.runtime().now());
        }
        self.put_in_force(inheritance);
    }

    fn change<T>(&self, change: impl FnOnce(&mut Settings) -> T) -> T {
        let mut settings = self.settings.lock();
        // 2^64 changes do not happen.
        settings.version = settings.version.wrapping_add(1);
        change(&mut settings)
    }

    /// With no lock held, because the bucket tells its observer. So another change may overtake this one, and be overwritten by it; whoever finds that there
    /// was one puts the newest in force again.
    fn put_in_force(&self, inheritance: Inheritance) {
        let mut inheritance = inheritance;
        loop {
            let (version, limit) = {
                let settings = self.settings.lock();
                (settings.version, settings.limit())
            };
            self.flow.adjust(limit, inheritance);
            if self.settings.lock().version == version {
                return;
            }
            inheritance = Inheritance::Level;
        }
    }

    pub(super) fn plan(&self) -> FlowPlan {
        self.settings.lock().plan.clone()
    }

    pub(super) fn adapted(&self) -> Option<Adapted> {
        self.settings.lock().policy.as_ref().map(AdaptivePolicy::allowed)
    }
}
