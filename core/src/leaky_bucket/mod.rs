//! The leaky bucket: output at a constant rate, whatever the input.

mod limiter;
mod pacing;
mod step;

pub use limiter::LeakyBucket;
pub use pacing::Pacing;
pub use step::{Departure, LeakyBucketState, LeakyBucketStep};
