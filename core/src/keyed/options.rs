//! How a store of keys is set up.

use core::num::NonZeroUsize;

use super::overflow::Overflow;
use crate::Limit;

/// What a [`KeyedTokenBucket`](crate::KeyedTokenBucket) is made from: the limit of each key, and how many keys there may be.
///
/// A [`Quota`](crate::Quota) or a [`Limit`] alone is a set of options with every default.
///
/// ```
/// use sluicegate_core::{KeyedOptions, Overflow, quota};
///
/// let options = KeyedOptions::new(quota!("10/1m")).cap(50_000).overflow(Overflow::Shared(quota!("500/1m").into()));
/// assert_ne!(options, KeyedOptions::from(quota!("10/1m")));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a store is made from them"]
pub struct KeyedOptions {
    pub(super) limit: Limit,
    pub(super) cap: usize,
    pub(super) overflow: Option<Overflow>,
    pub(super) shards: NonZeroUsize,
}

impl KeyedOptions {
    /// `limit` for each key, up to 2^20 keys (1 048 576), and for all keys beyond them together the same limit once, which
    /// follows the default quota where that is changed.
    pub fn new(limit: impl Into<Limit>) -> Self {
        Self { limit: limit.into(), cap: DEFAULT_CAP, overflow: None, shards: DEFAULT_SHARDS }
    }

    /// At most `keys` keys at any time. With 0, [`Overflow`] decides on everything.
    pub const fn cap(mut self, keys: usize) -> Self {
        self.cap = keys;
        self
    }

    /// What becomes of new keys while there are as many as there may be. No change of a quota changes it.
    pub const fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = Some(overflow);
        self
    }

    /// Over how many locks keys are spread: the next power of two from `shards`, or from the cap if that is less, and at most
    /// 65 536. The default is 8.
    ///
    /// Four for each core that calls is a good number. It changes no decision of a key that is in the store. Which new keys
    /// find a place beyond the cap may depend on it: up to a cap of 64 a first use looks through all shards but those that
    /// others are in, and finds every key that has become full; above, it looks at 8 slots of its own shard and of one other.
    pub const fn shards(mut self, shards: NonZeroUsize) -> Self {
        self.shards = shards;
        self
    }
}

impl<L: Into<Limit>> From<L> for KeyedOptions {
    fn from(limit: L) -> Self {
        Self::new(limit)
    }
}

/// Some 40 to 70 MB of addresses: enough for the clients of one process, and bounded.
const DEFAULT_CAP: usize = 1 << 20;
/// Four for each of two cores; a store of 8 empty shards takes 2 KB. Where more cores race, more shards keep them apart.
const DEFAULT_SHARDS: NonZeroUsize = NonZeroUsize::new(8).unwrap();
