//! A rate with a burst and perhaps a debt, and the limit that may be one.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::arithmetic::greatest_common_divisor;
use crate::nanos::nanos_to_duration;
use crate::rate::{PER_DAY, PER_HOUR, PER_MINUTE, PER_SECOND, QuotaError};
use crate::text::{self, ParseError};
use crate::token_bucket::Grid;
use crate::{Rate, Share};

/// How much may pass: a [`Rate`] and a capacity, the burst; and how far costs known only afterwards may overdraw it.
///
/// A quota that exists can be enforced exactly: whatever cannot be represented is an error when it is built, never a
/// silent rounding. Without a burst of its own the capacity is the rate's number of tokens.
///
/// Text is `TOKENS/PERIOD [burst CAPACITY] [debt TOKENS]`, as in `7/3s burst 20`; see [`Rate`] for the first part. A burst
/// that equals the tokens and a debt of 0 are not printed.
///
/// ```
/// use sluicegate_core::{PER_SECOND, Quota, Rate, quota};
///
/// let quota = Quota::with_burst(Rate::new(100, PER_SECOND)?, 500)?;
/// assert_eq!(quota.to_string(), "100/1s burst 500");
/// assert_eq!("100/1s burst 500".parse::<Quota>()?, quota);
///
/// // Checked by the compiler:
/// const LOGIN: Quota = quota!("10/1m");
/// assert_eq!(LOGIN.capacity(), 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    rate: Rate,
    capacity: u64,
    debt: u64,
}

impl Quota {
    /// `rate`, with its number of tokens as the capacity.
    ///
    /// # Errors
    /// [`QuotaError::RateTooHigh`] or [`QuotaError::BurstTooLarge`].
    pub const fn new(rate: Rate) -> Result<Self, QuotaError> {
        Self::with_burst(rate, rate.tokens())
    }

    /// `rate`, with `burst` tokens of capacity; at least 1.
    ///
    /// # Errors
    /// [`QuotaError::ZeroBurst`], [`QuotaError::RateTooHigh`] or [`QuotaError::BurstTooLarge`].
    pub const fn with_burst(rate: Rate, burst: u64) -> Result<Self, QuotaError> {
        Self::checked(rate, burst, 0)
    }

    /// So many millionths of it: of the rate exactly, unless that takes numbers beyond 64 bits, and of the capacity rounded down, but at least `least_capacity`,
    /// or 1. The debt stays. A million is this quota itself, and 0 counts as 1.
    pub(crate) fn scaled(self, parts_per_million: u32, least_capacity: u64) -> Self {
        const ALL: u64 = 1_000_000;
        if u64::from(parts_per_million) >= ALL {
            return self;
        }
        let parts = u64::from(parts_per_million.max(1));
        let capacity = (u128::from(self.capacity) * u128::from(parts) / u128::from(ALL)) as u64;
        // tokens * parts / (period * ALL): over the same period where that divides, and in lowest terms.
        let (tokens, all) = lowest(self.rate.tokens(), ALL);
        let (parts, all) = lowest(parts, all);
        let (more, all) = match all {
            1 => (u128::from(parts), 1),
            all => {
                let (parts, period) = lowest(parts, self.rate.period_nanos());
                (u128::from(parts), u128::from(all) * u128::from(period))
            }
        };
        let period = if all == 1 { u128::from(self.rate.period_nanos()) } else { all };
        let (tokens, period) = into_words(u128::from(tokens) * more, period);
        let rate = Rate::from_words(tokens, period);
        // Less of everything than this quota has, which can be counted.
        let scaled = rate
            .and_then(|rate| Self::checked(rate, capacity.max(least_capacity).clamp(1, self.capacity), self.debt).ok());
        scaled.unwrap_or(self)
    }

    /// A quota that was one before.
    #[inline(always)]
    pub(crate) const fn from_checked(rate: Rate, capacity: u64, debt: u64) -> Self {
        Self { rate, capacity, debt }
    }

    const fn checked(rate: Rate, capacity: u64, debt: u64) -> Result<Self, QuotaError> {
        match Grid::new(rate, capacity, debt) {
            Ok(_) => Ok(Self { rate, capacity, debt }),
            Err(error) => Err(error),
        }
    }

    /// `tokens` per second, and as many at once.
    ///
    /// # Errors
    /// As [`Rate::new`] and [`Quota::new`].
    pub const fn per_second(tokens: u64) -> Result<Self, QuotaError> {
        Self::per(tokens, PER_SECOND)
    }

    /// `tokens` per minute, and as many at once.
    ///
    /// # Errors
    /// As [`Rate::new`] and [`Quota::new`].
    pub const fn per_minute(tokens: u64) -> Result<Self, QuotaError> {
        Self::per(tokens, PER_MINUTE)
    }

    /// `tokens` per hour, and as many at once.
    ///
    /// # Errors
    /// As [`Rate::new`] and [`Quota::new`].
    pub const fn per_hour(tokens: u64) -> Result<Self, QuotaError> {
        Self::per(tokens, PER_HOUR)
    }

    /// `tokens` per day of 24 hours, and as many at once.
    ///
    /// # Errors
    /// As [`Rate::new`] and [`Quota::new`].
    pub const fn per_day(tokens: u64) -> Result<Self, QuotaError> {
        Self::per(tokens, PER_DAY)
    }

    const fn per(tokens: u64, period: Duration) -> Result<Self, QuotaError> {
        match Rate::new(tokens, period) {
            Ok(rate) => Self::new(rate),
            Err(error) => Err(error),
        }
    }

    /// The same rate and debt with a capacity of `burst`.
    ///
    /// # Errors
    /// As [`Quota::with_burst`], or [`QuotaError::DebtTooLarge`].
    pub const fn burst(self, burst: u64) -> Result<Self, QuotaError> {
        Self::checked(self.rate, burst, self.debt)
    }

    /// The same rate and capacity, with a debt of up to `debt` tokens: 0, the default, is none.
    ///
    /// No request is admitted on debt. Only what turns out afterwards to have cost more than was taken for it, see
    /// [`TokenBucket::debit`](crate::TokenBucket::debit) and [`Reservation::settle`](crate::Reservation::settle), may
    /// overdraw the bucket so far; refill pays the debt off before anything is admitted again.
    ///
    /// ```
    /// use sluicegate_core::quota;
    /// assert_eq!(quota!("100/1s").with_debt(50)?.to_string(), "100/1s debt 50");
    /// # Ok::<(), sluicegate_core::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// [`QuotaError::DebtTooLarge`].
    pub const fn with_debt(self, debt: u64) -> Result<Self, QuotaError> {
        Self::checked(self.rate, self.capacity, debt)
    }

    /// Reads `TOKENS/PERIOD [burst CAPACITY] [debt TOKENS]`, in a constant too; see [`quota!`](crate::quota!).
    ///
    /// # Errors
    /// [`ParseError`] names the text and what is accepted.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        text::parse_quota(text)
    }

    /// Tokens per period.
    #[inline]
    pub const fn rate(self) -> Rate {
        self.rate
    }

    /// The most tokens that can be taken at once; at least 1.
    #[inline]
    pub const fn capacity(self) -> u64 {
        self.capacity
    }

    /// The most tokens that the bucket may owe; mostly 0.
    #[inline]
    pub const fn debt(self) -> u64 {
        self.debt
    }

    /// How long an empty bucket that owes nothing takes to be full, if nobody takes anything meanwhile: capacity / rate, rounded up to a
    /// nanosecond; [`Duration::MAX`] where it is longer than that.
    ///
    /// ```
    /// use core::time::Duration;
    /// use sluicegate_core::{Share, quota};
    ///
    /// const API: sluicegate_core::Quota = quota!("100/1s burst 500");
    /// const RECOVERY: Duration = API.recovery_time();
    /// assert_eq!(RECOVERY, Duration::from_secs(5));
    /// assert_eq!(API.recovery_time_to(Share::HALF), Duration::from_millis(2_500));
    /// ```
    pub const fn recovery_time(self) -> Duration {
        self.recovery_time_to(Share::ALL)
    }

    /// How long an empty bucket that owes nothing takes until it holds this share of its capacity, as
    /// [`recovery_time`](Self::recovery_time).
    ///
    /// Fractions of tokens count: a share that is no whole number of tokens shows in an [`Inspection`](crate::Inspection) with the next one.
    pub const fn recovery_time_to(self, share: Share) -> Duration {
        const ALL: u128 = Share::ALL.as_parts_per_million() as u128;
        let (parts, tokens) = (share.as_parts_per_million() as u128, self.rate.tokens() as u128);
        // capacity * period / tokens * parts / ALL, rounded once: what is left of each division goes on to the next.
        let (nanos, rest) = divided(self.capacity as u128 * self.rate.period_nanos() as u128, tokens);
        let (whole, nanos) = divided(nanos, ALL);
        let last = (nanos * tokens + rest) * parts;
        nanos_to_duration(whole * parts + last.div_ceil(tokens * ALL))
    }
}

impl FromStr for Quota {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rate.fmt(f)?;
        if self.capacity != self.rate.tokens() {
            write!(f, " burst {}", self.capacity)?;
        }
        if self.debt != 0 {
            write!(f, " debt {}", self.debt)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quota({self})")
    }
}

/// Reads a [`Quota`] when the program is compiled; a mistake is a compile error.
///
/// ```
/// use sluicegate_core::{Quota, quota};
/// const API: Quota = quota!("300/1m burst 50");
/// assert_eq!(API.rate().tokens(), 300);
/// ```
///
/// ```compile_fail
/// let _ = sluicegate_core::quota!("300 a minute");
/// ```
#[macro_export]
macro_rules! quota {
    ($text:expr) => {
        const {
            match $crate::Quota::parse($text) {
                Ok(quota) => quota,
                Err(_) => panic!("not a quota: write TOKENS/PERIOD [burst CAPACITY], such as 300/1m or 7/3s burst 20"),
            }
        }
    };
}

/// What a limiter is built with: no limit, nothing at all, or a quota.
///
/// It is a type and not a number, so that 0 cannot be read both ways. Text is `off`, `deny` or a [`Quota`]'s.
///
/// ```
/// use sluicegate_core::{Limit, quota};
///
/// assert_eq!("off".parse(), Ok(Limit::Unlimited));
/// assert_eq!("deny".parse(), Ok(Limit::DenyAll));
/// assert_eq!("7/3s burst 20".parse(), Ok(Limit::Quota(quota!("7/3s burst 20"))));
/// assert!("0".parse::<Limit>().unwrap_err().to_string().contains("`off`"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Everything is admitted; no clock is read and nothing is counted.
    Unlimited,
    /// Nothing is admitted.
    DenyAll,
    /// What the quota allows is admitted.
    Quota(Quota),
}

impl Limit {
    /// Reads `off`, `deny` or a quota, in a constant too.
    ///
    /// # Errors
    /// [`ParseError`] names the text and what is accepted.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        text::parse_limit(text)
    }

    /// The quota, where there is one.
    #[inline]
    pub const fn quota(self) -> Option<Quota> {
        match self {
            Self::Quota(quota) => Some(quota),
            Self::Unlimited | Self::DenyAll => None,
        }
    }
}

impl From<Quota> for Limit {
    fn from(quota: Quota) -> Self {
        Self::Quota(quota)
    }
}

impl FromStr for Limit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("off"),
            Self::DenyAll => f.write_str("deny"),
            Self::Quota(quota) => quota.fmt(f),
        }
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Limit({self})")
    }
}

/// How often `b` goes into `a`, and what is left.
const fn divided(a: u128, b: u128) -> (u128, u128) {
    (a / b, a % b)
}

/// `a` and `b` without their common factors.
const fn lowest(a: u64, b: u64) -> (u64, u64) {
    let common = greatest_common_divisor(a, b);
    (a / common, b / common)
}

/// `a / b` in words: as it is where both fit, and otherwise as close as words come. Neither is 0, nor becomes it.
fn into_words(mut a: u128, mut b: u128) -> (u64, u64) {
    const MOST: u128 = u64::MAX as u128;
    while a.min(b) > MOST {
        (a, b) = (a >> 1, b >> 1);
    }
    /// The smaller one divided so that the larger one fits beside it, and the larger one to match.
    const fn fitting(small: u128, large: u128) -> (u64, u64) {
        let fitted = small / (large / MOST + 1);
        let fitted = if fitted == 0 { 1 } else { fitted };
        // Both factors are words.
        let matching = large / small * fitted + large % small * fitted / small;
        (fitted as u64, if matching > MOST { u64::MAX } else { matching as u64 })
    }
    if b > MOST {
        fitting(a, b)
    } else if a > MOST {
        let (b, a) = fitting(b, a);
        (a, b)
    } else {
        (a as u64, b as u64)
    }
}
