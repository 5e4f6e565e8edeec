//! What a queue asks of what it queues for.

use sluicegate_core::{
    AdjustableBucket, Admitted, Decision, Denied, Limiter, Nanos, Observer, ShardId, ShardedWindow, Shards, TokenBucket,
};

/// Something that can be waited for: it grants a cost at a reading, or says why not.
///
/// # Contract
///
/// - `take_at` MUST take all of the cost or nothing, and `peek_at` MUST answer as it would and take nothing.
/// - `give_back` MUST undo a `take_at` whose grant nobody used.
/// - None of them may panic, wait, or tell an observer; `tell` does.
pub trait Grantor {
    /// What a waiter is given.
    type Grant;

    /// Takes `cost` at `now`, or nothing.
    ///
    /// # Errors
    /// Why not.
    fn take_at(&self, now: Nanos, cost: u64) -> Result<Self::Grant, Denied>;

    /// What `take_at` would answer.
    ///
    /// # Errors
    /// As `take_at`.
    fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), Denied>;

    /// As [`Limiter::earliest_at`].
    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos>;

    /// Gives back what was taken for a waiter that went away before it learnt of it.
    fn give_back(&self, now: Nanos, cost: u64, grant: Self::Grant);

    /// Tells the observer, if there is one, of a decision that stands.
    fn tell(&self, now: Nanos, cost: u64, decision: Result<&Self::Grant, Denied>) {
        let _ = (now, cost, decision);
    }
}

macro_rules! grantors {
    ($($(#[$meta:meta])* [$($generics:tt)*] $limiter:ty, $give_back:expr;)+) => {$(
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

            fn give_back(&self, _now: Nanos, cost: u64, grant: Admitted) {
                let give_back: fn(&Self, u64, &Admitted) = $give_back;
                give_back(self, cost, &grant);
            }

            #[inline]
            fn tell(&self, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>) {
                Limiter::tell(self, now, cost, &decision.copied());
            }
        }
    )+};
}

grantors! {
    /// What is given back counts from then on: tokens that refill has replaced since they were granted come on top of that
    /// refill, as [`BucketStep::refund`](sluicegate_core::BucketStep::refund) says.
    [C, O: Observer] TokenBucket<C, O>, |bucket, cost, _| bucket.refund(cost);
    /// As a token bucket's.
    [C, O: Observer] AdjustableBucket<C, O>, |bucket, cost, _| bucket.refund(cost);
    /// What is given back counts in the window that it was granted in.
    [S: Shards, C, I: ShardId, O: Observer] ShardedWindow<S, C, I, O>, |window, cost, grant| window.refund(grant.at, cost);
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
    fn give_back(&self, now: Nanos, cost: u64, grant: Self::Grant) {
        (**self).give_back(now, cost, grant);
    }

    #[inline]
    fn tell(&self, now: Nanos, cost: u64, decision: Result<&Self::Grant, Denied>) {
        (**self).tell(now, cost, decision);
    }
}
