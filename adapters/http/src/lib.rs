#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod read;
mod write;

pub use sluicegate_core;
pub use sluicegate_core::*;

pub use error::{HeaderError, NameError};
pub use read::{quota_left, try_quota_left};
pub use write::LimitHeaders;
