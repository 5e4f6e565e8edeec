//! What a law is, and what the options of all of them have in common.

use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;

use super::ClosedWindow;
use crate::Share;

/// How a limit follows what was measured: a state machine that is told of one window after the other.
///
/// # Contract
///
/// - [`limit`](Self::limit) MUST be within [`bounds`](Self::bounds). Whoever applies it holds it there, and at 1 or more.
/// - `bounds` MUST stay what they are.
/// - [`update`](Self::update) MUST NOT use the limiter that it is the law of, nor block: a shared limiter calls it under its lock.
///
/// ```
/// use core::ops::RangeInclusive;
/// use sluicegate_core::{ClosedWindow, ConcurrencyLaw};
///
/// /// Half of the most at night, if nobody objects.
/// struct Fixed(u32);
///
/// impl ConcurrencyLaw for Fixed {
///     fn limit(&self) -> u32 {
///         self.0
///     }
///
///     fn bounds(&self) -> RangeInclusive<u32> {
///         1..=100
///     }
///
///     fn update(&mut self, window: &ClosedWindow) -> u32 {
///         self.0 = if window.dropped > 0 { 50 } else { 100 };
///         self.0
///     }
/// }
/// assert_eq!(Fixed(100).update(&ClosedWindow::default()), 100);
/// ```
pub trait ConcurrencyLaw {
    /// The limit in force.
    fn limit(&self) -> u32;

    /// The least and the most that the limit can be.
    fn bounds(&self) -> RangeInclusive<u32>;

    /// Goes by one more window, and returns the limit from now on.
    fn update(&mut self, window: &ClosedWindow) -> u32;
}

/// Why there is no such law. It is the configuration's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LawOptionsError {
    /// The least limit is 0, which would admit nothing and so never learn anything; or they are out of order.
    Limits {
        /// The least.
        least: u32,
        /// The one to begin with.
        initial: u32,
        /// The most.
        most: u32,
    },
    /// It would never grow.
    NoIncrease,
    /// All of the limit would be left after a call was dropped.
    NoBackoff,
    /// The latency that is tolerated is less than the baseline, or more than ten times as much.
    Tolerance {
        /// What was asked for.
        percent: u32,
    },
    /// The least baseline is zero or above the most, or the most is longer than 30 years.
    Baseline {
        /// The least.
        least: Duration,
        /// The most.
        most: Duration,
    },
}

impl fmt::Display for LawOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limits { least, initial, most } => write!(
                f,
                "limits of {least} at least, {initial} at first, {most} at most: the least has to be 1 or more, and none below the one before"
            ),
            Self::NoIncrease => f.write_str("an increase of 0: it has to be 1 or more"),
            Self::NoBackoff => f.write_str("a backoff to 100 %: it has to be less"),
            Self::Tolerance { percent } => write!(f, "a tolerance of {percent} %: it has to be 100 to 1000"),
            Self::Baseline { least, most } => {
                write!(
                    f,
                    "a baseline of {least:?} to {most:?}: the least has to be above 0 s, the most no less and up to 30 years"
                )
            }
        }
    }
}

impl core::error::Error for LawOptionsError {}

/// Between which limits a law moves, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) least: u32,
    pub(super) initial: u32,
    pub(super) most: u32,
}

impl Limits {
    pub(super) const DEFAULT: Self = Self { least: 1, initial: 10, most: 1_000 };

    pub(super) const fn check(self, backoff: Share) -> Result<(), LawOptionsError> {
        let Self { least, initial, most } = self;
        if least == 0 || initial < least || most < initial {
            return Err(LawOptionsError::Limits { least, initial, most });
        }
        if backoff.as_parts_per_million() == Share::ALL.as_parts_per_million() {
            return Err(LawOptionsError::NoBackoff);
        }
        Ok(())
    }

    pub(super) const fn bounds(self) -> RangeInclusive<u32> {
        self.least..=self.most
    }
}

/// What is left of a limit after a call was dropped, by default.
pub(super) const BACKOFF: Share = Share::known_percent(90);
