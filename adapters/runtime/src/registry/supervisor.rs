//! The task of a flow: it evaluates the policy, and begins again where it panicked.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use lock_api::RawMutex;
use sluicegate_core::{AlertChanges, Alerts, Nanos, Signals};

use super::entry::Entry;
use super::observer::RegistryObserver;
use super::plan::{Measure, OnRestart};
use crate::flow::FlowEvents;
use crate::runtime::Spawn;

/// What a task needs, and hands on to the next one should it panic.
///
/// An executor drops a task when it has panicked, when it shuts down, and when the task is over. Only in the first case it is in the middle of a turn, and
/// only then it starts the next task: with nothing but a spawn, because a second panic would abort. What there is to be done about the restart is done by the
/// next task.
pub(super) struct Supervisor<R, M, O, E>
where
    R: Spawn<Sleep: Send> + Clone + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    O: FlowEvents + Send + Sync + 'static,
    E: RegistryObserver + Clone + Send + Sync + 'static,
{
    entry: Arc<Entry<R, M, O>>,
    observer: E,
    /// `None` once it was handed on.
    measure: Option<Box<dyn Measure>>,
    alerts: Option<Alerts>,
    /// What has become of alerts and was not told yet, and when.
    untold: Option<(Nanos, AlertChanges)>,
    /// Errors that the flow has counted itself, and that no rule went by yet.
    errors: u64,
    /// Whether an evaluation went through since it has begun again.
    has_evaluated: bool,
    every: Duration,
    /// Whether code runs that may panic, and which.
    turn: Turn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// None: it sleeps, or is over.
    Asleep,
    Evaluating,
    Restarting,
    /// It has begun again, and tells so.
    Telling,
}

/// How a task begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    First,
    /// After a panic in an evaluation: it restarts the flow at once.
    Restart,
    /// After a panic in a restart: it takes its time.
    RestartLater,
    /// After a panic of one who was told of a restart: it goes on.
    GoOn,
}

impl<R, M, O, E> Supervisor<R, M, O, E>
where
    R: Spawn<Sleep: Send> + Clone + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    O: FlowEvents + Send + Sync + 'static,
    E: RegistryObserver + Clone + Send + Sync + 'static,
{
    pub(super) fn start(
        entry: Arc<Entry<R, M, O>>,
        observer: E,
        measure: Box<dyn Measure>,
        alerts: Option<Alerts>,
        every: Duration,
    ) {
        let supervisor = Self {
            entry,
            observer,
            measure: Some(measure),
            alerts,
            untold: None,
            errors: 0,
            has_evaluated: true,
            every,
            turn: Turn::Asleep,
        };
        supervisor.spawn(Begin::First);
    }

    fn spawn(self, begin: Begin) {
        let runtime = self.entry.flow.runtime().clone();
        runtime.spawn(self.run(begin));
    }

    async fn run(mut self, begin: Begin) {
        if begin == Begin::RestartLater && !self.sleep().await {
            return;
        }
        if matches!(begin, Begin::Restart | Begin::RestartLater) {
            self.restart(begin == Begin::RestartLater);
        }
        while self.sleep().await {
            self.turn = Turn::Evaluating;
            self.evaluate();
            self.has_evaluated = true;
            self.turn = Turn::Asleep;
        }
    }

    /// Until the next turn; tells whether there is one.
    async fn sleep(&mut self) -> bool {
        let runtime = self.entry.flow.runtime();
        let sleep = runtime.sleep_until(runtime.now().saturating_add(self.every));
        self.entry.stop.goes_on_after(sleep).await
    }

    fn restart(&mut self, is_again: bool) {
        self.turn = Turn::Restarting;
        // A panic at each evaluation is one crash, and not as many as there are evaluations.
        let (how, adapted) = if self.has_evaluated { self.entry.restart(is_again) } else { (OnRestart::Restore, None) };
        self.has_evaluated = false;
        self.turn = Turn::Telling;
        let now = self.entry.flow.runtime().now();
        if let Some((adapted, quota)) = adapted {
            self.observer.adapted(&self.entry.id, now, &adapted, quota);
        }
        self.observer.restarted(&self.entry.id, now, how);
        if self.errors > 0 {
            // Nobody could go by them, because measuring panicked.
            self.adapt(now, Signals::default());
        }
        self.turn = Turn::Asleep;
    }

    /// What the flow itself knows comes first: it counts also where measuring panics.
    fn evaluate(&mut self) {
        self.tell_alerts();
        let flow = &self.entry.flow;
        let now = flow.runtime().now();
        if let (Some(alerts), Some(counters)) = (&mut self.alerts, flow.observer().counters()) {
            let changes = alerts.evaluate(now, &counters.snapshot(), flow.bucket().limiter().inspect_at(now));
            self.untold = Some((now, changes));
            self.tell_alerts();
        }
        self.errors = self.errors.saturating_add(self.entry.flow.take_overloaded());
        let Some(measure) = &mut self.measure else { return };
        let signals = measure.measure(now);
        self.adapt(now, signals);
    }

    /// Goes by these signals, and by the errors that the flow has counted itself.
    fn adapt(&mut self, now: Nanos, mut signals: Signals) {
        signals.errors = signals.errors.saturating_add(core::mem::take(&mut self.errors));
        if let Some((adapted, quota)) = self.entry.adapt(|policy| policy.evaluate(now, &signals)) {
            self.observer.adapted(&self.entry.id, now, &adapted, quota);
        }
    }

    fn tell_alerts(&mut self) {
        while let Some((at, changes)) = &mut self.untold {
            let Some(change) = changes.next() else {
                self.untold = None;
                return;
            };
            self.observer.alerted(&self.entry.id, *at, &change);
        }
    }
}

impl<R, M, O, E> Drop for Supervisor<R, M, O, E>
where
    R: Spawn<Sleep: Send> + Clone + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    O: FlowEvents + Send + Sync + 'static,
    E: RegistryObserver + Clone + Send + Sync + 'static,
{
    fn drop(&mut self) {
        let begin = match self.turn {
            Turn::Asleep => return,
            Turn::Evaluating => Begin::Restart,
            Turn::Restarting => Begin::RestartLater,
            Turn::Telling => Begin::GoOn,
        };
        if self.entry.stop.is_stopped() {
            return;
        }
        let next = Self {
            entry: Arc::clone(&self.entry),
            observer: self.observer.clone(),
            measure: self.measure.take(),
            alerts: self.alerts.take(),
            untold: self.untold.take(),
            errors: self.errors,
            has_evaluated: self.has_evaluated,
            every: self.every,
            turn: Turn::Asleep,
        };
        next.spawn(begin);
    }
}
