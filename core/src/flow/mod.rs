//! Limiter, circuit breaker, concurrency limit, call and feedback, as one.

mod call;
mod limiter;
mod parts;
mod permit;
mod refused;

pub use limiter::Flow;
pub use parts::{CallBreaker, CallLimit, FlowObserver};
pub use permit::FlowPermit;
pub use refused::{FlowError, FlowStage, Refused};
