//! When a limiter says to come back, and when that is right.

use super::contestants::Contestant;
use super::grid::Grid;
use super::ideal::Ideal;

/// How wrong hints were, in nanoseconds: worst cases over several denials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HintError {
    /// Denials with a hint.
    pub hints: u64,
    /// How much too early who comes back then comes: the limiter denies until so much later.
    pub early: u64,
    /// How much too late: the limiter would have admitted so much before.
    pub late: u64,
    /// The most that the hint is off the ideal bucket's instant, either way, beyond its tolerance.
    pub off: u64,
}

/// Spends a new limiter's burst, is denied, and looks when the limiter really admits; `None` where it cannot express the grid or
/// gives no hints.
pub fn hint_error(contestant: &Contestant, grid: &Grid) -> Option<HintError> {
    let token = grid.token_time();
    let mut error = HintError::default();
    for start in [0, token * 7 + token / 3] {
        for later in [0, token / 3, token - 1] {
            for cost in [1, grid.burst.div_ceil(2), grid.burst] {
                let spent = || -> Option<_> {
                    let mut limiter = (contestant.make)(grid)?;
                    while limiter.take(start, 1) {}
                    Some(limiter)
                };
                let now = start + later;
                let Some(hint) = spent()?.hint(now, cost) else { continue };
                let admits = |wait: u64| spent().is_some_and(|mut limiter| limiter.take(now + wait, cost));
                let own = first(admits, hint);
                let mut ideal = Ideal::new(grid);
                while ideal.take(start, 1) {}
                let exact = [1, -1].map(|off| first(|wait| ideal.holds(now + wait, off, cost), hint));
                error.hints += 1;
                error.early = error.early.max(own.saturating_sub(hint));
                error.late = error.late.max(hint.saturating_sub(own));
                error.off = error.off.max(exact[0].saturating_sub(hint).max(hint.saturating_sub(exact[1])));
            }
        }
    }
    (error.hints > 0).then_some(error)
}

/// The first wait for which `holds`, which holds for all longer ones; found from `guess` outwards.
fn first(holds: impl Fn(u64) -> bool, guess: u64) -> u64 {
    let (mut low, mut high) = if holds(guess) {
        (0, guess)
    } else {
        let mut step = 1;
        while !holds(guess.saturating_add(step)) && step < 1 << 60 {
            step *= 2;
        }
        (guess, guess.saturating_add(step))
    };
    // The answer is above `low` or 0, and at most `high`.
    if holds(low) {
        return low;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::contestants::{OURS, RIVALS};
    use crate::accuracy::grid::GRIDS;

    #[test]
    fn ours_are_right_to_the_nanosecond() {
        for grid in GRIDS.iter().filter(|grid| grid.burst <= 100) {
            let error = hint_error(&OURS[0], grid).expect("ours gives hints");
            assert_eq!((error.early, error.late, error.off), (0, 0, 0), "{}", grid.text);
        }
    }

    #[test]
    fn a_wrong_hint_is_found() {
        // It only refills after a microsecond, and says so to nobody.
        let grid = Grid { text: "100000000/s", tokens: 100_000_000, period: 1_000_000_000, burst: 10 };
        let error = hint_error(&RIVALS[2], &grid).expect("ratelimit gives hints");
        assert!(error.early > 900, "{error:?}");
    }

    #[test]
    fn the_first_is_found_on_either_side() {
        for guess in [0, 1, 99, 100, 101, 5_000] {
            assert_eq!(first(|wait| wait >= 100, guess), 100);
            assert_eq!(first(|_| true, guess), 0);
        }
    }
}
