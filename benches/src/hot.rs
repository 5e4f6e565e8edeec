//! One hot limiter, or one hot key of a store, that many threads ask at once.

use alloc::sync::Arc;
use core::hint::black_box;
use core::num::NonZeroUsize;
use core::time::Duration;

use better_bucket::{Bucket, BucketConfig};
use governor::{Quota, RateLimiter};
use parking_lot::RawRwLock;
use sluicegate_threads::sluicegate_core::{KeyHandle, KeyedTokenBucket, TokenBucket};
use sluicegate_threads::{CpuShard, Rate, SeededState, ThreadShard, TscClock, quota, sharded_window_with};

use crate::crowd::{Crowd, compare};
use crate::interleaved::{Effort, Timing};
use crate::rival;

/// Whose time is 1.
pub const BASELINE: &str = "governor";

/// The window whose shard is the core's.
pub const BY_CORE: &str = "`ShardedWindow`, by core";

/// The window whose shard is the thread's.
pub const BY_THREAD: &str = "`ShardedWindow`, by thread";

/// Our store.
pub const KEYED: &str = "`KeyedTokenBucket`, `TscClock`";

/// A handle of a key of our store, which all threads share.
pub const HANDLE: &str = "`KeyHandle`, `TscClock`";

/// No store at all: what a key's decisions cost where they take turns at one word.
pub const NO_STORE: &str = "no store: one `TokenBucket`, `TscClock`";

/// How many threads ask.
pub const THREADS: [usize; 6] = [1, 2, 4, 8, 16, 64];

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// What is always there.
    Plenty,
    /// What has been spent.
    Spent,
    /// What is always there, of one key of a store.
    Key,
    /// What has been spent, of one key of a store.
    SpentKey,
}

/// Measures everybody with so many threads.
pub fn measure(asked: Asked, threads: usize, effort: Effort) -> Vec<Timing> {
    compare(&contestants(asked), BASELINE, threads, effort)
}

/// As many shards as the record's machine has cores, doubled; with fewer threads some are idle.
const SHARDS: NonZeroUsize = NonZeroUsize::new(4).expect("not 0");

fn contestants(asked: Asked) -> Vec<Crowd<'static>> {
    if matches!(asked, Asked::Key | Asked::SpentKey) {
        return stores(asked == Asked::Key);
    }
    // A token a nanosecond with as large a burst: more than any number of threads asks for. One an hour, spent: none.
    let (tokens, period) = match asked {
        Asked::Plenty | Asked::Key => (1_000_000_000, Duration::from_secs(1)),
        Asked::Spent | Asked::SpentKey => (1, Duration::from_secs(3_600)),
    };
    let rate = Rate::new(tokens.into(), period).expect("a rate");
    let is_there = asked == Asked::Plenty;
    let governed =
        RateLimiter::direct(Quota::with_period(period / tokens).expect("not 0").allow_burst(rival::count(tokens)));
    let limited = ratelimit::Ratelimiter::builder(tokens.into()).period(period).max_tokens(tokens.into());
    let limited = limited.initial_available(tokens.into()).build().expect("a limiter");
    let better = BucketConfig::new(tokens, tokens, period, tokens).map(Bucket::from_config).expect("a bucket");
    let quota = sluicegate_threads::Quota::new(rate).expect("a quota");
    let bucket = TokenBucket::with_clock(quota, TscClock::new());
    let by_core = sharded_window_with(rate, SHARDS, TscClock::new(), CpuShard).expect("a window");
    let by_thread = sharded_window_with(rate, SHARDS, TscClock::new(), ThreadShard).expect("a window");
    if !is_there {
        let spent = [
            governed.check().is_ok(),
            limited.try_wait().is_ok(),
            better.try_acquire(1),
            bucket.try_acquire(1).is_ok(),
            by_core.try_acquire(1).is_ok(),
            by_thread.try_acquire(1).is_ok(),
        ];
        assert_eq!(spent, [true; 6]);
    }
    vec![
        Crowd::new(BASELINE, move || assert_eq!(black_box(governed.check().is_ok()), is_there)),
        Crowd::new("ratelimit `try_wait`", move || assert_eq!(black_box(limited.try_wait().is_ok()), is_there)),
        Crowd::new("better-bucket `try_acquire`", move || assert_eq!(black_box(better.try_acquire(1)), is_there)),
        Crowd::new("`TokenBucket`, `TscClock`", move || {
            assert_eq!(black_box(bucket.try_acquire(1).is_ok()), is_there);
        }),
        Crowd::new(BY_CORE, move || {
            assert_eq!(black_box(by_core.try_acquire(1).is_ok()), is_there);
        }),
        Crowd::new(BY_THREAD, move || {
            assert_eq!(black_box(by_thread.try_acquire(1).is_ok()), is_there);
        }),
    ]
}

/// A token a nanosecond for each key, of which one is asked for; or one an hour, spent.
fn stores(is_there: bool) -> Vec<Crowd<'static>> {
    let (governed, quota) = if is_there {
        (Quota::per_second(rival::count(1_000_000_000)), quota!("1000000000/1s"))
    } else {
        (Quota::per_hour(rival::count(1)), quota!("1/1h"))
    };
    let governed = RateLimiter::<u64, _, _, _>::keyed(governed);
    let store = || KeyedTokenBucket::<u64, RawRwLock, SeededState, _>::with_clock(quota, TscClock::new());
    let (looking_up, holding) = (store(), Arc::new(store()));
    let handle = KeyHandle::new(holding, 7).expect("the first key");
    let bucket = TokenBucket::with_clock(quota, TscClock::new());
    if !is_there {
        let spent = [
            governed.check_key(&7).is_ok(),
            looking_up.try_acquire(&7, 1).is_ok(),
            handle.try_acquire(1).is_ok(),
            bucket.try_acquire(1).is_ok(),
        ];
        assert_eq!(spent, [true; 4]);
    }
    vec![
        Crowd::new(BASELINE, move || assert_eq!(black_box(governed.check_key(black_box(&7)).is_ok()), is_there)),
        Crowd::new(KEYED, move || {
            assert_eq!(black_box(looking_up.try_acquire(black_box(&7), 1).is_ok()), is_there);
        }),
        Crowd::new(HANDLE, move || assert_eq!(black_box(handle.try_acquire(1).is_ok()), is_there)),
        Crowd::new(NO_STORE, move || assert_eq!(black_box(bucket.try_acquire(1).is_ok()), is_there)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contestant_answers_what_it_is_measured_for() {
        for asked in [Asked::Plenty, Asked::Spent] {
            assert_eq!(measure(asked, 2, Effort::TRIAL).len(), 6);
        }
        for asked in [Asked::Key, Asked::SpentKey] {
            assert_eq!(measure(asked, 2, Effort::TRIAL).len(), 4);
        }
    }
}
