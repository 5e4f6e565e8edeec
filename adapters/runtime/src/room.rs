//! Where a queue keeps those who wait.

use core::fmt;

use sluicegate_core::Slots;

use crate::line::Place;

/// Memory for waiters: [`Growing`] with the feature `alloc`, `Fixed<N>` with the feature `heapless`.
pub trait Room: sealed::Sealed + 'static {
    /// Memory for the queue.
    #[doc(hidden)]
    type Slots: Slots<Payload = u32>;
    /// Memory for what each waiter is told.
    #[doc(hidden)]
    type Places<C, A>: Places<C, A>;
    /// An empty queue of up to `bound` waiters.
    #[doc(hidden)]
    fn queue(bound: usize) -> sluicegate_core::WaitQueue<Self::Slots>;
}

/// A list of places that never moves one to another number.
#[doc(hidden)]
pub trait Places<C, A>: Default {
    fn get(&self, number: u32) -> Option<&Place<C, A>>;
    fn get_mut(&mut self, number: u32) -> Option<&mut Place<C, A>>;
    /// Adds a place and returns its number; `None` if there is no room.
    fn push(&mut self, place: Place<C, A>) -> Option<u32>;
    /// Gives all memory back. Nobody has a place.
    fn clear(&mut self);
}

/// Room that grows as needed.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy)]
pub struct Growing;

#[cfg(feature = "alloc")]
impl Room for Growing {
    type Slots = alloc::vec::Vec<sluicegate_core::Waiting<u32>>;
    type Places<C, A> = alloc::vec::Vec<Place<C, A>>;

    fn queue(bound: usize) -> sluicegate_core::WaitQueue<Self::Slots> {
        sluicegate_core::WaitQueue::new(bound)
    }
}

#[cfg(feature = "alloc")]
impl<C, A> Places<C, A> for alloc::vec::Vec<Place<C, A>> {
    #[inline]
    fn get(&self, number: u32) -> Option<&Place<C, A>> {
        <[_]>::get(self, number as usize)
    }

    #[inline]
    fn get_mut(&mut self, number: u32) -> Option<&mut Place<C, A>> {
        <[_]>::get_mut(self, number as usize)
    }

    #[inline]
    fn push(&mut self, place: Place<C, A>) -> Option<u32> {
        let number = u32::try_from(self.len()).ok()?;
        Self::push(self, place);
        Some(number)
    }

    fn clear(&mut self) {
        *self = Self::new();
    }
}

/// Room for `N` waiters, those included whose wait has ended and who have not learnt of it yet.
///
/// So one who comes may find no room, and be told [`Denied::QueueFull`](sluicegate_core::Denied::QueueFull), although fewer than `N`
/// wait. To evict the oldest, leave room for the one who comes: a [`bound`](crate::WaitOptions::bound) below `N`.
#[cfg(feature = "heapless")]
#[derive(Clone, Copy)]
pub struct Fixed<const N: usize>;

#[cfg(feature = "heapless")]
impl<const N: usize> Room for Fixed<N> {
    type Slots = heapless::Vec<sluicegate_core::Waiting<u32>, N>;
    type Places<C, A> = heapless::Vec<Place<C, A>, N>;

    fn queue(bound: usize) -> sluicegate_core::WaitQueue<Self::Slots> {
        sluicegate_core::WaitQueue::fixed().at_most(bound)
    }
}

#[cfg(feature = "heapless")]
impl<C, A, const N: usize> Places<C, A> for heapless::Vec<Place<C, A>, N> {
    #[inline]
    fn get(&self, number: u32) -> Option<&Place<C, A>> {
        <[_]>::get(self, number as usize)
    }

    #[inline]
    fn get_mut(&mut self, number: u32) -> Option<&mut Place<C, A>> {
        <[_]>::get_mut(self, number as usize)
    }

    #[inline]
    fn push(&mut self, place: Place<C, A>) -> Option<u32> {
        let number = u32::try_from(self.len()).ok()?;
        Self::push(self, place).ok()?;
        Some(number)
    }

    fn clear(&mut self) {
        Self::clear(self);
    }
}

#[cfg(feature = "alloc")]
impl fmt::Debug for Growing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Growing")
    }
}

#[cfg(feature = "heapless")]
impl<const N: usize> fmt::Debug for Fixed<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fixed<{N}>")
    }
}

mod sealed {
    pub trait Sealed {}
    #[cfg(feature = "alloc")]
    impl Sealed for super::Growing {}
    #[cfg(feature = "heapless")]
    impl<const N: usize> Sealed for super::Fixed<N> {}
}
