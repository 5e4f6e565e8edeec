//! States that handles keep: outside the table, where they are found without a look-up.

use portable_atomic_util::Arc;
use slab::Slab;

use crate::{BucketCell, BucketState, CachePadded};

/// A key's state on cache lines of its own, shared by the store and the key's handles.
///
/// It is the key's state until the store takes that back and *ends* it: from then on nothing but that can be learned from it.
pub(super) type KeptCell = Arc<CachePadded<BucketCell>>;

/// The states of a shard's keys that handles keep.
///
/// In the table, such a key has a *mark* in place of its state: where the state is. No state [in place](in_place) is as large as the
/// least mark. So whoever looks at a key finds out without another word, and a key that has no handle takes no more than before there
/// were any.
pub(super) struct KeptCells(Slab<KeptCell>);

impl KeptCells {
    pub(super) const fn new() -> Self {
        Self(Slab::new())
    }

    /// The cell that a key is decided on, which is `in_place` unless handles keep it. It stays that one for as long as the shard is
    /// locked, for reading too.
    #[inline(always)]
    pub(super) fn cell<'s>(&'s self, in_place: &'s BucketCell) -> &'s BucketCell {
        let state = in_place.state().to_bits();
        if state < FIRST_MARK { in_place } else { self.marked(state).unwrap_or(in_place) }
    }

    #[cold]
    #[inline(never)]
    fn marked(&self, mark: u64) -> Option<&BucketCell> {
        self.0.get(index_of(mark)?).map(|kept| &***kept)
    }

    /// Has handles keep a key's state, and shares it.
    ///
    /// `None` where that takes more handles than there are marks; then it stays in its place.
    pub(super) fn keep(&mut self, in_place: &mut BucketCell) -> Option<KeptCell> {
        if let Some(index) = index_of(in_place.state().to_bits()) {
            return self.0.get(index).cloned();
        }
        let index = self.0.vacant_key();
        let mark = FIRST_MARK.checked_add(u64::try_from(index).ok()?).filter(|mark| *mark < u64::MAX)?;
        let kept = Arc::new(CachePadded::new(BucketCell::with_state(in_place.state())));
        self.0.insert(Arc::clone(&kept));
        *in_place = BucketCell::with_state(BucketState::from_bits(mark));
        Some(kept)
    }

    /// Takes a key's state back to its place. Its handles find that theirs has ended.
    pub(super) fn take_back(&mut self, in_place: &mut BucketCell) {
        let Some(index) = index_of(in_place.state().to_bits()) else { return };
        if let Some(kept) = self.0.try_remove(index) {
            *in_place = BucketCell::with_state(kept.end());
        }
    }

    /// The same where the key has no handle any more, and tells whether its state is in its place now.
    ///
    /// Handles come only from other ones and from [`keep`](Self::keep), so that once there is none there will be none meanwhile. The count
    /// orders nothing; ending the cell, which reads the latest state and writes in one step, does.
    pub(super) fn take_back_unused(&mut self, in_place: &mut BucketCell) -> bool {
        let Some(index) = index_of(in_place.state().to_bits()) else { return true };
        if self.0.get(index).is_some_and(|kept| Arc::strong_count(kept) > 1) {
            return false;
        }
        self.take_back(in_place);
        true
    }

    /// Ends every cell that was not taken back: its key is forgotten.
    pub(super) fn forget(&mut self) {
        for kept in self.0.drain() {
            kept.end();
        }
    }

    /// Gives back memory that is not needed.
    pub(super) fn shrink(&mut self) {
        if self.0.is_empty() {
            self.0 = Slab::new();
        } else if self.0.capacity() / 4 > self.0.len() {
            self.0.shrink_to_fit();
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A cell for the table with `state`, which is no mark afterwards.
///
/// What a quota can come to by itself is below 2^63, but a debt that was carried over from another quota may be any number. What is cut
/// off is 2^32 units of 2^64, of which no quota generates half in 30 years.
pub(super) fn in_place(state: BucketState) -> BucketCell {
    BucketCell::with_state(BucketState::from_bits(state.to_bits().min(FIRST_MARK - 1)))
}

fn index_of(mark: u64) -> Option<usize> {
    mark.checked_sub(FIRST_MARK)?.try_into().ok()
}

/// The least mark; the largest word is what a cell has that was ended.
const FIRST_MARK: u64 = u64::MAX - u32::MAX as u64;
