//! A sliding log behind a lock, for any number of callers.

use core::fmt;

use lock_api::{Mutex, RawMutex};

use super::{Runs, SlidingLog};
use crate::hierarchy::Holding;
use crate::observer::{Observer, report};
use crate::{Admitted, Decision, Inspection, Limiter, Nanos, Rate};

/// A [`SlidingLog`] that any number of callers share, behind a lock of your choice. Needs the feature `lock_api`.
///
/// It is a [`Limiter`], and can be a level of a [`Hierarchy`](crate::Hierarchy). The lock is held for one operation on the log
/// at a time, and nothing of the caller's runs meanwhile.
///
/// ```
/// use parking_lot::RawMutex;
/// use sluicegate_core::{Hierarchy, Level, Limiter, Nanos, Rate, SharedSlidingLog, SlidingLog};
///
/// # #[cfg(feature = "alloc")] {
/// let uploads = SharedSlidingLog::<RawMutex, _>::new(SlidingLog::new("3/1s".parse::<Rate>()?));
/// let uploads = Level::new("uploads", uploads);
/// let [admitted] = Hierarchy::new([&uploads])?.try_acquire_at(Nanos::ZERO, [2])?;
/// assert_eq!(admitted.remaining.exactly(), Some(1));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SharedSlidingLog<L, R, O = ()> {
    log: Mutex<L, SlidingLog<R>>,
    rate: Rate,
    observer: O,
}

impl<L: RawMutex, R> SharedSlidingLog<L, R> {
    /// Shares `log`, in a constant too.
    pub const fn new(log: SlidingLog<R>) -> Self {
        let rate = log.rate();
        Self { log: Mutex::new(log), rate, observer: () }
    }

    /// The same log, which from now on tells `observer` of every decision, outside the lock.
    pub fn observed_by<O: Observer>(self, observer: O) -> SharedSlidingLog<L, R, O> {
        SharedSlidingLog { log: self.log, rate: self.rate, observer }
    }
}

impl<L: RawMutex, R, O> SharedSlidingLog<L, R, O> {
    /// The limit per window.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// Gives the log back.
    pub fn into_inner(self) -> SlidingLog<R> {
        self.log.into_inner()
    }
}

impl<L: RawMutex, R: Runs, O: Observer> SharedSlidingLog<L, R, O> {
    /// Gives back `cost` that was admitted at the reading `taken_at`: see [`SlidingLog::refund`].
    pub fn refund(&self, taken_at: Nanos, cost: u64) {
        let returned = self.log.lock().give_back(taken_at, cost);
        self.observer.refunded(returned);
    }

    /// Gives memory back that a past peak needed: see [`SlidingLog::shrink`].
    pub fn shrink(&self) {
        self.log.lock().shrink();
    }
}

impl<L: RawMutex, R: Runs, O: Observer> Limiter for SharedSlidingLog<L, R, O> {
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        report(&self.observer, now, cost, self.take_at(now, cost))
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.log.lock().peek_at(now, cost)
    }

    fn inspect_at(&self, now: Nanos) -> Inspection {
        self.log.lock().inspect_at(now)
    }

    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        self.log.lock().try_acquire_at(now, cost)
    }

    fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
        let _ = report(&self.observer, now, cost, *decision);
    }
}

/// What is taken counts from its reading on whether it is taken or held, and giving it back at that reading is exact.
impl<L: RawMutex, R: Runs, O: Observer> Holding for SharedSlidingLog<L, R, O> {
    fn hold_at(&self, now: Nanos, cost: u64) -> Decision {
        self.take_at(now, cost)
    }

    fn keep(&self, _cost: u64, _held: &Admitted) {}

    fn let_go(&self, cost: u64, held: &Admitted) {
        self.log.lock().refund(held.at, cost);
    }

    fn give_back(&self, cost: u64, taken: &Admitted) {
        self.refund(taken.at, cost);
    }
}

impl<L: RawMutex, R, O> fmt::Debug for SharedSlidingLog<L, R, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSlidingLog").field("rate", &self.rate).finish_non_exhaustive()
    }
}
