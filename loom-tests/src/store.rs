//! What the models ask of a store of keys, and core's that answers.

use core::hash::{BuildHasher, Hasher};
use core::num::NonZeroUsize;

use sluicegate_core::{Denied, Inheritance, KeyedOptions, KeyedTokenBucket, ManualClock, Nanos, Overflow, Quota};

use crate::lock::ModelLock;
use crate::promise;

/// How a store answered a request for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The key's own bucket admitted it.
    Admitted,
    /// The key's own bucket denied it.
    Denied,
    /// The key is new, and there was no place.
    TooManyKeys,
}

/// A store of keys, right or wrong, with two shards: one of even keys and one of odd. New keys beyond the cap are denied.
pub trait Store: Send + Sync + 'static {
    /// One without keys, every lock of which was used.
    fn new(quota: Quota, cap: usize) -> Self;
    /// Takes `cost` of `key` at `now`, or nothing.
    fn decide(&self, key: u8, now: Nanos, cost: u64) -> Served;
    /// Gives `cost` back to `key`, and says whether it is there.
    fn refund(&self, key: u8, cost: u64) -> bool;
    /// Drops every key that is full at `now`.
    fn clean_up(&self, now: Nanos);
    /// Changes the quota at `now`; keys keep their level.
    fn set_quota(&self, quota: Quota, now: Nanos);
    /// Whole tokens of `key` at `now`, if it is there.
    fn level(&self, key: u8, now: Nanos) -> Option<u64>;
    /// How many keys there are.
    fn keys(&self) -> usize;
}

/// [`KeyedTokenBucket`].
#[derive(Debug)]
pub struct CoreStore(KeyedTokenBucket<u8, ModelLock, Parity, ManualClock>);

impl Store for CoreStore {
    fn new(quota: Quota, cap: usize) -> Self {
        let options = KeyedOptions::new(quota).cap(cap).overflow(Overflow::Deny);
        let shards = NonZeroUsize::new(2).expect("two is not 0");
        let store = KeyedTokenBucket::with_parts(options.shards(shards), Parity, ManualClock::new());
        store.clean_up();
        store.set_quota((), quota, Inheritance::Level).expect("there is one quota");
        Self(store)
    }

    fn decide(&self, key: u8, now: Nanos, cost: u64) -> Served {
        match self.0.try_acquire_at(&key, now, cost) {
            Ok(_) => Served::Admitted,
            Err(Denied::TooManyKeys) => Served::TooManyKeys,
            Err(_) => Served::Denied,
        }
    }

    fn refund(&self, key: u8, cost: u64) -> bool {
        self.0.refund(&key, cost)
    }

    fn clean_up(&self, now: Nanos) {
        self.0.clean_up_at(now);
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        self.0.set_quota_at((), quota, now, Inheritance::Level).expect("there is one quota");
    }

    fn level(&self, key: u8, now: Nanos) -> Option<u64> {
        self.0.inspect_at(&key, now).map(|seen| seen.level)
    }

    fn keys(&self) -> usize {
        let mut keys = 0;
        self.0.for_each_at(Nanos::ZERO, |_, _| keys += 1);
        promise!(keys == self.0.len(), "{keys} keys, of which {} are counted", self.0.len());
        keys
    }
}

/// The hash that sends even and odd keys to different shards of two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parity;

impl BuildHasher for Parity {
    type Hasher = ParityHasher;

    fn build_hasher(&self) -> ParityHasher {
        ParityHasher(0)
    }
}

/// See [`Parity`].
#[derive(Debug)]
pub struct ParityHasher(u64);

impl Hasher for ParityHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash << 8 | u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        // Core takes shards from bit 40 on.
        self.0 << 40 | self.0
    }
}
