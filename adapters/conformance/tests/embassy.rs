//! The suite on embassy: its executor, its wakers, its timer queue and its timer over the mocked clock; and with what tasks there
//! wait with, the adapter's own lock and room for a fixed number.
//!
//! The mocked clock is the whole process's. So one case runs at a time, and its readings begin where the one before left them.

extern crate alloc;

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::any::Any;
use core::future::{Future, poll_fn};
use core::panic::AssertUnwindSafe;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::panic::{catch_unwind, resume_unwind};

use critical_section as _;
use embassy_executor::SendSpawner;
use embassy_time::{Instant, MockDriver, TICK_HZ, Timer};
use parking_lot::Mutex;
use sluicegate_conformance::{AS_TOLD, Executor, Task, suite};
use sluicegate_embassy::{Clock, EmbassyTime, Fixed, Lock, Nanos, Runtime, Spawn, nanos_of_ticks};

struct Embassy;

impl Executor for Embassy {
    type Runtime = Mocked;
    type Lock = Lock;
    type Room = Fixed<MOST_WAITERS>;
    const GRAIN: Duration = Duration::from_nanos(nanos_of_ticks(1).as_u64());

    fn run<C: Future<Output = ()> + Send + 'static>(case: impl FnOnce(Mocked) -> C) {
        let _one_at_a_time = ONE_AT_A_TIME.lock();
        let shared = Arc::new(Shared::default());
        let mut end = End::default();
        // An executor lives for ever.
        Box::leak(Box::new(embassy_executor::Executor::new())).run_until(
            |spawner| {
                let mocked = Mocked { spawner: spawner.make_send(), shared: Arc::clone(&shared) };
                let case = case(mocked.clone());
                let shared = Arc::clone(&shared);
                spawner.spawn(keep_going(Arc::clone(&shared)).expect("one case at a time"));
                mocked.spawn(async move {
                    case.await;
                    shared.is_over.store(true, Ordering::Relaxed);
                });
            },
            || end.is_reached(&shared),
        );
        let failure = shared.failure.lock().take();
        if let Some(failure) = failure {
            resume_unwind(failure);
        }
    }
}

suite!(Embassy);

/// The adapter's clock and timer, noting who sleeps until when, and tasks of an executor of embassy's.
#[derive(Clone)]
struct Mocked {
    spawner: SendSpawner,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Who sleeps: until which reading, and which number.
    sleepers: Mutex<BTreeSet<(Nanos, u64)>>,
    sleeps_ever: AtomicU64,
    /// Of all tasks but the one that keeps the executor going.
    polls: AtomicU64,
    tasks: Mutex<Vec<Waker>>,
    is_over: AtomicBool,
    is_executor_done: AtomicBool,
    failure: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Clock for Mocked {
    fn now(&self) -> Nanos {
        EmbassyTime.now()
    }
}

impl Runtime for Mocked {
    type Sleep = Sleep;

    fn sleep_until(&self, at: Nanos) -> Sleep {
        let number = self.shared.sleeps_ever.fetch_add(1, Ordering::Relaxed);
        Sleep { timer: EmbassyTime.sleep_until(at), key: (at, number), shared: Arc::clone(&self.shared) }
    }
}

impl Spawn for Mocked {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = run(Arc::clone(&self.shared), Box::pin(task)).expect("more tasks than the executor has room for");
        self.spawner.spawn(task);
    }
}

struct Sleep {
    timer: Timer,
    key: (Nanos, u64),
    shared: Arc<Shared>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let polled = Pin::new(&mut self.timer).poll(context);
        if polled.is_ready() {
            assert!(EmbassyTime.now() >= self.key.0, "woken too early");
            self.shared.sleepers.lock().remove(&self.key);
        } else {
            self.shared.sleepers.lock().insert(self.key);
        }
        polled
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.shared.sleepers.lock().remove(&self.key);
    }
}

/// A task of a case: until it is done, or the case is over or fails.
#[embassy_executor::task(pool_size = MOST_TASKS)]
async fn run(shared: Arc<Shared>, task: Task) {
    // Dropped before its place is free for another.
    let mut task = Some(task);
    let mut is_known = false;
    poll_fn(|context| {
        shared.polls.fetch_add(1, Ordering::Relaxed);
        if !is_known {
            is_known = true;
            shared.tasks.lock().push(context.waker().clone());
        }
        let polled = catch_unwind(AssertUnwindSafe(|| match &mut task {
            Some(task) if !shared.is_over.load(Ordering::Relaxed) => task.as_mut().poll(context),
            _ => Poll::Ready(()),
        }));
        let polled = polled.unwrap_or_else(|failure| {
            if failure.downcast_ref() != Some(&AS_TOLD) {
                shared.fail(failure);
            }
            Poll::Ready(())
        });
        if polled.is_ready() {
            task = None;
        }
        polled
    })
    .await;
}

/// Lets the executor turn without end, where it would wait for an interrupt.
#[embassy_executor::task]
async fn keep_going(shared: Arc<Shared>) {
    poll_fn(|context| {
        if shared.is_executor_done.load(Ordering::Relaxed) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Shared {
    fn fail(&self, failure: Box<dyn Any + Send>) {
        self.failure.lock().get_or_insert(failure);
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Nobody has anything to do. First to one tick before the next sleep is over, when it must not be over yet.
    fn move_time(&self) {
        let now = Instant::now().as_ticks();
        let mut sleepers = self.sleepers.lock();
        // Who was woken and does not look again, is not waited for.
        while sleepers.first().is_some_and(|(at, _)| tick_of(*at) <= now) {
            sleepers.pop_first();
        }
        let Some((at, _)) = sleepers.first() else {
            drop(sleepers);
            self.fail(Box::new("everybody waits, and nothing is going to happen"));
            return;
        };
        let ticks = tick_of(*at) - now;
        drop(sleepers);
        MockDriver::get().advance(embassy_time::Duration::from_ticks(if ticks > 1 { ticks - 1 } else { 1 }));
    }
}

/// Sees after each turn of an executor, which polls those who were woken before it, whether there is anything left to do.
#[derive(Default)]
struct End {
    polls: u64,
    turns_without_time: u32,
    is_told: bool,
}

impl End {
    fn is_reached(&mut self, shared: &Shared) -> bool {
        let polls = shared.polls.load(Ordering::Relaxed);
        let is_idle = core::mem::replace(&mut self.polls, polls) == polls;
        self.turns_without_time += 1;
        if !shared.is_over.load(Ordering::Relaxed) {
            if is_idle {
                self.turns_without_time = 0;
                shared.move_time();
            } else if self.turns_without_time == ENDLESS {
                shared.fail(Box::new("somebody is woken without end"));
            }
            return false;
        }
        // Those who still wait end, so that their places are free for other cases.
        if !self.is_told {
            self.is_told = true;
            shared.tasks.lock().iter().for_each(Waker::wake_by_ref);
            return false;
        }
        is_idle && shared.is_executor_done.swap(true, Ordering::Relaxed)
    }
}

/// The first tick whose reading is `at` or later.
fn tick_of(at: Nanos) -> u64 {
    let nanos = u128::from(at.as_u64()) * u128::from(TICK_HZ);
    u64::try_from(nanos.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// More than wait at once in any case.
const MOST_WAITERS: usize = 512;
const MOST_TASKS: usize = 1024;
/// More turns than any case takes at one reading.
const ENDLESS: u32 = 100_000;
