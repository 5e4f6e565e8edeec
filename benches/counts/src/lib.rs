//! Paths whose instructions are counted: what a decision runs, on readings that are given.
//!
//! Nothing here depends on a clock, a seed or a thread, so that every run executes the same instructions.

#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use core::hash::{BuildHasherDefault, Hasher};
use core::hint::black_box;

use parking_lot::{RawMutex, RawRwLock};
use sluicegate_threads::sluicegate_core::{
    AdjustableBucket, Admitted, BreakerOptions, BucketCell, BucketStep, CallOutcome, CircuitBreaker, ConcurrencyLimit,
    Counters, Decision, Denied, Flow, Hierarchy, KeyHandle, KeyedTokenBucket, LeakyBucket, Level, Pacing, Remaining,
    ShardedWindow, SlidingCounter, SlidingLog, TokenBucket, WindowLimit,
};
use sluicegate_threads::{FixedShard, Limit, ManualClock, Nanos, Rate, Shard, quota};
use sluicegate_tokio::{Growing, Queued, TokioRuntime, WaitOptions, WithClock};

/// Makes so many calls.
pub type Run = Box<dyn FnMut(u64)>;

/// A path's name, and how to prepare it.
pub type Path = (&'static str, fn() -> Run);

/// All paths.
pub const PATHS: [Path; 33] = [
    ("token bucket, admitted", || {
        let bucket = TokenBucket::with_clock(quota!("1000/1s"), ManualClock::new());
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("token bucket, denied", || {
        let bucket = TokenBucket::with_clock(quota!("1/1h burst 2"), ManualClock::new());
        let _ = bucket.try_acquire_at(Nanos::ZERO, 2);
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), false)
    }),
    ("token bucket, denied, with its hint", || {
        let bucket = TokenBucket::with_clock(quota!("1/1h burst 2"), ManualClock::new());
        let _ = bucket.try_acquire_at(Nanos::ZERO, 2);
        later(move |now| black_box(bucket.try_acquire_at(now, 1)).is_ok(), false)
    }),
    ("token bucket, off", || {
        let bucket = TokenBucket::with_clock(black_box(Limit::Unlimited), ManualClock::new());
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("token bucket, admitted, no observer in it", || {
        let bucket = Bare::new(quota!("1000/1s"));
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("token bucket, denied, no observer in it", || {
        let bucket = Bare::new(quota!("1/1h burst 2"));
        let _ = bucket.try_acquire_at(Nanos::ZERO, 2);
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), false)
    }),
    ("token bucket, admitted, two empty observers", || {
        let bucket = TokenBucket::with_clock(quota!("1000/1s"), ManualClock::new()).observed_by(((), ()));
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("token bucket, admitted, counted", || {
        let counters = Counters::new(quota!("1000/1s"));
        let bucket = TokenBucket::with_clock(quota!("1000/1s"), ManualClock::new()).observed_by(counters);
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("token bucket, inexact rate, admitted", || {
        let bucket = TokenBucket::with_clock(quota!("999983/1s"), ManualClock::new());
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("adjustable bucket, admitted", || {
        let bucket = AdjustableBucket::with_clock(quota!("1000/1s"), ManualClock::new());
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("adjustable bucket, denied", || {
        let bucket = AdjustableBucket::with_clock(quota!("1/1h burst 2"), ManualClock::new());
        let _ = bucket.try_acquire_at(Nanos::ZERO, 2);
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), false)
    }),
    ("circuit breaker, closed, a success", || {
        let breaker = breaker();
        later(
            move |now| {
                let Ok(call) = breaker.try_call_at(now) else { return false };
                call.settle_at(now, CallOutcome::Success);
                true
            },
            true,
        )
    }),
    ("flow of a bucket, a success", || {
        let flow = Flow::new(TokenBucket::with_limit(Limit::Quota(quota!("1000/1s")), ()), ManualClock::new());
        later(move |now| flow.enter_at(now, 1).map(|permit| permit.finish_at(now, CallOutcome::Success)).is_ok(), true)
    }),
    ("flow of bucket, breaker and places, a success", || {
        let flow = flow();
        later(move |now| flow.enter_at(now, 1).map(|permit| permit.finish_at(now, CallOutcome::Success)).is_ok(), true)
    }),
    // It has to be the count of the one above.
    ("the same, with an empty observer", || {
        let flow = flow().observed_by(());
        later(move |now| flow.enter_at(now, 1).map(|permit| permit.finish_at(now, CallOutcome::Success)).is_ok(), true)
    }),
    ("sharded window, admitted", || {
        let window = window("1000000/1s");
        later(move |now| window.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("sharded window, denied after all shards", || {
        let window = window("4/24h");
        let _ = window.try_acquire_at(Nanos::ZERO, 4);
        later(move |now| window.try_acquire_at(now, 1).is_ok(), false)
    }),
    ("sliding log, admitted", || {
        let mut log = SlidingLog::new(rate("64/16ms"));
        later(move |now| log.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("sliding log, denied", || {
        let mut log = SlidingLog::new(rate("1/24h"));
        let _ = log.try_acquire_at(Nanos::ZERO, 1);
        later(move |now| log.try_acquire_at(now, 1).is_ok(), false)
    }),
    ("sliding counter, admitted", || {
        let limit = WindowLimit::from_rate(rate("100000/1s")).expect("a window");
        let counter = SlidingCounter::with_clock(limit, ManualClock::new()).expect("a counter");
        later(move |now| counter.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("leaky bucket, admitted", || {
        let pacing = Pacing::new(rate("1000/1s"), 10).expect("a pacing");
        let bucket = LeakyBucket::with_clock(pacing, ManualClock::new());
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("leaky bucket, refused", || {
        let pacing = Pacing::new(rate("1/1h"), 0).expect("a pacing");
        let bucket = LeakyBucket::with_clock(pacing, ManualClock::new());
        let _ = bucket.try_acquire_at(Nanos::ZERO, 1);
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), false)
    }),
    ("keyed store, hot key, admitted", || {
        let store = Keyed::with_clock(quota!("1000/1s"), ManualClock::new());
        later(move |now| store.try_acquire_at(black_box(&7), now, 1).is_ok(), true)
    }),
    ("keyed store, hot key, denied", || {
        let store = Keyed::with_clock(quota!("1/1h burst 2"), ManualClock::new());
        let _ = store.try_acquire_at(&7, Nanos::ZERO, 2);
        later(move |now| store.try_acquire_at(black_box(&7), now, 1).is_ok(), false)
    }),
    ("key's handle, admitted", || {
        let handle = KeyHandle::new(&*Box::leak(Box::new(Keyed::with_clock(quota!("1000/1s"), ManualClock::new()))), 7)
            .expect("a key");
        later(move |now| handle.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("key's handle, denied", || {
        let store = Keyed::with_clock(quota!("1/1h burst 2"), ManualClock::new());
        let handle = KeyHandle::new(&*Box::leak(Box::new(store)), 7).expect("a key");
        let _ = handle.try_acquire_at(Nanos::ZERO, 2);
        later(move |now| handle.try_acquire_at(now, 1).is_ok(), false)
    }),
    ("adjustable bucket, off", || {
        let bucket = AdjustableBucket::with_clock(black_box(Limit::Unlimited), ManualClock::new());
        later(move |now| bucket.try_acquire_at(now, 1).is_ok(), true)
    }),
    ("keyed store, off", || {
        let store = Keyed::with_clock(black_box(Limit::Unlimited), ManualClock::new());
        later(move |now| store.try_acquire_at(black_box(&7), now, 1).is_ok(), true)
    }),
    ("permit, taken and given back", || {
        let limit = ConcurrencyLimit::new(4);
        later(move |_| limit.try_acquire(1).is_ok(), true)
    }),
    ("hierarchy of three, admitted", || {
        let levels = levels("1000/1s");
        let hierarchy = Hierarchy::new(levels.map(|level| level as _)).expect("three levels");
        later(move |now| hierarchy.try_acquire_at(now, [1; 3]).is_ok(), true)
    }),
    ("hierarchy of three, denied by the last", || {
        let levels = levels("1/1h");
        let hierarchy = Hierarchy::new(levels.map(|level| level as _)).expect("three levels");
        let _ = hierarchy.try_acquire_at(Nanos::ZERO, [1; 3]);
        later(move |now| hierarchy.try_acquire_at(now, [1; 3]).is_ok(), false)
    }),
    ("`try_acquire` of a limiter that is waited for", || {
        let limiter = waited();
        Box::new(move |calls| (0..calls).for_each(|_| assert!(black_box(limiter.try_acquire(1).is_ok()))))
    }),
    ("`acquire` where nobody waits", || {
        let limiter = waited();
        let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a timer");
        Box::new(move |calls| {
            executor.block_on(async {
                for _ in 0..calls {
                    assert!(black_box(limiter.acquire(1).await.is_ok()));
                }
            });
        })
    }),
];

/// A call each millisecond, whose answer is the one expected.
fn later(mut call: impl FnMut(Nanos) -> bool + 'static, expected: bool) -> Run {
    let mut now = 0;
    Box::new(move |calls| {
        for _ in 0..calls {
            now += 1_000_000;
            assert_eq!(black_box(call(Nanos::new(black_box(now)))), expected);
        }
    })
}

/// The token bucket as it would be if there were no observers: what the one with an empty observer is compared with.
struct Bare {
    rule: Rule,
    cell: BucketCell,
}

enum Rule {
    Unlimited,
    DenyAll,
    Step(BucketStep),
}

impl Bare {
    fn new(limit: impl Into<Limit>) -> Self {
        // Not known to the compiler, as that of a bucket made in another crate.
        let rule = match black_box(limit.into()) {
            Limit::Unlimited => Rule::Unlimited,
            Limit::DenyAll => Rule::DenyAll,
            Limit::Quota(quota) => Rule::Step(BucketStep::new(quota)),
        };
        Self { rule, cell: BucketCell::new() }
    }

    #[inline(always)]
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        match &self.rule {
            Rule::Step(step) => self.cell.try_acquire(step, now, cost),
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
            Rule::DenyAll => Err(Denied::Closed),
        }
    }
}

type Keyed = KeyedTokenBucket<u64, RawRwLock, BuildHasherDefault<Multiply>, ManualClock>;

/// A hash without a seed, so that a key lies in the same place in each run; what hashing costs is no question here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

fn window(text: &str) -> ShardedWindow<[Shard; 4], ManualClock, FixedShard> {
    let limit = WindowLimit::from_rate(rate(text)).expect("a window");
    ShardedWindow::with_array(limit, ManualClock::new(), FixedShard(0))
}

fn levels(last: &str) -> [&'static Level<AdjustableBucket<ManualClock>>; 3] {
    let level = |name, text: &str| -> &'static Level<AdjustableBucket<ManualClock>> {
        let quota: sluicegate_threads::Quota = text.parse().expect("a quota");
        Box::leak(Box::new(Level::new(name, AdjustableBucket::with_clock(quota, ManualClock::new()))))
    };
    [level("global", "10000/1s"), level("tenant", "5000/1s"), level("client", last)]
}

fn waited() -> Queued<TokenBucket<()>, WithClock<ManualClock, TokioRuntime>, RawMutex, Growing> {
    let bucket = TokenBucket::with_limit(quota!("1/10s burst 500000000").into(), ());
    Queued::new(bucket, WithClock::new(ManualClock::new(), TokioRuntime), WaitOptions::new())
}

fn rate(text: &str) -> Rate {
    text.parse().expect("a rate")
}

fn breaker() -> CircuitBreaker<RawMutex, ()> {
    let policy = BreakerOptions::new().consecutive_failures(8).build().expect("a policy");
    CircuitBreaker::with_clock(policy, ())
}

type Whole = Flow<TokenBucket<()>, ManualClock, CircuitBreaker<RawMutex, ()>, ConcurrencyLimit>;

fn flow() -> Whole {
    Flow::new(TokenBucket::with_limit(Limit::Quota(quota!("1000/1s")), ()), ManualClock::new())
        .breaker(breaker())
        .concurrency(ConcurrencyLimit::new(64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_answers_what_its_name_says() {
        for (_, prepare) in PATHS {
            prepare()(5_000);
        }
    }
}
