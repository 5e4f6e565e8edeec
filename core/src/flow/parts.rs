//! What a flow is composed of besides its limiter.

use core::time::Duration;

use super::refusal::FlowRefusal;
#[cfg(feature = "lock_api")]
use crate::{BreakerObserver, BreakerPermit, CircuitBreaker};
use crate::{CallOutcome, ConcurrencyLimit, Denied, Nanos, Outcome, Permit, PermitObserver};

/// The circuit breaker of a flow: a `CircuitBreaker` (feature `lock_api`), an `Option` of one, or `()` for none, which costs nothing.
///
/// # Contract
///
/// - What `pass_at` returns, dropped before it is settled, MUST leave everything as if it had never been there.
/// - None of the methods may panic, or wait for a caller.
pub trait CallBreaker {
    /// A call that it let pass. Dropped, it is as if it had never been made.
    type Passed<'b>
    where
        Self: 'b;

    /// Lets a call pass at `now`, or not.
    ///
    /// # Errors
    /// [`Denied::CircuitOpen`].
    fn pass_at(&self, now: Nanos) -> Result<Self::Passed<'_>, Denied>;

    /// Whether it is closed, so that whoever passes leaves no trace in it until the call has ended.
    fn is_closed(&self) -> bool;

    /// What [`pass_at`](Self::pass_at) would answer, letting nothing pass.
    ///
    /// # Errors
    /// As `pass_at`.
    fn peek_at(&self, now: Nanos) -> Result<(), Denied>;

    /// Tells who watches it of a call that it has refused at `now`, by what [`peek_at`](Self::peek_at) answered.
    #[inline]
    fn tell(&self, now: Nanos, denied: &Denied) {
        let _ = (now, denied);
    }

    /// Counts how a call ended, at `now`.
    fn settle_at(passed: Self::Passed<'_>, now: Nanos, outcome: CallOutcome);
}

/// The limit on a flow's calls in flight: a [`ConcurrencyLimit`], an `Option` of one, or `()` for none, which costs nothing.
///
/// # Contract
///
/// - A place that is dropped MUST be given back, as [`Outcome::Dropped`].
/// - None of the methods may panic, or wait for a caller.
pub trait CallLimit {
    /// A call in flight.
    type InFlight<'l>
    where
        Self: 'l;

    /// Takes a place for one call.
    ///
    /// # Errors
    /// Those of [`ConcurrencyLimit::try_acquire`].
    fn take(&self) -> Result<Self::InFlight<'_>, Denied>;

    /// Gives the place back.
    fn release(in_flight: Self::InFlight<'_>, outcome: Outcome);
}

impl CallBreaker for () {
    type Passed<'b> = ();

    #[inline(always)]
    fn pass_at(&self, _now: Nanos) -> Result<(), Denied> {
        Ok(())
    }

    #[inline(always)]
    fn is_closed(&self) -> bool {
        true
    }

    #[inline(always)]
    fn peek_at(&self, _now: Nanos) -> Result<(), Denied> {
        Ok(())
    }

    #[inline(always)]
    fn settle_at((): (), _now: Nanos, _outcome: CallOutcome) {}
}

#[cfg(feature = "lock_api")]
impl<R: lock_api::RawMutex, C, O: BreakerObserver> CallBreaker for CircuitBreaker<R, C, O> {
    type Passed<'b>
        = BreakerPermit<'b, R, C, O>
    where
        Self: 'b;

    #[inline]
    fn pass_at(&self, now: Nanos) -> Result<Self::Passed<'_>, Denied> {
        self.try_call_at(now)
    }

    #[inline]
    fn is_closed(&self) -> bool {
        CircuitBreaker::is_closed(self)
    }

    fn peek_at(&self, now: Nanos) -> Result<(), Denied> {
        CircuitBreaker::peek_at(self, now)
    }

    fn tell(&self, now: Nanos, denied: &Denied) {
        self.observer().refused(now, denied);
    }

    #[inline]
    fn settle_at(passed: Self::Passed<'_>, now: Nanos, outcome: CallOutcome) {
        passed.settle_at(now, outcome);
    }
}

impl<B: CallBreaker> CallBreaker for Option<B> {
    type Passed<'b>
        = Option<B::Passed<'b>>
    where
        Self: 'b;

    #[inline]
    fn pass_at(&self, now: Nanos) -> Result<Self::Passed<'_>, Denied> {
        self.as_ref().map(|breaker| breaker.pass_at(now)).transpose()
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.as_ref().is_none_or(B::is_closed)
    }

    fn peek_at(&self, now: Nanos) -> Result<(), Denied> {
        self.as_ref().map_or(Ok(()), |breaker| breaker.peek_at(now))
    }

    fn tell(&self, now: Nanos, denied: &Denied) {
        if let Some(breaker) = self {
            breaker.tell(now, denied);
        }
    }

    #[inline]
    fn settle_at(passed: Self::Passed<'_>, now: Nanos, outcome: CallOutcome) {
        if let Some(passed) = passed {
            B::settle_at(passed, now, outcome);
        }
    }
}

impl CallLimit for () {
    type InFlight<'l> = ();

    #[inline(always)]
    fn take(&self) -> Result<(), Denied> {
        Ok(())
    }

    #[inline(always)]
    fn release((): (), _outcome: Outcome) {}
}

impl<O: PermitObserver> CallLimit for ConcurrencyLimit<O> {
    type InFlight<'l>
        = Permit<&'l Self>
    where
        Self: 'l;

    #[inline]
    fn take(&self) -> Result<Permit<&Self>, Denied> {
        self.try_acquire(1)
    }

    #[inline]
    fn release(in_flight: Permit<&Self>, outcome: Outcome) {
        in_flight.release(outcome);
    }
}

impl<P: CallLimit> CallLimit for Option<P> {
    type InFlight<'l>
        = Option<P::InFlight<'l>>
    where
        Self: 'l;

    #[inline]
    fn take(&self) -> Result<Self::InFlight<'_>, Denied> {
        self.as_ref().map(P::take).transpose()
    }

    #[inline]
    fn release(in_flight: Self::InFlight<'_>, outcome: Outcome) {
        if let Some(in_flight) = in_flight {
            P::release(in_flight, outcome);
        }
    }
}

/// Is told what a flow does, after it has taken effect and outside any lock. `()` is the observer that does nothing, and costs nothing.
///
/// The limiter, the breaker and the concurrency limit have observers of their own, which are told what those decide. `call_ended` may be called
/// in a drop and should not panic: while another panic unwinds, a second one aborts.
pub trait FlowObserver {
    /// A call was refused at `now`: it was not made.
    #[inline]
    fn call_refused(&self, now: Nanos, cost: u64, refusal: &FlowRefusal) {
        let _ = (now, cost, refusal);
    }

    /// A call ended at `now`, after `took`. One that was cancelled counts as what [`Flow::cancelled_as`](crate::Flow::cancelled_as) says.
    #[inline]
    fn call_ended(&self, now: Nanos, took: Duration, outcome: CallOutcome) {
        let _ = (now, took, outcome);
    }
}

impl FlowObserver for () {}

/// Both are told, the first one first. Nest pairs for more.
impl<A: FlowObserver, B: FlowObserver> FlowObserver for (A, B) {
    #[inline]
    fn call_refused(&self, now: Nanos, cost: u64, refusal: &FlowRefusal) {
        self.0.call_refused(now, cost, refusal);
        self.1.call_refused(now, cost, refusal);
    }

    #[inline]
    fn call_ended(&self, now: Nanos, took: Duration, outcome: CallOutcome) {
        self.0.call_ended(now, took, outcome);
        self.1.call_ended(now, took, outcome);
    }
}

/// Whoever points to an observer is one.
macro_rules! points_to_observer {
    ($pointer:ty) => {
        impl<O: FlowObserver + ?Sized> FlowObserver for $pointer {
            #[inline]
            fn call_refused(&self, now: Nanos, cost: u64, refusal: &FlowRefusal) {
                (**self).call_refused(now, cost, refusal);
            }

            #[inline]
            fn call_ended(&self, now: Nanos, took: Duration, outcome: CallOutcome) {
                (**self).call_ended(now, took, outcome);
            }
        }
    };
}

points_to_observer!(&O);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
points_to_observer!(alloc::sync::Arc<O>);
