//! Reserving tokens, and ending reservations.

use super::AdjustableBucket;
use super::cell::Snapshot;
use super::reservation::{Reservable, Reservation};
use super::step::Account;
use super::words::Kind;
use crate::decision::Denied;
use crate::observer::Observer;
use crate::token_bucket::Debit;
use crate::{Clock, Nanos};

impl<C, O: Observer> AdjustableBucket<C, O> {
    /// Holds `cost` tokens at the reading `now` for a request whose cost is known only afterwards.
    ///
    /// The observer is told of an admission of `cost` now, and of a settlement or a refund later.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    pub fn reserve_at(&self, now: Nanos, cost: u64) -> Result<Reservation<&Self>, Denied>
    where
        C: Clock,
    {
        self.reserve_from(self.cell.read(), now, cost, self)
    }

    fn reserve_from<B: Reservable>(
        &self,
        seen: Snapshot,
        now: Nanos,
        cost: u64,
        bucket: B,
    ) -> Result<Reservation<B>, Denied> {
        let decision = self.hold_from(seen, now, cost);
        // Made before anybody is told, so that a panic there lets go of it.
        let reservation = decision.map(|admitted| Reservation::new(bucket, cost, &admitted));
        let _ = self.tell(now, cost, decision);
        reservation
    }

    /// `held` is 0 once it is settled, also if telling the observer panics.
    pub(super) fn settle_held_at(&self, now: Nanos, held: &mut u64, spent: u64) -> Debit {
        self.settle_and_tell(self.cell.read(), now, held, spent)
    }

    fn settle_and_tell(&self, seen: Snapshot, now: Nanos, held: &mut u64, spent: u64) -> Debit {
        let settled = self.settle_from(seen, now, *held, spent);
        self.tell_settled(now, core::mem::take(held), settled)
    }

    fn tell_settled(&self, now: Nanos, held: u64, (debit, counted): (Debit, bool)) -> Debit {
        if counted {
            self.observer.settled(now, held, &debit);
        }
        debit
    }

    pub(super) fn let_go_of(&self, held: u64) {
        self.let_go_silently(held);
        self.observer.refunded(held);
    }
}

impl<C: Clock, O: Observer> AdjustableBucket<C, O> {
    /// Holds `cost` tokens for a request whose cost is known only afterwards.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    pub fn reserve(&self, cost: u64) -> Result<Reservation<&Self>, Denied> {
        let (seen, now) = self.look();
        self.reserve_from(seen, now, cost, self)
    }

    /// As [`reserve`](Self::reserve), for a reservation that keeps the bucket alive and may go anywhere. Needs the feature
    /// `alloc`.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    pub fn reserve_owned(
        self: &alloc::sync::Arc<Self>,
        cost: u64,
    ) -> Result<Reservation<alloc::sync::Arc<Self>>, Denied> {
        let (seen, now) = self.look();
        self.reserve_from(seen, now, cost, alloc::sync::Arc::clone(self))
    }

    pub(super) fn settle_held(&self, since: Nanos, held: &mut u64, spent: u64) -> Debit {
        let (seen, mut now) = self.look();
        // What was held counts under the quota that it was held under, also when there is no limit any more.
        if *held > 0 && matches!(seen.rule.kind, Kind::Unlimited) {
            now = self.clock.now();
        }
        self.settle_and_tell(seen, now.max(since), held, spent)
    }
}

impl<C, O> AdjustableBucket<C, O> {
    pub(crate) fn let_go_silently(&self, held: u64) {
        self.update(self.cell.read(), |account, _| {
            (Account { held: account.held.saturating_sub(held), ..account }, ())
        });
    }

    pub(crate) fn settle_silently(&self, now: Nanos, held: u64, spent: u64) -> Debit {
        self.settle_from(self.cell.read(), now, held, spent).0
    }

    /// Also tells whether anything was counted.
    fn settle_from(&self, seen: Snapshot, now: Nanos, held: u64, spent: u64) -> (Debit, bool) {
        self.update(seen, |account, rule| match (rule.kind, &rule.step) {
            (Kind::Quota, Some(step)) => {
                let (next, debit) = account.settle(step, now, held, spent);
                (next, (debit, true))
            }
            (kind, step) => {
                // What was held under a quota is consumed under it, so that it counts should a quota follow again.
                let covered = spent.min(held);
                let released = Account { held: account.held.saturating_sub(held), ..account };
                let next = step.as_ref().map_or(released, |step| account.settle(step, now, held, covered).0);
                let charged = if let Kind::Unlimited = kind { spent } else { covered };
                (next, (Debit { charged, unpaid: spent - charged }, held > 0))
            }
        })
    }
}
