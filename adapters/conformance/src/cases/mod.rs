//! The cases, each named by its promise. An executor is their only parameter.

#![allow(clippy::missing_panics_doc, reason = "a case panics when its promise is broken")]

mod changing;
mod flow;
mod hints;
mod idle;
mod leaving;
mod order;
mod racing;
mod waiting;

pub use changing::*;
pub use flow::*;
pub use hints::*;
pub use idle::*;
pub use leaving::*;
pub use order::*;
pub use racing::*;
pub use waiting::*;
