//! What several of the tests use. Each test file compiles its own copy and uses a part of it.
#![allow(dead_code)]

use core::cell::Cell;
use core::ops::Range;
use core::time::Duration;
use std::sync::Barrier;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use sluicegate_core::{
    Decision, Inspection, ManualClock, Nanos, Quota, QuotaError, Rate, Shard, ShardId, ShardedWindow, WindowLimit,
};

pub(crate) mod adjusting;
pub(crate) mod ideal;
pub(crate) mod waiting;

/// `cases` cases, or what `PROPTEST_CASES` says; failures are kept beside the test's source.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases },
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..default
    }
}

/// Numbers of every size up to `u64::MAX`, small ones and round ones more often.
pub(crate) fn magnitude() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![
        2 => 1..=20_u64,
        1 => (0..20_u32).prop_map(|exponent| 10_u64.pow(exponent)),
        1 => prop::sample::select(vec![7, 97, 7_919, 1_000_003, 999_999_937, 1_000_000_007, (1 << 61) - 1]),
        2 => (1..=u64::MAX, 0..64_u32).prop_map(|(number, shift)| (number >> shift).max(1)),
    ]
}

/// Periods from a nanosecond to centuries.
pub(crate) fn period() -> impl Strategy<Value = u64> + Clone {
    const SECOND: u64 = 1_000_000_000;
    prop_oneof![
        3 => prop::sample::select(vec![SECOND, 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND, 30 * 86_400 * SECOND]),
        1 => (1..100_u64).prop_map(|seconds| seconds * SECOND),
        2 => magnitude(),
    ]
}

/// Every kind of quota that can be enforced.
pub(crate) fn quota() -> impl Strategy<Value = Quota> + Clone {
    let burst = prop_oneof![3 => magnitude().prop_map(Some), 1 => Just(None), 1 => Just(Some(u64::MAX))];
    (magnitude(), period(), burst).prop_map(|(tokens, period, burst)| {
        let (mut tokens, mut burst) = (tokens, burst);
        loop {
            let rate = Rate::new(tokens, Duration::from_nanos(period)).unwrap();
            match Quota::with_burst(rate, burst.unwrap_or(tokens)) {
                Ok(quota) => return quota,
                Err(QuotaError::BurstTooLarge { largest, .. }) if burst != Some(largest) => burst = Some(largest),
                Err(QuotaError::RateTooHigh { .. }) => tokens /= 2,
                Err(error) => panic!("{error}"),
            }
        }
    })
}

/// The same with debts of every size.
pub(crate) fn indebted() -> impl Strategy<Value = Quota> + Clone {
    let debt = prop_oneof![1 => Just(0), 3 => magnitude(), 1 => Just(u64::MAX)];
    (quota(), debt).prop_map(|(quota, debt)| match quota.with_debt(debt) {
        Ok(quota) => quota,
        Err(QuotaError::DebtTooLarge { largest, .. }) => quota.with_debt(largest).unwrap(),
        Err(error) => panic!("{error}"),
    })
}

/// Where a clock goes.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Stall,
    Ahead(u64),
    Back(u64),
    To(u64),
    /// To the reading that the latest denial named, or a nanosecond before or after.
    Hint(i8),
    /// Until about this many tokens have flowed in.
    Tokens(u64),
}

impl Move {
    pub(crate) fn after(&self, now: Nanos, hinted: Nanos, quota: Quota) -> Nanos {
        let now = now.as_u64();
        Nanos::new(match *self {
            Self::Stall => now,
            Self::Ahead(span) => now.saturating_add(span),
            Self::Back(span) => now.saturating_sub(span),
            Self::To(reading) => reading,
            Self::Hint(off) => hinted.as_u64().saturating_add_signed(off.into()),
            Self::Tokens(tokens) => {
                let rate = quota.rate();
                let span = u128::from(tokens) * u128::from(rate.period_nanos()) / u128::from(rate.tokens());
                now.saturating_add(u64::try_from(span).unwrap_or(0))
            }
        })
    }
}

/// Ahead and back by spans of every size, also to the end of the limiter's time and far beyond it.
pub(crate) fn moves() -> impl Strategy<Value = Move> + Clone {
    const YEAR: u64 = 31_557_600_000_000_000;
    prop_oneof![
        40 => Just(Move::Stall),
        40 => (0..1_u64 << 60, 0..60_u32).prop_map(|(span, shift)| Move::Ahead(span >> shift)),
        10 => (1..4_u64, 0..1_000_u64).prop_map(|(years, more)| Move::Ahead(years * YEAR + more)),
        20 => (0..1_u64 << 60, 4..60_u32).prop_map(|(span, shift)| Move::Back(span >> shift)),
        10 => (0..30 * YEAR).prop_map(Move::To),
        50 => (-1..=1_i8).prop_map(Move::Hint),
        30 => (0..20_u64).prop_map(Move::Tokens),
        5 => prop::sample::select(vec![0, 946_728_000_000_000_000_u64, u64::MAX])
            .prop_flat_map(|about| (-2..=2_i64).prop_map(move |off| Move::To(about.saturating_add_signed(off)))),
    ]
}

/// A sharded window of any number of shards behind one type.
pub(crate) trait AnyWindow: Sync + Send {
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision;
    fn peek_at(&self, now: Nanos, cost: u64) -> Decision;
    fn inspect_at(&self, now: Nanos) -> Inspection;
    fn refund(&self, taken_at: Nanos, cost: u64);
    fn caps(&self) -> Vec<u64>;
    fn shard_count(&self) -> usize;
    fn clock(&self) -> &ManualClock;
    fn try_acquire(&self, cost: u64) -> Decision;
}

impl<const N: usize, I: ShardId + Sync + Send> AnyWindow for ShardedWindow<[Shard; N], ManualClock, I> {
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        self.try_acquire_at(now, cost)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.peek_at(now, cost)
    }

    fn inspect_at(&self, now: Nanos) -> Inspection {
        self.inspect_at(now)
    }

    fn refund(&self, taken_at: Nanos, cost: u64) {
        self.refund(taken_at, cost);
    }

    fn caps(&self) -> Vec<u64> {
        self.caps().collect()
    }

    fn shard_count(&self) -> usize {
        self.shard_count()
    }

    fn clock(&self) -> &ManualClock {
        self.clock()
    }

    fn try_acquire(&self, cost: u64) -> Decision {
        self.try_acquire(cost)
    }
}

/// The shard counts that [`sharded`] knows.
pub(crate) const SHARDS: Range<usize> = 1..17;

/// A window over `shards` shards, one of [`SHARDS`].
pub(crate) fn sharded<I>(limit: WindowLimit, shards: usize, shard_id: I) -> Box<dyn AnyWindow>
where
    I: ShardId + Sync + Send + 'static,
{
    fn make<const N: usize, I>(limit: WindowLimit, shard_id: I) -> Box<dyn AnyWindow>
    where
        I: ShardId + Sync + Send + 'static,
    {
        Box::new(ShardedWindow::<[Shard; N], _, _>::with_array(limit, ManualClock::new(), shard_id))
    }
    let make: fn(WindowLimit, I) -> Box<dyn AnyWindow> = match shards {
        1 => make::<1, I>,
        2 => make::<2, I>,
        3 => make::<3, I>,
        4 => make::<4, I>,
        5 => make::<5, I>,
        6 => make::<6, I>,
        7 => make::<7, I>,
        8 => make::<8, I>,
        9 => make::<9, I>,
        10 => make::<10, I>,
        11 => make::<11, I>,
        12 => make::<12, I>,
        13 => make::<13, I>,
        14 => make::<14, I>,
        15 => make::<15, I>,
        16 => make::<16, I>,
        _ => panic!("no window of {shards} shards"),
    };
    make(limit, shard_id)
}

/// `limit` in each window of `width` nanoseconds.
pub(crate) fn window_limit(limit: u64, width: u64) -> WindowLimit {
    WindowLimit::from_rate(Rate::new(limit, Duration::from_nanos(width)).unwrap()).unwrap()
}

/// A number that the thread sets: as if it moved from core to core.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wandering;

std::thread_local!(static WANDERED_TO: Cell<usize> = const { Cell::new(0) });

impl Wandering {
    pub(crate) fn go_to(shard: usize) {
        WANDERED_TO.set(shard);
    }
}

impl ShardId for Wandering {
    fn shard(&self) -> usize {
        WANDERED_TO.get()
    }

    fn give_way(&self, _attempt: u32) {
        std::thread::yield_now();
    }
}

/// A shard number of its own for each thread, and a holder that was suspended gets the processor.
#[derive(Clone, Copy, Default)]
pub(crate) struct ThreadShard;

impl ShardId for ThreadShard {
    fn shard(&self) -> usize {
        use core::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        std::thread_local!(static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed));
        NUMBER.with(|number| *number)
    }

    fn give_way(&self, _attempt: u32) {
        std::thread::yield_now();
    }
}

/// Any shard number, and a holder that was suspended gets the processor.
pub(crate) struct Yielding<I>(pub(crate) I);

impl<I: ShardId> ShardId for Yielding<I> {
    fn shard(&self) -> usize {
        self.0.shard()
    }

    fn give_way(&self, _attempt: u32) {
        std::thread::yield_now();
    }
}

/// Lets `threads` threads start at once, and returns what each came back with.
pub(crate) fn race<T: Send>(threads: usize, run: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let start = |index| {
            let (barrier, run) = (&barrier, &run);
            scope.spawn(move || {
                barrier.wait();
                run(index)
            })
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// A small generator of numbers that spread, for threads that must not share one.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 >> 1) * 2 * u128::from(bound)) >> 64) as u64
    }
}
