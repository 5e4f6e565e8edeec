//! The sliding counter: a sliding log estimated from two counts, in one word.

mod cell;
mod limiter;
mod step;

pub use cell::SlidingCounterCell;
pub use limiter::SlidingCounter;
pub use step::{SlidingCounterState, SlidingCounterStep};
