//! Waiting, in larger cases than every interleaving of which can be visited: some thousands of orders, chosen at random.
//!
//! A scheduler runs one thread at a time and switches at each lock, and before and after each step of the limiter. It sees no
//! stale values, which is the models' part; and it says so when nobody can go on, which is what a lost wake-up comes to.
#![cfg(not(sluicegate_loom))]
#![allow(clippy::std_instead_of_alloc, reason = "models run on a host")]

use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;

use shuttle::future::batch_semaphore::{BatchSemaphore, Fairness};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::AtomicUsize;
use shuttle::thread::{self, Thread};
use sluicegate_core::{Admitted, Clock, Denied, Nanos, Quota, TokenBucket, quota};
use sluicegate_runtime::{Grantor, Growing, ManualRuntime, Queued, QueuedKeyed, Store, WaitOptions};

type Time = ManualRuntime<ShuttledMutex>;
type Bucket = Queued<Watched, Time, ShuttledMutex, Growing>;
type Keys = QueuedKeyed<Two, Time, ShuttledMutex>;

/// Nobody looks by itself but whoever is in charge of time.
fn bucket(quota: Quota) -> Arc<Bucket> {
    Arc::new(Bucket::new(Watched::new(quota), Time::new(), WaitOptions::new().relief(None)))
}

#[test]
fn b06_what_is_given_back_is_all_there_in_any_order() {
    explore(|| {
        let bucket = bucket(quota!("1/1h burst 3"));
        let run = |bucket: &Bucket| {
            for _ in 0..CALLS {
                let cost = below(3) + 1;
                let granted = match below(4) {
                    0 => bucket.try_acquire(cost).ok(),
                    1 => poll_and_leave(bucket.acquire(cost), below(2)).and_then(Result::ok),
                    _ => Some(block_on(bucket.acquire(cost)).expect("it waits for as long as it takes")),
                };
                if let Some(admitted) = granted {
                    bucket.give_back(cost, admitted);
                }
            }
        };
        race(&bucket, THREADS, run);
        assert_eq!(bucket.limiter().bucket.inspect_at(Nanos::ZERO).level, 3);
        assert_eq!((bucket.waiters(), bucket.runtime().sleepers()), (0, 0));
    });
}

#[test]
fn b06_every_token_that_time_brings_goes_to_one_in_any_order() {
    explore(|| {
        let bucket = bucket(quota!("1000/1s"));
        bucket.try_acquire(1000).expect("it is full");
        // Of the language, so that there are no more switches: it is no part of what is looked at.
        let (granted, at_work) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(THREADS)));
        let clock = {
            let (bucket, at_work) = (Arc::clone(&bucket), Arc::clone(&at_work));
            thread::spawn(move || {
                while at_work.load(Ordering::Relaxed) > 0 {
                    match bucket.runtime().next_wake() {
                        Some(at) if at > bucket.runtime().now() => bucket.runtime().set(at),
                        _ => thread::yield_now(),
                    }
                }
            })
        };
        let counted = Arc::clone(&granted);
        race(&bucket, THREADS, move |bucket| {
            for _ in 0..CALLS {
                let cost = below(3) + 1;
                let answer = match below(4) {
                    0 => poll_and_leave(bucket.acquire(cost), below(2)),
                    1 => Some(block_on(bucket.acquire_timeout(cost, Duration::from_millis(below(8))))),
                    2 => Some(bucket.try_acquire(cost)),
                    _ => Some(block_on(bucket.acquire(cost))),
                };
                match answer {
                    Some(Ok(_)) => {
                        counted.fetch_add(cost, Ordering::Relaxed);
                    }
                    Some(Err(Denied::RateLimited { .. })) | None => {}
                    Some(Err(denied)) => panic!("{denied}"),
                }
            }
            at_work.fetch_sub(1, Ordering::Relaxed);
        });
        clock.join().expect("its panic has been reported");
        let now = bucket.runtime().now();
        let (granted, left) = (granted.load(Ordering::Relaxed), bucket.limiter().bucket.inspect_at(now).level);
        assert_eq!(granted + left, now.as_u64() / 1_000_000, "one comes each millisecond; {left} are left");
        assert_eq!((bucket.waiters(), bucket.runtime().sleepers()), (0, 0));
    });
}

#[test]
fn closing_ends_every_wait_in_any_order() {
    explore(|| {
        let bucket = bucket(quota!("1/1h burst 2"));
        let held = bucket.try_acquire(2).expect("it is full");
        let closing = {
            let bucket = Arc::clone(&bucket);
            thread::spawn(move || {
                bucket.give_back(1, held);
                bucket.close();
            })
        };
        let granted = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&granted);
        race(&bucket, THREADS, move |bucket| match block_on(bucket.acquire(1)) {
            Ok(_) => {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            Err(denied) => assert_eq!(denied, Denied::Closed),
        });
        closing.join().expect("its panic has been reported");
        let left = bucket.limiter().bucket.inspect_at(Nanos::ZERO).level;
        assert_eq!(granted.load(Ordering::Relaxed) + left, 1);
    });
}

#[test]
fn b09_what_is_given_back_to_keys_is_all_there_and_no_queue_is_left_in_any_order() {
    explore(|| {
        let store = Two([Watched::new(quota!("1/1h burst 2")), Watched::new(quota!("1/1h burst 2"))]);
        let keys = Arc::new(Keys::new(store, Time::new(), WaitOptions::new().relief(None)));
        let run = |keys: &Keys| {
            // Few, because a queue that is left is taken away by whoever comes later.
            for _ in 0..2 {
                let (key, cost) = (below(2), below(2) + 1);
                let is_granted = match below(4) {
                    0 => keys.try_acquire(&key, cost).is_ok(),
                    1 | 2 => poll_and_leave(keys.acquire(key, cost), below(2)).is_some_and(|answer| answer.is_ok()),
                    _ => block_on(keys.acquire(key, cost)).is_ok(),
                };
                if is_granted {
                    keys.refund(&key, cost);
                }
            }
        };
        race(&keys, THREADS, run);
        for key in &keys.store().0 {
            assert_eq!(key.bucket.inspect_at(Nanos::ZERO).level, 2);
        }
        assert_eq!(keys.waited_for(), 0);
    });
}

/// At random, and with few switches at random places, which finds what needs just these.
fn explore(body: impl Fn() + Copy + Send + Sync + 'static) {
    shuttle::check_random(body, ORDERS);
    shuttle::check_pct(body, ORDERS, 3);
}

fn race<T: Send + Sync + 'static>(shared: &Arc<T>, threads: u64, run: impl Fn(&T) + Clone + Send + 'static) {
    let start = |_| {
        let (shared, run) = (Arc::clone(shared), run.clone());
        thread::spawn(move || run(&shared))
    };
    let running: Vec<_> = (0..threads).map(start).collect();
    running.into_iter().for_each(|thread| thread.join().expect("its panic has been reported"));
}

fn below(bound: u64) -> u64 {
    thread_rng().gen_range(0..bound)
}

/// Polls up to so many times and once more, whether it was woken or not, and then leaves.
fn poll_and_leave<F: Future>(future: F, times: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..=times {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(output);
        }
    }
    None
}

/// Polls when woken, and never otherwise. A wake-up while it polls is not lost in one of the locks, as it would be if it were the
/// scheduler's own.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let parked = Arc::new(Parked { thread: thread::current(), is_woken: AtomicBool::new(true) });
    let waker = Waker::from(Arc::clone(&parked));
    loop {
        while !parked.is_woken.swap(false, Ordering::Relaxed) {
            thread::park();
        }
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
    }
}

struct Parked {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

/// A bucket with a switch before and after each step.
struct Watched {
    bucket: TokenBucket<()>,
    /// Any access to it may switch.
    point: AtomicUsize,
}

impl Watched {
    fn new(quota: Quota) -> Self {
        Self { bucket: TokenBucket::with_limit(quota.into(), ()), point: AtomicUsize::new(0) }
    }

    fn step<R>(&self, step: impl FnOnce(&TokenBucket<()>) -> R) -> R {
        self.point.load(Ordering::SeqCst);
        let result = step(&self.bucket);
        self.point.load(Ordering::SeqCst);
        result
    }
}

impl Grantor for Watched {
    type Cost = u64;
    type Grant = Admitted;
    type Denial = Denied;

    fn take_at(&self, now: Nanos, cost: u64) -> Result<Admitted, Denied> {
        self.step(|bucket| bucket.take_at(now, cost))
    }

    fn hold_at(&self, now: Nanos, cost: u64) -> Result<Admitted, Denied> {
        self.step(|bucket| bucket.hold_at(now, cost))
    }

    fn keep(&self, cost: u64, grant: &Admitted) {
        self.step(|bucket| bucket.keep(cost, grant));
    }

    fn let_go(&self, at: Nanos, cost: u64, grant: Admitted) {
        self.step(|bucket| bucket.let_go(at, cost, grant));
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), Denied> {
        self.step(|bucket| Grantor::peek_at(bucket, now, cost))
    }

    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        Grantor::earliest_at(&self.bucket, now, total)
    }

    fn denial(&self, _now: Nanos, _total: u128, denied: Denied) -> Denied {
        denied
    }

    fn give_back(&self, cost: u64, grant: Admitted) {
        self.step(|bucket| bucket.give_back(cost, grant));
    }
}

/// A store of two keys.
struct Two([Watched; 2]);

impl Two {
    fn of(&self, key: u64) -> &Watched {
        &self.0[usize::from(key > 0)]
    }
}

impl Store for Two {
    type Key = u64;

    fn hash(&self, key: &u64) -> u64 {
        *key
    }

    fn take_at(&self, key: &u64, now: Nanos, cost: u64) -> Result<Admitted, Denied> {
        self.of(*key).take_at(now, cost)
    }

    fn peek_at(&self, key: &u64, now: Nanos, cost: u64) -> Result<(), Denied> {
        self.of(*key).peek_at(now, cost)
    }

    fn earliest_at(&self, key: &u64, now: Nanos, total: u128) -> Option<Nanos> {
        self.of(*key).earliest_at(now, total)
    }

    fn refund(&self, key: &u64, cost: u64) -> bool {
        self.of(*key).step(|bucket| bucket.refund(cost));
        true
    }

    fn tell(&self, _key: &u64, _now: Nanos, _cost: u64, _decision: Result<&Admitted, Denied>) {}
}

/// A lock, and a switch right after it was opened.
struct ShuttledMutex(BatchSemaphore, AtomicUsize);

// SAFETY: there is one permit.
unsafe impl lock_api::RawMutex for ShuttledMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for it")]
    const INIT: Self = Self(BatchSemaphore::const_new(1, Fairness::Unfair), AtomicUsize::new(0));

    type GuardMarker = lock_api::GuardSend;

    fn lock(&self) {
        self.0.acquire_blocking(1).expect("nobody closes it");
    }

    fn try_lock(&self) -> bool {
        self.0.try_acquire(1).is_ok()
    }

    unsafe fn unlock(&self) {
        self.0.release(1);
        self.1.load(Ordering::SeqCst);
    }
}

const THREADS: u64 = 4;
/// Some ten waits in all.
const CALLS: usize = 3;
/// Some seconds.
const ORDERS: usize = 300;
