//! Looking into a store, and changing it by hand.

use core::hash::{BuildHasher, Hash};

use lock_api::RawRwLock;

use super::lookup::Lookup;
use super::quotas::Quotas;
use super::store::KeyedTokenBucket;
use crate::{Clock, Inspection, Nanos, Observer};

impl<K: Hash, R: RawRwLock, S: BuildHasher, C, O: Observer, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// The tokens of `key` at `now`, or `None` if it is not in the store, and then it has what any new key has.
    /// Changes nothing.
    pub fn inspect_at<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos) -> Option<Inspection> {
        self.with_cell(key, |step, cell| cell.inspect(step, now))
    }

    /// Gives `key` its full budget back, and tells whether it is in the store.
    ///
    /// A key that is not is as new, and stays so: it has its full budget, unless [`Overflow`](crate::Overflow) decides on it, or a
    /// change of quota or a clock that stepped back left new keys less for a while.
    pub fn reset<B: Lookup<K> + ?Sized>(&self, key: &B) -> bool {
        self.with_cell(key, |_, cell| cell.reset()).is_some()
    }

    /// Forgets `key`, its tier and what it has spent, and tells whether it was in the store. Its next use is that of a new key:
    /// with a full budget, unless a change of quota or a clock that stepped back left new keys less for a while.
    pub fn remove<B: Lookup<K> + ?Sized>(&self, key: &B) -> bool {
        self.open_for(key)
            .is_some_and(|(hash, _, mut open)| open.shard.remove(hash, key, |key| self.hasher.hash_one(key)))
    }

    /// Drops every key that is full at `now`, and gives back memory that the rest does not need.
    ///
    /// Nobody has to call it; it is for when a peak is over. Shards are locked one at a time, for some nanoseconds a slot,
    /// some tens for each key that is dropped, and some hundreds if it owns memory, which has to be given back. A
    /// table that has four slots or more for each key it needs is made smaller.
    pub fn clean_up_at(&self, now: Nanos) {
        for index in 0..self.shards.len() {
            let mut open = self.open(index);
            let hash_of = |key: &K| self.hasher.hash_one(key);
            open.shard.clean_all(now, hash_of);
            open.shard.shrink(hash_of);
        }
    }

    /// Shows every key to `show`, with its tokens at `now`, in no order.
    ///
    /// Shards are shown one after another: what is shown of each was true while it was being shown. `show` runs under the
    /// shard's lock and must not call this store.
    pub fn for_each_at(&self, now: Nanos, mut show: impl FnMut(&K, Inspection)) {
        for shard in &self.shards {
            let shard = shard.read();
            for entry in shard.iter() {
                show(&entry.key, shard.cell(entry).inspect(shard.step(entry.tier), now));
            }
        }
    }
}

impl<K: Hash, R: RawRwLock, S: BuildHasher, C: Clock, O: Observer, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// The tokens of `key` now, or `None` if it is not in the store; see [`inspect_at`](Self::inspect_at).
    pub fn inspect<B: Lookup<K> + ?Sized>(&self, key: &B) -> Option<Inspection> {
        self.inspect_at(key, self.reading())
    }

    /// Drops every key that is full now; see [`clean_up_at`](Self::clean_up_at).
    pub fn clean_up(&self) {
        self.clean_up_at(self.reading());
    }

    /// Shows every key to `show`, with its tokens now; see [`for_each_at`](Self::for_each_at).
    pub fn for_each(&self, show: impl FnMut(&K, Inspection)) {
        self.for_each_at(self.reading(), show);
    }
}
