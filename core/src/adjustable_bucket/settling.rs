//! Reserving tokens, and ending reservations.

use super::AdjustableBucket;
use super::deciding::is_short;
use super::reservation::{Reservable, Reservation};
use super::step::Account;
use super::words::{Kind, Rule};
use crate::decision::{Decision, Denied};
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
    pub fn reserve_at(&self, now: Nanos, cost: u64) -> Result<Reservation<&Self>, Denied> {
        self.reserved(now, self.hold_silently(now, cost), cost, self)
    }

    fn reserved<B: Reservable>(
        &self,
        now: Nanos,
        decision: Decision,
        cost: u64,
        bucket: B,
    ) -> Result<Reservation<B>, Denied> {
        // Made before anybody is told, so that a panic there lets go of it.
        let reservation = decision.map(|admitted| Reservation::of_held(bucket, cost, &admitted));
        let _ = self.tell(now, cost, decision);
        reservation
    }

    /// `held` is 0 once it is settled, also if telling the observer panics.
    pub(super) fn settle_held_at(&self, now: Nanos, held: &mut u64, spent: u64) -> Debit {
        let debit = self.update(|account, rule| settled(account, rule, now, *held, spent));
        self.tell_settled(now, core::mem::take(held), debit)
    }

    /// By a clock that the caller lends.
    pub(super) fn settle_held_by(&self, clock: &impl Clock, since: Nanos, held: &mut u64, spent: u64) -> Debit {
        loop {
            let (seen, mut now) = self.look_by(clock);
            // What was held counts under the quota that it was held under, also when there is no limit any more.
            if *held > 0 && matches!(seen.rule.kind, Kind::Unlimited) {
                now = clock.now();
            }
            now = now.max(since);
            let change = |account: Account, rule: &Rule| settled(account, rule, now, *held, spent);
            if let Some(debit) = self.update_from(seen, change, is_short) {
                return self.tell_settled(now, core::mem::take(held), debit);
            }
        }
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
        let (now, decision) = self.decide_by(&self.clock, |seen, now| self.hold_from(seen, now, cost));
        self.reserved(now, decision, cost, self)
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
        let (now, decision) = self.decide_by(&self.clock, |seen, now| self.hold_from(seen, now, cost));
        self.reserved(now, decision, cost, alloc::sync::Arc::clone(self))
    }
}

impl<C, O> AdjustableBucket<C, O> {
    pub(crate) fn let_go_silently(&self, held: u64) {
        self.update(|account, _| (Account { held: account.held.saturating_sub(held), ..account }, ()));
    }

    pub(crate) fn settle_silently(&self, now: Nanos, held: u64, spent: u64) -> Debit {
        self.update(|account, rule| settled(account, rule, now, held, spent)).0
    }
}

/// The account after a settlement; also tells whether anything was counted.
fn settled(account: Account, rule: &Rule, now: Nanos, held: u64, spent: u64) -> (Account, (Debit, bool)) {
    match (rule.kind, &rule.step) {
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
    }
}
