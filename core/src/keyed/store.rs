//! The store of keys that most programs use: a limit for each key, shards behind locks, a hasher, a clock and an observer.

use alloc::boxed::Box;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use lock_api::{RawRwLock, RwLock};

use super::lookup::Lookup;
use super::options::KeyedOptions;
use super::overflow::Overflow;
use super::places::{Counts, Open};
use super::quotas::{OneQuota, Quotas};
use super::shard::{Shard, most_bytes};
use crate::{AdjustableBucket, BucketCell, BucketState, CachePadded, Clock, Limit, Nanos, Observer};

/// A token bucket for each key, in bounded memory: for clients, addresses, users or resources by the million.
///
/// A key takes its own size and one word, and nothing before its first use. The whole key is the identity: two keys never
/// share budget, whatever their hashes.
///
/// # Guarantees
///
/// - Each key's bucket keeps the law of [`TokenBucket`](crate::TokenBucket), from any number of racing callers. First use is
///   no exception: raced by any number, a new key admits exactly its limit.
/// - A decision on a present key takes its shard's lock for reading only, and any number of them run at once. A new key, and
///   whatever drops keys, takes one shard's lock for writing.
/// - *No amnesty*: only an entry that equals an absent key is dropped, which is one that has become full again. (A `Hash` that
///   panics while a table is made anew makes the store forget keys, and then their handles end too.) Under a clock
///   that steps back, an absent key counts as spent up to where dropped ones of its shard were, so that dropping admits
///   nothing that keeping would not. So does one that is asked at a reading of your own from before others dropped keys; who
///   lets the store read its clock is then asked at a later reading.
/// - *One reading far ahead shuts out nobody but the keys that spend at it.* While there are places it drops nothing, because
///   clean-up goes by the earlier of two readings. Where keys are dropped to make a place, or by
///   [`clean_up_at`](Self::clean_up_at), a new key then waits no longer than the most spent of those still had to. Only where two
///   readings are far ahead, and keys that spent at the first are dropped at the second, do new keys of that shard wait as long.
/// - *Bounded*: there are never more than [`cap`](Self::cap) keys, however many callers race, and never more than
///   [`memory_bound`](Self::memory_bound) bytes. Beyond, [`Overflow`] decides, and says so: see [`decide`](Self::decide).
/// - A refusal, a look and a cost of 0 create nothing.
///
/// # Clean-up
///
/// It rides on first uses, and needs no task and no timer. Each looks at the next 4 slots of its shard, and where
/// there is no place left at 8 more of its own and 8 of another shard's; up to a cap of 64, at all. A table that would have to
/// grow is looked through first, and made anew only for more keys than it had room for. Where there are
/// places, this goes by the earlier of the last two readings at which somebody came for one in that shard.
/// [`clean_up`](Self::clean_up) does all of it at once. An idle store does nothing, and keeps what it has until one of these.
///
/// # Trade-offs
///
/// The price of a lookup is a hash, a lock and a probe. Whoever asks for the same key often holds a [`KeyHandle`](crate::KeyHandle)
/// of it, which pays none of them. A first use that finds its table full looks through that shard's
/// keys, some nanoseconds each, and some hundreds for those that it drops if they own memory, while others wait for it; more shards make that shorter.
///
/// The hasher is yours. Where clients choose keys it must be seeded and resist them, and its upper half must spread keys as
/// well as its lower one; `sluicegate-threads` chooses one. Calls are synchronous, so there is nothing to cancel.
///
/// # Complexity
///
/// O(1), amortised over insertions; clean-up and reports are O(slots).
///
/// # Example
///
/// ```
/// use std::hash::RandomState;
/// use sluicegate_core::{KeyedTokenBucket, ManualClock, quota};
///
/// let logins: KeyedTokenBucket<String, parking_lot::RawRwLock, RandomState, ManualClock> =
///     KeyedTokenBucket::new(quota!("2/1m"));
/// assert!(logins.try_acquire("ada", 2).is_ok());
/// assert!(logins.try_acquire("ada", 1).is_err());
/// assert!(logins.try_acquire("grace", 1).is_ok());
/// assert_eq!(logins.len(), 2);
/// ```
pub struct KeyedTokenBucket<K, R, S, C, O = (), Q: Quotas = OneQuota> {
    pub(super) shards: Box<[Locked<K, R, Q>]>,
    pub(super) hasher: S,
    pub(super) clock: C,
    pub(super) observer: O,
    pub(super) limit: Limit,
    pub(super) cap: u64,
    /// As it was asked for. Where it was not, the shared limiter has the default quota, and follows it.
    pub(super) overflow: Option<Overflow>,
    pub(super) shared: CachePadded<AdjustableBucket<()>>,
    pub(super) counts: CachePadded<Counts>,
    /// Held by whoever changes a quota, so that changes follow one another. No decision touches it.
    pub(super) changes: RwLock<R, ()>,
}

/// A shard on cache lines of its own, so that callers of two do not slow each other down.
pub(super) type Locked<K, R, Q> = CachePadded<RwLock<R, Shard<K, Q>>>;

impl<K, R: RawRwLock, S: Default, C: Clock + Default> KeyedTokenBucket<K, R, S, C> {
    /// No keys yet, on the default clock and hasher. `options` may be a [`Quota`](crate::Quota) or a [`Limit`].
    pub fn new(options: impl Into<KeyedOptions>) -> Self {
        Self::with_parts(options, S::default(), C::default())
    }
}

impl<K, R: RawRwLock, S: Default, C: Clock> KeyedTokenBucket<K, R, S, C> {
    /// No keys yet, on `clock` and the default hasher.
    pub fn with_clock(options: impl Into<KeyedOptions>, clock: C) -> Self {
        Self::with_parts(options, S::default(), clock)
    }
}

impl<K, R: RawRwLock, S, C> KeyedTokenBucket<K, R, S, C> {
    /// No keys yet, on `clock` and `hasher`. Allocates the shards, and tables only as keys come.
    pub fn with_parts(options: impl Into<KeyedOptions>, hasher: S, clock: C) -> Self {
        Self::with_quotas(options.into(), hasher, clock, OneQuota::new)
    }
}

impl<K, R: RawRwLock, S, C, Q: Quotas> KeyedTokenBucket<K, R, S, C, (), Q> {
    pub(super) fn with_quotas(
        options: KeyedOptions,
        hasher: S,
        clock: C,
        quotas: impl FnOnce(crate::Quota) -> Q,
    ) -> Self {
        let KeyedOptions { limit, cap, overflow, shards } = options;
        // Without a quota there is nothing to keep for a key.
        let shards = limit.quota().map(quotas).map_or_else(Box::default, |quotas| {
            let count = shards.get().min(cap.max(1)).min(MOST_SHARDS).next_power_of_two();
            (0..count).map(|_| CachePadded::new(RwLock::new(Shard::new(quotas.clone())))).collect()
        });
        let shared = match overflow.unwrap_or(Overflow::Shared(limit)) {
            Overflow::Shared(limit) => limit,
            Overflow::Deny => Limit::DenyAll,
        };
        Self {
            shards,
            hasher,
            clock,
            observer: (),
            limit,
            cap: cap as u64,
            overflow,
            shared: CachePadded::new(AdjustableBucket::with_limit(shared, ())),
            counts: CachePadded::new(Counts::default()),
            changes: RwLock::new(()),
        }
    }

    /// The same store, which from now on tells `observer` of every decision and change.
    pub fn observed_by<O: Observer>(self, observer: O) -> KeyedTokenBucket<K, R, S, C, O, Q> {
        let Self { shards, hasher, clock, observer: (), limit, cap, overflow, shared, counts, changes } = self;
        KeyedTokenBucket { shards, hasher, clock, observer, limit, cap, overflow, shared, counts, changes }
    }
}

impl<K, R, S, C, O, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// The limit that the store was made with; [`quota_of`](Self::quota_of) tells what became of it.
    pub const fn limit(&self) -> Limit {
        self.limit
    }

    /// The most keys that there will be at any time.
    pub const fn cap(&self) -> usize {
        self.cap as usize
    }

    /// What becomes of new keys beyond the cap.
    pub fn overflow(&self) -> Overflow {
        self.overflow.unwrap_or_else(|| Overflow::Shared(self.shared.limit()))
    }

    /// The hasher.
    pub const fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The clock.
    #[inline]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The observer.
    #[inline]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// The number of keys: those that have spent something and were not yet found full again.
    ///
    /// While others add or drop keys it may count one that is about to be added or was just dropped.
    pub fn len(&self) -> usize {
        self.counts.keys() as usize
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are as many keys as there may be.
    pub(super) fn is_full(&self) -> bool {
        self.counts.keys() >= self.cap
    }

    /// The place of a hash's shard. The table goes by the lower half and the highest bits.
    #[inline(always)]
    pub(super) fn index(&self, hash: u64) -> usize {
        (hash >> SHARD_SHIFT) as usize & (self.shards.len() - 1)
    }
}

impl<K, R: RawRwLock, S, C, O, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// The most bytes that the store will ever allocate, besides what keys own themselves and what [handles](crate::KeyHandle) take.
    ///
    /// Seven keys, each with a word and a tier, take 16 bytes more than their sizes, rounded up to a multiple of 64: a number or an address of
    /// 8 bytes takes 18.3, one of 16 bytes 27.4. The bound is 2.7 times that for each key, the last rehash of every table included, for
    /// the [`cap`](Self::cap) and what spreads unevenly: six standard deviations more in each shard, which a hasher that spreads
    /// keys hardly ever exceeds. Each shard has a table of tiers besides. A settled store takes about 1.1 to 1.4 times that for each key.
    pub fn memory_bound(&self) -> usize {
        let shards = self.shards.len();
        let Some(mean) = self.cap().checked_div(shards) else { return 0 };
        let uneven = mean.isqrt().saturating_add(1).saturating_mul(6).saturating_add(2);
        let keys = mean.saturating_add(uneven).min(self.cap());
        let quotas = self.shards.first().map_or(0, |shard| shard.read().quotas().allocated());
        let shard = most_bytes::<K, Q::Tier>(keys).saturating_add(size_of::<Locked<K, R, Q>>()).saturating_add(quotas);
        shard.saturating_mul(shards)
    }
}

impl<K: Hash, R: RawRwLock, S: BuildHasher, C, O, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// Shows `run` the quota and the state that decide on `key`, and whether they are its own; if there is a quota.
    pub(super) fn with_state<B: Lookup<K> + ?Sized, T>(
        &self,
        key: &B,
        run: impl FnOnce(&crate::BucketStep, BucketState, bool) -> T,
    ) -> Option<T> {
        self.limit.quota()?;
        let hash = self.hasher.hash_one(key);
        let shard = self.shards[self.index(hash)].read();
        Some(match shard.find(hash, key) {
            Some(entry) => run(shard.step(entry.tier), shard.cell(entry).state(), true),
            None => {
                let (step, state) = shard.absent();
                run(step, state, false)
            }
        })
    }

    pub(super) fn with_cell<B: Lookup<K> + ?Sized, T>(
        &self,
        key: &B,
        run: impl FnOnce(&crate::BucketStep, &BucketCell) -> T,
    ) -> Option<T> {
        // Without a quota there are no shards.
        self.limit.quota()?;
        let hash = self.hasher.hash_one(key);
        let shard = self.shards[self.index(hash)].read();
        shard.find(hash, key).map(|entry| run(shard.step(entry.tier), shard.cell(entry)))
    }

    pub(super) fn open_for<B: Lookup<K> + ?Sized>(&self, key: &B) -> Option<(u64, usize, Open<'_, K, R, Q>)> {
        self.limit.quota()?;
        let hash = self.hasher.hash_one(key);
        let index = self.index(hash);
        Some((hash, index, self.open(index)))
    }

    pub(super) fn open(&self, index: usize) -> Open<'_, K, R, Q> {
        Open::new(self.shards[index].write(), &self.counts)
    }
}

impl<K, R, S, C: Clock, O, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// The reading now; without a limit none.
    #[inline]
    pub(super) fn reading(&self) -> Nanos {
        if let Limit::Unlimited = self.limit { Nanos::ZERO } else { self.clock.now() }
    }
}

impl<K, R, S, C, O, Q: Quotas> fmt::Debug for KeyedTokenBucket<K, R, S, C, O, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedTokenBucket")
            .field("limit", &self.limit)
            .field("keys", &self.len())
            .field("cap", &self.cap)
            .field("overflow", &self.overflow())
            .field("shards", &self.shards.len())
            .finish_non_exhaustive()
    }
}

/// Bits 40 to 55: neither the highest, which the table tells keys apart by, nor the lower half, which their places in it go by.
const SHARD_SHIFT: u32 = 40;
/// As many as those bits tell apart.
const MOST_SHARDS: usize = 1 << 16;
