//! A limiter that can be waited for.

use core::fmt;
use core::time::Duration;

use lock_api::{Mutex, MutexGuard, RawMutex};
use sluicegate_core::{Denied, Nanos};

use crate::acquire::{Acquire, Until};
use crate::grant::Grantor;
use crate::line::Line;
use crate::news::News;
use crate::options::WaitOptions;
use crate::room::Room;
use crate::runtime::Runtime;
use crate::sync::Waiting;

/// A limiter that callers can wait for, in order, on any executor.
///
/// `L` is what decides, `R` the executor's clock and timer, `M` the lock around those who wait, `S` the room for them. The
/// adapters have names for the usual choices.
///
/// # Guarantees
///
/// - *Order*: whoever waits is served first in, first out, costs included; a waiter is not overtaken by another one, however large
///   its cost. [`try_acquire`](Self::try_acquire), and an `acquire` that comes while nobody waits, may take what is free before
///   somebody who is just about to wait.
/// - *Cancel safety*: a future may be dropped at any moment. It then has taken nothing: what it was granted and has not learnt of
///   goes to the next.
/// - *Nothing idle*: no task is started. Who waits at the head sleeps for all; when nobody waits there is no timer.
/// - *No lock-up*: a waiter that is leaked, or never polled again, takes what its turn gives it, once. Those behind it go at their
///   turn whenever anybody calls the limiter; and without any call, after twice the wait that they expected and
///   [`WaitOptions::relief`] at most.
/// - *Wake-ups*: giving back, changing the limit through this type and closing wake those whom it concerns before they return.
/// - Wakers and observers are called with no lock held.
///
/// # Complexity
///
/// Where nobody waits, an `acquire` that is admitted costs the limiter's decision, the clock and one load. Waiting takes the lock
/// a few times, O(1) each, or O(log n) with a deadline.
pub struct Queued<L: Grantor, R, M, S: Room> {
    pub(crate) limiter: L,
    pub(crate) runtime: R,
    pub(crate) options: WaitOptions,
    pub(crate) waiting: Waiting,
    pub(crate) line: Mutex<M, Line<S, L::Grant>>,
}

impl<L: Grantor, R: Runtime, M: RawMutex, S: Room> Queued<L, R, M, S> {
    /// Nobody waits for `limiter` yet. It is asked at the runtime's readings.
    pub fn new(limiter: L, runtime: R, options: WaitOptions) -> Self {
        let line = Line::new(options.bound, options.is_newest_first, options.is_evicting);
        Self { limiter, runtime, options, waiting: Waiting::none(), line: Mutex::new(line) }
    }

    /// The limiter. What is given back to it, or changed, past this type is seen by those who wait once
    /// [`recheck`](Self::recheck) is called, or at the turn they expected.
    pub const fn limiter(&self) -> &L {
        &self.limiter
    }

    /// The executor's clock and timer.
    pub const fn runtime(&self) -> &R {
        &self.runtime
    }

    /// How many wait. It may have changed by the time it is told.
    pub fn waiters(&self) -> usize {
        self.line.lock().len()
    }

    /// Takes `cost` now, or nothing; never waits.
    ///
    /// It takes what is free, also while others wait. With [`WaitOptions::fair`] it takes nothing then.
    ///
    /// # Errors
    /// As the limiter's; [`Denied::Closed`] once closed.
    #[inline]
    pub fn try_acquire(&self, cost: u64) -> Result<L::Grant, Denied> {
        let now = self.runtime.now();
        let decision = self.decide_at_once(now, cost);
        self.limiter.tell(now, cost, decision.as_ref().map_err(|denied| *denied));
        decision
    }

    fn decide_at_once(&self, now: Nanos, cost: u64) -> Result<L::Grant, Denied> {
        if self.waiting.is_none() {
            return self.limiter.take_at(now, cost);
        }
        let line = self.line.lock();
        if line.is_closed() {
            return Err(Denied::Closed);
        }
        if self.options.is_fair && line.len() > 0 {
            let turn = line.expected(now, &self.limiter, cost)?;
            let retry_after = turn.saturating_duration_since(now).max(Duration::from_nanos(1));
            return Err(Denied::RateLimited { retry_after });
        }
        drop(line);
        self.limiter.take_at(now, cost)
    }

    /// Waits until `cost` can be taken, in order, for as long as that takes.
    ///
    /// Nothing happens before the future is first polled; its place is that of its first poll. Dropped before it is ready, it has
    /// taken nothing.
    ///
    /// # Errors
    /// What can never succeed fails at once: [`Denied::CostExceedsLimit`] and [`Denied::Closed`]; so does a queue that is full,
    /// [`Denied::QueueFull`].
    #[inline]
    pub fn acquire(&self, cost: u64) -> Acquire<&Self> {
        Acquire::new(self, cost, Until::Ever)
    }

    /// Waits until `cost` can be taken, but no longer than `timeout`: what can be taken when that is over is taken, also where the timer
    /// wakes late. Zero succeeds only if it is free now and nobody waits.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); and what the limiter says at the end, mostly [`Denied::RateLimited`]. It fails at once
    /// where the timeout is certainly too short.
    #[inline]
    pub fn acquire_timeout(&self, cost: u64, timeout: Duration) -> Acquire<&Self> {
        Acquire::new(self, cost, Until::After(timeout))
    }

    /// Waits until `cost` can be taken, but no longer than until the clock reads `deadline`.
    ///
    /// # Errors
    /// As [`acquire_timeout`](Self::acquire_timeout).
    #[inline]
    pub fn acquire_deadline(&self, cost: u64, deadline: Nanos) -> Acquire<&Self> {
        Acquire::new(self, cost, Until::At(deadline))
    }

    /// As [`acquire`](Self::acquire), by a future that shares the limiter and can go to another task.
    #[cfg(feature = "alloc")]
    #[inline]
    pub fn acquire_owned(self: &alloc::sync::Arc<Self>, cost: u64) -> Acquire<alloc::sync::Arc<Self>> {
        Acquire::new(alloc::sync::Arc::clone(self), cost, Until::Ever)
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), by a future that shares the limiter.
    #[cfg(feature = "alloc")]
    #[inline]
    pub fn acquire_timeout_owned(
        self: &alloc::sync::Arc<Self>,
        cost: u64,
        timeout: Duration,
    ) -> Acquire<alloc::sync::Arc<Self>> {
        Acquire::new(alloc::sync::Arc::clone(self), cost, Until::After(timeout))
    }

    /// As [`acquire_deadline`](Self::acquire_deadline), by a future that shares the limiter.
    #[cfg(feature = "alloc")]
    #[inline]
    pub fn acquire_deadline_owned(
        self: &alloc::sync::Arc<Self>,
        cost: u64,
        deadline: Nanos,
    ) -> Acquire<alloc::sync::Arc<Self>> {
        Acquire::new(alloc::sync::Arc::clone(self), cost, Until::At(deadline))
    }

    /// Gives `cost` back that was granted and not used, and wakes those who can go with it.
    pub fn give_back(&self, cost: u64, grant: L::Grant) {
        self.limiter.give_back(cost, grant);
        self.recheck();
    }

    /// Lets all go who can, after something was given back or the limit was changed past this type.
    pub fn recheck(&self) {
        if self.waiting.is_none_after_change() {
            return;
        }
        let mut news = News::none();
        loop {
            let now = self.runtime.now();
            let mut line = self.line.lock();
            let is_all = line.let_go(now, &self.limiter, &mut news);
            line.mind_time(now, &self.limiter, None, &mut news);
            self.unlock(line);
            news.tell();
            if is_all {
                return;
            }
        }
    }

    /// Ends all waits, and all that are to come, with [`Denied::Closed`]. What was granted stays granted.
    pub fn close(&self) {
        let mut news = News::none();
        loop {
            let mut line = self.line.lock();
            let is_all = line.close(self.runtime.now(), &mut news);
            self.unlock(line);
            news.tell();
            if is_all {
                return;
            }
        }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.line.lock().is_closed()
    }

    /// Opens the lock, after telling those who do not take it how many wait.
    pub(crate) fn unlock(&self, mut line: MutexGuard<'_, M, Line<S, L::Grant>>) {
        line.tidy();
        // One who closed counts as somebody who waits for ever, so that everybody looks.
        self.waiting.set(line.len() + usize::from(line.is_closed()));
        drop(line);
    }
}

impl<L: Grantor + fmt::Debug, R, M: RawMutex, S: Room> fmt::Debug for Queued<L, R, M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued").field("limiter", &self.limiter).field("options", &self.options).finish_non_exhaustive()
    }
}
