//! Pushing, cancelling and looking.

use core::fmt;
use core::num::NonZeroU32;

use super::slots::{NONE, Slots, Waiting};
use crate::{Nanos, sync};

/// Who waits for a limiter, in which order and until when: a plain data structure.
///
/// It has no lock, timer or waker of its own, and knows no clock and no limiter: readings and a limiter are passed in, and each
/// waiter brings a payload, such as a waker or a channel, that is handed back when its wait ends. Adapters put it behind a
/// lock and let whoever is at the head hold a timer for [`next_wake_at`](Self::next_wake_at).
///
/// The slots are `Vec<Waiting<T>>` (`WaitQueue::new`, feature `alloc`) or `heapless::Vec<Waiting<T>, N>` (`WaitQueue::fixed`,
/// feature `heapless`).
///
/// # Guarantees
///
/// - *Order*: waiters are granted first in, first out, costs included: whoever is at the head is not overtaken, however large
///   its cost. With [`newest_first`](Self::newest_first) the newest is at the head instead.
/// - *Promptness*: a call of [`grant_at`](Self::grant_at) lets all go that can go at once. One that can never go is handed out
///   with the reason when it is at the head, and blocks nobody; [`refuse_at`](Self::refuse_at) finds it wherever it waits.
/// - *Deadlines*: who can go at its deadline goes; one whose deadline has passed is never granted anything. At a reading, those
///   whose deadline has passed end first. Then it is each one's turn, from the head on: it goes if it can, and its wait ends if
///   its deadline is that reading or it can never go. The first to which none of these applies stays at the head, and of those
///   behind it the waits whose deadline is that reading end.
/// - *Cancelling*: a waiter that leaves takes nothing and holds nothing, and those behind it move up. A ticket is good for one
///   wait in one queue: used later, or with another queue, it names nobody. (Queues are told apart by 32 bits, given out in turn
///   to each queue that somebody waits in.)
/// - *Panics*: where a limiter panics, the queue is as before it was asked; where its observer does, the waiter that it was told of has
///   left the queue, and nobody is served twice.
/// - *Bound*: never more waiters than the bound. An empty queue has no deadline and wakes nobody; [`shrink`](Self::shrink) then
///   gives all memory back.
///
/// # Complexity
///
/// Pushing, cancelling and granting are O(1), and O(log n) for a waiter with a deadline, where n is the number of those; leaving
/// from anywhere is O(1) on average then too. A slot takes 40 bytes and the payload; slots are reused, none moves, and the fixed
/// form allocates nothing.
///
/// # Example
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use sluicegate_core::{ManualClock, Nanos, TokenBucket, Verdict, WaitQueue, quota};
///
/// let bucket = TokenBucket::with_clock(quota!("10/1s"), ManualClock::new());
/// bucket.try_acquire(10)?;
///
/// let mut queue = WaitQueue::new(1_000);
/// let now = Nanos::ZERO;
/// queue.push(3, None, "large").unwrap();
/// let small = queue.push(1, None, "small").unwrap();
/// queue.push(1, Some(Nanos::from_millis(350)), "hasty").unwrap();
///
/// // Three tokens are there in 300 ms, and "small" has to wait for "large".
/// assert_eq!(queue.next_wake_at(now, &bucket), Some(Nanos::from_millis(300)));
/// let mut served = Vec::new();
/// queue.grant_at(Nanos::from_millis(300), &bucket, |waiter| served.push((waiter.payload, waiter.verdict.is_granted())));
/// assert_eq!(served, [("large", true)]);
///
/// assert_eq!(queue.cancel(small), Some("small"));
/// // "hasty" could go at 400 ms, which is too late.
/// assert_eq!(queue.next_wake_at(Nanos::from_millis(300), &bucket), Some(Nanos::from_millis(350)));
/// let waiter = queue.grant_next_at(Nanos::from_millis(350), &bucket).unwrap();
/// assert_eq!((waiter.payload, waiter.verdict), ("hasty", Verdict::Expired));
/// assert!(queue.is_empty());
/// # }
/// # Ok::<(), sluicegate_core::Denied>(())
/// ```
#[derive(Clone)]
pub struct WaitQueue<S> {
    slots: S,
    /// What tells the tickets of this queue from those of others: from the first push on, because no constant could differ.
    identity: Option<NonZeroU32>,
    /// The most waiters; below [`NONE`].
    bound: u32,
    oldest: u32,
    newest: u32,
    /// The first free slot.
    free: u32,
    len: u32,
    /// How many have a deadline: the size of the heap.
    pub(super) deadlines: u32,
    /// The number of the next push. At a push a nanosecond it would start over after 584 years.
    sequence: u64,
    /// The sum of all costs: at most 2^32 of 64 bits each.
    waiting_cost: u128,
    /// The part of it that waits without a deadline.
    patient_cost: u128,
    /// No waiter's cost is above it. It is 0 when nobody waits, and comes down only then or when all are looked at.
    largest_cost: u64,
    pub(super) is_newest_first: bool,
}

/// Names one wait in one queue. A queue that is cloned shares the tickets given out before, and nothing tells apart which of the
/// two gave out a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    slot: u32,
    queue: Option<NonZeroU32>,
    sequence: u64,
}

/// The queue has as many waiters as its bound allows, and the payload comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueFull<T>(pub T);

#[cfg(feature = "alloc")]
impl<T> WaitQueue<alloc::vec::Vec<Waiting<T>>> {
    /// An empty queue of up to `bound` waiters (and fewer than 2^32), whose memory grows as needed. Needs the feature `alloc`.
    pub const fn new(bound: usize) -> Self {
        Self::with_slots(alloc::vec::Vec::new(), bound)
    }
}

#[cfg(feature = "heapless")]
impl<T, const N: usize> WaitQueue<heapless::Vec<Waiting<T>, N>> {
    /// An empty queue of up to `N` waiters (and fewer than 2^32) in memory of its own. Needs the feature `heapless`.
    pub const fn fixed() -> Self {
        Self::with_slots(heapless::Vec::new(), N)
    }
}

impl<S> WaitQueue<S> {
    const fn with_slots(slots: S, bound: usize) -> Self {
        let bound = if bound < NONE as usize { bound as u32 } else { NONE - 1 };
        Self {
            slots,
            identity: None,
            bound,
            oldest: NONE,
            newest: NONE,
            free: NONE,
            len: 0,
            deadlines: 0,
            sequence: 0,
            waiting_cost: 0,
            patient_cost: 0,
            largest_cost: 0,
            is_newest_first: false,
        }
    }

    /// The same queue with the newest waiter at the head: under a load that lasts, some are served at once and the others give
    /// up, where first in, first out would serve everybody too late. Those who came first may wait for ever without a deadline.
    ///
    /// For a queue in which nobody waits yet: of those who wait already, equal deadlines may come in either order.
    #[must_use]
    pub const fn newest_first(mut self) -> Self {
        self.is_newest_first = true;
        self
    }

    /// The same queue for `bound` waiters, where that is fewer than may wait in it: the fixed form for fewer than it has room for.
    ///
    /// For a queue in which nobody waits yet.
    #[must_use]
    pub const fn at_most(mut self, bound: usize) -> Self {
        if bound < self.bound as usize {
            self.bound = bound as u32;
        }
        self
    }

    /// How many wait.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether nobody waits.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The most that may wait.
    #[inline]
    pub const fn bound(&self) -> usize {
        self.bound as usize
    }

    /// The cost of all who wait.
    #[inline]
    pub const fn waiting_cost(&self) -> u128 {
        self.waiting_cost
    }

    /// The cost of those who wait without a deadline.
    #[inline]
    pub(super) const fn patient_cost(&self) -> u128 {
        self.patient_cost
    }

    /// No waiter's cost is above it.
    #[inline]
    pub(super) const fn largest_cost(&self) -> u64 {
        self.largest_cost
    }

    /// The slot of the waiter whose turn it is.
    #[inline]
    pub(super) const fn head_slot(&self) -> Option<u32> {
        let head = if self.is_newest_first { self.newest } else { self.oldest };
        if head == NONE { None } else { Some(head) }
    }
}

impl<S: Slots> WaitQueue<S> {
    /// Lets one more wait, for `cost` and until `deadline`.
    ///
    /// # Errors
    /// [`QueueFull`] when as many wait as may; the queue is as before.
    pub fn push(
        &mut self,
        cost: u64,
        deadline: Option<Nanos>,
        payload: S::Payload,
    ) -> Result<Ticket, QueueFull<S::Payload>> {
        if self.len >= self.bound {
            return Err(QueueFull(payload));
        }
        Ok(self.append(cost, deadline, payload))
    }

    /// Lets one more wait, and if as many wait as may, ends the wait of who has waited longest and hands it back.
    ///
    /// # Errors
    /// [`QueueFull`] when the bound is 0.
    #[allow(clippy::type_complexity, reason = "a ticket and, perhaps, who was evicted")]
    pub fn push_evicting(
        &mut self,
        cost: u64,
        deadline: Option<Nanos>,
        payload: S::Payload,
    ) -> Result<(Ticket, Option<(Ticket, S::Payload)>), QueueFull<S::Payload>> {
        let evicted = if self.len >= self.bound { self.remove(self.oldest) } else { None };
        match self.push(cost, deadline, payload) {
            Ok(ticket) => Ok((ticket, evicted)),
            Err(full) => Err(full),
        }
    }

    /// Ends a wait and hands its payload back: `None`, and no change, if it has ended before.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<S::Payload> {
        self.find(ticket)?;
        self.remove(ticket.slot).map(|(_, payload)| payload)
    }

    /// Ends the wait of the head, whatever it waits for: for a queue that closes.
    pub fn pop(&mut self) -> Option<(Ticket, S::Payload)> {
        self.remove(self.head_slot()?)
    }

    /// Whether this wait goes on.
    #[inline]
    pub fn contains(&self, ticket: Ticket) -> bool {
        self.find(ticket).is_some()
    }

    /// The payload of a wait that goes on.
    #[inline]
    pub fn payload(&self, ticket: Ticket) -> Option<&S::Payload> {
        self.find(ticket)?.payload.as_ref()
    }

    /// The payload of a wait that goes on, to be replaced: a waker, when its task has moved.
    #[inline]
    pub fn payload_mut(&mut self, ticket: Ticket) -> Option<&mut S::Payload> {
        self.find(ticket)?;
        self.at_mut(ticket.slot).payload.as_mut()
    }

    /// The wait whose turn it is.
    #[inline]
    pub fn head(&self) -> Option<Ticket> {
        self.head_slot().map(|slot| self.ticket(slot))
    }

    /// Gives memory back that a past peak needed: all of it if nobody waits. Waits and their tickets stay as they are. O(slots).
    pub fn shrink(&mut self) {
        let used = self.slots.slots().iter().rposition(|slot| slot.payload.is_some()).map_or(0, |last| last + 1);
        self.slots.shrink_to(used);
        let mut free = NONE;
        for (number, slot) in self.slots.slots_mut().iter_mut().enumerate().rev() {
            if slot.payload.is_none() {
                slot.newer = free;
                free = number as u32;
            }
        }
        self.free = free;
    }

    fn append(&mut self, cost: u64, deadline: Option<Nanos>, payload: S::Payload) -> Ticket {
        self.identity = self.identity.or_else(|| Some(sync::next_identity()));
        let waiting = Waiting {
            payload: Some(payload),
            sequence: self.sequence,
            cost,
            deadline: deadline.unwrap_or(Nanos::MAX),
            older: self.newest,
            newer: NONE,
            in_heap: NONE,
            heap: NONE,
        };
        let slot = if self.free == NONE {
            let slot = self.slots.slots().len() as u32;
            self.slots.push(waiting);
            slot
        } else {
            let slot = self.free;
            self.free = self.at(slot).newer;
            // The element of the heap that lies here is somebody else's.
            let heap = self.at(slot).heap;
            *self.at_mut(slot) = Waiting { heap, ..waiting };
            slot
        };
        match self.newest {
            NONE => self.oldest = slot,
            newest => self.at_mut(newest).newer = slot,
        }
        self.newest = slot;
        self.len += 1;
        self.sequence = self.sequence.wrapping_add(1);
        self.waiting_cost += u128::from(cost);
        self.largest_cost = self.largest_cost.max(cost);
        match deadline {
            Some(_) => self.await_deadline(slot),
            None => self.patient_cost += u128::from(cost),
        }
        self.ticket(slot)
    }

    /// Frees `slot`; `None`, and no change, if nobody is there.
    pub(super) fn remove(&mut self, slot: u32) -> Option<(Ticket, S::Payload)> {
        let payload = self.slots.slots_mut().get_mut(slot as usize)?.payload.take()?;
        let ticket = self.ticket(slot);
        let &Waiting { older, newer, cost, in_heap, .. } = self.at(slot);
        match in_heap {
            NONE => self.patient_cost -= u128::from(cost),
            _ => self.forget_deadline(slot),
        }
        match older {
            NONE => self.oldest = newer,
            older => self.at_mut(older).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.at_mut(newer).older = older,
        }
        self.at_mut(slot).newer = self.free;
        self.free = slot;
        self.len -= 1;
        self.waiting_cost -= u128::from(cost);
        if self.len == 0 {
            self.largest_cost = 0;
        }
        Some((ticket, payload))
    }

    /// Who comes next in the queue after the waiter in `slot`.
    pub(super) fn behind(&self, slot: u32) -> Option<u32> {
        let behind = if self.is_newest_first { self.at(slot).older } else { self.at(slot).newer };
        if behind == NONE { None } else { Some(behind) }
    }

    /// Looks at all who wait, for the largest cost that is left.
    pub(super) fn recall_largest_cost(&mut self) {
        let waiting = self.slots.slots().iter().filter(|slot| slot.payload.is_some());
        self.largest_cost = waiting.map(|slot| slot.cost).max().unwrap_or(0);
    }

    #[inline]
    fn find(&self, ticket: Ticket) -> Option<&Waiting<S::Payload>> {
        let slot = self.slots.slots().get(ticket.slot as usize)?;
        let is_it = ticket.queue == self.identity && ticket.sequence == slot.sequence && slot.payload.is_some();
        is_it.then_some(slot)
    }

    #[inline]
    fn ticket(&self, slot: u32) -> Ticket {
        Ticket { slot, queue: self.identity, sequence: self.at(slot).sequence }
    }

    /// The slot of that number. Links and the heap hold numbers of slots only.
    #[inline]
    pub(super) fn at(&self, slot: u32) -> &Waiting<S::Payload> {
        &self.slots.slots()[slot as usize]
    }

    #[inline]
    pub(super) fn at_mut(&mut self, slot: u32) -> &mut Waiting<S::Payload> {
        &mut self.slots.slots_mut()[slot as usize]
    }
}

impl<S> fmt::Debug for WaitQueue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitQueue").field("len", &self.len).field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("as many wait already as may")
    }
}

impl<T: fmt::Debug> core::error::Error for QueueFull<T> {}
