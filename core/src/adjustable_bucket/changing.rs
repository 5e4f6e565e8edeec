//! Changing the limit of a bucket that is in use.

use core::fmt;

use super::AdjustableBucket;
use super::step::Account;
use super::words::Rule;
use crate::observer::Observer;
use crate::token_bucket::Inheritance;
use crate::{Clock, Limit, Nanos};

/// Another change of the same bucket was under way: nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdjustError;

impl<C, O: Observer> AdjustableBucket<C, O> {
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

    /// Changes the limit now, by a clock that the caller lends: it must have the origin of the readings that the bucket is asked at. See
    /// [`adjust_at`](Self::adjust_at).
    pub fn adjust_by(&self, clock: &impl Clock, limit: impl Into<Limit>, inheritance: Inheritance) {
        let limit = limit.into();
        // The clock is read within the change, after what there is: a reading from before it would take what flowed in since
        // for owed, and carry that over to the new rate.
        while self.change(|| clock.now(), limit, inheritance).is_err() {
            crate::sync::spin_loop();
        }
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
}

impl<C: Clock, O: Observer> AdjustableBucket<C, O> {
    /// Changes the limit now. See [`adjust_at`](Self::adjust_at).
    pub fn adjust(&self, limit: impl Into<Limit>, inheritance: Inheritance) {
        self.adjust_by(&self.clock, limit, inheritance);
    }
}

impl fmt::Display for AdjustError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another change of this bucket is under way, try again")
    }
}

impl core::error::Error for AdjustError {}
