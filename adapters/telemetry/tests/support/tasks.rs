//! Tasks in virtual time, for a registry.

use core::future::Future;
use core::mem;
use core::panic::AssertUnwindSafe;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::Arc;

use parking_lot::{Mutex, RawMutex};
use sluicegate_runtime::{Clock, ManualRuntime, Nanos, Runtime, Spawn};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs tasks when time passes. One that panics is dropped.
#[derive(Clone)]
pub(crate) struct Tasks {
    time: ManualRuntime<RawMutex>,
    tasks: Arc<Mutex<Vec<Task>>>,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        Self { time: ManualRuntime::new(), tasks: Arc::default() }
    }

    pub(crate) fn pass(&self, by: Duration) {
        self.run();
        self.time.advance(by);
        self.run();
        // What has begun again meanwhile.
        self.run();
    }

    fn run(&self) {
        let tasks = mem::take(&mut *self.tasks.lock());
        for mut task in tasks {
            let mut context = Context::from_waker(Waker::noop());
            let polled = catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(&mut context)));
            if matches!(polled, Ok(Poll::Pending)) {
                self.tasks.lock().push(task);
            }
        }
    }
}

impl Clock for Tasks {
    fn now(&self) -> Nanos {
        self.time.now()
    }
}

impl Runtime for Tasks {
    type Sleep = <ManualRuntime<RawMutex> as Runtime>::Sleep;

    fn sleep_until(&self, at: Nanos) -> Self::Sleep {
        self.time.sleep_until(at)
    }
}

impl Spawn for Tasks {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().push(Box::pin(task));
    }
}
