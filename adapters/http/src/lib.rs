#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod policy;
mod read;
mod unit;
mod write;

pub use sluicegate_core;
pub use sluicegate_core::*;

pub use error::{HeaderError, NameError};
pub use read::{quota_left, try_quota_left};
pub use unit::QuotaUnit;
pub use write::LimitHeaders;
