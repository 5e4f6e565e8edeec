//! When one goes that waits, or would.

use core::time::Duration;

use sluicegate_core::{Denied, Nanos};

use super::Line;
use crate::costs::Costs;
use crate::grant::{Grantor, Total};
use crate::room::Room;

/// As [`WaitQueue`](sluicegate_core::WaitQueue) looks ahead, for costs at several levels.
impl<S: Room, L: Grantor> Line<S, L> {
    /// The reading before which a waiter of `cost` that comes now cannot go.
    pub(crate) fn earliest(&self, now: Nanos, grantor: &L, cost: L::Cost) -> Result<Nanos, L::Denial> {
        never(grantor, now, cost)?;
        let makes_room = self.is_evicting && self.queue.len() >= self.queue.bound();
        if makes_room || never(grantor, now, self.largest).is_err() {
            // Some of those ahead will be evicted, or refused and take nothing, and nobody knows how many.
            return Ok(grantor.earliest_at(now, with(L::Cost::OF_NONE, cost)).unwrap_or(now));
        }
        let turn_behind = |ahead| grantor.earliest_at(now, with(ahead, cost)).unwrap_or(now);
        let behind_all = turn_behind(self.ahead());
        match self.queue.next_deadline() {
            // Up to the earliest deadline nobody's wait ends unserved, and from then on only those who have none go for certain.
            Some(deadline) if deadline < behind_all && !self.is_newest_first => {
                Ok(deadline.max(turn_behind(self.patient)))
            }
            _ => Ok(behind_all),
        }
    }

    /// What one is told that does not wait behind those who do: when it would go if nobody ahead leaves.
    pub(crate) fn denial_behind(&self, now: Nanos, grantor: &L, cost: L::Cost) -> L::Denial {
        match never(grantor, now, cost) {
            Err(denial) => denial,
            // Whichever way the line goes: it is to be empty first.
            Ok(()) => self.denial_of(now, grantor, with(self.waiting, cost)),
        }
    }

    /// Whether no clock knows when the head goes.
    pub(crate) fn waits_for_a_release(&self, now: Nanos, grantor: &L) -> bool {
        let of_head = self.head_cost().and_then(|cost| grantor.peek_hold_at(now, cost).err());
        self.is_behind_others() && of_head.is_some_and(|denial| denial.into() == Denied::ConcurrencyLimited)
    }

    /// What is told of a turn that comes once `total` could be taken.
    fn denial_of(&self, now: Nanos, grantor: &L, total: Total<L>) -> L::Denial {
        let of_head = self.head_cost().and_then(|cost| grantor.peek_hold_at(now, cost).err()).map(Into::into);
        let denied = match (grantor.earliest_at(now, total), of_head) {
            // No clock knows, of anybody or of the one that goes first.
            (None, _) | (_, Some(Denied::ConcurrencyLimited)) => Denied::ConcurrencyLimited,
            (Some(turn), of_head) => {
                // The head's own turn is known best, and others have to wait for that.
                let of_head = of_head.and_then(|denied: Denied| denied.retry_after()).unwrap_or(Duration::ZERO);
                let retry_after = turn.saturating_duration_since(now).max(of_head).max(Duration::from_nanos(1));
                Denied::RateLimited { retry_after }
            }
        };
        grantor.denial(now, total, denied)
    }

    /// What a waiter of `cost` that comes now and those ahead of it ask for.
    pub(crate) fn with_those_ahead(&self, cost: L::Cost) -> Total<L> {
        with(self.ahead(), cost)
    }

    /// What those ask for who are ahead of one who comes now.
    fn ahead(&self) -> Total<L> {
        if self.is_newest_first { L::Cost::OF_NONE } else { self.waiting }
    }

    /// The reading at which the last in the line goes, if a clock knows it and nobody ahead leaves.
    pub(crate) fn turn_of_newest(&self, now: Nanos, grantor: &L) -> Option<Nanos> {
        grantor.earliest_at(now, self.waiting)
    }

    /// What one is told whose deadline has come, and who is out of the queue: what it would be told if it came now.
    pub(super) fn denial_at_deadline(&self, now: Nanos, grantor: &L, number: u32) -> L::Denial {
        let cost = self.cost(number);
        // It is counted among those who wait until it has been told.
        let total = if self.is_newest_first { with(L::Cost::OF_NONE, cost) } else { self.waiting };
        let behind = self.denial_of(now, grantor, total);
        let Err(own) = grantor.peek_hold_at(now, cost) else {
            // It is free, and others wait for it.
            return behind;
        };
        match (own.into(), behind.into()) {
            (Denied::RateLimited { retry_after: own }, Denied::RateLimited { retry_after: longer }) if own < longer => {
                behind
            }
            (Denied::RateLimited { .. }, Denied::ConcurrencyLimited) => behind,
            _ => own,
        }
    }
}

/// Why `cost` can never be granted, if it cannot.
pub(super) fn never<L: Grantor>(grantor: &L, now: Nanos, cost: L::Cost) -> Result<(), L::Denial> {
    match grantor.peek_hold_at(now, cost) {
        Err(denial) if denial.into().is_final() => Err(denial),
        _ => Ok(()),
    }
}

/// What one of `cost` asks for together with those ahead of it.
fn with<C: Costs>(mut ahead: C::Total, cost: C) -> C::Total {
    cost.add_to(&mut ahead);
    ahead
}
