//! One decision of a fixed window, as pure functions of one word.

use core::time::Duration;

use crate::arithmetic::Fraction;
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::{Nanos, QuotaError, Rate};

/// The whole state of a fixed window: one word that holds a window's number and what was taken in it.
///
/// The default is a window that was never used. Every value is a valid state: a count above the limit is spent. It is
/// meaningful only with the rate and the clock origin that it was written under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WindowState(u64);

impl WindowState {
    /// A window in which nothing was taken.
    pub const UNUSED: Self = Self(0);

    /// The state that [`WindowState::to_bits`] took apart.
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The word, for storage of the caller's own.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// A rate made ready for deciding: the fixed window as a pure function of state, reading and cost.
///
/// Window number n is the readings from `n * period` to `(n + 1) * period - 1`. In each window exactly
/// `min(limit, demanded)` is admitted. The only burst beyond the limit is twice the limit across one boundary: all of one
/// window at its end, all of the next at its start.
///
/// A reading from before the window that the state already counts is taken into that window: it can neither reopen an
/// old window nor reset a new one. Window numbers have enough bits for 30 years and are never used again.
///
/// [`ShardedWindow`](super::ShardedWindow) runs this on many words at once. Use the step to keep states where you like,
/// one word a key. Decisions take two multiplications, and no division.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Denied, Nanos, Rate, Remaining, WindowState, WindowStep};
///
/// let step = WindowStep::new("10/1m".parse::<Rate>()?)?;
/// let (state, decision) = step.try_acquire(WindowState::UNUSED, Nanos::from_secs(50), 10);
/// assert_eq!(decision?.remaining, Remaining::Exactly(0));
///
/// let (state, decision) = step.try_acquire(state, Nanos::from_secs(50), 1);
/// assert_eq!(decision, Err(Denied::RateLimited { retry_after: Duration::from_secs(10) }));
/// assert!(step.try_acquire(state, Nanos::from_secs(60), 1).1.is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowStep {
    pub(super) layout: Layout,
}

impl WindowStep {
    /// Prepares `rate`: its tokens are the limit, its period the window.
    ///
    /// # Errors
    /// [`QuotaError::WindowTooShort`] when window number and count do not fit into 64 bits for 30 years. For a limit of
    /// 2^32 that is a window below 250 ms.
    pub const fn new(rate: Rate) -> Result<Self, QuotaError> {
        match Layout::new(rate, rate.tokens()) {
            Ok(layout) => Ok(Self { layout }),
            Err(error) => Err(error),
        }
    }

    /// The limit per window.
    #[inline]
    pub const fn rate(&self) -> Rate {
        self.layout.rate
    }

    /// Decides on `cost` at `now`, and returns the state to keep; a denial returns the state it was given.
    #[inline]
    pub const fn try_acquire(&self, state: WindowState, now: Nanos, cost: u64) -> (WindowState, Decision) {
        let layout = &self.layout;
        let limit = layout.rate.tokens();
        let (window, free) = layout.view(state.0, layout.window_of(now), limit);
        if cost <= free {
            let remaining = Remaining::Exactly(free - cost);
            let next = layout.word(window, limit - free + cost);
            return (WindowState(next), Ok(Admitted::new(remaining, layout.reading_in(window, now))));
        }
        (state, Err(layout.denial(window, now, cost)))
    }

    /// The state after `cost`, admitted at `taken_at` (see [`Admitted::at`]), was given back.
    ///
    /// What was taken in a window that has passed is gone with it. A window never holds more than its limit.
    #[inline]
    pub const fn refund(&self, state: WindowState, taken_at: Nanos, cost: u64) -> WindowState {
        let (next, _) = self.layout.give_back(state.0, self.layout.window_of(taken_at), cost);
        WindowState(next)
    }

    /// What is free at `now`.
    #[inline]
    pub const fn inspect(&self, state: WindowState, now: Nanos) -> Inspection {
        let limit = self.layout.rate.tokens();
        let (_, free) = self.layout.view(state.0, self.layout.window_of(now), limit);
        Inspection::new(free, limit)
    }

    /// Whether nothing is counted at `now`, so that `state` equals one that was never used: a store may forget it.
    #[inline]
    pub const fn is_unused(&self, state: WindowState, now: Nanos) -> bool {
        self.inspect(state, now).level == self.layout.rate.tokens()
    }

    /// The first reading of the window that `now` lies in; a multiple of the period.
    #[inline]
    pub const fn start_of(&self, now: Nanos) -> Nanos {
        self.layout.start_of(self.layout.window_of(now))
    }
}

/// How a word is shared between a window's number (above) and the count in it (below).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rate: Rate,
    /// Windows per nanosecond.
    numbering: Fraction,
    /// The count has just the bits that its cap needs; the window number has all the others.
    count_bits: u32,
}

impl Layout {
    /// The layout of words that count up to `cap` of `rate`'s tokens each; it also counts any smaller cap.
    pub(super) const fn new(rate: Rate, cap: u64) -> Result<Self, QuotaError> {
        let count_bits = u64::BITS - cap.leading_zeros();
        let period = rate.period_nanos();
        let windows = if count_bits == u64::BITS { 0 } else { u64::MAX >> count_bits };
        if Nanos::HORIZON.as_u64() / period > windows {
            let shortest = Nanos::HORIZON.as_u64() / (windows.saturating_add(1)) + 1;
            return Err(QuotaError::WindowTooShort { rate, shortest });
        }
        Ok(Self { rate, numbering: Fraction::new(1, period), count_bits })
    }

    /// The same for counts up to `cap`, which is at most the cap that this layout was made for.
    pub(super) const fn with_cap(self, cap: u64) -> Self {
        Self { count_bits: u64::BITS - cap.leading_zeros(), ..self }
    }

    /// The number of the window that `now` lies in.
    #[inline]
    pub(super) const fn window_of(&self, now: Nanos) -> u64 {
        self.numbering.times(now.within_horizon())
    }

    /// The window that a caller in `window` meets in `word`, and what is free there under `cap`.
    ///
    /// It is the later one of the two: a late reading counts into the word's window.
    #[inline]
    pub(super) const fn view(&self, word: u64, window: u64, cap: u64) -> (u64, u64) {
        let (number, count) = self.parts(word);
        if number < window { (window, cap) } else { (number, cap.saturating_sub(count)) }
    }

    #[inline]
    pub(super) const fn word(&self, window: u64, count: u64) -> u64 {
        // A count that fills the word leaves no bit for a number, and then the only window is 0.
        match window.checked_shl(self.count_bits) {
            Some(number) => number | count,
            None => count,
        }
    }

    /// `word` with up to `cost` less counted in `window`, and how much less.
    #[inline]
    pub(super) const fn give_back(&self, word: u64, window: u64, cost: u64) -> (u64, u64) {
        let (number, count) = self.parts(word);
        if number != window {
            return (word, 0);
        }
        let returned = if cost < count { cost } else { count };
        (word - returned, returned)
    }

    /// The window number that `word` holds.
    #[inline]
    pub(super) const fn number(&self, word: u64) -> u64 {
        self.parts(word).0
    }

    #[inline]
    const fn parts(&self, word: u64) -> (u64, u64) {
        match word.checked_shr(self.count_bits) {
            Some(number) => (number, word & ((1 << self.count_bits) - 1)),
            None => (0, word),
        }
    }

    const fn start_of(&self, window: u64) -> Nanos {
        Nanos::new(window.saturating_mul(self.rate.period_nanos()))
    }

    /// The reading under which a decision in `window` counts.
    #[inline]
    pub(super) const fn reading_in(&self, window: u64, now: Nanos) -> Nanos {
        if window == self.window_of(now) { now } else { self.start_of(window) }
    }

    /// Why `cost` does not fit into `window`.
    #[inline]
    pub(super) const fn denial(&self, window: u64, now: Nanos, cost: u64) -> Denied {
        let limit = self.rate.tokens();
        if cost > limit {
            return Denied::CostExceedsLimit { cost, limit };
        }
        let end = self.start_of(window.saturating_add(1)).as_u64();
        // The window's end is after every reading in it; only a window that ends past 584 years saturates.
        let wait = end.saturating_sub(now.within_horizon());
        Denied::RateLimited { retry_after: Duration::from_nanos(if wait == 0 { 1 } else { wait }) }
    }
}
