//! The flow that is simulated: the runtime's own, in virtual time.

use parking_lot::RawMutex;
use sluicegate_runtime::{
    BreakerPolicy, FlowOptions, InFlightLaw, Limit, ManualRuntime, QueuedFlow, QueuedFlowPermit, SampleOptions,
    WaitOptions, WhenEmpty,
};

pub(super) type Time = ManualRuntime<RawMutex>;
pub(super) type SimulatedFlow = QueuedFlow<Time, RawMutex>;
pub(super) type SimulatedPermit<'f> = QueuedFlowPermit<'f, Time, RawMutex>;

/// What stands in front of the service.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowPlan {
    pub(super) limit: Limit,
    pub(super) when_empty: WhenEmpty,
    /// So many callers wait at most.
    pub(super) most_waiting: Option<usize>,
    pub(super) breaker: Option<BreakerPolicy>,
    pub(super) in_flight: Option<InFlightPlan>,
}

/// How many calls are in flight at most.
#[derive(Clone, Copy, Debug)]
pub(super) enum InFlightPlan {
    Fixed(u32),
    Law(InFlightLaw),
}

impl FlowPlan {
    /// The flow, or why there is none; what a scenario says has been checked before.
    pub(super) fn build(&self, time: &Time) -> Result<SimulatedFlow, String> {
        let waiting = self.most_waiting.map_or(WaitOptions::new(), |most| WaitOptions::new().bound(most));
        let options = FlowOptions::new(self.limit).when_empty(self.when_empty).waiting(waiting);
        let options = self.breaker.map_or(options, |policy| options.breaker(policy));
        let options = match self.in_flight {
            None => options,
            Some(InFlightPlan::Fixed(calls)) => options.in_flight(calls),
            Some(InFlightPlan::Law(law)) => options.adaptive_in_flight(SampleOptions::new(), law),
        };
        SimulatedFlow::new(options, time.clone()).map_err(|error| error.to_string())
    }

    pub(super) fn queues(&self) -> bool {
        matches!(self.when_empty, WhenEmpty::Queue | WhenEmpty::QueueFor(_))
    }

    pub(super) fn degrades(&self) -> bool {
        self.when_empty == WhenEmpty::Degrade
    }
}
