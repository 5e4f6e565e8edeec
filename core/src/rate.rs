//! Tokens per period.

use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;
use core::time::Duration;

use crate::nanos::duration_to_nanos;
use crate::text::{self, ParseError};

/// One second, as the period of a [`Rate`].
pub const PER_SECOND: Duration = Duration::from_secs(1);
/// One minute, as the period of a [`Rate`].
pub const PER_MINUTE: Duration = Duration::from_secs(60);
/// One hour, as the period of a [`Rate`].
pub const PER_HOUR: Duration = Duration::from_secs(3_600);
/// One day of 24 hours, as the period of a [`Rate`].
pub const PER_DAY: Duration = Duration::from_secs(86_400);

/// A number of tokens **per** period: `300/1m` is three hundred a minute.
///
/// The pair is kept as given, not reduced: for a window `5/1s` and `300/1m` are different limits. Both numbers are at
/// least 1. Periods have a resolution of 1 ns and reach 584 years.
///
/// Text is `TOKENS/PERIOD`, the period being a number and one of `ns us ms s m h d`; the number may be left out when it
/// is 1. It prints with the largest unit that divides the period: `300/60s` prints as `300/1m`.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{PER_MINUTE, Rate};
///
/// let rate = Rate::new(300, PER_MINUTE)?;
/// assert_eq!(rate.tokens(), 300);
/// assert_eq!(rate.period(), Duration::from_secs(60));
/// assert_eq!(rate.to_string(), "300/1m");
/// assert_eq!("300/1m".parse::<Rate>()?, rate);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    tokens: NonZeroU64,
    period: NonZeroU64,
}

impl Rate {
    /// Stands where a rate is needed and never used.
    pub(crate) const ONE_PER_SECOND: Self =
        Self { tokens: NonZeroU64::MIN, period: NonZeroU64::new(1_000_000_000).unwrap() };

    /// `tokens` per `period`.
    ///
    /// # Errors
    /// [`QuotaError::ZeroTokens`], [`QuotaError::ZeroPeriod`], or [`QuotaError::PeriodTooLong`] past 584 years.
    pub const fn new(tokens: u64, period: Duration) -> Result<Self, QuotaError> {
        if period.as_nanos() > u64::MAX as u128 {
            return Err(QuotaError::PeriodTooLong { period });
        }
        let Some(tokens) = NonZeroU64::new(tokens) else {
            return Err(QuotaError::ZeroTokens);
        };
        let Some(period) = NonZeroU64::new(duration_to_nanos(period)) else {
            return Err(QuotaError::ZeroPeriod);
        };
        Ok(Self { tokens, period })
    }

    #[inline(always)]
    pub(crate) fn from_words(tokens: u64, period: u64) -> Option<Self> {
        Some(Self { tokens: NonZeroU64::new(tokens)?, period: NonZeroU64::new(period)? })
    }

    /// Reads `TOKENS/PERIOD`, in a constant too.
    ///
    /// # Errors
    /// [`ParseError`] names the text and what is accepted.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        text::parse_rate(text)
    }

    /// Tokens per [`period`](Self::period); at least 1.
    #[inline]
    pub const fn tokens(self) -> u64 {
        self.tokens.get()
    }

    /// The period; at least 1 ns.
    #[inline]
    pub const fn period(self) -> Duration {
        Duration::from_nanos(self.period.get())
    }

    /// The period in nanoseconds; at least 1.
    #[inline]
    pub const fn period_nanos(self) -> u64 {
        self.period.get()
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = text::largest_unit(self.period_nanos());
        write!(f, "{}/{count}{unit}", self.tokens)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rate({self})")
    }
}

/// Why a rate, quota or window cannot be built. It is a mistake in the configuration, found before anything starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QuotaError {
    /// The number of tokens is 0. Say [`Limit::DenyAll`](crate::Limit::DenyAll) to admit nothing.
    ZeroTokens,
    /// The period is 0.
    ZeroPeriod,
    /// The period is longer than 2^64 ns, about 584 years.
    PeriodTooLong {
        /// What was asked for.
        period: Duration,
    },
    /// The burst is 0, so nothing could ever pass. Say [`Limit::DenyAll`](crate::Limit::DenyAll) to admit nothing.
    ZeroBurst,
    /// More tokens a nanosecond than 30 years of uptime fit into 63 bits: above about 9.7 per ns.
    RateTooHigh {
        /// What was asked for.
        rate: Rate,
    },
    /// The burst is too large to be counted beside 30 years of this rate in 63 bits.
    BurstTooLarge {
        /// What was asked for.
        burst: u64,
        /// The largest burst that this rate leaves room for.
        largest: u64,
    },
    /// The debt is too large to be counted beside the burst and 30 years of this rate in 63 bits.
    DebtTooLarge {
        /// What was asked for.
        debt: u64,
        /// The largest debt that the rate and the burst leave room for.
        largest: u64,
    },
    /// What may wait, the slack and the largest cost of a leaky bucket are together too large to be counted beside 30 years
    /// of this rate in 63 bits.
    PacingTooLarge {
        /// What was asked for, all together.
        tokens: u64,
        /// The most that this rate leaves room for, all together.
        largest: u64,
    },
    /// Window number and count do not fit into 64 bits for 30 years: the window is too short for so high a limit.
    WindowTooShort {
        /// What was asked for.
        rate: Rate,
        /// The shortest window, in nanoseconds, that works for this limit over any number of shards.
        shortest: u64,
    },
    /// Window number and two counts do not fit into 64 bits for 30 years: the limit is too high for so short a window.
    LimitAboveCounter {
        /// What was asked for.
        rate: Rate,
        /// The largest limit that a sliding counter keeps with this window; at least 3.
        largest: u64,
    },
    /// A sliding log in place has fewer records than its limit may need.
    LimitAboveCapacity {
        /// The limit that was asked for.
        limit: u64,
        /// The records there are, which is the largest limit.
        capacity: usize,
    },
    /// A window has no burst apart from its limit; say `TOKENS/PERIOD` only.
    BurstOnWindow {
        /// What was asked for.
        burst: u64,
    },
    /// A window cannot be in debt.
    DebtOnWindow {
        /// What was asked for.
        debt: u64,
    },
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroTokens => {
                f.write_str("0 tokens per period: the least is 1; use `deny` to admit nothing, `off` for no limit")
            }
            Self::ZeroPeriod => f.write_str("a period of 0: the least is 1ns"),
            Self::PeriodTooLong { period } => {
                write!(f, "a period of {} s: the longest is {} ns, about 584 years", period.as_secs(), u64::MAX)
            }
            Self::ZeroBurst => {
                f.write_str("a burst of 0: the least is 1; use `deny` to admit nothing, `off` for no limit")
            }
            Self::RateTooHigh { rate } => {
                write!(f, "a rate of {rate}: the highest is about 9.7 tokens per ns (9700000000/1s)")
            }
            Self::BurstTooLarge { burst, largest } => {
                write!(f, "a burst of {burst}: the largest at this rate is {largest}")
            }
            Self::DebtTooLarge { debt, largest } => {
                write!(f, "a debt of {debt}: the largest at this rate and burst is {largest}")
            }
            Self::PacingTooLarge { tokens, largest } => {
                write!(f, "a queue, slack and largest cost of {tokens} together: the most at this rate is {largest}")
            }
            Self::WindowTooShort { rate, shortest } => {
                write!(f, "a window of {rate}: the shortest window with a limit of {} is {shortest}ns", rate.tokens)
            }
            Self::LimitAboveCounter { rate, largest } => {
                write!(f, "a sliding counter of {rate}: the largest limit with this window is {largest}")
            }
            Self::LimitAboveCapacity { limit, capacity } => {
                write!(f, "a limit of {limit} with a capacity of {capacity} records: the largest is {capacity}")
            }
            Self::BurstOnWindow { burst } => {
                write!(f, "a burst of {burst} on a window: a window admits its limit and has no other burst")
            }
            Self::DebtOnWindow { debt } => {
                write!(f, "a debt of {debt} on a window: a window has no debt, only a token bucket may")
            }
        }
    }
}

impl core::error::Error for QuotaError {}
