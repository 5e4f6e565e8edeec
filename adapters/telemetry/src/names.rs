//! Words and numbers for what flows tell, the same in metrics and in events.

use sluicegate_core::{CallOutcome, FlowStage};

/// How a call ended.
pub(crate) const fn of_outcome(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Success => "success",
        CallOutcome::Failure => "failure",
        CallOutcome::Overloaded => "overloaded",
        CallOutcome::Ignored => "ignored",
    }
}

/// Which part of a flow refused a call.
pub(crate) const fn of_stage(stage: FlowStage) -> &'static str {
    match stage {
        FlowStage::Limiter => "limiter",
        FlowStage::Breaker => "breaker",
        FlowStage::Concurrency => "concurrency",
    }
}

/// A share that is told in millionths: 0 to 1.
#[cfg(feature = "runtime")]
pub(crate) fn part(millionths: u32) -> f64 {
    f64::from(millionths) / 1e6
}
