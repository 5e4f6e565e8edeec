//! A step as plain words, to be kept where a whole step cannot be written at once.

use super::{BucketStep, Grid};
use crate::{Quota, Rate};

/// Words in a step.
pub(crate) const STEP_WORDS: usize = 11;

impl BucketStep {
    pub(crate) const fn to_words(self) -> [u64; STEP_WORDS] {
        let quota = self.quota();
        let rate = quota.rate();
        let [units_per_token, high, low, whole, duration, worth, shifts] = self.grid.to_words();
        [
            rate.tokens(),
            rate.period_nanos(),
            quota.capacity(),
            quota.debt(),
            units_per_token,
            high,
            low,
            whole,
            duration,
            worth,
            shifts,
        ]
    }

    /// The step that [`to_words`](Self::to_words) took apart.
    #[inline(always)]
    pub(crate) fn from_words(words: &[u64; STEP_WORDS]) -> Option<Self> {
        let &[tokens, period, capacity, debt, units_per_token, high, low, whole, duration, worth, shifts] = words;
        let quota = Quota::from_checked(Rate::from_words(tokens, period)?, capacity, debt);
        let grid = Grid::from_words([units_per_token, high, low, whole, duration, worth, shifts], capacity, debt);
        Some(Self::from_parts(grid, quota))
    }
}
