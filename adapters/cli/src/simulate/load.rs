//! When requests arrive: in whole numbers, so that a seed gives the same times everywhere.
//!
//! While a rate lasts its arrivals are exact. What is left of a request when the next rate begins is rounded to a [`REQUEST`]th of it.

use super::random::Random;
use super::scenario::{Arrivals, LoadPhase};
use super::values::RequestRate;

/// A time of one rate. A ramp is many of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Nanoseconds.
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) rate: RequestRate,
    pub(super) cost: u64,
    pub(super) is_random: bool,
    /// The phase that it is of.
    pub(super) phase: usize,
}

impl Piece {
    /// How many requests arrive in it; of random ones, on average. Times are below 2^60, and so are periods.
    pub(super) fn arrivals(&self) -> u128 {
        self.requests_by_period() / u128::from(self.rate.period)
    }

    /// How much of requests arrive in it, in [`REQUEST`]s. A plan has no more than 2^26 arrivals.
    fn amount(&self) -> u128 {
        self.requests_by_period() * REQUEST / u128::from(self.rate.period)
    }

    fn requests_by_period(&self) -> u128 {
        u128::from(self.to - self.from) * u128::from(self.rate.requests)
    }
}

/// All phases up to `duration`, in order; those are in order, and begin before it.
pub(super) fn pieces(phases: &[LoadPhase], duration: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let ends = phases.iter().skip(1).map(|phase| phase.from.get_ref().0).chain([duration]);
    for (index, (phase, to)) in phases.iter().zip(ends).enumerate() {
        let from = phase.from.get_ref().0;
        let first = *phase.rate.get_ref();
        let last = phase.to_rate.unwrap_or(first);
        let is_ramp = !is_same(first, last);
        let steps = if is_ramp { STEPS.min(to - from) } else { 1 };
        // Times are below 2^60.
        let time = |step: u64| from + (u128::from(to - from) * u128::from(step) / u128::from(steps)) as u64;
        let rate = |step: u64| if is_ramp { between(first, last, step, steps) } else { first };
        pieces.extend((0..steps).map(|step| Piece {
            from: time(step),
            to: time(step + 1),
            rate: rate(step),
            cost: phase.cost.as_ref().map_or(1, |cost| cost.get_ref().0),
            is_random: phase.arrivals == Arrivals::Random,
            phase: index,
        }));
    }
    pieces
}

fn is_same(one: RequestRate, other: RequestRate) -> bool {
    u128::from(one.requests) * u128::from(other.period) == u128::from(other.requests) * u128::from(one.period)
}

/// The rate in the middle of a step of a ramp, rounded down to a whole number of requests per [`RAMP_PERIOD`].
fn between(first: RequestRate, last: RequestRate, step: u64, steps: u64) -> RequestRate {
    // At most one a nanosecond, and so at most 2^60.
    let requests = |rate: RequestRate| i128::from(rate.requests) * i128::from(RAMP_PERIOD) / i128::from(rate.period);
    let (into, all) = (i128::from(2 * step + 1), i128::from(2 * steps));
    let requests = requests(first) + (requests(last) - requests(first)) * into / all;
    RequestRate { requests: requests as u64, period: RAMP_PERIOD }
}

/// The times of arrivals, and what each costs.
///
/// Rates are summed up over time, and a request arrives wherever the sum has come to the next mark. Marks are one request apart, or, of random
/// arrivals, as far as a Poisson process' are.
#[derive(Debug)]
pub(super) struct ArrivalTimes<'p> {
    pieces: std::slice::Iter<'p, Piece>,
    piece: Option<&'p Piece>,
    /// From the beginning of the piece to the next mark.
    mark: u128,
    random: Random,
}

impl<'p> ArrivalTimes<'p> {
    pub(super) fn new(pieces: &'p [Piece], random: Random) -> Self {
        let mut pieces = pieces.iter();
        let piece = pieces.next();
        let mut times = Self { pieces, piece, mark: 0, random };
        times.mark = match piece {
            // In the middle of its share of time, so that as many arrive as the rate says.
            Some(piece) if !piece.is_random => REQUEST / 2,
            _ => times.distance(),
        };
        times
    }

    fn distance(&mut self) -> u128 {
        match self.piece {
            Some(piece) if piece.is_random => self.random.exponential(REQUEST),
            _ => REQUEST,
        }
    }
}

impl Iterator for ArrivalTimes<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        loop {
            let piece = self.piece?;
            if self.mark < piece.amount() {
                // Below the amount, so before its end.
                let passed = self.mark * u128::from(piece.rate.period) / (u128::from(piece.rate.requests) * REQUEST);
                let time = piece.from + passed as u64;
                self.mark += self.distance();
                return Some((time, piece.cost));
            }
            self.mark -= piece.amount();
            self.piece = self.pieces.next();
        }
    }
}

/// Into so many parts a request is divided. 2^26 of them, times a period of 30 years, are within 128 bits; and in a multiple of 100 ms there is a
/// whole number of them at any rate per 1 s, 1 min or 1 h, and so nothing to be rounded.
const REQUEST: u128 = 3_600_000_000_000;
/// Nanoseconds: as long as fits, so that slow ramps are smooth too.
const RAMP_PERIOD: u64 = 1_000_000_000_000_000_000;
const STEPS: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(from: u64, to: u64, requests: u64, period: u64) -> Piece {
        Piece { from, to, rate: RequestRate { requests, period }, cost: 1, is_random: false, phase: 0 }
    }

    fn times(pieces: &[Piece]) -> Vec<u64> {
        ArrivalTimes::new(pieces, Random::new(0, 0)).map(|(time, _)| time).collect()
    }

    #[test]
    fn every_arrival_is_in_the_middle_of_its_share_of_time() {
        // 7 per 3 ns would be more than one a nanosecond; 7 per 30 ns in 3000 ns are 700, the k-th at (k + 1/2) * 30 / 7.
        let found = times(&[piece(5, 3_005, 7, 30)]);
        assert_eq!(found, (0..700).map(|index| 5 + (2 * index + 1) * 30 / 14).collect::<Vec<u64>>());
    }

    #[test]
    fn nothing_is_lost_between_rates() {
        // 1.4 requests, none for a while, and 2.5: the second comes where the sum is 1.5.
        let found = times(&[piece(0, 1_400, 1, 1_000), piece(1_400, 2_000, 0, 1), piece(2_000, 4_500, 1, 1_000)]);
        assert_eq!(found, [500, 2_100, 3_100, 4_100]);
    }

    #[test]
    fn the_longest_and_the_fastest_fit() {
        let years = 946_728_000_000_000_000;
        assert_eq!(times(&[piece(0, years, 2, years)]), [years / 4, years / 4 * 3]);
        let fastest = piece(years - 50, years, years, years);
        assert_eq!(times(&[fastest]), (years - 50..years).collect::<Vec<_>>());
        let most = [piece(0, years, 50_000_000, years)];
        assert_eq!(ArrivalTimes::new(&most, Random::new(0, 0)).last(), Some((years - years / 100_000_000, 1)));
    }
}
