//! The concurrency limit: how much may be in use at once, whatever the time.

mod limit;
mod observer;
mod permit;
mod usage;

pub use limit::ConcurrencyLimit;
pub(crate) use limit::Taken;
pub use observer::{Outcome, PermitObserver};
pub use permit::{Holder, Permit};
pub use usage::Usage;
