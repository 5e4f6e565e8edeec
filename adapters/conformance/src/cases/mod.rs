//! The cases, each named by its promise. An executor is their only parameter.

#![allow(clippy::missing_panics_doc, reason = "a case panics when its promise is broken")]

mod bounds;
mod calls;
mod changing;
mod crashing;
mod flow;
mod hints;
mod holding;
mod idle;
mod keyed;
mod leaving;
mod order;
mod pacing;
mod racing;
mod refusing;
mod registry;
mod sliding;
mod stuck;
mod waiting;

pub use bounds::*;
pub use calls::*;
pub use changing::*;
pub use crashing::*;
pub use flow::*;
pub use hints::*;
pub use holding::*;
pub use idle::*;
pub use keyed::*;
pub use leaving::*;
pub use order::*;
pub use pacing::*;
pub use racing::*;
pub use refusing::*;
pub use registry::*;
pub use sliding::*;
pub use stuck::*;
pub use waiting::*;
