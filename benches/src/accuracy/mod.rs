//! How many tokens a limiter hands out, and how many it should: every limiter beside an ideal one in whole numbers.

pub mod contestants;
pub mod grid;
pub mod hints;
pub mod ideal;
pub mod other_laws;
pub mod page;
pub mod patterns;

use contestants::Contestant;
use grid::Grid;
use ideal::{Ideal, Judge};
use patterns::Poll;

/// What came of one pattern, of one grid, of one limiter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Score {
    /// Requests.
    pub asked: u64,
    /// Tokens handed out.
    pub admitted: u64,
    /// Tokens that the ideal bucket hands out to the same pattern.
    pub exact: u64,
    /// The most tokens, over all spans of time, beyond the burst and what came within the span; a begun one counts.
    pub over: u64,
    /// The same as the time in which that much comes, in nanoseconds, begun ones counted whole: how much too early an admission was.
    pub early: u64,
    /// The most whole tokens that were there, by the ideal bucket and what this limiter had handed out, when it denied its request.
    pub withheld: u64,
    /// Requests denied for which enough tokens were there.
    pub wrong_denials: u64,
}

impl Score {
    /// The worse of two in each respect, and the sum of what is counted.
    pub fn worse(self, other: Self) -> Self {
        Self {
            asked: self.asked + other.asked,
            admitted: self.admitted + other.admitted,
            exact: self.exact + other.exact,
            over: self.over.max(other.over),
            early: self.early.max(other.early),
            withheld: self.withheld.max(other.withheld),
            wrong_denials: self.wrong_denials + other.wrong_denials,
        }
    }

    /// Whether nothing was handed out too much or denied wrongly.
    pub fn is_exact(&self) -> bool {
        self.over == 0 && self.wrong_denials == 0
    }
}

/// Asks one limiter, new and full, what a pattern asks; `None` where it cannot express the grid.
pub fn score(contestant: &Contestant, grid: &Grid, pattern: &[Poll]) -> Option<Score> {
    let mut limiter = (contestant.make)(grid)?;
    Some(judged(grid, pattern, |now, cost| limiter.take(now, cost)))
}

/// What `take`, asked for some tokens at a reading, makes of a pattern.
pub fn judged(grid: &Grid, pattern: &[Poll], mut take: impl FnMut(u64, u32) -> bool) -> Score {
    let (mut judge, mut alone) = (Judge::new(grid), Ideal::new(grid));
    for poll in pattern {
        for _ in 0..poll.most {
            let is_admitted = take(poll.at, poll.cost);
            judge.saw(poll.at, poll.cost, is_admitted);
            if !is_admitted {
                break;
            }
        }
        for _ in 0..poll.most {
            if !alone.take(poll.at, poll.cost) {
                break;
            }
        }
    }
    Score { exact: alone.admitted(), ..judge.score() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contestants::{OURS, RIVALS};
    use grid::GRIDS;

    /// Fewer polls than the record has, of everything.
    #[test]
    fn ours_are_exact_at_every_rate_and_pattern_whatever_the_clock_does() {
        for grid in &GRIDS {
            for (kind, polls) in patterns::all(grid, 8) {
                for ours in &OURS {
                    let score = score(ours, grid, &polls).expect("ours express every grid");
                    assert!(score.is_exact(), "{} {} {kind}: {score:?}", ours.name, grid.text);
                    assert!(score.asked > 0 && score.admitted > 0, "{} {kind}", grid.text);
                }
            }
        }
    }

    #[test]
    fn whoever_hands_out_too_much_or_too_little_is_found_out() {
        let grid = Grid { text: "10/1s", tokens: 10, period: 1_000_000_000, burst: 10 };
        let polls = patterns::named("before and after each token", &grid, 100);
        let mut ideal = Ideal::new(&grid);
        let right = judged(&grid, &polls, |now, cost| ideal.take(now, cost));
        assert!(right.is_exact() && right.admitted == right.exact);
        // A nanosecond too early where the token is not there yet, and one too late.
        let mut early = Ideal::new(&grid);
        assert_eq!(judged(&grid, &polls, |now, cost| early.take(now + now % 2, cost)).over, 1);
        let mut late = Ideal::new(&grid);
        let late = judged(&grid, &polls, |now, cost| late.take(now.saturating_sub(1), cost));
        assert!(late.over == 0 && late.wrong_denials > 50 && late.withheld == 1, "{late:?}");
    }

    #[test]
    fn rivals_are_polled_fairly() {
        // At a rate that a rival can express it is exact too, so the loop favours nobody.
        let grid = Grid { text: "1000000/1s", tokens: 1_000_000, period: 1_000_000_000, burst: 100 };
        let polls = patterns::named("before and after each token", &grid, 100);
        for rival in &RIVALS {
            let score = score(rival, &grid, &polls).expect("it expresses this");
            assert!(score.admitted * 10 > score.exact * 9, "{}: {score:?}", rival.name);
            if rival.name.starts_with("governor") {
                assert!(score.is_exact(), "{}: {score:?}", rival.name);
            }
        }
    }
}
