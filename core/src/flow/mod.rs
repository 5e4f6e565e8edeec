//! Limiter, circuit breaker, concurrency limit, call and feedback, as one.

mod call;
mod limiter;
mod parts;
mod permit;
mod refusal;

pub use limiter::Flow;
pub use parts::{CallBreaker, CallLimit, FlowObserver};
pub use permit::FlowPermit;
pub use refusal::{FlowError, FlowRefusal, FlowStage};
