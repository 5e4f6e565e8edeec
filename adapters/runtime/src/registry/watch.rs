//! Counting what a flow's bucket decides, where alerts are wanted.

use alloc::sync::Arc;
use core::time::Duration;

use sluicegate_core::{
    Admitted, BreakerObserver, BreakerPhase, CallOutcome, Counters, Debit, Denied, FlowObserver, FlowRefusal, Limit,
    Nanos, Observer,
};

/// Whom a flow of a registry tells: the counters that its alerts go by, if it has any, and an observer of yours.
#[derive(Clone, Debug, Default)]
pub struct Watched<O> {
    counters: Option<Arc<Counters>>,
    inner: O,
}

impl<O> Watched<O> {
    pub(super) const fn new(counters: Option<Arc<Counters>>, inner: O) -> Self {
        Self { counters, inner }
    }

    /// What was counted; nothing is where no alerts are wanted.
    pub fn counters(&self) -> Option<&Counters> {
        self.counters.as_deref()
    }

    /// Your observer.
    pub const fn inner(&self) -> &O {
        &self.inner
    }
}

impl<O: Observer> Observer for Watched<O> {
    #[inline]
    fn admitted(&self, now: Nanos, cost: u64, admitted: &Admitted) {
        if let Some(counters) = &self.counters {
            counters.admitted(now, cost, admitted);
        }
        self.inner.admitted(now, cost, admitted);
    }

    #[inline]
    fn denied(&self, now: Nanos, cost: u64, denied: &Denied) {
        if let Some(counters) = &self.counters {
            counters.denied(now, cost, denied);
        }
        self.inner.denied(now, cost, denied);
    }

    #[inline]
    fn refunded(&self, cost: u64) {
        if let Some(counters) = &self.counters {
            counters.refunded(cost);
        }
        self.inner.refunded(cost);
    }

    #[inline]
    fn debited(&self, now: Nanos, debit: &Debit) {
        if let Some(counters) = &self.counters {
            counters.debited(now, debit);
        }
        self.inner.debited(now, debit);
    }

    #[inline]
    fn settled(&self, now: Nanos, held: u64, debit: &Debit) {
        if let Some(counters) = &self.counters {
            counters.settled(now, held, debit);
        }
        self.inner.settled(now, held, debit);
    }

    #[inline]
    fn adjusted(&self, now: Nanos, from: Limit, to: Limit) {
        if let Some(counters) = &self.counters {
            counters.adjusted(now, from, to);
        }
        self.inner.adjusted(now, from, to);
    }
}

impl<O: BreakerObserver> BreakerObserver for Watched<O> {
    #[inline]
    fn changed(&self, now: Nanos, from: BreakerPhase, to: BreakerPhase) {
        self.inner.changed(now, from, to);
    }

    #[inline]
    fn refused(&self, now: Nanos, denied: &Denied) {
        self.inner.refused(now, denied);
    }
}

impl<O: FlowObserver> FlowObserver for Watched<O> {
    #[inline]
    fn call_refused(&self, now: Nanos, cost: u64, refusal: &FlowRefusal) {
        self.inner.call_refused(now, cost, refusal);
    }

    #[inline]
    fn call_ended(&self, now: Nanos, took: Duration, outcome: CallOutcome) {
        self.inner.call_ended(now, took, outcome);
    }
}
