//! One decision of a sliding counter, as pure functions of one word.

use crate::arithmetic::{Estimate, Fraction};
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::nanos::nanos_to_duration;
use crate::{Nanos, QuotaError, Rate};

/// The whole state of a sliding counter: one word that holds a window's number, what was taken in it and what was taken in
/// the window before.
///
/// The default is a counter that was never used. Every value can be decided on. It is meaningful only with the rate and the
/// clock origin that it was written under.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SlidingCounterState(u64);

impl SlidingCounterState {
    /// A counter at which nothing was taken.
    pub const UNUSED: Self = Self(0);

    /// The state that [`SlidingCounterState::to_bits`] took apart.
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

/// A rate made ready for deciding: the sliding counter as a pure function of state, reading and cost.
///
/// Window number n is the readings from `n * W` to `(n + 1) * W - 1`, for a window's length of W ns. At e ns into a window,
/// with `current` taken in it and `previous` in the one before, a cost of k is admitted if and only if
///
/// ```text
/// previous * (W - e) / W + current + k <= limit
/// ```
///
/// The left side is computed in integers and rounded up, which decides as the fraction would, because costs are whole.
///
/// # How far it is from the sliding log
///
/// The estimate takes what the window before admitted as spread evenly over it. Where it was not, it errs both ways, and
/// this is how far:
///
/// - *It may admit more.* In an interval of length W that begins p ns after a window did, at most `limit * (1 + p/W)` is
///   admitted: at most the limit in the windows themselves (p = 0), and always less than twice the limit. For let A be
///   admitted in the interval's first window and B in its second. The last admission of B was e < p ns into the second
///   window, when `previous` was at least A, so B is at most `limit - A * (W - e)/W`, and A + B at most
///   `limit + A * e/W`. A is at most the limit. The bound is reached: by all of the limit at the end of the first window and
///   `limit * e/W` at e = p - 1.
/// - *It may deny what the log would admit*, if `previous * (W - e)/W` is more than what was taken less than W before. It
///   then sees at most `previous * (W - e)/W` fewer units free than there are: at most the limit, just after a window that
///   took all of it at its start. All of the limit is free again at the end of the window after the latest admission, which is
///   W later at most than in the log.
/// - It never denies while the limit covers all that was taken in this window and the one before.
///
/// # A clock that misbehaves
///
/// A reading before the window that the state counts is taken at that window's start. So is an earlier reading in the same
/// window at its own place, where the estimate is no smaller. Neither can admit more than the latest reading would, reopen an
/// old window or reset a new one. Window numbers have enough bits for 30 years and are never used again. Readings past
/// [`Nanos::HORIZON`] count as the horizon. Nothing panics or wraps.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Denied, Nanos, Rate, Remaining, SlidingCounterState, SlidingCounterStep};
///
/// let step = SlidingCounterStep::new("10/1m".parse::<Rate>()?)?;
/// let (state, decision) = step.try_acquire(SlidingCounterState::UNUSED, Nanos::from_secs(50), 10);
/// assert_eq!(decision?.remaining, Remaining::Exactly(0));
///
/// // A tenth of the next minute has to pass before a tenth of the ten is let go.
/// let (state, decision) = step.try_acquire(state, Nanos::from_secs(50), 1);
/// assert_eq!(decision, Err(Denied::RateLimited { retry_after: Duration::from_secs(16) }));
/// assert!(step.try_acquire(state, Nanos::new(65_999_999_999), 1).1.is_err());
/// assert!(step.try_acquire(state, Nanos::from_secs(66), 1).1.is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounterStep {
    rate: Rate,
    /// Windows per nanosecond.
    numbering: Fraction,
    /// Windows per nanosecond, about.
    share: Estimate,
    /// How many bits each count has: just those that the limit needs. The window number has all that both leave.
    count_bits: u32,
}

impl SlidingCounterStep {
    /// Prepares `rate`: its tokens are the limit, its period the window.
    ///
    /// # Errors
    /// [`QuotaError::LimitAboveCounter`] when window number and two counts do not fit into 64 bits for 30 years. The largest
    /// limit is 131 071 for a window of a second, 1 048 575 for a minute, 4 194 303 for an hour and 33 554 431 for a day.
    pub const fn new(rate: Rate) -> Result<Self, QuotaError> {
        let windows = Nanos::HORIZON.as_u64() / rate.period_nanos();
        let number_bits = u64::BITS - windows.leading_zeros();
        let largest_bits = (u64::BITS - number_bits) / 2;
        let count_bits = u64::BITS - rate.tokens().leading_zeros();
        if count_bits > largest_bits {
            return Err(QuotaError::LimitAboveCounter { rate, largest: (1 << largest_bits) - 1 });
        }
        Ok(Self {
            rate,
            numbering: Fraction::new(1, rate.period_nanos()),
            share: Estimate::new(1, rate.period_nanos() as u128),
            count_bits,
        })
    }

    /// The limit per window.
    #[inline]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Decides on `cost` at `now`, and returns the state to keep; a denial returns the state it was given.
    ///
    /// A cost of 0 is always admitted and changes nothing: it opens no window.
    #[inline]
    pub const fn try_acquire(
        &self,
        state: SlidingCounterState,
        now: Nanos,
        cost: u64,
    ) -> (SlidingCounterState, Decision) {
        let met = self.met_at(state, now);
        match self.take(state, &met, cost) {
            Some((next, left)) => (next, Ok(self.admission(&met, now, left))),
            None => (state, Err(self.denial(&met, now, cost))),
        }
    }

    /// The state after `cost`, admitted at `taken_at` (see [`Admitted::at`]), was given back.
    ///
    /// It is given back to the window it was taken in, which is the current one or the one before; what was taken earlier is
    /// gone. No more comes back than was taken in that window.
    #[inline]
    pub const fn refund(&self, state: SlidingCounterState, taken_at: Nanos, cost: u64) -> SlidingCounterState {
        self.give_back(state, taken_at, cost).0
    }

    /// As [`refund`](Self::refund); also tells how much came back.
    pub(super) const fn give_back(
        &self,
        state: SlidingCounterState,
        taken_at: Nanos,
        cost: u64,
    ) -> (SlidingCounterState, u64) {
        let met = self.unpacked(state);
        let number = self.numbering.times(taken_at.within_horizon());
        // A window's count is a word's low or high half; neither becomes negative, so no bit of another part changes.
        if number == met.number {
            let back = if cost < met.current { cost } else { met.current };
            (SlidingCounterState(state.0 - back), back)
        } else if number.saturating_add(1) == met.number {
            let back = if cost < met.previous { cost } else { met.previous };
            (SlidingCounterState(state.0 - (back << self.count_bits)), back)
        } else {
            (state, 0)
        }
    }

    /// What could be taken at `now`.
    #[inline]
    pub const fn inspect(&self, state: SlidingCounterState, now: Nanos) -> Inspection {
        let limit = self.rate.tokens();
        Inspection::new(limit.saturating_sub(self.used(&self.met_at(state, now))), limit)
    }

    /// Whether nothing is counted at `now` and the state's window has come, so that `state` decides as one that was never used
    /// would from `now` on: a store may forget it.
    #[inline]
    pub const fn is_unused(&self, state: SlidingCounterState, now: Nanos) -> bool {
        let met = self.met_at(state, now);
        met.current == 0 && met.previous == 0 && self.numbering.times(now.within_horizon()) >= met.number
    }
}

/// A state as a caller at some reading meets it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    number: u64,
    previous: u64,
    current: u64,
    /// Nanoseconds into the window; below its length.
    elapsed: u64,
}

impl SlidingCounterStep {
    /// `state` as a caller at `now` meets it: moved on to the window of `now`, unless it is in a later one.
    #[inline(always)]
    pub(super) const fn met_at(&self, state: SlidingCounterState, now: Nanos) -> Met {
        let met = self.unpacked(state);
        let (now, period) = (now.within_horizon(), self.rate.period_nanos());
        // Nearly always `now` lies in the window that the word counts, which takes no division to see.
        let elapsed = now.wrapping_sub(met.number.wrapping_mul(period));
        if elapsed < period {
            return Met { elapsed, ..met };
        }
        let number = self.numbering.times(now);
        if number < met.number {
            return met;
        }
        let previous = if number - met.number == 1 { met.current } else { 0 };
        Met { number, previous, current: 0, elapsed: now - number * period }
    }

    /// The next state and the units left, if `cost` can be taken.
    #[inline(always)]
    pub(super) const fn take(
        &self,
        state: SlidingCounterState,
        met: &Met,
        cost: u64,
    ) -> Option<(SlidingCounterState, u64)> {
        let free = self.rate.tokens().saturating_sub(self.used(met));
        if cost > free {
            return None;
        }
        Some((if cost == 0 { state } else { self.packed(met, cost) }, free - cost))
    }

    /// The answer when `left` units are left.
    #[inline(always)]
    pub(super) const fn admission(&self, met: &Met, now: Nanos, left: u64) -> Admitted {
        let start = Nanos::new(met.number.saturating_mul(self.rate.period_nanos()));
        let is_late = now.as_u64() < start.as_u64();
        Admitted::new(Remaining::Exactly(left), if is_late { start } else { now })
    }

    /// The answer when [`take`](Self::take) gives nothing.
    #[inline(always)]
    pub(super) const fn denial(&self, met: &Met, now: Nanos, cost: u64) -> Denied {
        let (limit, period) = (self.rate.tokens(), self.rate.period_nanos());
        if cost > limit {
            return Denied::CostExceedsLimit { cost, limit };
        }
        // With `room` beside what counts in full, `counted` may count for `room * period / counted` more ns at the most: so
        // many before the end of its time, rounded down, it fits. That is the end of this window for what the window before
        // took, and of the next one for what this one took, if that alone leaves too little.
        let (room, counted, windows) = if met.current <= limit - cost {
            (limit - cost - met.current, met.previous, 1)
        } else {
            (limit - cost, met.current, 2)
        };
        let end = (met.number as u128 + windows) * period as u128;
        Denied::RateLimited {
            retry_after: nanos_to_duration(end - quotient(room, period, counted) - now.within_horizon() as u128),
        }
    }

    /// A reading before which `total` cannot have been taken from `now` on, in however many parts.
    pub(super) fn earliest(&self, state: SlidingCounterState, now: Nanos, total: u128) -> Nanos {
        let met = self.met_at(state, now);
        // Within this window parts and whole count the same. In the next one a part that was taken in this one counts less, and
        // at its very start still all of it.
        let end = (met.number as u128 + 1) * self.rate.period_nanos() as u128 - now.within_horizon() as u128;
        let next_window = now.saturating_add(nanos_to_duration(end));
        match u64::try_from(total) {
            Ok(cost) if self.take(state, &met, cost).is_some() => now,
            Ok(cost) => match self.denial(&met, now, cost).retry_after() {
                Some(wait) => now.saturating_add(wait).min(next_window),
                None => next_window,
            },
            Err(_) => next_window,
        }
    }

    /// What counts at the reading that `met` was met at, rounded up.
    #[inline(always)]
    const fn used(&self, met: &Met) -> u64 {
        // What has aged is rounded down: previous - floor(previous * elapsed / W) = ceil(previous * (W - elapsed) / W).
        met.current + (met.previous - self.aged(met.previous, met.elapsed))
    }

    /// `floor(previous * elapsed / period)`, exactly; at most `previous`.
    #[inline(always)]
    const fn aged(&self, previous: u64, elapsed: u64) -> u64 {
        let period = self.rate.period_nanos();
        match previous.checked_mul(elapsed) {
            // The first guess is low by one at the most.
            Some(product) => {
                let guess = self.share.times(product);
                if product - guess * period < period { guess } else { guess + 1 }
            }
            // Large counts in long windows only.
            None => (previous as u128 * elapsed as u128 / period as u128) as u64,
        }
    }

    #[inline(always)]
    const fn unpacked(&self, SlidingCounterState(word): SlidingCounterState) -> Met {
        let mask = (1 << self.count_bits) - 1;
        // In two shifts, because two counts may fill the word.
        let above = word >> self.count_bits;
        Met { number: above >> self.count_bits, previous: above & mask, current: word & mask, elapsed: 0 }
    }

    /// The word of what was met, with `cost` taken, which fits.
    #[inline(always)]
    const fn packed(&self, met: &Met, cost: u64) -> SlidingCounterState {
        let above = (met.number << self.count_bits) | met.previous;
        SlidingCounterState((above << self.count_bits) | (met.current + cost))
    }
}

/// `floor(a * b / divisor)`; the caller makes sure that the divisor is not 0.
const fn quotient(a: u64, b: u64, divisor: u64) -> u128 {
    match a.checked_mul(b) {
        Some(product) => (product / divisor) as u128,
        None => a as u128 * b as u128 / divisor as u128,
    }
}
