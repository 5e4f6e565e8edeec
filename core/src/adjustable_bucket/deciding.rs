//! Taking, holding and giving back.

use super::AdjustableBucket;
use super::cell::Snapshot;
use super::step::Account;
use super::words::{Kind, Rule};
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::observer::{Observer, report};
use crate::token_bucket::{BucketStep, Debit};
use crate::{Clock, Nanos};

impl<C, O: Observer> AdjustableBucket<C, O> {
    /// Takes `cost` tokens at the reading `now`, or nothing.
    ///
    /// One reading can serve all limiters of a request. It must come from a clock with the same origin every time.
    /// Without a limit the request is admitted and nobody is told.
    ///
    /// # Errors
    /// [`Denied::RateLimited`] when too little is left, [`Denied::ConcurrencyLimited`] when reservations hold so much that
    /// only their end can help, [`Denied::CostExceedsLimit`] when `cost` is more than the capacity, [`Denied::Closed`] under
    /// [`Limit::DenyAll`]. A denial takes nothing.
    #[inline]
    pub fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        self.tell(now, cost, self.take_silently(now, cost))
    }

    /// Gives `cost` tokens back, whenever they were taken: for work that turned out not to be done.
    ///
    /// The bucket never holds more than its capacity. Tokens that refill has replaced since they were taken come on top of
    /// that refill; [`reserve`](Self::reserve) instead where that matters. No more than the capacity and the debt of the quota
    /// in force is given back at a time, and without one nothing is. No clock is read.
    pub fn refund(&self, cost: u64) {
        let counted = self.update(self.cell.read(), |account, rule| match rule.step() {
            Ok(step) => (Account { state: step.refund(account.state, cost), ..account }, true),
            Err(_) => (account, false),
        });
        if counted {
            self.observer.refunded(cost);
        }
    }

    /// Takes `cost` tokens at `now` whether or not they are there, for what has already happened, as far as the quota's
    /// [`debt`](crate::Quota::debt) reaches. What is held is left alone. See [`BucketStep::debit`].
    ///
    /// Without a limit all of it counts as charged; under [`Limit::DenyAll`] none of it does.
    pub fn debit_at(&self, now: Nanos, cost: u64) -> Debit {
        self.tell_debit(now, self.debit_from(self.cell.read(), now, cost))
    }

    fn tell_debit(&self, now: Nanos, (debit, counted): (Debit, bool)) -> Debit {
        if counted {
            self.observer.debited(now, &debit);
        }
        debit
    }

    #[inline(always)]
    pub(crate) fn tell(&self, now: Nanos, cost: u64, decision: Decision) -> Decision {
        match decision {
            Ok(Admitted { remaining: Remaining::Unlimited, .. }) => decision,
            _ => report(&self.observer, now, cost, decision),
        }
    }
}

impl<C: Clock, O: Observer> AdjustableBucket<C, O> {
    /// Takes `cost` tokens now, or nothing.
    ///
    /// Without a limit the request is admitted at [`Nanos::ZERO`]: no clock is read and nobody is told.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    #[inline]
    pub fn try_acquire(&self, cost: u64) -> Decision {
        let (seen, now) = self.look();
        self.tell(now, cost, self.take_from(seen, now, cost))
    }

    /// Takes `cost` tokens now whether or not they are there. See [`debit_at`](Self::debit_at).
    pub fn debit(&self, cost: u64) -> Debit {
        let (seen, now) = self.look();
        self.tell_debit(now, self.debit_from(seen, now, cost))
    }
}

impl<C, O> AdjustableBucket<C, O> {
    /// Takes or holds `cost`, as `change` does, if it is there; `denial` says why not. Without a limit in what was `seen`
    /// it is admitted whatever `now` is.
    #[inline(always)]
    fn obtain(
        &self,
        mut seen: Snapshot,
        now: Nanos,
        cost: u64,
        change: impl Fn(Account, &BucketStep, u64, u64) -> Option<(Account, u64)>,
        denial: impl Fn(Account, &BucketStep, u64, Nanos, u64) -> Denied,
    ) -> Decision {
        loop {
            let step = match seen.rule.step() {
                Ok(step) => step,
                Err(kind) => return without_quota(kind, now),
            };
            let accrued = step.accrued(now);
            let Some((next, left)) = change(seen.account(), step, accrued, cost) else {
                return Err(denial(seen.account(), step, accrued, now, cost));
            };
            if cost == 0 {
                return Ok(step.admission(now, left));
            }
            match self.cell.replace(&seen, next) {
                None => return Ok(step.admission(now, left)),
                Some(now_there) => seen = now_there,
            }
        }
    }

    /// Changes the account, whatever it is; `change` also tells what to answer.
    pub(super) fn update<A>(&self, mut seen: Snapshot, change: impl Fn(Account, &Rule) -> (Account, A)) -> A {
        loop {
            let (next, answer) = change(seen.account(), &seen.rule);
            if next == seen.account() {
                return answer;
            }
            match self.cell.replace(&seen, next) {
                None => return answer,
                Some(now_there) => seen = now_there,
            }
        }
    }

    #[inline]
    pub(crate) fn take_silently(&self, now: Nanos, cost: u64) -> Decision {
        self.take_from(self.cell.read(), now, cost)
    }

    #[inline(always)]
    pub(super) fn take_from(&self, seen: Snapshot, now: Nanos, cost: u64) -> Decision {
        self.obtain(seen, now, cost, Account::take, Account::denial)
    }

    #[inline]
    pub(crate) fn hold_silently(&self, now: Nanos, cost: u64) -> Decision {
        self.hold_from(self.cell.read(), now, cost)
    }

    #[inline]
    pub(super) fn hold_from(&self, seen: Snapshot, now: Nanos, cost: u64) -> Decision {
        self.obtain(seen, now, cost, Account::hold, Account::hold_denial)
    }

    fn debit_from(&self, seen: Snapshot, now: Nanos, cost: u64) -> (Debit, bool) {
        self.update(seen, |account, rule| match rule.step() {
            Ok(step) => {
                let (next, debit) = account.debit(step, now, cost);
                (next, (debit, true))
            }
            Err(Kind::Unlimited) => (account, (Debit { charged: cost, unpaid: 0 }, false)),
            Err(_) => (account, (Debit { charged: 0, unpaid: cost }, false)),
        })
    }
}

impl Snapshot {
    #[inline(always)]
    pub(super) fn peek(&self, now: Nanos, cost: u64) -> Decision {
        let step = match self.rule.step() {
            Ok(step) => step,
            Err(kind) => return without_quota(kind, now),
        };
        let accrued = step.accrued(now);
        match self.account().take(step, accrued, cost) {
            Some((_, left)) => Ok(step.admission(now, left)),
            None => Err(self.account().denial(step, accrued, now, cost)),
        }
    }

    pub(super) fn inspect(&self, now: Nanos) -> Inspection {
        match self.rule.step() {
            Ok(step) => self.account().inspect(step, now),
            Err(Kind::Unlimited) => Inspection::new(u64::MAX, u64::MAX),
            Err(_) => Inspection::new(0, 0),
        }
    }
}

impl Rule {
    /// The quota that decides; or what does instead.
    #[inline(always)]
    pub(super) fn step(&self) -> Result<&BucketStep, Kind> {
        match (self.kind, &self.step) {
            (Kind::Quota, Some(step)) => Ok(step),
            (kind, _) => Err(kind),
        }
    }
}

#[inline]
fn without_quota(kind: Kind, now: Nanos) -> Decision {
    match kind {
        Kind::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
        Kind::DenyAll | Kind::Quota => Err(Denied::Closed),
    }
}
