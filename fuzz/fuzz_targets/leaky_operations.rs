//! Operations on a leaky bucket, beside slots on the line of time in integers of any size.
#![no_main]

use core::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use num_bigint::BigInt;
use sluicegate_core::{
    Denied, LeakyBucket, LeakyBucketState, LeakyBucketStep, ManualClock, Nanos, Pacing, QuotaError, Rate,
};

#[derive(Arbitrary, Debug)]
struct Input {
    /// A number and how far to shift it down, for numbers of every size.
    tokens: (u64, u8),
    period: (u64, u8),
    queue: (u64, u8),
    slack: (u64, u8),
    largest: (u64, u8),
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Arrive(u64),
    ArriveOnes(u8),
    ArriveAndCancel(u8),
    Advance(u64),
    /// By less than a second.
    AdvanceALittle(u32),
    StepBack(u32),
    GoTo(u64),
    /// To the reading that the latest refusal named, or so many nanoseconds beside it.
    GoToHint(i8),
}

fuzz_target!(|input: Input| {
    let [tokens, period, queue, slack, largest] =
        [input.tokens, input.period, input.queue, input.slack, input.largest].map(|(number, by)| number >> (by % 64));
    let Ok(rate) = Rate::new(tokens, Duration::from_nanos(period)) else {
        assert!(tokens == 0 || period == 0);
        return;
    };
    let pacing = Pacing::new(rate, queue)
        .and_then(|pacing| pacing.with_slack(slack))
        .and_then(|pacing| pacing.with_largest_cost(largest.max(1)));
    let pacing = match pacing {
        Ok(pacing) => pacing,
        Err(QuotaError::PacingTooLarge { largest, .. }) => match Pacing::new(rate, largest / 2) {
            Ok(pacing) => pacing,
            Err(error) => panic!("{error}"),
        },
        Err(_) => return,
    };
    let mut bench = Bench {
        step: LeakyBucketStep::new(pacing),
        state: LeakyBucketState::IDLE,
        bucket: LeakyBucket::with_clock(pacing, ManualClock::new()),
        ideal: Ideal::idle(pacing),
        pacing,
        hinted: 0,
    };
    let mut now = 0_u64;
    for operation in input.operations.iter().take(64) {
        match *operation {
            Operation::Arrive(cost) => {
                bench.arrive(now, cost);
            }
            Operation::ArriveOnes(count) => {
                let level = bench.step.inspect(bench.state, Nanos::new(now)).level;
                for index in 0..u64::from(count) {
                    assert_eq!(bench.arrive(now, 1), index < level, "{index} of {level}");
                }
            }
            Operation::ArriveAndCancel(cost) => {
                if let Ok(departure) = bench.bucket.try_acquire_at(Nanos::new(now), cost.into()) {
                    bench.bucket.cancel(departure).expect("it is the newest");
                }
            }
            Operation::Advance(span) => now = now.saturating_add(span),
            Operation::AdvanceALittle(span) => now = now.saturating_add(u64::from(span) % 1_000_000_000),
            Operation::StepBack(span) => now = now.saturating_sub(span.into()),
            Operation::GoTo(reading) => now = reading,
            Operation::GoToHint(off) => now = bench.hinted.saturating_add_signed(off.into()),
        }
        assert_eq!(bench.bucket.state(), bench.state);
    }
});

struct Bench {
    step: LeakyBucketStep,
    state: LeakyBucketState,
    bucket: LeakyBucket<ManualClock>,
    ideal: Ideal,
    pacing: Pacing,
    hinted: u64,
}

impl Bench {
    fn arrive(&mut self, now: u64, cost: u64) -> bool {
        let at = Nanos::new(now);
        let before = self.state;
        let (after, decision) = self.step.try_acquire(before, at, cost);
        let shared = self.bucket.try_acquire_at(at, cost);
        assert_eq!(shared, decision);
        self.state = after;
        let (now, excess) = (seen(now), self.ideal.excess(seen(now)));
        match decision {
            Ok(departure) => {
                assert!(cost <= self.pacing.largest_cost() && departure.at >= at);
                if cost == 0 {
                    assert!(departure.is_immediate() && after == before);
                    return true;
                }
                assert!(excess <= self.ideal.unit, "behind too much");
                let virtual_at = BigInt::from(now) + departure.delay.as_nanos();
                if virtual_at <= BigInt::from(seen(u64::MAX)) {
                    let [ideal, latest] =
                        [BigInt::ZERO, self.ideal.unit.clone()].map(|late| self.ideal.departure(now, late));
                    assert!(ideal <= virtual_at && virtual_at <= latest, "{virtual_at} not in {ideal}..={latest}");
                }
                self.ideal.take(now, cost);
                true
            }
            Err(denied) => {
                assert_eq!(after, before, "a refusal writes nothing");
                match denied {
                    Denied::CostExceedsLimit { .. } => assert!(cost > self.pacing.largest_cost()),
                    Denied::RateLimited { retry_after } => {
                        assert!(cost <= self.pacing.largest_cost() && !retry_after.is_zero());
                        let is_exact = self.ideal.unit == BigInt::ZERO;
                        assert!(excess > BigInt::ZERO || (!is_exact && &excess + &self.ideal.unit > BigInt::ZERO));
                        let reading = Nanos::new(now) + retry_after;
                        if reading <= Nanos::HORIZON {
                            self.hinted = reading.as_u64();
                            assert!(self.step.try_acquire(before, reading, cost).1.is_ok(), "too early");
                            let early = Nanos::new(self.hinted - 1);
                            assert!(self.step.try_acquire(before, early, cost).1.is_err(), "too late");
                        }
                    }
                    other => panic!("{other:?}"),
                }
                false
            }
        }
    }
}

/// Slots on the line of time, counted in 1/N of a nanosecond, in which a token of N per P ns takes P.
struct Ideal {
    tokens: BigInt,
    period: BigInt,
    slack: BigInt,
    queue: BigInt,
    /// When the next free slot begins.
    next: BigInt,
    /// How far an instant may lie from the ideal: 0 where the rate has an exact grid.
    unit: BigInt,
}

impl Ideal {
    fn idle(pacing: Pacing) -> Self {
        let (tokens, period) = (BigInt::from(pacing.rate().tokens()), BigInt::from(pacing.rate().period_nanos()));
        let mut common = (tokens.clone(), period.clone());
        while common.1 != BigInt::ZERO {
            common = (common.1.clone(), common.0 % common.1);
        }
        let (tokens, period) = (tokens / &common.0, period / &common.0);
        let horizon = BigInt::from(seen(u64::MAX));
        let room = BigInt::from((1_u64 << 63) - 1);
        let capacity = BigInt::from(pacing.queue()) + pacing.slack() + pacing.largest_cost();
        let is_exact = &horizon * &tokens + &capacity * &period <= room;
        let mut units = BigInt::from(1);
        let needed = (horizon * &tokens + &period - 1) / &period + capacity;
        while !is_exact && &needed * &units * 2 <= room {
            units *= 2;
        }
        let unit = if is_exact { BigInt::ZERO } else { (&period + &units - 1) / &units };
        let (slack, queue) = (&period * pacing.slack(), &period * pacing.queue());
        let next = -(BigInt::from(1) << 300_u32);
        Self { tokens, period, slack, queue, next, unit }
    }

    fn slot(&self, now: u64) -> BigInt {
        (&self.tokens * now - &self.slack).max(self.next.clone())
    }

    /// In whole nanoseconds, if the slot begins so much later.
    fn departure(&self, now: u64, late: BigInt) -> BigInt {
        let slot = self.slot(now) + late;
        let up: BigInt = (&slot + &self.tokens - 1) / &self.tokens;
        // Division rounds to 0: below 0 it is before any reading anyway.
        up.max(now.into())
    }

    fn excess(&self, now: u64) -> BigInt {
        self.slot(now) - &self.tokens * now - &self.queue
    }

    fn take(&mut self, now: u64, cost: u64) {
        self.next = self.slot(now) + &self.period * cost;
    }
}

/// Past the horizon of 30 years time stands still.
fn seen(reading: u64) -> u64 {
    reading.min(30 * 31_557_600 * 1_000_000_000)
}
