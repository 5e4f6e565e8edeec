//! Which alerts there are, and when each is raised and cleared.

use core::fmt;
use core::time::Duration;

use super::alerts::Alert;
use crate::{Quota, Share};

/// When alerts are raised and cleared: checked, by [`AlertOptions::build`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlertPolicy {
    options: AlertOptions,
}

impl AlertPolicy {
    /// What it was built from.
    pub const fn options(&self) -> &AlertOptions {
        &self.options
    }

    /// Whether a bucket of this quota that was emptied and is left alone is half full again before [`Alert::SlowRecovery`] is raised. If
    /// it is not, that alert is raised each time the bucket is emptied; which is known before anything runs.
    ///
    /// ```
    /// use sluicegate_core::{AlertPolicy, quota};
    /// assert!(AlertPolicy::default().recovers_in_time(quota!("60/1m")));
    /// assert!(!AlertPolicy::default().recovers_in_time(quota!("1000/1h")));
    /// ```
    pub const fn recovers_in_time(&self, quota: Quota) -> bool {
        match self.options.longest_recovery {
            Some(longest) => quota.recovery_time_to(Share::HALF).as_nanos() <= longest.as_nanos(),
            None => true,
        }
    }
}

/// What an [`AlertPolicy`] is built from: for each alert what raises it and, further away, what clears it again.
///
/// | | raised | cleared | by default |
/// |---|---|---|---|
/// | [`rejections`](Self::rejections) | above a share of the requests of the last minute, if there were enough | at a lower one or below | 5 %, 2.5 % |
/// | [`minimum_requests`](Self::minimum_requests) | | | 20 |
/// | [`fill`](Self::fill) | below a share of the capacity | at a higher one or above | 10 %, 20 % |
/// | [`bursts`](Self::bursts) | above so many in the last minute | at so many or fewer | 20, 10 |
/// | [`adjustments`](Self::adjustments) | above so many in the last hour | at so many or fewer | 10, 5 |
/// | [`recovery`](Self::recovery) | when it was empty, and not half full for longer than this since | at half full or above | 30 s |
///
/// ```
/// use sluicegate_core::{Alert, AlertOptions, AlertOptionsError, Share};
///
/// let policy = AlertOptions::new()
///     .rejections(Share::percent(10)?, Share::percent(8)?)
///     .minimum_requests(100)
///     .without(Alert::Bursts)
///     .build()?;
/// assert_eq!(policy.options().build(), Ok(policy));
///
/// let flutters = AlertOptions::new().bursts(20, 20).build();
/// assert_eq!(flutters, Err(AlertOptionsError::Bursts { above: 20, until: 20 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until a policy is built from them"]
pub struct AlertOptions {
    pub(super) rejections: Option<(Share, Share)>,
    pub(super) minimum_requests: u64,
    pub(super) fill: Option<(Share, Share)>,
    pub(super) bursts: Option<(u64, u64)>,
    pub(super) adjustments: Option<(u64, u64)>,
    pub(super) longest_recovery: Option<Duration>,
}

impl AlertOptions {
    /// The defaults.
    pub const fn new() -> Self {
        const fn parts_per_million(parts: u32) -> Share {
            match Share::parts_per_million(parts) {
                Ok(share) => share,
                Err(_) => Share::ALL,
            }
        }
        Self {
            rejections: Some((parts_per_million(50_000), parts_per_million(25_000))),
            minimum_requests: 20,
            fill: Some((parts_per_million(100_000), parts_per_million(200_000))),
            bursts: Some((20, 10)),
            adjustments: Some((10, 5)),
            longest_recovery: Some(Duration::from_secs(30)),
        }
    }

    /// Raised when more than the share `above` of the requests of the last minute were denied, and cleared when no more than `until` were.
    pub const fn rejections(self, above: Share, until: Share) -> Self {
        Self { rejections: Some((above, until)), ..self }
    }

    /// With fewer requests than this in the last minute no share of denials raises an alert: one in two says little. At least 1.
    pub const fn minimum_requests(self, requests: u64) -> Self {
        Self { minimum_requests: requests, ..self }
    }

    /// Raised when less than the share `below` of the capacity is left at an evaluation, and cleared when `until` or more is.
    pub const fn fill(self, below: Share, until: Share) -> Self {
        Self { fill: Some((below, until)), ..self }
    }

    /// Raised at more [bursts](crate::Counters) than `above` in the last minute, and cleared at no more than `until`.
    pub const fn bursts(self, above: u64, until: u64) -> Self {
        Self { bursts: Some((above, until)), ..self }
    }

    /// Raised at more adjustments than `above` in the last hour, and cleared at no more than `until`.
    pub const fn adjustments(self, above: u64, until: u64) -> Self {
        Self { adjustments: Some((above, until)), ..self }
    }

    /// Raised when the limiter was seen to have less than a hundredth of its capacity, and was not half full for longer than this since.
    /// Above 0 s.
    pub const fn recovery(self, longest: Duration) -> Self {
        Self { longest_recovery: Some(longest), ..self }
    }

    /// Never raises this one.
    pub const fn without(self, alert: Alert) -> Self {
        match alert {
            Alert::Rejections => Self { rejections: None, ..self },
            Alert::LowFill => Self { fill: None, ..self },
            Alert::Bursts => Self { bursts: None, ..self },
            Alert::Adjustments => Self { adjustments: None, ..self },
            Alert::SlowRecovery => Self { longest_recovery: None, ..self },
        }
    }

    /// The policy.
    ///
    /// # Errors
    /// [`AlertOptionsError`] names what cannot be, its values and what can.
    pub const fn build(self) -> Result<AlertPolicy, AlertOptionsError> {
        use AlertOptionsError as Error;
        if let Some((above, until)) = self.rejections {
            if above.as_parts_per_million() <= until.as_parts_per_million() {
                return Err(Error::Rejections { above, until });
            }
        }
        if self.minimum_requests == 0 {
            return Err(Error::NoMinimumRequests);
        }
        if let Some((below, until)) = self.fill {
            if below.as_parts_per_million() >= until.as_parts_per_million() {
                return Err(Error::Fill { below, until });
            }
        }
        if let Some((above, until)) = self.bursts {
            if above <= until {
                return Err(Error::Bursts { above, until });
            }
        }
        if let Some((above, until)) = self.adjustments {
            if above <= until {
                return Err(Error::Adjustments { above, until });
            }
        }
        if let Some(Duration::ZERO) = self.longest_recovery {
            return Err(Error::NoTimeToRecover);
        }
        Ok(AlertPolicy { options: self })
    }
}

impl Default for AlertOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Why there is no such [`AlertPolicy`]. It is the configuration's mistake: an alert that is raised and cleared at one value flutters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AlertOptionsError {
    /// Denials have to become fewer than those that raise the alert before it is cleared.
    Rejections {
        /// It is raised above this.
        above: Share,
        /// It is cleared at this.
        until: Share,
    },
    /// At least one request is needed before a share of them can be denied.
    NoMinimumRequests,
    /// There has to be more left than what raises the alert before it is cleared.
    Fill {
        /// It is raised below this.
        below: Share,
        /// It is cleared at this.
        until: Share,
    },
    /// Bursts have to become fewer than those that raise the alert before it is cleared.
    Bursts {
        /// It is raised above this.
        above: u64,
        /// It is cleared at this.
        until: u64,
    },
    /// Adjustments have to become fewer than those that raise the alert before it is cleared.
    Adjustments {
        /// It is raised above this.
        above: u64,
        /// It is cleared at this.
        until: u64,
    },
    /// Nothing recovers in 0 s.
    NoTimeToRecover,
}

impl fmt::Display for AlertOptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejections { above, until } => {
                write!(f, "rejections alerted above {above} and until {until}: the second has to be lower")
            }
            Self::NoMinimumRequests => f.write_str("0 minimum requests: there has to be at least 1"),
            Self::Fill { below, until } => {
                write!(f, "fill alerted below {below} and until {until}: the second has to be higher")
            }
            Self::Bursts { above, until } => {
                write!(f, "bursts alerted above {above} and until {until}: the second has to be lower")
            }
            Self::Adjustments { above, until } => {
                write!(f, "adjustments alerted above {above} and until {until}: the second has to be lower")
            }
            Self::NoTimeToRecover => f.write_str("no time to recover: it has to be above 0 s"),
        }
    }
}

impl core::error::Error for AlertOptionsError {}
