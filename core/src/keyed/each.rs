//! Deciding on many keys at once, so that they are fetched from memory side by side.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use lock_api::RawRwLock;

use super::lookup::Lookup;
use super::quotas::Quotas;
use super::readings::{Given, Own, Readings};
use super::store::KeyedTokenBucket;
use crate::decision::{Decision, Denied};
use crate::observer::{Observer, report};
use crate::{Clock, Limit, Nanos};

impl<K, R, S, C, O, Q> KeyedTokenBucket<K, R, S, C, O, Q>
where
    K: Hash,
    R: RawRwLock,
    S: BuildHasher,
    O: Observer,
    Q: Quotas,
{
    /// Decides on each of `requests`, a key and its cost, at the reading `now`, as [`try_acquire_at`](Self::try_acquire_at) would on one
    /// after another, and leaves the answers in `decisions`, in their order.
    ///
    /// Each request is its own: one that is denied takes nothing and is in the way of no other. Requests for one key are decided in
    /// their order; those for several keys may be decided, and an observer may be told of them, in another.
    ///
    /// Where keys are too many for the processor's caches, most of a decision's time goes into waiting for memory. Asked for many at
    /// once, the store has several keys fetched at the same time, and takes each shard's lock once for up to 32 of them. For a few
    /// keys, or keys in cache, it gains little.
    ///
    /// What was in `decisions` is replaced. It allocates only if that has room for fewer.
    ///
    /// # Complexity
    /// O(requests). It sorts them by shard, 256 at a time.
    ///
    /// # Example
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use sluicegate_core::{KeyedTokenBucket, ManualClock, Nanos, quota};
    ///
    /// let logins: KeyedTokenBucket<String, parking_lot::RawRwLock, RandomState, ManualClock> =
    ///     KeyedTokenBucket::new(quota!("2/1m"));
    /// let mut decisions = Vec::new();
    /// logins.try_acquire_each_at(Nanos::ZERO, &[("ada", 2), ("grace", 1), ("ada", 1)], &mut decisions);
    /// assert!(decisions[0].is_ok());
    /// assert!(decisions[1].is_ok());
    /// assert!(decisions[2].is_err());
    /// ```
    pub fn try_acquire_each_at<B: Lookup<K> + ?Sized>(
        &self,
        now: Nanos,
        requests: &[(&B, u64)],
        decisions: &mut Vec<Decision>,
    ) {
        self.decide_each(requests, decisions, &Given::new(now));
    }

    fn decide_each<B: Lookup<K> + ?Sized>(
        &self,
        requests: &[(&B, u64)],
        decisions: &mut Vec<Decision>,
        readings: &impl Readings,
    ) {
        decisions.clear();
        decisions.resize(requests.len(), Err(Denied::Closed));
        let Limit::Quota(_) = self.limit else {
            for ((key, cost), decision) in requests.iter().zip(decisions) {
                *decision = self.decide_by(*key, *cost, readings).decision;
            }
            return;
        };
        for (requests, decisions) in requests.chunks(BATCH).zip(decisions.chunks_mut(BATCH)) {
            let batch = Batch::sorted(requests.iter().map(|(key, _)| {
                let hash = self.hasher.hash_one(*key);
                (hash, self.index(hash))
            }));
            let mut rest = batch.all();
            while let [first, ..] = rest {
                let len = rest.iter().take_while(|next| next.shard == first.shard).count();
                let (of_shard, others) = rest.split_at(len);
                for some in of_shard.chunks(AT_ONCE) {
                    self.decide_in_shard(some, requests, decisions, readings);
                }
                rest = others;
            }
        }
    }

    /// Decides on requests for keys of one shard.
    fn decide_in_shard<B: Lookup<K> + ?Sized>(
        &self,
        of_shard: &[Placed],
        requests: &[(&B, u64)],
        decisions: &mut [Decision],
        readings: &impl Readings,
    ) {
        let Some(first) = of_shard.first() else { return };
        // Of each request, the reading that it was decided at; and a bit for each key that is not there.
        let mut decided_at = [Nanos::ZERO; AT_ONCE];
        let mut absent = 0_u32;
        {
            let shard = self.shards[first.shard as usize].read();
            let now = readings.now();
            shard.fetch(of_shard.iter().map(|placed| placed.hash));
            for ((turn, placed), decided_at) in of_shard.iter().enumerate().zip(&mut decided_at) {
                let (key, cost) = requests[placed.place as usize];
                match shard.find(placed.hash, key) {
                    Some(entry) => {
                        let decision = &mut decisions[placed.place as usize];
                        let (cell, step) = (shard.cell(entry), shard.step(entry.tier));
                        (*decided_at, *decision) = match cell.try_acquire(step, now, cost) {
                            denial @ Err(Denied::RateLimited { .. }) => {
                                readings.again(cell, step, cost).unwrap_or((now, denial))
                            }
                            decision => (now, decision),
                        };
                    }
                    None => absent |= 1 << turn,
                }
            }
        }
        // New keys come last, all requests for one of them in their order.
        for ((turn, placed), decided_at) in of_shard.iter().enumerate().zip(decided_at) {
            let (key, cost) = requests[placed.place as usize];
            let decision = &mut decisions[placed.place as usize];
            let (now, decided) = match absent >> turn & 1 {
                0 => (decided_at, *decision),
                _ => self.decide_silently(placed.hash, key, cost, readings),
            };
            *decision = report(&self.observer, now, cost, decided);
        }
    }
}

impl<K, R, S, C, O, Q> KeyedTokenBucket<K, R, S, C, O, Q>
where
    K: Hash,
    R: RawRwLock,
    S: BuildHasher,
    C: Clock,
    O: Observer,
    Q: Quotas,
{
    /// As [`try_acquire_each_at`](Self::try_acquire_each_at), at readings of the store's clock within the call: one for up to 32 requests, and
    /// one more for whatever is denied at that.
    pub fn try_acquire_each<B: Lookup<K> + ?Sized>(&self, requests: &[(&B, u64)], decisions: &mut Vec<Decision>) {
        self.decide_each(requests, decisions, &Own::new(&self.clock));
    }
}

/// Where a request is among those that are decided at once, and where its key is.
#[derive(Clone, Copy)]
struct Placed {
    hash: u64,
    shard: u32,
    place: u32,
}

/// Requests that are decided at once, by their shards.
struct Batch {
    placed: [Placed; BATCH],
    len: usize,
}

impl Batch {
    /// Those of up to `BATCH` requests, each with its hash and its shard. Requests for the same shard are next to each other where shards
    /// are no more than `SORTED`, and in the order in which they came in any case.
    #[inline(always)]
    fn sorted(requests: impl Iterator<Item = (u64, usize)> + Clone) -> Self {
        let mut batch = Self { placed: [Placed { hash: 0, shard: 0, place: 0 }; BATCH], len: 0 };
        // By counting: to compare shards, which are as good as random, a processor guesses wrong every other time.
        let mut next = [0_u16; SORTED];
        let mut unsorted = [Placed { hash: 0, shard: 0, place: 0 }; BATCH];
        for ((hash, shard), placed) in requests.zip(&mut unsorted) {
            // No more than 2^16 shards, and than `BATCH` places.
            *placed = Placed { hash, shard: shard as u32, place: batch.len as u32 };
            next[shard % SORTED] += 1;
            batch.len += 1;
        }
        let mut before = 0;
        for next in &mut next {
            before += core::mem::replace(next, before);
        }
        for placed in &unsorted[..batch.len] {
            let next = &mut next[placed.shard as usize % SORTED];
            batch.placed[*next as usize % BATCH] = *placed;
            *next += 1;
        }
        batch
    }

    fn all(&self) -> &[Placed] {
        &self.placed[..self.len]
    }
}

/// Requests that are sorted together: enough for `AT_ONCE` in each of the usual number of shards, and 8 KiB on the stack.
const BATCH: usize = 256;
/// What shards are told apart by in sorting.
const SORTED: usize = 64;
/// Keys that are fetched together: more than a processor asks memory for at once.
const AT_ONCE: usize = u32::BITS as usize;
