//! Buckets by key: one limit for each of any number of clients, in bounded memory.

#[cfg(feature = "keyed")]
mod admin;
mod decided;
mod fixed;
#[cfg(feature = "keyed")]
mod key;
#[cfg(feature = "keyed")]
mod limiter;
mod lookup;
#[cfg(feature = "keyed")]
mod options;
mod overflow;
#[cfg(feature = "keyed")]
mod quotas;
#[cfg(feature = "keyed")]
mod shard;
#[cfg(feature = "keyed")]
mod tiers;

pub use decided::{DecidedBy, KeyedDecision};
pub use fixed::FixedKeyedTokenBucket;
#[cfg(feature = "keyed")]
pub use key::KeyLimiter;
#[cfg(feature = "keyed")]
pub use limiter::KeyedTokenBucket;
pub use lookup::Lookup;
#[cfg(feature = "keyed")]
pub use options::KeyedOptions;
pub use overflow::Overflow;
#[cfg(feature = "keyed")]
pub use quotas::{OneQuota, Quotas, Tier, Tiers};
#[cfg(feature = "keyed")]
pub use tiers::SetTierError;
