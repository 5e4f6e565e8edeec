//! Which deadline comes first: a binary heap in the slots, from which any waiter can leave.

use super::queue::WaitQueue;
use super::slots::{NONE, Slots};
use crate::Nanos;

impl<S: Slots> WaitQueue<S> {
    /// The earliest deadline of all waiters. O(1).
    #[inline]
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.earliest().map(|slot| self.at(slot).deadline)
    }

    /// The slot of the waiter whose deadline is the earliest; of equal ones, of who is nearest to the head.
    #[inline]
    pub(super) fn earliest(&self) -> Option<u32> {
        (self.deadlines > 0).then(|| self.at(0).heap)
    }

    /// Adds the waiter in `slot`, whose deadline is set.
    pub(super) fn await_deadline(&mut self, slot: u32) {
        let place = self.deadlines;
        self.deadlines += 1;
        self.rise(place, slot);
    }

    /// Removes the waiter in `slot` if it has a deadline.
    pub(super) fn forget_deadline(&mut self, slot: u32) {
        let place = self.at(slot).in_heap;
        if place == NONE {
            return;
        }
        self.at_mut(slot).in_heap = NONE;
        self.deadlines -= 1;
        let last = self.at(self.deadlines).heap;
        if last == slot {
            return;
        }
        // The last one fills the gap, and goes up or down from there.
        if place > 0 && self.precedes(last, self.at(parent(place)).heap) {
            self.rise(place, last);
        } else {
            self.sink(place, last);
        }
    }

    /// Puts the waiter in `slot` at `place`, or above, where it precedes whom it would be below.
    fn rise(&mut self, mut place: u32, slot: u32) {
        while place > 0 {
            let above = self.at(parent(place)).heap;
            if !self.precedes(slot, above) {
                break;
            }
            self.put(place, above);
            place = parent(place);
        }
        self.put(place, slot);
    }

    /// Puts the waiter in `slot` at `place`, or below, where others precede it.
    fn sink(&mut self, mut place: u32, slot: u32) {
        while let Some(child) = self.first_child(place) {
            let below = self.at(child).heap;
            if !self.precedes(below, slot) {
                break;
            }
            self.put(place, below);
            place = child;
        }
        self.put(place, slot);
    }

    /// The place of the child of `place` that precedes the other.
    fn first_child(&self, place: u32) -> Option<u32> {
        // Places are below 2^32 - 1; where the product exceeds it there is no child.
        let left = place.checked_mul(2)?.checked_add(1)?;
        if left >= self.deadlines {
            return None;
        }
        let right = left + 1;
        let is_right = right < self.deadlines && self.precedes(self.at(right).heap, self.at(left).heap);
        Some(if is_right { right } else { left })
    }

    fn put(&mut self, place: u32, slot: u32) {
        self.at_mut(place).heap = slot;
        self.at_mut(slot).in_heap = place;
    }

    fn precedes(&self, slot: u32, other: u32) -> bool {
        let (slot, other) = (self.at(slot), self.at(other));
        // Of equal ones, whose turn is first: if it cannot go, its end may let the next one go at the same reading.
        let is_nearer = (slot.sequence < other.sequence) != self.is_newest_first;
        slot.deadline < other.deadline || (slot.deadline == other.deadline && is_nearer)
    }
}

const fn parent(place: u32) -> u32 {
    (place - 1) / 2
}
