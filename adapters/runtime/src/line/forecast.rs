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
        if never(grantor, now, self.largest).is_err() {
            // Some of those ahead will be refused and take nothing, and nobody knows how many.
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

    /// The reading at which a waiter of `cost` that comes now goes if nobody ahead leaves.
    pub(crate) fn expected(&self, now: Nanos, grantor: &L, cost: L::Cost) -> Result<Nanos, L::Denial> {
        never(grantor, now, cost)?;
        Ok(grantor.earliest_at(now, self.with_those_ahead(cost)).unwrap_or(now))
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
        let turn = grantor.earliest_at(now, total).unwrap_or(now);
        let Err(own) = grantor.peek_hold_at(now, cost) else {
            // It is free, or others wait for it, or no clock knows when it will be.
            let retry_after = turn.saturating_duration_since(now).max(Duration::from_nanos(1));
            return grantor.denial(now, total, Denied::RateLimited { retry_after });
        };
        match own.into() {
            Denied::RateLimited { retry_after } if now.saturating_add(retry_after) < turn => {
                let retry_after = turn.saturating_duration_since(now);
                grantor.denial(now, total, Denied::RateLimited { retry_after })
            }
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
