//! Who waits how long: a large cost among small ones, and how late wakes are.

use alloc::sync::Arc;
use core::time::Duration;
use std::time::Instant;

use tokio::runtime::{Builder, Runtime};

use crate::async_rivals::{Supply, Waited};
use crate::interleaved::quantile;

/// Tokens of the table about a large cost.
pub const CROWDED: Supply = Supply { per_millisecond: 1, burst: 50 };

/// Tasks there that take one token after another.
pub const SMALL: usize = 16;

/// How long a large cost may wait before it counts as starved.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// How long one request for the whole burst waits among tasks that take one token after another; `None` if longer than `patience`.
///
/// In the order of arrival it waits for those who wait already and for its own tokens: 66 ms.
///
/// # Panics
/// Where the system has no timer.
pub fn wait_of_large(waited: &Waited, patience: Duration) -> Option<Duration> {
    executor().block_on(async {
        let take = (waited.make)(CROWDED);
        let tasks: Vec<_> = (0..SMALL)
            .map(|_| {
                let take = Arc::clone(&take);
                tokio::spawn(async move {
                    loop {
                        take(1).await;
                    }
                })
            })
            .collect();
        tokio::time::sleep(WARM_UP).await;
        let start = Instant::now();
        let waited = tokio::time::timeout(patience, take(CROWDED.burst)).await.ok().map(|()| start.elapsed());
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        waited
    })
}

/// How late tokens came, in microseconds: quantiles over many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lateness {
    /// Half of them came no later.
    pub median: f64,
    /// 99 of 100 did.
    pub most: f64,
    /// The latest.
    pub worst: f64,
}

/// The time of a token in the table about wakes: not a whole number of the timer's ticks.
pub const EACH: Duration = Duration::from_micros(2_500);

/// A task takes `tokens` one after another, expected as far apart as the rate says. Later is later than the one that came earliest by
/// that, because when a timer began to tick is chance.
///
/// # Panics
/// Where the system has no timer.
pub fn lateness(waited: &Waited, tokens: u32) -> Lateness {
    executor().block_on(async {
        // Two and a half milliseconds of one token each. The burst lets who came late catch up.
        let take = (waited.make)(Supply { per_millisecond: 2, burst: 100 });
        let cost = 5;
        take(cost).await;
        let start = Instant::now();
        let mut late = Vec::new();
        for token in 1..=tokens {
            take(cost).await;
            late.push(start.elapsed().as_secs_f64() * 1e6 - EACH.as_secs_f64() * 1e6 * f64::from(token));
        }
        quantiles(late)
    })
}

/// The same of a task that only sleeps until each instant: what the timer adds.
///
/// # Panics
/// Where the system has no timer.
pub fn lateness_of_sleep(sleeps: u32) -> Lateness {
    executor().block_on(async {
        let start = Instant::now();
        let mut late = Vec::new();
        for sleep in 1..=sleeps {
            tokio::time::sleep_until((start + EACH * sleep).into()).await;
            late.push(start.elapsed().as_secs_f64() * 1e6 - EACH.as_secs_f64() * 1e6 * f64::from(sleep));
        }
        quantiles(late)
    })
}

fn quantiles(late: Vec<f64>) -> Lateness {
    let earliest = quantile(late.clone(), 0.0);
    let [median, most, worst] = [0.5, 0.99, 1.0].map(|part| quantile(late.clone(), part) - earliest);
    Lateness { median, most, worst }
}

fn executor() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a timer needs nothing")
}

const WARM_UP: Duration = Duration::from_millis(30);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::async_rivals::WAITED;

    #[test]
    fn ours_starves_nobody() {
        let ours = WAITED.last().expect("ours");
        let waited = wait_of_large(ours, PATIENCE);
        assert!(waited.is_some_and(|waited| waited >= Duration::from_millis(49)), "{waited:?}");
    }

    #[test]
    fn a_wake_is_never_early() {
        let ours = WAITED.last().expect("ours");
        assert!(lateness(ours, 5).median >= 0.0 && lateness_of_sleep(5).median >= 0.0);
    }
}
