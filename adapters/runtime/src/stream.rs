//! Streams and sinks at a limiter's pace.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_sink::Sink;
use pin_project_lite::pin_project;
use sluicegate_core::Denied;

use crate::acquire::{Acquire, Until};
use crate::waitable::Waitable;

pin_project! {
    /// A stream whose items wait for a limiter, in order; see [`LimitStream::limit_by`].
    #[must_use = "a stream does nothing unless it is polled"]
    pub struct Limited<T: Stream, W: Waitable> {
        #[pin]
        stream: T,
        limiter: W,
        cost: u64,
        item: Option<T::Item>,
        #[pin]
        acquire: Option<Acquire<W>>,
    }
}

/// For every stream.
pub trait LimitStream: Stream + Sized {
    /// Each item takes 1 from `limiter` before it is passed on. An item that is refused for good is passed on as the reason why.
    ///
    /// The limiter is asked once there is an item, so a stream that is idle takes nothing.
    fn limit_by<W: Waitable<Cost = u64> + Clone>(self, limiter: W) -> Limited<Self, W> {
        Limited { stream: self, limiter, cost: 1, item: None, acquire: None }
    }
}

impl<T: Stream> LimitStream for T {}

impl<T: Stream, W: Waitable<Cost = u64> + Clone> Stream for Limited<T, W> {
    type Item = Result<T::Item, Denied>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        if this.item.is_none() {
            match ready!(this.stream.poll_next(context)) {
                Some(item) => *this.item = Some(item),
                None => return Poll::Ready(None),
            }
        }
        if this.acquire.is_none() {
            this.acquire.set(Some(Acquire::new(this.limiter.clone(), *this.cost, Until::Ever)));
        }
        let decision = match this.acquire.as_mut().as_pin_mut() {
            Some(acquire) => ready!(acquire.poll(context)),
            None => return Poll::Ready(None),
        };
        this.acquire.set(None);
        Poll::Ready(this.item.take().map(|item| decision.map(|_| item).map_err(Into::into)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let held = usize::from(self.item.is_some());
        let (low, high) = self.stream.size_hint();
        (low.saturating_add(held), high.and_then(|high| high.checked_add(held)))
    }
}

impl<T: Stream, W: Waitable> fmt::Debug for Limited<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limited").field("cost", &self.cost).finish_non_exhaustive()
    }
}

pin_project! {
    /// A sink that takes items at a limiter's pace: it is ready for one once that was granted.
    #[must_use = "a sink does nothing unless it is fed"]
    pub struct LimitedSink<T, W: Waitable> {
        #[pin]
        sink: T,
        limiter: W,
        is_granted: bool,
        #[pin]
        acquire: Option<Acquire<W>>,
    }
}

impl<T, W: Waitable<Cost = u64> + Clone> LimitedSink<T, W> {
    /// Each item takes 1 from `limiter` before `sink` is given it. What was granted and not used serves the next item.
    pub fn new(sink: T, limiter: W) -> Self {
        Self { sink, limiter, is_granted: false, acquire: None }
    }
}

/// Why an item was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkError<E> {
    /// The limiter refuses it.
    Denied(Denied),
    /// The sink's own error.
    Sink(E),
}

impl<E: fmt::Display> fmt::Display for SinkError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denied) => denied.fmt(f),
            Self::Sink(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static> core::error::Error for SinkError<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Denied(denied) => Some(denied),
            Self::Sink(error) => Some(error),
        }
    }
}

impl<I, T: Sink<I>, W: Waitable<Cost = u64> + Clone> Sink<I> for LimitedSink<T, W> {
    type Error = SinkError<T::Error>;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let mut this = self.project();
        // First, so that nothing is taken for a sink that is stuck.
        ready!(this.sink.poll_ready(context)).map_err(SinkError::Sink)?;
        if *this.is_granted {
            return Poll::Ready(Ok(()));
        }
        if this.acquire.is_none() {
            this.acquire.set(Some(Acquire::new(this.limiter.clone(), 1, Until::Ever)));
        }
        let decision = match this.acquire.as_mut().as_pin_mut() {
            Some(acquire) => ready!(acquire.poll(context)),
            None => return Poll::Pending,
        };
        this.acquire.set(None);
        *this.is_granted = decision.is_ok();
        Poll::Ready(decision.map(drop).map_err(|denial| SinkError::Denied(denial.into())))
    }

    fn start_send(self: Pin<&mut Self>, item: I) -> Result<(), Self::Error> {
        let this = self.project();
        *this.is_granted = false;
        this.sink.start_send(item).map_err(SinkError::Sink)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.project().sink.poll_flush(context).map_err(SinkError::Sink)
    }

    fn poll_close(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.project().sink.poll_close(context).map_err(SinkError::Sink)
    }
}

impl<T: fmt::Debug, W: Waitable> fmt::Debug for LimitedSink<T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitedSink").field("sink", &self.sink).finish_non_exhaustive()
    }
}
