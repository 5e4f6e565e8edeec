//! One suite of promises about waiting, written once, which every executor runs in virtual time.
//!
//! A case is an `async` function over any [`Executor`], named by the promise that it checks. [`suite!`] makes a test of each:
//!
//! ```
//! use sluicegate_conformance::{Threads, suite};
//!
//! suite!(Threads);
//! ```
//!
//! A case knows neither threads nor sleeping: it asks its runtime for the reading, sleeps until another, and starts tasks. Time
//! passes when nobody has anything else to do, on every executor. So what a case finds at a reading is what everybody made of it,
//! and hours pass in milliseconds. Executors that know no virtual time are given [`VirtualTime`] in place of their timer.
//!
//! A case that would wait for ever fails instead.

#![forbid(unsafe_code)]

extern crate alloc;

pub mod cases;
mod counted;
mod executor;
mod limiters;
mod tasks;
mod threads;
mod virtual_time;

pub use executor::{AS_TOLD, Executor, SharedRoom};
pub use threads::{Threads, block_on};
pub use virtual_time::{Task, VirtualTime};
