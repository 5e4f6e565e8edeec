//! Streams at a limiter's pace.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;

use crate::acquire::{Acquire, Until};
use crate::waitable::Waitable;

pin_project! {
    /// A stream whose items wait for a limiter, in order; see [`LimitStream::limit_by`].
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has taken nothing for the item that was waiting, which is dropped with it.
    #[must_use = "a stream does nothing unless it is polled"]
    pub struct Limited<T: Stream, W: Waitable, F = fn(&<T as Stream>::Item) -> u64> {
        #[pin]
        stream: T,
        limiter: W,
        cost_of: F,
        item: Option<T::Item>,
        #[pin]
        acquire: Option<Acquire<W>>,
    }
}

/// For every stream.
///
/// ```
/// # use core::pin::{Pin, pin};
/// # use core::task::{Context, Poll, Waker};
/// # use futures_core::Stream;
/// # struct Lines(Vec<&'static str>);
/// # impl Stream for Lines {
/// #     type Item = &'static str;
/// #     fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<&'static str>> {
/// #         Poll::Ready((!self.0.is_empty()).then(|| self.0.remove(0)))
/// #     }
/// # }
/// use core::time::Duration;
/// use sluicegate_runtime::{Growing, LimitStream, ManualRuntime, Queued, TokenBucket, WaitOptions, quota};
///
/// type Lock = parking_lot::RawMutex;
///
/// // Eight bytes a second.
/// let time = ManualRuntime::<Lock>::new();
/// let bucket = TokenBucket::with_limit(quota!("8/1s").into(), ());
/// let limiter = Queued::<_, _, Lock, Growing>::new(bucket, time.clone(), WaitOptions::new());
///
/// let lines = Lines(vec!["five", "bytes?"]);
/// let mut lines = pin!(lines.limit_by_cost(&limiter, |line| line.len() as u64));
/// # let mut context = Context::from_waker(Waker::noop());
/// assert_eq!(lines.as_mut().poll_next(&mut context), Poll::Ready(Some(Ok("five"))));
/// assert!(lines.as_mut().poll_next(&mut context).is_pending());
/// time.advance(Duration::from_millis(250));
/// assert_eq!(lines.as_mut().poll_next(&mut context), Poll::Ready(Some(Ok("bytes?"))));
/// ```
pub trait LimitStream: Stream + Sized {
    /// Each item takes 1 from `limiter` before it is passed on: see [`limit_by_cost`](Self::limit_by_cost).
    fn limit_by<W: Waitable<Cost = u64, Grant: Copy> + Clone>(self, limiter: W) -> Limited<Self, W> {
        self.limit_by_cost(limiter, |_| 1)
    }

    /// Each item takes what `cost_of` says from `limiter` before it is passed on. An item that is refused for good, because it costs
    /// too much or the limiter is closed, is passed on as [`Refused`], at once.
    ///
    /// `limiter` is a reference to a [`Queued`](crate::Queued) limiter, or an `Arc` of one; of a hierarchy the cost is one for each
    /// level. It is asked once there is an item, so a stream that is idle takes nothing; items wait in line with everybody else.
    fn limit_by_cost<W, F>(self, limiter: W, cost_of: F) -> Limited<Self, W, F>
    where
        W: Waitable<Grant: Copy> + Clone,
        F: FnMut(&Self::Item) -> W::Cost,
    {
        Limited { stream: self, limiter, cost_of, item: None, acquire: None }
    }
}

impl<T: Stream> LimitStream for T {}

/// An item that a limiter refused for good, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<I, D> {
    /// The item.
    pub item: I,
    /// Why it was refused.
    pub denial: D,
}

impl<I, D: fmt::Display> fmt::Display for Refused<I, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.denial.fmt(f)
    }
}

impl<I: fmt::Debug, D: core::error::Error + 'static> core::error::Error for Refused<I, D> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.denial)
    }
}

impl<T, W, F> Stream for Limited<T, W, F>
where
    T: Stream,
    W: Waitable<Grant: Copy> + Clone,
    F: FnMut(&T::Item) -> W::Cost,
{
    type Item = Result<T::Item, Refused<T::Item, W::Denial>>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        if this.item.is_none() {
            match ready!(this.stream.poll_next(context)) {
                Some(item) => *this.item = Some(item),
                None => return Poll::Ready(None),
            }
        }
        if this.acquire.is_none() {
            if let Some(item) = this.item {
                this.acquire.set(Some(Acquire::new(this.limiter.clone(), (this.cost_of)(item), Until::Ever)));
            }
        }
        let decision = match this.acquire.as_mut().as_pin_mut() {
            Some(acquire) => ready!(acquire.poll(context)),
            None => return Poll::Ready(None),
        };
        this.acquire.set(None);
        Poll::Ready(this.item.take().map(|item| match decision {
            Ok(_) => Ok(item),
            Err(denial) => Err(Refused { item, denial }),
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let held = usize::from(self.item.is_some());
        let (low, high) = self.stream.size_hint();
        (low.saturating_add(held), high.and_then(|high| high.checked_add(held)))
    }
}

impl<T: Stream, W: Waitable, F> fmt::Debug for Limited<T, W, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limited").field("acquire", &self.acquire).finish_non_exhaustive()
    }
}
