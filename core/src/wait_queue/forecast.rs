//! Looking ahead: when the next wait is over, and when one more would be.

use super::queue::WaitQueue;
use super::slots::Slots;
use crate::decision::Denied;
use crate::{Limiter, Nanos};

impl<S: Slots> WaitQueue<S> {
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

    /// A reading before which one more waiter of `cost`, coming at `now`, cannot go, if nobody else takes or gives back anything
    /// and nobody ahead of it leaves before its time: who is refused when its deadline is earlier would have waited in vain.
    ///
    /// It is never later than the truth, because it counts only those ahead who go for certain: all of them up to the earliest
    /// deadline, since nobody's wait ends unserved before, and from then on those who have no deadline. So it is weak where most
    /// have one: [`expected_for_new_at`](Self::expected_for_new_at) counts them all. While somebody may wait for more than can
    /// ever be taken (who will be refused, which [`refuse_at`](Self::refuse_at) does at once), it counts nobody ahead.
    ///
    /// Without deadlines it is exact for a [`TokenBucket`](crate::TokenBucket) to within 1 ns for each of them that takes its whole
    /// capacity. `now` where only a release could tell. O(1).
    ///
    /// # Errors
    /// The denial, if the waiter could never go.
    pub fn earliest_for_new_at<L: Limiter + ?Sized>(
        &self,
        now: Nanos,
        limiter: &L,
        cost: u64,
    ) -> Result<Nanos, Denied> {
        if self.is_newest_first || is_hopeless(limiter, now, self.largest_cost()) {
            return turn_behind(0, now, limiter, cost);
        }
        let behind_all = turn_behind(self.waiting_cost(), now, limiter, cost)?;
        match self.next_deadline() {
            Some(deadline) if deadline < behind_all => {
                Ok(deadline.max(turn_behind(self.patient_cost(), now, limiter, cost)?))
            }
            _ => Ok(behind_all),
        }
    }

    /// The reading at which one more waiter of `cost`, coming at `now`, goes if all ahead of it go and nobody else takes or gives
    /// back anything: what somebody is told who asks how long the wait is.
    ///
    /// It goes earlier if anybody ahead leaves, is refused or comes too late; so a refusal by this reading may be of a wait that
    /// would have succeeded. How exact it is: see [`earliest_for_new_at`](Self::earliest_for_new_at). O(1).
    ///
    /// # Errors
    /// The denial, if the waiter could never go.
    pub fn expected_for_new_at<L: Limiter + ?Sized>(
        &self,
        now: Nanos,
        limiter: &L,
        cost: u64,
    ) -> Result<Nanos, Denied> {
        let ahead = if self.is_newest_first { 0 } else { self.waiting_cost() };
        turn_behind(ahead, now, limiter, cost)
    }
}

/// Whether `cost` can never be taken.
pub(super) fn is_hopeless<L: Limiter + ?Sized>(limiter: &L, now: Nanos, cost: u64) -> bool {
    limiter.peek_at(now, cost).is_err_and(|denied| denied.is_final())
}

/// The reading before which `cost` cannot be taken after `ahead` was.
fn turn_behind<L: Limiter + ?Sized>(ahead: u128, now: Nanos, limiter: &L, cost: u64) -> Result<Nanos, Denied> {
    match limiter.peek_at(now, cost) {
        Err(denied) if denied.is_final() => Err(denied),
        _ => Ok(limiter.earliest_at(now, ahead + u128::from(cost)).unwrap_or(now)),
    }
}
