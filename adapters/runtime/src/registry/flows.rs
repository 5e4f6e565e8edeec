//! The registry.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use lock_api::{Mutex, RawMutex};
use sluicegate_core::{Adapted, Alerts, CounterSnapshot, Counters, Inheritance, Limit};

use super::entry::Entry;
use super::observer::RegistryObserver;
use super::plan::{FlowPlan, Measure};
use super::supervisor::Supervisor;
use super::watch::Watched;
use crate::finally::{Finally, for_all};
use crate::flow::{FlowEvents, FlowOptionsError, QueuedFlow};
use crate::runtime::Spawn;

/// A flow of a registry: a [`QueuedFlow`] that counts besides, where it has alerts.
pub type RegisteredFlow<R, M, O = ()> = QueuedFlow<R, M, Watched<O>>;

/// The flows of a registry, by their names.
type Entries<R, M, O> = BTreeMap<Arc<str>, Arc<Entry<R, M, O>>>;

/// Flows by their names, made and removed at run time.
///
/// A flow that adapts or has alerts has a task of its own, which evaluates its policies, and puts in force what comes of them.
///
/// # Guarantees
///
/// - *A panic stays where it is.* What is measured, and what is told, is the caller's code, and may panic. Then that flow's task is started anew, alone, and its
///   flow begins again as it was configured last and as its [`OnRestart`](super::OnRestart) says, once for a row of panics. No other flow is touched, and calls through this one go on.
///   A restart that panics is tried again at the time of the next evaluation, so nothing spins; an observer that panics when it is told of one is not told again. Alerts,
///   and errors that the flow has counted itself, count also where measuring panics.
/// - *Nothing stays behind.* A flow that is removed is closed: its task ends at once, who waits is told [`Denied::Closed`](sluicegate_core::Denied::Closed), calls
///   that were made go on. Dropping the registry removes all; where an observer panics that is told of it, those behind are not told, and end all the same.
/// - *Nothing is told twice or forgotten.* What an alert has become is told once, also where the observer panics at the one before: then the others are told after
///   the restart.
/// - Observers are told with no lock held.
///
/// A panic must unwind for its task to start again, and the executor must outlive it: those whose adapters there are do. The executor's shutdown ends
/// all tasks, and starts none.
///
/// # Complexity
///
/// Adding, finding and removing is O(log n), under a lock; whoever keeps the flow pays none of it. Each flow that adapts or has alerts has one timer.
///
/// `E` is told what becomes of flows, `O` what happens in them.
///
/// ```
/// # use core::{future::{Future, Ready, ready}, pin::Pin};
/// # use sluicegate_runtime::{Clock, Nanos, Runtime, Spawn};
/// # #[derive(Clone, Default)]
/// # struct MyRuntime;
/// # impl Clock for MyRuntime {
/// #     fn now(&self) -> Nanos { Nanos::ZERO }
/// # }
/// # impl Runtime for MyRuntime {
/// #     type Sleep = Ready<()>;
/// #     fn sleep_until(&self, _: Nanos) -> Ready<()> { ready(()) }
/// # }
/// # impl Spawn for MyRuntime {
/// #     fn spawn(&self, _task: impl Future<Output = ()> + Send + 'static) {}
/// # }
/// use sluicegate_runtime::{
///     AdaptiveOptions, ErrorRule, FlowOptions, FlowPlan, FlowRegistry, OnRestart, Signals, UnknownFlow, quota,
/// };
///
/// let flows: FlowRegistry<MyRuntime, parking_lot::RawMutex> = FlowRegistry::default();
/// let adaptive = AdaptiveOptions::new(quota!("100/1s")).errors(ErrorRule::new()).build()?;
/// let plan = FlowPlan::new(FlowOptions::new(quota!("100/1s")).in_flight(20)).adaptive(adaptive);
/// let provider = flows.add("provider", plan.on_restart(OnRestart::Empty), |_now| Signals::default())?;
/// assert_eq!(provider.limit(), quota!("100/1s").into());
///
/// flows.remove("provider")?;
/// assert_eq!(flows.find("provider").unwrap_err(), UnknownFlow { id: "provider".into() });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FlowRegistry<R, M, O = (), E = ()>
where
    R: Spawn<Sleep: Send> + Clone + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    O: FlowEvents + Send + Sync + 'static,
    E: RegistryObserver + Clone + Send + Sync + 'static,
{
    flows: Mutex<M, Entries<R, M, O>>,
    runtime: R,
    observer: E,
}

impl<R, M, O> FlowRegistry<R, M, O>
where
    R: Spawn<Sleep: Send> + Clone + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    O: FlowEvents + Send + Sync + 'static,
{
    /// No flows, on an executor's time.
    pub const fn new(runtime: R) -> Self {
        Self::observed_by(runtime, ())
    }
}

impl<R, M, O> Default for FlowRegistry<R, M, O>
where
    R: Spawn<Sleep: Send> + Clone + Default + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    O: FlowEvents + Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new(R::default())
    }
}

impl<R, M, O, E> FlowRegistry<R, M, O, E>
where
    R: Spawn<Sleep: Send> + Clone + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    O: FlowEvents + Send + Sync + 'static,
    E: RegistryObserver + Clone + Send + Sync + 'static,
{
    /// The same, which tells `observer` what becomes of flows.
    pub const fn observed_by(runtime: R, observer: E) -> Self {
        Self { flows: Mutex::new(BTreeMap::new()), runtime, observer }
    }

    /// Makes a flow, and tells `events` what happens in it. If it adapts, `measure` is asked before each evaluation; a flow that goes by its own errors alone takes
    /// `|_| Signals::default()`.
    ///
    /// # Errors
    /// [`AddFlowError`]; then nothing was made.
    ///
    /// # Panics
    /// It has none of its own. Where the executor panics because there is none to start a task on, or the observer does, nothing was made either.
    pub fn add_observed(
        &self,
        id: &str,
        plan: FlowPlan,
        measure: impl Measure,
        events: O,
    ) -> Result<Arc<RegisteredFlow<R, M, O>>, AddFlowError> {
        let counters = plan.alerts.map(|_| Arc::new(Counters::new(plan.flow.limit)));
        let flow = QueuedFlow::observed_by(plan.flow, self.runtime.clone(), Watched::new(counters, events))
            .map_err(AddFlowError::Options)?;
        let (id, flow): (Arc<str>, _) = (id.into(), Arc::new(flow));
        let (every, alerts) = (plan.every(), plan.alerts.map(Alerts::new));
        let entry = Arc::new(Entry::new(Arc::clone(&id), Arc::clone(&flow), plan));
        {
            let mut flows = self.flows.lock();
            if flows.contains_key(&id) {
                return Err(AddFlowError::AlreadyThere { id: String::from(&*id) });
            }
            flows.insert(Arc::clone(&id), Arc::clone(&entry));
        }
        let began_adapted = entry.began_adapted();
        // Should the executor panic, because there is none, or the observer.
        let undo = Finally(|| self.take_back(&entry));
        if let Some(every) = every {
            Supervisor::start(Arc::clone(&entry), self.observer.clone(), Box::new(measure), alerts, every);
        }
        self.observer.added(&id);
        if let Some((adapted, quota)) = began_adapted {
            self.observer.adapted(&id, self.runtime.now(), &adapted, quota);
        }
        core::mem::forget(undo);
        Ok(flow)
    }

    /// As if it had never been made.
    fn take_back(&self, entry: &Arc<Entry<R, M, O>>) {
        let taken = {
            let mut flows = self.flows.lock();
            let is_there = flows.get(&entry.id).is_some_and(|there| Arc::ptr_eq(there, entry));
            if is_there { flows.remove(&entry.id) } else { None }
        };
        entry.end();
        drop(taken);
    }

    /// Removes a flow and closes it: its task ends, and so do all waits. Whoever has the flow still may finish what was begun.
    ///
    /// # Errors
    /// [`UnknownFlow`], where there is none of this name.
    pub fn remove(&self, id: &str) -> Result<Arc<RegisteredFlow<R, M, O>>, UnknownFlow> {
        let removed = self.flows.lock().remove(id);
        let entry = removed.ok_or_else(|| UnknownFlow { id: id.into() })?;
        entry.end();
        self.observer.removed(&entry.id);
        Ok(Arc::clone(&entry.flow))
    }

    /// The flow of this name.
    ///
    /// # Errors
    /// [`UnknownFlow`], where there is none.
    pub fn find(&self, id: &str) -> Result<Arc<RegisteredFlow<R, M, O>>, UnknownFlow> {
        self.entry(id).map(|entry| Arc::clone(&entry.flow))
    }

    /// Gives a flow another limit, now and after a restart. If it adapts, it goes on with the same share of the new limit; while that is off or deny, nothing is
    /// evaluated but its alerts.
    ///
    /// # Errors
    /// [`UnknownFlow`], where there is none of this name.
    pub fn configure(&self, id: &str, limit: impl Into<Limit>, inheritance: Inheritance) -> Result<(), UnknownFlow> {
        self.entry(id)?.configure(limit.into(), inheritance);
        Ok(())
    }

    /// What the rules of a flow allowed when they were last evaluated; `None` where it does not adapt, or has no quota now because its limit was set to off or deny.
    ///
    /// # Errors
    /// [`UnknownFlow`], where there is none of this name.
    pub fn adapted(&self, id: &str) -> Result<Option<Adapted>, UnknownFlow> {
        Ok(self.entry(id)?.adapted())
    }

    /// What a flow's bucket has decided so far; `None` where it has no alerts, and nothing is counted.
    ///
    /// # Errors
    /// [`UnknownFlow`], where there is none of this name.
    pub fn counted(&self, id: &str) -> Result<Option<CounterSnapshot>, UnknownFlow> {
        Ok(self.entry(id)?.flow.observer().counters().map(Counters::snapshot))
    }

    /// The names of all flows, in order.
    pub fn ids(&self) -> Vec<Arc<str>> {
        self.flows.lock().keys().cloned().collect()
    }

    fn entry(&self, id: &str) -> Result<Arc<Entry<R, M, O>>, UnknownFlow> {
        self.flows.lock().get(id).cloned().ok_or_else(|| UnknownFlow { id: id.into() })
    }
}

impl<R, M, E> FlowRegistry<R, M, (), E>
where
    R: Spawn<Sleep: Send> + Clone + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    E: RegistryObserver + Clone + Send + Sync + 'static,
{
    /// Makes a flow that tells nobody what happens in it; see [`add_observed`](Self::add_observed).
    ///
    /// # Errors
    /// As `add_observed`.
    pub fn add(
        &self,
        id: &str,
        plan: FlowPlan,
        measure: impl Measure,
    ) -> Result<Arc<RegisteredFlow<R, M>>, AddFlowError> {
        self.add_observed(id, plan, measure, ())
    }
}

impl<R, M, O, E> Drop for FlowRegistry<R, M, O, E>
where
    R: Spawn<Sleep: Send> + Clone + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    O: FlowEvents + Send + Sync + 'static,
    E: RegistryObserver + Clone + Send + Sync + 'static,
{
    fn drop(&mut self) {
        let flows = core::mem::take(self.flows.get_mut());
        // All of them end, also where a waker panics, before anybody is told, who may panic too.
        for_all(flows.values(), |entry| entry.end());
        flows.keys().for_each(|id| self.observer.removed(id));
    }
}

impl<R, M, O, E> fmt::Debug for FlowRegistry<R, M, O, E>
where
    R: Spawn<Sleep: Send> + Clone + Send + Sync + 'static,
    M: RawMutex + Send + Sync + 'static,
    O: FlowEvents + Send + Sync + 'static,
    E: RegistryObserver + Clone + Send + Sync + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowRegistry").field("ids", &self.ids()).finish_non_exhaustive()
    }
}

/// Why no flow was made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddFlowError {
    /// There is one of this name: remove it first.
    AlreadyThere {
        /// The name.
        id: String,
    },
    /// There is no such flow.
    Options(FlowOptionsError),
}

impl fmt::Display for AddFlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyThere { id } => write!(f, "there is a flow {id:?} already: remove it first"),
            Self::Options(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for AddFlowError {}

/// There is no flow of this name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownFlow {
    /// The name.
    pub id: String,
}

impl fmt::Display for UnknownFlow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no flow {:?}", self.id)
    }
}

impl core::error::Error for UnknownFlow {}
