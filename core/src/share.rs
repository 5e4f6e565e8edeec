//! A part of a whole.

use core::fmt;

/// A part of a whole, from one in a million up to all of it: a share of calls that failed, say.
///
/// ```
/// use sluicegate_core::Share;
///
/// assert_eq!(Share::percent(5)?, Share::parts_per_million(50_000)?);
/// assert_eq!(Share::percent(5)?.to_string(), "5 %");
/// assert!(Share::percent(5)?.is_reached(1, 20) && !Share::percent(5)?.is_reached(1, 21));
/// assert!(Share::percent(0).is_err() && Share::percent(101).is_err());
/// # Ok::<(), sluicegate_core::ShareError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// All of it.
    pub const ALL: Self = Self(MILLION);
    /// Half of it.
    pub const HALF: Self = Self(MILLION / 2);

    /// So many hundredths: 1 to 100.
    ///
    /// # Errors
    /// [`ShareError`] for any other number.
    pub const fn percent(percent: u32) -> Result<Self, ShareError> {
        Self::parts_per_million(percent.saturating_mul(MILLION / 100))
    }

    /// So many millionths: 1 to 1 000 000.
    ///
    /// # Errors
    /// [`ShareError`] for any other number.
    pub const fn parts_per_million(parts: u32) -> Result<Self, ShareError> {
        if parts == 0 || parts > MILLION { Err(ShareError { parts_per_million: parts }) } else { Ok(Self(parts)) }
    }

    /// So many hundredths of a whole that stands in this crate's own code; all of it for what is no share.
    pub(crate) const fn known_percent(percent: u32) -> Self {
        match Self::percent(percent) {
            Ok(share) => share,
            Err(_) => Self::ALL,
        }
    }

    /// The millionths.
    pub const fn as_parts_per_million(self) -> u32 {
        self.0
    }

    /// Whether `part` is this share of `whole` or more; exact. Nothing is a share of nothing.
    pub const fn is_reached(self, part: u64, whole: u64) -> bool {
        whole != 0 && part as u128 * MILLION as u128 >= whole as u128 * self.0 as u128
    }

    /// This share of `whole`, rounded down; exact.
    pub const fn of(self, whole: u64) -> u64 {
        (whole as u128 * self.0 as u128 / MILLION as u128) as u64
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 10_000, self.0 % 10_000);
        match rest {
            0 => write!(f, "{whole} %"),
            _ => {
                let (mut digits, mut rest) = (4, rest);
                while rest % 10 == 0 {
                    rest /= 10;
                    digits -= 1;
                }
                write!(f, "{whole}.{rest:0digits$} %")
            }
        }
    }
}

/// No share: it has to be above 0 and at most all, 1 to 1 000 000 millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShareError {
    /// What was asked for, in millionths.
    pub parts_per_million: u32,
}

impl fmt::Display for ShareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} millionths are no share: it has to be 1 to 1000000 of them", self.parts_per_million)
    }
}

impl core::error::Error for ShareError {}

const MILLION: u32 = 1_000_000;
