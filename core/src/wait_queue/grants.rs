//! Letting waiters go, and ending waits.

use super::forecast::is_hopeless;
use super::queue::{Ticket, WaitQueue};
use super::slots::Slots;
use crate::decision::{Admitted, Denied};
use crate::{Limiter, Nanos};

/// A waiter whose wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what was granted is lost unless the waiter is told"]
pub struct Served<T, A> {
    /// Which wait it was.
    pub ticket: Ticket,
    /// What the waiter brought along.
    pub payload: T,
    /// How it ended.
    pub verdict: Verdict<A>,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict<A> {
    /// The waiter may go: its cost has been taken.
    Granted(A),
    /// It can never go, for as long as the limit stays as it is. Nothing was taken.
    Refused(Denied),
    /// Its deadline came before it could go. Nothing was taken.
    Expired,
}

impl<A> Verdict<A> {
    /// Whether the waiter may go.
    #[inline]
    pub const fn is_granted(&self) -> bool {
        matches!(self, Self::Granted(_))
    }
}

impl<S: Slots> WaitQueue<S> {
    /// Lets all go whose wait is over at `now`, tells `tell` of each and returns how many they were.
    ///
    /// The limiter's observer is told of what was granted and refused, and of nobody who goes on waiting, also where others take
    /// from the limiter meanwhile: `limiter` is asked by [`Limiter::take_at`].
    ///
    /// If `tell` or the observer panics, the waiter that it was told of is gone with what it was granted; all others wait on. To keep
    /// it from a panic of your own, call [`grant_next_at`](Self::grant_next_at) in a loop, which also leaves a choice of how many
    /// are let go at a time.
    pub fn grant_at<L: Limiter + ?Sized>(
        &mut self,
        now: Nanos,
        limiter: &L,
        mut tell: impl FnMut(Served<S::Payload, Admitted>),
    ) -> usize {
        let mut count = 0;
        while let Some(served) = self.grant_next_at(now, limiter) {
            count += 1;
            tell(served);
        }
        count
    }

    /// The same with any way of taking a cost: a permit, a reservation, an entry of a store.
    ///
    /// `take` is asked for the cost of whoever is at the head, again and again, until it denies; a final denial
    /// ([`Denied::is_final`]) is handed to that waiter, and any other ends the call.
    pub fn grant_with<A>(
        &mut self,
        now: Nanos,
        mut take: impl FnMut(u64) -> Result<A, Denied>,
        mut tell: impl FnMut(Served<S::Payload, A>),
    ) -> usize {
        let mut count = 0;
        while let Some(served) = self.grant_next_with(now, &mut take) {
            count += 1;
            tell(served);
        }
        count
    }

    /// Lets one go whose wait is over at `now`, if there is one.
    #[inline]
    pub fn grant_next_at<L: Limiter + ?Sized>(
        &mut self,
        now: Nanos,
        limiter: &L,
    ) -> Option<Served<S::Payload, Admitted>> {
        let mut asked = 0;
        let served = self.grant_next_with(now, |cost| {
            asked = cost;
            limiter.take_at(now, cost)
        })?;
        // Once the waiter is out of the queue, so that a panic there lets nobody be served twice.
        match &served.verdict {
            Verdict::Granted(admitted) => limiter.tell(now, asked, &Ok(*admitted)),
            Verdict::Refused(denied) => limiter.tell(now, asked, &Err(*denied)),
            Verdict::Expired => {}
        }
        Some(served)
    }

    /// The same with any way of taking a cost; `take` is called at most once.
    ///
    /// First those whose deadline has passed, then the head if it can go or never will, then those whose deadline is `now`, from
    /// the head on: where one of them was at the head, the next call asks for who is there then.
    pub fn grant_next_with<A>(
        &mut self,
        now: Nanos,
        take: impl FnOnce(u64) -> Result<A, Denied>,
    ) -> Option<Served<S::Payload, A>> {
        if self.next_deadline().is_some_and(|deadline| deadline < now) {
            return self.serve(self.earliest()?, Verdict::Expired);
        }
        let head = self.head_slot()?;
        match take(self.at(head).cost) {
            Ok(taken) => self.serve(head, Verdict::Granted(taken)),
            Err(denied) if denied.is_final() => self.serve(head, Verdict::Refused(denied)),
            Err(_) => {
                self.expire_next_at(now).map(|(ticket, payload)| Served { ticket, payload, verdict: Verdict::Expired })
            }
        }
    }

    fn serve<A>(&mut self, slot: u32, verdict: Verdict<A>) -> Option<Served<S::Payload, A>> {
        self.remove(slot).map(|(ticket, payload)| Served { ticket, payload, verdict })
    }

    /// Ends one wait whose deadline is `now` or has passed, if there is one: the earliest deadline first, and of equal ones who is
    /// nearest to the head.
    ///
    /// Who could go at `now` has been let go by a call of [`grant_at`](Self::grant_at) before; this only ends waits.
    pub fn expire_next_at(&mut self, now: Nanos) -> Option<(Ticket, S::Payload)> {
        let slot = self.earliest().filter(|&slot| self.at(slot).deadline <= now)?;
        self.remove(slot)
    }

    /// Ends all waits that can never go, wherever they are in the queue, tells `tell` of each and returns how many they were: for
    /// after a limit was lowered, so that nobody waits in vain until it is at the head.
    ///
    /// The limiter's observer is told of each. O(slots), and O(1) where no cost is too large. If `tell` panics, the waiter that it
    /// was given is gone; all others wait on.
    pub fn refuse_at<L: Limiter + ?Sized>(
        &mut self,
        now: Nanos,
        limiter: &L,
        mut tell: impl FnMut(Served<S::Payload, Admitted>),
    ) -> usize {
        if !is_hopeless(limiter, now, self.largest_cost()) {
            return 0;
        }
        let mut count = 0;
        let mut next = self.head_slot();
        while let Some(slot) = next {
            next = self.behind(slot);
            let cost = self.at(slot).cost;
            let Some(denied) = limiter.peek_at(now, cost).err().filter(Denied::is_final) else { continue };
            limiter.tell(now, cost, &Err(denied));
            if let Some(served) = self.serve(slot, Verdict::Refused(denied)) {
                count += 1;
                tell(served);
            }
        }
        self.recall_largest_cost();
        count
    }
}
