//! Giving back what a key took, and charging it for what has already happened.

use core::hash::{BuildHasher, Hash};

use lock_api::RawRwLock;

use super::lookup::Lookup;
use super::overflow::Overflow;
use super::quotas::Quotas;
use super::readings::{Given, Own, Readings};
use super::store::KeyedTokenBucket;
use crate::{Clock, Debit, Limit, Nanos, Observer};

impl<K: Hash, R: RawRwLock, S: BuildHasher, C, O: Observer, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// Gives back `cost` tokens that the key's own bucket gave, and tells whether there is one.
    ///
    /// Where there is none, the key has become full since and nothing is missing, or [`Overflow`] had decided, see
    /// [`refund_overflow`](Self::refund_overflow). No clock is read.
    pub fn refund<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64) -> bool {
        let returned = self.with_cell(key, |step, cell| cell.give_back(step, cost));
        if let Some(returned) = returned {
            self.observer.refunded(returned);
        }
        returned.is_some()
    }

    /// Gives back `cost` tokens of a request that was [`DecidedBy::Overflow`](crate::DecidedBy::Overflow).
    pub fn refund_overflow(&self, cost: u64) {
        if let Some(returned) = self.shared.give_back(cost) {
            self.observer.refunded(returned);
        }
    }

    /// Takes `cost` tokens of `key` at `now` whether or not they are there, for what has already happened, as far as the
    /// quota's [`debt`](crate::Quota::debt) reaches. See [`BucketStep::debit`](crate::BucketStep::debit).
    ///
    /// A new key is added; beyond the cap the limiter that such keys share is charged instead, as far as [`Overflow`] has one.
    /// Without a limit all of it counts as charged; under [`Limit::DenyAll`] none of it does.
    pub fn debit_at<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos, cost: u64) -> Debit {
        self.debit_by(key, cost, &Given::new(now))
    }

    fn debit_by<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64, readings: &impl Readings) -> Debit {
        match self.limit {
            Limit::Quota(_) => {}
            Limit::Unlimited => return Debit { charged: cost, unpaid: 0 },
            Limit::DenyAll => return Debit { charged: 0, unpaid: cost },
        }
        let (now, debit) = self
            .with_cell(key, |step, cell| readings.debit(cell, step, cost))
            .unwrap_or_else(|| self.debit_first_use(key, cost, readings));
        self.observer.debited(now, &debit);
        debit
    }

    fn debit_first_use<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64, readings: &impl Readings) -> (Nanos, Debit) {
        let nothing = Debit { charged: 0, unpaid: cost };
        let Some((hash, index, mut open)) = self.open_for(key) else { return (readings.now(), nothing) };
        if let Some(entry) = open.shard.find(hash, key) {
            return readings.debit(open.shard.cell(entry), open.shard.step(entry.tier), cost);
        }
        let (step, state) = open.shard.absent();
        let now = readings.now();
        let (next, debit) = step.debit(state, now, cost);
        if debit.charged == 0 || self.add(&mut open, (hash, index), key, next, Q::Tier::default(), now) {
            return (now, debit);
        }
        drop(open);
        match self.overflow {
            Some(Overflow::Deny) => (now, nothing),
            _ => readings.debit_shared(&self.shared, cost),
        }
    }
}

impl<K: Hash, R: RawRwLock, S: BuildHasher, C: Clock, O: Observer, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// Takes `cost` tokens of `key` now whether or not they are there; see [`debit_at`](Self::debit_at).
    ///
    /// What is told as unpaid could be paid for at no instant within the call.
    pub fn debit<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64) -> Debit {
        self.debit_by(key, cost, &Own::new(&self.clock))
    }
}
