//! A limit that follows latency.

use core::ops::RangeInclusive;
use core::time::Duration;

use super::law::{BACKOFF, Limits};
use super::{ClosedWindow, ConcurrencyLaw, LawOptionsError};
use crate::{Nanos, Share};

/// Lowers the limit in proportion as calls take longer than they do without load, and raises it while they do not.
///
/// A service that has enough to do answers no faster when it is given more: what is added waits, and latency rises in proportion. So the
/// *gradient*, the latency that is tolerated over the latency that was measured, says by how much the limit is too high. That is the idea of
/// TCP Vegas (Brakmo and Peterson, 1995), which concurrency limits of services have taken up since. The latency that is tolerated is
/// [`tolerance`](GradientOptions::tolerance) of the *baseline*, the latency without load; both are means over a window, since the least
/// latency of many calls is far below the mean of a service whose calls differ.
///
/// # What a window does
///
/// - Latency within tolerance, and at least half of the limit in use at some time: the limit goes up, by
///   [`smoothing`](GradientOptions::smoothing) times its square root. Less than half in use: it stays.
/// - Latency above: the limit goes down, by `smoothing` times its distance to limit × gradient, where the gradient counts as a half
///   at least. Nothing is added for a queue, so it goes down for as long as latency is above.
/// - A call dropped: no more than [`backoff`](GradientOptions::backoff) of the limit is left.
///
/// The limit is kept in millionths or finer, so that small steps add up. It is never outside of its bounds.
///
/// # The baseline
///
/// It is the mean of the first window, and from then on moves half of the way to each lower mean. It goes up in two cases only: at
/// the least limit, where there is no less load to be had, it becomes what was measured; and slowly, by
/// [`baseline_rise`](GradientOptions::baseline_rise) of the way, to a mean within tolerance while less than half of the limit is in
/// use. Windows with drops leave it. So latency under load does not become the baseline however long it lasts, and a service that has become
/// slower for good brings the limit down to its least once, and up again from there.
///
/// # Trade-offs
///
/// A limit that begins above what the service can do takes the latency there for its baseline, until there is less load: begin low. A service
/// that answers every call at the same late time, as if it had succeeded, cannot be told from one that has become slower; report such
/// calls as dropped, or bound the [`baseline`](GradientOptions::baseline).
///
/// ```
/// use sluicegate_core::{ClosedWindow, ConcurrencyLaw, GradientOptions};
///
/// let mut law = GradientOptions::new().limits(1, 16, 100).build()?;
/// let mut window = ClosedWindow::default();
/// // 20 calls of a millisecond each, and all of the limit in use.
/// (window.successes, window.latency_sum, window.most_in_use) = (20, 20_000_000, 16);
/// assert_eq!(law.update(&window), 16);
/// assert_eq!(law.update(&window), 17);
/// // They take three times as long: twice as long as is tolerated.
/// window.latency_sum = 60_000_000;
/// assert_eq!(law.update(&window), 15);
/// # Ok::<(), sluicegate_core::LawOptionsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GradientLaw {
    options: GradientOptions,
    /// In `1 / ONE`.
    limit: u64,
    /// In `1 / TICKS` of a nanosecond.
    baseline: Option<u128>,
}

impl GradientLaw {
    /// What it was built from.
    pub const fn options(&self) -> &GradientOptions {
        &self.options
    }

    /// The latency without load, as far as it is known.
    pub fn baseline(&self) -> Option<Duration> {
        // Within the longest latency, and so within 64 bits.
        self.baseline.map(|ticks| Duration::from_nanos((ticks / TICKS) as u64))
    }

    fn learn(&mut self, mean: u128, is_half_used: bool) {
        let baseline = match self.baseline {
            None => mean,
            Some(_) if self.limit() == self.options.limits.least => mean,
            Some(baseline) if mean < baseline => baseline - (baseline - mean) / 2,
            Some(baseline) if !is_half_used && mean <= self.tolerated(baseline) => {
                baseline + part(mean - baseline, self.options.baseline_rise)
            }
            Some(baseline) => baseline,
        };
        let (least, most) = self.options.baseline;
        self.baseline = Some(baseline.clamp(ticks(least), ticks(most)));
    }

    const fn tolerated(&self, baseline: u128) -> u128 {
        baseline * self.options.tolerance as u128 / 100
    }

    /// What `mean` takes from the limit, in its unit; `None` where it is within tolerance.
    fn fall(&self, mean: u128) -> Option<u64> {
        let tolerated = self.tolerated(self.baseline?);
        if mean <= tolerated {
            return None;
        }
        // 1 - gradient, in 2^-40: 76 + 40 bits, and no more than a half.
        let excess = (((mean - tolerated) << EXCESS_BITS) / mean).min(1 << (EXCESS_BITS - 1));
        // 52 + 40 bits, and no more than half of the limit.
        Some(part((u128::from(self.limit) * excess) >> EXCESS_BITS, self.options.smoothing) as u64)
    }
}

impl Default for GradientLaw {
    fn default() -> Self {
        GradientOptions::new().unchecked()
    }
}

impl ConcurrencyLaw for GradientLaw {
    fn limit(&self) -> u32 {
        // No more than the most.
        (self.limit / ONE) as u32
    }

    fn bounds(&self) -> RangeInclusive<u32> {
        self.options.limits.bounds()
    }

    fn update(&mut self, window: &ClosedWindow) -> u32 {
        let Limits { least, most, .. } = self.options.limits;
        let is_half_used = window.is_half_used(self.limit());
        let mean = mean(window);
        if let (0, Some(mean)) = (window.dropped, mean) {
            self.learn(mean, is_half_used);
        }
        let mut limit = match mean.and_then(|mean| self.fall(mean)) {
            Some(fall) => self.limit - fall,
            None if mean.is_some() && is_half_used => {
                let root = (u128::from(self.limit) * u128::from(ONE)).isqrt();
                self.limit + part(root, self.options.smoothing) as u64
            }
            None => self.limit,
        };
        if window.dropped > 0 {
            // Nor does it grow.
            limit = limit.min(self.options.backoff.of(self.limit));
        }
        self.limit = limit.clamp(u64::from(least) * ONE, u64::from(most) * ONE);
        self.limit()
    }
}

/// What a [`GradientLaw`] is built from.
///
/// | | what | default |
/// |---|---|---|
/// | [`limits`](Self::limits) | the least, the one to begin with, and the most | 1, 10, 1000 |
/// | [`tolerance`](Self::tolerance) | the latency that is tolerated, in percent of the baseline: 100 to 1000 | 150 |
/// | [`smoothing`](Self::smoothing) | how much of the way the limit goes in one window | 20 % |
/// | [`backoff`](Self::backoff) | left after a window with drops | 90 % |
/// | [`baseline`](Self::baseline) | the least and the most that the baseline can be | 1 µs to 30 years |
/// | [`baseline_rise`](Self::baseline_rise) | how much of the way the baseline goes up in one window with little load | 5 % |
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{GradientOptions, LawOptionsError};
///
/// let law = GradientOptions::new()
///     .limits(4, 20, 500)
///     .tolerance(200)
///     .baseline(Duration::from_millis(1), Duration::from_secs(2))
///     .build()?;
/// assert_eq!(law.options().build(), Ok(law));
/// assert_eq!(GradientOptions::new().tolerance(99).build(), Err(LawOptionsError::Tolerance { percent: 99 }));
/// # Ok::<(), LawOptionsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a law is built from them"]
pub struct GradientOptions {
    limits: Limits,
    tolerance: u32,
    smoothing: Share,
    backoff: Share,
    baseline: (Duration, Duration),
    baseline_rise: Share,
}

impl GradientOptions {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            limits: Limits::DEFAULT,
            tolerance: 150,
            smoothing: Share::known_percent(20),
            backoff: BACKOFF,
            baseline: (Duration::from_micros(1), LONGEST),
            baseline_rise: Share::known_percent(5),
        }
    }

    /// The least limit, 1 or more, the one to begin with, and the most. A call whose cost is above the least can be denied as one that
    /// never fits.
    pub const fn limits(self, least: u32, initial: u32, most: u32) -> Self {
        Self { limits: Limits { least, initial, most }, ..self }
    }

    /// How long calls may take on average, in percent of the baseline, before the limit goes down: 100 to 1000. A service that works on
    /// some calls at once settles at about so many percent of their number.
    pub const fn tolerance(self, percent: u32) -> Self {
        Self { tolerance: percent, ..self }
    }

    /// How much of the way to where it should be the limit goes in one window. More is quicker and swings more.
    pub const fn smoothing(self, smoothing: Share) -> Self {
        Self { smoothing, ..self }
    }

    /// How much of the limit is left at most after a window with drops. Less than all of it.
    pub const fn backoff(self, left: Share) -> Self {
        Self { backoff: left, ..self }
    }

    /// Between what the baseline stays, whatever is measured. The least has to be well above what the clock can tell apart, or else a call that
    /// takes one tick is an overload; above 0 s. The most bounds what can be taken for a service without load; up to 30 years.
    pub const fn baseline(self, least: Duration, most: Duration) -> Self {
        Self { baseline: (least, most), ..self }
    }

    /// How much of the way to a higher mean the baseline goes in one window, within tolerance and with less than half in use.
    pub const fn baseline_rise(self, rise: Share) -> Self {
        Self { baseline_rise: rise, ..self }
    }

    /// The law.
    ///
    /// # Errors
    /// [`LawOptionsError`] names what cannot be, its value and what can.
    pub const fn build(self) -> Result<GradientLaw, LawOptionsError> {
        if let Err(error) = self.limits.check(self.backoff) {
            return Err(error);
        }
        if self.tolerance < 100 || self.tolerance > 1_000 {
            return Err(LawOptionsError::Tolerance { percent: self.tolerance });
        }
        let (least, most) = self.baseline;
        if least.is_zero() || least.as_nanos() > most.as_nanos() || most.as_nanos() > LONGEST.as_nanos() {
            return Err(LawOptionsError::Baseline { least, most });
        }
        Ok(self.unchecked())
    }

    const fn unchecked(self) -> GradientLaw {
        GradientLaw { options: self, limit: self.limits.initial as u64 * ONE, baseline: None }
    }
}

impl Default for GradientOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// The mean latency of successes, in ticks and up to the longest.
fn mean(window: &ClosedWindow) -> Option<u128> {
    let sum = window.latency_sum.min(u128::MAX / TICKS) * TICKS;
    sum.checked_div(window.successes.into()).map(|mean| mean.min(ticks(LONGEST)))
}

const fn ticks(latency: Duration) -> u128 {
    latency.as_nanos() * TICKS
}

/// `share` of a whole of up to 108 bits, rounded down.
const fn part(whole: u128, share: Share) -> u128 {
    whole * share.as_parts_per_million() as u128 / Share::ALL.as_parts_per_million() as u128
}

/// The smallest smoothing is a millionth, and the root of the smallest limit is one: a step up is at least one of these, and not lost.
const ONE: u64 = 1 << 20;

/// Fine enough that means of short calls differ from their baseline. A latency is of 76 bits then.
const TICKS: u128 = 1 << 16;

/// As many as 76 bits of a latency leave room for: fine enough for the largest limit.
const EXCESS_BITS: u32 = 40;

/// Longer ones count as this.
const LONGEST: Duration = Duration::from_nanos(Nanos::HORIZON.as_u64());
