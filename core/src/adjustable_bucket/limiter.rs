//! The bucket that can be changed and reserved from while it is in use.

use core::fmt;

use super::cell::{Cell, Snapshot};
use super::reservation::{Reservable, Reservation};
use super::step::Account;
use super::words::{Kind, Rule};
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::observer::{Observer, report};
use crate::token_bucket::{BucketStep, Debit, Inheritance};
use crate::{Clock, Limit, Limiter, Nanos};

/// A token bucket whose limit may change while it is in use, and from which tokens can be reserved.
///
/// It decides as a [`TokenBucket`](crate::TokenBucket) does, exactly. What it adds:
///
/// - [`adjust`](Self::adjust) changes the limit.
/// - [`reserve`](Self::reserve) holds tokens for a request whose cost is known only afterwards.
/// - As a level of a [`Hierarchy`](crate::Hierarchy) it can be held until all levels agree.
///
/// # Guarantees
///
/// - All that a `TokenBucket` guarantees, for each stretch under one quota.
/// - *A change is one step*: the bucket is settled under the old quota up to the reading of the change and goes on under the
///   new one, with what [`Inheritance`] says. Nothing decided under the old quota takes effect after the change. No change
///   makes a token or takes one, but for those that a smaller capacity has no room for, and less than a unit of refill: 1 ns
///   of it, see [`BucketStep::inherit`].
/// - *A hold leaves no trace*: see [`Reservation`].
/// - Decisions are lock-free and allocate nothing. Changes exclude one another, and nobody else.
///
/// # Trade-off
///
/// Its state is 128 bits, and its rule is read at each decision from where it can be changed: a denial takes two to three
/// times as long as a `TokenBucket`'s, an admission about four times. The whole takes 16 bytes of state, 224 of rules and the
/// clock. Where a target has no 128-bit atomics, portable-atomic emulates them.
///
/// At most 2^40 - 1 tokens can be held at once; more is [`Denied::ConcurrencyLimited`]. A single reservation or request of a
/// [`Hierarchy`](crate::Hierarchy) that asks for more than that is [`Denied::CostExceedsLimit`].
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{AdjustableBucket, Denied, Inheritance, Limit, ManualClock, quota};
///
/// let bucket = AdjustableBucket::with_clock(quota!("100/1s"), ManualClock::new());
/// bucket.try_acquire(90)?;
///
/// // Half the rate, but what is left stays.
/// bucket.adjust(Limit::Quota(quota!("50/1s")), Inheritance::Level);
/// assert_eq!(bucket.inspect().level, 10);
/// bucket.clock().advance(Duration::from_millis(100));
/// assert_eq!(bucket.inspect().level, 15);
/// # Ok::<(), Denied>(())
/// ```
pub struct AdjustableBucket<C, O = ()> {
    cell: Cell,
    clock: C,
    observer: O,
}

/// Another change of the same bucket was under way: nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdjustError;

impl<C: Clock + Default> AdjustableBucket<C> {
    /// A full bucket on the default clock.
    pub fn new(limit: impl Into<Limit>) -> Self {
        Self::with_limit(limit.into(), C::default())
    }
}

impl<C: Clock> AdjustableBucket<C> {
    /// A full bucket on `clock`.
    pub fn with_clock(limit: impl Into<Limit>, clock: C) -> Self {
        Self::with_limit(limit.into(), clock)
    }
}

impl<C> AdjustableBucket<C> {
    crate::sync::const_unless_loom! {
        /// A full bucket on `clock`, in a constant too.
        pub fn with_limit(limit: Limit, clock: C) -> Self {
            Self { cell: Cell::new(Rule::new(limit)), clock, observer: () }
        }
    }

    /// The same bucket, which from now on tells `observer` of every decision and change.
    pub fn observed_by<O: Observer>(self, observer: O) -> AdjustableBucket<C, O> {
        AdjustableBucket { cell: self.cell, clock: self.clock, observer }
    }
}

impl<C, O> AdjustableBucket<C, O> {
    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.cell.read().rule.limit()
    }

    /// The tokens that reservations hold.
    pub fn held(&self) -> u64 {
        self.cell.read().account().held
    }

    /// The clock.
    #[inline]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The observer.
    #[inline]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    #[inline]
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.cell.read().peek(now, cost)
    }

    /// The tokens at `now` that nobody holds. Changes nothing.
    pub fn inspect_at(&self, now: Nanos) -> Inspection {
        self.cell.read().inspect(now)
    }

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
    fn update<A>(&self, mut seen: Snapshot, change: impl Fn(Account, &Rule) -> (Account, A)) -> A {
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
    fn take_from(&self, seen: Snapshot, now: Nanos, cost: u64) -> Decision {
        self.obtain(seen, now, cost, Account::take, Account::denial)
    }

    #[inline]
    pub(crate) fn hold_silently(&self, now: Nanos, cost: u64) -> Decision {
        self.hold_from(self.cell.read(), now, cost)
    }

    #[inline]
    fn hold_from(&self, seen: Snapshot, now: Nanos, cost: u64) -> Decision {
        self.obtain(seen, now, cost, Account::hold, Account::hold_denial)
    }

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

    /// Changes the limit at the reading `now`, once no other change is under way.
    ///
    /// Changes by other callers are short, and are waited for. A caller that may have interrupted one, as an interrupt
    /// handler may, must use [`try_adjust_at`](Self::try_adjust_at).
    pub fn adjust_at(&self, now: Nanos, limit: Limit, inheritance: Inheritance) {
        while self.try_adjust_at(now, limit, inheritance).is_err() {
            crate::sync::spin_loop();
        }
    }

    /// Changes the limit at the reading `now`: one step that settles the bucket under the old limit and puts the new one in
    /// force. It never waits.
    ///
    /// From `off` or `deny` to a quota, the bucket goes on from the last quota it had, which refilled meanwhile; if it never
    /// had one, from a full bucket of the new quota. What reservations hold stays held. A change at a reading earlier than the
    /// last change's counts as made at that one's, so that no span of time refills the bucket under two quotas; but
    /// [`Inheritance::Full`] begins anew at its own reading.
    ///
    /// Tokens that others take at readings later than `now` before the change lands count as owed at `now`: what flowed in
    /// between for them is then paid off at the new rate. [`adjust`](Self::adjust) reads the clock late enough for that not to
    /// happen; with readings of your own, make changes at one that is as new as any. A change at a reading far ahead shuts the
    /// bucket until then, or until a change with `Full`.
    ///
    /// # Errors
    /// [`AdjustError`] when another change is under way at this instant; nothing was changed.
    pub fn try_adjust_at(&self, now: Nanos, limit: Limit, inheritance: Inheritance) -> Result<(), AdjustError> {
        self.change(|| now, limit, inheritance)
    }

    /// `now` is asked within the change.
    pub(crate) fn change(
        &self,
        now: impl Fn() -> Nanos,
        limit: Limit,
        inheritance: Inheritance,
    ) -> Result<(), AdjustError> {
        let next = |old: &Rule| {
            let new = Rule::new(limit);
            Rule { step: new.step.or(old.step), ..new }
        };
        let at = |last: Nanos| if let Inheritance::Full = inheritance { now() } else { now().max(last) };
        let settle = |old: &Rule, new: &Rule, account: Account, now: Nanos| {
            let new = new.step.as_ref()?;
            // Without a quota so far it is as if it had had the new one.
            let old = old.step.as_ref().unwrap_or(new);
            // The same quota still fills or empties the bucket if that is what was asked for.
            if old == new && !matches!(inheritance, Inheritance::Full | Inheritance::Empty) {
                return None;
            }
            Some(Account { state: new.inherit(old, account.state, now, inheritance), ..account })
        };
        let change = self.cell.change(at, next, settle).ok_or(AdjustError)?;
        self.observer.adjusted(change.at, change.from.limit(), change.to.limit());
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn tell(&self, now: Nanos, cost: u64, decision: Decision) -> Decision {
        match decision {
            Ok(Admitted { remaining: Remaining::Unlimited, .. }) => decision,
            _ => report(&self.observer, now, cost, decision),
        }
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

    /// Takes `cost` tokens now whether or not they are there. See [`debit_at`](Self::debit_at).
    pub fn debit(&self, cost: u64) -> Debit {
        let (seen, now) = self.look();
        self.tell_debit(now, self.debit_from(seen, now, cost))
    }

    /// Changes the limit now. See [`adjust_at`](Self::adjust_at).
    pub fn adjust(&self, limit: impl Into<Limit>, inheritance: Inheritance) {
        let limit = limit.into();
        // The clock is read within the change, after what there is: a reading from before it would take what flowed in since
        // for owed, and carry that over to the new rate.
        while self.change(|| self.clock.now(), limit, inheritance).is_err() {
            crate::sync::spin_loop();
        }
    }

    /// What [`try_acquire`](Self::try_acquire) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire`.
    pub fn peek(&self, cost: u64) -> Decision {
        let (seen, now) = self.look();
        seen.peek(now, cost)
    }

    /// The tokens now that nobody holds. Changes nothing.
    pub fn inspect(&self) -> Inspection {
        let (seen, now) = self.look();
        seen.inspect(now)
    }

    pub(super) fn settle_held(&self, since: Nanos, held: &mut u64, spent: u64) -> Debit {
        let (seen, mut now) = self.look();
        // What was held counts under the quota that it was held under, also when there is no limit any more.
        if *held > 0 && matches!(seen.rule.kind, Kind::Unlimited) {
            now = self.clock.now();
        }
        self.settle_and_tell(seen, now.max(since), held, spent)
    }

    /// What there is, and a reading to decide it by. Both are from here on: where there is no limit the clock is not read,
    /// and a limit that comes meanwhile must not be asked at a reading that none was.
    #[inline(always)]
    fn look(&self) -> (Snapshot, Nanos) {
        let seen = self.cell.read();
        let now = if let Kind::Unlimited = seen.rule.kind { Nanos::ZERO } else { self.clock.now() };
        (seen, now)
    }
}

impl Snapshot {
    #[inline(always)]
    fn peek(&self, now: Nanos, cost: u64) -> Decision {
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

    fn inspect(&self, now: Nanos) -> Inspection {
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
    fn step(&self) -> Result<&BucketStep, Kind> {
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

impl<C, O: Observer> Limiter for AdjustableBucket<C, O> {
    #[inline]
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        self.try_acquire_at(now, cost)
    }

    #[inline]
    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.peek_at(now, cost)
    }

    #[inline]
    fn inspect_at(&self, now: Nanos) -> Inspection {
        self.inspect_at(now)
    }

    /// As a `TokenBucket`'s. What is held is left out, because it may be let go.
    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        let seen = self.cell.read();
        match seen.rule.step() {
            Ok(step) => Some(step.earliest(seen.account().state, now, total)),
            Err(Kind::Unlimited) => Some(now),
            Err(_) => None,
        }
    }

    #[inline]
    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        self.take_silently(now, cost)
    }

    #[inline]
    fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
        let _ = self.tell(now, cost, *decision);
    }
}

impl<C, O> fmt::Debug for AdjustableBucket<C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seen = self.cell.read();
        f.debug_struct("AdjustableBucket")
            .field("limit", &seen.rule.limit())
            .field("state", &seen.account().state.to_bits())
            .field("held", &seen.account().held)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for AdjustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another change of this bucket is under way, try again")
    }
}

impl core::error::Error for AdjustError {}
