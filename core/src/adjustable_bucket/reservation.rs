//! Tokens held for a request whose cost is known only afterwards.

use core::fmt;

use super::AdjustableBucket;
use crate::decision::{Admitted, Remaining};
use crate::token_bucket::Debit;
use crate::{Clock, Nanos, Observer};

/// Tokens that are held for one request, until it is known what it cost.
///
/// While they are held nobody else can take them. [`settle`](Self::settle) consumes what the request turned out to cost and
/// lets go of the rest; dropping the reservation, or [`cancel`](Self::cancel), lets go of all.
///
/// # Guarantees
///
/// - Each reservation ends once: it is consumed by settling, and cannot be copied. So nothing is given back twice.
/// - Cancelled, in whatever order and however much later, it leaves exactly the bucket there would be if it had never been
///   made. (A refund cannot promise that: the refill that came meanwhile has perhaps replaced what was taken.)
/// - Settled, it leaves exactly the bucket there would be if its cost had been taken at the instant of settling.
/// - What it held is always there to settle with, even if the quota was lowered meanwhile. (Made while there was no limit, it
///   holds nothing: under a quota that came meanwhile its cost is charged as far as the bucket and its debt reach.)
///
/// # Trade-off
///
/// Held tokens make the bucket smaller while they are held, and refill does not replace them until they are settled. Where
/// requests hold much of the bucket for long, give it more burst.
///
/// # Cancel safety
///
/// A reservation within a future that is dropped is cancelled, and the bucket's observer is told of a refund; one that panics
/// there while another panic unwinds aborts the process, as any such panic does. One that is leaked (`mem::forget`) holds its tokens for as
/// long as the bucket lives.
#[must_use = "a reservation that is dropped is cancelled at once"]
pub struct Reservation<B: Reservable> {
    bucket: B,
    cost: u64,
    /// What the bucket counts as held: nothing, if it had no limit.
    held: u64,
    /// The reading it was made at.
    since: Nanos,
}

impl<B: Reservable> Reservation<B> {
    /// A reservation of what [`Holding::hold_at`](crate::Holding::hold_at) held: for who keeps `cost` and `held` somewhere until
    /// it is known who is to have them, such as a queue. It ends that hold, in the place of `keep` or `let_go`.
    ///
    /// `bucket` is a reference to the bucket that held or, with the feature `alloc`, an `Arc` of it; `cost` and `held` are what it was
    /// asked for and what it answered. Of any others it lets go of what it does not hold. The observer is told of its end, as of any
    /// reservation's, and not of its beginning: [`Limiter::tell`](crate::Limiter::tell) does that.
    ///
    /// ```
    /// use sluicegate_core::{AdjustableBucket, Holding, Nanos, Reservation, quota};
    ///
    /// let bucket = AdjustableBucket::with_limit(quota!("1000/1m").into(), ());
    /// let now = Nanos::ZERO;
    /// let held = bucket.hold_at(now, 300)?;
    /// assert_eq!(bucket.inspect_at(now).level, 700);
    /// assert_eq!(Reservation::of_held(&bucket, 300, &held).settle_at(now, 120).charged, 120);
    /// assert_eq!(bucket.inspect_at(now).level, 880);
    /// # Ok::<(), sluicegate_core::Denied>(())
    /// ```
    #[inline]
    pub fn of_held(bucket: B, cost: u64, held: &Admitted) -> Self {
        let since = held.at;
        let held = if held.remaining == Remaining::Unlimited { 0 } else { cost };
        Self { bucket, cost, held, since }
    }

    /// The tokens reserved.
    #[inline]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Consumes the tokens that the request cost in the end, and lets go of the others. Reads the bucket's clock.
    ///
    /// It may have cost more than was held: what exceeds it is taken as far as the rest of the bucket and its quota's
    /// [`debt`](crate::Quota::debt) reach, and the answer tells what could not be.
    ///
    /// ```
    /// use sluicegate_core::{AdjustableBucket, ManualClock, quota};
    ///
    /// let bucket = AdjustableBucket::with_clock(quota!("1000/1m debt 100"), ManualClock::new());
    /// let reservation = bucket.reserve(300)?;
    /// assert_eq!(bucket.inspect().level, 700);
    /// let debit = reservation.settle(120);
    /// assert_eq!((debit.charged, debit.unpaid), (120, 0));
    /// assert_eq!(bucket.inspect().level, 880);
    /// # Ok::<(), sluicegate_core::Denied>(())
    /// ```
    pub fn settle(mut self, spent: u64) -> Debit
    where
        B: Clocked,
    {
        // Not let go of before it is settled: if the clock panics, the reservation is cancelled.
        self.bucket.settle(self.since, &mut self.held, spent)
    }

    /// As [`settle`](Self::settle), by a clock that the caller lends: it must have the origin of the readings that the bucket is
    /// asked at.
    pub fn settle_by(mut self, clock: &impl Clock, spent: u64) -> Debit {
        self.bucket.settle_by(clock, self.since, &mut self.held, spent)
    }

    /// As [`settle`](Self::settle), at the reading `now`; or at the reading that it was made at, if that is later.
    pub fn settle_at(mut self, now: Nanos, spent: u64) -> Debit {
        self.bucket.settle_at(now.max(self.since), &mut self.held, spent)
    }

    /// Lets go of all.
    pub fn cancel(self) {}
}

impl<B: Reservable> Drop for Reservation<B> {
    #[inline]
    fn drop(&mut self) {
        if self.held > 0 {
            self.bucket.let_go(self.held);
        }
    }
}

impl<B: Reservable> fmt::Debug for Reservation<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// A bucket as a reservation keeps it: `&AdjustableBucket`, or with the feature `alloc` `Arc<AdjustableBucket>`.
pub trait Reservable: sealed::Sealed {
    #[doc(hidden)]
    fn settle_by(&self, clock: &impl Clock, since: Nanos, held: &mut u64, spent: u64) -> Debit;
    #[doc(hidden)]
    fn settle_at(&self, now: Nanos, held: &mut u64, spent: u64) -> Debit;
    #[doc(hidden)]
    fn let_go(&self, held: u64);
}

/// A [`Reservable`] bucket that has a clock of its own.
pub trait Clocked: Reservable {
    #[doc(hidden)]
    fn settle(&self, since: Nanos, held: &mut u64, spent: u64) -> Debit;
}

macro_rules! reservable {
    ($bucket:ty) => {
        impl<C, O: Observer> Reservable for $bucket {
            fn settle_by(&self, clock: &impl Clock, since: Nanos, held: &mut u64, spent: u64) -> Debit {
                (**self).settle_held_by(clock, since, held, spent)
            }

            fn settle_at(&self, now: Nanos, held: &mut u64, spent: u64) -> Debit {
                (**self).settle_held_at(now, held, spent)
            }

            fn let_go(&self, held: u64) {
                (**self).let_go_of(held);
            }
        }

        impl<C: Clock, O: Observer> Clocked for $bucket {
            fn settle(&self, since: Nanos, held: &mut u64, spent: u64) -> Debit {
                (**self).settle_held_by(&self.clock, since, held, spent)
            }
        }

        impl<C, O> sealed::Sealed for $bucket {}
    };
}

reservable!(&AdjustableBucket<C, O>);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
reservable!(alloc::sync::Arc<AdjustableBucket<C, O>>);

mod sealed {
    pub trait Sealed {}
}
