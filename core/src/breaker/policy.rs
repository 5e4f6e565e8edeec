//! When a breaker trips, and how it comes back.

use core::fmt;
use core::time::Duration;

use crate::Share;

/// When a circuit breaker opens, for how long, and how it closes again: checked, by [`BreakerOptions::build`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    options: BreakerOptions,
    /// Nanoseconds of a part of the window.
    pub(super) part: u64,
    /// Nanoseconds from which on a call is slow.
    pub(super) slow_from: Option<u64>,
}

impl BreakerPolicy {
    /// What it was built from.
    pub const fn options(&self) -> &BreakerOptions {
        &self.options
    }

    /// How long the breaker stays open the `trip`-th time in a row, from 1 on.
    pub(super) fn cool_down(&self, trip: u32) -> Duration {
        let doublings = trip.saturating_sub(1).min(64);
        let grown = self.options.first_cool_down.as_nanos().checked_shl(doublings);
        // What is shifted out would have been more than any duration.
        match grown {
            Some(nanos) if nanos >> doublings == self.options.first_cool_down.as_nanos() => {
                self.options.longest_cool_down.min(crate::nanos::nanos_to_duration(nanos))
            }
            _ => self.options.longest_cool_down,
        }
    }

    /// How long probes may take.
    pub(super) fn patience(&self) -> Duration {
        self.options.probe_patience.unwrap_or(self.options.longest_cool_down)
    }
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        let options = BreakerOptions::new();
        Self { options, part: part_of(options.window), slow_from: None }
    }
}

/// What a [`BreakerPolicy`] is built from.
///
/// | | what | default |
/// |---|---|---|
/// | [`window`](Self::window) | for how long a result counts, 16 ns to 30 years | 10 s |
/// | [`minimum_calls`](Self::minimum_calls) | with fewer results in the window no share trips | 20 |
/// | [`failure_share`](Self::failure_share) | trips at this share of failures, or at none | 50 % |
/// | [`slow_calls`](Self::slow_calls) | from when on a call is slow, and the share of slow ones that trips | none |
/// | [`consecutive_failures`](Self::consecutive_failures) | trips at so many failures in a row, however few calls there were | none |
/// | [`cool_down`](Self::cool_down) | how long it stays open the first time, and at most; twice as long each further time in a row | 5 s, 60 s |
/// | [`probes`](Self::probes) | so many calls pass then, and all of them have to succeed | 3 |
/// | [`probe_patience`](Self::probe_patience) | how long without one that comes back, until others pass in their place | the longest cool-down |
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{BreakerOptions, BreakerOptionsError, Share};
///
/// let policy = BreakerOptions::new()
///     .failure_share(Share::percent(30)?)
///     .slow_calls(Duration::from_millis(800), Share::percent(60)?)
///     .consecutive_failures(8)
///     .probes(2)
///     .build()?;
/// assert_eq!(policy.options().build(), Ok(policy));
/// assert_eq!(BreakerOptions::new().probes(0).build(), Err(BreakerOptionsError::NoProbes));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a policy is built from them"]
pub struct BreakerOptions {
    window: Duration,
    minimum_calls: u32,
    pub(super) failures: Option<Share>,
    pub(super) slow: Option<(Duration, Share)>,
    pub(super) consecutive: Option<u32>,
    first_cool_down: Duration,
    longest_cool_down: Duration,
    pub(super) probes: u32,
    probe_patience: Option<Duration>,
}

impl BreakerOptions {
    /// The defaults.
    pub const fn new() -> Self {
        Self {
            window: Duration::from_secs(10),
            minimum_calls: 20,
            failures: Some(Share::HALF),
            slow: None,
            consecutive: None,
            first_cool_down: Duration::from_secs(5),
            longest_cool_down: Duration::from_secs(60),
            probes: 3,
            probe_patience: None,
        }
    }

    /// For how long a result counts. The window moves on by sixteenths: a result counts for as long as this, or up to a sixteenth less.
    pub const fn window(self, window: Duration) -> Self {
        Self { window, ..self }
    }

    /// With fewer results than this in the window no share of them trips: one failure in one call says little. At least 1.
    pub const fn minimum_calls(self, minimum_calls: u32) -> Self {
        Self { minimum_calls, ..self }
    }

    /// Trips once this share of the results in the window are failures.
    pub const fn failure_share(self, share: Share) -> Self {
        Self { failures: Some(share), ..self }
    }

    /// No share of failures trips; something else must.
    pub const fn any_failure_share(self) -> Self {
        Self { failures: None, ..self }
    }

    /// A call that takes `from` or longer is slow, and trips once `share` of the results in the window are. A slow probe counts as failed.
    pub const fn slow_calls(self, from: Duration, share: Share) -> Self {
        Self { slow: Some((from, share)), ..self }
    }

    /// Trips at so many failures in a row, each less than a window after the one before. At least 1.
    pub const fn consecutive_failures(self, failures: u32) -> Self {
        Self { consecutive: Some(failures), ..self }
    }

    /// How long the breaker stays open the first time, and at most: each further time in a row it is twice as long as the time before.
    pub const fn cool_down(self, first: Duration, longest: Duration) -> Self {
        Self { first_cool_down: first, longest_cool_down: longest, ..self }
    }

    /// How many calls pass once it has cooled down. If all of them succeed it closes; one failure opens it again. At least 1.
    pub const fn probes(self, probes: u32) -> Self {
        Self { probes, ..self }
    }

    /// So long after the first of them passed, or the last one succeeded, probes that have not come back are given up, and others pass in their place: one
    /// that hangs, or whose permit was leaked, must not shut everybody out for ever. It should be above what a call takes.
    pub const fn probe_patience(self, patience: Duration) -> Self {
        Self { probe_patience: Some(patience), ..self }
    }

    /// The policy.
    ///
    /// # Errors
    /// [`BreakerOptionsError`] names what cannot be, its value and what can.
    pub const fn build(self) -> Result<BreakerPolicy, BreakerOptionsError> {
        use BreakerOptionsError as Error;
        let nanos = self.window.as_nanos();
        if nanos < PARTS as u128 || nanos > crate::Nanos::HORIZON.as_u64() as u128 {
            return Err(Error::Window { window: self.window });
        }
        if self.minimum_calls == 0 {
            return Err(Error::NoMinimumCalls);
        }
        if let Some((from, _)) = self.slow {
            if from.is_zero() {
                return Err(Error::EveryCallIsSlow);
            }
        }
        if let Some(0) = self.consecutive {
            return Err(Error::NoConsecutiveFailures);
        }
        if self.failures.is_none() && self.slow.is_none() && self.consecutive.is_none() {
            return Err(Error::NothingTrips);
        }
        if self.first_cool_down.is_zero() || self.first_cool_down.as_nanos() > self.longest_cool_down.as_nanos() {
            return Err(Error::CoolDown { first: self.first_cool_down, longest: self.longest_cool_down });
        }
        if self.probes == 0 {
            return Err(Error::NoProbes);
        }
        if let Some(Duration::ZERO) = self.probe_patience {
            return Err(Error::NoPatience);
        }
        let slow_from = match self.slow {
            Some((from, _)) if from.as_nanos() <= u64::MAX as u128 => Some(from.as_nanos() as u64),
            // No call lasts for longer than a clock can tell.
            _ => None,
        };
        Ok(BreakerPolicy { options: self, part: part_of(self.window), slow_from })
    }

    pub(super) const fn least_calls(&self) -> u64 {
        self.minimum_calls as u64
    }

    pub(super) const fn span(&self) -> Duration {
        self.window
    }
}

impl Default for BreakerOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Why there is no such [`BreakerPolicy`]. It is the configuration's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BreakerOptionsError {
    /// The window is shorter than 16 ns, of which each sixteenth has one, or longer than 30 years.
    Window {
        /// What was asked for.
        window: Duration,
    },
    /// At least one call is needed before a share of them can trip.
    NoMinimumCalls,
    /// A call that takes no time at all would be slow.
    EveryCallIsSlow,
    /// It would trip at no failure.
    NoConsecutiveFailures,
    /// No share of failures, no share of slow calls and no number of failures in a row: it would never trip.
    NothingTrips,
    /// The first cool-down is zero, or longer than the longest.
    CoolDown {
        /// The first.
        first: Duration,
        /// The longest.
        longest: Duration,
    },
    /// Without a probe it would never close.
    NoProbes,
    /// Probes would be given up before they can answer.
    NoPatience,
}

impl fmt::Display for BreakerOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window { window } => write!(f, "a window of {window:?}: it has to be 16 ns to 30 years"),
            Self::NoMinimumCalls => f.write_str("0 minimum calls: there has to be at least 1"),
            Self::EveryCallIsSlow => f.write_str("calls are slow from 0 s on: it has to be longer"),
            Self::NoConsecutiveFailures => f.write_str("0 failures in a row: there has to be at least 1"),
            Self::NothingTrips => {
                f.write_str("nothing trips it: give a share of failures, a share of slow calls or failures in a row")
            }
            Self::CoolDown { first, longest } => {
                write!(
                    f,
                    "a cool-down of {first:?} and at most {longest:?}: the first has to be above 0 s, and no longer"
                )
            }
            Self::NoProbes => f.write_str("0 probes: there has to be at least 1"),
            Self::NoPatience => f.write_str("no patience with probes: it has to be above 0 s"),
        }
    }
}

impl core::error::Error for BreakerOptionsError {}

const fn part_of(window: Duration) -> u64 {
    // At most 30 years, so it fits; at least one.
    (window.as_nanos() / PARTS as u128) as u64
}

/// Into so many parts a window is divided.
pub(super) const PARTS: usize = 16;
