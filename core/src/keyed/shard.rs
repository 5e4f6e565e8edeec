//! One shard: a table of keys and their states, and what becomes of those that are full again.

use super::kept::{KeptCell, KeptCells, in_place};
use super::lookup::Lookup;
use super::quotas::Quotas;
use super::table::{Place, Table, buckets_for, bytes_of_bucket};
use crate::{BucketCell, BucketState, BucketStep, Inheritance, Nanos};

/// A key, its state in place, and which quota it has.
pub(super) struct Entry<K, T> {
    pub(super) key: K,
    /// The state; or where handles keep it. See [`Shard::cell`].
    in_place: BucketCell,
    pub(super) tier: T,
}

impl<K, T> Entry<K, T> {
    pub(super) fn new(key: K, state: BucketState, tier: T) -> Self {
        Self { key, in_place: in_place(state), tier }
    }
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
    table: Table<Entry<K, Q::Tier>>,
    quotas: Q,
    kept: KeptCells,
    /// The slot of the table that clean-up looks at next.
    cursor: Place,
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
            table: Table::new(),
            quotas,
            kept: KeptCells::new(),
            cursor: Place::FIRST,
            absent: BucketState::FULL,
            seen: Nanos::ZERO,
            confirmed: Nanos::ZERO,
        }
    }

    #[inline(always)]
    pub(super) fn find<B: Lookup<K> + ?Sized>(&self, hash: u64, key: &B) -> Option<&Entry<K, Q::Tier>> {
        self.table.find(hash, |entry| key.is(&entry.key))
    }

    /// What a key that is present is decided on, and nothing else. A handle may decide on it at the same time.
    #[inline(always)]
    pub(super) fn cell<'s>(&'s self, entry: &'s Entry<K, Q::Tier>) -> &'s BucketCell {
        self.kept.cell(&entry.in_place)
    }

    /// Has handles keep the state of a key that is present, and shares it, with the quota that it is decided by.
    pub(super) fn keep<B: Lookup<K> + ?Sized>(&mut self, hash: u64, key: &B) -> Option<(KeptCell, BucketStep)> {
        let place = self.table.place(hash, |entry| key.is(&entry.key))?;
        let entry = self.table.at_mut(place)?;
        Some((self.kept.keep(&mut entry.in_place)?, *self.quotas.step(entry.tier)))
    }

    /// Takes the state of a key back from its handles: whatever changes it other than by deciding must do so first.
    pub(super) fn take_back<B: Lookup<K> + ?Sized>(&mut self, hash: u64, key: &B) {
        if self.kept.is_empty() {
            return;
        }
        let place = self.table.place(hash, |entry| key.is(&entry.key));
        if let Some(entry) = place.and_then(|place| self.table.at_mut(place)) {
            self.kept.take_back(&mut entry.in_place);
        }
    }

    /// Has what look-ups of `hashes` will read fetched from memory, all at the same time.
    #[inline(always)]
    pub(super) fn fetch(&self, hashes: impl Iterator<Item = u64>) {
        let touched = hashes.fold(0, |touched, hash| touched ^ self.table.touch(hash));
        // Nobody wants to know, but what nobody wants to know is not read.
        core::hint::black_box(touched);
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
        // Now there is room.
        let added = self.table.insert(hash, entry);
        debug_assert!(added.is_ok());
    }

    pub(super) fn remove<B: Lookup<K> + ?Sized>(&mut self, hash: u64, key: &B, hash_of: impl Fn(&K) -> u64) -> bool {
        self.take_back(hash, key);
        let place = self.table.place(hash, |entry| key.is(&entry.key));
        place.is_some_and(|place| self.table.remove(place, |entry| hash_of(&entry.key)).is_some())
    }

    /// Gives a key that is present another tier, and tells the tier it had and at which reading it was settled. Handles must have
    /// been [taken back](Self::take_back) before `now` was read.
    pub(super) fn set_tier<B: Lookup<K> + ?Sized>(
        &mut self,
        hash: u64,
        key: &B,
        tier: Q::Tier,
        now: Nanos,
        inheritance: Inheritance,
    ) -> Option<(Q::Tier, Nanos)> {
        let place = self.table.place(hash, |entry| key.is(&entry.key))?;
        let entry = self.table.at_mut(place)?;
        let old = core::mem::replace(&mut entry.tier, tier);
        let state = moved(&self.quotas, old, tier, entry.in_place.state(), now, inheritance);
        entry.in_place = in_place(state);
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

    /// Changes the quota of a tier, and tells at which reading. `now` is asked after the last decision under the old quota.
    pub(super) fn set_quota(
        &mut self,
        tier: Q::Tier,
        new: &BucketStep,
        now: impl FnOnce() -> Nanos,
        inheritance: Inheritance,
    ) -> Nanos {
        let old = *self.quotas.step(tier);
        if !settles(&old, new, inheritance) {
            return reading_of_change(&self.quotas, tier, now(), inheritance);
        }
        if !self.kept.is_empty() {
            for entry in self.table.iter_mut().filter(|entry| entry.tier == tier) {
                self.kept.take_back(&mut entry.in_place);
            }
        }
        let now = reading_of_change(&self.quotas, tier, now(), inheritance);
        for entry in self.table.iter_mut().filter(|entry| entry.tier == tier) {
            entry.in_place = in_place(new.inherit(&old, entry.in_place.state(), now, inheritance));
        }
        if tier == Q::Tier::default() {
            self.absent = new.inherit(&old, self.absent, now, inheritance);
        }
        self.quotas.replace(tier, *new, now);
        now
    }

    /// Looks at a few slots on the way of somebody who came for a place at `now`, going by what that confirms.
    pub(super) fn clean_by_the_way(&mut self, now: Nanos, hash_of: impl Fn(&K) -> u64) {
        // The same reading again, by the same request perhaps, confirms nothing.
        if now != self.seen {
            self.confirmed = now.min(self.seen);
            self.seen = now;
        }
        self.clean_some(self.confirmed, SLOTS_PER_INSERTION, hash_of);
    }

    /// Looks at the next `slots` slots, and drops the entries there that equal an absent key.
    pub(super) fn clean_some(&mut self, now: Nanos, slots: usize, hash_of: impl Fn(&K) -> u64) {
        let full = self.quotas.step(Q::Tier::default()).accrued(now);
        // An absent key has the default quota, and is full, except for a while after a change that leaves new keys less.
        if self.absent.to_bits() > full {
            return;
        }
        if slots >= self.table.slots() {
            return self.clean_all(now, hash_of);
        }
        for _ in 0..slots {
            let slot = self.table.sweep(&mut self.cursor);
            self.clean_slot(slot, full, &hash_of);
        }
    }

    /// Looks at all of them, in their order, in which none is missed.
    pub(super) fn clean_all(&mut self, now: Nanos, hash_of: impl Fn(&K) -> u64) {
        let full = self.quotas.step(Q::Tier::default()).accrued(now);
        if self.absent.to_bits() > full {
            return;
        }
        let mut slot = Place::FIRST;
        for _ in 0..self.table.slots() {
            self.clean_slot(slot, full, &hash_of);
            slot = slot.next();
        }
    }

    fn clean_slot(&mut self, slot: Place, full: u64, hash_of: impl Fn(&K) -> u64) {
        // Once for each that comes in the place of one that is dropped.
        while let Some(entry) = self.table.at_mut(slot) {
            // The other way round, a key of another tier would keep what its handles took for ever.
            if !self.kept.take_back_unused(&mut entry.in_place) || entry.tier != Q::Tier::default() {
                return;
            }
            let state = entry.in_place.state().to_bits();
            if state > full {
                return;
            }
            // First, because dropping the key may panic.
            self.absent = BucketState::from_bits(self.absent.to_bits().max(state));
            self.table.remove(slot, |entry| hash_of(&entry.key));
        }
    }

    /// Makes room for as many entries as a fifth of those that are left after a full pass, and for one at least: with what
    /// the pass freed, or else in a larger table.
    ///
    /// So the next full pass is that many insertions away, and a table never takes more than [`most_bytes`] says.
    fn make_room(&mut self, hash_of: impl Fn(&K) -> u64 + Copy) {
        self.clean_all(self.confirmed, hash_of);
        let needed = with_room(self.table.len());
        if self.table.capacity() >= needed {
            return;
        }
        self.rebuild(needed, hash_of);
    }

    /// Makes the table smaller where it has four slots or more for each entry it needs.
    pub(super) fn shrink(&mut self, hash_of: impl Fn(&K) -> u64) {
        let needed = if self.table.len() == 0 { 0 } else { with_room(self.table.len()) };
        if self.table.slots() / 4 > needed {
            self.rebuild(needed, hash_of);
        }
        self.kept.shrink();
    }

    fn rebuild(&mut self, capacity: usize, hash_of: impl Fn(&K) -> u64) {
        let old = core::mem::replace(&mut self.table, Table::with_capacity(capacity));
        Moving { table: &mut self.table, kept: &mut self.kept, is_over: false }.all(old, hash_of);
    }
}

/// Entries on their way to a table made anew. Should hashing one panic, it and those behind it are forgotten, and no handle may go on
/// with the state of such a key: all of the shard's handles end.
struct Moving<'s, K, T> {
    table: &'s mut Table<Entry<K, T>>,
    kept: &'s mut KeptCells,
    is_over: bool,
}

impl<K, T> Moving<'_, K, T> {
    fn all(mut self, old: Table<Entry<K, T>>, hash_of: impl Fn(&K) -> u64) {
        for entry in old.into_entries() {
            // There is room for all of them.
            let added = self.table.insert(hash_of(&entry.key), entry);
            debug_assert!(added.is_ok());
        }
        self.is_over = true;
    }
}

impl<K, T> Drop for Moving<'_, K, T> {
    fn drop(&mut self) {
        if !self.is_over && !self.kept.is_empty() {
            for entry in self.table.iter_mut() {
                self.kept.take_back(&mut entry.in_place);
            }
            self.kept.forget();
        }
    }
}

/// A table for so many entries gets room for a fifth more.
const fn with_room(entries: usize) -> usize {
    entries.saturating_add(entries / 5).saturating_add(1)
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
    buckets_for(with_room(keys)).saturating_mul(bytes_of_bucket::<Entry<K, T>>()).saturating_mul(2)
}

/// A lap around a table then takes a quarter of its slots in insertions.
const SLOTS_PER_INSERTION: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::Tier;
    use crate::keyed::quotas::Tiers;
    use crate::quota;

    fn hash_of(key: &u64) -> u64 {
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    // A key that had a handle takes no more than one that never had, once clean-up has come by; whatever its tier.
    #[test]
    fn b09_nothing_is_left_of_handles_that_are_gone() {
        for tier in [Tier(0), Tier(1)] {
            let mut shard = Shard::new(Tiers::new(quota!("1/1s"), &[quota!("2/1s")]));
            for key in 0..3_000_u64 {
                shard.insert(hash_of(&key), Entry::new(key, BucketState::FULL, tier), hash_of);
                let handle = shard.keep(hash_of(&key), &key).expect("it was added");
                if key == 7 {
                    core::mem::forget(handle);
                }
            }
            shard.take_back(hash_of(&7), &7);
            shard.clean_all(Nanos::from_secs(9), hash_of);
            assert!(shard.kept.is_empty(), "{tier:?}");
            assert_eq!(shard.len(), if tier == Tier(0) { 0 } else { 3_000 });
            shard.shrink(hash_of);
            assert_eq!(shard.kept.capacity(), 0);
        }
    }
}
