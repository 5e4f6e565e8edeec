#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod read;
mod write;

pub use sluicegate_core;
pub use sluicegate_core::*;

pub use read::{HeaderError, quota_left, try_quota_left};
pub use write::{LimitHeaders, NameError};
