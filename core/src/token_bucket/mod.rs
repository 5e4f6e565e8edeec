//! The token bucket: exact at every rate and every uptime.

mod cell;
mod grid;
mod inheritance;
mod limiter;
mod step;

pub use cell::BucketCell;
pub(crate) use grid::Grid;
pub use inheritance::Inheritance;
pub use limiter::TokenBucket;
pub use step::{BucketState, BucketStep, Debit};
