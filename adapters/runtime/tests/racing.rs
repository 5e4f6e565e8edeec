//! Threads that race for one limiter: nothing is lost or made, and nobody is forgotten.
//!
//! The models in `loom-tests` visit every interleaving of few waits; these visit few interleavings of very many.

#![cfg(feature = "alloc")]

extern crate alloc;

use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Barrier;
use std::thread::{self, Thread};
use std::time::Instant;

use parking_lot::RawMutex;
use sluicegate_runtime::{
    AdjustableBucket, Admitted, Clock, Denied, Growing, Hierarchy, Level, ManualRuntime, Nanos, Queued, Quota,
    Remaining, TokenBucket, WaitOptions, quota,
};

type Bucket = Queued<TokenBucket<()>, ManualRuntime<RawMutex>, RawMutex, Growing>;

/// Whoever is not woken sleeps for ever: nobody looks by itself.
fn bucket(quota: Quota) -> Bucket {
    Bucket::new(TokenBucket::with_limit(quota.into(), ()), ManualRuntime::new(), WaitOptions::new().relief(None))
}

#[test]
fn b06_what_is_given_back_is_all_there_whoever_leaves() {
    const LIMIT: u64 = 12;
    let bucket = bucket(quota!("1/1h burst 12"));
    let out = AtomicU64::new(0);
    race(THREADS, |seed| {
        let mut numbers = Numbers(seed);
        for _ in 0..ROUNDS {
            let cost = 1 + numbers.below(LIMIT / 2);
            let granted = match numbers.below(4) {
                0 => bucket.try_acquire(cost).ok(),
                1 => poll_and_leave(bucket.acquire(cost), numbers.below(3)).map(Result::unwrap),
                _ => Some(block_on(bucket.acquire(cost)).unwrap()),
            };
            let Some(admitted) = granted else { continue };
            // Relaxed: the limit itself is what orders them.
            let before = out.fetch_add(cost, Ordering::Relaxed);
            assert!(before + cost <= LIMIT, "{before} were out when {cost} were granted");
            out.fetch_sub(cost, Ordering::Relaxed);
            bucket.give_back(cost, admitted);
        }
    });
    assert_eq!(bucket.limiter().inspect_at(bucket.runtime().now()).level, LIMIT);
    assert_eq!((bucket.waiters(), bucket.runtime().sleepers()), (0, 0));
}

#[test]
fn b06_every_token_that_time_brings_goes_to_one_whoever_leaves_or_times_out() {
    let bucket = bucket(quota!("1000/1s"));
    bucket.try_acquire(1000).unwrap();
    let time = bucket.runtime();
    let (granted, timed_out) = (AtomicU64::new(0), AtomicU64::new(0));
    let at_work = AtomicU64::new(THREADS);
    race(THREADS + 1, |seed| {
        if seed == THREADS {
            // Time passes as fast as somebody sleeps, and no faster, so that the bucket is never full.
            let started = Instant::now();
            while at_work.load(Ordering::Acquire) > 0 {
                assert!(started.elapsed() < 2 * FOR_EVER, "somebody waits, and nobody minds the time");
                match time.next_wake() {
                    Some(at) if at > time.now() => time.set(at),
                    _ => thread::yield_now(),
                }
            }
            return;
        }
        let mut numbers = Numbers(seed);
        for _ in 0..ROUNDS {
            let cost = 1 + numbers.below(10);
            let answer = match numbers.below(4) {
                0 => poll_and_leave(bucket.acquire(cost), numbers.below(3)),
                1 => Some(block_on(bucket.acquire_timeout(cost, Duration::from_millis(numbers.below(40))))),
                2 => Some(bucket.try_acquire(cost)),
                _ => Some(block_on(bucket.acquire(cost))),
            };
            match answer {
                Some(Ok(_)) => granted.fetch_add(cost, Ordering::Relaxed),
                Some(Err(Denied::RateLimited { .. })) => timed_out.fetch_add(1, Ordering::Relaxed),
                Some(Err(denied)) => panic!("{denied}"),
                None => 0,
            };
        }
        at_work.fetch_sub(1, Ordering::Release);
    });
    let now = time.now();
    let (granted, left) = (granted.into_inner(), bucket.limiter().inspect_at(now).level);
    assert_eq!(granted + left, now.as_u64() / 1_000_000, "one comes each millisecond; {left} are left");
    assert!(timed_out.into_inner() > 0, "not all that was to be tried was");
    assert_eq!((bucket.waiters(), time.sleepers()), (0, 0));
}

#[test]
fn d02_what_reservations_did_not_need_is_all_there_whoever_leaves() {
    const LIMIT: u64 = 12;
    let bucket = AdjustableBucket::with_limit(quota!("1/1h burst 12").into(), ());
    let queue: Queued<_, _, RawMutex, Growing> =
        Queued::new(bucket, ManualRuntime::<RawMutex>::new(), WaitOptions::new().relief(None));
    let out = AtomicU64::new(0);
    race(THREADS, |seed| {
        let mut numbers = Numbers(seed);
        for _ in 0..ROUNDS {
            let cost = 1 + numbers.below(LIMIT / 2);
            let reservation = match numbers.below(5) {
                0 => queue.try_reserve(cost).ok(),
                1 => poll_and_leave(queue.reserve(cost), numbers.below(3)).map(Result::unwrap),
                2 | 3 => Some(block_on(queue.reserve(cost)).unwrap()),
                _ => {
                    // In the same line.
                    let admitted = block_on(queue.acquire(cost)).unwrap();
                    queue.give_back(cost, admitted);
                    None
                }
            };
            let Some(reservation) = reservation else { continue };
            // Relaxed: the limit itself is what orders them.
            let before = out.fetch_add(cost, Ordering::Relaxed);
            assert!(before + cost <= LIMIT, "{before} were out when {cost} were reserved");
            out.fetch_sub(cost, Ordering::Relaxed);
            let spent = numbers.below(cost + 1);
            if numbers.below(3) == 0 {
                drop(reservation);
            } else {
                assert_eq!(reservation.settle(spent).charged, spent);
                queue.give_back(spent, Admitted::new(Remaining::Exactly(0), Nanos::ZERO));
            }
        }
    });
    assert_eq!((queue.limiter().inspect_at(Nanos::ZERO).level, queue.limiter().held()), (LIMIT, 0));
    assert_eq!((queue.waiters(), queue.runtime().sleepers()), (0, 0));
}

#[test]
fn c09_queues_over_a_common_level_never_exceed_it_whoever_leaves() {
    const LIMITS: [u64; 2] = [12, 8];
    let level = |name, quota: Quota| Level::new(name, AdjustableBucket::with_limit(quota.into(), ()));
    let global = level("global", quota!("1/1h burst 12"));
    let own = [level("ada", quota!("1/1h burst 8")), level("grace", quota!("1/1h burst 8"))];
    let time = ManualRuntime::<RawMutex>::new();
    let queues = own.each_ref().map(|own| {
        let levels = Hierarchy::of([&global, own]).unwrap();
        Queued::<_, _, RawMutex, Growing>::new(levels, time.clone(), WaitOptions::new().relief(None))
    });
    let out = [const { AtomicU64::new(0) }; 3];
    race(THREADS, |seed| {
        let mut numbers = Numbers(seed);
        for _ in 0..ROUNDS {
            let tenant = numbers.below(2) as usize;
            let (queue, costs) = (&queues[tenant], [1 + numbers.below(6), 1 + numbers.below(4)]);
            let granted = match numbers.below(4) {
                0 => queue.try_acquire(costs).ok(),
                1 => poll_and_leave(queue.acquire(costs), numbers.below(3)).map(Result::unwrap),
                _ => Some(block_on(queue.acquire(costs)).unwrap()),
            };
            if let Some(admitted) = granted {
                for (at, cost, limit) in [(0, costs[0], LIMITS[0]), (1 + tenant, costs[1], LIMITS[1])] {
                    let before = out[at].fetch_add(cost, Ordering::Relaxed);
                    assert!(before + cost <= limit, "{before} were out when {cost} were granted");
                    out[at].fetch_sub(cost, Ordering::Relaxed);
                }
                queue.give_back(costs, admitted);
            }
            // Each queue learns only of what itself gave back, and what a waiter held that left is there again too.
            queues[1 - tenant].recheck();
        }
    });
    let left = queues.each_ref().map(|queue| queue.limiter().inspect_at(Nanos::ZERO).map(|level| level.level));
    assert_eq!(left, [LIMITS; 2]);
    assert_eq!((queues[0].waiters() + queues[1].waiters(), time.sleepers()), (0, 0));
    assert_eq!((global.limiter().held(), own[0].limiter().held(), own[1].limiter().held()), (0, 0, 0));
}

#[test]
fn closing_ends_every_wait_that_begins_meanwhile() {
    for _ in 0..ROUNDS {
        let bucket = bucket(quota!("1/1h"));
        bucket.try_acquire(1).unwrap();
        race(4, |seed| {
            if seed == 0 {
                bucket.close();
            }
            assert_eq!(block_on(bucket.acquire(1)).err(), Some(Denied::Closed));
        });
    }
}

/// Polls up to so many times and once more, whether it was woken or not, and then leaves.
fn poll_and_leave<F: Future>(future: F, times: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..=times {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        thread::yield_now();
    }
    None
}

/// Polls when woken, and never otherwise.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let parked = Arc::new(Parked { thread: thread::current(), is_woken: AtomicBool::new(true) });
    let waker = Waker::from(Arc::clone(&parked));
    let started = Instant::now();
    loop {
        while !parked.is_woken.swap(false, Ordering::Acquire) {
            assert!(started.elapsed() < FOR_EVER, "nobody woke it");
            thread::park_timeout(FOR_EVER);
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
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs `run` on so many threads that start together, each with its number.
fn race(threads: u64, run: impl Fn(u64) + Sync) {
    let barrier = Barrier::new(threads as usize);
    thread::scope(|scope| {
        for number in 0..threads {
            let (barrier, run) = (&barrier, &run);
            scope.spawn(move || {
                barrier.wait();
                run(number);
            });
        }
    });
}

/// A small generator of numbers that spread.
struct Numbers(u64);

impl Numbers {
    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 >> 1) * 2 * u128::from(bound)) >> 64) as u64
    }
}

const THREADS: u64 = 8;
/// Some seconds on a small machine.
const ROUNDS: u64 = 1_000;
/// Far longer than any wait here; only a waiter that was forgotten waits so long.
const FOR_EVER: Duration = Duration::from_secs(30);
