//! One shard: a table of keys and their states, and what becomes of those that are full again.

use hashbrown::HashTable;

use super::lookup::Lookup;
use super::quotas::Quotas;
use crate::{BucketCell, BucketState, BucketStep, Inheritance, Nanos};

/// A key, its state in place, and which quota it has.
pub(super) struct Entry<K, T> {
    pub(super) key: K,
    pub(super) cell: BucketCell,
    pub(super) tier: T,
}

/// A part of the keys, behind one lock.
///
/// Deciding on a present key needs only `&self`, so that many callers do it at once. Whatever adds, drops or converts entries
/// needs `&mut self`, and then no state changes meanwhile.
///
/// It begins a cache line of its own, behind the lock's: a processor may then fetch a key before it has finished locking, where
/// it would have to wait for a line that it is just writing to.
#[repr(align(64))]
pub(super) struct Shard<K, Q: Quotas> {
    table: HashTable<Entry<K, Q::Tier>>,
    quotas: Q,
    /// The slot of the table that clean-up looks at next.
    cursor: usize,
    /// The state of every key that is absent, under the default quota.
    ///
    /// It is the furthest of those that were dropped. They were full when they were, so under a clock that does not go back
    /// an absent key is full. After a step back it is what keeps clean-up from handing out a fresh quota. When the quota
    /// changes, it changes as the states of present keys do.
    ///
    /// A key that was dropped at a reading r had a state of at most what was generated up to r, whatever r was, and mostly much
    /// less. So one reading far ahead that drops keys leaves new ones no less than the most spent of those had, and what spent
    /// at that reading itself is not full at it and stays. Only where a later reading still is as far ahead do new keys wait as
    /// long as those did that spent there. (To take absent keys for full at r itself would keep the law as well, seen from the
    /// latest reading: but then their first request leaves them spent up to r, and shuts them out until then.)
    absent: BucketState,
    /// The last reading at which somebody came for a place.
    seen: Nanos,
    /// The earlier of that and the one before: what clean-up goes by that rides along, so that one reading ahead of all
    /// others drops nothing.
    confirmed: Nanos,
}

impl<K, Q: Quotas> Shard<K, Q> {
    pub(super) fn new(quotas: Q) -> Self {
        Self {
            table: HashTable::new(),
            quotas,
            cursor: 0,
            absent: BucketState::FULL,
            seen: Nanos::ZERO,
            confirmed: Nanos::ZERO,
        }
    }

    #[inline(always)]
    pub(super) fn find<B: Lookup<K> + ?Sized>(&self, hash: u64, key: &B) -> Option<&Entry<K, Q::Tier>> {
        // Most keys of a table are in the slot that their hash names, and both its control byte and its entry can then be
        // fetched at once, where a probe has to wait for the first to know the second: two thirds of the time where keys are
        // too many for a cache. Should hashbrown count slots another way, this finds nothing and costs a comparison.
        let home = hash as usize & (self.table.num_buckets() - 1);
        if let Some(entry) = self.table.get_bucket(home) {
            if key.is(&entry.key) {
                return Some(entry);
            }
        }
        self.table.find(hash, |entry| key.is(&entry.key))
    }

    /// The quota of `tier`.
    #[inline(always)]
    pub(super) fn step(&self, tier: Q::Tier) -> &BucketStep {
        self.quotas.step(tier)
    }

    pub(super) fn quotas(&self) -> &Q {
        &self.quotas
    }

    /// What a key that is absent is decided by.
    pub(super) fn absent(&self) -> (&BucketStep, BucketState) {
        (self.quotas.step(Q::Tier::default()), self.absent)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry<K, Q::Tier>> {
        self.table.iter()
    }

    /// Adds a key that is absent. `hash_of` is called for every key where the table is made anew.
    pub(super) fn insert(&mut self, hash: u64, entry: Entry<K, Q::Tier>, hash_of: impl Fn(&K) -> u64 + Copy) {
        if self.table.len() == self.table.capacity() {
            self.make_room(hash_of);
        }
        self.table.insert_unique(hash, entry, |entry| hash_of(&entry.key));
    }

    pub(super) fn remove<B: Lookup<K> + ?Sized>(&mut self, hash: u64, key: &B) -> bool {
        match self.table.find_entry(hash, |entry| key.is(&entry.key)) {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }

    /// Gives a key that is present another tier, and tells the tier it had and at which reading it was settled.
    pub(super) fn set_tier<B: Lookup<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &B,
        tier: Q::Tier,
        now: Nanos,
        inheritance: Inheritance,
    ) -> Option<(Q::Tier, Nanos)> {
        let entry = self.table.find_mut(hash, |entry| key.is(&entry.key))?;
        let old = core::mem::replace(&mut entry.tier, tier);
        let state = moved(&self.quotas, old, tier, entry.cell.state(), now, inheritance);
        entry.cell = BucketCell::with_state(state);
        Some((old, self.note_move(old, tier, now, inheritance)))
    }

    /// The state of an absent key once it is given `tier`.
    pub(super) fn absent_moved(&self, tier: Q::Tier, now: Nanos, inheritance: Inheritance) -> BucketState {
        moved(&self.quotas, Q::Tier::default(), tier, self.absent, now, inheritance)
    }

    /// Whether a key in `state` that has the default tier equals an absent one from `now` on.
    pub(super) fn equals_absent(&self, state: BucketState, now: Nanos) -> bool {
        let accrued = self.quotas.step(Q::Tier::default()).accrued(now);
        state.to_bits().max(accrued) == self.absent.to_bits().max(accrued)
    }

    /// Remembers that a key came from `old` to `tier` at `now`, and tells at which reading it was settled: the next change of
    /// the tier must not settle it at an earlier one.
    pub(super) fn note_move(&mut self, old: Q::Tier, tier: Q::Tier, now: Nanos, inheritance: Inheritance) -> Nanos {
        let step = *self.quotas.step(tier);
        let at = reading_of_change(&self.quotas, old, now, inheritance);
        // Where it was not settled, it brings along when it last was.
        let settled = if settles(self.quotas.step(old), &step, inheritance) { at } else { self.quotas.changed(old) };
        self.quotas.replace(tier, step, self.quotas.changed(tier).max(settled));
        at
    }

    /// Changes the quota of a tier, and tells at which reading.
    pub(super) fn set_quota(&mut self, tier: Q::Tier, new: &BucketStep, now: Nanos, inheritance: Inheritance) -> Nanos {
        let now = reading_of_change(&self.quotas, tier, now, inheritance);
        let old = *self.quotas.step(tier);
        if !settles(&old, new, inheritance) {
            return now;
        }
        for entry in self.table.iter_mut().filter(|entry| entry.tier == tier) {
            entry.cell = BucketCell::with_state(new.inherit(&old, entry.cell.state(), now, inheritance));
        }
        if tier == Q::Tier::default() {
            self.absent = new.inherit(&old, self.absent, now, inheritance);
        }
        self.quotas.replace(tier, *new, now);
        now
    }

    /// Looks at a few slots on the way of somebody who came for a place at `now`, going by what that confirms.
    pub(super) fn clean_by_the_way(&mut self, now: Nanos) {
        // The same reading again, by the same request perhaps, confirms nothing.
        if now != self.seen {
            self.confirmed = now.min(self.seen);
            self.seen = now;
        }
        self.clean_some(self.confirmed, SLOTS_PER_INSERTION);
    }

    /// Looks at the next `slots` slots, and drops the entries there that equal an absent key.
    pub(super) fn clean_some(&mut self, now: Nanos, slots: usize) {
        let buckets = self.table.num_buckets();
        for _ in 0..slots.min(buckets) {
            // The table may be another one than last time.
            let slot = if self.cursor < buckets { self.cursor } else { 0 };
            self.cursor = slot + 1;
            self.clean_slot(slot, now);
        }
    }

    /// Looks at all of them.
    pub(super) fn clean_all(&mut self, now: Nanos) {
        for slot in 0..self.table.num_buckets() {
            self.clean_slot(slot, now);
        }
    }

    #[inline]
    fn clean_slot(&mut self, slot: usize, now: Nanos) {
        let Some(entry) = self.table.get_bucket(slot) else { return };
        let step = self.quotas.step(Q::Tier::default());
        let state = entry.cell.state();
        // An absent key has the default quota, and is full, except for a while after a change that leaves new keys less.
        let equals_absent =
            entry.tier == Q::Tier::default() && step.is_full(state, now) && step.is_full(self.absent, now);
        if equals_absent {
            if let Ok(entry) = self.table.get_bucket_entry(slot) {
                // First, because dropping the key may panic.
                self.absent = BucketState::from_bits(self.absent.to_bits().max(state.to_bits()));
                entry.remove();
            }
        }
    }

    /// Makes room for as many entries as a third of those that are left after a full pass, and for one at least: with what
    /// the pass freed, or else in a table made anew, larger or smaller, without what dropped entries left behind.
    ///
    /// So the next full pass is that many insertions away, and a table never takes more than [`most_bytes`] says.
    fn make_room(&mut self, hash_of: impl Fn(&K) -> u64) {
        self.clean_all(self.confirmed);
        let needed = self.table.len() + self.table.len() / 3 + 1;
        if self.table.capacity() >= needed {
            return;
        }
        self.rebuild(needed, hash_of);
    }

    /// Makes the table smaller where it has four slots or more for each entry it needs.
    pub(super) fn shrink(&mut self, hash_of: impl Fn(&K) -> u64) {
        let needed = self.table.len() + self.table.len() / 3;
        if self.table.num_buckets() / 4 > needed {
            self.rebuild(needed, hash_of);
        }
    }

    fn rebuild(&mut self, capacity: usize, hash_of: impl Fn(&K) -> u64) {
        self.cursor = 0;
        let hash_of = |entry: &Entry<K, Q::Tier>| hash_of(&entry.key);
        for entry in core::mem::replace(&mut self.table, HashTable::with_capacity(capacity)) {
            self.table.insert_unique(hash_of(&entry), entry, hash_of);
        }
    }
}

/// The state of a key that had the tier `old` once it has the tier `new`.
fn moved<Q: Quotas>(
    quotas: &Q,
    old: Q::Tier,
    new: Q::Tier,
    state: BucketState,
    now: Nanos,
    inheritance: Inheritance,
) -> BucketState {
    let (old_step, new_step) = (quotas.step(old), quotas.step(new));
    if !settles(old_step, new_step, inheritance) {
        return state;
    }
    new_step.inherit(old_step, state, reading_of_change(quotas, old, now, inheritance), inheritance)
}

/// The reading at which keys of `tier` are settled: none before the last that they were settled at, or what flowed in between
/// would flow in again under another quota. `Full` begins anew at its own, so that a clock that leapt can be healed.
fn reading_of_change<Q: Quotas>(quotas: &Q, tier: Q::Tier, now: Nanos, inheritance: Inheritance) -> Nanos {
    if let Inheritance::Full = inheritance { now } else { now.max(quotas.changed(tier)) }
}

/// Whether a change settles anything: the same quota goes on as it is, unless it is to fill or empty the bucket.
fn settles(old: &BucketStep, new: &BucketStep, inheritance: Inheritance) -> bool {
    old != new || matches!(inheritance, Inheritance::Full | Inheritance::Empty)
}

/// The most bytes that the table of a shard takes that never held more than `keys` keys, the old one included while a new
/// one is made.
pub(super) const fn most_bytes<K, T>(keys: usize) -> usize {
    // A slot also has a control byte. A table has room for `keys * 4 / 3 + 1` keys in 7/8 of its slots, the number of which
    // is rounded up to a power of two: less than 64/21 slots a key. Two tables exist while one replaces the other.
    let slot = size_of::<Entry<K, T>>() + 1;
    let slots = keys.saturating_mul(128) / 21 + 2 * SMALLEST_TABLE;
    slots.saturating_mul(slot).saturating_add(2 * TABLE_EXTRA)
}

/// A lap around a table then takes a quarter of its slots in insertions, and what has become full in the meantime is less
/// than that.
const SLOTS_PER_INSERTION: usize = 4;
/// The slots of the smallest table, and what a smaller number is rounded up to.
const SMALLEST_TABLE: usize = 4;
/// Trailing control bytes and what aligning them takes, each at most one group of 16.
const TABLE_EXTRA: usize = 32;
