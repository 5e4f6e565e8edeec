//! The rates and bursts that accuracy is measured at.

use sluicegate_threads::Nanos;

/// Some tokens per some nanoseconds, and the most at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// As it is written.
    pub text: &'static str,
    /// Tokens per period.
    pub tokens: u32,
    /// Nanoseconds.
    pub period: u64,
    /// The most tokens at once.
    pub burst: u32,
}

impl Grid {
    /// The nanoseconds, begun ones counted whole, until `tokens` have come since a reading of 0.
    pub fn until(&self, tokens: u64) -> u64 {
        let nanos = (u128::from(tokens) * u128::from(self.period)).div_ceil(u128::from(self.tokens));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }

    /// The whole nanoseconds of a token; at least 1.
    pub fn token_time(&self) -> u64 {
        (self.period / u64::from(self.tokens)).max(1)
    }

    /// Whether both a nanosecond's refill and a token are whole numbers of one unit, of which there are fewer than 2^63 in 30 years.
    ///
    /// If not, whoever counts in 64 bits has to round somewhere, and answers are judged with a quarter of a nanosecond's tolerance.
    pub const fn has_common_unit(&self) -> bool {
        let (mut common, mut rest) = (self.period, self.tokens as u64);
        while rest > 0 {
            (common, rest) = (rest, common % rest);
        }
        let (tokens, period) = ((self.tokens as u64 / common) as u128, (self.period / common) as u128);
        Nanos::HORIZON.as_u64() as u128 * tokens + self.burst as u128 * period < 1 << 63
    }

    /// The quota as ours has it.
    ///
    /// # Panics
    /// If it is outside what a quota expresses.
    pub fn quota(&self) -> sluicegate_threads::Quota {
        sluicegate_threads::Quota::with_burst(self.rate(), self.burst.into()).expect("a quota within range")
    }

    /// The rate as ours has it.
    ///
    /// # Panics
    /// If it is outside what a rate expresses.
    pub fn rate(&self) -> sluicegate_threads::Rate {
        let period = core::time::Duration::from_nanos(self.period);
        sluicegate_threads::Rate::new(self.tokens.into(), period).expect("a rate within range")
    }
}

/// From a token in a month to one in a nanosecond. Many do not divide their period into whole nanoseconds, and 3, 7, 997, 999 983
/// and 999 999 937 are primes.
pub const GRIDS: [Grid; 17] = [
    Grid { text: "1 per 30 days", tokens: 1, period: 30 * DAY, burst: 2 },
    Grid { text: "1 per day", tokens: 1, period: DAY, burst: 3 },
    Grid { text: "1 per hour", tokens: 1, period: 3_600 * SECOND, burst: 5 },
    Grid { text: "7 per minute", tokens: 7, period: 60 * SECOND, burst: 7 },
    Grid { text: "1/s", tokens: 1, period: SECOND, burst: 1 },
    Grid { text: "3/s", tokens: 3, period: SECOND, burst: 10 },
    Grid { text: "10/s", tokens: 10, period: SECOND, burst: 100 },
    Grid { text: "997/s", tokens: 997, period: SECOND, burst: 100 },
    Grid { text: "86399 per day", tokens: 86_399, period: DAY, burst: 100 },
    Grid { text: "999983/s", tokens: 999_983, period: SECOND, burst: 100 },
    Grid { text: "1000000/s", tokens: 1_000_000, period: SECOND, burst: 1_000 },
    Grid { text: "7000000/s", tokens: 7_000_000, period: SECOND, burst: 1_000 },
    Grid { text: "150000000/s", tokens: 150_000_000, period: SECOND, burst: 1_000 },
    Grid { text: "300000000/s", tokens: 300_000_000, period: SECOND, burst: 1_000 },
    Grid { text: "700000000/s", tokens: 700_000_000, period: SECOND, burst: 1_000 },
    Grid { text: "999999937/s", tokens: 999_999_937, period: SECOND, burst: 1_000 },
    Grid { text: "1000000000/s", tokens: 1_000_000_000, period: SECOND, burst: 1_000 },
];

/// Nanoseconds in one.
pub const SECOND: u64 = 1_000_000_000;

/// Nanoseconds in one.
pub const DAY: u64 = 86_400 * SECOND;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_there_once_all_of_it_has_come() {
        let grid = Grid { text: "7 per minute", tokens: 7, period: 60 * SECOND, burst: 7 };
        assert_eq!([0, 1, 7].map(|tokens| grid.until(tokens)), [0, 8_571_428_572, 60 * SECOND]);
    }

    #[test]
    fn some_rates_have_a_unit_in_common_with_time() {
        let has = |text| GRIDS.iter().find(|grid| grid.text == text).expect("a grid").has_common_unit();
        assert!(["1 per 30 days", "7 per minute", "1000000000/s"].map(has).into_iter().all(|has| has));
        assert!(!["997/s", "999999937/s"].map(has).into_iter().any(|has| has));
    }
}
