//! What a denial costs beside an admission by the same limiter: what a storm of requests that are all denied comes to.

use core::cell::Cell;
use core::hint::black_box;
use core::time::Duration;

use better_bucket::{Bucket, BucketConfig};
use governor::{Quota, RateLimiter};
use sluicegate_threads::sluicegate_core::{
    AdjustableBucket, KeyedTokenBucket, LeakyBucket, Pacing, SlidingCounter, SlidingLog, TokenBucket, WindowLimit,
};
use sluicegate_threads::{Clock as _, FixedShard, PER_SECOND, Rate, SeededState, TscClock, sharded_window_with};

use crate::interleaved::Contestant;
use crate::rival;
use crate::single_step::Heat;

/// The name of what admits everything, whose time is 1.
const ADMITTED: &str = "admitted";

/// The name of what denies everything.
const DENIED: &str = "denied";

/// A table for each limiter, on real clocks. Ours must not take longer to deny than to admit.
///
/// # Panics
/// If a limiter does not admit and deny as it is meant to.
pub fn heats() -> Vec<Heat> {
    let ours: &[(&str, f64)] = &[(DENIED, 1.0)];
    vec![
        heat("`TokenBucket`", ours, |rate| {
            let bucket = TokenBucket::with_clock(quota(rate), TscClock::new());
            Box::new(move |calls| repeat(calls, || bucket.try_acquire(1).is_ok()))
        }),
        heat("`AdjustableBucket`", ours, |rate| {
            let bucket = AdjustableBucket::with_clock(quota(rate), TscClock::new());
            Box::new(move |calls| repeat(calls, || bucket.try_acquire(1).is_ok()))
        }),
        heat("`ShardedWindow` of 4 shards", ours, |rate| {
            let window = sharded_window_with(rate, 4.try_into().expect("not 0"), TscClock::new(), FixedShard(0));
            let window = window.expect("a window");
            Box::new(move |calls| repeat(calls, || window.try_acquire(1).is_ok()))
        }),
        heat("`SlidingLog`", ours, |rate| {
            let (mut log, clock) = (SlidingLog::new(rate), TscClock::new());
            Box::new(move |calls| repeat(calls, || log.try_acquire_at(clock.now(), 1).is_ok()))
        }),
        heat("`SlidingCounter`", ours, |rate| {
            // What it can count depends on its window. So many a microsecond are more than a thread can ask for.
            let rate = if rate.tokens() > 1 { Rate::new(127, Duration::from_micros(1)).expect("a rate") } else { rate };
            let counter = SlidingCounter::with_clock(WindowLimit::from_rate(rate).expect("a window"), TscClock::new());
            let counter = counter.expect("a counter");
            Box::new(move |calls| repeat(calls, || counter.try_acquire(1).is_ok()))
        }),
        heat("`LeakyBucket`", ours, |rate| {
            let pacing = Pacing::new(rate, rate.tokens() - 1).expect("a pacing");
            let bucket = LeakyBucket::with_clock(pacing, TscClock::new());
            Box::new(move |calls| repeat(calls, || bucket.try_acquire(1).is_ok()))
        }),
        heat("`KeyedTokenBucket`, one key", ours, |rate| {
            let store = KeyedTokenBucket::<u64, parking_lot::RawRwLock, SeededState, _>::with_clock(
                quota(rate),
                TscClock::new(),
            );
            Box::new(move |calls| repeat(calls, || store.try_acquire(black_box(&7), 1).is_ok()))
        }),
        heat("governor", &[], |rate| {
            let limiter = RateLimiter::direct(rival_quota(rate));
            Box::new(move |calls| repeat(calls, || limiter.check().is_ok()))
        }),
        heat("governor, one key", &[], |rate| {
            let limiter = RateLimiter::<u64, _, _, _>::keyed(rival_quota(rate));
            Box::new(move |calls| repeat(calls, || limiter.check_key(black_box(&7)).is_ok()))
        }),
        heat("ratelimit", &[], |rate| {
            let limiter =
                ratelimit::Ratelimiter::builder(rate.tokens()).period(rate.period()).max_tokens(rate.tokens());
            let limiter = limiter.initial_available(rate.tokens()).build().expect("a limiter");
            Box::new(move |calls| repeat(calls, || limiter.try_wait().is_ok()))
        }),
        heat("better-bucket", &[], |rate| {
            let tokens = u32::try_from(rate.tokens()).expect("it fits");
            let bucket =
                BucketConfig::new(tokens, tokens, rate.period(), tokens).map(Bucket::from_config).expect("a bucket");
            Box::new(move |calls| repeat(calls, || bucket.try_acquire(1)))
        }),
    ]
}

/// Asks so often, and says how many were admitted.
type Ask = Box<dyn FnMut(u64) -> u64>;

/// A token a nanosecond, with as many at once; and one an hour, spent.
fn heat(title: &'static str, targets: &'static [(&'static str, f64)], make: fn(Rate) -> Ask) -> Heat {
    let plenty = make(Rate::new(1_000_000_000, PER_SECOND).expect("a rate"));
    let mut spent = make(Rate::new(1, Duration::from_secs(3_600)).expect("a rate"));
    assert_eq!(spent(1), 1);
    let contestant = |name, mut ask: Ask, is_admitted| {
        Contestant::of_turns(name, move |calls| {
            let admitted = ask(calls);
            assert_eq!(admitted, if is_admitted { calls } else { 0 }, "{title}, {name}");
        })
    };
    Heat {
        title,
        note: "On its default clock, ours on `TscClock`; asked only whether the request may pass.",
        baseline: ADMITTED,
        targets,
        contestants: vec![contestant(ADMITTED, plenty, true), contestant(DENIED, spent, false)],
    }
}

#[inline(always)]
fn repeat(calls: u64, mut call: impl FnMut() -> bool) -> u64 {
    let admitted = Cell::new(0);
    for _ in 0..calls {
        admitted.set(admitted.get() + u64::from(black_box(call())));
    }
    admitted.get()
}

fn quota(rate: Rate) -> sluicegate_threads::Quota {
    sluicegate_threads::Quota::new(rate).expect("a quota")
}

fn rival_quota(rate: Rate) -> Quota {
    let tokens = u32::try_from(rate.tokens()).expect("it fits");
    Quota::with_period(rate.period() / tokens).expect("not 0").allow_burst(rival::count(tokens))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interleaved::Effort;

    #[test]
    fn what_is_admitted_is_and_what_is_denied_is() {
        for mut heat in heats() {
            heat.run(Effort { rounds: 3, calls: 50 });
        }
    }
}
