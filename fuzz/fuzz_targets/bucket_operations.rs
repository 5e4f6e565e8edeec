//! Operations on a token bucket, beside an ideal one in integers of any size.
#![no_main]

use core::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use num_bigint::BigInt;
use sluicegate_core::{BucketCell, BucketState, BucketStep, Denied, Nanos, Quota, QuotaError, Rate, Remaining};

#[derive(Arbitrary, Debug)]
struct Input {
    /// A number and how far to shift it down, for numbers of every size.
    tokens: (u64, u8),
    period: (u64, u8),
    burst: (u64, u8),
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Acquire(u64),
    /// All that is there, and this much more.
    AcquireLevel(i8),
    Refund(u64),
    Peek(u64),
    Advance(u64),
    /// By less than a second.
    AdvanceALittle(u32),
    StepBack(u32),
    GoTo(u64),
    /// To the reading that the latest denial named, or so many nanoseconds beside it.
    GoToHint(i8),
}

fuzz_target!(|input: Input| {
    let [tokens, period, burst] = [input.tokens, input.period, input.burst].map(|(number, by)| number >> (by % 64));
    let Ok(rate) = Rate::new(tokens, Duration::from_nanos(period)) else {
        assert!(tokens == 0 || period == 0);
        return;
    };
    let quota = match Quota::with_burst(rate, burst) {
        Ok(quota) => quota,
        Err(QuotaError::BurstTooLarge { largest, .. }) => {
            assert!(Quota::with_burst(rate, largest + 1).is_err());
            Quota::with_burst(rate, largest).unwrap()
        }
        Err(_) => return,
    };
    let step = BucketStep::new(quota);
    let cell = BucketCell::new();
    let mut state = BucketState::FULL;
    let mut ideal = Ideal::full(quota);
    let (mut now, mut hinted) = (0_u64, 0_u64);

    for operation in input.operations.iter().take(64) {
        let at = Nanos::new(now);
        let cost = match *operation {
            Operation::Acquire(cost) => cost,
            Operation::AcquireLevel(more) => step.inspect(state, at).level.saturating_add_signed(more.into()),
            Operation::Refund(cost) => {
                state = step.refund(state, cost);
                cell.refund(&step, cost);
                ideal.give_back(cost);
                continue;
            }
            Operation::Peek(cost) => {
                assert_eq!(cell.peek(&step, at, cost), step.try_acquire(state, at, cost).1);
                assert_eq!(cell.state(), state);
                continue;
            }
            Operation::Advance(span) => {
                now = now.saturating_add(span);
                continue;
            }
            Operation::AdvanceALittle(span) => {
                now = now.saturating_add(u64::from(span) % 1_000_000_000);
                continue;
            }
            Operation::StepBack(span) => {
                now = now.saturating_sub(span.into());
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
        };
        let before = state;
        let (after, decision) = step.try_acquire(before, at, cost);
        assert_eq!(cell.try_acquire(&step, at, cost), decision);
        assert_eq!(cell.state(), after);
        state = after;

        let level = ideal.level(seen(now));
        match decision {
            Ok(admitted) => {
                assert!(cost <= quota.capacity() && admitted.at == at);
                assert!(ideal.covers(&level, cost) || cost == 0, "admitted {cost} of {level}");
                if cost > 0 {
                    ideal.take(seen(now), cost);
                } else {
                    assert_eq!(after, before);
                }
                assert_eq!(admitted.remaining, Remaining::Exactly(step.inspect(after, at).level));
            }
            Err(denied) => {
                assert_eq!(after, before, "a denial writes nothing");
                match denied {
                    Denied::CostExceedsLimit { .. } => assert!(cost > quota.capacity()),
                    Denied::RateLimited { retry_after } => {
                        assert!(cost <= quota.capacity() && !retry_after.is_zero());
                        assert!(ideal.lacks(&level, cost), "denied {cost} of {level}");
                        let reading = Nanos::new(seen(now)) + retry_after;
                        if reading <= Nanos::HORIZON {
                            hinted = reading.as_u64();
                            assert!(step.try_acquire(state, reading, cost).1.is_ok(), "too early");
                            let early = Nanos::new(hinted - 1);
                            assert!(step.try_acquire(state, early, cost).1.is_err(), "too late");
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        let inspection = step.inspect(state, at);
        let level = ideal.level(seen(now)).max(BigInt::ZERO);
        assert!(inspection.level <= inspection.capacity && inspection.capacity == quota.capacity());
        assert!(ideal.covers(&level, inspection.level), "{} of {level}", inspection.level);
        assert!(ideal.lacks(&level, inspection.level.saturating_add(1)), "{} of {level}", inspection.level);
    }
});

/// A bucket with real-valued refill, in integers of any size: rationals over one denominator.
struct Ideal {
    /// What the numbers below are counted in: so many make a token.
    token: BigInt,
    /// What flows in in a nanosecond.
    flow: BigInt,
    capacity: BigInt,
    /// The level at the latest reading that something was taken at; beyond the capacity it does not count.
    level: BigInt,
    latest: u64,
    /// How far a decision may lie from the ideal, exclusively: 0 where the rate has an exact grid.
    slack: BigInt,
}

impl Ideal {
    fn full(quota: Quota) -> Self {
        let (tokens, period) = (BigInt::from(quota.rate().tokens()), BigInt::from(quota.rate().period_nanos()));
        let mut common = (tokens.clone(), period.clone());
        while common.1 != BigInt::ZERO {
            common = (common.1.clone(), common.0 % common.1);
        }
        let (tokens, period) = (tokens / &common.0, period / &common.0);
        let horizon = BigInt::from(seen(u64::MAX));
        let room = BigInt::from((1_u64 << 63) - 1);
        // 30 years and the capacity share 63 bits: in units of 1/period of a token if they fit, otherwise in those of the
        // finest power of two.
        let is_exact = &horizon * &tokens + quota.capacity() * &period <= room;
        let mut units = BigInt::from(1);
        let needed = (horizon * &tokens + &period - 1) / &period + quota.capacity();
        while !is_exact && &needed * &units * 2 <= room {
            units *= 2;
        }
        let token = &period * &units;
        let capacity = &token * quota.capacity();
        let slack = if is_exact { BigInt::ZERO } else { period };
        Self { flow: tokens * units, level: capacity.clone(), capacity, latest: 0, slack, token }
    }

    fn level(&self, now: u64) -> BigInt {
        (&self.level + self.refill(self.latest, now)).min(self.capacity.clone())
    }

    fn take(&mut self, now: u64, cost: u64) {
        let left = self.level(now) - &self.token * cost;
        self.level = left + self.refill(now, self.latest.max(now));
        self.latest = self.latest.max(now);
    }

    fn give_back(&mut self, cost: u64) {
        self.level += (&self.token * cost).min(self.capacity.clone());
    }

    fn refill(&self, from: u64, to: u64) -> BigInt {
        (BigInt::from(to) - BigInt::from(from)) * &self.flow
    }

    fn covers(&self, level: &BigInt, cost: u64) -> bool {
        let cost = &self.token * cost;
        *level >= cost || level + &self.slack > cost
    }

    fn lacks(&self, level: &BigInt, cost: u64) -> bool {
        level - &self.slack < &self.token * cost
    }
}

/// Past the horizon of 30 years time stands still.
fn seen(reading: u64) -> u64 {
    reading.min(30 * 31_557_600 * 1_000_000_000)
}
