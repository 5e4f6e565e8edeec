//! The token bucket: exact at every rate and every uptime.

mod cell;
mod grid;
mod inheritance;
mod limiter;
mod step;
mod words;

pub use cell::BucketCell;
pub(crate) use grid::Grid;
pub use inheritance::Inheritance;
pub use limiter::TokenBucket;
pub use step::{BucketState, BucketStep, Debit};
pub(crate) use words::STEP_WORDS;
