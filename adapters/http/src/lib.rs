#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod fields;
mod legacy;
mod policy;
mod read;
mod reader;
mod unit;
mod write;

pub use sluicegate_core;
pub use sluicegate_core::*;

pub use error::{HeaderError, NameError};
pub use read::{LONGEST_WAIT, ServiceLimit, ServiceLimits, quota_left, try_quota_left};
pub use unit::QuotaUnit;
pub use write::LimitHeaders;
