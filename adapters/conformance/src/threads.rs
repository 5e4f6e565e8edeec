//! The smallest executor: a thread for each task.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::thread::{self, Thread};

use parking_lot::RawMutex;
use sluicegate_runtime::Growing;

use crate::executor::Executor;
use crate::virtual_time::VirtualTime;

/// Plain threads: each task blocks one of its own.
#[derive(Clone, Copy, Debug)]
pub struct Threads;

impl Executor for Threads {
    type Runtime = VirtualTime;
    type Lock = RawMutex;
    type Room = Growing;
    const GRAIN: Duration = Duration::ZERO;

    fn run<C: Future<Output = ()> + Send + 'static>(case: impl FnOnce(VirtualTime) -> C) {
        VirtualTime::run(|task| drop(thread::spawn(|| block_on(task))), block_on, case);
    }
}

/// Runs `future` on this thread, which parks while there is nothing to do.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
