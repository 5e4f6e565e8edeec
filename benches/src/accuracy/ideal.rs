//! The ideal token bucket, in whole numbers of parts of a token so small that nothing is ever rounded.

use super::Score;
use super::grid::Grid;

/// A bucket that refills by its definition: `tokens` per `period`, counted in `period`ths of a token.
///
/// All numbers stay below 2^110: a rate of 2^30, readings of 2^60 and bursts of 2^10 in periods of 2^52.
#[derive(Clone, Copy, Debug)]
pub struct Ideal {
    tokens: i128,
    period: i128,
    burst: i128,
    /// What comes in the time by which an answer may be early or late.
    tolerance: i128,
    /// All that was taken, as if from a bucket that had been full at the latest reading it was not: what has come must
    /// have passed this for the bucket to be full.
    spent: i128,
    admitted: u64,
}

impl Ideal {
    /// A full one.
    pub fn new(grid: &Grid) -> Self {
        let Grid { tokens, period, burst, .. } = *grid;
        let (tokens, period) = (i128::from(tokens), i128::from(period));
        let tolerance = if grid.has_common_unit() { 0 } else { tokens / 4 };
        Self { tokens, tolerance, period, burst: i128::from(burst) * period, spent: 0, admitted: 0 }
    }

    /// Takes `cost` tokens, or none.
    pub fn take(&mut self, now: u64, cost: u32) -> bool {
        let is_there = self.level(now) >= i128::from(cost) * self.period;
        if is_there {
            self.force(now, cost);
        }
        is_there
    }

    /// Whether `cost` tokens are there, so many tolerances after `now`.
    pub fn holds(&self, now: u64, tolerances: i128, cost: u32) -> bool {
        self.level(now) + tolerances * self.tolerance >= i128::from(cost) * self.period
    }

    /// Tokens taken.
    pub const fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Takes whatever is there.
    fn force(&mut self, now: u64, cost: u32) {
        self.spent = self.spent.max(self.come(now)) + i128::from(cost) * self.period;
        self.admitted += u64::from(cost);
    }

    /// What is there, in parts; below 0 where more was taken than may be.
    fn level(&self, now: u64) -> i128 {
        self.burst - (self.spent - self.come(now)).max(0)
    }

    fn come(&self, now: u64) -> i128 {
        i128::from(now) * self.tokens
    }
}

/// Watches what a limiter does, and keeps how wrong it was at most.
///
/// The bucket here loses what the limiter handed out, whether or not it was there. Below 0 it tells by how much the law was
/// broken: the most over all spans of time that end now. Where it holds enough and the limiter denies, that denial is wrong.
/// Each is judged at the reading that the limiter was given; what is too much, at the latest reading that it ever was.
///
/// At rates without a unit that counts both tokens and nanoseconds ([`Grid::has_common_unit`]), whatever would be right a quarter of a
/// nanosecond earlier or later is right: ours promises instants to a fifth of one there.
#[derive(Clone, Copy, Debug)]
pub struct Judge {
    bucket: Ideal,
    latest: u64,
    score: Score,
}

impl Judge {
    /// Nothing was asked yet.
    pub fn new(grid: &Grid) -> Self {
        Self { bucket: Ideal::new(grid), latest: 0, score: Score::default() }
    }

    /// What the limiter said when it was asked for `cost` tokens.
    pub fn saw(&mut self, now: u64, cost: u32, is_admitted: bool) {
        let Self { bucket, latest, score } = self;
        *latest = now.max(*latest);
        score.asked += 1;
        if is_admitted {
            score.admitted += u64::from(cost);
            bucket.force(now, cost);
            let missing = (-bucket.level(*latest) - bucket.tolerance).max(0).unsigned_abs();
            let most = |so_far: &mut u64, unit: i128| {
                *so_far = (*so_far).max(u64::try_from(missing.div_ceil(unit.unsigned_abs())).unwrap_or(u64::MAX));
            };
            most(&mut score.over, bucket.period);
            most(&mut score.early, bucket.tokens);
            return;
        }
        let there = bucket.level(now) - bucket.tolerance;
        if there >= i128::from(cost) * bucket.period {
            score.wrong_denials += 1;
            score.withheld = score.withheld.max(u64::try_from(there / bucket.period).unwrap_or(u64::MAX));
        }
    }

    /// How wrong it was. What the ideal bucket hands out to the same requests is not in it.
    pub const fn score(&self) -> Score {
        self.score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_is_the_definition() {
        let grid = Grid { text: "7/3s", tokens: 7, period: 3_000_000_000, burst: 2 };
        let mut ideal = Ideal::new(&grid);
        assert!(ideal.take(0, 2) && !ideal.take(0, 1));
        // A seventh of three seconds is 428 571 428.57... ns.
        assert!(!ideal.take(428_571_428, 1) && ideal.take(428_571_429, 1) && !ideal.take(428_571_429, 1));
        // What is rounded up once is not lost: the third token after the burst is there at 3/7 of three seconds.
        assert!(ideal.take(857_142_858, 1) && !ideal.take(1_285_714_285, 1) && ideal.take(1_285_714_286, 1));
        assert!(!ideal.take(u64::MAX, 3) && ideal.take(u64::MAX, 2) && !ideal.take(u64::MAX, 1));
        assert_eq!(ideal.admitted(), 7);
    }

    #[test]
    fn what_is_too_much_is_judged_at_the_latest_reading_and_a_denial_at_its_own() {
        let grid = Grid { text: "1/s", tokens: 1, period: 1_000_000_000, burst: 2 };
        let mut judge = Judge::new(&grid);
        judge.saw(10_000_000_000, 1, true);
        // The other token of the burst is there, at 10 s; by this late reading only half of it is.
        judge.saw(9_500_000_000, 1, false);
        judge.saw(9_500_000_000, 1, true);
        assert_eq!(judge.score(), Score { asked: 3, admitted: 2, ..Score::default() });
    }

    #[test]
    fn too_much_is_counted_over_the_worst_span() {
        let grid = Grid { text: "1/s", tokens: 1, period: 1_000_000_000, burst: 2 };
        let mut judge = Judge::new(&grid);
        for (at, is_admitted) in [(0, true), (0, true), (0, true), (500_000_000, true), (9_000_000_000, true)] {
            judge.saw(at, 1, is_admitted);
        }
        // Four within half a second, where two and a half may be.
        assert_eq!((judge.score().over, judge.score().early), (2, 1_500_000_000));
        judge.saw(9_000_000_000, 1, false);
        judge.saw(9_500_000_000, 2, false);
        assert_eq!((judge.score().wrong_denials, judge.score().withheld), (1, 1));
    }
}
