//! Lines of those who wait, as parts of a flow.

use lock_api::RawMutex;
use sluicegate_core::{
    AdaptiveConcurrency, AdjustableBucket, CallLimit, Decision, Denied, Inspection, Limiter, Nanos, Observer, Outcome,
    PermitObserver,
};

use super::options::InFlightLaw;
use crate::grant::Grantor;
use crate::permits::{QueuedPermits, WaitedPermit};
use crate::queued::Queued;
use crate::room::{Growing, Room};
use crate::runtime::Runtime;

/// The bucket of a flow: it can be waited for, and its limit changed.
pub type FlowBucket<R, M, O = ()> = Queued<AdjustableBucket<(), O>, R, M, Growing>;

/// The places in flight of a flow: they can be waited for, and their number may adapt.
pub type FlowPlaces<R, M> = QueuedPermits<R, M, Growing, Option<AdaptiveConcurrency<M, InFlightLaw, R>>>;

/// The bucket of a flow as its limiter: asked past those who wait, unless [`WaitOptions::fair`](crate::WaitOptions::fair) says otherwise.
#[derive(Debug)]
pub struct FlowLimiter<R, M: RawMutex, O: Observer = ()>(pub(super) FlowBucket<R, M, O>);

impl<R, M: RawMutex, O: Observer> FlowLimiter<R, M, O> {
    /// The bucket.
    pub const fn bucket(&self) -> &FlowBucket<R, M, O> {
        &self.0
    }
}

impl<R: Runtime, M: RawMutex, O: Observer> Limiter for FlowLimiter<R, M, O> {
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        let decision = self.take_at(now, cost);
        self.tell(now, cost, &decision);
        decision
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        match self.0.denial_at_once(now, cost) {
            Some(denied) => Err(denied),
            None => self.0.limiter.peek_at(now, cost),
        }
    }

    fn inspect_at(&self, now: Nanos) -> Inspection {
        self.0.limiter.inspect_at(now)
    }

    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        self.0.decide_at_once(now, cost, Grantor::take_at)
    }

    fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
        Limiter::tell(&self.0.limiter, now, cost, decision);
    }

    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        Limiter::earliest_at(&self.0.limiter, now, total)
    }
}

/// A place in flight that can be waited for.
impl<R: Runtime, M: RawMutex, S: Room, O: PermitObserver> CallLimit for QueuedPermits<R, M, S, O> {
    type InFlight<'l>
        = WaitedPermit<&'l Self>
    where
        Self: 'l;

    fn take(&self) -> Result<WaitedPermit<&Self>, Denied> {
        self.try_acquire_permit(1)
    }

    fn release(in_flight: WaitedPermit<&Self>, outcome: Outcome) {
        in_flight.release(outcome);
    }
}
