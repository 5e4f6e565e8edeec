//! A runtime that counts what is asked of it.

use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll};

use sluicegate_runtime::{Clock, Nanos, Runtime};

/// Another runtime, with the number of sleeps that there are and that there ever were.
#[derive(Clone)]
pub(crate) struct CountedRuntime<R>(R, Arc<Counts>);

#[derive(Default)]
struct Counts {
    alive: AtomicUsize,
    ever: AtomicUsize,
}

impl<R> CountedRuntime<R> {
    pub(crate) fn new(runtime: R) -> Self {
        Self(runtime, Arc::default())
    }

    /// How many sleeps have been made and not been dropped.
    pub(crate) fn sleeps(&self) -> usize {
        self.1.alive.load(Ordering::SeqCst)
    }

    /// How many sleeps have been made.
    pub(crate) fn sleeps_ever(&self) -> usize {
        self.1.ever.load(Ordering::SeqCst)
    }
}

impl<R: Clock> Clock for CountedRuntime<R> {
    fn now(&self) -> Nanos {
        self.0.now()
    }
}

impl<R: Runtime> Runtime for CountedRuntime<R> {
    type Sleep = CountedSleep<R::Sleep>;

    fn sleep_until(&self, at: Nanos) -> Self::Sleep {
        self.1.alive.fetch_add(1, Ordering::SeqCst);
        self.1.ever.fetch_add(1, Ordering::SeqCst);
        CountedSleep(Box::pin(self.0.sleep_until(at)), Arc::clone(&self.1))
    }
}

pub(crate) struct CountedSleep<S>(Pin<Box<S>>, Arc<Counts>);

impl<S: Future<Output = ()>> Future for CountedSleep<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl<S> Drop for CountedSleep<S> {
    fn drop(&mut self) {
        self.1.alive.fetch_sub(1, Ordering::SeqCst);
    }
}
