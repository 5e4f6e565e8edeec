//! Being told what a limiter decided.

use crate::{Admitted, Debit, Denied, Limit, Nanos};

/// Is told of every decision and adjustment, after it has taken effect and outside any lock.
///
/// `()` is the observer that does nothing; it is the default and costs nothing. Methods run on the caller's thread,
/// between the decision and its return. They should be quick and must not block; two callers' events may arrive in
/// another order than their decisions took effect. A panic in an observer reaches the caller; the decision stands.
///
/// `refunded` and `settled` may be called in a drop, of a reservation: a panic there while another panic unwinds aborts the process, as
/// any panic in a drop does then. So does one of any observer that is asked for a decision by code that runs in a drop.
///
/// ```
/// use core::cell::Cell;
/// use sluicegate_core::{Denied, ManualClock, Nanos, Observer, Quota, TokenBucket};
///
/// #[derive(Default)]
/// struct Refusals(Cell<u64>);
///
/// impl Observer for Refusals {
///     fn denied(&self, _now: Nanos, _cost: u64, _denied: &Denied) {
///         self.0.set(self.0.get() + 1);
///     }
/// }
///
/// let bucket = TokenBucket::with_clock(Quota::per_second(1)?, ManualClock::new()).observed_by(Refusals::default());
/// assert!(bucket.try_acquire(1).is_ok());
/// assert!(bucket.try_acquire(1).is_err());
/// assert_eq!(bucket.observer().0.get(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observer {
    /// A request of `cost` was admitted at `now`.
    #[inline]
    fn admitted(&self, now: Nanos, cost: u64, admitted: &Admitted) {
        let _ = (now, cost, admitted);
    }

    /// A request of `cost` was denied at `now`.
    #[inline]
    fn denied(&self, now: Nanos, cost: u64, denied: &Denied) {
        let _ = (now, cost, denied);
    }

    /// `cost` was given back: as much as came back, which is less than was asked for where that had gone with its window, or
    /// was never taken. A token bucket reads no clock for it, and so cannot leave out what found it full by then.
    #[inline]
    fn refunded(&self, cost: u64) {
        let _ = cost;
    }

    /// What had already happened was charged at `now`, as far as it could be.
    #[inline]
    fn debited(&self, now: Nanos, debit: &Debit) {
        let _ = (now, debit);
    }

    /// A reservation of `held` was settled at `now`.
    #[inline]
    fn settled(&self, now: Nanos, held: u64, debit: &Debit) {
        let _ = (now, held, debit);
    }

    /// The limit was changed at `now`, and decisions from here on are under `to`.
    #[inline]
    fn adjusted(&self, now: Nanos, from: Limit, to: Limit) {
        let _ = (now, from, to);
    }
}

impl Observer for () {}

/// Both are told, the first one first. Nest pairs for more.
///
/// ```
/// use sluicegate_core::{Counters, ManualClock, TokenBucket, quota};
/// let bucket = TokenBucket::with_clock(quota!("2/1s"), ManualClock::new());
/// let bucket = bucket.observed_by((Counters::new(quota!("2/1s")), Counters::without_fill()));
/// bucket.try_acquire(1)?;
/// let (first, second) = bucket.observer();
/// assert_eq!((first.snapshot().admitted, second.snapshot().admitted), (1, 1));
/// # Ok::<(), sluicegate_core::Denied>(())
/// ```
impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn admitted(&self, now: Nanos, cost: u64, admitted: &Admitted) {
        self.0.admitted(now, cost, admitted);
        self.1.admitted(now, cost, admitted);
    }

    #[inline]
    fn denied(&self, now: Nanos, cost: u64, denied: &Denied) {
        self.0.denied(now, cost, denied);
        self.1.denied(now, cost, denied);
    }

    #[inline]
    fn refunded(&self, cost: u64) {
        self.0.refunded(cost);
        self.1.refunded(cost);
    }

    #[inline]
    fn debited(&self, now: Nanos, debit: &Debit) {
        self.0.debited(now, debit);
        self.1.debited(now, debit);
    }

    #[inline]
    fn settled(&self, now: Nanos, held: u64, debit: &Debit) {
        self.0.settled(now, held, debit);
        self.1.settled(now, held, debit);
    }

    #[inline]
    fn adjusted(&self, now: Nanos, from: Limit, to: Limit) {
        self.0.adjusted(now, from, to);
        self.1.adjusted(now, from, to);
    }
}

/// Whoever points to an observer is one.
macro_rules! points_to_observer {
    ($pointer:ty) => {
        impl<O: Observer + ?Sized> Observer for $pointer {
            #[inline]
            fn admitted(&self, now: Nanos, cost: u64, admitted: &Admitted) {
                (**self).admitted(now, cost, admitted);
            }

            #[inline]
            fn denied(&self, now: Nanos, cost: u64, denied: &Denied) {
                (**self).denied(now, cost, denied);
            }

            #[inline]
            fn refunded(&self, cost: u64) {
                (**self).refunded(cost);
            }

            #[inline]
            fn debited(&self, now: Nanos, debit: &Debit) {
                (**self).debited(now, debit);
            }

            #[inline]
            fn settled(&self, now: Nanos, held: u64, debit: &Debit) {
                (**self).settled(now, held, debit);
            }

            #[inline]
            fn adjusted(&self, now: Nanos, from: Limit, to: Limit) {
                (**self).adjusted(now, from, to);
            }
        }
    };
}

points_to_observer!(&O);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
points_to_observer!(alloc::sync::Arc<O>);

/// Reports a decision and hands it back.
#[inline(always)]
pub(crate) fn report<O: Observer>(observer: &O, now: Nanos, cost: u64, decision: crate::Decision) -> crate::Decision {
    match &decision {
        Ok(admitted) => observer.admitted(now, cost, admitted),
        Err(denied) => observer.denied(now, cost, denied),
    }
    decision
}
