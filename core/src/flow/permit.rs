//! A call that has entered a flow.

use core::fmt;

use super::limiter::Flow;
use super::parts::{CallBreaker, CallLimit, FlowObserver};
use crate::{CallOutcome, Clock, Limiter, Nanos, Outcome};

/// A call that has entered a [`Flow`]. It has to be told how the call ended; dropped without a word, it was cancelled.
///
/// Its cost stays taken, however it ends. A permit that is leaked keeps its place in flight for ever, and a probe's for the breaker's
/// [patience](crate::BreakerOptions::probe_patience).
///
/// ```
/// use sluicegate_core::{CallOutcome, ConcurrencyLimit, Flow, ManualClock, TokenBucket, quota};
///
/// let flow = Flow::new(TokenBucket::with_limit(quota!("10/1s").into(), ()), ManualClock::new())
///     .concurrency(ConcurrencyLimit::new(1));
/// let permit = flow.enter(1)?;
/// assert!(flow.enter(1).is_err());
/// permit.finish(CallOutcome::Success);
/// assert!(flow.enter(1).is_ok());
/// # Ok::<(), sluicegate_core::FlowRefusal>(())
/// ```
#[must_use = "a call whose permit is dropped at once was cancelled"]
pub struct FlowPermit<'f, L, C, B, P, O = ()>
where
    L: Limiter,
    C: Clock,
    B: CallBreaker + 'f,
    P: CallLimit + 'f,
    O: FlowObserver,
{
    flow: &'f Flow<L, C, B, P, O>,
    since: Nanos,
    /// Until it has ended.
    parts: Option<(B::Passed<'f>, P::InFlight<'f>)>,
    /// What it counts as if it is dropped.
    dropped_as: CallOutcome,
}

impl<'f, L, C, B, P, O> FlowPermit<'f, L, C, B, P, O>
where
    L: Limiter,
    C: Clock,
    B: CallBreaker + 'f,
    P: CallLimit + 'f,
    O: FlowObserver,
{
    #[inline]
    pub(super) fn new(
        flow: &'f Flow<L, C, B, P, O>,
        since: Nanos,
        passed: B::Passed<'f>,
        in_flight: P::InFlight<'f>,
    ) -> Self {
        Self { flow, since, parts: Some((passed, in_flight)), dropped_as: flow.cancelled() }
    }

    /// The call has ended now.
    #[inline]
    pub fn finish(self, outcome: CallOutcome) {
        let now = self.flow.clock().now();
        self.finish_at(now, outcome);
    }

    /// The call has ended, at the reading `now`.
    #[inline]
    pub fn finish_at(mut self, now: Nanos, outcome: CallOutcome) {
        self.end(now, outcome, outcome.into());
    }

    /// From here on a drop is a failure: for while code runs that can drop it by a panic only, such as the call itself.
    #[inline]
    pub fn while_calling(&mut self) {
        self.dropped_as = CallOutcome::Failure;
    }

    /// From here on a drop is a cancellation, as it is in the beginning.
    #[inline]
    pub fn while_pending(&mut self) {
        self.dropped_as = self.flow.cancelled();
    }

    /// The reading at which it entered.
    pub const fn since(&self) -> Nanos {
        self.since
    }

    #[inline]
    fn end(&mut self, now: Nanos, outcome: CallOutcome, of_place: Outcome) {
        let Some((passed, in_flight)) = self.parts.take() else { return };
        // The breaker first, so that whoever has waited for the place finds it open if this was one failure too many. The place is given back whatever its observer does.
        B::settle_at(passed, now, outcome);
        P::release(in_flight, of_place);
        if let CallOutcome::Overloaded = outcome {
            self.flow.count_overloaded();
        }
        self.flow.observer().call_ended(now, now.saturating_duration_since(self.since), outcome);
    }
}

impl<'f, L, C, B, P, O> Drop for FlowPermit<'f, L, C, B, P, O>
where
    L: Limiter,
    C: Clock,
    B: CallBreaker + 'f,
    P: CallLimit + 'f,
    O: FlowObserver,
{
    #[inline]
    fn drop(&mut self) {
        if self.parts.is_some() {
            let now = self.flow.clock().now();
            self.end(now, self.dropped_as, Outcome::Dropped);
        }
    }
}

impl<'f, L, C, B, P, O> fmt::Debug for FlowPermit<'f, L, C, B, P, O>
where
    L: Limiter,
    C: Clock,
    B: CallBreaker + 'f,
    P: CallLimit + 'f,
    O: FlowObserver,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowPermit").field("since", &self.since).finish_non_exhaustive()
    }
}
