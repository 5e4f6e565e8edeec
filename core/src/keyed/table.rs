//! The table of one shard: buckets of a few entries in place, so that a look-up mostly waits for memory once.

use alloc::vec::Vec;

use arrayvec::ArrayVec;

/// A hash table. An entry is in the bucket that its hash names, its *home*, or, where that was full, in the first after it that was not.
///
/// Hashes name buckets in ascending order, by their share of all hashes rather than by a remainder. So a table can have any number of
/// buckets, and grows by a fifth, not by a factor of two; and one that is made anew is filled from its begin to its end, which is
/// what memory is fastest at.
///
/// Each bucket has a byte of every entry's hash, by which it finds the one that is asked for without a branch that depends on what is
/// stored, and the number of entries that had to pass it on, by which a look-up knows when to stop (both as in Facebook's F14).
pub(super) struct Table<T> {
    buckets: Vec<Bucket<T>>,
    len: usize,
    /// How many runs of buckets a sweep goes on at a time.
    stride: usize,
}

/// It begins a cache line, and where keys are a word it is two. `repr(C)` has what is read first in either: the number of entries at
/// its begin and their tags at its end. Neither place depends on the other's content, so that both lines are fetched at once.
#[repr(C, align(64))]
struct Bucket<T> {
    entries: ArrayVec<T, ENTRIES>,
    /// A byte of each entry's hash, in the order of the entries; what is behind those means nothing. And at last, how many entries are
    /// behind this bucket that have their home in it or before it; at [`u8::MAX`] that is not known any more.
    tags: [u8; ENTRIES + 1],
}

/// Where an entry is until the table changes, or could be: a slot.
#[derive(Clone, Copy)]
pub(super) struct Place {
    bucket: usize,
    entry: usize,
}

impl Place {
    /// The first slot in the order of [`next`](Self::next).
    pub(super) const FIRST: Self = Self { bucket: 0, entry: ENTRIES - 1 };

    /// The slot after it. One who goes through them all sees every entry, if what a slot has is removed as often as it should not be
    /// there: in the place of an entry comes either the bucket's last, which has been seen because a bucket's slots are gone through
    /// backwards, or one from a later bucket.
    pub(super) const fn next(self) -> Self {
        match self.entry {
            0 => Self { bucket: self.bucket + 1, entry: ENTRIES - 1 },
            _ => Self { bucket: self.bucket, entry: self.entry - 1 },
        }
    }
}

impl<T> Table<T> {
    pub(super) const fn new() -> Self {
        Self { buckets: Vec::new(), len: 0, stride: 0 }
    }

    /// A table with room for `entries`.
    pub(super) fn with_capacity(entries: usize) -> Self {
        let mut buckets = Vec::new();
        let count = buckets_for(entries);
        buckets.reserve_exact(count);
        buckets.resize_with(count, Bucket::new);
        Self { buckets, len: 0, stride: stride(count.div_ceil(RUN)) }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The most entries that it takes.
    pub(super) fn capacity(&self) -> usize {
        capacity_of(self.buckets.len())
    }

    /// The number of slots, of which each has one entry or none.
    pub(super) fn slots(&self) -> usize {
        self.buckets.len() * ENTRIES
    }

    #[inline(always)]
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let bucket = self.buckets.get(home(hash, self.buckets.len()))?;
        let alike = bucket.alike(tag(hash));
        // Mostly it is the first that has the tag.
        if let Some(entry) = bucket.entries.get(first_byte(alike)) {
            if is_it(entry) {
                return Some(entry);
            }
        } else if bucket.tags[PASSED] == 0 {
            return None;
        }
        self.at(self.place(hash, is_it)?)
    }

    /// Begins to fetch what a look-up of `hash` will mostly read, and tells something of both lines of it.
    ///
    /// Called for several hashes in a row, it has all of them fetched at the same time. Look-ups alone do not: each ends in a question,
    /// whether it has found its key, and one in ten is answered other than guessed. Then a processor drops whatever it has begun since, and
    /// it knows only once that key is there.
    #[inline(always)]
    pub(super) fn touch(&self, hash: u64) -> u64 {
        let bucket = self.buckets.get(home(hash, self.buckets.len()));
        bucket.map_or(0, |bucket| bucket.entries.len() as u64 ^ u64::from_le_bytes(bucket.tags))
    }

    /// Where an entry is.
    #[inline(never)]
    pub(super) fn place(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<Place> {
        let start = home(hash, self.buckets.len());
        let mut at = start;
        loop {
            let bucket = self.buckets.get(at)?;
            let mut alike = bucket.alike(tag(hash));
            while alike != 0 {
                let entry = first_byte(alike);
                if bucket.entries.get(entry).is_some_and(&is_it) {
                    return Some(Place { bucket: at, entry });
                }
                alike &= alike - 1;
            }
            at = self.after(at);
            if bucket.tags[PASSED] == 0 || at == start {
                return None;
            }
        }
    }

    /// The bucket after `at`.
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.buckets.len() { 0 } else { at + 1 }
    }

    /// The slot that a sweep has come to, whose place is moved on. As many calls as there are slots, or a few more, see each of them once.
    ///
    /// Entries are added between those calls. So a sweep does not go through buckets in their order: behind it they would be empty while what
    /// is added came to those before it as well, until they were all full and an entry had to pass thousands of them. It goes through
    /// runs of a few, far apart, so that wherever an entry has to pass a full bucket an emptier one is near. What is brought back from a
    /// run that is to come to one that was, as after a removal, is seen the next time round.
    pub(super) fn sweep(&self, place: &mut Place) -> Place {
        if place.bucket >= self.buckets.len() {
            // The table is another one than it was.
            *place = Place::FIRST;
        }
        let slot = *place;
        *place = slot.next();
        if place.bucket != slot.bucket && (place.bucket % RUN == 0 || place.bucket >= self.buckets.len()) {
            let runs = self.buckets.len().div_ceil(RUN).max(1);
            *place = Place { bucket: (slot.bucket / RUN + self.stride) % runs * RUN, ..Place::FIRST };
        }
        slot
    }

    /// The entry at a place, if there is one.
    pub(super) fn at(&self, place: Place) -> Option<&T> {
        self.buckets.get(place.bucket)?.entries.get(place.entry)
    }

    pub(super) fn at_mut(&mut self, place: Place) -> Option<&mut T> {
        self.buckets.get_mut(place.bucket)?.entries.get_mut(place.entry)
    }

    /// Adds an entry that is not in the table, or gives it back where that is as full as it may be.
    pub(super) fn insert(&mut self, hash: u64, entry: T) -> Result<(), T> {
        if self.len >= self.capacity() {
            return Err(entry);
        }
        let start = home(hash, self.buckets.len());
        let mut at = start;
        // There is room in some bucket, because there are more slots than entries that the table takes, or as many.
        while let Some(bucket) = self.buckets.get_mut(at) {
            if !bucket.entries.is_full() {
                bucket.tags[bucket.entries.len()] = tag(hash) | away(at != start);
                bucket.entries.push(entry);
                self.len += 1;
                return Ok(());
            }
            bucket.tags[PASSED] = bucket.tags[PASSED].saturating_add(1);
            at = self.after(at);
        }
        Err(entry)
    }

    /// Removes an entry. Where another had to pass its bucket, that one comes in its place, and so on: after any number of changes
    /// entries are as near to their homes as if they had only been added.
    ///
    /// Should `hash_of` panic, the entries before that are where they belong, and those behind where they were.
    pub(super) fn remove(&mut self, place: Place, hash_of: impl Fn(&T) -> u64) -> Option<T> {
        let hash = hash_of(self.at(place)?);
        let bucket = self.buckets.get_mut(place.bucket)?;
        let removed = bucket.take(place.entry)?;
        self.len -= 1;
        self.passes_no_more(home(hash, self.buckets.len()), place.bucket);
        let mut hole = place;
        while let Some((from, home)) = self.passed_by(hole.bucket, &hash_of) {
            let (tag, entry) = {
                let bucket = self.buckets.get_mut(from.bucket)?;
                (bucket.tags[from.entry] & !AWAY | away(home != hole.bucket), bucket.take(from.entry)?)
            };
            self.passes_no_more(hole.bucket, from.bucket);
            let bucket = self.buckets.get_mut(hole.bucket)?;
            bucket.put(hole.entry, tag, entry);
            hole = from;
        }
        Some(removed)
    }

    /// An entry that had to pass `bucket`, if there is one, and its home; the nearest.
    fn passed_by(&self, bucket: usize, hash_of: impl Fn(&T) -> u64) -> Option<(Place, usize)> {
        let passed = self.buckets.get(bucket)?.tags[PASSED];
        if passed == 0 || passed == u8::MAX {
            return None;
        }
        let count = self.buckets.len();
        let mut at = self.after(bucket);
        while at != bucket {
            let way = distance(bucket, at, count);
            let there = self.buckets.get(at)?;
            for (place, (entry, tag)) in there.entries.iter().zip(there.tags).enumerate() {
                // Most are at home: those need not be hashed, for which their keys would have to be fetched from memory.
                if tag & AWAY != 0 {
                    let home = home(hash_of(entry), count);
                    if distance(home, at, count) >= way {
                        return Some((Place { bucket: at, entry: place }, home));
                    }
                }
            }
            at = self.after(at);
        }
        None
    }

    /// One that passed the buckets from `from` on, up to `to`, does so no more.
    fn passes_no_more(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at != to {
            let Some(bucket) = self.buckets.get_mut(at) else { return };
            if bucket.tags[PASSED] != u8::MAX {
                // Should a key have another hash than before, it may be 0.
                bucket.tags[PASSED] = bucket.tags[PASSED].saturating_sub(1);
            }
            at = self.after(at);
        }
    }

    /// Every entry, in an order that tells nothing of their hashes: who adds them to another table in the order of their hashes would
    /// fill a part of that one after another.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let count = self.buckets.len();
        let stride = stride(count);
        let mut at = 0;
        (0..count).flat_map(move |_| {
            at = (at + stride) % count;
            self.buckets[at].entries.iter()
        })
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.buckets.iter_mut().flat_map(|bucket| bucket.entries.iter_mut())
    }

    /// Takes every entry out, bucket by bucket.
    pub(super) fn into_entries(mut self) -> impl Iterator<Item = T> {
        let mut at = 0;
        core::iter::from_fn(move || {
            loop {
                // Out of its place: a bucket is some cache lines to move.
                match self.buckets.get_mut(at)?.entries.pop() {
                    None => at += 1,
                    entry => return entry,
                }
            }
        })
    }
}

impl<T> Bucket<T> {
    const fn new() -> Self {
        Self { entries: ArrayVec::new_const(), tags: [0; ENTRIES + 1] }
    }

    /// Takes an entry out; the last comes in its place.
    fn take(&mut self, entry: usize) -> Option<T> {
        let last = self.entries.len().checked_sub(1)?;
        let taken = self.entries.swap_pop(entry)?;
        self.tags[entry] = self.tags[last];
        Some(taken)
    }

    /// Puts an entry in the place that one was taken from.
    fn put(&mut self, place: usize, tag: u8, entry: T) {
        let last = self.entries.len();
        self.entries.push(entry);
        self.tags[last] = tag;
        if place < last {
            self.entries.swap(place, last);
            self.tags.swap(place, last);
        }
    }

    /// The tags that are `tag`: the highest bit of each such byte. Those behind the last entry have none.
    #[inline(always)]
    fn alike(&self, tag: u8) -> u64 {
        let differ = (u64::from_le_bytes(self.tags) ^ (u64::from(tag) * LOW_BITS)) & !LOW_BITS;
        // A byte of 0 borrows, and no other is below 2.
        differ.wrapping_sub(LOW_BITS) & !differ & HIGH_BITS
    }
}

/// The bucket that a hash names, of so many: the place of its lower half among all lower halves.
#[inline(always)]
const fn home(hash: u64, buckets: usize) -> usize {
    ((hash as u32 as u64).wrapping_mul(buckets as u64) >> 32) as usize
}

/// How many buckets after `from` `to` is, of `count` in a circle.
const fn distance(from: usize, to: usize, count: usize) -> usize {
    if to >= from { to - from } else { to + count - from }
}

/// The highest bits, which neither shards nor homes go by; but for the lowest of them, which has another meaning.
#[inline(always)]
const fn tag(hash: u64) -> u8 {
    (hash >> 56) as u8 & !AWAY
}

const fn away(is_away: bool) -> u8 {
    if is_away { AWAY } else { 0 }
}

#[inline(always)]
const fn first_byte(bits: u64) -> usize {
    bits.trailing_zeros() as usize / 8
}

/// The most entries in so many buckets: eleven in twelve slots. One in six is not at home then, and it takes some eight buckets to find that
/// a key is not there; where three slots in four are taken it is one in fifteen, and one and a half.
const fn capacity_of(buckets: usize) -> usize {
    let slots = buckets.saturating_mul(ENTRIES);
    slots - slots / 12
}

/// The fewest buckets that have room for so many.
pub(super) const fn buckets_for(entries: usize) -> usize {
    // Twelve elevenths, rounded up. With less than twelve slots there is no twelfth to leave, and one bucket fewer may do.
    let slots = entries.saturating_add(entries.div_ceil(11));
    let buckets = slots.div_ceil(ENTRIES);
    if buckets > 0 && capacity_of(buckets - 1) >= entries { buckets - 1 } else { buckets }
}

pub(super) const fn bytes_of_bucket<T>() -> usize {
    size_of::<Bucket<T>>()
}

/// A number that has no factor in common with `count`, and about 0.618 of it.
fn stride(count: usize) -> usize {
    let common = |mut a: usize, mut b: usize| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // The golden section itself: a fraction of small numbers, as 79/128, comes round to where it was after that many steps, and a sweep
    // would go on from 128 places in order.
    let mut stride = ((count as u128 * 0x9E37_79B9_7F4A_7C15) >> 64) as usize;
    while common(stride, count) > 1 {
        stride += 1;
    }
    stride
}

/// With 16 bytes an entry, a bucket is two cache lines.
const ENTRIES: usize = 7;
/// Buckets that a sweep goes through in their order: what is fetched from memory ahead then helps, and entries have not far to go.
const RUN: usize = 8;
/// The tag that tells how many entries had to pass.
const PASSED: usize = ENTRIES;
/// The bit of a tag that tells that its entry is not at home.
const AWAY: u8 = 1;
const LOW_BITS: u64 = u64::from_le_bytes([1; 8]);
/// The highest bit of each byte that is a tag.
const HIGH_BITS: u64 = u64::from_le_bytes([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0]);

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// An entry with its hash, which tests choose.
    type Entry = (u64, u32);

    fn hash_of(entry: &Entry) -> u64 {
        entry.0
    }

    fn table(entries: &[Entry]) -> Table<Entry> {
        let mut table = Table::with_capacity(entries.len());
        for entry in entries {
            assert_eq!(table.insert(entry.0, *entry), Ok(()));
        }
        table
    }

    impl Table<Entry> {
        fn remove_entry(&mut self, entry: Entry) -> Option<Entry> {
            let place = self.place(entry.0, |other| *other == entry)?;
            self.remove(place, hash_of)
        }

        /// What every look-up goes by: tags, and how many had to pass each bucket.
        fn check(&self) {
            let count = self.buckets.len();
            let mut passed = alloc::vec![0_usize; count];
            let mut len = 0;
            for (at, bucket) in self.buckets.iter().enumerate() {
                for (entry, tag_there) in bucket.entries.iter().zip(bucket.tags) {
                    assert_eq!(tag(entry.0) | away(home(entry.0, count) != at), tag_there);
                    len += 1;
                    let mut by = home(entry.0, count);
                    while by != at {
                        assert!(
                            self.buckets[by].entries.is_full(),
                            "{entry:?} is at {at} and passed {by}, which has room"
                        );
                        passed[by] += 1;
                        by = self.after(by);
                    }
                }
            }
            assert_eq!(self.len(), len);
            for (bucket, passed) in self.buckets.iter().zip(passed) {
                let told = bucket.tags[PASSED];
                assert!(told == u8::MAX || usize::from(told) == passed, "{told} is not {passed}");
            }
        }
    }

    /// Hashes that are anywhere, or have all the same home or the same tag.
    fn hash() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), Just(7), Just(u64::MAX), any::<u8>().prop_map(|tag| u64::from(tag) << 56)]
    }

    proptest! {
        #[test]
        fn it_is_a_set(capacity in 0_usize..200, changes in vec((any::<bool>(), hash(), 0_u32..40), 0..400)) {
            let mut table = Table::with_capacity(capacity);
            let mut model: Vec<Entry> = Vec::new();
            prop_assert!(table.capacity() >= capacity);
            for (is_added, hash, number) in changes {
                let entry = (hash, number);
                let known = model.iter().position(|other| *other == entry);
                prop_assert_eq!(table.find(hash, |other| *other == entry).is_some(), known.is_some());
                match (is_added, known) {
                    (true, None) if model.len() < table.capacity() => {
                        prop_assert_eq!(table.insert(hash, entry), Ok(()));
                        model.push(entry);
                    }
                    (true, None) => prop_assert_eq!(table.insert(hash, entry), Err(entry)),
                    (false, Some(place)) => {
                        prop_assert_eq!(table.remove_entry(entry), Some(entry));
                        model.swap_remove(place);
                    }
                    _ => {}
                }
                table.check();
            }
            let mut shown: Vec<_> = table.iter().copied().collect();
            let mut left: Vec<_> = table.into_entries().collect();
            shown.sort_unstable();
            left.sort_unstable();
            model.sort_unstable();
            prop_assert_eq!(&shown, &model);
            prop_assert_eq!(&left, &model);
        }

        #[test]
        fn who_goes_through_all_slots_sees_every_entry(hashes in vec(hash(), 0..150), dropped in any::<u32>()) {
            let entries: Vec<Entry> = hashes.into_iter().zip(0..).collect();
            let mut table = table(&entries);
            let is_dropped = |entry: &Entry| dropped >> (entry.1 % 32) & 1 == 1;
            let mut slot = Place::FIRST;
            for _ in 0..table.slots() {
                while table.at(slot).is_some_and(is_dropped) {
                    prop_assert!(table.remove(slot, hash_of).is_some());
                }
                slot = slot.next();
            }
            table.check();
            prop_assert_eq!(table.iter().find(|entry| is_dropped(entry)), None);
            prop_assert_eq!(table.len(), entries.iter().filter(|entry| !is_dropped(entry)).count());
        }
    }

    #[test]
    fn a_table_has_no_more_buckets_than_it_needs() {
        for entries in 0..3_000 {
            let buckets = buckets_for(entries);
            assert!(capacity_of(buckets) >= entries, "{entries}");
            assert!(buckets == 0 || capacity_of(buckets - 1) < entries, "{entries}");
        }
    }

    #[test]
    fn any_number_of_changes_leaves_entries_as_near_to_their_homes_as_before() {
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            (random ^ random >> 32, 0)
        };
        let mut entries: Vec<Entry> = (0..3_000).map(|_| next()).collect();
        let mut table = table(&entries);
        let at_home = |table: &Table<Entry>| {
            let count = table.buckets.len();
            let is_home = |at: usize, entry: &Entry| home(entry.0, count) == at;
            let homes = table
                .buckets
                .iter()
                .enumerate()
                .map(|(at, bucket)| bucket.entries.iter().filter(|entry| is_home(at, entry)).count());
            homes.sum::<usize>()
        };
        let before = at_home(&table);
        assert!(before > 2_400, "{before}");
        for turn in 0..30_000 {
            let entry = &mut entries[turn % 3_000];
            assert!(table.remove_entry(*entry).is_some());
            *entry = next();
            assert_eq!(table.insert(entry.0, *entry), Ok(()));
        }
        table.check();
        assert!(at_home(&table) > before - 150, "{} of {before}", at_home(&table));
    }

    // However far a sweep has come, what it has been to lies spread over the table.
    #[test]
    fn a_sweep_leaves_no_large_gaps() {
        for count in [1_usize, 2, 3, 100, 8_191, 8_192, 177_777, 1_000_003] {
            let stride = stride(count);
            let mut been = alloc::collections::BTreeSet::new();
            let mut at = 0;
            for turn in 1..=count.min(20_000) {
                assert!(been.insert(at), "{count}: it has been to {at} before");
                at = (at + stride) % count;
                if turn.is_power_of_two() {
                    let gaps = been.iter().zip(been.iter().skip(1)).map(|(one, next)| next - one);
                    let widest = gaps.max().unwrap_or(0).max(count - been.last().unwrap());
                    assert!(widest <= count * 3 / turn + 3, "{count}: a gap of {widest} after {turn}");
                }
            }
        }
    }

    #[test]
    fn a_sweep_sees_every_slot_once() {
        for entries in [0, 1, 5, 50, 51, 52, 300, 3_000, 10_007] {
            let table: Table<Entry> = Table::with_capacity(entries);
            let mut seen = alloc::vec![false; table.slots()];
            // From anywhere, also from where a larger table had a bucket.
            let mut place = Place { bucket: entries, entry: 3 };
            let _ = table.sweep(&mut place);
            place = Place::FIRST;
            for _ in 0..table.slots() {
                let slot = table.sweep(&mut place);
                assert!(!core::mem::replace(&mut seen[slot.bucket * ENTRIES + slot.entry], true));
            }
            assert!(seen.into_iter().all(|seen| seen));
        }
    }

    // Keys come at a steady pace, and a sweep of four slots for each drops those that are old enough: as a store does.
    #[test]
    fn a_sweep_among_additions_leaves_entries_near_their_homes() {
        const LIFE: u32 = 60_000;
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
            random ^ random >> 32
        };
        // Full of keys that are all old enough at the same time, and then of any age.
        let entries: Vec<Entry> = (0..LIFE).map(|number| (next(), number)).collect();
        let mut table = table(&entries);
        let mut place = Place::FIRST;
        let mut longest = 0;
        for number in LIFE..LIFE * 5 {
            for _ in 0..4 {
                let slot = table.sweep(&mut place);
                while table.at(slot).is_some_and(|entry| number - entry.1 >= LIFE / 2) {
                    assert!(table.remove(slot, hash_of).is_some());
                }
            }
            let hash = next();
            let _ = table.insert(hash, (hash, number));
            if number % 64 == 0 {
                let mut at = home(next(), table.buckets.len());
                let mut way = 0;
                while table.buckets[at].tags[PASSED] != 0 {
                    (at, way) = (table.after(at), way + 1);
                }
                longest = longest.max(way);
            }
        }
        table.check();
        assert!(longest < 200, "{longest} buckets to find that a key is not there");
    }

    #[test]
    fn more_entries_than_a_byte_counts_may_have_one_home() {
        let entries: Vec<Entry> = (0..1_000).map(|number| (7, number)).collect();
        let mut table = table(&entries);
        table.check();
        for entry in &entries {
            assert!(table.find(7, |other| other == entry).is_some());
        }
        for entry in &entries {
            assert_eq!(table.remove_entry(*entry), Some(*entry));
            table.check_found(&entries[entry.1 as usize + 1..]);
        }
        assert_eq!(table.len(), 0);
    }

    impl Table<Entry> {
        fn check_found(&self, entries: &[Entry]) {
            for entry in entries.iter().step_by(97) {
                assert!(self.find(entry.0, |other| other == entry).is_some(), "{entry:?}");
            }
        }
    }

    #[test]
    fn keys_that_change_their_hashes_harm_nobody() {
        let entries: Vec<Entry> =
            (0..500).map(|number| (u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15), number)).collect();
        let mut table = table(&entries);
        let mut turn = 0;
        for _ in 0..table.slots() * 3 {
            turn += 1;
            let place = Place { bucket: turn * 7 % table.buckets.len(), entry: turn % ENTRIES };
            let _ = table.remove(place, |entry| entry.0.wrapping_mul(turn as u64));
        }
        assert!(table.len() < 500);
    }
}
