//! Tasks that a case starts and asks for what became of them.

use alloc::sync::Arc;
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use futures_lite::future::{or, poll_once};
use parking_lot::Mutex;
use sluicegate_runtime::{Clock, Nanos, Runtime, Spawn};

use crate::executor::Executor;

/// What a task ended with, and the reading at which it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended<T> {
    pub(crate) at: Nanos,
    pub(crate) with: T,
}

/// Polls `future` once, here and now, and leaves the rest to a task of its own: its place in a line is decided on return.
pub(crate) async fn start<E: Executor, F>(runtime: &E::Runtime, future: F) -> End<Ended<F::Output>>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let clock = runtime.clone();
    let mut future = Box::pin(async move {
        let with = future.await;
        Ended { at: clock.now(), with }
    });
    match poll_once(&mut future).await {
        Some(ended) => End(Arc::new(Mutex::new((Some(ended), None)))),
        None => spawn::<E, _>(runtime, future),
    }
}

/// Starts `future` in a task of its own.
pub(crate) fn spawn<E: Executor, T: Send + 'static>(
    runtime: &E::Runtime,
    future: impl Future<Output = T> + Send + 'static,
) -> End<T> {
    let end = End(Arc::new(Mutex::new((None, None))));
    let told = Arc::clone(&end.0);
    runtime.spawn(async move {
        let ended = future.await;
        let waker = {
            let mut end = told.lock();
            end.0 = Some(ended);
            end.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    });
    end
}

/// Waits for the end of a task, once. Dropped, it leaves the task alone.
pub(crate) struct End<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

impl<T> Future for End<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut end = self.0.lock();
        match end.0.take() {
            Some(ended) => Poll::Ready(ended),
            None => {
                end.1 = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// `future`, unless it is dropped at `at`, perhaps when it is ready and was not polled since.
pub(crate) async fn unless<R: Runtime, F: Future>(runtime: R, at: Nanos, future: F) -> Option<F::Output> {
    let sleep = async {
        runtime.sleep_until(at).await;
        None
    };
    or(sleep, async { Some(future.await) }).await
}

/// What `future` has to say at once.
pub(crate) async fn at_once<F: Future>(future: F) -> Option<F::Output> {
    poll_once(pin!(future)).await
}

/// Lets time pass: everybody does whatever there is to do until then.
pub(crate) async fn pass<E: Executor>(runtime: &E::Runtime, span: Duration) {
    let at = runtime.now() + span;
    runtime.sleep_until(at).await;
    assert_on_time::<E>(runtime.now(), at);
}

/// As little time as can pass, after everybody has done what there was to do.
pub(crate) async fn settle<E: Executor>(runtime: &E::Runtime) {
    pass::<E>(runtime, E::GRAIN.max(Duration::from_nanos(1))).await;
}

/// It was at `due`, as far as the executor's timer can tell.
#[track_caller]
pub(crate) fn assert_on_time<E: Executor>(at: Nanos, due: Nanos) {
    assert!(due <= at && at <= due + E::GRAIN, "at {at:?}, due at {due:?}");
}
