//! Accuracy of limiters that read tokio's clock: asked in paused time, at readings exact to the nanosecond.
//!
//! Only asked, never awaited: what a timer adds to a wait is a question of its own.

#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::task::{Context, Poll as Polled, Waker};
use core::time::Duration;

use sluicegate_benches::accuracy::grid::{Grid, SECOND};
use sluicegate_benches::accuracy::patterns::{self, Kind, Poll};
use sluicegate_benches::accuracy::{Score, judged};
use sluicegate_tokio::{TokenBucket, WaitOptions};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::time::MissedTickBehavior;
use tower::limit::RateLimit;
use tower::limit::rate::Rate;
use tower::{Service, service_fn};

/// Rates whose tokens come more slowly than tokio's timer ticks, which some rivals refill by.
pub const GRIDS: [Grid; 7] = [
    Grid { text: "1 per day", tokens: 1, period: 86_400 * SECOND, burst: 3 },
    Grid { text: "1 per hour", tokens: 1, period: 3_600 * SECOND, burst: 5 },
    Grid { text: "7 per minute", tokens: 7, period: 60 * SECOND, burst: 7 },
    Grid { text: "1/s", tokens: 1, period: SECOND, burst: 1 },
    Grid { text: "3/s", tokens: 3, period: SECOND, burst: 10 },
    Grid { text: "10/s", tokens: 10, period: SECOND, burst: 100 },
    Grid { text: "97/s", tokens: 97, period: SECOND, burst: 50 },
];

/// Takes one token if it is there now.
pub type Ask = Box<dyn FnMut() -> bool>;

/// A limiter, new and full, made within the runtime, and its name.
pub type Contestant = (&'static str, fn(&Grid) -> Ask);

/// Ours, and the rivals.
pub const CONTESTANTS: [Contestant; 5] = [
    ("Sluicegate", ours),
    ("leaky-bucket, fair", |grid| leaky(grid, true)),
    ("leaky-bucket, unfair", |grid| leaky(grid, false)),
    ("tower `RateLimit`", tower_limited),
    ("semaphore refilled by a task", refilled_semaphore),
];

fn ours(grid: &Grid) -> Ask {
    let bucket = TokenBucket::with_options(grid.quota(), WaitOptions::new());
    Box::new(move || bucket.try_acquire(1).is_ok())
}

/// A token whenever one is due.
fn leaky(grid: &Grid, is_fair: bool) -> Ask {
    let limiter = leaky_bucket::RateLimiter::builder()
        .max(grid.burst as usize)
        .initial(grid.burst as usize)
        .refill(1)
        .interval(each(grid))
        .fair(is_fair)
        .build();
    Box::new(move || limiter.try_acquire(1))
}

/// As many as the burst, in the time in which as many come: a window that begins with its first request.
fn tower_limited(grid: &Grid) -> Ask {
    let rate = Rate::new(grid.burst.into(), Duration::from_nanos(grid.until(grid.burst.into())));
    let service = service_fn(|()| core::future::ready(Ok::<_, core::convert::Infallible>(())));
    let mut limited = RateLimit::new(service, rate);
    let mut context = Context::from_waker(Waker::noop());
    Box::new(move || {
        let is_ready = matches!(limited.poll_ready(&mut context), Polled::Ready(Ok(())));
        if is_ready {
            drop(limited.call(()));
        }
        is_ready
    })
}

/// As it is often written: permits that are forgotten, and a task that adds one whenever one is due, up to the burst.
fn refilled_semaphore(grid: &Grid) -> Ask {
    let (burst, each) = (grid.burst as usize, each(grid));
    let semaphore = Arc::new(Semaphore::new(burst));
    let refilled = Arc::clone(&semaphore);
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(each);
        interval.set_missed_tick_behavior(MissedTickBehavior::Burst);
        interval.tick().await;
        loop {
            interval.tick().await;
            if refilled.available_permits() < burst {
                refilled.add_permits(1);
            }
        }
    });
    Box::new(move || semaphore.try_acquire().map(tokio::sync::SemaphorePermit::forget).is_ok())
}

/// The nearest whole number of nanoseconds per token.
fn each(grid: &Grid) -> Duration {
    let tokens = u64::from(grid.tokens);
    Duration::from_nanos((grid.period + tokens / 2) / tokens)
}

/// The worst over all patterns by a steady clock that ask for one token at a time.
///
/// # Panics
/// Where the system has no timer.
pub fn worst(contestant: &Contestant, grid: &Grid, size: u64) -> Score {
    let covered =
        |(kind, polls): &(Kind, Vec<Poll>)| matches!(kind, Kind::Steady(_)) && polls.iter().all(|poll| poll.cost == 1);
    let patterns = patterns::all(grid, size).into_iter().filter(covered);
    patterns.map(|(_, polls)| score(contestant, grid, &polls)).fold(Score::default(), Score::worse)
}

fn score(contestant: &Contestant, grid: &Grid, polls: &[Poll]) -> Score {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a paused runtime");
    let mut ask = runtime.block_on(async { (contestant.1)(grid) });
    // So that a task that refills has begun.
    advance(&runtime, 0);
    let mut reading = 0;
    judged(grid, polls, |now, _| {
        if now > reading {
            advance(&runtime, now - reading);
            reading = now;
        }
        // Within the runtime: some read its clock.
        let _guard = runtime.enter();
        ask()
    })
}

/// Moves the clock on, and lets whoever has waited for that do what is to do.
fn advance(runtime: &Runtime, nanos: u64) {
    runtime.block_on(async {
        if nanos > 0 {
            tokio::time::advance(Duration::from_nanos(nanos)).await;
        }
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
    });
}

/// More than the turns that a task needs to see its timer and to go back to sleep.
const TURNS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_exact_on_tokios_clock() {
        for grid in &GRIDS {
            let score = worst(&CONTESTANTS[0], grid, 4);
            assert!(score.is_exact() && score.admitted == score.exact, "{}: {score:?}", grid.text);
        }
    }

    #[test]
    fn each_rival_hands_out_tokens() {
        for contestant in &CONTESTANTS {
            let score = worst(contestant, &GRIDS[5], 4);
            assert!(score.admitted * 2 > score.exact, "{}: {score:?}", contestant.0);
        }
    }
}
