//! Sinks at a limiter's pace.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use futures_sink::Sink;
use pin_project_lite::pin_project;

use crate::acquire::{Acquire, Until};
use crate::waitable::Waitable;

pin_project! {
    /// A sink that takes items at a limiter's pace: it is ready for one once that was granted.
    ///
    /// # Cancel safety
    ///
    /// What was granted and not used serves the next item; dropped, the sink gives it back to the limiter.
    #[must_use = "a sink does nothing unless it is fed"]
    pub struct LimitedSink<T, W: Waitable> {
        #[pin]
        sink: T,
        limiter: W,
        cost: W::Cost,
        granted: Option<W::Grant>,
        #[pin]
        acquire: Option<Acquire<W>>,
    }

    impl<T, W: Waitable> PinnedDrop for LimitedSink<T, W> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if let Some(granted) = this.granted.take() {
                this.limiter.give_back(*this.cost, granted);
            }
        }
    }
}

impl<T, W: Waitable<Cost = u64, Grant: Copy> + Clone> LimitedSink<T, W> {
    /// Each item takes 1 from `limiter` before `sink` is given it.
    ///
    /// `limiter` is a reference to a [`Queued`](crate::Queued) limiter, or an `Arc` of one.
    pub fn new(sink: T, limiter: W) -> Self {
        Self::with_cost(sink, limiter, 1)
    }
}

impl<T, W: Waitable<Grant: Copy> + Clone> LimitedSink<T, W> {
    /// Each item takes `cost` from `limiter` before `sink` is given it. It is the same for all, because a sink says that it is ready
    /// before it has seen the item.
    pub fn with_cost(sink: T, limiter: W, cost: W::Cost) -> Self {
        Self { sink, limiter, cost, granted: None, acquire: None }
    }
}

/// Why an item was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkError<E, D = sluicegate_core::Denied> {
    /// The limiter refuses it.
    Denied(D),
    /// The sink's own error.
    Sink(E),
}

impl<E: fmt::Display, D: fmt::Display> fmt::Display for SinkError<E, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied(denial) => denial.fmt(f),
            Self::Sink(error) => error.fmt(f),
        }
    }
}

impl<E: core::error::Error + 'static, D: core::error::Error + 'static> core::error::Error for SinkError<E, D> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Denied(denial) => Some(denial),
            Self::Sink(error) => Some(error),
        }
    }
}

impl<I, T: Sink<I>, W: Waitable<Grant: Copy> + Clone> Sink<I> for LimitedSink<T, W> {
    type Error = SinkError<T::Error, W::Denial>;

    fn poll_ready(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let mut this = self.project();
        // First, so that nothing is taken for a sink that is stuck.
        ready!(this.sink.poll_ready(context)).map_err(SinkError::Sink)?;
        if this.granted.is_some() {
            return Poll::Ready(Ok(()));
        }
        if this.acquire.is_none() {
            this.acquire.set(Some(Acquire::new(this.limiter.clone(), *this.cost, Until::Ever)));
        }
        let decision = match this.acquire.as_mut().as_pin_mut() {
            Some(acquire) => ready!(acquire.poll(context)),
            None => return Poll::Pending,
        };
        this.acquire.set(None);
        *this.granted = Some(decision.map_err(SinkError::Denied)?);
        Poll::Ready(Ok(()))
    }

    fn start_send(self: Pin<&mut Self>, item: I) -> Result<(), Self::Error> {
        let this = self.project();
        *this.granted = None;
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
