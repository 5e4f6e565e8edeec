//! Operations on a sliding log, growing and in place, beside a list of all that was ever admitted.
#![no_main]

use core::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sluicegate_core::{Denied, FixedSlidingLog, Nanos, QuotaError, Rate, Remaining, Runs, SlidingLog};

#[derive(Arbitrary, Debug)]
struct Input {
    /// A number and how far to shift it down, for numbers of every size.
    limit: (u64, u8),
    window: (u64, u8),
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Acquire(u64),
    /// One or a few.
    AcquireFew(u8),
    /// All that is free, and this much more.
    AcquireFree(i8),
    /// So much of an earlier admission, or of so many nanoseconds later.
    Refund(u8, u8, u64),
    /// What was perhaps never taken.
    Stray(u64, u64),
    Advance(u64),
    /// By less than 256 ns, or by that many 256ths of a window.
    AdvanceALittle(u8),
    AdvanceShare(u8),
    StepBack(u64),
    StepBackShare(u8),
    GoTo(u64),
    /// To the reading that the latest denial named, or so many nanoseconds beside it.
    GoToHint(i8),
    Shrink,
}

fuzz_target!(|input: Input| {
    let [limit, window] = [input.limit, input.window].map(|(number, by)| number >> (by % 64));
    let Ok(rate) = Rate::new(limit, Duration::from_nanos(window)) else {
        assert!(limit == 0 || window == 0);
        return;
    };
    run(SlidingLog::new(rate), &input.operations);
    match FixedSlidingLog::<13>::with_array(rate) {
        Ok(log) => run(log, &input.operations),
        Err(QuotaError::LimitAboveCapacity { limit: refused, capacity: 13 }) => assert!(refused == limit && limit > 13),
        Err(error) => panic!("{error}"),
    }
});

/// Every admission that was not given back, by the reading it counts at.
struct Model {
    limit: u128,
    window: u128,
    admitted: Vec<(u64, u64)>,
    latest: u64,
}

impl Model {
    fn used(&self, now: u128) -> u128 {
        let counts = |(at, _): &&(u64, u64)| u128::from(*at) + self.window > now;
        self.admitted.iter().filter(counts).map(|(_, cost)| u128::from(*cost)).sum()
    }

    fn give_back(&mut self, taken_at: u64, mut owed: u64) {
        for (_, held) in self.admitted.iter_mut().filter(|(at, _)| *at == taken_at) {
            let returned = owed.min(*held);
            *held -= returned;
            owed -= returned;
        }
    }
}

fn run<R: Runs>(mut log: SlidingLog<R>, operations: &[Operation]) {
    let (limit, window) = (log.rate().tokens(), log.rate().period_nanos());
    let mut model = Model { limit: limit.into(), window: window.into(), admitted: Vec::new(), latest: 0 };
    let share = |parts: u8| (u128::from(window) * u128::from(parts) / 256) as u64;
    let (mut now, mut hinted) = (0_u64, 0_u64);

    for operation in operations.iter().take(128) {
        let at = Nanos::new(now);
        let latest = model.latest.max(now);
        let free = (model.limit - model.used(latest.into())) as u64;
        let cost = match *operation {
            Operation::Acquire(cost) => cost,
            Operation::AcquireFew(cost) => u64::from(cost % 8),
            Operation::AcquireFree(more) => free.saturating_add_signed(more.into()),
            Operation::Refund(which, beside, cost) => {
                if !model.admitted.is_empty() {
                    let (taken_at, held) = model.admitted[usize::from(which) % model.admitted.len()];
                    let taken_at = taken_at.saturating_add((beside % 4).into());
                    let cost = if held == u64::MAX { cost } else { cost % (held + 1) };
                    // What has aged out may be gone or not: it counts for nothing either way.
                    model.give_back(taken_at, cost);
                    log.refund(Nanos::new(taken_at), cost);
                }
                continue;
            }
            Operation::Stray(taken_at, cost) => {
                model.give_back(taken_at, cost);
                log.refund(Nanos::new(taken_at), cost);
                continue;
            }
            Operation::Advance(span) => {
                now = now.saturating_add(span);
                continue;
            }
            Operation::AdvanceALittle(span) => {
                now = now.saturating_add(span.into());
                continue;
            }
            Operation::AdvanceShare(parts) => {
                now = now.saturating_add(share(parts));
                continue;
            }
            Operation::StepBack(span) => {
                now = now.saturating_sub(span);
                continue;
            }
            Operation::StepBackShare(parts) => {
                now = now.saturating_sub(share(parts));
                continue;
            }
            Operation::GoTo(reading) => {
                now = reading;
                continue;
            }
            Operation::GoToHint(off) => {
                now = hinted.saturating_add_signed(off.into());
                continue;
            }
            Operation::Shrink => {
                log.shrink();
                continue;
            }
        };
        let records = log.records();
        let peeked = log.peek_at(at, cost);
        let inspection = log.inspect_at(at);
        assert_eq!((inspection.level, inspection.capacity), (free, limit));
        let decision = log.try_acquire_at(at, cost);
        assert_eq!(peeked, decision);
        match decision {
            Ok(admitted) => {
                assert!(cost <= free);
                assert_eq!((admitted.remaining, admitted.at), (Remaining::Exactly(free - cost), Nanos::new(latest)));
                if cost > 0 {
                    model.admitted.push((latest, cost));
                    model.latest = latest;
                } else {
                    assert_eq!(log.records(), records);
                }
            }
            Err(Denied::CostExceedsLimit { .. }) => assert!(cost > limit && log.records() == records),
            Err(Denied::RateLimited { retry_after }) => {
                assert!(cost > free && cost <= limit && log.records() == records);
                let then = u128::from(now) + retry_after.as_nanos();
                let fits = |at: u128| model.used(at.max(latest.into())) + u128::from(cost) <= model.limit;
                assert!(fits(then) && !fits(then - 1), "the hint is {retry_after:?}");
                hinted = u64::try_from(then).unwrap_or(u64::MAX);
            }
            Err(other) => panic!("{other:?}"),
        }
        assert!(log.records() as u64 <= limit);
    }
    for (start, _) in &model.admitted {
        let inside = model.admitted.iter().filter(|(at, _)| at >= start && at - start < window);
        assert!(inside.map(|(_, cost)| u128::from(*cost)).sum::<u128>() <= model.limit);
    }
}
