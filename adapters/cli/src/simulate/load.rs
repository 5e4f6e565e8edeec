//! When requests arrive: in whole numbers, so that a seed gives the same times everywhere.

use super::random::Random;
use super::scenario::{Arrivals, LoadPhase};

/// A time of one rate. A ramp is many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Nanoseconds.
    pub(super) from: u64,
    pub(super) to: u64,
    /// Millionths of a request a second.
    pub(super) rate: u64,
    pub(super) cost: u64,
    pub(super) is_random: bool,
    /// The phase that it is of.
    pub(super) phase: usize,
}

impl Piece {
    /// How much of requests arrive in it, in [`REQUEST`]s.
    fn amount(&self) -> u128 {
        u128::from(self.to - self.from) * u128::from(self.rate)
    }

    /// How many requests arrive in it; of random ones, on average.
    pub(super) fn arrivals(&self) -> u128 {
        self.amount() / REQUEST
    }
}

/// All phases up to `duration`, in order; those are in order, and begin before it.
pub(super) fn pieces(phases: &[LoadPhase], duration: u64) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let ends = phases.iter().skip(1).map(|phase| phase.from.get_ref().0).chain([duration]);
    for (index, (phase, to)) in phases.iter().zip(ends).enumerate() {
        let from = phase.from.get_ref().0;
        let first = phase.rate.get_ref().0;
        let last = phase.to_rate.map_or(first, |rate| rate.0);
        let steps = if first == last { 1 } else { STEPS.min(to - from) };
        // Times are below 2^60, rates below 2^50.
        let time = |step: u64| from + (u128::from(to - from) * u128::from(step) / u128::from(steps)) as u64;
        let rate = |step: u64| {
            let (into, all) = (i128::from(2 * step + 1), i128::from(2 * steps));
            (i128::from(first) + (i128::from(last) - i128::from(first)) * into / all) as u64
        };
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
                let time = piece.from + (self.mark / u128::from(piece.rate)) as u64;
                self.mark += self.distance();
                return Some((time, piece.cost));
            }
            self.mark -= piece.amount();
            self.piece = self.pieces.next();
        }
    }
}

/// A request, in millionths of a request a second times nanoseconds.
const REQUEST: u128 = 1_000_000 * 1_000_000_000;
const STEPS: u64 = 1_000;
