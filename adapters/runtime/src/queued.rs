//! A limiter that can be waited for.

use core::fmt;
use core::time::Duration;

use lock_api::{Mutex, MutexGuard, RawMutex};
use sluicegate_core::{Denied, Nanos};

use crate::acquire::{Acquire, Until};
use crate::finally::Finally;
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
/// - *Nothing idle*: no task is started. Who waits at the head sleeps for all; when nobody waits there is no timer. (Each of the others
///   also sleeps until long after its turn, which [`WaitOptions::relief`] explains, and that can be left out.)
/// - *No lock-up*: a waiter that is leaked, or never polled again, takes what its turn gives it, once. Those behind it go at their
///   turn whenever anybody calls the limiter, and before that caller; without any call, after twice the wait that they expected and
///   [`WaitOptions::relief`] at most. Where what is granted is held until it is learnt of, as by an
///   [`AdjustableBucket`](sluicegate_core::AdjustableBucket), it counts as taken once it was held for that long, and those behind it may wait
///   for that long more. A reservation is no such grant: it holds for as long as its owner likes.
/// - *Wake-ups*: giving back, ending a reservation, changing the limit through this type and closing wake those whom it concerns before
///   they return.
/// - Wakers and observers are called, and wakers cloned and dropped, with no lock held.
/// - *Panics* of an observer or a waker go to whoever called. Everybody else is woken, and the place of a future whose poll panicked
///   is given up; what it was being told of as granted stays taken. (A second panic while one unwinds aborts, as everywhere.)
///
/// # Hierarchies
///
/// A [`Hierarchy`](sluicegate_core::Hierarchy), or an `OwnedHierarchy` for what outlives a borrow, is waited for as a whole: each
/// waiter has a cost for each level, and goes when all levels have enough. [`DeniedBy`](sluicegate_core::DeniedBy) names the level that
/// denied: for one whose wait would be too long, the level that is the last to have enough for those ahead of it and itself. Of a
/// queue that is full or closed it names none, and its `level` is the number of levels.
///
/// All that is said above holds within one queue. Several queues whose hierarchies share a level, such as one for each tenant
/// below one that is global, know nothing of one another:
///
/// - No order holds between their waiters. Each head sleeps until its own turn as if nobody else took anything, looks, and if others
///   were faster sleeps again. A head that asks much of the common level can be overtaken for as long as small ones keep coming.
/// - What one queue gets back, of what was given back or held for one that left, others learn of at the turn they expected, or when
///   [`recheck`](Self::recheck) of theirs is called.
/// - What is granted and not learnt of yet is held at all levels. While so much of an adjustable bucket is held that no clock knows
///   the next turn, the others look again after [`WaitOptions::relief`], and then less and less often; with `None`, when they are called.
///   What is held for a waiter that is never polled again counts as taken once its own queue is called after that time.
///
/// # Example
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// # use core::{future::Future, pin::pin, task::{Context, Poll, Waker}, time::Duration};
/// use sluicegate_runtime::{Growing, ManualRuntime, Queued, TokenBucket, WaitOptions, quota};
///
/// type Lock = parking_lot::RawMutex;
///
/// let time = ManualRuntime::<Lock>::new();
/// let bucket = TokenBucket::with_limit(quota!("10/1s").into(), ());
/// let limiter = Queued::<_, _, Lock, Growing>::new(bucket, time.clone(), WaitOptions::new());
/// let all = limiter.try_acquire(10)?;
///
/// let (mut large, mut small) = (pin!(limiter.acquire(9)), pin!(limiter.acquire(1)));
/// # let mut context = Context::from_waker(Waker::noop());
/// assert!(large.as_mut().poll(&mut context).is_pending());
/// assert!(small.as_mut().poll(&mut context).is_pending());
/// assert_eq!(limiter.waiters(), 2);
///
/// // What was taken and not used lets both go.
/// limiter.give_back(10, all);
/// assert!(small.as_mut().poll(&mut context).is_ready());
/// assert!(large.as_mut().poll(&mut context).is_ready());
///
/// limiter.close();
/// assert!(limiter.try_acquire(1).is_err());
/// # }
/// # Ok::<(), sluicegate_runtime::Denied>(())
/// ```
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
    pub(crate) line: Mutex<M, Line<S, L>>,
}

impl<L: Grantor, R: Runtime, M: RawMutex, S: Room> Queued<L, R, M, S> {
    /// Nobody waits for `limiter` yet. It is asked at the runtime's readings.
    pub fn new(limiter: L, runtime: R, options: WaitOptions) -> Self {
        Self { limiter, runtime, options, waiting: Waiting::none(), line: Mutex::new(Line::new(&options)) }
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
    #[inline(always)]
    pub fn try_acquire(&self, cost: L::Cost) -> Result<L::Grant, L::Denial> {
        let now = self.runtime.now();
        let decision = self.decide_at_once(now, cost, L::take_at);
        self.limiter.tell(now, cost, decision.as_ref().map_err(|denial| *denial));
        decision
    }

    #[inline(always)]
    pub(crate) fn decide_at_once(
        &self,
        now: Nanos,
        cost: L::Cost,
        take_at: impl FnOnce(&L, Nanos, L::Cost) -> Result<L::Grant, L::Denial>,
    ) -> Result<L::Grant, L::Denial> {
        if self.waiting.is_none() {
            take_at(&self.limiter, now, cost)
        } else {
            self.decide_beside_line(now, cost, take_at)
        }
    }

    /// It is not taken where nobody waits, and so must not make that slower.
    #[cold]
    #[inline(never)]
    fn decide_beside_line(
        &self,
        now: Nanos,
        cost: L::Cost,
        take_at: impl FnOnce(&L, Nanos, L::Cost) -> Result<L::Grant, L::Denial>,
    ) -> Result<L::Grant, L::Denial> {
        let mut news = News::none();
        let mut line = self.line.lock();
        // Those in the line whose turn has come come first.
        let at = self.runtime.now();
        let is_all = line.let_go(at, &self.limiter, &mut news);
        line.mind_time(at, &self.limiter, None, &mut news);
        let denial = self.denial_beside(&line, at, cost);
        self.unlock(line);
        self.tell(news, is_all);
        match denial {
            Some(denial) => Err(denial),
            None => take_at(&self.limiter, now, cost),
        }
    }

    /// Why the line does not let `cost` be taken at once, whatever the limiter says.
    fn denial_beside(&self, line: &Line<S, L>, now: Nanos, cost: L::Cost) -> Option<L::Denial> {
        if line.is_closed() {
            Some(self.limiter.denial(now, line.with_those_ahead(cost), Denied::Closed))
        } else if self.options.is_fair && line.len() > 0 {
            Some(line.denial_behind(now, &self.limiter, cost))
        } else {
            None
        }
    }

    /// The same for who only looks, and lets nobody go.
    #[cfg(feature = "alloc")]
    pub(crate) fn denial_at_once(&self, now: Nanos, cost: L::Cost) -> Option<L::Denial> {
        if self.waiting.is_none() { None } else { self.denial_beside(&self.line.lock(), now, cost) }
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
    pub fn acquire(&self, cost: L::Cost) -> Acquire<&Self> {
        Acquire::new(self, cost, Until::Ever)
    }

    /// Waits until `cost` can be taken, but no longer than `timeout`: what can be taken when that is over is taken, also where the timer
    /// wakes late. Zero succeeds only if it is free now and nobody waits.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire); and what the limiter says at the end, mostly [`Denied::RateLimited`]. It fails at once
    /// where the timeout is certainly too short.
    #[inline]
    pub fn acquire_timeout(&self, cost: L::Cost, timeout: Duration) -> Acquire<&Self> {
        Acquire::new(self, cost, Until::After(timeout))
    }

    /// Waits until `cost` can be taken, but no longer than until the clock reads `deadline`. One that has passed is a timeout of zero.
    ///
    /// # Errors
    /// As [`acquire_timeout`](Self::acquire_timeout).
    #[inline]
    pub fn acquire_deadline(&self, cost: L::Cost, deadline: Nanos) -> Acquire<&Self> {
        Acquire::new(self, cost, Until::At(deadline))
    }

    /// As [`acquire`](Self::acquire), by a future that shares the limiter and can go to another task.
    #[cfg(feature = "alloc")]
    #[inline]
    pub fn acquire_owned(self: &alloc::sync::Arc<Self>, cost: L::Cost) -> Acquire<alloc::sync::Arc<Self>> {
        Acquire::new(alloc::sync::Arc::clone(self), cost, Until::Ever)
    }

    /// As [`acquire_timeout`](Self::acquire_timeout), by a future that shares the limiter.
    #[cfg(feature = "alloc")]
    #[inline]
    pub fn acquire_timeout_owned(
        self: &alloc::sync::Arc<Self>,
        cost: L::Cost,
        timeout: Duration,
    ) -> Acquire<alloc::sync::Arc<Self>> {
        Acquire::new(alloc::sync::Arc::clone(self), cost, Until::After(timeout))
    }

    /// As [`acquire_deadline`](Self::acquire_deadline), by a future that shares the limiter.
    #[cfg(feature = "alloc")]
    #[inline]
    pub fn acquire_deadline_owned(
        self: &alloc::sync::Arc<Self>,
        cost: L::Cost,
        deadline: Nanos,
    ) -> Acquire<alloc::sync::Arc<Self>> {
        Acquire::new(alloc::sync::Arc::clone(self), cost, Until::At(deadline))
    }

    /// Gives `cost` back that was granted and not used, and wakes those who can go with it.
    pub fn give_back(&self, cost: L::Cost, grant: L::Grant) {
        let _next = Finally(|| self.let_all_go());
        self.limiter.give_back(cost, grant);
    }

    /// Lets all go who can, after something was given back or the limit was changed past this type; and tells those who never can go
    /// any more that they cannot, wherever in the line they are.
    ///
    /// O(1) where nobody waits or nobody is concerned, and O(n) of those who wait where some can never go.
    pub fn recheck(&self) {
        if self.waiting.is_none_after_change() {
            return;
        }
        let _next = Finally(|| self.let_all_go());
        let mut news = News::none();
        let mut next = Some(0);
        loop {
            let mut line = self.line.lock();
            let is_all = line.refuse(self.runtime.now(), &self.limiter, &mut next, &mut news);
            self.unlock(line);
            news.tell();
            if is_all {
                return;
            }
        }
    }

    /// Wakes those who were let go, and lets the others go if that was not all of them.
    pub(crate) fn tell(&self, mut news: News, is_all: bool) {
        let _rest = Finally(|| {
            if !is_all {
                self.let_all_go();
            }
        });
        news.tell();
    }

    /// Lets all go who can, after something was given back.
    pub(crate) fn let_all_go(&self) {
        if self.waiting.is_none_after_change() {
            return;
        }
        let mut news = News::none();
        // If a waker panics, the others go all the same.
        let again = Finally(|| self.let_all_go());
        loop {
            let now = self.runtime.now();
            let mut line = self.line.lock();
            let is_all = line.let_go(now, &self.limiter, &mut news);
            line.mind_time(now, &self.limiter, None, &mut news);
            self.unlock(line);
            news.tell();
            if is_all {
                core::mem::forget(again);
                return;
            }
        }
    }

    /// Ends all waits, and all that are to come, with [`Denied::Closed`]. What was granted stays granted.
    pub fn close(&self) {
        let mut news = News::none();
        // If a waker panics, the others are told all the same.
        let again = Finally(|| self.close());
        loop {
            let mut line = self.line.lock();
            let is_all = line.close(self.runtime.now(), &self.limiter, &mut news);
            self.unlock(line);
            news.tell();
            if is_all {
                core::mem::forget(again);
                return;
            }
        }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        // Once closed it is never without somebody who waits: see `unlock`.
        !self.waiting.is_none() && self.line.lock().is_closed()
    }

    /// Opens the lock, after telling those who do not take it how many wait.
    pub(crate) fn unlock(&self, mut line: MutexGuard<'_, M, Line<S, L>>) {
        line.tidy();
        // One who closed counts as somebody who waits for ever, so that everybody looks; and so does, until it has fetched it, one for whom something is held.
        self.waiting.set(line.len() + line.held() + usize::from(line.is_closed()));
        drop(line);
    }
}

impl<L: Grantor + fmt::Debug, R, M: RawMutex, S: Room> fmt::Debug for Queued<L, R, M, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queued").field("limiter", &self.limiter).field("options", &self.options).finish_non_exhaustive()
    }
}
