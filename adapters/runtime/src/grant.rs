//! What a queue asks of what it queues for.

use lock_api::RawMutex;
use sluicegate_core::{
    AdjustableBucket, Admitted, Decision, Denied, Holding, Limiter, Nanos, Observer, Runs, ShardId, ShardedWindow,
    Shards, SharedSlidingLog, SlidingCounter, TokenBucket,
};

/// Something that can be waited for: it grants a cost at a reading, or says why not.
///
/// # Contract
///
/// - `take_at` MUST take all of the cost or nothing, and `peek_at` MUST answer as it would and take nothing.
/// - Each `hold_at` that is `Ok` is followed by exactly one of `keep` and `let_go`, with its grant; `let_go` undoes it.
///   Who was found stuck is kept, and given back if it leaves after all.
/// - None of them may panic, wait, or tell an observer; `tell` does.
pub trait Grantor {
    /// What a waiter is given.
    type Grant;

    /// Takes `cost` at `now`, or nothing.
    ///
    /// # Errors
    /// Why not.
    fn take_at(&self, now: Nanos, cost: u64) -> Result<Self::Grant, Denied>;

    /// Takes `cost` for a waiter that does not know of it yet: it is kept or given back later.
    ///
    /// # Errors
    /// As `take_at`.
    #[inline]
    fn hold_at(&self, now: Nanos, cost: u64) -> Result<Self::Grant, Denied> {
        self.take_at(now, cost)
    }

    /// A waiter has learnt of what was held for it.
    #[inline]
    fn keep(&self, cost: u64, grant: &Self::Grant) {
        let _ = (cost, grant);
    }

    /// What `take_at` would answer.
    ///
    /// # Errors
    /// As `take_at`.
    fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), Denied>;

    /// As [`Limiter::earliest_at`].
    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos>;

    /// Gives back what was held at `at` for a waiter that went away before it learnt of it. Who can only take and give back tells
    /// the observer of both.
    fn let_go(&self, at: Nanos, cost: u64, grant: Self::Grant) {
        self.tell(at, cost, Ok(&grant));
        self.give_back(cost, grant);
    }

    /// Gives back what was taken and not used.
    fn give_back(&self, cost: u64, grant: Self::Grant);

    /// Tells the observer, if there is one, of a decision that stands.
    fn tell(&self, now: Nanos, cost: u64, decision: Result<&Self::Grant, Denied>) {
        let _ = (now, cost, decision);
    }
}

/// What is held by a limiter that can.
macro_rules! hold {
    () => {
        fn hold_at(&self, now: Nanos, cost: u64) -> Decision {
            Holding::hold_at(self, now, cost)
        }

        fn keep(&self, cost: u64, grant: &Admitted) {
            Holding::keep(self, cost, grant);
        }

        fn let_go(&self, _at: Nanos, cost: u64, grant: Admitted) {
            Holding::let_go(self, cost, &grant);
        }
    };
}

macro_rules! grantors {
    ($($(#[$meta:meta])* [$($generics:tt)*] $limiter:ty, $give_back:expr, { $($held:tt)* })+) => {$(
        $(#[$meta])*
        impl<$($generics)*> Grantor for $limiter {
            type Grant = Admitted;

            #[inline(always)]
            fn take_at(&self, now: Nanos, cost: u64) -> Decision {
                Limiter::take_at(self, now, cost)
            }

            #[inline]
            fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), Denied> {
                Limiter::peek_at(self, now, cost).map(drop)
            }

            #[inline]
            fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
                Limiter::earliest_at(self, now, total)
            }

            fn give_back(&self, cost: u64, grant: Admitted) {
                let give_back: fn(&Self, u64, &Admitted) = $give_back;
                give_back(self, cost, &grant);
            }

            $($held)*

            #[inline]
            fn tell(&self, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>) {
                Limiter::tell(self, now, cost, &decision.copied());
            }
        }
    )+};
}

grantors! {
    /// What a waiter did not fetch counts as never taken up to when it leaves, unless the bucket was full in between: then tokens
    /// that refill has replaced come on top of that refill, as [`BucketStep::refund`](sluicegate_core::BucketStep::refund) says. An
    /// [`AdjustableBucket`] leaves no trace at all.
    [C, O: Observer] TokenBucket<C, O>, |bucket, cost, _| bucket.refund(cost), {}
    /// What a waiter has not fetched is held, and leaves no trace when it leaves, unless others found it stuck: then it counts as
    /// taken, as in a [`TokenBucket`], because what is held for good would make the bucket smaller for good.
    [C, O: Observer] AdjustableBucket<C, O>, |bucket, cost, _| bucket.refund(cost), { hold! {} }
    /// What is given back counts in the window that it was granted in.
    [S: Shards, C, I: ShardId, O: Observer] ShardedWindow<S, C, I, O>, |window, cost, grant| window.refund(grant.at, cost), {}
    /// What a waiter has not fetched is held, and leaves no trace when it leaves.
    [C, O: Observer] SlidingCounter<C, O>, |counter, cost, grant| counter.refund(grant.at, cost), { hold! {} }
    /// What is given back counts at the reading that it was granted at.
    [L: RawMutex, R: Runs, O: Observer] SharedSlidingLog<L, R, O>, |log, cost, grant| log.refund(grant.at, cost), { hold! {} }
}

impl<G: Grantor + ?Sized> Grantor for &G {
    type Grant = G::Grant;

    #[inline]
    fn take_at(&self, now: Nanos, cost: u64) -> Result<Self::Grant, Denied> {
        (**self).take_at(now, cost)
    }

    #[inline]
    fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), Denied> {
        (**self).peek_at(now, cost)
    }

    #[inline]
    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        (**self).earliest_at(now, total)
    }

    #[inline]
    fn hold_at(&self, now: Nanos, cost: u64) -> Result<Self::Grant, Denied> {
        (**self).hold_at(now, cost)
    }

    fn keep(&self, cost: u64, grant: &Self::Grant) {
        (**self).keep(cost, grant);
    }

    fn let_go(&self, at: Nanos, cost: u64, grant: Self::Grant) {
        (**self).let_go(at, cost, grant);
    }

    fn give_back(&self, cost: u64, grant: Self::Grant) {
        (**self).give_back(cost, grant);
    }

    #[inline]
    fn tell(&self, now: Nanos, cost: u64, decision: Result<&Self::Grant, Denied>) {
        (**self).tell(now, cost, decision);
    }
}
