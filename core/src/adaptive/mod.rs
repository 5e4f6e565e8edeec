//! Limits that adapt: to load, to errors, and to what is left of a quota.

mod account;
mod errors;
mod load;
mod pace;
mod policy;

pub use account::QuotaAccount;
pub use errors::ErrorRule;
pub use load::{Load, LoadRule};
pub use pace::{PaceRule, QuotaLeft};
pub use policy::{Adapted, AdaptiveOptions, AdaptiveOptionsError, AdaptivePolicy, Signals};

/// All of the base, in millionths.
const ALL: u32 = 1_000_000;

/// Where a rule that allows `allowed` of the base is after one step of recovery, in millionths.
const fn recovered(allowed: u32, step: crate::Share) -> u32 {
    let next = allowed.saturating_add(step.as_parts_per_million());
    if next < ALL { next } else { ALL }
}
