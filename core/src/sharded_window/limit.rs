//! A limit that a window can enforce.

use core::fmt;
use core::str::FromStr;

use super::step::{Layout, WindowStep};
use crate::text::{self, ParseError};
use crate::{Limit, Quota, QuotaError, Rate};

/// A [`Limit`] that was found fit for a window: what a [`ShardedWindow`](super::ShardedWindow) is built with.
///
/// ```
/// use sluicegate_core::{Limit, QuotaError, WindowLimit};
///
/// assert!(WindowLimit::new("10/1m".parse()?).is_ok());
/// assert_eq!(WindowLimit::new("10/1m burst 20".parse()?), Err(QuotaError::BurstOnWindow { burst: 20 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct WindowLimit {
    pub(super) rule: Rule,
}

impl WindowLimit {
    /// Checks `limit`.
    ///
    /// # Errors
    /// [`QuotaError::BurstOnWindow`] when the quota's burst is not its number of tokens, [`QuotaError::DebtOnWindow`] when it
    /// has a debt, or [`QuotaError::WindowTooShort`] as for [`WindowStep::new`].
    pub const fn new(limit: Limit) -> Result<Self, QuotaError> {
        match limit {
            Limit::Unlimited => Ok(Self { rule: Rule::Unlimited }),
            Limit::DenyAll => Ok(Self { rule: Rule::DenyAll }),
            Limit::Quota(quota) => Self::from_quota(quota),
        }
    }

    /// Checks `rate`: its tokens are the limit, its period the window.
    ///
    /// # Errors
    /// [`QuotaError::WindowTooShort`] as for [`WindowStep::new`].
    pub const fn from_rate(rate: Rate) -> Result<Self, QuotaError> {
        match WindowStep::new(rate) {
            Ok(step) => Ok(Self { rule: Rule::Step(step) }),
            Err(error) => Err(error),
        }
    }

    /// Reads `off`, `deny` or `TOKENS/PERIOD`, in a constant too: also limits that no token bucket could keep, because a
    /// window counts whole tokens only.
    ///
    /// ```
    /// use sluicegate_core::{Limit, WindowLimit};
    ///
    /// assert!("10000000000/1s".parse::<WindowLimit>().is_ok());
    /// assert!("10000000000/1s".parse::<Limit>().is_err());
    /// ```
    ///
    /// # Errors
    /// [`ParseError`] names the text and what is accepted.
    pub const fn parse(text: &str) -> Result<Self, ParseError> {
        text::parse_window_limit(text)
    }

    /// The step that enforces it on one word, where there is something to count.
    pub const fn step(&self) -> Option<WindowStep> {
        match &self.rule {
            Rule::Step(step) => Some(*step),
            Rule::Unlimited | Rule::DenyAll => None,
        }
    }

    /// Whether it is [`Limit::DenyAll`].
    pub const fn denies_all(&self) -> bool {
        matches!(self.rule, Rule::DenyAll)
    }

    const fn from_quota(quota: Quota) -> Result<Self, QuotaError> {
        if quota.capacity() != quota.rate().tokens() {
            return Err(QuotaError::BurstOnWindow { burst: quota.capacity() });
        }
        if quota.debt() != 0 {
            return Err(QuotaError::DebtOnWindow { debt: quota.debt() });
        }
        Self::from_rate(quota.rate())
    }
}

impl WindowLimit {
    #[inline]
    pub(super) const fn is_quota(&self) -> bool {
        matches!(self.rule, Rule::Step(_))
    }

    /// How words are laid out for it; without a quota no word is ever used, and any layout will do.
    pub(super) const fn layout(&self) -> Layout {
        match self.rule {
            Rule::Step(step) => step.layout,
            Rule::Unlimited | Rule::DenyAll => Layout::UNUSED,
        }
    }
}

impl TryFrom<Limit> for WindowLimit {
    type Error = QuotaError;

    fn try_from(limit: Limit) -> Result<Self, QuotaError> {
        Self::new(limit)
    }
}

impl TryFrom<Quota> for WindowLimit {
    type Error = QuotaError;

    fn try_from(quota: Quota) -> Result<Self, QuotaError> {
        Self::from_quota(quota)
    }
}

impl TryFrom<Rate> for WindowLimit {
    type Error = QuotaError;

    fn try_from(rate: Rate) -> Result<Self, QuotaError> {
        Self::from_rate(rate)
    }
}

impl FromStr for WindowLimit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl fmt::Display for WindowLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Rule::Unlimited => f.write_str("off"),
            Rule::DenyAll => f.write_str("deny"),
            Rule::Step(step) => step.rate().fmt(f),
        }
    }
}

impl fmt::Debug for WindowLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowLimit({self})")
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    Unlimited,
    DenyAll,
    Step(WindowStep),
}
