//! One decision of a fixed window, as pure functions of one word.

use core::time::Duration;

use crate::arithmetic::Fraction;
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::{Nanos, QuotaError, Rate};

/// The whole state of a fixed window: one word that holds a window's number and what was taken in it.
///
/// The default is a window that was never used. Every value can be decided on: a count above the limit is spent. It is
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
    /// [`QuotaError::WindowTooShort`] when window number and count do not fit into 64 bits for 30 years. For a limit
    /// just below 2^32 that is a window below 221 ms.
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
    ///
    /// A cost of 0 is always admitted and changes nothing: it opens no window.
    #[inline]
    pub const fn try_acquire(&self, state: WindowState, now: Nanos, cost: u64) -> (WindowState, Decision) {
        let layout = &self.layout;
        let word = layout.met_at(state.0, now);
        let free = layout.free(word, layout.rate.tokens());
        if cost <= free {
            let remaining = Remaining::Exactly(free - cost);
            let next = if cost == 0 { state } else { WindowState(word + cost) };
            return (next, Ok(Admitted::new(remaining, layout.reading_in(word, now))));
        }
        (state, Err(layout.denial(word, now, cost)))
    }

    /// The state after `cost`, admitted at `taken_at` (see [`Admitted::at`]), was given back.
    ///
    /// What was taken in a window that has passed is gone with it. A window never has more than its limit free.
    #[inline]
    pub const fn refund(&self, state: WindowState, taken_at: Nanos, cost: u64) -> WindowState {
        WindowState(state.0 - self.layout.returnable(state.0, self.layout.base_of(taken_at), cost))
    }

    /// What is free at `now`.
    #[inline]
    pub const fn inspect(&self, state: WindowState, now: Nanos) -> Inspection {
        let limit = self.layout.rate.tokens();
        let word = self.layout.met_at(state.0, now);
        Inspection::new(self.layout.free(word, limit), limit)
    }

    /// Whether nothing is counted at `now`, so that `state` equals one that was never used: a store may forget it.
    #[inline]
    pub const fn is_unused(&self, state: WindowState, now: Nanos) -> bool {
        let base = self.layout.base_of(now);
        self.layout.met(state.0, base) == base
    }

    /// The first reading of the window that `now` lies in; a multiple of the period.
    #[inline]
    pub const fn start_of(&self, now: Nanos) -> Nanos {
        self.layout.start_of(self.layout.base_of(now))
    }
}

/// How a word is shared between a window's number (above) and the count in it (below).
///
/// A window's *base* is the word that counts nothing in it. Words are ordered first by window, so the later of two windows
/// is the larger of two words, and a word and a base are brought together without taking either apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rate: Rate,
    /// Windows per nanosecond.
    numbering: Fraction,
    /// The bits of the count: just those that its cap needs. The window number has all the others.
    count_mask: u64,
    /// How many these are.
    count_bits: u32,
}

impl Layout {
    /// The layout of a window that never counts anything.
    pub(super) const UNUSED: Self =
        Self { rate: Rate::ONE_PER_SECOND, numbering: Fraction::new(1, 1_000_000_000), count_mask: 1, count_bits: 1 };

    /// The layout of words that count up to `cap` of `rate`'s tokens each; it also counts any smaller cap.
    pub(super) const fn new(rate: Rate, cap: u64) -> Result<Self, QuotaError> {
        let numbering = Fraction::new(1, rate.period_nanos());
        let layout = Self { rate, numbering, count_mask: 1, count_bits: 1 }.with_cap(cap);
        // Windows that can be numbered, less 1.
        let last = !layout.count_mask >> (layout.count_bits % u64::BITS);
        if Nanos::HORIZON.as_u64() / rate.period_nanos() > last {
            let shortest = Nanos::HORIZON.as_u64() / last.saturating_add(1) + 1;
            return Err(QuotaError::WindowTooShort { rate, shortest });
        }
        Ok(layout)
    }

    /// The same for counts up to `cap`, which is at most the cap that this layout was made for.
    pub(super) const fn with_cap(self, cap: u64) -> Self {
        // One bit at the least, also for a cap of 0.
        let count_bits = u64::BITS - (cap | 1).leading_zeros();
        Self { count_mask: u64::MAX >> (u64::BITS - count_bits), count_bits, ..self }
    }

    /// The base of the window that `now` lies in.
    #[inline(always)]
    pub(super) const fn base_of(&self, now: Nanos) -> u64 {
        // A count that fills the word leaves no bit for a number; then the only number is 0, and any shift will do.
        self.numbering.times(now.within_horizon()).wrapping_shl(self.count_bits)
    }

    /// What a caller at `now` meets where `word` is stored: the same as [`met`](Self::met) with the base of `now`.
    ///
    /// Nearly always `now` lies in the window that the word counts, which takes no division to see; and as the branch goes
    /// the same way each time, what follows need not wait for the clock.
    #[inline(always)]
    pub(super) const fn met_at(&self, word: u64, now: Nanos) -> u64 {
        let start = self.number(word).wrapping_mul(self.rate.period_nanos());
        if now.within_horizon().wrapping_sub(start) < self.rate.period_nanos() {
            word
        } else {
            self.met(word, self.base_of(now))
        }
    }

    /// What a caller in the window of `base` meets where `word` is stored: nothing counted in its own window if the word is
    /// of an earlier one, otherwise the word. So a late reading counts into the word's window.
    #[inline]
    pub(super) const fn met(&self, word: u64, base: u64) -> u64 {
        if word < base { base } else { word }
    }

    /// The base of the window that `word` counts.
    #[inline]
    pub(super) const fn base_in(&self, word: u64) -> u64 {
        word & !self.count_mask
    }

    /// What `word` leaves free of `cap`.
    #[inline]
    pub(super) const fn free(&self, word: u64, cap: u64) -> u64 {
        cap.saturating_sub(word & self.count_mask)
    }

    /// How much of `cost` is still counted in the window of `base`, if that is what `word` counts.
    #[inline]
    pub(super) const fn returnable(&self, word: u64, base: u64, cost: u64) -> u64 {
        if self.base_in(word) != base {
            return 0;
        }
        let count = word & self.count_mask;
        if cost < count { cost } else { count }
    }

    /// The first reading in the window of `word`.
    const fn start_of(&self, word: u64) -> Nanos {
        Nanos::new(self.number(word).saturating_mul(self.rate.period_nanos()))
    }

    /// Whether the window of `word` is over at `now`.
    #[inline]
    pub(super) const fn has_passed(&self, word: u64, now: Nanos) -> bool {
        // Only a window that ends past 584 years saturates, which no reading reaches.
        now.within_horizon() >= self.number(word).saturating_add(1).saturating_mul(self.rate.period_nanos())
    }

    /// The number of the window that `word` counts.
    #[inline(always)]
    const fn number(&self, word: u64) -> u64 {
        // In two shifts, because a count may fill the word.
        word >> (self.count_bits - 1) >> 1
    }

    /// The reading under which a decision in the window of `word` counts.
    #[inline]
    pub(super) const fn reading_in(&self, word: u64, now: Nanos) -> Nanos {
        let start = self.start_of(word);
        if now.within_horizon().wrapping_sub(start.as_u64()) < self.rate.period_nanos() { now } else { start }
    }

    /// Why `cost` does not fit into the window of `word`.
    #[inline]
    pub(super) const fn denial(&self, word: u64, now: Nanos, cost: u64) -> Denied {
        let limit = self.rate.tokens();
        if cost > limit {
            return Denied::CostExceedsLimit { cost, limit };
        }
        let end = self.number(word).saturating_add(1).saturating_mul(self.rate.period_nanos());
        // The window's end is after every reading in it; only a window that ends past 584 years saturates.
        let wait = end.saturating_sub(now.within_horizon());
        Denied::RateLimited { retry_after: Duration::from_nanos(if wait == 0 { 1 } else { wait }) }
    }
}
