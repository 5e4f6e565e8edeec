//! Virtual time for executors that have none.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use std::sync::OnceLock;

use parking_lot::{Mutex, RawMutex};
use sluicegate_runtime::{Clock, ManualRuntime, Nanos, Runtime, Spawn};

/// What an executor runs.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// An executor's tasks and wake-ups, in time that passes when no task has anything to do.
///
/// Each task is counted from its wake-up to the end of the poll that follows. Whoever brings the count to zero moves time to the
/// next wake-up. That is exact on executors with many threads, too, and finds out when everybody waits for ever.
#[derive(Clone, Debug)]
pub struct VirtualTime {
    spawn: fn(Task),
    shared: Arc<Shared>,
}

impl VirtualTime {
    /// Runs `case` by an executor's `block_on`, with tasks started by its `spawn`.
    ///
    /// # Panics
    /// When everybody waits and nothing is going to happen.
    pub fn run<C: Future<Output = ()> + Send + 'static>(
        spawn: fn(Task),
        block_on: impl FnOnce(Task),
        case: impl FnOnce(Self) -> C,
    ) {
        let shared = Arc::new(Shared::default());
        let case = case(Self { spawn, shared: Arc::clone(&shared) });
        let main = Counted::new(
            {
                let shared = Arc::clone(&shared);
                let mut case = Box::pin(case);
                core::future::poll_fn(move |context| {
                    assert!(
                        !shared.is_stuck.load(Ordering::Relaxed),
                        "everybody waits, and nothing is going to happen"
                    );
                    let polled = case.as_mut().poll(context);
                    shared.is_over.store(polled.is_ready(), Ordering::Relaxed);
                    polled
                })
            },
            &shared,
        );
        let _ = shared.main.set(Arc::clone(&main.alarm));
        block_on(Box::pin(main));
    }
}

impl Clock for VirtualTime {
    fn now(&self) -> Nanos {
        self.shared.time.now()
    }
}

impl Runtime for VirtualTime {
    type Sleep = <ManualRuntime<RawMutex> as Runtime>::Sleep;

    fn sleep_until(&self, at: Nanos) -> Self::Sleep {
        self.shared.time.sleep_until(at)
    }
}

impl Spawn for VirtualTime {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        (self.spawn)(Box::pin(Counted::new(task, &self.shared)));
    }
}

#[derive(Debug, Default)]
struct Shared {
    time: ManualRuntime<RawMutex>,
    /// How many tasks have something to do. Orderings are sequentially consistent: the suite needs no speed.
    busy: AtomicUsize,
    main: OnceLock<Arc<Alarm>>,
    is_over: AtomicBool,
    is_stuck: AtomicBool,
}

impl Shared {
    fn enter(&self) {
        self.busy.fetch_add(1, Ordering::SeqCst);
    }

    /// One has nothing more to do; if it was the last, time moves on.
    fn leave(&self) {
        while self.busy.fetch_sub(1, Ordering::SeqCst) == 1 {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let Some(next) = self.time.next_wake() else {
                self.is_stuck.store(true, Ordering::Relaxed);
                if let Some(main) = self.main.get() {
                    main.wake_by_ref();
                }
                return;
            };
            // Nobody else does anything, so this one counts as busy until those whom it wakes are.
            self.enter();
            self.time.set(next);
        }
    }
}

/// A task that counts as busy from its wake-up to the end of its next poll, and from its start to the end of the first.
struct Counted<F> {
    task: Pin<Box<F>>,
    alarm: Arc<Alarm>,
}

impl<F: Future<Output = ()>> Counted<F> {
    fn new(task: F, shared: &Arc<Shared>) -> Self {
        shared.enter();
        let alarm = Alarm {
            state: AtomicU8::new(WOKEN),
            executor: Mutex::new(Waker::noop().clone()),
            shared: Arc::clone(shared),
        };
        Self { task: Box::pin(task), alarm: Arc::new(alarm) }
    }
}

impl<F: Future<Output = ()>> Future for Counted<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.alarm.executor.lock().clone_from(context.waker());
        if self.alarm.state.swap(AWAITING, Ordering::SeqCst) == AWAITING {
            // The executor polls it without reason.
            self.alarm.shared.enter();
        }
        // Also if it panics.
        let _leave = Leave(Arc::clone(&self.alarm.shared));
        let waker = Waker::from(Arc::clone(&self.alarm));
        self.task.as_mut().poll(&mut Context::from_waker(&waker))
    }
}

impl<F> Drop for Counted<F> {
    fn drop(&mut self) {
        if self.alarm.state.swap(GONE, Ordering::SeqCst) == WOKEN {
            self.alarm.shared.leave();
        }
    }
}

struct Leave(Arc<Shared>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Wakes a task, and counts it.
#[derive(Debug)]
struct Alarm {
    state: AtomicU8,
    executor: Mutex<Waker>,
    shared: Arc<Shared>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.compare_exchange(AWAITING, WOKEN, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.shared.enter();
            let waker = self.executor.lock().clone();
            waker.wake();
        }
    }
}

const AWAITING: u8 = 0;
const WOKEN: u8 = 1;
const GONE: u8 = 2;
