//! What a queue asks of what it queues for.

use lock_api::RawMutex;
use sluicegate_core::{
    AdjustableBucket, Admitted, Decision, Denied, Holding, Limiter, Nanos, Observer, Runs, ShardId, ShardedWindow,
    Shards, SharedSlidingLog, SlidingCounter, TokenBucket,
};

use crate::costs::Costs;

/// Something that can be waited for: it grants a cost at a reading, or says why not.
///
/// # Contract
///
/// - `take_at` MUST take all of the cost or nothing, and `peek_at` MUST answer as it would and take nothing; so `peek_hold_at` for
///   `hold_at`.
/// - Where a cost can never be taken ([`Denied::is_final`]), no larger one may be: none that is as large at every level.
/// - Each `hold_at` that is `Ok` is followed by exactly one of `keep` and `let_go`, with its grant; `let_go` undoes it.
///   What a stuck waiter has is kept, and given back if it leaves after all; and who reserves ends a hold by settling.
/// - None of them may panic, wait for other callers, or tell an observer; `tell` does.
///
/// # Example
///
/// One ticket, ever.
///
/// ```
/// use core::cell::Cell;
/// use sluicegate_runtime::{Denied, Grantor, Nanos};
///
/// struct Ticket(Cell<bool>);
///
/// impl Grantor for Ticket {
///     type Cost = u64;
///     type Grant = ();
///     type Denial = Denied;
///
///     fn take_at(&self, now: Nanos, cost: u64) -> Result<(), Denied> {
///         self.peek_at(now, cost)?;
///         self.0.set(self.0.get() && cost == 0);
///         Ok(())
///     }
///
///     fn peek_at(&self, _now: Nanos, cost: u64) -> Result<(), Denied> {
///         match cost {
///             0 => Ok(()),
///             1 if self.0.get() => Ok(()),
///             1 => Err(Denied::ConcurrencyLimited),
///             _ => Err(Denied::CostExceedsLimit { cost, limit: 1 }),
///         }
///     }
///
///     fn earliest_at(&self, _now: Nanos, _total: u128) -> Option<Nanos> {
///         None
///     }
///
///     fn denial(&self, _now: Nanos, _total: u128, denied: Denied) -> Denied {
///         denied
///     }
///
///     fn give_back(&self, cost: u64, (): ()) {
///         self.0.set(self.0.get() || cost == 1);
///     }
/// }
/// # let ticket = Ticket(Cell::new(true));
/// # assert!(ticket.take_at(Nanos::ZERO, 1).is_ok() && ticket.peek_at(Nanos::ZERO, 1).is_err());
/// ```
pub trait Grantor {
    /// What a waiter asks for: one cost, or one for each level.
    type Cost: Costs;
    /// What a waiter is given.
    type Grant;
    /// What a waiter is told that is given nothing: a [`Denied`], or what says more, such as which level denied.
    type Denial: Copy + Into<Denied>;

    /// Whether what `hold_at` holds is missing for as long as it is held, whatever time brings. Then it is kept for a waiter that does
    /// not come for it for the time of [`WaitOptions::relief`](crate::WaitOptions::relief).
    const HELD_IS_NOT_REFILLED: bool = false;

    /// Takes `cost` at `now`, or nothing.
    ///
    /// # Errors
    /// Why not.
    fn take_at(&self, now: Nanos, cost: Self::Cost) -> Result<Self::Grant, Self::Denial>;

    /// Takes `cost` for a waiter that does not know of it yet: it is kept or given back later.
    ///
    /// # Errors
    /// As `take_at`.
    #[inline]
    fn hold_at(&self, now: Nanos, cost: Self::Cost) -> Result<Self::Grant, Self::Denial> {
        self.take_at(now, cost)
    }

    /// A waiter has learnt of what was held for it.
    #[inline]
    fn keep(&self, cost: Self::Cost, grant: &Self::Grant) {
        let _ = (cost, grant);
    }

    /// What `take_at` would answer.
    ///
    /// # Errors
    /// As `take_at`.
    fn peek_at(&self, now: Nanos, cost: Self::Cost) -> Result<(), Self::Denial>;

    /// What `hold_at` would answer, where that may differ.
    ///
    /// # Errors
    /// As `hold_at`.
    #[inline]
    fn peek_hold_at(&self, now: Nanos, cost: Self::Cost) -> Result<(), Self::Denial> {
        self.peek_at(now, cost)
    }

    /// As [`Limiter::earliest_at`].
    fn earliest_at(&self, now: Nanos, total: <Self::Cost as Costs>::Total) -> Option<Nanos>;

    /// What a waiter is told whom not the limiter denies but its queue: because that is full or closed, or because `total`, which those
    /// ahead and the waiter ask for together, is there too late.
    fn denial(&self, now: Nanos, total: <Self::Cost as Costs>::Total, denied: Denied) -> Self::Denial;

    /// Gives back what was held at `at` for a waiter that went away before it learnt of it. Who can only take and give back tells
    /// the observer of both.
    fn let_go(&self, at: Nanos, cost: Self::Cost, grant: Self::Grant) {
        GiveBack::new(self, cost, grant).tell(at);
    }

    /// Gives back what was taken and not used.
    fn give_back(&self, cost: Self::Cost, grant: Self::Grant);

    /// Tells the observer, if there is one, of a decision that stands.
    fn tell(&self, now: Nanos, cost: Self::Cost, decision: Result<&Self::Grant, Self::Denial>) {
        let _ = (now, cost, decision);
    }
}

/// What is given back when this is dropped, also where an observer panics that is told of it before.
pub(crate) struct GiveBack<'g, G: Grantor + ?Sized> {
    grantor: &'g G,
    cost: G::Cost,
    grant: Option<G::Grant>,
}

impl<'g, G: Grantor + ?Sized> GiveBack<'g, G> {
    pub(crate) const fn new(grantor: &'g G, cost: G::Cost, grant: G::Grant) -> Self {
        Self { grantor, cost, grant: Some(grant) }
    }

    /// Tells the observer that it was granted, and gives it back.
    pub(crate) fn tell(self, at: Nanos) {
        if let Some(grant) = &self.grant {
            self.grantor.tell(at, self.cost, Ok(grant));
        }
    }
}

impl<G: Grantor + ?Sized> Drop for GiveBack<'_, G> {
    fn drop(&mut self) {
        if let Some(grant) = self.grant.take() {
            self.grantor.give_back(self.cost, grant);
        }
    }
}

/// What many ask of a grantor together.
pub(crate) type Total<L> = <<L as Grantor>::Cost as Costs>::Total;

/// What is held by a limiter that can.
macro_rules! hold {
    ($is_not_refilled:literal) => {
        const HELD_IS_NOT_REFILLED: bool = $is_not_refilled;

        fn hold_at(&self, now: Nanos, cost: u64) -> Decision {
            Holding::hold_at(self, now, cost)
        }

        #[inline]
        fn peek_hold_at(&self, now: Nanos, cost: u64) -> Result<(), Denied> {
            Holding::peek_hold_at(self, now, cost).map(drop)
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
            type Cost = u64;
            type Grant = Admitted;
            type Denial = Denied;

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

            #[inline]
            fn denial(&self, _now: Nanos, _total: u128, denied: Denied) -> Denied {
                denied
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
    /// [`AdjustableBucket`] leaves no trace.
    [C, O: Observer] TokenBucket<C, O>, |bucket, cost, _| bucket.refund(cost), {}
    /// What a waiter has not fetched is held, and leaves no trace when it leaves, unless it was found stuck: then it counts as taken,
    /// as in a [`TokenBucket`], because what is held for good would make the bucket smaller for good. No more can be waited for at once
    /// than can be held: 2^40 - 1 tokens.
    [C, O: Observer] AdjustableBucket<C, O>, |bucket, cost, grant| Holding::give_back(bucket, cost, grant), { hold! { true } }
    /// What is given back counts in the window that it was granted in.
    [S: Shards, C, I: ShardId, O: Observer] ShardedWindow<S, C, I, O>, |window, cost, grant| window.refund(grant.at, cost), {}
    /// What a waiter has not fetched is held, and leaves no trace when it leaves.
    [C, O: Observer] SlidingCounter<C, O>, |counter, cost, grant| counter.refund(grant.at, cost), { hold! { false } }
    /// What is given back counts at the reading that it was granted at.
    [L: RawMutex, R: Runs, O: Observer] SharedSlidingLog<L, R, O>, |log, cost, grant| log.refund(grant.at, cost), { hold! { false } }
}

impl<G: Grantor + ?Sized> Grantor for &G {
    type Cost = G::Cost;
    type Grant = G::Grant;
    type Denial = G::Denial;
    const HELD_IS_NOT_REFILLED: bool = G::HELD_IS_NOT_REFILLED;

    #[inline]
    fn take_at(&self, now: Nanos, cost: G::Cost) -> Result<G::Grant, G::Denial> {
        (**self).take_at(now, cost)
    }

    #[inline]
    fn peek_at(&self, now: Nanos, cost: G::Cost) -> Result<(), G::Denial> {
        (**self).peek_at(now, cost)
    }

    #[inline]
    fn peek_hold_at(&self, now: Nanos, cost: G::Cost) -> Result<(), G::Denial> {
        (**self).peek_hold_at(now, cost)
    }

    #[inline]
    fn earliest_at(&self, now: Nanos, total: Total<G>) -> Option<Nanos> {
        (**self).earliest_at(now, total)
    }

    fn denial(&self, now: Nanos, total: Total<G>, denied: Denied) -> G::Denial {
        (**self).denial(now, total, denied)
    }

    #[inline]
    fn hold_at(&self, now: Nanos, cost: G::Cost) -> Result<G::Grant, G::Denial> {
        (**self).hold_at(now, cost)
    }

    fn keep(&self, cost: G::Cost, grant: &G::Grant) {
        (**self).keep(cost, grant);
    }

    fn let_go(&self, at: Nanos, cost: G::Cost, grant: G::Grant) {
        (**self).let_go(at, cost, grant);
    }

    fn give_back(&self, cost: G::Cost, grant: G::Grant) {
        (**self).give_back(cost, grant);
    }

    #[inline]
    fn tell(&self, now: Nanos, cost: G::Cost, decision: Result<&G::Grant, G::Denial>) {
        (**self).tell(now, cost, decision);
    }
}
