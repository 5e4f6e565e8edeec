//! Who waits for one limiter, and what each is told: plain data, always behind a lock.
//!
//! A waiter has a *place*, from its first poll until it has been told or has left. Its place is in the queue until the wait is
//! over; then the answer lies in the place until the waiter fetches it. What was granted to a waiter that leaves first is given
//! back to the limiter and so goes to the next.
//!
//! One waiter is in charge of time: whoever was last seen at the head. It sleeps until the next wait is over, its own or one by a
//! deadline. Everybody who locks the line lets all go whose wait is over, so a waiter that is never polled again takes what it is
//! granted and blocks nobody who acts.

use core::task::{Poll, Waker};
use core::time::Duration;

use sluicegate_core::{Admitted, Decision, Denied, Inspection, Limiter, Nanos, Remaining, Ticket, Verdict, WaitQueue};

use crate::grant::Grantor;
use crate::news::News;
use crate::room::{Places, Room};

/// What one waiter is to be told.
#[derive(Debug)]
pub enum Place<G> {
    /// Nobody's: the number of the next one that is nobody's.
    Free(Option<u32>),
    /// It waits, under this ticket and at this cost. `None` for the waker of one that has been woken and was not polled since.
    Waiting {
        /// Its ticket.
        ticket: Ticket,
        /// What it waits for.
        cost: u64,
        /// Wakes it.
        waker: Option<Waker>,
    },
    /// It has been woken to fetch this.
    Over {
        /// The reading at which the wait ended.
        at: Nanos,
        /// What it waited for.
        cost: u64,
        /// What it is told.
        answer: Result<G, Denied>,
        /// Whether what was granted counts as taken, though it was not fetched.
        is_kept: bool,
    },
}

/// Who waits for one limiter.
pub(crate) struct Line<S: Room, G> {
    queue: WaitQueue<S::Slots>,
    places: S::Places<G>,
    free: Option<u32>,
    /// How many places are somebody's.
    taken: usize,
    /// Who is in charge of time, and when it looks next; `None` while it has been woken to find that out.
    timed: Option<(Ticket, Nanos)>,
    is_evicting: bool,
    is_closed: bool,
}

/// What a waiter does next.
pub(crate) enum Next {
    /// It sleeps until then at the latest.
    Until(Nanos),
    /// Somebody else will wake it.
    Woken,
}

impl<S: Room, G> Line<S, G> {
    pub(crate) fn new(bound: usize, is_newest_first: bool, is_evicting: bool) -> Self {
        let queue = S::queue(bound);
        Self {
            queue: if is_newest_first { queue.newest_first() } else { queue },
            places: S::Places::default(),
            free: None,
            taken: 0,
            timed: None,
            is_evicting,
            is_closed: false,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The reading before which a waiter of `cost` that comes now cannot go.
    pub(crate) fn earliest<L: Grantor<Grant = G> + ?Sized>(
        &self,
        now: Nanos,
        grantor: &L,
        cost: u64,
    ) -> Result<Nanos, Denied> {
        self.queue.earliest_for_new_at(now, &AsLimiter(grantor), cost)
    }

    /// The reading at which a waiter of `cost` that comes now goes if nobody ahead leaves.
    pub(crate) fn expected<L: Grantor<Grant = G> + ?Sized>(
        &self,
        now: Nanos,
        grantor: &L,
        cost: u64,
    ) -> Result<Nanos, Denied> {
        self.queue.expected_for_new_at(now, &AsLimiter(grantor), cost)
    }

    /// The reading at which the last in the line goes, if a clock knows it and nobody ahead leaves.
    pub(crate) fn turn_of_newest<L: Grantor<Grant = G> + ?Sized>(&self, now: Nanos, grantor: &L) -> Option<Nanos> {
        grantor.earliest_at(now, self.queue.waiting_cost())
    }

    /// What a waiter waits for, or waited for.
    pub(crate) fn cost(&self, number: u32) -> u64 {
        match self.places.get(number) {
            Some(Place::Waiting { cost, .. } | Place::Over { cost, .. }) => *cost,
            _ => 0,
        }
    }

    /// Takes a place at the end.
    pub(crate) fn join(
        &mut self,
        now: Nanos,
        cost: u64,
        deadline: Option<Nanos>,
        waker: Waker,
        news: &mut News,
    ) -> Result<u32, Denied> {
        if self.is_closed {
            return Err(Denied::Closed);
        }
        if self.queue.len() >= self.queue.bound() && !self.is_evicting {
            return Err(Denied::QueueFull);
        }
        let number = match self.free {
            Some(number) => number,
            None => self.places.push(Place::Free(None)).ok_or(Denied::QueueFull)?,
        };
        let pushed = self.queue.push_evicting(cost, deadline, number);
        let Some(Place::Free(next)) = self.places.get(number) else { return Err(Denied::QueueFull) };
        self.free = *next;
        let Ok((ticket, evicted)) = pushed else {
            self.free = Some(number);
            return Err(Denied::QueueFull);
        };
        if let Some(place) = self.places.get_mut(number) {
            *place = Place::Waiting { ticket, cost, waker: Some(waker) };
        }
        self.taken += 1;
        if let Some((_, evicted)) = evicted {
            self.tell(evicted, now, Err(Denied::QueueFull), news);
        }
        Ok(number)
    }

    /// Lets all go whose wait is over, as far as `news` can take it, and tells whether that was all of them.
    pub(crate) fn let_go<L: Grantor<Grant = G> + ?Sized>(&mut self, now: Nanos, grantor: &L, news: &mut News) -> bool {
        while !news.is_full() {
            // A timer wakes late. Who could go at its deadline goes, by the reading of that.
            let at = self.queue.next_deadline().map_or(now, |deadline| deadline.min(now));
            let take = |cost| {
                grantor.peek_at(at, cost)?;
                grantor.hold_at(at, cost)
            };
            let Some(served) = self.queue.grant_next_with(at, take) else { return true };
            let answer = match served.verdict {
                Verdict::Granted(grant) => Ok(grant),
                Verdict::Refused(denied) => Err(denied),
                Verdict::Expired => Err(self.denial_at_deadline(now, grantor, served.payload)),
            };
            self.tell(served.payload, at, answer, news);
        }
        false
    }

    /// What one is told whose deadline has come: what it would be told if it came now.
    fn denial_at_deadline<L: Grantor<Grant = G> + ?Sized>(&self, now: Nanos, grantor: &L, number: u32) -> Denied {
        let cost = self.cost(number);
        match self.expected(now, grantor, cost) {
            Err(denied) => denied,
            Ok(turn) if turn > now => Denied::RateLimited { retry_after: turn.saturating_duration_since(now) },
            // It is free, or others wait for it, or no clock knows when it will be.
            Ok(_) => match grantor.peek_at(now, cost) {
                Err(denied) => denied,
                Ok(()) => Denied::RateLimited { retry_after: Duration::from_nanos(1) },
            },
        }
    }

    /// Makes sure that somebody is in charge of time, after everything else.
    ///
    /// `polled` is the place of whoever is being polled, and whether it is in charge although it is not at the head, because it has
    /// found those ahead of it stuck. It learns from the answer when to look again; anybody else who has to is woken.
    pub(crate) fn mind_time<L: Grantor<Grant = G> + ?Sized>(
        &mut self,
        now: Nanos,
        grantor: &L,
        polled: Option<(u32, bool)>,
        news: &mut News,
    ) -> Next {
        let Some(head) = self.queue.head() else {
            self.timed = None;
            return Next::Woken;
        };
        let next = self.queue.next_wake_with(now, |cost| grantor.peek_at(now, cost));
        let number = self.queue.payload(head).copied();
        // Whose own wait is over sleeps for nobody.
        let waits = |polled| matches!(self.places.get(polled), Some(Place::Waiting { .. }));
        if polled.is_some_and(|(polled, is_in_charge)| number == Some(polled) || is_in_charge && waits(polled)) {
            self.timed = next.map(|at| (head, at));
            return next.map_or(Next::Woken, Next::Until);
        }
        let Some(next) = next else { return Next::Woken };
        let is_minded = self.timed.is_some_and(|(ticket, at)| ticket == head && at <= next);
        if !is_minded {
            self.timed = Some((head, next));
            if let Some(Place::Waiting { waker, .. }) = number.and_then(|number| self.places.get_mut(number)) {
                news.wake(waker.take());
            }
        }
        Next::Woken
    }

    /// Fetches the answer, or leaves a waker for it. What is fetched counts as taken.
    pub(crate) fn fetch<L: Grantor<Grant = G> + ?Sized>(
        &mut self,
        number: u32,
        grantor: &L,
        current: &Waker,
    ) -> Poll<(Nanos, Result<G, Denied>)> {
        match self.places.get_mut(number) {
            Some(Place::Waiting { waker, .. }) => {
                match waker {
                    Some(waker) if waker.will_wake(current) => {}
                    _ => *waker = Some(current.clone()),
                }
                Poll::Pending
            }
            _ => match self.free_place(number) {
                Place::Over { at, cost, answer, is_kept } => {
                    if let (Ok(grant), false) = (&answer, is_kept) {
                        grantor.keep(cost, grant);
                    }
                    Poll::Ready((at, answer))
                }
                // A place belongs to one waiter, which gives it up when it has fetched its answer.
                _ => Poll::Ready((Nanos::ZERO, Err(Denied::Closed))),
            },
        }
    }

    /// Counts as taken what was granted and not fetched: what is held for one that is never polled again would be in the way of
    /// others for good. O(places), for those who have found somebody stuck.
    pub(crate) fn keep_unfetched<L: Grantor<Grant = G> + ?Sized>(&mut self, grantor: &L) {
        let mut number = 0;
        while let Some(place) = self.places.get_mut(number) {
            if let Place::Over { cost, answer: Ok(grant), is_kept, .. } = place {
                if !core::mem::replace(is_kept, true) {
                    grantor.keep(*cost, grant);
                }
            }
            number += 1;
        }
    }

    /// Gives up a place, and gives back what its waiter was granted and has not fetched: by what is returned, with the lock open.
    pub(crate) fn leave<L: Grantor<Grant = G> + ?Sized>(
        &mut self,
        number: u32,
    ) -> Option<impl FnOnce(&L) + use<S, G, L>> {
        let (at, cost, grant, is_kept) = match self.free_place(number) {
            Place::Waiting { ticket, .. } => {
                self.queue.cancel(ticket);
                return None;
            }
            Place::Over { at, cost, answer, is_kept } => (at, cost, answer.ok()?, is_kept),
            Place::Free(_) => return None,
        };
        Some(move |grantor: &L| {
            if is_kept {
                grantor.tell(at, cost, Ok(&grant));
                grantor.give_back(cost, grant);
            } else {
                grantor.let_go(at, cost, grant);
            }
        })
    }

    /// Ends all waits, as far as `news` can take it, and all to come; tells whether that was all of them.
    pub(crate) fn close(&mut self, now: Nanos, news: &mut News) -> bool {
        self.is_closed = true;
        while !news.is_full() {
            let Some((_, number)) = self.queue.pop() else { return true };
            self.tell(number, now, Err(Denied::Closed), news);
        }
        false
    }

    fn tell(&mut self, number: u32, at: Nanos, answer: Result<G, Denied>, news: &mut News) {
        if let Some(place) = self.places.get_mut(number) {
            if let Place::Waiting { cost, waker, .. } = place {
                let cost = *cost;
                news.wake(waker.take());
                *place = Place::Over { at, cost, answer, is_kept: false };
            }
        }
    }

    fn free_place(&mut self, number: u32) -> Place<G> {
        let Some(place) = self.places.get_mut(number) else { return Place::Free(None) };
        if let Place::Free(_) = place {
            return Place::Free(None);
        }
        let was = core::mem::replace(place, Place::Free(self.free));
        self.free = Some(number);
        self.taken -= 1;
        was
    }

    /// Once nobody has a place, the memory that a peak needed goes back.
    pub(crate) fn tidy(&mut self) {
        if self.taken == 0 && self.places.get(KEPT).is_some() {
            self.free = None;
            self.places.clear();
            self.queue.shrink();
        }
    }
}

/// So many places are kept for the next ones: some kilobytes, and no allocation where now and then somebody waits.
const KEPT: u32 = 32;

/// A grantor where only a look is asked of it.
struct AsLimiter<'a, L: ?Sized>(&'a L);

impl<L: Grantor + ?Sized> Limiter for AsLimiter<'_, L> {
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        self.peek_at(now, cost)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.0.peek_at(now, cost).map(|()| Admitted::new(Remaining::AtLeast(0), now))
    }

    fn inspect_at(&self, _now: Nanos) -> Inspection {
        Inspection::new(0, 0)
    }

    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        self.0.earliest_at(now, total)
    }
}
