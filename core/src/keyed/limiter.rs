//! Deciding on keys: under a shard's lock for reading where the key is there, for writing at its first use.

use core::hash::BuildHasher;

use lock_api::RawRwLock;

use super::decided::{DecidedBy, KeyedDecision};
use super::lookup::Lookup;
use super::overflow::{Overflow, not_final};
use super::quotas::Quotas;
use super::readings::{Given, Own, Readings};
use super::shard::Shard;
use super::store::KeyedTokenBucket;
use crate::decision::{Admitted, Decision, Denied, Remaining};
use crate::observer::{Observer, report};
use crate::{BucketState, Clock, Limit, Nanos};

impl<K, R: RawRwLock, S: BuildHasher, C, O: Observer, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q>
where
    K: core::hash::Hash,
{
    /// Takes `cost` tokens of `key` at the reading `now`, or nothing.
    ///
    /// One reading can serve all limiters of a request. It must come from a clock with the same origin every time.
    ///
    /// # Errors
    /// [`Denied::RateLimited`] when too little is left, [`Denied::CostExceedsLimit`] when `cost` is more than the
    /// capacity, [`Denied::TooManyKeys`] as [`Overflow::Deny`] says, [`Denied::Closed`] under [`Limit::DenyAll`]. A denial
    /// takes nothing.
    #[inline(always)]
    pub fn try_acquire_at<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos, cost: u64) -> Decision {
        self.decide_at(key, now, cost).decision
    }

    /// As [`try_acquire_at`](Self::try_acquire_at), and tells whether the key's own bucket decided.
    #[inline(always)]
    pub fn decide_at<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos, cost: u64) -> KeyedDecision {
        self.decide_by(key, cost, &Given::new(now))
    }

    #[inline(always)]
    pub(super) fn decide_by<B: Lookup<K> + ?Sized>(
        &self,
        key: &B,
        cost: u64,
        readings: &impl Readings,
    ) -> KeyedDecision {
        let by_key = |decision| KeyedDecision { decision, by: DecidedBy::Key };
        match self.limit {
            Limit::Quota(_) => {}
            Limit::Unlimited => return by_key(Ok(Admitted::new(Remaining::Unlimited, readings.without_clock()))),
            Limit::DenyAll => return by_key(report(&self.observer, readings.now(), cost, Err(Denied::Closed))),
        }
        let hash = self.hasher.hash_one(key);
        let (now, decided) = match self.decide_present(hash, key, cost, readings) {
            Some((now, decision)) => (now, by_key(decision)),
            None => self.decide_first_use(hash, key, cost, readings),
        };
        let _ = report(&self.observer, now, cost, decided.decision);
        decided
    }

    /// Decides under the lock for reading, unless a key has to be added.
    #[inline(always)]
    pub(super) fn decide_present<B: Lookup<K> + ?Sized>(
        &self,
        hash: u64,
        key: &B,
        cost: u64,
        readings: &impl Readings,
    ) -> Option<(Nanos, Decision)> {
        let shard = self.shards[self.index(hash)].read();
        match shard.find(hash, key) {
            Some(entry) => Some(readings.take(shard.cell(entry), shard.step(entry.tier), cost)),
            None => {
                let (now, (_, decision)) = decide_absent(&shard, cost, readings);
                match decision {
                    Ok(_) if cost != 0 => None,
                    decision => Some((now, decision)),
                }
            }
        }
    }

    /// Adds a key in the state after its first decision, or finds that another caller has.
    #[cold]
    #[inline(never)]
    pub(super) fn decide_first_use<B: Lookup<K> + ?Sized>(
        &self,
        hash: u64,
        key: &B,
        cost: u64,
        readings: &impl Readings,
    ) -> (Nanos, KeyedDecision) {
        let index = self.index(hash);
        let mut open = self.open(index);
        if let Some(entry) = open.shard.find(hash, key) {
            let (now, decision) = readings.take(open.shard.cell(entry), open.shard.step(entry.tier), cost);
            return (now, KeyedDecision { decision, by: DecidedBy::Key });
        }
        let (now, (next, decision)) = decide_absent(&open.shard, cost, readings);
        if decision.is_ok() && cost != 0 && !self.add(&mut open, (hash, index), key, next, Q::Tier::default(), now) {
            drop(open);
            let (now, decision) = self.decide_overflow(now, cost, readings);
            return (now, KeyedDecision { decision, by: DecidedBy::Overflow });
        }
        (now, KeyedDecision { decision, by: DecidedBy::Key })
    }

    fn decide_overflow(&self, now: Nanos, cost: u64, readings: &impl Readings) -> (Nanos, Decision) {
        match self.overflow {
            Some(Overflow::Deny) => (now, Err(Denied::TooManyKeys)),
            _ => {
                let (now, decision) = readings.take_shared(&self.shared, cost);
                (now, not_final(decision))
            }
        }
    }

    /// Decides under a quota, and tells no observer.
    pub(super) fn take_silently<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos, cost: u64) -> Decision {
        self.decide_silently(self.hasher.hash_one(key), key, cost, &Given::new(now)).1
    }

    /// The same, of a key whose hash is known, and the reading that it was decided at.
    pub(super) fn decide_silently<B: Lookup<K> + ?Sized>(
        &self,
        hash: u64,
        key: &B,
        cost: u64,
        readings: &impl Readings,
    ) -> (Nanos, Decision) {
        self.decide_present(hash, key, cost, readings).unwrap_or_else(|| {
            let (now, decided) = self.decide_first_use(hash, key, cost, readings);
            (now, decided.decision)
        })
    }

    /// What [`decide_at`](Self::decide_at) would answer, taking, creating and dropping nothing.
    ///
    /// For a new key beyond the cap that is what [`Overflow`] says, though `decide_at` may find it a place of its own, by
    /// dropping keys that have become full.
    pub fn foresee_at<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos, cost: u64) -> KeyedDecision {
        let by_key = |decision| KeyedDecision { decision, by: DecidedBy::Key };
        match self.limit {
            Limit::Quota(_) => {}
            Limit::Unlimited => return by_key(Ok(Admitted::new(Remaining::Unlimited, now))),
            Limit::DenyAll => return by_key(Err(Denied::Closed)),
        }
        let hash = self.hasher.hash_one(key);
        let shard = self.shards[self.index(hash)].read();
        if let Some(entry) = shard.find(hash, key) {
            return by_key(shard.cell(entry).peek(shard.step(entry.tier), now, cost));
        }
        let (step, state) = shard.absent();
        let decision = step.try_acquire(state, now, cost).1;
        if decision.is_ok() && cost != 0 && self.is_full() {
            let decision = match self.overflow {
                Some(Overflow::Deny) => Err(Denied::TooManyKeys),
                _ => not_final(self.shared.peek_at(now, cost)),
            };
            return KeyedDecision { decision, by: DecidedBy::Overflow };
        }
        by_key(decision)
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer; as [`foresee_at`](Self::foresee_at).
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn peek_at<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos, cost: u64) -> Decision {
        self.foresee_at(key, now, cost).decision
    }
}

impl<K, R: RawRwLock, S: BuildHasher, C: Clock, O: Observer, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q>
where
    K: core::hash::Hash,
{
    /// Takes `cost` tokens of `key` now, or nothing.
    ///
    /// Without a limit the request is admitted at [`Nanos::ZERO`]: no table is touched, no clock is read and nobody is told.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    #[inline(always)]
    pub fn try_acquire<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64) -> Decision {
        if let Limit::Unlimited = self.limit {
            return Ok(Admitted::new(Remaining::Unlimited, Nanos::ZERO));
        }
        self.decide(key, cost).decision
    }

    /// As [`try_acquire`](Self::try_acquire), and tells whether the key's own bucket decided.
    #[inline(always)]
    pub fn decide<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64) -> KeyedDecision {
        self.decide_by(key, cost, &Own::new(&self.clock))
    }

    /// What [`try_acquire`](Self::try_acquire) would answer; as [`foresee_at`](Self::foresee_at).
    ///
    /// # Errors
    /// As `try_acquire`.
    pub fn peek<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64) -> Decision {
        if self.limit.quota().is_none() {
            return self.peek_at(key, self.reading(), cost);
        }
        // The word before the clock: see `BucketCell::try_acquire_by`.
        let of_present = self.with_cell(key, |step, cell| {
            let state = cell.seen();
            step.try_acquire(state, self.clock.now(), cost).1
        });
        of_present.unwrap_or_else(|| self.peek_at(key, self.reading(), cost))
    }
}

/// What a key that is absent is told, in a shard that is locked.
///
/// Callers with later readings may have dropped keys, and absent keys count as spent as far as those were. While the shard is locked nobody
/// drops more, so a reading taken now lies behind none of them.
#[inline(always)]
fn decide_absent<K, Q: Quotas>(
    shard: &Shard<K, Q>,
    cost: u64,
    readings: &impl Readings,
) -> (Nanos, (BucketState, Decision)) {
    let (step, state) = shard.absent();
    let now = readings.now();
    (now, step.try_acquire(state, now, cost))
}
