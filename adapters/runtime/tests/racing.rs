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
use sluicegate_runtime::{Clock, Denied, Growing, ManualRuntime, Queued, Quota, TokenBucket, WaitOptions, quota};

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
