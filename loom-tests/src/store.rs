//! What the models ask of a store of keys, and core's that answers.

use core::hash::{BuildHasher, Hasher};
use core::num::NonZeroUsize;
use std::sync::Arc;

use sluicegate_core::{
    Decision, Denied, Inheritance, KeyHandle, KeyedOptions, KeyedTokenBucket, ManualClock, Nanos, OneQuota, Overflow,
    Quota, Quotas, Tier, Tiers,
};

use crate::handles::CHANGED;
use crate::keyed::KEY;
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

/// A store whose keys have handles, and which can read a clock.
pub trait Handles: Store {
    /// What decides on a key without the store.
    type Handle: Handle;

    /// A handle of `key`, which is there.
    fn handle(self: &Arc<Self>, key: u8) -> Self::Handle;
    /// Forgets `key`, and says whether it was there.
    fn remove(&self, key: u8) -> bool;
    /// Moves the clock on to `now`. It begins at the origin.
    fn go_on(&self, now: Nanos);
    /// Changes the quota by the clock; keys keep their level.
    fn change_by_clock(&self, quota: Quota);
}

/// A handle of a key. Clones are handles of the same key.
pub trait Handle: Clone + Send + 'static {
    /// Takes `cost` at `now`, or nothing.
    fn decide(&self, now: Nanos, cost: u64) -> Served;
    /// Takes `cost` by the store's clock, or nothing.
    fn decide_by_clock(&self, cost: u64) -> Served;
    /// Whole tokens at `now`.
    fn level(&self, now: Nanos) -> u64;
    /// Whether it decides without the store.
    fn is_current(&self) -> bool;
}

type Keyed<Q> = KeyedTokenBucket<u8, ModelLock, Parity, ManualClock, (), Q>;

/// [`KeyedTokenBucket`], in which the quota of all keys is changed, or the tier of one.
#[derive(Debug)]
pub struct CoreStore<Q: Quotas = OneQuota>(Arc<Keyed<Q>>);

/// A way to change a quota.
pub trait Change: Quotas + Send + Sync + 'static
where
    Self::Tier: Send + Sync,
{
    /// A store that has changed nothing.
    fn store(options: KeyedOptions) -> Keyed<Self>;
    /// Changes the quota at `now`, or by the clock; keys keep their level.
    fn change(store: &Keyed<Self>, quota: Quota, now: Option<Nanos>);
}

impl Change for OneQuota {
    fn store(options: KeyedOptions) -> Keyed<Self> {
        KeyedTokenBucket::with_parts(options, Parity, ManualClock::new())
    }

    fn change(store: &Keyed<Self>, quota: Quota, now: Option<Nanos>) {
        let changed = match now {
            Some(now) => store.set_quota_at((), quota, now, Inheritance::Level),
            None => store.set_quota((), quota, Inheritance::Level),
        };
        changed.expect("there is one quota");
    }
}

/// Gives the key that is raced for the tier of the quota.
impl Change for Tiers {
    fn store(options: KeyedOptions) -> Keyed<Self> {
        KeyedTokenBucket::with_tiers(options, &CHANGED, Parity, ManualClock::new())
    }

    fn change(store: &Keyed<Self>, quota: Quota, now: Option<Nanos>) {
        let tier = Tier(if quota == CHANGED[0] { 1 } else { 2 });
        let changed = match now {
            Some(now) => store.set_tier_at(&KEY, tier, now, Inheritance::Level),
            None => store.set_tier(&KEY, tier, Inheritance::Level),
        };
        changed.expect("there are three tiers");
    }
}

impl<Q: Change> Store for CoreStore<Q>
where
    Q::Tier: Send + Sync,
{
    fn new(quota: Quota, cap: usize) -> Self {
        let options = KeyedOptions::new(quota).cap(cap).overflow(Overflow::Deny);
        let shards = NonZeroUsize::new(2).expect("two is not 0");
        let store = Q::store(options.shards(shards));
        store.clean_up();
        store.set_quota(Q::Tier::default(), quota, Inheritance::Level).expect("there is one quota at least");
        Self(Arc::new(store))
    }

    fn decide(&self, key: u8, now: Nanos, cost: u64) -> Served {
        served(&self.0.try_acquire_at(&key, now, cost))
    }

    fn refund(&self, key: u8, cost: u64) -> bool {
        self.0.refund(&key, cost)
    }

    fn clean_up(&self, now: Nanos) {
        self.0.clean_up_at(now);
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        Q::change(&self.0, quota, Some(now));
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

impl<Q: Change> Handles for CoreStore<Q>
where
    Q::Tier: Send + Sync,
{
    type Handle = KeyHandle<Arc<Keyed<Q>>, u8>;

    fn handle(self: &Arc<Self>, key: u8) -> Self::Handle {
        KeyHandle::new_at(Arc::clone(&self.0), key, Nanos::ZERO).expect("the key is there")
    }

    fn remove(&self, key: u8) -> bool {
        self.0.remove(&key)
    }

    fn go_on(&self, now: Nanos) {
        self.0.clock().set(now);
    }

    fn change_by_clock(&self, quota: Quota) {
        Q::change(&self.0, quota, None);
    }
}

impl<Q: Change> Handle for KeyHandle<Arc<Keyed<Q>>, u8>
where
    Q::Tier: Send + Sync,
{
    fn decide(&self, now: Nanos, cost: u64) -> Served {
        served(&self.try_acquire_at(now, cost))
    }

    fn decide_by_clock(&self, cost: u64) -> Served {
        served(&self.try_acquire(cost))
    }

    fn level(&self, now: Nanos) -> u64 {
        self.inspect_at(now).level
    }

    fn is_current(&self) -> bool {
        self.is_current()
    }
}

fn served(decision: &Decision) -> Served {
    match decision {
        Ok(_) => Served::Admitted,
        Err(Denied::TooManyKeys) => Served::TooManyKeys,
        Err(_) => Served::Denied,
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
