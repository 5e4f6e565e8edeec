//! Waiting where there are fewer tokens than takers: what is handed out, to whom, and whether that is too much.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

use parking_lot::RawMutex;
use sluicegate_tokio::sluicegate_core::TokenBucket as CoreBucket;
use sluicegate_tokio::{Growing, Queued, Rate, TokioRuntime, WaitOptions};

use crate::async_rivals::{Supply, Waited};

/// A token a tick of tokio's timer; what comes between two ticks; and ten times that.
pub const SUPPLIES: [Supply; 3] = [
    Supply { per_millisecond: 1, burst: 1 },
    Supply { per_millisecond: 10, burst: 10 },
    Supply { per_millisecond: 10, burst: 100 },
];

/// Equal tasks that take one token after another.
pub const TASKS: usize = 64;

/// What a turn came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// Tokens handed out, as a share of those that came.
    pub throughput: f64,
    /// What the task with most had more than the one with least.
    pub spread: u64,
    /// The same as a share of the mean.
    pub relative_spread: f64,
}

/// Lets `TASKS` tasks take for `span`, once they have all begun and the first burst is gone.
///
/// # Panics
/// Where the system has no timer.
pub fn share(supply: Supply, waited: &Waited, span: Duration) -> Share {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a timer needs nothing");
    executor.block_on(async {
        let taken: Arc<[AtomicU64; TASKS]> = Arc::new([const { AtomicU64::new(0) }; TASKS]);
        let take = (waited.make)(supply);
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let (take, taken) = (Arc::clone(&take), Arc::clone(&taken));
                tokio::spawn(async move {
                    loop {
                        take(1).await;
                        taken[task].fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        tokio::time::sleep(WARM_UP).await;
        let read = || taken.each_ref().map(|taken| taken.load(Ordering::Relaxed));
        let (start, before) = (Instant::now(), read());
        tokio::time::sleep(span).await;
        let (span, after) = (start.elapsed(), read());
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        let each = after.iter().zip(before).map(|(after, before)| after - before);
        let (most, least) = (each.clone().max().unwrap_or(0), each.clone().min().unwrap_or(0));
        let all: u64 = each.sum();
        let came = f64::from(supply.per_millisecond) * span.as_secs_f64() * 1e3;
        let mean = all as f64 / TASKS as f64;
        Share {
            throughput: all as f64 / came,
            spread: most - least,
            relative_spread: (most - least) as f64 / mean.max(1.0),
        }
    })
}

const WARM_UP: Duration = Duration::from_millis(50);

/// When tokens are asked for, in milliseconds, and for how many at most.
pub type Pattern = (&'static str, fn() -> Vec<(u64, u32)>);

/// Patterns that tell who looks at the clock.
pub const PATTERNS: [Pattern; 4] = [
    ("one a millisecond, for a second", || (0..1_000).map(|at| (at, 1)).collect()),
    ("200 ms nothing, then all that is there; 5 times", || (1..=5).map(|turn| (turn * 200, 1_000)).collect()),
    ("one every 17 ms, and every 340 ms all that is there; 5 times", || {
        (1..=100).map(|turn| (turn * 17, if turn % 20 == 0 { 1_000 } else { 1 })).collect()
    }),
    ("200 ms nothing, all but one, 200 ms nothing, all that is there; 5 times", || {
        (1..=10).map(|turn| (turn * 200, if turn % 2 == 1 { 9 } else { 1_000 })).collect()
    }),
];

/// Tokens at once of what the patterns ask, which is full at the start.
pub const BURST: u32 = 10;

/// The time of a token there.
pub const EACH: Duration = Duration::from_millis(10);

/// Somebody who is asked, without waiting, and its name.
pub type Asker = (&'static str, fn() -> Ask);

/// Who is asked.
pub const ASKERS: [Asker; 3] = [
    ("leaky-bucket, fair", || ask_leaky(true)),
    ("leaky-bucket, unfair", || ask_leaky(false)),
    ("Sluicegate", ask_ours),
];

/// Asks for one token.
pub type Ask = Box<dyn FnMut() -> bool>;

fn ask_leaky(is_fair: bool) -> Ask {
    let limiter = leaky_bucket::RateLimiter::builder()
        .max(BURST as usize)
        .initial(BURST as usize)
        .refill(1)
        .interval(EACH)
        .fair(is_fair)
        .build();
    Box::new(move || limiter.try_acquire(1))
}

fn ask_ours() -> Ask {
    let rate = Rate::new(1, EACH).expect("a rate above 0");
    let quota = sluicegate_tokio::Quota::with_burst(rate, BURST.into()).expect("a quota within range");
    let limiter = CoreBucket::with_limit(quota.into(), ());
    let limiter: Queued<_, _, RawMutex, Growing> = Queued::new(limiter, TokioRuntime, WaitOptions::new());
    Box::new(move || limiter.try_acquire(1).is_ok())
}

/// What came of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Tokens handed out.
    pub tokens: u64,
    /// Tokens that an exact bucket would have handed out, asked at the same readings.
    pub exact: u64,
    /// The most that any span of time saw beyond the burst and what came within it.
    pub excess: u64,
}

/// What an asker hands out to a pattern.
///
/// # Panics
/// Where the system has no timer.
pub fn handed(make: fn() -> Ask, pattern: &[(u64, u32)]) -> Handed {
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a timer needs nothing");
    executor.block_on(async {
        let (mut ask, start) = (make(), Instant::now());
        let mut asked = Vec::with_capacity(pattern.len());
        for &(at, most) in pattern {
            tokio::time::sleep_until((start + Duration::from_millis(at)).into()).await;
            let begin = start.elapsed();
            let tokens = (0..most).take_while(|_| ask()).count() as u64;
            asked.push(Asked { begin, end: start.elapsed(), most: most.into(), tokens });
        }
        Handed { tokens: asked.iter().map(|asked| asked.tokens).sum(), exact: exact(&asked), excess: excess(&asked) }
    })
}

struct Asked {
    /// Readings around it.
    begin: Duration,
    end: Duration,
    most: u64,
    tokens: u64,
}

/// What a bucket by its definition hands out, counted in nanoseconds of refill.
fn exact(asked: &[Asked]) -> u64 {
    let full = EACH * BURST;
    let (mut level, mut seen, mut tokens) = (full, Duration::ZERO, 0);
    for asked in asked {
        level = (level + (asked.end - seen)).min(full);
        seen = asked.end;
        let taken = ((level.as_nanos() / EACH.as_nanos()) as u64).min(asked.most);
        level -= EACH * taken as u32;
        tokens += taken;
    }
    tokens
}

/// The most, over all spans from one hand-out to another, beyond what the law of the bucket allows in it.
fn excess(asked: &[Asked]) -> u64 {
    let mut worst = 0;
    for (first, Asked { begin, .. }) in asked.iter().enumerate() {
        let mut sum = 0;
        for Asked { end, tokens, .. } in &asked[first..] {
            sum += tokens;
            let came = (*end - *begin).as_nanos() / EACH.as_nanos();
            worst = worst.max(sum.saturating_sub(u64::from(BURST) + came as u64));
        }
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::async_rivals::WAITED;

    fn asked(of: &[(u64, u64)]) -> Vec<Asked> {
        let at = |&(at, tokens)| {
            let at = Duration::from_millis(at);
            Asked { begin: at, end: at, most: 1_000, tokens }
        };
        of.iter().map(at).collect()
    }

    #[test]
    fn an_excess_is_found_wherever_it_is() {
        assert_eq!(excess(&asked(&[(0, 10), (100, 10)])), 0);
        assert_eq!(excess(&asked(&[(0, 10), (100, 11)])), 1);
        assert_eq!(excess(&asked(&[(0, 1), (1_000, 10), (1_010, 4)])), 3);
    }

    #[test]
    fn the_exact_figure_is_the_definition() {
        assert_eq!(exact(&asked(&[(0, 0), (19, 0), (20, 0), (5_000, 0)])), 10 + 1 + 1 + 10);
    }

    #[test]
    fn ours_never_hands_out_too_much() {
        for (name, pattern) in PATTERNS {
            let beginning: Vec<_> = pattern().into_iter().take_while(|(at, _)| *at <= 400).collect();
            assert_eq!(handed(ask_ours, &beginning).excess, 0, "{name}");
        }
    }

    #[test]
    fn each_taker_hands_out_tokens() {
        for waited in &WAITED {
            let supply = Supply { per_millisecond: 100, burst: 1_000 };
            let share = share(supply, waited, Duration::from_millis(30));
            assert!(share.throughput > 0.0, "{}", waited.name);
        }
    }
}
