//! Places for keys: how many there are, who takes one, and how more are found.

use core::hash::{BuildHasher, Hash};

use lock_api::{RawRwLock, RwLockWriteGuard};

use super::lookup::Lookup;
use super::quotas::Quotas;
use super::shard::{Entry, Shard};
use super::store::KeyedTokenBucket;
use crate::sync::{AtomicU64, Ordering};
use crate::{BucketState, Nanos};

impl<K: Hash, R: RawRwLock, S: BuildHasher, C, O, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// Adds a key that is absent to an open shard, and cleans up a little; or tells that there is no place.
    pub(super) fn add<B: Lookup<K> + ?Sized>(
        &self,
        open: &mut Open<'_, K, R, Q>,
        (hash, index): (u64, usize),
        key: &B,
        state: BucketState,
        tier: Q::Tier,
        now: Nanos,
    ) -> bool {
        if !self.seek_place(open, index, now, |open, cap| open.claim(cap)) {
            return false;
        }
        let entry = Entry::new(key.to_key(), state, tier);
        open.shard.insert(hash, entry, |key| self.hasher.hash_one(key));
        true
    }

    /// Makes sure that `found` finds a place for one more key, by dropping others if need be.
    fn seek_place(
        &self,
        open: &mut Open<'_, K, R, Q>,
        index: usize,
        now: Nanos,
        found: impl Fn(&mut Open<'_, K, R, Q>, u64) -> bool,
    ) -> bool {
        let hash_of = |key: &K| self.hasher.hash_one(key);
        open.shard.clean_by_the_way(now, hash_of);
        if found(open, self.cap) {
            return true;
        }
        let (slots, others) =
            if self.cap <= LOOKED_THROUGH { (usize::MAX, self.shards.len()) } else { (SLOTS_PER_OVERFLOW, 1) };
        open.shard.clean_some(now, slots, hash_of);
        if found(open, self.cap) {
            return true;
        }
        let turn = self.counts.turn.fetch_add(1, Ordering::Relaxed);
        for other in 0..others as u64 {
            // Unless someone is in it: waiting for a second lock could wait in a circle.
            let other = turn.wrapping_add(other) as usize & (self.shards.len() - 1);
            if other != index {
                if let Some(shard) = self.shards[other].try_write() {
                    Open::new(shard, &self.counts).shard.clean_some(now, slots, hash_of);
                }
                if found(open, self.cap) {
                    return true;
                }
            }
        }
        false
    }

    /// Looks for a place for a new key as its first use would, and takes none.
    pub(super) fn make_place<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos) -> bool {
        let Some((_, index, mut open)) = self.open_for(key) else { return false };
        self.seek_place(&mut open, index, now, |open, cap| open.has_place(cap))
    }
}

/// A shard that is locked for writing. When it is left, the count of all keys is right again, whatever happened.
pub(super) struct Open<'a, K, R: RawRwLock, Q: Quotas> {
    pub(super) shard: RwLockWriteGuard<'a, R, Shard<K, Q>>,
    counts: &'a Counts,
    /// How many of all the keys counted are this shard's: those that it has, and places claimed for more.
    counted: u64,
}

impl<'a, K, R: RawRwLock, Q: Quotas> Open<'a, K, R, Q> {
    pub(super) fn new(shard: RwLockWriteGuard<'a, R, Shard<K, Q>>, counts: &'a Counts) -> Self {
        let counted = shard.len() as u64;
        Self { shard, counts, counted }
    }

    /// Whether one more key could be counted.
    fn has_place(&mut self, cap: u64) -> bool {
        self.counted > self.shard.len() as u64 || self.counts.keys.load(Ordering::Relaxed) < cap
    }

    /// Makes sure that one more key is counted than there is, if there is a place.
    fn claim(&mut self, cap: u64) -> bool {
        if self.counted > self.shard.len() as u64 {
            return true;
        }
        let more = |keys| if keys < cap { Some(keys + 1) } else { None };
        let is_counted = self.counts.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        self.counted += u64::from(is_counted);
        is_counted
    }
}

impl<K, R: RawRwLock, Q: Quotas> Drop for Open<'_, K, R, Q> {
    fn drop(&mut self) {
        // Never negative: a key is added only to a claimed place.
        let gone = self.counted.saturating_sub(self.shard.len() as u64);
        if gone != 0 {
            self.counts.keys.fetch_sub(gone, Ordering::Relaxed);
        }
    }
}

/// What all shards share, and no decision on a present key touches.
#[derive(Default)]
pub(super) struct Counts {
    /// Keys, and places claimed for keys that are about to be. Relaxed: the number alone is what matters, and all changes of
    /// it are in one order, in which it never exceeds the cap.
    keys: AtomicU64,
    /// Whose turn it is to be cleaned by a first use that found no place. Relaxed: any number will do.
    turn: AtomicU64,
}

impl Counts {
    pub(super) fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }
}

/// More than by the way, because here a place is worth waiting for.
const SLOTS_PER_OVERFLOW: usize = 8;
/// A store of so few keys is looked through whole, some nanoseconds a key, so that a place is found at once.
const LOOKED_THROUGH: u64 = 64;
