//! Operations on sharded windows, beside a map from window to what was taken in it.
#![no_main]

use core::cell::Cell;
use core::time::Duration;
use std::collections::HashMap;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sluicegate_core::{
    Denied, ManualClock, Nanos, QuotaError, Rate, Shard, ShardId, ShardedWindow, Shards, WindowLimit, WindowState,
    WindowStep,
};

#[derive(Arbitrary, Debug)]
struct Input {
    /// A number and how far to shift it down, for numbers of every size.
    limit: (u64, u8),
    width: (u64, u8),
    shards: u8,
    operations: Vec<(u8, Operation)>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Acquire(u64),
    /// All that is free, and this much more.
    AcquireFree(i8),
    /// What a shard may count, and this much more.
    AcquireSlice(i8),
    /// So much of an earlier admission.
    Refund(u8, u64),
    /// What was perhaps never taken.
    Stray(u64, u64),
    Advance(u64),
    StepBack(u64),
    /// So many windows ahead or back.
    Windows(i8),
    /// To the last reading of this window.
    Last,
    GoTo(u64),
}

fuzz_target!(|input: Input| {
    let [limit, width] = [input.limit, input.width].map(|(number, by)| number >> (by % 64));
    let Ok(rate) = Rate::new(limit, Duration::from_nanos(width)) else {
        assert!(limit == 0 || width == 0);
        return;
    };
    match WindowStep::new(rate) {
        Ok(_) => match input.shards % 5 {
            0 => run::<1>(rate, &input.operations),
            1 => run::<2>(rate, &input.operations),
            2 => run::<3>(rate, &input.operations),
            3 => run::<7>(rate, &input.operations),
            _ => run::<16>(rate, &input.operations),
        },
        Err(QuotaError::WindowTooShort { shortest, .. }) => {
            assert!(shortest > width);
            assert!(WindowStep::new(Rate::new(limit, Duration::from_nanos(shortest)).unwrap()).is_ok());
            assert!(WindowStep::new(Rate::new(limit, Duration::from_nanos(shortest - 1)).unwrap()).is_err());
        }
        Err(error) => panic!("{error}"),
    }
});

/// The shard that the caller is on.
struct Wandering(Cell<usize>);

impl ShardId for Wandering {
    fn shard(&self) -> usize {
        self.0.get()
    }
}

fn run<const N: usize>(rate: Rate, operations: &[(u8, Operation)])
where
    [Shard; N]: Shards,
{
    let (limit, width) = (rate.tokens(), rate.period_nanos());
    let limiter: ShardedWindow<[Shard; N], _, _> =
        ShardedWindow::with_array(WindowLimit::from_rate(rate).unwrap(), ManualClock::new(), Wandering(Cell::new(0)));
    let step = WindowStep::new(rate).unwrap();
    let mut state = WindowState::UNUSED;

    let window_of = |now: Nanos| now.min(Nanos::HORIZON).as_u64() / width;
    let mut taken = HashMap::<u64, u64>::new();
    let mut latest = 0;
    let mut admissions: Vec<(Nanos, u64)> = Vec::new();
    let mut now = 0_u64;

    for (shard, operation) in operations.iter().take(128) {
        limiter.shard_id().0.set(usize::from(*shard));
        let at = Nanos::new(now);
        let met = window_of(at).max(latest);
        let free = limit - taken.get(&met).copied().unwrap_or(0);
        let cost = match *operation {
            Operation::Acquire(cost) => cost,
            Operation::AcquireFree(more) => free.saturating_add_signed(more.into()),
            Operation::AcquireSlice(more) => limiter.caps().next().unwrap_or(0).saturating_add_signed(more.into()),
            Operation::Refund(which, cost) => {
                if !admissions.is_empty() {
                    let (taken_at, held) = admissions.swap_remove(usize::from(which) % admissions.len());
                    let cost = if held == u64::MAX { cost } else { cost % (held + 1) };
                    give_back(&mut taken, window_of(taken_at), cost);
                    limiter.refund(taken_at, cost);
                    state = step.refund(state, taken_at, cost);
                }
                continue;
            }
            Operation::Stray(taken_at, cost) => {
                let taken_at = Nanos::new(taken_at);
                give_back(&mut taken, window_of(taken_at), cost);
                limiter.refund(taken_at, cost);
                state = step.refund(state, taken_at, cost);
                continue;
            }
            Operation::Advance(span) => {
                now = now.saturating_add(span);
                continue;
            }
            Operation::StepBack(span) => {
                now = now.saturating_sub(span);
                continue;
            }
            Operation::Windows(windows) => {
                let span = width.saturating_mul(windows.unsigned_abs().into());
                now = if windows < 0 { now.saturating_sub(span) } else { now.saturating_add(span) };
                continue;
            }
            Operation::Last => {
                now = (now / width).saturating_mul(width).saturating_add(width - 1);
                continue;
            }
            Operation::GoTo(reading) => {
                now = reading;
                continue;
            }
        };
        let peeked = limiter.peek_at(at, cost);
        let decision = limiter.try_acquire_at(at, cost);
        if window_of(at) >= latest {
            assert_eq!((peeked.is_ok(), peeked.err()), (decision.is_ok(), decision.err()));
        }
        let (next, stepped) = step.try_acquire(state, at, cost);
        if N == 1 {
            assert_eq!(stepped, decision, "the pure step agrees with one shard");
        }
        if stepped.is_ok() == decision.is_ok() {
            state = next;
        }
        match decision {
            Ok(admitted) => {
                let window = window_of(admitted.at);
                assert!(window >= window_of(at) && window <= met);
                if cost > 0 {
                    let taken = taken.entry(window).or_default();
                    assert!(cost <= limit - *taken, "{cost} where {taken} of {limit} was taken");
                    *taken += cost;
                    latest = latest.max(window);
                }
                admissions.push((admitted.at, cost));
            }
            Err(Denied::CostExceedsLimit { .. }) => assert!(cost > limit),
            Err(Denied::RateLimited { retry_after }) => {
                assert!(cost > free && cost <= limit, "denied {cost} of {free}");
                let end = (u128::from(met) + 1) * u128::from(width);
                assert_eq!(retry_after.as_nanos(), end - u128::from(at.min(Nanos::HORIZON).as_u64()));
            }
            Err(other) => panic!("{other:?}"),
        }
        let free = limit - taken.get(&window_of(at).max(latest)).copied().unwrap_or(0);
        let inspection = limiter.inspect_at(at);
        assert_eq!((inspection.level, inspection.capacity), (free, limit));
    }
}

fn give_back(taken: &mut HashMap<u64, u64>, window: u64, cost: u64) {
    if let Some(taken) = taken.get_mut(&window) {
        *taken = taken.saturating_sub(cost);
    }
}
