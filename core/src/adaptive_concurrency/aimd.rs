//! Additive increase, multiplicative decrease.

use core::ops::RangeInclusive;

use super::law::{BACKOFF, Limits};
use super::{ClosedWindow, ConcurrencyLaw, LawOptionsError};
use crate::Share;

/// Raises the limit step by step while calls succeed, and cuts it by a share when one was dropped.
///
/// Many callers of one service that all follow it come to equal shares (Chiu and Jain, *Analysis of the Increase and Decrease
/// Algorithms*, 1989). It goes by drops alone, so something has to time out or be refused before it slows down; a [`GradientLaw`](crate::GradientLaw) sees
/// latency rise before that.
///
/// # Guarantees
///
/// - A window with a dropped call cuts the limit to [`backoff`](AimdOptions::backoff) of it, rounded down and so by 1 or more; never below the least.
/// - A window without one raises it by [`increase`](AimdOptions::increase), never above the most, if at least half of it was in use at some
///   time in the window. What is not used proves nothing, so it does not grow either.
/// - Nothing else changes it: successes lower nothing, and from the least it grows as from everywhere.
///
/// ```
/// use sluicegate_core::{AimdOptions, ClosedWindow, ConcurrencyLaw};
///
/// let mut law = AimdOptions::new().limits(1, 20, 100).build()?;
/// let mut window = ClosedWindow::default();
/// (window.successes, window.most_in_use) = (50, 10);
/// assert_eq!(law.update(&window), 21);
/// window.dropped = 1;
/// assert_eq!(law.update(&window), 18);
/// (window.dropped, window.most_in_use) = (0, 8);
/// assert_eq!(law.update(&window), 18);
/// # Ok::<(), sluicegate_core::LawOptionsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AimdLaw {
    options: AimdOptions,
    limit: u32,
}

impl AimdLaw {
    /// What it was built from.
    pub const fn options(&self) -> &AimdOptions {
        &self.options
    }
}

impl Default for AimdLaw {
    fn default() -> Self {
        let options = AimdOptions::new();
        Self { options, limit: options.limits.initial }
    }
}

impl ConcurrencyLaw for AimdLaw {
    fn limit(&self) -> u32 {
        self.limit
    }

    fn bounds(&self) -> RangeInclusive<u32> {
        self.options.limits.bounds()
    }

    fn update(&mut self, window: &ClosedWindow) -> u32 {
        let Limits { least, most, .. } = self.options.limits;
        if window.dropped > 0 {
            // Less than all of 32 bits.
            let left = self.options.backoff.of(self.limit.into()) as u32;
            self.limit = left.max(least);
        } else if window.is_half_used(self.limit) {
            self.limit = self.limit.saturating_add(self.options.increase).min(most);
        }
        self.limit
    }
}

/// What an [`AimdLaw`] is built from.
///
/// | | what | default |
/// |---|---|---|
/// | [`limits`](Self::limits) | the least, the one to begin with, and the most | 1, 10, 1000 |
/// | [`increase`](Self::increase) | added after a window without drops | 1 |
/// | [`backoff`](Self::backoff) | left after a window with drops | 90 % |
///
/// ```
/// use sluicegate_core::{AimdOptions, LawOptionsError, Share};
///
/// let law = AimdOptions::new().limits(2, 8, 64).backoff(Share::percent(75)?).build()?;
/// assert_eq!(law.options().build(), Ok(law));
/// assert_eq!(AimdOptions::new().increase(0).build(), Err(LawOptionsError::NoIncrease));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a law is built from them"]
pub struct AimdOptions {
    limits: Limits,
    increase: u32,
    backoff: Share,
}

impl AimdOptions {
    /// The defaults.
    pub const fn new() -> Self {
        Self { limits: Limits::DEFAULT, increase: 1, backoff: BACKOFF }
    }

    /// The least limit, 1 or more, the one to begin with, and the most. A call whose cost is above the least can be denied as one that
    /// never fits.
    pub const fn limits(self, least: u32, initial: u32, most: u32) -> Self {
        Self { limits: Limits { least, initial, most }, ..self }
    }

    /// How much is added after a window without drops. At least 1.
    pub const fn increase(self, increase: u32) -> Self {
        Self { increase, ..self }
    }

    /// How much of the limit is left after a window with drops. Less than all of it.
    pub const fn backoff(self, left: Share) -> Self {
        Self { backoff: left, ..self }
    }

    /// The law.
    ///
    /// # Errors
    /// [`LawOptionsError`] names what cannot be, its value and what can.
    pub const fn build(self) -> Result<AimdLaw, LawOptionsError> {
        if let Err(error) = self.limits.check(self.backoff) {
            return Err(error);
        }
        if self.increase == 0 {
            return Err(LawOptionsError::NoIncrease);
        }
        Ok(AimdLaw { options: self, limit: self.limits.initial })
    }
}

impl Default for AimdOptions {
    fn default() -> Self {
        Self::new()
    }
}
