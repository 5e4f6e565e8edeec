//! An executor of one future: the test decides when it is polled.

#![allow(dead_code, reason = "each test file uses its part")]

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};

/// A future, and how often it was woken.
pub(crate) struct Waiter<F: Future> {
    future: Pin<Box<F>>,
    woken: Arc<Woken>,
}

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl<F: Future> Waiter<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), woken: Arc::default() }
    }

    /// One that has to wait.
    #[track_caller]
    pub(crate) fn waiting(future: F) -> Self {
        let mut waiter = Self::new(future);
        assert!(waiter.poll().is_pending(), "it need not wait");
        waiter
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Whether it was woken since it was polled last by `run`.
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Relaxed) > 0
    }

    /// Polls as an executor would: only when woken.
    pub(crate) fn run(&mut self) -> Option<F::Output> {
        while self.is_woken() {
            let output = self.run_once();
            if output.is_some() {
                return output;
            }
        }
        None
    }

    /// The same, once at most.
    pub(crate) fn run_once(&mut self) -> Option<F::Output> {
        if self.woken.0.swap(0, Ordering::Relaxed) == 0 {
            return None;
        }
        match self.poll() {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }
}
