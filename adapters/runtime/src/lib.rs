//! Waiting for Sluicegate's limiters on any executor.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;

mod acquire;
mod grant;
mod line;
#[cfg(feature = "alloc")]
mod manual;
mod news;
mod options;
mod queued;
mod room;
mod runtime;
mod sync;
mod waitable;

pub use sluicegate_core;
pub use sluicegate_core::*;

pub use acquire::Acquire;
pub use grant::Grantor;
#[cfg(feature = "alloc")]
pub use manual::ManualRuntime;
pub use options::WaitOptions;
pub use queued::Queued;
#[cfg(feature = "heapless")]
pub use room::Fixed;
#[cfg(feature = "alloc")]
pub use room::Growing;
pub use room::Room;
pub use runtime::{Runtime, Spawn};
pub use waitable::Waitable;
