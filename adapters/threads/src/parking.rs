//! Waiting for a limiter on a plain thread.

use alloc::sync::Arc;
use alloc::task::Wake;
use core::cell::RefCell;
use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::thread::{self, Thread};
use std::time::Instant;

use sluicegate_runtime::{Growing, Queued, Runtime, Spawn};

use crate::{Clock, Nanos, OsClock};

/// The time of threads that wait: a clock, and a sleep during which the thread is parked.
///
/// What sleeps by it must be waited for with [`Wait::wait`]: there is no timer besides the waiting thread itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadTime<C = OsClock>(C);

impl<C: Clock> ThreadTime<C> {
    /// The time of `clock`.
    pub const fn new(clock: C) -> Self {
        Self(clock)
    }
}

impl<C: Clock> Clock for ThreadTime<C> {
    #[inline]
    fn now(&self) -> Nanos {
        self.0.now()
    }
}

impl<C: Clock + Clone + Unpin> Runtime for ThreadTime<C> {
    type Sleep = ParkUntil<C>;

    #[inline]
    fn sleep_until(&self, at: Nanos) -> ParkUntil<C> {
        ParkUntil { clock: self.0.clone(), at, number: None }
    }
}

/// Each task has a thread of its own. Where the system has none left, the task is dropped.
impl<C: Clock + Clone + Unpin> Spawn for ThreadTime<C> {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        // Nobody is told: a panic here would abort where a task is spawned because another one has panicked.
        drop(thread::Builder::new().name("sluicegate".into()).spawn(move || task.wait()));
    }
}

/// Parks the thread that waits for it until its clock reads so much.
#[derive(Debug)]
pub struct ParkUntil<C> {
    clock: C,
    at: Nanos,
    /// Its number among the sleeps of the process, once it was polled.
    number: Option<u64>,
}

impl<C: Clock + Unpin> Future for ParkUntil<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let left = self.at.saturating_duration_since(self.clock.now());
        if left.is_zero() {
            self.forget();
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| NUMBERS.fetch_add(1, Ordering::Relaxed));
        // A thread cannot be parked for longer than the system's clock reaches.
        let until = Instant::now() + left.min(LONGEST_PARK);
        let waker = context.waker().clone();
        let replaced = SLEEPS.with(|sleeps| {
            let mut sleeps = sleeps.borrow_mut();
            let replaced =
                sleeps.iter().position(|sleep| sleep.number == number).map(|place| sleeps.swap_remove(place));
            sleeps.push(Asleep { number, until, waker });
            replaced
        });
        drop(replaced);
        Poll::Pending
    }
}

impl<C> ParkUntil<C> {
    /// If it is dropped on another thread than it was polled on last, that one is woken once for nothing.
    fn forget(&mut self) {
        let Some(number) = self.number.take() else { return };
        // Not while the thread ends, when nobody is parked any more.
        let forgotten = SLEEPS.try_with(|sleeps| {
            let mut sleeps = sleeps.borrow_mut();
            sleeps.iter().position(|sleep| sleep.number == number).map(|place| sleeps.swap_remove(place))
        });
        drop(forgotten);
    }
}

impl<C> Drop for ParkUntil<C> {
    fn drop(&mut self) {
        self.forget();
    }
}

/// One that sleeps on this thread.
struct Asleep {
    number: u64,
    until: Instant,
    waker: Waker,
}

std::thread_local! {
    static SLEEPS: RefCell<Vec<Asleep>> = const { RefCell::new(Vec::new()) };
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);
const LONGEST_PARK: Duration = Duration::from_secs(86_400);

/// When the first on this thread has slept enough.
fn next_sleep_over() -> Option<Instant> {
    SLEEPS.with(|sleeps| sleeps.borrow().iter().map(|sleep| sleep.until).min())
}

/// Wakes all on this thread who have. Each by its own waker, because a future of many parts polls only those that were woken.
fn wake_sleepers() {
    let now = Instant::now();
    while let Some(over) = SLEEPS.with(|sleeps| {
        let mut sleeps = sleeps.borrow_mut();
        sleeps.iter().position(|sleep| sleep.until <= now).map(|place| sleeps.swap_remove(place))
    }) {
        over.waker.wake();
    }
}

/// Waits for a future on a plain thread.
pub trait Wait: Future + Sized {
    /// Parks this thread until the future is ready.
    ///
    /// For the waits of this crate's limiters, and of any future that wakes its waker or sleeps by a [`ThreadTime`]. In an async
    /// task `await` instead: a parked thread runs no other task.
    ///
    /// ```
    /// use std::time::Duration;
    /// use sluicegate_threads::{Denied, Wait, WaitingTokenBucket, quota};
    ///
    /// let limiter = WaitingTokenBucket::of(quota!("1000/1s burst 1"));
    /// limiter.try_acquire(1)?;
    /// // A millisecond later.
    /// limiter.acquire(1).wait()?;
    /// assert!(limiter.acquire_timeout(1, Duration::ZERO).wait().is_err());
    /// # Ok::<(), Denied>(())
    /// ```
    fn wait(self) -> Self::Output {
        let mut future = pin!(self);
        let parked = Arc::new(Parked { thread: thread::current(), is_woken: AtomicBool::new(false) });
        let waker = Waker::from(Arc::clone(&parked));
        let mut context = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            // Acquire, paired with the release in `wake`: what was done before the wake is seen by the next poll.
            while !parked.is_woken.swap(false, Ordering::Acquire) {
                match next_sleep_over() {
                    Some(until) => thread::park_timeout(until.saturating_duration_since(Instant::now())),
                    None => thread::park(),
                }
                wake_sleepers();
            }
        }
    }
}

impl<F: Future> Wait for F {}

struct Parked {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// A token bucket that threads can wait for, in order.
///
/// It is a [`Queued`] limiter, and all its methods are there; `wait()` on what they return parks the thread.
pub type WaitingTokenBucket = Queued<sluicegate_core::TokenBucket<()>, ThreadTime, parking_lot::RawMutex, Growing>;

/// The same for a limit that can be changed while it is waited for, and from which tokens can be reserved.
pub type WaitingAdjustableBucket =
    Queued<sluicegate_core::AdjustableBucket<()>, ThreadTime, parking_lot::RawMutex, Growing>;

/// A limit of what is in use whose permits threads can wait for, in order.
pub type WaitingConcurrencyLimit = sluicegate_runtime::QueuedPermits<ThreadTime, parking_lot::RawMutex, Growing>;

/// At most so much in any interval of one length, which threads can wait for, in order; made by `WaitingSlidingLog::of(rate)`.
pub type WaitingSlidingLog =
    Queued<sluicegate_runtime::GrowingSlidingLog<parking_lot::RawMutex>, ThreadTime, parking_lot::RawMutex, Growing>;

/// About the same, in one word; made by `WaitingSlidingCounter::of(limit)`.
pub type WaitingSlidingCounter =
    Queued<sluicegate_core::SlidingCounter<()>, ThreadTime, parking_lot::RawMutex, Growing>;

/// A window for a limit that many cores share, which threads can wait for, in order; made by
/// `WaitingShardedWindow::of(limit, shards)`.
pub type WaitingShardedWindow = Queued<
    sluicegate_core::ShardedWindow<Box<[sluicegate_core::Shard]>, (), crate::ThreadShard>,
    ThreadTime,
    parking_lot::RawMutex,
    Growing,
>;

/// Departures at a constant rate, which threads can wait for: `pace(1).wait()`. Made by `WaitingLeakyBucket::of(pacing)`.
pub type WaitingLeakyBucket = sluicegate_runtime::Paced<ThreadTime>;

/// Bucket, circuit breaker, places in flight, time limit and the call as one, for threads: `flow.call(1, || async { … }).wait()`. Made by
/// `WaitingFlow::of(options)`.
///
/// What is called runs on the thread that waits. So a call that blocks cannot be given up, and a time limit ends only what is async.
///
/// ```
/// use sluicegate_threads::{FlowOptions, Wait, WaitingFlow, WhenEmpty, quota};
///
/// let options = FlowOptions::new(quota!("1000/1s burst 1")).when_empty(WhenEmpty::Queue);
/// let flow = WaitingFlow::of(options)?;
/// for _ in 0..3 {
///     let answer = flow.call(1, || async { "42".parse::<u32>() }).wait()?;
///     assert_eq!(answer.value, 42);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type WaitingFlow<O = ()> = sluicegate_runtime::QueuedFlow<ThreadTime, parking_lot::RawMutex, O>;

/// Flows by their names, for threads; each one that adapts has a thread of its own. Made by `WaitingFlowRegistry::default()`.
pub type WaitingFlowRegistry<O = (), E = ()> =
    sluicegate_runtime::FlowRegistry<ThreadTime, parking_lot::RawMutex, O, E>;

/// A token bucket for each key, which threads can wait for, in order for each; made by `WaitingKeyedTokenBucket::of(limit)`. Needs
/// the features `wait` and `keyed`.
///
/// ```
/// use sluicegate_threads::{Denied, Wait, WaitingKeyedTokenBucket, quota};
///
/// let calls: WaitingKeyedTokenBucket<u64> = WaitingKeyedTokenBucket::of(quota!("1000/1s burst 1"));
/// for _ in 0..3 {
///     calls.acquire(7, 1).wait()?;
/// }
/// # Ok::<(), Denied>(())
/// ```
#[cfg(feature = "keyed")]
pub type WaitingKeyedTokenBucket<K, S = crate::SeededState> = sluicegate_runtime::QueuedKeyed<
    sluicegate_core::KeyedTokenBucket<K, parking_lot::RawRwLock, S, ()>,
    ThreadTime,
    parking_lot::RawMutex,
>;
