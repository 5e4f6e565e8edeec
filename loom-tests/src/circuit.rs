//! What the models ask of a circuit breaker and of a flow, and core's that answer.

use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use sluicegate_core::{
    BreakerObserver, BreakerOptions, BreakerPermit, BreakerPhase, BreakerPolicy, CallOutcome, CircuitBreaker, Clock,
    ConcurrencyLimit, Flow, FlowPermit, FlowStage, Nanos, PER_HOUR, Quota, Rate, TokenBucket,
};

use crate::lock::holds_a_lock;
use crate::{ModelMutex, promise};

/// A circuit breaker, right or wrong. It cools down for a second the first time and for two the second, and gives probes up after ten.
pub trait Breaker: Send + Sync + Sized + 'static {
    /// A call that passed. Dropping it forgets it; leaking it leaves it out for ever.
    type Passed<'b>
    where
        Self: 'b;
    /// A closed one that was used before, which trips at so many failures in a row.
    fn new(failures: u32, probes: u32) -> Arc<Self>;
    /// Lets a call pass at `now`, or not.
    fn try_call(&self, now: Nanos) -> Option<Self::Passed<'_>>;
    /// Counts how a call ended, at `now`.
    fn settle(passed: Self::Passed<'_>, now: Nanos, outcome: CallOutcome);
    /// Opens it at `now`.
    fn trip(&self, now: Nanos);
    /// Closes it at `now`.
    fn close(&self, now: Nanos);
    /// The phase.
    fn phase(&self) -> BreakerPhase;
    /// How often it has tripped since it was last closed.
    fn trips(&self) -> u32;
    /// What its observer was told.
    fn told(&self) -> &Told<Self>;
}

/// The observer of a [`Breaker`]: it keeps what it is told, and demands to be told outside of every lock.
pub struct Told<B> {
    /// Of the standard library: it is not under test, and the model checker's would multiply the interleavings.
    changes: Mutex<Vec<Change>>,
    /// What it looks at whenever it is told.
    looks_at: OnceLock<Weak<B>>,
}

/// From one phase to another.
pub type Change = (BreakerPhase, BreakerPhase);

impl<B: Breaker> Told<B> {
    /// The changes so far. Those of two callers may be told in another order than they were made.
    pub fn changes(&self) -> Vec<Change> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on it asks `breaker` for a call, and drops that, whenever it is told.
    pub fn look_at(&self, breaker: &Arc<B>) {
        self.looks_at.get_or_init(|| Arc::downgrade(breaker));
    }

    pub(crate) fn tell(&self, now: Nanos, change: Change) {
        promise!(!holds_a_lock(), "told of {change:?} under the lock");
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).push(change);
        if let Some(breaker) = self.looks_at.get().and_then(Weak::upgrade) {
            drop(breaker.try_call(now));
        }
    }
}

impl<B> Default for Told<B> {
    fn default() -> Self {
        Self { changes: Mutex::default(), looks_at: OnceLock::new() }
    }
}

impl<B> fmt::Debug for Told<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("changes", &self.changes).finish_non_exhaustive()
    }
}

/// [`CircuitBreaker`].
#[derive(Debug)]
pub struct CoreBreaker(CircuitBreaker<ModelMutex, (), Told<Self>>);

impl Breaker for CoreBreaker {
    type Passed<'b> = BreakerPermit<'b, ModelMutex, (), Told<Self>>;

    fn new(failures: u32, probes: u32) -> Arc<Self> {
        let breaker = CircuitBreaker::with_clock(policy(failures, probes), ()).observed_by(Told::default());
        promise!(breaker.phase() == BreakerPhase::Closed, "it begins closed");
        Arc::new(Self(breaker))
    }

    fn try_call(&self, now: Nanos) -> Option<Self::Passed<'_>> {
        self.0.try_call_at(now).ok()
    }

    fn settle(passed: Self::Passed<'_>, now: Nanos, outcome: CallOutcome) {
        passed.settle_at(now, outcome);
    }

    fn trip(&self, now: Nanos) {
        self.0.trip_at(now);
    }

    fn close(&self, now: Nanos) {
        self.0.close_at(now);
    }

    fn phase(&self) -> BreakerPhase {
        self.0.phase()
    }

    fn trips(&self) -> u32 {
        self.0.state().trips()
    }

    fn told(&self) -> &Told<Self> {
        self.0.observer()
    }
}

impl BreakerObserver for Told<CoreBreaker> {
    fn changed(&self, now: Nanos, from: BreakerPhase, to: BreakerPhase) {
        self.tell(now, (from, to));
    }
}

/// A flow of a bucket that is not refilled while a model runs, a breaker that trips at one failure, and a limit on calls in flight;
/// right or wrong.
pub trait Calls: Send + Sync + 'static {
    /// A call that entered. Dropping it cancels it; leaking it leaves it out for ever.
    type Entered<'f>
    where
        Self: 'f;
    /// A full one with a closed breaker, that was used before.
    fn new(tokens: u64, probes: u32, places: u32) -> Arc<Self>;
    /// Lets a call of one token enter at `now`, or tells which part refuses.
    fn enter(&self, now: Nanos) -> Result<Self::Entered<'_>, FlowStage>;
    /// Counts how a call ended, at `now`.
    fn finish(entered: Self::Entered<'_>, now: Nanos, outcome: CallOutcome);
    /// Opens the breaker at `now`.
    fn trip(&self, now: Nanos);
    /// The breaker's phase.
    fn phase(&self) -> BreakerPhase;
    /// What the bucket has.
    fn tokens(&self) -> u64;
    /// Puts one more into it.
    fn add_token(&self);
    /// How many are in flight.
    fn in_flight(&self) -> u32;
}

/// [`Flow`].
#[derive(Debug)]
pub struct CoreFlow(Parts);

type Parts = Flow<TokenBucket<()>, Still, CircuitBreaker<ModelMutex, ()>, ConcurrencyLimit>;

/// A clock that stands still.
#[derive(Clone, Copy, Debug)]
pub struct Still;

impl Clock for Still {
    fn now(&self) -> Nanos {
        NOW
    }
}

impl Calls for CoreFlow {
    type Entered<'f> = FlowPermit<'f, TokenBucket<()>, Still, CircuitBreaker<ModelMutex, ()>, ConcurrencyLimit>;

    fn new(tokens: u64, probes: u32, places: u32) -> Arc<Self> {
        let quota = Rate::new(tokens, PER_HOUR).and_then(Quota::new).expect("models use small quotas");
        let flow = Flow::new(TokenBucket::with_limit(quota.into(), ()), Still)
            .breaker(CircuitBreaker::with_clock(policy(1, probes), ()))
            .concurrency(ConcurrencyLimit::new(places));
        promise!(flow.circuit_breaker().phase() == BreakerPhase::Closed, "it begins closed");
        Arc::new(Self(flow))
    }

    fn enter(&self, now: Nanos) -> Result<Self::Entered<'_>, FlowStage> {
        self.0.enter_at(now, 1).map_err(|refused| refused.stage)
    }

    fn finish(entered: Self::Entered<'_>, now: Nanos, outcome: CallOutcome) {
        entered.finish_at(now, outcome);
    }

    fn trip(&self, now: Nanos) {
        self.0.circuit_breaker().trip_at(now);
    }

    fn phase(&self) -> BreakerPhase {
        self.0.circuit_breaker().phase()
    }

    fn tokens(&self) -> u64 {
        self.0.limiter().inspect_at(COOLED).level
    }

    fn add_token(&self) {
        self.0.limiter().refund(1);
    }

    fn in_flight(&self) -> u32 {
        self.0.in_flight().in_use()
    }
}

fn policy(failures: u32, probes: u32) -> BreakerPolicy {
    BreakerOptions::new()
        .any_failure_share()
        .consecutive_failures(failures)
        .cool_down(COOL_DOWN, COOL_DOWN * 2)
        .probes(probes)
        .probe_patience(PATIENCE)
        .build()
        .expect("models use small numbers")
}

pub(crate) const COOL_DOWN: Duration = Duration::from_secs(1);
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// While it cools down, if it trips in a model.
pub(crate) const NOW: Nanos = Nanos::from_secs(100);
/// When it has cooled down after the first trip. No model goes further with a bucket.
pub(crate) const COOLED: Nanos = NOW.saturating_add(COOL_DOWN);
