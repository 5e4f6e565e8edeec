//! Waiting allocates nothing, however the wait ends: counted by the allocator of this program.

extern crate alloc;

use alloc::boxed::Box;
use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;
use std::alloc::System;

use critical_section as _;
use embassy_executor::Executor;
use embassy_time::{MockDriver, Timer, with_timeout};
use sluicegate_embassy::{Admitted, Clock, Denied, EmbassyTime, TokenBucket, quota};

type Limiter = TokenBucket<4>;

/// The system's allocator, which also counts what each thread asks of it.
struct Counting;

std::thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's; the count touches no memory of its, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promise is what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn waiting_allocates_nothing() {
    // Both live for ever, as on a microcontroller, where they are statics.
    let limiter: &Limiter = Box::leak(Box::new(TokenBucket::of(quota!("100/1s burst 4"))));
    let executor = Box::leak(Box::new(Executor::new()));
    assert!(CALLS.get() > 0, "it counts");
    executor.run_until(
        |spawner| {
            for cost in [1, 2, 3] {
                spawner.spawn(wait(limiter, cost).expect("room for three tasks"));
            }
            spawner.spawn(hurry(limiter).expect("it runs once"));
            spawner.spawn(give_up(limiter).expect("it runs once"));
            spawner.spawn(barge(limiter).expect("it runs once"));
            spawner.spawn(pass_time().expect("it runs once"));
        },
        || IS_OVER.load(Ordering::Relaxed),
    );

    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), 0);
    let outcomes = [&GRANTED, &TOO_LATE, &GIVEN_UP, &NO_ROOM].map(|outcome| outcome.load(Ordering::Relaxed));
    assert!(outcomes.iter().all(|&number| number > 300), "all of it has happened: {outcomes:?}");
    let now = EmbassyTime.now();
    let there = 4 + now.as_u64() / 10_000_000 - limiter.limiter().inspect_at(now).level;
    assert_eq!(u64::from(TOKENS.load(Ordering::Relaxed)), there, "no token was lost or made");
}

#[embassy_executor::task(pool_size = 3)]
async fn wait(limiter: &'static Limiter, cost: u32) {
    loop {
        note(cost, limiter.acquire(cost.into()).await).await;
    }
}

#[embassy_executor::task]
async fn hurry(limiter: &'static Limiter) {
    for patience in (10..120).cycle() {
        note(1, limiter.acquire_timeout(1, Duration::from_millis(patience)).await).await;
    }
}

#[embassy_executor::task]
async fn give_up(limiter: &'static Limiter) {
    for patience in (5..70).cycle() {
        match with_timeout(embassy_time::Duration::from_millis(patience), limiter.acquire(4)).await {
            Ok(answer) => note(4, answer).await,
            Err(_) => count(&GIVEN_UP, 1),
        }
    }
}

/// Somebody else takes what is free, once in a while, so that others wait in vain.
#[embassy_executor::task]
async fn barge(limiter: &'static Limiter) {
    loop {
        Timer::after_millis(35).await;
        if limiter.try_acquire(1).is_ok() {
            count(&GRANTED, 1);
            count(&TOKENS, 1);
        }
    }
}

async fn note(cost: u32, answer: Result<Admitted, Denied>) {
    match answer {
        Ok(_) => {
            count(&GRANTED, 1);
            count(&TOKENS, cost);
            return;
        }
        Err(Denied::RateLimited { .. }) => count(&TOO_LATE, 1),
        Err(Denied::QueueFull) => count(&NO_ROOM, 1),
        Err(other) => panic!("{other}"),
    }
    Timer::after_millis(1).await;
}

/// A millisecond each time that all have been polled who were woken. What is allocated is counted from the time on when everybody
/// has waited once.
#[embassy_executor::task]
async fn pass_time() {
    let mut turn = 0;
    let mut before = 0;
    poll_fn(|context| {
        turn += 1;
        match turn {
            FIRST => before = CALLS.get(),
            LAST => ALLOCATIONS.store(CALLS.get() - before, Ordering::Relaxed),
            _ => {}
        }
        // First everybody begins, and in the end everybody does what there is left to do.
        if (2..=LAST).contains(&turn) {
            MockDriver::get().advance(embassy_time::Duration::from_millis(1));
        } else if turn == LAST + 10 {
            IS_OVER.store(true, Ordering::Relaxed);
        }
        context.waker().wake_by_ref();
        Poll::<()>::Pending
    })
    .await;
}

fn count(counter: &AtomicU32, number: u32) {
    counter.fetch_add(number, Ordering::Relaxed);
}

static GRANTED: AtomicU32 = AtomicU32::new(0);
static TOKENS: AtomicU32 = AtomicU32::new(0);
static TOO_LATE: AtomicU32 = AtomicU32::new(0);
static GIVEN_UP: AtomicU32 = AtomicU32::new(0);
static NO_ROOM: AtomicU32 = AtomicU32::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(u64::MAX);
static IS_OVER: AtomicBool = AtomicBool::new(false);
/// The executor has made what it keeps.
const FIRST: u32 = 1_000;
/// A minute: some hundred waits of each kind.
const LAST: u32 = 60_000;
