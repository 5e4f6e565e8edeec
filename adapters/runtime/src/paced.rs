//! Departing at an even pace.

#[cfg(feature = "alloc")]
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::ops::Deref;
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use pin_project_lite::pin_project;
use sluicegate_core::{Denied, Departure, LeakyBucket, Nanos, Observer, Pacing};

use crate::runtime::Runtime;
use crate::until::Until;

/// A leaky bucket whose departures can be awaited.
///
/// Whoever comes is given its instant at once, in order, and sleeps until then. Nobody wakes anybody else, so a task that wakes
/// late delays nobody behind it: departures keep their even distance, and a late one does not shift those after it.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// # use core::{future::Future, pin::pin, task::{Context, Waker}, time::Duration};
/// use sluicegate_runtime::{ManualRuntime, Paced, Pacing, PER_SECOND, Rate};
///
/// let time = ManualRuntime::<parking_lot::RawMutex>::new();
/// let paced = Paced::new(Pacing::new(Rate::new(10, PER_SECOND)?, 1)?, time.clone());
/// # let mut context = Context::from_waker(Waker::noop());
/// let mut first = pin!(paced.pace(1));
/// assert!(first.as_mut().poll(&mut context).is_ready());
/// let mut second = pin!(paced.pace(1));
/// assert!(second.as_mut().poll(&mut context).is_pending());
/// time.advance(Duration::from_millis(100));
/// assert!(second.as_mut().poll(&mut context).is_ready());
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Paced<R, O = ()> {
    bucket: LeakyBucket<(), O>,
    runtime: R,
}

impl<R: Runtime + Default> Paced<R> {
    /// As [`new`](Self::new), on the executor's clock and timer.
    pub fn of(pacing: Pacing) -> Self {
        Self::new(pacing, R::default())
    }
}

impl<R: Runtime> Paced<R> {
    /// Nobody has come yet.
    pub fn new(pacing: Pacing, runtime: R) -> Self {
        Self { bucket: LeakyBucket::with_clock(pacing, ()), runtime }
    }

    /// The same, and `observer` is told of every decision.
    pub fn observed_by<O: Observer>(self, observer: O) -> Paced<R, O> {
        Paced { bucket: self.bucket.observed_by(observer), runtime: self.runtime }
    }
}

impl<R: Runtime, O: Observer> Paced<R, O> {
    /// The bucket.
    pub const fn bucket(&self) -> &LeakyBucket<(), O> {
        &self.bucket
    }

    /// The executor's clock and timer.
    pub const fn runtime(&self) -> &R {
        &self.runtime
    }

    /// Takes the next slot of `cost` at its first poll, and completes when that departs, with the reading at which it was to.
    ///
    /// Dropped before, it gives its slot up if nobody came after it; otherwise the slot stays empty, because those behind have been
    /// told theirs.
    ///
    /// # Errors
    /// As [`LeakyBucket::try_acquire_at`], at once: mostly [`Denied::RateLimited`] when the bucket's queue is full.
    pub fn pace(&self, cost: u64) -> Pace<&Self> {
        Pace::new(self, cost, Until::Ever)
    }

    /// The same, but takes no slot that departs later than `timeout` from the first poll.
    ///
    /// # Errors
    /// As [`pace`](Self::pace), at once; [`Denied::RateLimited`] where it would take longer.
    pub fn pace_timeout(&self, cost: u64, timeout: Duration) -> Pace<&Self> {
        Pace::new(self, cost, Until::After(timeout))
    }

    /// The same, but takes no slot that departs after `deadline`; a deadline that has passed is a timeout of zero.
    ///
    /// # Errors
    /// As [`pace_timeout`](Self::pace_timeout).
    pub fn pace_deadline(&self, cost: u64, deadline: Nanos) -> Pace<&Self> {
        Pace::new(self, cost, Until::At(deadline))
    }

    /// As [`pace`](Self::pace), by a future that shares the bucket and can go to another task.
    #[cfg(feature = "alloc")]
    pub fn pace_owned(self: &Arc<Self>, cost: u64) -> Pace<Arc<Self>> {
        Pace::new(Arc::clone(self), cost, Until::Ever)
    }

    /// As [`pace_timeout`](Self::pace_timeout), by a future that shares the bucket.
    #[cfg(feature = "alloc")]
    pub fn pace_timeout_owned(self: &Arc<Self>, cost: u64, timeout: Duration) -> Pace<Arc<Self>> {
        Pace::new(Arc::clone(self), cost, Until::After(timeout))
    }

    /// As [`pace_deadline`](Self::pace_deadline), by a future that shares the bucket.
    #[cfg(feature = "alloc")]
    pub fn pace_deadline_owned(self: &Arc<Self>, cost: u64, deadline: Nanos) -> Pace<Arc<Self>> {
        Pace::new(Arc::clone(self), cost, Until::At(deadline))
    }

    /// Lets each of `items` depart when its turn comes, and awaits `work` on it before the next.
    ///
    /// # Errors
    /// As [`pace`](Self::pace); items that are left are dropped.
    pub async fn for_each<I, F, W>(&self, items: I, mut work: F) -> Result<(), Denied>
    where
        I: IntoIterator,
        F: FnMut(I::Item) -> W,
        W: Future<Output = ()>,
    {
        for item in items {
            self.pace(1).await?;
            work(item).await;
        }
        Ok(())
    }
}

impl<R: fmt::Debug, O> fmt::Debug for Paced<R, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paced").field("bucket", &self.bucket).field("runtime", &self.runtime).finish()
    }
}

/// How a [`Pace`] refers to its bucket: by reference or by `Arc`.
pub trait Pacer {
    /// The executor's clock and timer.
    type Runtime: Runtime;
    #[doc(hidden)]
    fn runtime(&self) -> &Self::Runtime;
    #[doc(hidden)]
    fn join(&self, now: Nanos, cost: u64, longest_wait: Duration) -> Result<Departure, Denied>;
    #[doc(hidden)]
    fn cancel(&self, departure: Departure);
}

impl<R: Runtime, O: Observer> Pacer for Paced<R, O> {
    type Runtime = R;

    fn runtime(&self) -> &R {
        &self.runtime
    }

    fn join(&self, now: Nanos, cost: u64, longest_wait: Duration) -> Result<Departure, Denied> {
        self.bucket.try_acquire_within_at(now, cost, longest_wait)
    }

    fn cancel(&self, departure: Departure) {
        let _ = self.bucket.cancel(departure);
    }
}

pin_project! {
    /// Waits for a departure; see [`Paced::pace`].
    #[must_use = "nothing waits before the future is polled"]
    pub struct Pace<P: Deref>
    where
        P::Target: Pacer,
    {
        paced: P,
        cost: u64,
        until: Until,
        departure: Option<Departure>,
        is_over: bool,
        #[pin]
        sleep: Option<<<P::Target as Pacer>::Runtime as Runtime>::Sleep>,
    }

    impl<P: Deref> PinnedDrop for Pace<P>
    where
        P::Target: Pacer,
    {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let Some(departure) = this.departure.take() {
                this.paced.cancel(departure);
            }
        }
    }
}

impl<P: Deref> Pace<P>
where
    P::Target: Pacer,
{
    const fn new(paced: P, cost: u64, until: Until) -> Self {
        Self { paced, cost, until, departure: None, is_over: false, sleep: None }
    }
}

impl<P: Deref> Future for Pace<P>
where
    P::Target: Pacer,
{
    type Output = Result<Nanos, Denied>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        use sluicegate_core::Clock as _;
        let mut this = self.project();
        if *this.is_over {
            return Poll::Pending;
        }
        if this.departure.is_none() {
            let now = this.paced.runtime().now();
            match this.paced.join(now, *this.cost, this.until.longest_wait(now)) {
                Ok(departure) => *this.departure = Some(departure),
                Err(denied) => {
                    *this.is_over = true;
                    return Poll::Ready(Err(denied));
                }
            }
        }
        let at = this.departure.as_ref().map_or(Nanos::ZERO, |departure| departure.at);
        let mut has_slept = false;
        while this.paced.runtime().now() < at {
            if this.sleep.is_none() {
                this.sleep.set(Some(this.paced.runtime().sleep_until(at)));
            }
            if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
                ready!(sleep.poll(context));
            }
            this.sleep.set(None);
            // A timer that wakes too early, again and again, must not keep the executor from all else.
            if has_slept {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            has_slept = true;
        }
        // It departs, and its slot cannot be given up any more.
        *this.departure = None;
        *this.is_over = true;
        this.sleep.set(None);
        Poll::Ready(Ok(at))
    }
}

impl<P: Deref> fmt::Debug for Pace<P>
where
    P::Target: Pacer,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace").field("cost", &self.cost).field("departure", &self.departure).finish_non_exhaustive()
    }
}
