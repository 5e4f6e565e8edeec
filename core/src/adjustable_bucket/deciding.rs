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
    /// [`Limit::DenyAll`](crate::Limit::DenyAll). A denial takes nothing.
    #[inline(always)]
    pub fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        self.tell(now, cost, self.take_silently(now, cost))
    }

    /// Gives `cost` tokens back, whenever they were taken: for work that turned out not to be done.
    ///
    /// The bucket never holds more than its capacity. Tokens that refill has replaced since they were taken come on top of
    /// that refill; [`reserve`](Self::reserve) instead where that matters. No more than the capacity and the debt of the quota
    /// in force is given back at a time, and without one nothing is. No clock is read.
    pub fn refund(&self, cost: u64) {
        if let Some(returned) = self.give_back(cost) {
            self.observer.refunded(returned);
        }
    }

    /// The same, and tells nobody but the caller how much came back; `None` where there is nothing to give back to.
    pub(crate) fn give_back(&self, cost: u64) -> Option<u64> {
        self.update(|account, rule| match rule.step() {
            Ok(step) => {
                let (state, returned) = step.give_back(account.state, cost);
                (Account { state, ..account }, Some(returned))
            }
            Err(_) => (account, None),
        })
    }

    /// Takes `cost` tokens at `now` whether or not they are there, for what has already happened, as far as the quota's
    /// [`debt`](crate::Quota::debt) reaches. What is held is left alone. See [`BucketStep::debit`].
    ///
    /// Without a limit all of it counts as charged; under [`Limit::DenyAll`](crate::Limit::DenyAll) none of it does.
    pub fn debit_at(&self, now: Nanos, cost: u64) -> Debit {
        self.tell_debit(now, self.update(|account, rule| debited(account, rule, now, cost)))
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
    /// A denial is right at an instant within the call, however long the caller was suspended in it: who is overtaken between
    /// reading the clock and deciding reads it again before it is denied. Without a limit the request is admitted at
    /// [`Nanos::ZERO`]: no clock is read and nobody is told.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    #[inline(always)]
    pub fn try_acquire(&self, cost: u64) -> Decision {
        self.try_acquire_by(&self.clock, cost).1
    }

    /// Takes `cost` tokens now whether or not they are there. See [`debit_at`](Self::debit_at).
    ///
    /// What is told as unpaid could be paid for at no instant within the call.
    pub fn debit(&self, cost: u64) -> Debit {
        self.debit_by(&self.clock, cost).1
    }
}

/// By a clock that the caller lends; each also tells the reading.
impl<C, O: Observer> AdjustableBucket<C, O> {
    #[inline(always)]
    pub(crate) fn try_acquire_by(&self, clock: &impl Clock, cost: u64) -> (Nanos, Decision) {
        if self.cell.is_unlimited() {
            return (Nanos::ZERO, without_quota(Kind::Unlimited, Nanos::ZERO));
        }
        let (now, decision) = self.decide_by(clock, |seen, now| self.take_from(seen, now, cost));
        (now, self.tell(now, cost, decision))
    }

    pub(crate) fn debit_by(&self, clock: &impl Clock, cost: u64) -> (Nanos, Debit) {
        loop {
            let (seen, now) = self.look_by(clock);
            let change = |account: Account, rule: &Rule| debited(account, rule, now, cost);
            if let Some(debit) = self.update_from(seen, change, is_short) {
                return (now, self.tell_debit(now, debit));
            }
        }
    }

    /// What `decide` answers to what there is, and the reading that it did so at.
    ///
    /// A caller may be suspended between reading the clock and deciding, while others take at later readings what refill has
    /// brought since. So what there is is read before the clock: who is denied by it lacked that much then, and no less at the
    /// reading. Who is denied by what others have made of it looks again, and reads the clock again.
    #[inline(always)]
    pub(super) fn decide_by(
        &self,
        clock: &impl Clock,
        decide: impl Fn(Snapshot, Nanos) -> (Decision, Met),
    ) -> (Nanos, Decision) {
        loop {
            let (seen, now) = self.look_by(clock);
            match decide(seen, now) {
                // Another caller has changed it meanwhile: as a whole, calls make progress.
                (Err(Denied::RateLimited { .. }), Met::Another) => {}
                (decision, _) => return (now, decision),
            }
        }
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
    ) -> (Decision, Met) {
        let mut met = Met::Seen;
        loop {
            let step = match seen.rule.step() {
                Ok(step) => step,
                Err(kind) => return (without_quota(kind, now), met),
            };
            let accrued = step.accrued(now);
            let Some((next, left)) = change(seen.account(), step, accrued, cost) else {
                return (Err(denial(seen.account(), step, accrued, now, cost)), met);
            };
            if cost == 0 {
                return (Ok(step.admission(now, left)), met);
            }
            match self.cell.replace(&seen, next) {
                None => return (Ok(step.admission(now, left)), met),
                Some(now_there) => (seen, met) = (now_there, Met::Another),
            }
        }
    }

    /// Changes the account, whatever it is; `change` also tells what to answer.
    pub(super) fn update<A>(&self, change: impl Fn(Account, &Rule) -> (Account, A)) -> A {
        loop {
            if let Some(answer) = self.update_from(self.cell.read(), &change, |_| false) {
                return answer;
            }
        }
    }

    /// The same from what was `seen` on; but where it is another one, and the answer to that `is_short`, nothing is changed
    /// or answered: see [`decide_by`](Self::decide_by).
    pub(super) fn update_from<A>(
        &self,
        mut seen: Snapshot,
        change: impl Fn(Account, &Rule) -> (Account, A),
        is_short: impl Fn(&A) -> bool,
    ) -> Option<A> {
        let mut met = Met::Seen;
        loop {
            let (next, answer) = change(seen.account(), &seen.rule);
            if met == Met::Another && is_short(&answer) {
                return None;
            }
            if next == seen.account() {
                return Some(answer);
            }
            match self.cell.replace(&seen, next) {
                None => return Some(answer),
                Some(now_there) => (seen, met) = (now_there, Met::Another),
            }
        }
    }

    #[inline(always)]
    pub(crate) fn take_silently(&self, now: Nanos, cost: u64) -> Decision {
        if self.cell.is_unlimited() {
            return without_quota(Kind::Unlimited, now);
        }
        self.take_from(self.cell.read(), now, cost).0
    }

    #[inline(always)]
    fn take_from(&self, seen: Snapshot, now: Nanos, cost: u64) -> (Decision, Met) {
        self.obtain(seen, now, cost, Account::take, Account::denial)
    }

    /// What `hold_silently` would answer.
    #[inline]
    pub(crate) fn peek_hold(&self, now: Nanos, cost: u64) -> Decision {
        self.cell.read().answer(now, cost, Account::hold, Account::hold_denial)
    }

    #[inline]
    pub(crate) fn hold_silently(&self, now: Nanos, cost: u64) -> Decision {
        if self.cell.is_unlimited() {
            return without_quota(Kind::Unlimited, now);
        }
        self.hold_from(self.cell.read(), now, cost).0
    }

    #[inline]
    pub(super) fn hold_from(&self, seen: Snapshot, now: Nanos, cost: u64) -> (Decision, Met) {
        self.obtain(seen, now, cost, Account::hold, Account::hold_denial)
    }
}

/// The account after a debit; also tells whether anything was counted.
fn debited(account: Account, rule: &Rule, now: Nanos, cost: u64) -> (Account, (Debit, bool)) {
    match rule.step() {
        Ok(step) => {
            let (next, debit) = account.debit(step, now, cost);
            (next, (debit, true))
        }
        Err(Kind::Unlimited) => (account, (Debit { charged: cost, unpaid: 0 }, false)),
        Err(_) => (account, (Debit { charged: 0, unpaid: cost }, false)),
    }
}

/// What a call decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Met {
    /// What it had seen.
    Seen,
    /// What another caller has put in its place.
    Another,
}

/// Whether a debit could not be paid in full.
pub(super) fn is_short((debit, _): &(Debit, bool)) -> bool {
    debit.unpaid > 0
}

impl Snapshot {
    #[inline(always)]
    pub(super) fn peek(&self, now: Nanos, cost: u64) -> Decision {
        self.answer(now, cost, Account::take, Account::denial)
    }

    #[inline(always)]
    fn answer(
        &self,
        now: Nanos,
        cost: u64,
        change: impl Fn(Account, &BucketStep, u64, u64) -> Option<(Account, u64)>,
        denial: impl Fn(Account, &BucketStep, u64, Nanos, u64) -> Denied,
    ) -> Decision {
        let step = match self.rule.step() {
            Ok(step) => step,
            Err(kind) => return without_quota(kind, now),
        };
        let accrued = step.accrued(now);
        match change(self.account(), step, accrued, cost) {
            Some((_, left)) => Ok(step.admission(now, left)),
            None => Err(denial(self.account(), step, accrued, now, cost)),
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
