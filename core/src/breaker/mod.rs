//! The circuit breaker: no calls to what is failing, until a few probes say that it works again.

mod policy;
#[cfg(feature = "lock_api")]
mod shared;
mod state;
mod window;

pub use policy::{BreakerOptions, BreakerOptionsError, BreakerPolicy};
#[cfg(feature = "lock_api")]
pub use shared::{BreakerObserver, BreakerPermit, CircuitBreaker};
pub use state::{BreakerPhase, BreakerState, Call, CallOutcome};
