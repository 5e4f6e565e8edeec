//! A limiter for the tests of the wait queue.

use core::cell::Cell;

use sluicegate_core::{BucketState, BucketStep, Decision, Inspection, Limiter, Nanos, Quota};

/// A token bucket that can be copied, so that a test can look ahead.
#[derive(Clone)]
pub(crate) struct Bucket {
    pub(crate) step: BucketStep,
    pub(crate) state: Cell<BucketState>,
}

impl Bucket {
    pub(crate) fn full(quota: Quota) -> Self {
        Self { step: BucketStep::new(quota), state: Cell::default() }
    }
}

impl Limiter for Bucket {
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        let (state, decision) = self.step.try_acquire(self.state.get(), now, cost);
        self.state.set(state);
        decision
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.step.try_acquire(self.state.get(), now, cost).1
    }

    fn inspect_at(&self, now: Nanos) -> Inspection {
        self.step.inspect(self.state.get(), now)
    }
}
