//! The sliding log: no interval of one window's length ever holds more than the limit.

mod limiter;
mod runs;
#[cfg(feature = "lock_api")]
mod shared;

#[cfg(feature = "heapless")]
pub use limiter::FixedSlidingLog;
pub use limiter::SlidingLog;
pub use runs::{Run, Runs};
#[cfg(feature = "lock_api")]
pub use shared::SharedSlidingLog;
