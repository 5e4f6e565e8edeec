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
use crate::grant::Grantor;
use crate::queued::Queued;
use crate::room::Room;
use crate::runtime::Runtime;
use crate::waitable::Waitable;

/// A concurrency limit whose permits can be waited for: what [`Queued`] asks.
///
/// Its observer is told of each permit when it is granted, under the lock of those who wait; it must not call the limiter.
///
/// ```
/// # use core::{future::Future, pin::pin, task::{Context, Waker}};
/// use sluicegate_runtime::{ConcurrencyLimit, Growing, ManualRuntime, Permits, Queued, WaitOptions};
///
/// type InFlight = Queued<Permits, ManualRuntime<parking_lot::RawMutex>, parking_lot::RawMutex, Growing>;
///
/// let in_flight = InFlight::new(ConcurrencyLimit::new(1).into(), ManualRuntime::new(), WaitOptions::new());
/// let first = in_flight.try_acquire_permit(1)?;
/// let mut second = pin!(in_flight.acquire_permit(1));
/// # let mut context = Context::from_waker(Waker::noop());
/// assert!(second.as_mut().poll(&mut context).is_pending());
/// first.success();
/// assert!(second.as_mut().poll(&mut context).is_ready());
/// # Ok::<(), sluicegate_runtime::Denied>(())
/// ```
#[derive(Debug)]
pub struct Permits<O = ()>(Arc<ConcurrencyLimit<O>>);

impl<O> From<ConcurrencyLimit<O>> for Permits<O> {
    fn from(limit: ConcurrencyLimit<O>) -> Self {
        Self(Arc::new(limit))
    }
}

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

impl<O: PermitObserver, R: Runtime, M: RawMutex, S: Room> Queued<Permits<O>, R, M, S> {
    /// Takes a permit of `cost` now, or nothing.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_permit(&self, cost: u64) -> Result<WaitedPermit<&Self>, Denied> {
        self.try_acquire(cost).map(|permit| WaitedPermit { permit: Some(permit), limiter: self })
    }

    /// Waits until there is a permit of `cost`, as [`acquire`](Self::acquire) does.
    pub fn acquire_permit(&self, cost: u64) -> AcquirePermit<&Self> {
        AcquirePermit { acquire: Acquire::new(self, cost, Until::Ever), limiter: self }
    }

    /// The same for no longer than `timeout`. It ends with [`Denied::ConcurrencyLimited`] then.
    pub fn acquire_permit_timeout(&self, cost: u64, timeout: Duration) -> AcquirePermit<&Self> {
        AcquirePermit { acquire: Acquire::new(self, cost, Until::After(timeout)), limiter: self }
    }

    /// As [`acquire_permit`](Self::acquire_permit), by a future and a permit that share the limiter and can go to another task.
    pub fn acquire_permit_owned(self: &Arc<Self>, cost: u64) -> AcquirePermit<Arc<Self>> {
        AcquirePermit { acquire: Acquire::new(Arc::clone(self), cost, Until::Ever), limiter: Arc::clone(self) }
    }

    /// As [`acquire_permit_timeout`](Self::acquire_permit_timeout), by a future and a permit that share the limiter.
    pub fn acquire_permit_timeout_owned(self: &Arc<Self>, cost: u64, timeout: Duration) -> AcquirePermit<Arc<Self>> {
        AcquirePermit {
            acquire: Acquire::new(Arc::clone(self), cost, Until::After(timeout)),
            limiter: Arc::clone(self),
        }
    }

    /// Sets the limit, and wakes those who fit into it; who never will is told so.
    pub fn set_limit(&self, limit: u32) -> Usage {
        let usage = self.limiter().0.set_limit(limit);
        self.recheck();
        usage
    }

    /// What is in use and the limit.
    pub fn usage(&self) -> Usage {
        self.limiter().0.usage()
    }
}

/// A permit that lets the next waiter go when it is released or dropped.
pub struct WaitedPermit<Q: Released> {
    /// `None` once released.
    permit: Option<Permit<Arc<ConcurrencyLimit<Q::Observer>>>>,
    limiter: Q,
}

impl<Q: Released> WaitedPermit<Q> {
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
        drop(self.permit.take());
        self.limiter.released();
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
    #[doc(hidden)]
    fn released(&self);
}

impl<O: PermitObserver, R: Runtime, M: RawMutex, S: Room> Released for Queued<Permits<O>, R, M, S> {
    type Observer = O;

    fn released(&self) {
        self.let_all_go();
    }
}

impl<Q: Released + ?Sized> Released for &Q {
    type Observer = Q::Observer;

    fn released(&self) {
        (**self).released();
    }
}

impl<Q: Released + ?Sized> Released for Arc<Q> {
    type Observer = Q::Observer;

    fn released(&self) {
        (**self).released();
    }
}

pin_project! {
    /// Waits for a permit; see [`Queued::acquire_permit`].
    #[must_use = "nothing waits before the future is polled"]
    pub struct AcquirePermit<W: Waitable> {
        #[pin]
        acquire: Acquire<W>,
        limiter: W,
    }
}

impl<W> Future for AcquirePermit<W>
where
    W: Waitable<Grant = Permit<Arc<ConcurrencyLimit<<W as Released>::Observer>>>, Denial = Denied> + Released + Clone,
{
    type Output = Result<WaitedPermit<W>, Denied>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let permit = ready!(this.acquire.poll(context));
        Poll::Ready(permit.map(|permit| WaitedPermit { permit: Some(permit), limiter: this.limiter.clone() }))
    }
}

impl<W: Waitable> fmt::Debug for AcquirePermit<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.acquire.fmt(f)
    }
}
