//! Concurrency limits that adapt to how calls end and how long they take.

mod aimd;
mod controller;
mod gradient;
mod law;
#[cfg(feature = "lock_api")]
mod shared;
mod window;

pub use aimd::{AimdLaw, AimdOptions};
pub use controller::ConcurrencyController;
pub use gradient::{GradientLaw, GradientOptions};
pub use law::{ConcurrencyLaw, LawOptionsError};
#[cfg(feature = "lock_api")]
pub use shared::{AdaptiveConcurrency, CallMark};
pub use window::{ClosedWindow, SampleOptions, SampleOptionsError, SampleWindow, Sampled};
