//! Operations on a sliding counter, beside a map from window to what was taken in it.
#![no_main]

use core::time::Duration;
use std::collections::HashMap;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use num_bigint::BigInt;
use sluicegate_core::{
    Denied, Nanos, QuotaError, Rate, Remaining, SlidingCounterCell, SlidingCounterState, SlidingCounterStep,
};

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
    AcquireFew(u8),
    /// All that is free, and this much more.
    AcquireFree(i8),
    /// So much of an earlier admission.
    Refund(u8, u64),
    /// What was perhaps never taken.
    Stray(u64, u64),
    Advance(u64),
    /// By so many 256ths of a window.
    AdvanceShare(u8),
    /// So many windows ahead or back.
    Windows(i8),
    StepBack(u64),
    StepBackShare(u8),
    GoTo(u64),
    /// To the reading that the latest denial named, or so many nanoseconds beside it.
    GoToHint(i8),
    /// To the last reading of this window.
    Last,
}

fuzz_target!(|input: Input| {
    let [limit, window] = [input.limit, input.window].map(|(number, by)| number >> (by % 64));
    let Ok(rate) = Rate::new(limit, Duration::from_nanos(window)) else {
        assert!(limit == 0 || window == 0);
        return;
    };
    match SlidingCounterStep::new(rate) {
        Ok(step) => run(&step, &input.operations),
        Err(QuotaError::LimitAboveCounter { largest, .. }) => {
            assert!(largest >= 3 && largest < limit);
            let rate = |limit| Rate::new(limit, Duration::from_nanos(window)).unwrap();
            assert!(SlidingCounterStep::new(rate(largest + 1)).is_err());
            run(&SlidingCounterStep::new(rate(largest)).unwrap(), &input.operations);
        }
        Err(error) => panic!("{error}"),
    }
});

struct Model {
    limit: u64,
    window: u64,
    taken: HashMap<u64, u64>,
    latest: u64,
}

impl Model {
    fn in_window(&self, number: u64) -> u64 {
        self.taken.get(&number).copied().unwrap_or(0)
    }

    /// The window that a reading is taken in, and how far into it. Readings past the horizon are the caller's to cap.
    fn place(&self, reading: u128) -> (u64, u128) {
        let number = reading / u128::from(self.window);
        if number < self.latest.into() {
            return (self.latest, 0);
        }
        (number.try_into().unwrap(), reading % u128::from(self.window))
    }

    /// The estimate, multiplied by the window's length.
    fn estimate(&self, reading: u128) -> BigInt {
        let (number, elapsed) = self.place(reading);
        let previous = number.checked_sub(1).map_or(0, |before| self.in_window(before));
        BigInt::from(previous) * (u128::from(self.window) - elapsed)
            + BigInt::from(self.in_window(number)) * self.window
    }

    fn fits(&self, reading: u128, cost: u64) -> bool {
        cost == 0 || self.estimate(reading) + BigInt::from(cost) * self.window <= BigInt::from(self.limit) * self.window
    }

    fn give_back(&mut self, taken_at: u64, cost: u64) {
        if let Some(taken) = self.taken.get_mut(&(taken_at / self.window)) {
            *taken = taken.saturating_sub(cost);
        }
    }
}

fn run(step: &SlidingCounterStep, operations: &[Operation]) {
    let (limit, window) = (step.rate().tokens(), step.rate().period_nanos());
    let seen = |reading: u64| reading.min(30 * 31_557_600 * 1_000_000_000);
    let share = |parts: u8| (u128::from(window) * u128::from(parts) / 256) as u64;
    let cell = SlidingCounterCell::new();
    let mut state = SlidingCounterState::UNUSED;
    let mut model = Model { limit, window, taken: HashMap::new(), latest: 0 };
    // What was admitted where and given back nothing of, for the bound.
    let mut admissions: Vec<(u64, u64)> = Vec::new();
    let mut refunded = false;
    let (mut now, mut hinted) = (0_u64, 0_u64);

    for operation in operations.iter().take(128) {
        let at = Nanos::new(now);
        let reading = u128::from(seen(now));
        let inspection = step.inspect(state, at);
        let cost = match *operation {
            Operation::Acquire(cost) => cost,
            Operation::AcquireFew(cost) => u64::from(cost % 8),
            Operation::AcquireFree(more) => inspection.level.saturating_add_signed(more.into()),
            Operation::Refund(which, cost) => {
                if !admissions.is_empty() {
                    let (taken_at, held) = admissions[usize::from(which) % admissions.len()];
                    let cost = cost % (held + 1);
                    model.give_back(taken_at, cost);
                    state = step.refund(state, Nanos::new(taken_at), cost);
                    cell.refund(step, Nanos::new(taken_at), cost);
                    refunded = true;
                }
                continue;
            }
            Operation::Stray(taken_at, cost) => {
                model.give_back(seen(taken_at), cost);
                state = step.refund(state, Nanos::new(taken_at), cost);
                cell.refund(step, Nanos::new(taken_at), cost);
                refunded = true;
                continue;
            }
            Operation::Advance(span) => {
                now = now.saturating_add(span);
                continue;
            }
            Operation::AdvanceShare(parts) => {
                now = now.saturating_add(share(parts));
                continue;
            }
            Operation::Windows(windows) => {
                let span = window.saturating_mul(windows.unsigned_abs().into());
                now = if windows < 0 { now.saturating_sub(span) } else { now.saturating_add(span) };
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
            Operation::Last => {
                now = (now / window).saturating_mul(window).saturating_add(window - 1);
                continue;
            }
        };
        let before = state;
        assert_eq!(inspection.capacity, limit);
        assert!(model.fits(reading, inspection.level) && !model.fits(reading, inspection.level + 1));
        let (after, decision) = step.try_acquire(before, at, cost);
        assert_eq!(cell.peek(step, at, cost), decision);
        assert_eq!(cell.try_acquire(step, at, cost), decision);
        assert_eq!(cell.state(), after);
        state = after;
        match decision {
            Ok(admitted) => {
                assert!(model.fits(reading, cost));
                assert_eq!(admitted.remaining, Remaining::Exactly(inspection.level.saturating_sub(cost)));
                let number = model.place(reading).0;
                assert_eq!(admitted.at.as_u64(), now.max(number * window));
                if cost > 0 {
                    model.latest = number;
                    *model.taken.entry(number).or_default() += cost;
                    admissions.push((seen(admitted.at.as_u64()), cost));
                } else {
                    assert_eq!(after, before);
                }
            }
            Err(denied) => {
                assert_eq!(after, before, "a denial writes nothing");
                match denied {
                    Denied::CostExceedsLimit { .. } => assert!(cost > limit),
                    Denied::RateLimited { retry_after } => {
                        assert!(cost <= limit && !model.fits(reading, cost));
                        let then = reading + retry_after.as_nanos();
                        // Counts may be moved on to a window past the last one there is, where nothing else is left.
                        assert!(model.fits(then, cost) && !model.fits(then - 1, cost), "the hint is {retry_after:?}");
                        hinted = u64::try_from(then).unwrap_or(u64::MAX);
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    // Whatever was given back only makes less of it; but then more may have been admitted than is held.
    if !refunded {
        for (start, _) in &admissions {
            let inside = admissions.iter().filter(|(at, _)| at >= start && at - start < window);
            let held: u128 = inside.map(|(_, cost)| u128::from(*cost)).sum();
            let phase = u128::from((start % window).saturating_sub(1));
            let more = u128::from(limit) * phase / u128::from(window);
            assert!(held <= u128::from(limit) + more, "{held} of {limit} from {start}");
        }
    }
}
