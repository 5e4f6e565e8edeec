//! The cases, each named by its promise. An executor is their only parameter.

mod changing;
mod hints;
mod idle;
mod leaving;
mod order;
mod racing;
mod waiting;

pub use changing::*;
pub use hints::*;
pub use idle::*;
pub use leaving::*;
pub use order::*;
pub use racing::*;
pub use waiting::*;
