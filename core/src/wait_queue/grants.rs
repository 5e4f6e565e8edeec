//! Letting waiters go, and when the next one can.

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
    /// `limiter` is asked by a look first, so that its observer is told of no denial for somebody who goes on waiting.
    ///
    /// If `tell` panics, the waiter that it was given is gone with what it was granted; all others wait on. To keep it, call
    /// [`grant_next_at`](Self::grant_next_at) in a loop, which also leaves a choice of how many are let go at a time.
    pub fn grant_at<L: Limiter + ?Sized>(
        &mut self,
        now: Nanos,
        limiter: &L,
        tell: impl FnMut(Served<S::Payload, Admitted>),
    ) -> usize {
        self.grant_with(now, |cost| take(limiter, now, cost), tell)
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
        self.grant_next_with(now, |cost| take(limiter, now, cost))
    }

    /// The same with any way of taking a cost; `take` is called at most once.
    ///
    /// First those whose deadline has passed, then the head if it can go or never will, then those whose deadline is `now`.
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

    /// Ends one wait whose deadline is `now` or has passed, if there is one: the earliest deadline first.
    ///
    /// Who could go at `now` has been let go by a call of [`grant_at`](Self::grant_at) before; this only ends waits.
    pub fn expire_next_at(&mut self, now: Nanos) -> Option<(Ticket, S::Payload)> {
        let slot = self.earliest().filter(|&slot| self.at(slot).deadline <= now)?;
        self.remove(slot)
    }

    /// The exact earliest reading from `now` on at which a wait is over if nobody takes or gives back anything meanwhile: when
    /// the head can go, or a deadline comes. `None` if nobody waits, or if only a release can end a wait.
    ///
    /// Call it again after each change of the queue, and when something is given back or the limit changes.
    #[inline]
    pub fn next_wake_at<L: Limiter + ?Sized>(&self, now: Nanos, limiter: &L) -> Option<Nanos> {
        self.next_wake_with(now, |cost| limiter.peek_at(now, cost))
    }

    /// The same with any way of looking, which must take nothing.
    pub fn next_wake_with<A>(&self, now: Nanos, peek: impl FnOnce(u64) -> Result<A, Denied>) -> Option<Nanos> {
        let head = self.head_slot()?;
        let deadline = self.next_deadline().map(|deadline| deadline.max(now));
        if deadline == Some(now) {
            return deadline;
        }
        let turn = match peek(self.at(head).cost) {
            Ok(_) => Some(now),
            Err(denied) if denied.is_final() => Some(now),
            Err(denied) => denied.retry_after().map(|wait| now.saturating_add(wait)),
        };
        match (turn, deadline) {
            (Some(turn), Some(deadline)) => Some(turn.min(deadline)),
            (turn, deadline) => turn.or(deadline),
        }
    }
}

impl<S: Slots> WaitQueue<S> {
    /// The earliest reading at which a waiter of `cost` that came at `now` could go if all ahead of it stay and nobody else takes
    /// or gives back anything: one whose deadline is earlier need not wait at all.
    ///
    /// Exact for a [`TokenBucket`](crate::TokenBucket) to within 1 ns for each of them that takes its whole capacity; otherwise a
    /// lower bound (see [`Limiter::earliest_at`]). `now` where only a release could tell.
    ///
    /// # Errors
    /// The denial, if the waiter could never go.
    pub fn earliest_for_new_at<L: Limiter + ?Sized>(
        &self,
        now: Nanos,
        limiter: &L,
        cost: u64,
    ) -> Result<Nanos, Denied> {
        match limiter.peek_at(now, cost) {
            Err(denied) if denied.is_final() => Err(denied),
            _ => Ok(limiter.earliest_at(now, self.cost_ahead() + u128::from(cost)).unwrap_or(now)),
        }
    }
}

/// Takes `cost`, unless a look says that it cannot be taken.
fn take<L: Limiter + ?Sized>(limiter: &L, now: Nanos, cost: u64) -> Result<Admitted, Denied> {
    limiter.peek_at(now, cost)?;
    limiter.try_acquire_at(now, cost)
}
