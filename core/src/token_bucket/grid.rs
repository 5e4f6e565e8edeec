//! Choosing the unit in which a bucket counts.

use crate::Nanos;
use crate::arithmetic::{Estimate, Fraction, greatest_common_divisor};
use crate::rate::{QuotaError, Rate};

/// The units of one quota: `1 / units_per_token` of a token each, generated at a rate that is known exactly.
///
/// Counting nanoseconds per token would round every rate that does not divide a second, and counting tokens would lose
/// fractions at each refill. Here `accrued(now)`, the units generated since the clock's origin, is computed from the
/// absolute reading each time, so that nothing accumulates. With a rate of N tokens per P ns and D units per token:
///
/// - D is `P / gcd(N, P)` where that leaves 30 years of units, the capacity and the debt below 2^63. Then a nanosecond generates a
///   whole number of units and every instant is exact.
/// - Otherwise D is the largest power of two that does; a unit is then generated in 0.1 to 0.2 ns, and in more only
///   where the capacity takes decades to refill. `accrued` rounds down to whole units, once, at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    /// D.
    pub(crate) units_per_token: u64,
    /// Units a full bucket holds.
    pub(crate) capacity_units: u64,
    /// Units that an empty bucket may owe.
    pub(crate) debt_units: u64,
    /// Units per nanosecond.
    accrual: Fraction,
    /// Nanoseconds per unit, about.
    duration: Estimate,
    /// Tokens per unit, about.
    worth: Estimate,
}

impl Grid {
    pub(crate) const fn new(rate: Rate, capacity: u64, debt: u64) -> Result<Self, QuotaError> {
        if capacity == 0 {
            return Err(QuotaError::ZeroBurst);
        }
        let (tokens, period) = (rate.tokens(), rate.period_nanos());
        let common = greatest_common_divisor(tokens, period);
        let (tokens, period) = (tokens / common, period / common);

        let span = capacity as u128 + debt as u128;
        let exact =
            (Nanos::HORIZON.as_u64() as u128 * tokens as u128).saturating_add(span.saturating_mul(period as u128));
        if exact <= UNITS_MAX {
            return Ok(Self::with(tokens as u128, 1, period, capacity, debt));
        }
        // Tokens generated in 30 years, rounded up: below 2^124 / 1.
        let generated = (Nanos::HORIZON.as_u64() as u128 * tokens as u128).div_ceil(period as u128);
        if generated >= UNITS_MAX {
            return Err(QuotaError::RateTooHigh { rate });
        }
        let room = (UNITS_MAX - generated) as u64;
        if capacity > room {
            return Err(QuotaError::BurstTooLarge { burst: capacity, largest: room });
        }
        if debt > room - capacity {
            return Err(QuotaError::DebtTooLarge { debt, largest: room - capacity });
        }
        let exponent = (UNITS_MAX / (generated + span)).ilog2();
        Ok(Self::with((tokens as u128) << exponent, period, 1 << exponent, capacity, debt))
    }

    /// `numerator / denominator` units a nanosecond. It is below 16, because 30 years (2^59.7 ns) of it stay below 2^63.
    const fn with(numerator: u128, denominator: u64, units_per_token: u64, capacity: u64, debt: u64) -> Self {
        Self {
            units_per_token,
            capacity_units: capacity * units_per_token,
            debt_units: debt * units_per_token,
            accrual: Fraction::new(numerator, denominator),
            duration: Estimate::new(denominator, numerator),
            worth: Estimate::new(1, units_per_token as u128),
        }
    }

    pub(super) const fn to_words(self) -> [u64; 7] {
        let [high, low, whole] = self.accrual.to_words();
        let (duration, duration_shift) = self.duration.to_words();
        let (worth, worth_shift) = self.worth.to_words();
        [self.units_per_token, high, low, whole, duration, worth, duration_shift | worth_shift << 8]
    }

    /// The grid that [`to_words`](Self::to_words) took apart, of a quota with this capacity and debt.
    #[inline(always)]
    pub(super) const fn from_words(words: [u64; 7], capacity: u64, debt: u64) -> Self {
        let [units_per_token, high, low, whole, duration, worth, shifts] = words;
        Self {
            units_per_token,
            // Neither wraps for the words of a grid, and no other words are ever given.
            capacity_units: capacity.wrapping_mul(units_per_token),
            debt_units: debt.wrapping_mul(units_per_token),
            accrual: Fraction::from_words([high, low, whole]),
            duration: Estimate::from_words(duration, shifts & 0xff),
            worth: Estimate::from_words(worth, shifts >> 8),
        }
    }

    /// Units generated from the origin to `now`, rounded down: exact, and at most 2^63.
    #[inline(always)]
    pub(crate) const fn accrued(&self, now: Nanos) -> u64 {
        self.accrual.times(now.within_horizon())
    }

    /// Units generated from the origin to `now`, rounded up: exact, and at most 2^63.
    #[inline(always)]
    pub(crate) const fn accrued_up(&self, now: Nanos) -> u64 {
        self.accrual.times_up(now.within_horizon())
    }

    /// The first reading, in nanoseconds, at which `accrued` is at least `units`.
    ///
    /// Past the horizon, where `accrued` no longer moves, it is the reading at which it would be, to within 2 ns.
    #[inline(always)]
    pub(crate) const fn first_reading_of(&self, units: u64) -> u64 {
        let reading = self.duration.times(units);
        if reading >= Nanos::HORIZON.as_u64() {
            return reading.saturating_add(1);
        }
        // The estimate is low by at most 2: one for itself, one for rounding up. Both checks run at once; a loop would
        // wait for each.
        let is_reached = self.accrual.times(reading) >= units;
        let is_reached_next = self.accrual.times(reading + 1) >= units;
        reading + if is_reached { 0 } else { 2 - is_reached_next as u64 }
    }

    /// The first reading at which `accrued_up` is at least `units`; past the horizon as `first_reading_of`, to within 3 ns.
    #[inline]
    pub(crate) const fn first_reading_up_of(&self, units: u64) -> u64 {
        // What is rounded up reaches `units` once more than `units - 1` were generated: where that many were, or 1 ns later.
        let reading = self.first_reading_of(units.saturating_sub(1));
        if self.accrued_up(Nanos::new(reading)) >= units { reading } else { reading.saturating_add(1) }
    }

    /// Whole tokens in `units`, rounded down.
    #[inline(always)]
    pub(crate) const fn whole_tokens(&self, units: u64) -> u64 {
        let tokens = self.worth.times(units);
        let rest = units - tokens * self.units_per_token;
        if rest < self.units_per_token { tokens } else { tokens + 1 }
    }
}

/// States and instants stay below 2^63, so that sums of two of them stay below 2^64.
const UNITS_MAX: u128 = (1 << 63) - 1;
