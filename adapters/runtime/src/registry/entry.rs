//! A flow of a registry, as the registry and the flow's task share it.

use alloc::sync::Arc;

use lock_api::{Mutex, RawMutex};
use sluicegate_core::{Adapted, AdaptivePolicy, Inheritance, Limit, Nanos, Quota, Share};

use super::flows::RegisteredFlow;
use super::plan::{FlowPlan, OnRestart};
use super::stop::Stop;
use crate::finally::Finally;
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
    /// When it has begun again last.
    begun_again: Option<Nanos>,
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

    /// The policy, where there is a quota to adapt.
    fn policy(&mut self) -> Option<&mut AdaptivePolicy> {
        self.policy.as_mut().filter(|_| matches!(self.plan.flow.limit, Limit::Quota(_)))
    }

    /// What its rules allow, and the quota that comes of it.
    fn in_force(&mut self) -> Option<(Adapted, Quota)> {
        self.policy().map(|policy| (policy.allowed(), policy.quota()))
    }

    /// What the bucket keeps where it begins again at `now` as it was configured; `None` where it goes on as it is, because it has begun again less than the
    /// time ago in which its bucket fills itself.
    fn inheritance(&mut self, now: Nanos) -> Option<Inheritance> {
        let inheritance = self.plan.on_restart.inheritance()?;
        let (Some(begun), Limit::Quota(quota)) = (&mut self.begun_again, self.plan.flow.limit) else {
            return Some(inheritance);
        };
        // Where the clock went back, the wait begins anew.
        *begun = now.min(*begun);
        let is_due = now.saturating_duration_since(*begun) >= quota.recovery_time();
        is_due.then_some(inheritance)
    }
}

impl<R: Runtime, M: RawMutex, O: FlowEvents> Entry<R, M, O> {
    pub(super) fn new(id: Arc<str>, flow: Arc<RegisteredFlow<R, M, O>>, plan: FlowPlan) -> Self {
        let policy = plan.adaptive.clone();
        Self {
            id,
            flow,
            stop: Stop::new(),
            settings: Mutex::new(Settings { plan, policy, begun_again: None, version: 0 }),
        }
    }

    /// Has the policy evaluated, and puts in force what comes of it.
    pub(super) fn adapt(
        &self,
        evaluate: impl FnOnce(&mut AdaptivePolicy) -> Option<Quota>,
    ) -> Option<(Adapted, Quota)> {
        let adapted = self.change(|settings| {
            let policy = settings.policy()?;
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

    /// Begins again as it was configured last, unless it has done so a short while ago, and tells what is in force then if that is another quota. Where it
    /// panics, because one who is told of a part of it does, it is to be done again.
    pub(super) fn restart(&self, is_again: bool) -> (OnRestart, Option<(Adapted, Quota)>) {
        let now = self.flow.runtime().now();
        let how = self.plan().on_restart;
        let inheritance = self.change(|settings| {
            let inheritance = settings.inheritance(now)?;
            let before = settings.in_force();
            settings.policy = settings.plan.adaptive.clone();
            Some((inheritance, settings.in_force().filter(|after| Some(after.1) != before.map(|before| before.1))))
        });
        let Some((inheritance, adapted)) = inheritance else {
            if !is_again {
                return (OnRestart::Restore, None);
            }
            // It has begun again, and was interrupted.
            self.put_in_force(Inheritance::Level);
            return (how, None);
        };
        if let Some(breaker) = self.flow.breaker() {
            breaker.close_at(now);
        }
        // From here on tokens may be made, whoever panics when told of that.
        self.change(|settings| settings.begun_again = Some(now));
        self.put_in_force(inheritance);
        (how, adapted)
    }

    /// What a policy that has adapted before has put in force.
    pub(super) fn began_adapted(&self) -> Option<(Adapted, Quota)> {
        self.settings.lock().in_force().filter(|(adapted, _)| adapted.share != Share::ALL.as_parts_per_million())
    }

    /// Ends its task and all who wait; calls that were made go on.
    pub(super) fn end(&self) {
        // Also where a waker panics.
        let _flow = Finally(|| self.flow.close());
        self.stop.stop();
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
        self.settings.lock().policy().map(|policy| policy.allowed())
    }
}
