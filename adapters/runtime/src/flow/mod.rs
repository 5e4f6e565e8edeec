//! Flows that can wait: for a token, for a place in flight, and no longer than they may.

mod answer;
mod options;
mod parts;
mod queued_flow;

pub use answer::{FlowPath, Flowed};
pub use options::{FlowOptions, FlowOptionsError, InFlightLaw, WhenEmpty};
pub use parts::{FlowBucket, FlowLimiter, FlowPlaces};
pub use queued_flow::{FlowEvents, QueuedFlow, QueuedFlowPermit};
