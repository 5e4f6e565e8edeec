//! What a leaky bucket is built with.

use core::fmt;

use crate::rate::{QuotaError, Rate};
use crate::token_bucket::Grid;

/// A rate of departures and how many tokens may wait for theirs.
///
/// What exists can be enforced: whatever cannot be counted for 30 years is an error when it is built.
///
/// ```
/// use sluicegate_core::{PER_SECOND, Pacing, Rate};
///
/// let uploads = Pacing::new(Rate::new(10, PER_SECOND)?, 20)?;
/// assert_eq!((uploads.queue(), uploads.slack(), uploads.largest_cost()), (20, 0, 20));
/// let lenient = uploads.with_slack(3)?;
/// assert_eq!(lenient.slack(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pacing {
    rate: Rate,
    queue: u64,
    slack: u64,
    largest_cost: u64,
}

impl Pacing {
    /// Departures at `rate`, with up to `queue` tokens ahead of whoever waits; 0 admits only what can depart at once.
    ///
    /// There is no slack, and one item may cost as much as the queue holds, and at least 1.
    ///
    /// # Errors
    /// [`QuotaError::RateTooHigh`] or [`QuotaError::PacingTooLarge`].
    pub const fn new(rate: Rate, queue: u64) -> Result<Self, QuotaError> {
        Self { rate, queue, slack: 0, largest_cost: if queue > 0 { queue } else { 1 } }.checked()
    }

    /// The same, with up to `tokens` made up for after time in which too little came.
    ///
    /// With a slack of s, an idle bucket lets s + 1 tokens go at once, and over any span at most s more than the rate. With
    /// none, which is the default, lost time is lost and output is strictly paced.
    ///
    /// # Errors
    /// [`QuotaError::PacingTooLarge`].
    pub const fn with_slack(self, tokens: u64) -> Result<Self, QuotaError> {
        Self { slack: tokens, ..self }.checked()
    }

    /// The same, with items of up to `cost`.
    ///
    /// # Errors
    /// [`QuotaError::ZeroBurst`] for 0, and [`QuotaError::PacingTooLarge`].
    pub const fn with_largest_cost(self, cost: u64) -> Result<Self, QuotaError> {
        if cost == 0 {
            return Err(QuotaError::ZeroBurst);
        }
        Self { largest_cost: cost, ..self }.checked()
    }

    /// Tokens per period.
    #[inline]
    pub const fn rate(self) -> Rate {
        self.rate
    }

    /// The most tokens that an item may have to wait behind.
    #[inline]
    pub const fn queue(self) -> u64 {
        self.queue
    }

    /// The most tokens that are made up for.
    #[inline]
    pub const fn slack(self) -> u64 {
        self.slack
    }

    /// The most that one item may cost; at least 1.
    #[inline]
    pub const fn largest_cost(self) -> u64 {
        self.largest_cost
    }

    const fn checked(self) -> Result<Self, QuotaError> {
        match self.grid() {
            Ok(_) => Ok(self),
            Err(error) => Err(error),
        }
    }

    /// The units to count in. All that a state can be ahead of the units generated has room in them.
    pub(super) const fn grid(self) -> Result<Grid, QuotaError> {
        let tokens = self.queue.saturating_add(self.slack).saturating_add(self.largest_cost);
        match Grid::new(self.rate, tokens, 0) {
            Err(QuotaError::BurstTooLarge { largest, .. }) => Err(QuotaError::PacingTooLarge { tokens, largest }),
            grid => grid,
        }
    }
}

impl fmt::Debug for Pacing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, queue, slack, largest_cost } = self;
        write!(f, "Pacing({rate} queue {queue} slack {slack} largest cost {largest_cost})")
    }
}
