//! Where a wait queue keeps its waiters.

use crate::Nanos;

/// One slot of a [`WaitQueue`](super::WaitQueue): a waiter, or room for one.
///
/// Waiters are linked by the numbers of their slots, so that one leaves the middle without a search and nothing moves.
#[derive(Clone, Debug)]
pub struct Waiting<T> {
    /// `None` while the slot is free.
    pub(super) payload: Option<T>,
    /// The number of the push. It is never used again, so that a ticket of the past names nobody.
    pub(super) sequence: u64,
    pub(super) cost: u64,
    /// Without meaning while `in_heap` is [`NONE`].
    pub(super) deadline: Nanos,
    /// The next older waiter.
    pub(super) older: u32,
    /// The next newer waiter; for a free slot, the next free one.
    pub(super) newer: u32,
    /// Where this waiter is in the heap of deadlines.
    pub(super) in_heap: u32,
    /// The slot of the waiter that is at *this slot's number* in the heap of deadlines, whoever this slot's own waiter is: the
    /// heap needs no memory of its own, because it never has more elements than there are slots.
    pub(super) heap: u32,
}

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// Memory for waiters: `Vec` with the feature `alloc`, `heapless::Vec` with the feature `heapless`.
pub trait Slots: sealed::Sealed {
    /// What each waiter brings along.
    type Payload;
    /// All slots.
    fn slots(&self) -> &[Waiting<Self::Payload>];
    /// All slots, to be changed in place.
    fn slots_mut(&mut self) -> &mut [Waiting<Self::Payload>];
    /// Adds a slot. The caller makes sure that there is room.
    fn push(&mut self, slot: Waiting<Self::Payload>);
    /// Drops the slots from number `len` on, and gives their memory back where that is possible.
    fn shrink_to(&mut self, len: usize);
}

#[cfg(feature = "alloc")]
impl<T> Slots for alloc::vec::Vec<Waiting<T>> {
    type Payload = T;

    #[inline]
    fn slots(&self) -> &[Waiting<T>] {
        self
    }

    #[inline]
    fn slots_mut(&mut self) -> &mut [Waiting<T>] {
        self
    }

    #[inline]
    fn push(&mut self, slot: Waiting<T>) {
        Self::push(self, slot);
    }

    fn shrink_to(&mut self, len: usize) {
        self.truncate(len);
        self.shrink_to_fit();
    }
}

#[cfg(feature = "heapless")]
impl<T, const N: usize> Slots for heapless::Vec<Waiting<T>, N> {
    type Payload = T;

    #[inline]
    fn slots(&self) -> &[Waiting<T>] {
        self
    }

    #[inline]
    fn slots_mut(&mut self) -> &mut [Waiting<T>] {
        self
    }

    #[inline]
    fn push(&mut self, slot: Waiting<T>) {
        // There is room: the bound of the queue is the capacity.
        let _ = Self::push(self, slot);
    }

    fn shrink_to(&mut self, len: usize) {
        self.truncate(len);
    }
}

mod sealed {
    pub trait Sealed {}
    #[cfg(feature = "alloc")]
    impl<T> Sealed for alloc::vec::Vec<super::Waiting<T>> {}
    #[cfg(feature = "heapless")]
    impl<T, const N: usize> Sealed for heapless::Vec<super::Waiting<T>, N> {}
}
