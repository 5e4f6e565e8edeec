//! Stores of keys, as those who wait ask them.

use core::hash::{BuildHasher, Hash};

use lock_api::RawRwLock;
use sluicegate_core::{Admitted, Decision, Denied, KeyedTokenBucket, Limiter, Nanos, Observer, Quotas};

/// A store of keys, as those who wait for one ask it. Its own clock is never read.
pub trait Store {
    /// What it keeps tokens for.
    type Key: Eq + Clone;

    /// The hash of a key, by the store's hasher.
    fn hash(&self, key: &Self::Key) -> u64;

    /// Takes `cost` of `key`, or nothing, and tells no observer.
    ///
    /// # Errors
    /// Why not.
    fn take_at(&self, key: &Self::Key, now: Nanos, cost: u64) -> Decision;

    /// What `take_at` would answer.
    ///
    /// # Errors
    /// As `take_at`.
    fn peek_at(&self, key: &Self::Key, now: Nanos, cost: u64) -> Result<(), Denied>;

    /// As [`Limiter::earliest_at`].
    fn earliest_at(&self, key: &Self::Key, now: Nanos, total: u128) -> Option<Nanos>;

    /// Gives `cost` of `key` back, and tells whether it is there.
    fn refund(&self, key: &Self::Key, cost: u64) -> bool;

    /// Tells the observer of a decision that stands.
    fn tell(&self, key: &Self::Key, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>);
}

impl<K, L, S, C, O, Q> Store for KeyedTokenBucket<K, L, S, C, O, Q>
where
    K: Hash + Eq + Clone,
    L: RawRwLock,
    S: BuildHasher,
    O: Observer,
    Q: Quotas,
{
    type Key = K;

    fn hash(&self, key: &K) -> u64 {
        self.hasher().hash_one(key)
    }

    #[inline]
    fn take_at(&self, key: &K, now: Nanos, cost: u64) -> Decision {
        Limiter::take_at(&self.key(key), now, cost)
    }

    #[inline]
    fn peek_at(&self, key: &K, now: Nanos, cost: u64) -> Result<(), Denied> {
        Limiter::peek_at(&self.key(key), now, cost).map(drop)
    }

    fn earliest_at(&self, key: &K, now: Nanos, total: u128) -> Option<Nanos> {
        Limiter::earliest_at(&self.key(key), now, total)
    }

    fn refund(&self, key: &K, cost: u64) -> bool {
        self.refund(key, cost)
    }

    #[inline]
    fn tell(&self, key: &K, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>) {
        Limiter::tell(&self.key(key), now, cost, &decision.copied());
    }
}
