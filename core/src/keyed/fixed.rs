//! A store of keys in an array, for one caller at a time.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::decided::{DecidedBy, KeyedDecision};
use super::lookup::Lookup;
use super::overflow::{Overflow, not_final};
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::{BucketState, BucketStep, Clock, Limit, Nanos};

/// A token bucket for each key, in an array of `N` slots: no allocator, no lock, no atomics.
///
/// It is for bare targets, and for whoever has a lock already; it takes `&mut self`. For many threads there is
/// `KeyedTokenBucket` (feature `keyed`).
///
/// # Guarantees
///
/// - Each key's bucket keeps the law of [`TokenBucket`](crate::TokenBucket). The whole key is the identity.
/// - *No amnesty*: only an entry that equals an absent key is dropped, which is one that has become full again. Under a clock
///   that steps back, an absent key counts as spent up to where dropped ones were.
/// - *One reading far ahead shuts out nobody but the keys that spend at it.* While there are places it drops nothing, because
///   clean-up goes by the earlier of two readings. Where keys are dropped to make a place, or by
///   [`clean_up_at`](Self::clean_up_at), a new key then waits no longer than the most spent of those still had to. Only where two
///   readings are far ahead, and keys that spent at the first are dropped at the second, do new keys wait as long.
/// - *Bounded*: it holds up to [`CAP`](Self::CAP) keys, seven eighths of its slots. Beyond, [`Overflow`] decides, and
///   [`decide`](Self::decide) says so.
/// - A refusal, a look and a cost of 0 create nothing.
///
/// # Trade-offs
///
/// Its size is fixed: a key and two words a slot, and what aligning them takes. The eighth that is never used keeps lookups
/// short when all others are. A key that is added looks for others to drop at 4 slots, and at all of them where there is no
/// place left. Where clients choose keys, the hasher must be seeded and resist them.
///
/// # Complexity
///
/// O(1) for a present key and where there is a place; O(`N`) for a new key without one.
///
/// # Example
///
/// ```
/// use core::hash::BuildHasherDefault;
/// use std::hash::DefaultHasher;
/// use sluicegate_core::{FixedKeyedTokenBucket, Limit, ManualClock, Overflow, quota};
///
/// let mut sensors: FixedKeyedTokenBucket<u16, BuildHasherDefault<DefaultHasher>, ManualClock, 64> =
///     FixedKeyedTokenBucket::new(Limit::Quota(quota!("2/1m")), Overflow::Deny);
/// assert!(sensors.try_acquire(&7, 2).is_ok());
/// assert!(sensors.try_acquire(&7, 1).is_err());
/// assert!(sensors.try_acquire(&8, 1).is_ok());
/// ```
pub struct FixedKeyedTokenBucket<K, S, C, const N: usize> {
    /// Linear probing: a key is in the first slot from its own on that was free, and no slot between is free.
    slots: [Option<(K, BucketState)>; N],
    len: usize,
    /// The slot that clean-up looks at next.
    cursor: usize,
    /// The state of every key that is absent: the furthest of those that were dropped.
    absent: BucketState,
    /// The last reading at which a key was added, and the earlier of that and the one before, which clean-up by the way goes by:
    /// so one reading ahead of all others drops nothing.
    seen: Nanos,
    confirmed: Nanos,
    limit: Limit,
    step: Option<BucketStep>,
    overflow: Overflow,
    shared: Option<BucketStep>,
    shared_state: BucketState,
    hasher: S,
    clock: C,
}

impl<K, S: Default, C: Clock + Default, const N: usize> FixedKeyedTokenBucket<K, S, C, N> {
    /// No keys yet, on the default clock and hasher.
    pub fn new(limit: Limit, overflow: Overflow) -> Self {
        Self::with_parts(limit, overflow, S::default(), C::default())
    }
}

impl<K, S, C, const N: usize> FixedKeyedTokenBucket<K, S, C, N> {
    /// The most keys that there will be at any time.
    pub const CAP: usize = N - N / 8;

    /// No keys yet, on `clock` and `hasher`, in a constant too.
    pub const fn with_parts(limit: Limit, overflow: Overflow, hasher: S, clock: C) -> Self {
        let shared = match overflow {
            Overflow::Shared(limit) => prepared(limit),
            Overflow::Deny => None,
        };
        Self {
            slots: [const { None }; N],
            len: 0,
            cursor: 0,
            absent: BucketState::FULL,
            seen: Nanos::ZERO,
            confirmed: Nanos::ZERO,
            limit,
            step: prepared(limit),
            overflow,
            shared,
            shared_state: BucketState::FULL,
            hasher,
            clock,
        }
    }

    /// The limit of each key.
    pub const fn limit(&self) -> Limit {
        self.limit
    }

    /// The number of keys: those that have spent something and were not yet found full again.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no keys.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Gives back `cost` tokens of a request that was [`DecidedBy::Overflow`].
    pub fn refund_overflow(&mut self, cost: u64) {
        if let Some(step) = &self.shared {
            self.shared_state = step.refund(self.shared_state, cost);
        }
    }

    /// Shows every key to `show`, with its tokens at `now`, in no order.
    pub fn for_each_at(&self, now: Nanos, mut show: impl FnMut(&K, Inspection)) {
        if let Some(step) = &self.step {
            for (key, state) in self.slots.iter().flatten() {
                show(key, step.inspect(*state, now));
            }
        }
    }
}

impl<K: Hash, S: BuildHasher, C, const N: usize> FixedKeyedTokenBucket<K, S, C, N> {
    /// Takes `cost` tokens of `key` at the reading `now`, or nothing.
    ///
    /// # Errors
    /// [`Denied::RateLimited`] when too little is left, [`Denied::CostExceedsLimit`] when `cost` is more than the
    /// capacity, [`Denied::TooManyKeys`] as [`Overflow::Deny`] says, [`Denied::Closed`] under [`Limit::DenyAll`]. A denial
    /// takes nothing.
    pub fn try_acquire_at<B: Lookup<K> + ?Sized>(&mut self, key: &B, now: Nanos, cost: u64) -> Decision {
        self.decide_at(key, now, cost).decision
    }

    /// As [`try_acquire_at`](Self::try_acquire_at), and tells whether the key's own bucket decided.
    pub fn decide_at<B: Lookup<K> + ?Sized>(&mut self, key: &B, now: Nanos, cost: u64) -> KeyedDecision {
        let Some(step) = &self.step else { return by_key(self.without_quota(now)) };
        let slot = self.position(key);
        if let Some((_, state)) = slot.and_then(|slot| self.slots.get_mut(slot)?.as_mut()) {
            let (next, decision) = step.try_acquire(*state, now, cost);
            *state = next;
            return by_key(decision);
        }
        let (next, decision) = step.try_acquire(self.absent, now, cost);
        if decision.is_err() || cost == 0 {
            return by_key(decision);
        }
        if self.len < Self::CAP {
            self.clean_some(now);
        } else {
            self.clean_up_at(now);
        }
        if self.len >= Self::CAP {
            return KeyedDecision { decision: self.take_shared(now, cost), by: DecidedBy::Overflow };
        }
        self.insert(key.to_key(), next);
        by_key(decision)
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking, creating and dropping nothing.
    ///
    /// For a new key beyond the cap that is what [`Overflow`] says, though `try_acquire_at` may find it a place of its own, by
    /// dropping keys that have become full.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn peek_at<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos, cost: u64) -> Decision {
        let Some(step) = &self.step else { return self.without_quota(now) };
        if let Some(state) = self.state(key) {
            return step.try_acquire(state, now, cost).1;
        }
        let decision = step.try_acquire(self.absent, now, cost).1;
        if decision.is_err() || cost == 0 || self.len < Self::CAP {
            return decision;
        }
        self.ask_shared(now, cost).1
    }

    /// The tokens of `key` at `now`, or `None` if it is not in the store. Changes nothing.
    pub fn inspect_at<B: Lookup<K> + ?Sized>(&self, key: &B, now: Nanos) -> Option<Inspection> {
        let step = self.step.as_ref()?;
        Some(step.inspect(self.state(key)?, now))
    }

    /// Gives back `cost` tokens that the key's own bucket gave, and tells whether there is one.
    pub fn refund<B: Lookup<K> + ?Sized>(&mut self, key: &B, cost: u64) -> bool {
        self.change(key, |step, state| step.refund(state, cost))
    }

    /// Gives `key` its full budget back, and tells whether it is in the store. A key that is not is as new, and stays so.
    pub fn reset<B: Lookup<K> + ?Sized>(&mut self, key: &B) -> bool {
        self.change(key, |_, _| BucketState::FULL)
    }

    /// Forgets `key` and what it has spent, and tells whether it was in the store. Its next use is that of a new key.
    pub fn remove<B: Lookup<K> + ?Sized>(&mut self, key: &B) -> bool {
        let position = self.position(key);
        if let Some(slot) = position {
            self.vacate(slot);
        }
        position.is_some()
    }

    /// Drops every key that is full at `now`.
    pub fn clean_up_at(&mut self, now: Nanos) {
        let mut slot = 0;
        while slot < N {
            // Where one was dropped another one may have moved up.
            slot += usize::from(!self.clean_slot(slot, now));
        }
    }

    fn clean_some(&mut self, now: Nanos) {
        // The same reading again confirms nothing.
        if now != self.seen {
            self.confirmed = now.min(self.seen);
            self.seen = now;
        }
        for _ in 0..SLOTS_PER_INSERTION {
            if self.cursor >= N {
                self.cursor = 0;
            }
            self.cursor += usize::from(!self.clean_slot(self.cursor, self.confirmed));
        }
    }

    /// Drops what is in a slot if it equals an absent key, and tells whether it did.
    fn clean_slot(&mut self, slot: usize, now: Nanos) -> bool {
        let (Some(step), Some(Some((_, state)))) = (&self.step, self.slots.get(slot)) else { return false };
        if !step.is_full(*state, now) || !step.is_full(self.absent, now) {
            return false;
        }
        self.absent = BucketState::from_bits(self.absent.to_bits().max(state.to_bits()));
        self.vacate(slot);
        true
    }

    fn home<B: Hash + ?Sized>(&self, key: &B) -> usize {
        home_of(&self.hasher, key, N)
    }

    fn position<B: Lookup<K> + ?Sized>(&self, key: &B) -> Option<usize> {
        let home = self.home(key);
        for slot in (home..N).chain(0..home) {
            match self.slots.get(slot) {
                Some(Some((present, _))) if key.is(present) => return Some(slot),
                Some(Some(_)) => {}
                _ => return None,
            }
        }
        None
    }

    fn state<B: Lookup<K> + ?Sized>(&self, key: &B) -> Option<BucketState> {
        let (_, state) = self.slots.get(self.position(key)?)?.as_ref()?;
        Some(*state)
    }

    fn change<B: Lookup<K> + ?Sized>(
        &mut self,
        key: &B,
        change: impl FnOnce(&BucketStep, BucketState) -> BucketState,
    ) -> bool {
        let position = self.position(key);
        let entry = position.and_then(|slot| self.slots.get_mut(slot)?.as_mut());
        let (Some((_, state)), Some(step)) = (entry, &self.step) else { return false };
        *state = change(step, *state);
        true
    }

    /// Puts a key that is absent where it will be found. There is a free slot.
    fn insert(&mut self, key: K, state: BucketState) {
        let home = self.home(&key);
        let free = (home..N).chain(0..home).find(|slot| matches!(self.slots.get(*slot), Some(None)));
        if let Some(slot) = free.and_then(|slot| self.slots.get_mut(slot)) {
            *slot = Some((key, state));
            self.len += 1;
        }
    }

    /// Empties a slot, and moves those up that would no longer be found behind it.
    fn vacate(&mut self, slot: usize) {
        let Some(taken) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        let mut hole = Hole { slots: &mut self.slots, at: slot, taken: Some(taken) };
        for next in (slot + 1..N).chain(0..slot) {
            let Some(Some((key, _))) = hole.slots.get(next) else { break };
            let home = home_of(&self.hasher, key, N);
            // How far the key is from its own slot, and from the hole, both going round.
            let (from_home, from_hole) = ((next + N - home) % N, (next + N - hole.at) % N);
            if from_home >= from_hole {
                hole.slots.swap(hole.at, next);
                hole.at = next;
            }
        }
        let taken = hole.taken.take();
        drop(hole);
        self.len -= 1;
        // Last, because dropping a key may panic.
        drop(taken);
    }

    fn ask_shared(&self, now: Nanos, cost: u64) -> (BucketState, Decision) {
        match (&self.shared, self.overflow) {
            (Some(step), _) => {
                let (next, decision) = step.try_acquire(self.shared_state, now, cost);
                (next, not_final(decision))
            }
            (None, Overflow::Deny) => (self.shared_state, Err(Denied::TooManyKeys)),
            (None, Overflow::Shared(limit)) => (self.shared_state, not_final(answer_without_quota(limit, now))),
        }
    }

    fn take_shared(&mut self, now: Nanos, cost: u64) -> Decision {
        let (next, decision) = self.ask_shared(now, cost);
        self.shared_state = next;
        decision
    }

    fn without_quota(&self, now: Nanos) -> Decision {
        answer_without_quota(self.limit, now)
    }
}

impl<K: Hash, S: BuildHasher, C: Clock, const N: usize> FixedKeyedTokenBucket<K, S, C, N> {
    /// Takes `cost` tokens of `key` now, or nothing. Without a limit no clock is read.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    pub fn try_acquire<B: Lookup<K> + ?Sized>(&mut self, key: &B, cost: u64) -> Decision {
        self.decide(key, cost).decision
    }

    /// As [`try_acquire`](Self::try_acquire), and tells whether the key's own bucket decided.
    pub fn decide<B: Lookup<K> + ?Sized>(&mut self, key: &B, cost: u64) -> KeyedDecision {
        let now = if let Limit::Unlimited = self.limit { Nanos::ZERO } else { self.clock.now() };
        self.decide_at(key, now, cost)
    }
}

impl<K, S, C, const N: usize> fmt::Debug for FixedKeyedTokenBucket<K, S, C, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FixedKeyedTokenBucket")
            .field("limit", &self.limit)
            .field("keys", &self.len)
            .field("cap", &Self::CAP)
            .field("overflow", &self.overflow)
            .finish_non_exhaustive()
    }
}

const fn prepared(limit: Limit) -> Option<BucketStep> {
    match limit {
        Limit::Quota(quota) => Some(BucketStep::new(quota)),
        Limit::Unlimited | Limit::DenyAll => None,
    }
}

fn answer_without_quota(limit: Limit, now: Nanos) -> Decision {
    match limit {
        Limit::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
        Limit::DenyAll | Limit::Quota(_) => Err(Denied::Closed),
    }
}

const fn by_key(decision: Decision) -> KeyedDecision {
    KeyedDecision { decision, by: DecidedBy::Key }
}

/// As in the store with locks.
const SLOTS_PER_INSERTION: usize = 4;

/// The slot where a search for a key begins.
fn home_of<B: Hash + ?Sized>(hasher: &impl BuildHasher, key: &B, slots: usize) -> usize {
    // There is a slot where there is one to be found.
    (hasher.hash_one(key) % (slots as u64).max(1)) as usize
}

/// A slot whose entry is on its way out, while others move up. Should hashing one of them panic, what was taken goes where the
/// hole is by then: all are found again, and nobody is forgotten.
struct Hole<'s, T> {
    slots: &'s mut [Option<T>],
    at: usize,
    taken: Option<T>,
}

impl<T> Drop for Hole<'_, T> {
    fn drop(&mut self) {
        if let Some(slot) = self.slots.get_mut(self.at).filter(|_| self.taken.is_some()) {
            *slot = self.taken.take();
        }
    }
}
