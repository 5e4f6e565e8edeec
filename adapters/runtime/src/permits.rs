//! Waiting for permits of a concurrency limit.

use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use lock_api::RawMutex;
use pin_project_lite::pin_project;
use sluicegate_core::{ConcurrencyLimit, Denied, Nanos, Outcome, Permit, PermitObserver, Usage};

use crate::acquire::{Acquire, Until};
use crate::finally::Finally;
use crate::grant::Grantor;
use crate::options::WaitOptions;
use crate::queued::Queued;
use crate::room::Room;
use crate::runtime::Runtime;
use crate::waitable::Waitable;

/// A concurrency limit whose permits can be waited for, in order; all that [`Queued`] says of waiting holds.
///
/// A permit lets the next waiter go when it is released or dropped. No clock knows when that will be, so nobody sleeps for it, and a
/// denial says [`Denied::ConcurrencyLimited`]. What a waiter was granted that is leaked, or never polled again, stays in use, as does
/// any permit that is leaked.
///
/// Its observer is told of each permit when it is granted, under the lock of those who wait: it must not call the limiter, nor panic.
///
/// ```
/// # use core::{future::Future, pin::pin, task::{Context, Waker}};
/// use sluicegate_runtime::{ConcurrencyLimit, Growing, ManualRuntime, QueuedPermits, WaitOptions};
///
/// type InFlight = QueuedPermits<ManualRuntime<parking_lot::RawMutex>, parking_lot::RawMutex, Growing>;
///
/// let in_flight = InFlight::new(ConcurrencyLimit::new(1), ManualRuntime::new(), WaitOptions::new());
/// let first = in_flight.try_acquire_permit(1)?;
/// let mut second = pin!(in_flight.acquire_permit(1));
/// # let mut context = Context::from_waker(Waker::noop());
/// assert!(second.as_mut().poll(&mut context).is_pending());
/// first.success();
/// assert!(second.as_mut().poll(&mut context).is_ready());
/// # Ok::<(), sluicegate_runtime::Denied>(())
/// ```
pub struct QueuedPermits<R, M, S: Room, O: PermitObserver = ()>(Queued<Permits<O>, R, M, S>);

/// What the queue asks of a concurrency limit. The permits that it grants wake nobody, and so only [`WaitedPermit`] is shown.
#[derive(Debug)]
pub struct Permits<O = ()>(Arc<ConcurrencyLimit<O>>);

impl<O: PermitObserver> Grantor for Permits<O> {
    type Cost = u64;
    type Grant = Permit<Arc<ConcurrencyLimit<O>>>;
    type Denial = Denied;

    fn take_at(&self, _now: Nanos, cost: u64) -> Result<Self::Grant, Denied> {
        self.0.try_acquire_owned(cost)
    }

    fn peek_at(&self, _now: Nanos, cost: u64) -> Result<(), Denied> {
        self.0.peek(cost).map(drop)
    }

    /// No clock knows.
    fn earliest_at(&self, _now: Nanos, _total: u128) -> Option<Nanos> {
        None
    }

    fn denial(&self, _now: Nanos, _total: u128, denied: Denied) -> Denied {
        denied
    }

    fn give_back(&self, _cost: u64, permit: Self::Grant) {
        permit.ignore();
    }
}

impl<R: Runtime, M: RawMutex, S: Room, O: PermitObserver> QueuedPermits<R, M, S, O> {
    /// Nobody waits for `limit` yet.
    pub fn new(limit: ConcurrencyLimit<O>, runtime: R, options: WaitOptions) -> Self {
        Self(Queued::new(Permits(Arc::new(limit)), runtime, options))
    }

    /// Takes a permit of `cost` now, or nothing.
    ///
    /// # Errors
    /// [`Denied::ConcurrencyLimited`], [`Denied::CostExceedsLimit`], and [`Denied::Closed`] once closed.
    pub fn try_acquire_permit(&self, cost: u64) -> Result<WaitedPermit<&Self>, Denied> {
        self.0.try_acquire(cost).map(|permit| WaitedPermit::new(permit, self))
    }

    /// As [`try_acquire_permit`](Self::try_acquire_permit), for a permit that shares the limiter and can go to another task.
    ///
    /// # Errors
    /// As `try_acquire_permit`.
    pub fn try_acquire_permit_owned(self: &Arc<Self>, cost: u64) -> Result<WaitedPermit<Arc<Self>>, Denied> {
        self.0.try_acquire(cost).map(|permit| WaitedPermit::new(permit, Arc::clone(self)))
    }

    /// Waits until there is a permit of `cost`, in order, for as long as that takes.
    ///
    /// Nothing happens before the future is first polled. Dropped before it is ready, it has taken nothing: a permit that it was granted
    /// and has not learnt of goes to the next.
    ///
    /// # Errors
    /// As [`Queued::acquire`].
    pub fn acquire_permit(&self, cost: u64) -> AcquirePermit<&Self> {
        AcquirePermit::new(self, cost, Until::Ever)
    }

    /// The same for no longer than `timeout`. It ends with [`Denied::ConcurrencyLimited`] then.
    ///
    /// # Errors
    /// As [`acquire_permit`](Self::acquire_permit).
    pub fn acquire_permit_timeout(&self, cost: u64, timeout: Duration) -> AcquirePermit<&Self> {
        AcquirePermit::new(self, cost, Until::After(timeout))
    }

    /// The same until the clock reads `deadline`.
    ///
    /// # Errors
    /// As [`acquire_permit_timeout`](Self::acquire_permit_timeout).
    pub fn acquire_permit_deadline(&self, cost: u64, deadline: Nanos) -> AcquirePermit<&Self> {
        AcquirePermit::new(self, cost, Until::At(deadline))
    }

    /// As [`acquire_permit`](Self::acquire_permit), by a future and a permit that share the limiter and can go to another task.
    pub fn acquire_permit_owned(self: &Arc<Self>, cost: u64) -> AcquirePermit<Arc<Self>> {
        AcquirePermit::new(Arc::clone(self), cost, Until::Ever)
    }

    /// As [`acquire_permit_timeout`](Self::acquire_permit_timeout), by a future and a permit that share the limiter.
    pub fn acquire_permit_timeout_owned(self: &Arc<Self>, cost: u64, timeout: Duration) -> AcquirePermit<Arc<Self>> {
        AcquirePermit::new(Arc::clone(self), cost, Until::After(timeout))
    }

    /// As [`acquire_permit_deadline`](Self::acquire_permit_deadline), by a future and a permit that share the limiter.
    pub fn acquire_permit_deadline_owned(self: &Arc<Self>, cost: u64, deadline: Nanos) -> AcquirePermit<Arc<Self>> {
        AcquirePermit::new(Arc::clone(self), cost, Until::At(deadline))
    }

    /// Sets the limit, and wakes those who fit into it; who never will is told so.
    pub fn set_limit(&self, limit: u32) -> Usage {
        let _next = Finally(|| self.0.recheck());
        self.limit().set_limit(limit)
    }

    /// What is in use and the limit.
    pub fn usage(&self) -> Usage {
        self.limit().usage()
    }

    /// The limit itself. Whoever waits does not learn of permits that are taken from it directly.
    pub fn limit(&self) -> &ConcurrencyLimit<O> {
        &self.0.limiter().0
    }

    /// The executor's clock and timer.
    pub const fn runtime(&self) -> &R {
        self.0.runtime()
    }

    /// How many wait. It may have changed by the time it is told.
    pub fn waiters(&self) -> usize {
        self.0.waiters()
    }

    /// Lets all go who can, after something was released past this type.
    pub fn recheck(&self) {
        self.0.recheck();
    }

    /// Ends all waits, and all that are to come, with [`Denied::Closed`]. What was granted stays granted.
    pub fn close(&self) {
        self.0.close();
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

impl<R, M: RawMutex, S: Room, O: PermitObserver> fmt::Debug for QueuedPermits<R, M, S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedPermits").field("limit", &self.0.limiter.0).finish_non_exhaustive()
    }
}

/// A permit that lets the next waiter go when it is released or dropped.
pub struct WaitedPermit<Q: Released> {
    /// `None` once released.
    permit: Option<Permit<Arc<ConcurrencyLimit<Q::Observer>>>>,
    limiter: Q,
}

impl<Q: Released> WaitedPermit<Q> {
    const fn new(permit: Permit<Arc<ConcurrencyLimit<Q::Observer>>>, limiter: Q) -> Self {
        Self { permit: Some(permit), limiter }
    }

    /// Nothing is done under it for now; see [`Permit::pause`].
    pub fn pause(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.pause();
        }
    }

    /// What it was taken for begins now; see [`Permit::resume`].
    pub fn resume(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.resume();
        }
    }

    /// Releases it: what it was for went well.
    pub fn success(self) {
        self.release(Outcome::Success);
    }

    /// Releases it: what it was for says nothing about how much can be in use.
    pub fn ignore(self) {
        self.release(Outcome::Ignored);
    }

    /// Releases it with an outcome.
    pub fn release(mut self, outcome: Outcome) {
        if let Some(permit) = self.permit.take() {
            permit.release(outcome);
        }
    }
}

impl<Q: Released> Drop for WaitedPermit<Q> {
    fn drop(&mut self) {
        let Self { permit, limiter } = self;
        let _next = Finally(|| limiter.released());
        drop(permit.take());
    }
}

impl<Q: Released> fmt::Debug for WaitedPermit<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WaitedPermit").field(&self.permit).finish()
    }
}

/// How a [`WaitedPermit`] refers to its limiter: by reference or by `Arc`.
pub trait Released {
    /// Who is told of permits.
    type Observer: PermitObserver;
    /// Who waits.
    #[doc(hidden)]
    type Line: Waitable<Cost = u64, Grant = Permit<Arc<ConcurrencyLimit<Self::Observer>>>, Denial = Denied>;
    #[doc(hidden)]
    fn line(&self) -> &Self::Line;
    #[doc(hidden)]
    fn released(&self);
}

impl<R: Runtime, M: RawMutex, S: Room, O: PermitObserver> Released for QueuedPermits<R, M, S, O> {
    type Observer = O;
    type Line = Queued<Permits<O>, R, M, S>;

    fn line(&self) -> &Self::Line {
        &self.0
    }

    fn released(&self) {
        self.0.let_all_go();
    }
}

macro_rules! points_to_released {
    ($pointer:ty) => {
        impl<Q: Released + ?Sized> Released for $pointer {
            type Observer = Q::Observer;
            type Line = Q::Line;

            fn line(&self) -> &Q::Line {
                (**self).line()
            }

            fn released(&self) {
                (**self).released();
            }
        }
    };
}

points_to_released!(&Q);
points_to_released!(Arc<Q>);

/// The line of a limiter of permits, as their future waits in it.
#[derive(Clone, Debug)]
pub struct LineOf<Q>(pub(crate) Q);

pin_project! {
    /// Waits for a permit; see [`QueuedPermits::acquire_permit`].
    ///
    /// # Cancel safety
    ///
    /// Dropped before it is ready, it has taken nothing.
    #[must_use = "nothing waits before the future is polled"]
    pub struct AcquirePermit<Q: Released> {
        #[pin]
        acquire: Acquire<LineOf<Q>>,
        limiter: Q,
    }
}

impl<Q: Released + Clone> AcquirePermit<Q> {
    fn new(limiter: Q, cost: u64, until: Until) -> Self {
        Self { acquire: Acquire::new(LineOf(limiter.clone()), cost, until), limiter }
    }
}

impl<Q: Released + Clone> Future for AcquirePermit<Q> {
    type Output = Result<WaitedPermit<Q>, Denied>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let permit = ready!(this.acquire.poll(context));
        Poll::Ready(permit.map(|permit| WaitedPermit::new(permit, this.limiter.clone())))
    }
}

impl<Q: Released> fmt::Debug for AcquirePermit<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.acquire.fmt(f)
    }
}
