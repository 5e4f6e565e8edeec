//! What calls tell about load, gathered over a while.

use core::fmt;
use core::time::Duration;

use crate::nanos::duration_to_nanos;
use crate::{Nanos, Outcome};

/// Gathers how calls ended until there is enough of it to go by.
///
/// A window begins with a sample. It is closed by the first sample that finds it [`least`](SampleOptions::lasting) long or longer and with at least
/// [`samples`](SampleOptions::samples) in it. Once half of the longest time is over, twice the limit in force are enough, if that is fewer: where few calls are let in
/// and each takes long, there never are more, and a limit at its floor would stay there. One that could not be closed within the longest time is dropped
/// whole: few samples, or old ones, say nothing, and what they say must not be mixed with what comes after a pause.
///
/// # What is a sample
///
/// A success with its latency, and a dropped call, whose latency says nothing. No sample: an ignored call; and a success that ended before it
/// started, by a clock that stepped back. A reading before the window's first one counts as its first, so a window is never
/// longer in the making than it would have been.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Nanos, Outcome, SampleOptions, Sampled};
///
/// let mut window = SampleOptions::new().lasting(Duration::from_secs(1), Duration::from_secs(9)).samples(2).build()?;
/// let mut call = |start, end| window.add(Nanos::from_millis(start), Nanos::from_millis(end), Outcome::Success, 3, 10);
/// assert_eq!(call(1_000, 1_010), Sampled::Counted);
/// let Sampled::Closed(closed) = call(2_000, 2_030) else { panic!("it has lasted for a second, and has two") };
/// assert_eq!((closed.successes, closed.mean_latency()), (2, Some(Duration::from_millis(20))));
/// // The next one ends within its second, and then there is nothing for a long time.
/// assert_eq!(call(2_000, 2_040), Sampled::Counted);
/// assert_eq!(call(60_000, 60_010), Sampled::Dropped { samples: 1 });
/// # Ok::<(), sluicegate_core::SampleOptionsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleWindow {
    options: SampleOptions,
    /// The reading of the first sample.
    begun: Option<Nanos>,
    /// Calls that started before are no samples.
    since: Option<Nanos>,
    gathered: ClosedWindow,
}

impl SampleWindow {
    const fn of(options: SampleOptions) -> Self {
        Self { options, begun: None, since: None, gathered: ClosedWindow::NONE }
    }

    /// What it was built from.
    pub const fn options(&self) -> &SampleOptions {
        &self.options
    }

    /// Adds a call that ended at `ended` while `in_use` was in use, itself included, of the `limit` in force.
    pub fn add(&mut self, started: Nanos, ended: Nanos, outcome: Outcome, in_use: u32, limit: u32) -> Sampled {
        let success = match outcome {
            Outcome::Success if ended >= started => Some(ended.as_u64() - started.as_u64()),
            Outcome::Dropped => None,
            _ => return Sampled::NotCounted,
        };
        let (least, longest) = self.options.lasting;
        if self.is_of_before(started, ended, longest) {
            return Sampled::NotCounted;
        }
        let begun = self.begun.unwrap_or(ended).min(ended);
        let lasted = ended.saturating_duration_since(begun);
        if lasted > longest {
            let dropped = self.forget();
            self.begun = Some(ended);
            self.gathered.count(success, in_use);
            return Sampled::Dropped { samples: dropped.samples() };
        }
        self.begun = Some(begun);
        self.gathered.count(success, in_use);
        let enough = u64::from(self.options.samples);
        let enough = if lasted >= longest / 2 { enough.min(2 * u64::from(limit)) } else { enough };
        if lasted >= least && self.gathered.samples() >= enough {
            Sampled::Closed(self.forget())
        } else {
            Sampled::Counted
        }
    }

    /// From now on, and for no longer than a window can last, only calls that start at `now` or later are samples.
    ///
    /// For whoever has just lowered a limit: calls that were let in before say nothing of the new one, and one burst of drops would
    /// lower it again and again.
    pub fn only_calls_from(&mut self, now: Nanos) {
        self.since = Some(now);
    }

    fn is_of_before(&mut self, started: Nanos, ended: Nanos, longest: Duration) -> bool {
        let Some(since) = self.since else { return false };
        // Where the clock went back, the wait is from there.
        let since = since.min(ended);
        let is_over = ended.saturating_duration_since(since) >= longest;
        self.since = if is_over { None } else { Some(since) };
        !is_over && started < since
    }

    fn forget(&mut self) -> ClosedWindow {
        self.begun = None;
        core::mem::take(&mut self.gathered)
    }
}

impl Default for SampleWindow {
    fn default() -> Self {
        Self::of(SampleOptions::new())
    }
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a window that was closed is told of once"]
pub enum Sampled {
    /// It was none, and changed nothing.
    NotCounted,
    /// It is in the window, which goes on.
    Counted,
    /// It is the last one of this window. The next one begins with the next sample.
    Closed(ClosedWindow),
    /// The window before it could not be closed in time and is gone; this sample is the first of the next one.
    Dropped {
        /// How many samples are gone.
        samples: u64,
    },
}

/// What was gathered in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClosedWindow {
    /// Calls that succeeded.
    pub successes: u64,
    /// How long they took together, in nanoseconds.
    pub latency_sum: u128,
    /// The shortest of them; zero where there is none.
    pub least_latency: Duration,
    /// Calls that were dropped.
    pub dropped: u64,
    /// The most that was in use when one of all these calls ended, itself included. Use goes down only when a call ends, so between
    /// calls that are samples there was never more.
    pub most_in_use: u32,
}

impl ClosedWindow {
    const NONE: Self = Self { successes: 0, latency_sum: 0, least_latency: Duration::ZERO, dropped: 0, most_in_use: 0 };

    /// Calls that succeeded or were dropped.
    pub const fn samples(&self) -> u64 {
        self.successes.saturating_add(self.dropped)
    }

    /// How long a success took on average, rounded down; `None` without one.
    pub const fn mean_latency(&self) -> Option<Duration> {
        match self.latency_sum.checked_div(self.successes as u128) {
            Some(mean) => Some(crate::nanos::nanos_to_duration(mean)),
            None => None,
        }
    }

    /// Whether at least half of `limit` was in use at some time.
    pub const fn is_half_used(&self, limit: u32) -> bool {
        self.most_in_use as u64 * 2 >= limit as u64
    }

    fn count(&mut self, success: Option<u64>, in_use: u32) {
        self.most_in_use = self.most_in_use.max(in_use);
        // Nothing can be counted 2^64 times, nor sum up to 2^128.
        match success {
            None => self.dropped += 1,
            Some(nanos) => {
                let latency = Duration::from_nanos(nanos);
                self.least_latency = if self.successes == 0 { latency } else { self.least_latency.min(latency) };
                self.successes += 1;
                self.latency_sum += u128::from(nanos);
            }
        }
    }
}

/// What a [`SampleWindow`] is built from.
///
/// | | what | default |
/// |---|---|---|
/// | [`lasting`](Self::lasting) | the least and the longest time of a window | 250 ms, 10 s |
/// | [`samples`](Self::samples) | the least number of samples in one; later twice the limit, if that is fewer | 20 |
///
/// ```
/// use sluicegate_core::{SampleOptions, SampleOptionsError};
///
/// let window = SampleOptions::new().samples(50).build()?;
/// assert_eq!(window.options().build(), Ok(window));
/// assert_eq!(SampleOptions::new().samples(0).build(), Err(SampleOptionsError::NoSamples));
/// # Ok::<(), SampleOptionsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a window is built from them"]
pub struct SampleOptions {
    lasting: (Duration, Duration),
    samples: u32,
}

impl SampleOptions {
    /// The defaults.
    pub const fn new() -> Self {
        Self { lasting: (Duration::from_millis(250), Duration::from_secs(10)), samples: 20 }
    }

    /// How long a window lasts at least, and at most. The longest time should be well above what a call takes.
    pub const fn lasting(self, least: Duration, longest: Duration) -> Self {
        Self { lasting: (least, longest), ..self }
    }

    /// How many samples there have to be, or twice the limit in force once half of the longest time is over, if that is fewer. At least 1.
    pub const fn samples(self, least: u32) -> Self {
        Self { samples: least, ..self }
    }

    /// A window that has not begun.
    ///
    /// # Errors
    /// [`SampleOptionsError`] names what cannot be, its value and what can.
    pub const fn build(self) -> Result<SampleWindow, SampleOptionsError> {
        let (least, longest) = self.lasting;
        if duration_to_nanos(least) >= duration_to_nanos(longest)
            || duration_to_nanos(longest) > Nanos::HORIZON.as_u64()
        {
            return Err(SampleOptionsError::Lasting { least, longest });
        }
        if self.samples == 0 {
            return Err(SampleOptionsError::NoSamples);
        }
        Ok(SampleWindow::of(self))
    }
}

impl Default for SampleOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Why there is no such [`SampleWindow`]. It is the configuration's mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SampleOptionsError {
    /// The least time is not below the longest, or that is longer than 30 years.
    Lasting {
        /// The least.
        least: Duration,
        /// The longest.
        longest: Duration,
    },
    /// There is nothing to go by without a sample.
    NoSamples,
}

impl fmt::Display for SampleOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lasting { least, longest } => {
                write!(f, "a window of {least:?} to {longest:?}: the longest has to be longer, and up to 30 years")
            }
            Self::NoSamples => f.write_str("0 samples: there has to be at least 1"),
        }
    }
}

impl core::error::Error for SampleOptionsError {}
