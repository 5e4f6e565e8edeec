//! Buckets by key: one limit for each of any number of clients, in bounded memory.

#[cfg(feature = "keyed")]
mod admin;
#[cfg(feature = "keyed")]
mod charges;
mod decided;
#[cfg(feature = "keyed")]
mod each;
mod fixed;
#[cfg(feature = "keyed")]
mod handle;
#[cfg(feature = "keyed")]
mod kept;
#[cfg(feature = "keyed")]
mod key;
#[cfg(feature = "keyed")]
mod limiter;
mod lookup;
#[cfg(feature = "keyed")]
mod options;
mod overflow;
#[cfg(feature = "keyed")]
mod places;
#[cfg(feature = "keyed")]
mod quotas;
#[cfg(feature = "keyed")]
mod readings;
#[cfg(feature = "keyed")]
mod shard;
#[cfg(feature = "keyed")]
mod store;
#[cfg(feature = "keyed")]
mod table;
#[cfg(feature = "keyed")]
mod tiers;

pub use decided::{DecidedBy, KeyedDecision};
pub use fixed::FixedKeyedTokenBucket;
#[cfg(feature = "keyed")]
pub use handle::{KeyHandle, TooManyKeys};
#[cfg(feature = "keyed")]
pub use key::KeyLimiter;
pub use lookup::Lookup;
#[cfg(feature = "keyed")]
pub use options::KeyedOptions;
pub use overflow::Overflow;
#[cfg(feature = "keyed")]
pub use quotas::{OneQuota, Quotas, Tier, Tiers};
#[cfg(feature = "keyed")]
pub use store::KeyedTokenBucket;
#[cfg(feature = "keyed")]
pub use tiers::SetTierError;
