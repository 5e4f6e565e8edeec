//! The ideal token bucket of the law: real-valued refill, in rationals of any size, and slow.
//!
//! It is written from the law and shares nothing with the crate: it keeps a level and the reading at which that was
//! the level, where the crate counts what was consumed since the origin.

use num_bigint::BigInt;
use num_rational::BigRational;
use sluicegate_core::{Inheritance, Nanos, Quota};

pub(crate) type Tokens = BigRational;

pub(crate) fn whole(number: impl Into<BigInt>) -> Tokens {
    Tokens::from_integer(number.into())
}

#[derive(Clone, Debug)]
pub(crate) struct Ideal {
    /// Tokens per nanosecond.
    rate: Tokens,
    pub(crate) capacity: Tokens,
    /// What it may owe.
    debt: Tokens,
    /// The level at the latest reading that something was taken at. What was given back since may have brought it above
    /// the capacity; it never counts beyond that.
    level: Tokens,
    latest: u64,
    /// How far a decision may lie from the ideal.
    pub(crate) slack: Tokens,
    /// One unit of the grid.
    unit: Tokens,
}

impl Ideal {
    pub(crate) fn full(quota: Quota) -> Self {
        Self {
            rate: Tokens::new(quota.rate().tokens().into(), quota.rate().period_nanos().into()),
            capacity: whole(quota.capacity()),
            debt: whole(quota.debt()),
            level: whole(quota.capacity()),
            latest: 0,
            slack: slack(quota),
            unit: unit(quota),
        }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.slack == whole(0)
    }

    /// The tokens at a reading. One before the latest lacks what flowed in between: below 0, that is how long to wait.
    pub(crate) fn level(&self, now: Nanos) -> Tokens {
        let level = self.level.clone() + self.refill(self.latest, seen(now));
        level.min(self.capacity.clone())
    }

    pub(crate) fn take(&mut self, now: Nanos, cost: u64) {
        let now_seen = seen(now);
        let left = self.level(now) - whole(cost);
        if now_seen >= self.latest {
            self.level = left;
            self.latest = now_seen;
        } else {
            self.level = left + self.refill(now_seen, self.latest);
        }
        self.forgive();
    }

    /// What is owed counts as far as a word does, which is more than 30 years bring.
    fn forgive(&mut self) {
        let least = &self.capacity + self.refill(0, self.latest) - whole(u64::MAX) * &self.unit;
        if self.level < least {
            self.level = least;
        }
    }

    pub(crate) fn give_back(&mut self, cost: u64) {
        self.level += whole(cost).min(&self.capacity + &self.debt);
    }

    /// How much a debit may take at a reading, beside what is held: not a whole number, and perhaps below 0.
    pub(crate) fn room(&self, now: Nanos, held: u64) -> Tokens {
        self.level(now) + &self.debt - whole(held)
    }

    /// Goes on under another quota from `now`, with what the table of [`Inheritance`] says.
    pub(crate) fn change(&mut self, now: Nanos, quota: Quota, inheritance: Inheritance) {
        let (level, old) = (self.level(now), self.capacity.clone());
        *self = Self { latest: seen(now), ..Self::full(quota) };
        let owed = level.clone().min(whole(0));
        self.level = match inheritance {
            Inheritance::Level => level,
            Inheritance::Spent => (&self.capacity - (old - level)).max(owed),
            Inheritance::Fraction if level > whole(0) => level * &self.capacity / old,
            Inheritance::Fraction => level,
            Inheritance::Full => self.capacity.clone(),
            Inheritance::Empty => owed,
            other => panic!("{other:?} is new"),
        }
        .min(self.capacity.clone());
        self.forgive();
    }

    /// What flows in from one reading to another; negative when that is the earlier one.
    pub(crate) fn refill(&self, from: u64, to: u64) -> Tokens {
        whole(BigInt::from(to) - BigInt::from(from)) * &self.rate
    }

    /// The reading at which the level, if nothing is taken, is `cost`: not a whole number.
    pub(crate) fn instant_of(&self, now: Nanos, cost: u64) -> Tokens {
        whole(seen(now)) + (whole(cost) - self.level(now)) / &self.rate
    }
}

/// A reading as the law has it: past the horizon time stands still.
pub(crate) fn seen(now: Nanos) -> u64 {
    now.as_u64().min(30 * 31_557_600 * 1_000_000_000)
}

/// Zero where the quota has a grid that is exact, and otherwise one unit of the finest grid of powers of two.
pub(crate) fn slack(quota: Quota) -> Tokens {
    let (unit, is_exact) = grid(quota);
    if is_exact { whole(0) } else { unit }
}

/// One unit of the quota's grid.
pub(crate) fn unit(quota: Quota) -> Tokens {
    grid(quota).0
}

fn grid(quota: Quota) -> (Tokens, bool) {
    let rate = Tokens::new(quota.rate().tokens().into(), quota.rate().period_nanos().into());
    let capacity = whole(quota.capacity()) + whole(quota.debt());
    let horizon = whole(seen(Nanos::MAX));
    let room = whole((1_u64 << 63) - 1);

    // The coarsest grid on which a nanosecond generates a whole number of units is the rate's denominator.
    if (&horizon * &rate + &capacity) * whole(rate.denom().clone()) <= room {
        return (whole(rate.denom().clone()).recip(), true);
    }
    let tokens = (horizon * rate).ceil() + capacity;
    let mut units = whole(1);
    while &tokens * &units * whole(2) <= room {
        units *= whole(2);
    }
    (units.recip(), false)
}
