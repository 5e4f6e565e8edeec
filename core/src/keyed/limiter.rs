//! The store of keys that most programs use: a limit for each key, shards behind locks, a hasher, a clock and an observer.

use alloc::boxed::Box;
use core::fmt;
use core::hash::BuildHasher;

use lock_api::{RawRwLock, RwLock, RwLockWriteGuard};

use super::decided::{DecidedBy, KeyedDecision};
use super::lookup::Lookup;
use super::options::KeyedOptions;
use super::overflow::{Overflow, not_final};
use super::quotas::{OneQuota, Quotas};
use super::shard::{Entry, Shard, most_bytes};
use crate::decision::{Admitted, Decision, Denied, Remaining};
use crate::observer::{Observer, report};
use crate::sync::{AtomicU64, Ordering};
use crate::{AdjustableBucket, BucketCell, BucketState, CachePadded, Clock, Debit, Limit, Nanos};

/// A token bucket for each key, in bounded memory: for clients, addresses, users or resources by the million.
///
/// A key takes its own size and one word, and nothing before its first use. The whole key is the identity: two keys never
/// share budget, whatever their hashes.
///
/// # Guarantees
///
/// - Each key's bucket keeps the law of [`TokenBucket`], from any number of racing callers. First use is
///   no exception: raced by any number, a new key admits exactly its limit.
/// - A decision on a present key takes its shard's lock for reading only, and any number of them run at once. A new key, and
///   whatever drops keys, takes one shard's lock for writing.
/// - *No amnesty*: only an entry that equals an absent key is dropped, which is one that has become full again. Under a clock
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
/// there is no place left at 8 more of its own and 8 of another shard's; up to a cap of 64, at all. A table that would have to grow is looked through
/// first, and made anew for a third more keys than were left, so that it shrinks as well. Where there are places, this goes by
/// the earlier of the last two readings at which keys were added to a shard. [`clean_up`](Self::clean_up) does
/// all of it at once. An idle store does nothing, and keeps what it has until one of these.
///
/// # Trade-offs
///
/// The price of a lookup is a hash, a lock and a probe. Where the same key decides often, a [`TokenBucket`] of its own is
/// cheaper. A first use that finds its table full looks through that shard's keys, some nanoseconds each, while others wait
/// for it; more shards make that shorter.
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
    cap: u64,
    /// As it was asked for. Where it was not, the shared limiter has the default quota, and follows it.
    pub(super) overflow: Option<Overflow>,
    pub(super) shared: CachePadded<AdjustableBucket<()>>,
    counts: CachePadded<Counts>,
    /// Held by whoever changes a quota, so that changes follow one another. No decision touches it.
    pub(super) changes: RwLock<R, ()>,
}

/// A shard on cache lines of its own, so that callers of two do not slow each other down.
type Locked<K, R, Q> = CachePadded<RwLock<R, Shard<K, Q>>>;

/// What all shards share, and no decision on a present key touches.
pub(super) struct Counts {
    /// Keys, and places claimed for keys that are about to be. Relaxed: the number alone is what matters, and all changes of
    /// it are in one order, in which it never exceeds the cap.
    keys: AtomicU64,
    /// Whose turn it is to be cleaned by a first use that found no place. Relaxed: any number will do.
    turn: AtomicU64,
}

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
            counts: CachePadded::new(Counts { keys: AtomicU64::new(0), turn: AtomicU64::new(0) }),
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
        self.counts.keys.load(Ordering::Relaxed) as usize
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are as many keys as there may be.
    pub(super) fn is_full(&self) -> bool {
        self.counts.keys.load(Ordering::Relaxed) >= self.cap
    }

    /// The place of a hash's shard. The table goes by the lowest bits and the 7 highest.
    #[inline(always)]
    fn index(&self, hash: u64) -> usize {
        (hash >> SHARD_SHIFT) as usize & (self.shards.len() - 1)
    }
}

impl<K, R: RawRwLock, S, C, O, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// The most bytes that the store will ever allocate, besides what keys own themselves.
    ///
    /// With e the size of a key, a word and a tier, it is 6.1 (e + 1) bytes a key, the last rehash of every table included, for
    /// the [`cap`](Self::cap) and what spreads unevenly: six standard deviations more in each shard, which a hasher that spreads
    /// keys hardly ever exceeds. Each shard has a table of tiers besides. A settled store takes about 1.2 to 2.3 (e + 1) bytes a key.
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
        self.decide_by(key, now, cost, || None)
    }

    /// `later` is asked for a newer reading when a key that is absent is denied, and says `None` when it has none.
    #[inline(always)]
    fn decide_by<B: Lookup<K> + ?Sized>(
        &self,
        key: &B,
        mut now: Nanos,
        cost: u64,
        later: impl Fn() -> Option<Nanos>,
    ) -> KeyedDecision {
        let by_key = |decision| KeyedDecision { decision, by: DecidedBy::Key };
        match self.limit {
            Limit::Quota(_) => {}
            Limit::Unlimited => return by_key(Ok(Admitted::new(Remaining::Unlimited, now))),
            Limit::DenyAll => return by_key(report(&self.observer, now, cost, Err(Denied::Closed))),
        }
        let hash = self.hasher.hash_one(key);
        let decided = match self.decide_present(hash, key, &mut now, cost, &later) {
            Some(decision) => by_key(decision),
            None => self.decide_first_use(hash, key, &mut now, cost, &later),
        };
        let _ = report(&self.observer, now, cost, decided.decision);
        decided
    }

    /// Decides under the lock for reading, unless a key has to be added.
    #[inline(always)]
    fn decide_present<B: Lookup<K> + ?Sized>(
        &self,
        hash: u64,
        key: &B,
        now: &mut Nanos,
        cost: u64,
        later: &impl Fn() -> Option<Nanos>,
    ) -> Option<Decision> {
        let shard = self.shards[self.index(hash)].read();
        match shard.find(hash, key) {
            Some(entry) => Some(entry.cell.try_acquire(shard.step(entry.tier), *now, cost)),
            None => match decide_absent(&shard, now, cost, later).1 {
                Ok(_) if cost != 0 => None,
                decision => Some(decision),
            },
        }
    }

    /// Adds a key in the state after its first decision, or finds that another caller has.
    #[cold]
    #[inline(never)]
    fn decide_first_use<B: Lookup<K> + ?Sized>(
        &self,
        hash: u64,
        key: &B,
        now: &mut Nanos,
        cost: u64,
        later: &impl Fn() -> Option<Nanos>,
    ) -> KeyedDecision {
        let index = self.index(hash);
        let mut open = self.open(index);
        if let Some(entry) = open.shard.find(hash, key) {
            let decision = entry.cell.try_acquire(open.shard.step(entry.tier), *now, cost);
            return KeyedDecision { decision, by: DecidedBy::Key };
        }
        let (next, decision) = decide_absent(&open.shard, now, cost, later);
        let now = *now;
        if decision.is_ok() && cost != 0 && !self.add(&mut open, (hash, index), key, next, Q::Tier::default(), now) {
            drop(open);
            return KeyedDecision { decision: self.decide_overflow(now, cost), by: DecidedBy::Overflow };
        }
        KeyedDecision { decision, by: DecidedBy::Key }
    }

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
        let entry = Entry { key: key.to_key(), cell: BucketCell::with_state(state), tier };
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
        open.shard.clean_by_the_way(now);
        if found(open, self.cap) {
            return true;
        }
        let (slots, others) =
            if self.cap <= LOOKED_THROUGH { (usize::MAX, self.shards.len()) } else { (SLOTS_PER_OVERFLOW, 1) };
        open.shard.clean_some(now, slots);
        if found(open, self.cap) {
            return true;
        }
        let turn = self.counts.turn.fetch_add(1, Ordering::Relaxed);
        for other in 0..others as u64 {
            // Unless someone is in it: waiting for a second lock could wait in a circle.
            let other = turn.wrapping_add(other) as usize & (self.shards.len() - 1);
            if other != index {
                if let Some(shard) = self.shards[other].try_write() {
                    Open::new(shard, &self.counts).shard.clean_some(now, slots);
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

    fn decide_overflow(&self, now: Nanos, cost: u64) -> Decision {
        match self.overflow {
            Some(Overflow::Deny) => Err(Denied::TooManyKeys),
            _ => not_final(self.shared.try_acquire_at(now, cost)),
        }
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
            return by_key(entry.cell.peek(shard.step(entry.tier), now, cost));
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

    /// Gives back `cost` tokens that the key's own bucket gave, and tells whether there is one.
    ///
    /// Where there is none, the key has become full since and nothing is missing, or [`Overflow`] had decided, see
    /// [`refund_overflow`](Self::refund_overflow). No clock is read.
    pub fn refund<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64) -> bool {
        let is_found = self.with_entry(key, |step, entry| entry.cell.refund(step, cost)).is_some();
        if is_found {
            self.observer.refunded(cost);
        }
        is_found
    }

    /// Takes `cost` tokens of `key` at `now` whether or not they are there, for what has already happened, as far as the
    /// quota's [`debt`](crate::Quota::debt) reaches. See [`BucketStep::debit`](crate::BucketStep::debit).
    ///
    /// A new key is added; beyond the cap the limiter that such keys share is charged instead, as far as [`Overflow`] has one.
    /// Without a limit all of it counts as charged; under [`Limit::DenyAll`] none of it does.
    pub fn debit_at<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos, cost: u64) -> Debit {
        match self.limit {
            Limit::Quota(_) => {}
            Limit::Unlimited => return Debit { charged: cost, unpaid: 0 },
            Limit::DenyAll => return Debit { charged: 0, unpaid: cost },
        }
        let debit = self
            .with_entry(key, |step, entry| entry.cell.debit(step, now, cost))
            .unwrap_or_else(|| self.debit_first_use(key, now, cost));
        self.observer.debited(now, &debit);
        debit
    }

    fn debit_first_use<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos, cost: u64) -> Debit {
        let nothing = Debit { charged: 0, unpaid: cost };
        let Some((hash, index, mut open)) = self.open_for(key) else { return nothing };
        if let Some(entry) = open.shard.find(hash, key) {
            return entry.cell.debit(open.shard.step(entry.tier), now, cost);
        }
        let (step, state) = open.shard.absent();
        let (next, debit) = step.debit(state, now, cost);
        if debit.charged == 0 || self.add(&mut open, (hash, index), key, next, Q::Tier::default(), now) {
            return debit;
        }
        drop(open);
        match self.overflow {
            Some(Overflow::Deny) => nothing,
            _ => self.shared.debit_at(now, cost),
        }
    }

    /// Gives back `cost` tokens of a request that was [`DecidedBy::Overflow`].
    pub fn refund_overflow(&self, cost: u64) {
        self.shared.refund(cost);
        self.observer.refunded(cost);
    }

    /// Decides under a quota, and tells no observer.
    pub(super) fn take_silently<B: Lookup<K> + ?Sized>(&self, key: &B, mut now: Nanos, cost: u64) -> Decision {
        let hash = self.hasher.hash_one(key);
        match self.decide_present(hash, key, &mut now, cost, &|| None) {
            Some(decision) => decision,
            None => self.decide_first_use(hash, key, &mut now, cost, &|| None).decision,
        }
    }

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
            Some(entry) => run(shard.step(entry.tier), entry.cell.state(), true),
            None => {
                let (step, state) = shard.absent();
                run(step, state, false)
            }
        })
    }

    pub(super) fn with_entry<B: Lookup<K> + ?Sized, T>(
        &self,
        key: &B,
        run: impl FnOnce(&crate::BucketStep, &Entry<K, Q::Tier>) -> T,
    ) -> Option<T> {
        // Without a quota there are no shards.
        self.limit.quota()?;
        let hash = self.hasher.hash_one(key);
        let shard = self.shards[self.index(hash)].read();
        shard.find(hash, key).map(|entry| run(shard.step(entry.tier), entry))
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
        self.decide(key, cost).decision
    }

    /// As [`try_acquire`](Self::try_acquire), and tells whether the key's own bucket decided.
    #[inline(always)]
    pub fn decide<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64) -> KeyedDecision {
        self.decide_by(key, self.reading(), cost, || Some(self.reading()))
    }

    /// Takes `cost` tokens of `key` now whether or not they are there; see [`debit_at`](Self::debit_at).
    pub fn debit<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64) -> Debit {
        self.debit_at(key, self.reading(), cost)
    }

    /// What [`try_acquire`](Self::try_acquire) would answer; as [`foresee_at`](Self::foresee_at).
    ///
    /// # Errors
    /// As `try_acquire`.
    pub fn peek<B: Lookup<K> + ?Sized>(&self, key: &B, cost: u64) -> Decision {
        self.peek_at(key, self.reading(), cost)
    }

    /// The reading now; without a limit none.
    #[inline]
    pub(super) fn reading(&self) -> Nanos {
        if let Limit::Unlimited = self.limit { Nanos::ZERO } else { self.clock.now() }
    }
}

/// What a key that is absent is told, in a shard that is locked.
///
/// Other callers with later readings may have dropped keys since this one read its clock, and absent keys count as spent as
/// far as those. While the shard is locked nobody drops more, so a reading taken now lies behind none of them.
fn decide_absent<K, Q: Quotas>(
    shard: &Shard<K, Q>,
    now: &mut Nanos,
    cost: u64,
    later: &impl Fn() -> Option<Nanos>,
) -> (BucketState, Decision) {
    let (step, state) = shard.absent();
    let decided = step.try_acquire(state, *now, cost);
    let Err(Denied::RateLimited { .. }) = decided.1 else { return decided };
    match later() {
        Some(reading) if reading > *now => {
            *now = reading;
            step.try_acquire(state, reading, cost)
        }
        _ => decided,
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
    fn new(shard: RwLockWriteGuard<'a, R, Shard<K, Q>>, counts: &'a Counts) -> Self {
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

/// More than by the way, because here a place is worth waiting for.
const SLOTS_PER_OVERFLOW: usize = 8;
/// A store of so few keys is looked through whole, some nanoseconds a key, so that a place is found at once.
const LOOKED_THROUGH: u64 = 64;
/// Bits 40 to 55: neither the 7 highest nor the lowest, which the table goes by.
const SHARD_SHIFT: u32 = 40;
/// As many as those bits tell apart.
const MOST_SHARDS: usize = 1 << 16;
