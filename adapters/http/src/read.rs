//! What the headers of an answer say is left.

use core::cmp::Reverse;
use core::time::Duration;
use std::time::SystemTime;

use http::HeaderMap;
use sluicegate_core::QuotaLeft;

use crate::reader::Reader;
use crate::{HeaderError, QuotaUnit};

/// The longest wait and the longest time until a reset that is read: 366 days. What is longer counts as this.
///
/// It is a year, the longest period for which quotas are sold, so it changes nothing that is meant; and it keeps an absurd number, or a
/// clock that is wrong, from growing beyond what timers and other arithmetic take.
///
/// ```
/// use std::time::SystemTime;
/// use sluicegate_http::{LONGEST_WAIT, QuotaLeft, quota_left};
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert("retry-after", "99999999999999999999".parse()?);
/// assert_eq!(quota_left(&headers, SystemTime::UNIX_EPOCH), Some(QuotaLeft::new(0, LONGEST_WAIT)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
pub const LONGEST_WAIT: Duration = Duration::from_secs(366 * 86_400);

/// The strictest of all that `headers` say is left at `now`, by the system's clock; `None` where they say nothing.
///
/// It is what [`ServiceLimits::read`] reads, and of that what [`left`](ServiceLimits::left) says of requests. `until_reset` is more
/// than zero and at most [`LONGEST_WAIT`]. Reads no clock, never panics, and takes time linear in the headers' length.
///
/// ```
/// use core::time::Duration;
/// use std::time::SystemTime;
/// use sluicegate_http::{QuotaLeft, quota_left};
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert("ratelimit", r#""minute";r=50;t=30, "day";r=100;t=40000"#.parse()?);
/// headers.insert("x-ratelimit-remaining", "many".parse()?);
/// let left = quota_left(&headers, SystemTime::UNIX_EPOCH);
/// assert_eq!(left, Some(QuotaLeft::new(100, Duration::from_secs(40_000))));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn quota_left(headers: &HeaderMap, now: SystemTime) -> Option<QuotaLeft> {
    ServiceLimits::read(headers, now).left(&QuotaUnit::Requests)
}

/// As [`quota_left`], but every header that it looks at has to be readable.
///
/// ```
/// use std::time::SystemTime;
/// use sluicegate_http::try_quota_left;
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert("retry-after", "-5".parse()?);
/// let error = try_quota_left(&headers, SystemTime::UNIX_EPOCH).unwrap_err();
/// assert_eq!(error.to_string(), "Retry-After is `-5`: write seconds, or a date as `Sun, 06 Nov 1994 08:49:37 GMT`");
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
///
/// # Errors
/// As [`ServiceLimits::try_read`].
pub fn try_quota_left(headers: &HeaderMap, now: SystemTime) -> Result<Option<QuotaLeft>, HeaderError> {
    ServiceLimits::try_read(headers, now).map(|limits| limits.left(&QuotaUnit::Requests))
}

/// All that the headers of an answer say of limits.
///
/// | header | read |
/// |---|---|
/// | `Retry-After` | seconds, or a date |
/// | `RateLimit` | `"name";r=50;t=30;pk=:base64:` for each policy (IETF draft-ietf-httpapi-ratelimit-headers from 08 to 11), or `limit=100, remaining=50, reset=30` (07) |
/// | `RateLimit-Policy` | `"name";q=100;w=60;qu="requests";pk=:base64:` for each policy, or `100;w=60` (07 and before) |
/// | `RateLimit-Limit`, `-Remaining` and `-Reset` | a quota, what is left of it, and seconds or a point in time (06 and before) |
/// | `X-RateLimit-…` and `X-Rate-Limit-…` | the same three; and `-Reset-After`, seconds, which wins over `-Reset` because it depends on no clock |
///
/// # Which resets are points in time
///
/// A `-Reset` below 1 000 000 000 is a number of seconds (of up to 31 years). From there on it is a point in time in Unix seconds (of
/// 9 September 2001 or later), from 100 000 000 000 on one in Unix milliseconds (of 3 March 1973 or later), and with 16 digits or more
/// it cannot be read. `-Reset-After`, `t` and a number in `Retry-After` are seconds whatever their size.
///
/// # Numbers and times
///
/// In headers other than the first three's structured fields, numbers may have a fraction: of tokens it is cut off, of seconds it counts down to the nanosecond.
/// A time that has passed is zero, and one that is longer than [`LONGEST_WAIT`] counts as that, as does a date or a point in time further ahead.
/// A date before 1970 cannot be read. A number of tokens beyond 64 bits is `u64::MAX`.
///
/// # What cannot be read
///
/// [`read`](Self::read) skips it, and [`try_read`](Self::try_read) is an error. Of a header that is there several times but may be once,
/// the fewest tokens and the longest time count.
///
/// ```
/// use core::time::Duration;
/// use std::time::SystemTime;
/// use sluicegate_http::{QuotaUnit, ServiceLimits};
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert("ratelimit-policy", r#""upload";q=65535;qu="content-bytes";w=10"#.parse()?);
/// headers.insert("ratelimit", r#""upload";r=512;t=4;pk=:QXBwLTk5OQ==:"#.parse()?);
/// let limits = ServiceLimits::read(&headers, SystemTime::UNIX_EPOCH);
/// let upload = &limits.limits[0];
/// assert_eq!(upload.name.as_deref(), Some("upload"));
/// assert_eq!(upload.partition_key.as_deref(), Some(&b"App-999"[..]));
/// assert_eq!((upload.quota, upload.window), (Some(65_535), Some(Duration::from_secs(10))));
/// assert_eq!(upload.quota_unit, QuotaUnit::ContentBytes);
/// assert_eq!((upload.remaining, upload.until_reset), (Some(512), Some(Duration::from_secs(4))));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ServiceLimits {
    /// How long to wait before the next request; zero where a date has passed, and at most [`LONGEST_WAIT`].
    pub retry_after: Option<Duration>,
    /// One for each that `RateLimit` names, then for each policy that it does not name, then for each kind of the older headers.
    pub limits: Vec<ServiceLimit>,
}

impl ServiceLimits {
    /// Reads `headers` at `now`, by the system's clock, which dates and points in time count from. A clock before 1970 counts as at 1970.
    ///
    /// Reads no clock, never panics, and takes time and memory linear in the headers' length.
    ///
    /// ```
    /// use core::time::Duration;
    /// use std::time::SystemTime;
    /// use sluicegate_http::ServiceLimits;
    ///
    /// let mut headers = http::HeaderMap::new();
    /// headers.insert("x-ratelimit-limit", "5".parse()?);
    /// headers.insert("x-ratelimit-remaining", "1".parse()?);
    /// headers.insert("x-ratelimit-reset-after", "1.25".parse()?);
    /// let limits = ServiceLimits::read(&headers, SystemTime::now());
    /// assert_eq!((limits.limits[0].quota, limits.limits[0].remaining), (Some(5), Some(1)));
    /// assert_eq!(limits.limits[0].until_reset, Some(Duration::from_millis(1_250)));
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[must_use]
    pub fn read(headers: &HeaderMap, now: SystemTime) -> Self {
        Reader::new(headers, now).read().0
    }

    /// As [`read`](Self::read), but every header that it looks at has to be readable.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use sluicegate_http::ServiceLimits;
    ///
    /// let mut headers = http::HeaderMap::new();
    /// headers.insert("ratelimit", r#""day";r=soon"#.parse()?);
    /// assert!(ServiceLimits::try_read(&headers, SystemTime::UNIX_EPOCH).is_err());
    /// assert!(ServiceLimits::read(&headers, SystemTime::UNIX_EPOCH).limits.is_empty());
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    ///
    /// # Errors
    /// [`HeaderError`] names the first header that cannot be read, its value and what is accepted. A time that is cut to
    /// [`LONGEST_WAIT`] is no error.
    pub fn try_read(headers: &HeaderMap, now: SystemTime) -> Result<Self, HeaderError> {
        match Reader::new(headers, now).read() {
            (limits, None) => Ok(limits),
            (_, Some(error)) => Err(error),
        }
    }

    /// The strictest of what is left in `unit`, as an account counts it down; `None` where nothing is said.
    ///
    /// While `Retry-After` says to wait, nothing is left, whatever else is said. Otherwise the strictest is the limit with the fewest
    /// tokens per time, and of equals the one that lasts longer. A limit in another unit counts only where nothing is left of it:
    /// 0 is 0 in every unit. Nothing is said by a limit whose time has passed, or of which either the number of tokens or the time is
    /// not known. Partition keys are not looked at: where answers are of several, choose among [`limits`](Self::limits).
    ///
    /// `until_reset` is more than zero and at most [`LONGEST_WAIT`]. Never panics; takes time linear in the number of limits.
    ///
    /// ```
    /// use core::time::Duration;
    /// use std::time::SystemTime;
    /// use sluicegate_http::{QuotaLeft, QuotaUnit, ServiceLimits};
    ///
    /// let mut headers = http::HeaderMap::new();
    /// headers.insert("ratelimit-policy", r#""size";q=9000;qu="content-bytes";w=60, "count";q=100;w=60"#.parse()?);
    /// headers.insert("ratelimit", r#""size";r=10;t=30, "count";r=50;t=30"#.parse()?);
    /// let limits = ServiceLimits::read(&headers, SystemTime::UNIX_EPOCH);
    /// let thirty = Duration::from_secs(30);
    /// assert_eq!(limits.left(&QuotaUnit::Requests), Some(QuotaLeft::new(50, thirty)));
    /// assert_eq!(limits.left(&QuotaUnit::ContentBytes), Some(QuotaLeft::new(10, thirty)));
    /// # Ok::<(), http::header::InvalidHeaderValue>(())
    /// ```
    #[must_use]
    pub fn left(&self, unit: &QuotaUnit) -> Option<QuotaLeft> {
        if let Some(wait) = self.retry_after.filter(|wait| !wait.is_zero()) {
            return Some(QuotaLeft::new(0, wait));
        }
        let counts = |limit: &&ServiceLimit| limit.quota_unit == *unit || limit.remaining == Some(0);
        self.limits.iter().filter(counts).filter_map(ServiceLimit::left).reduce(stricter)
    }
}

/// What an answer says of one limit, and of the policy behind it. Whatever it does not say is `None`.
///
/// ```
/// use sluicegate_http::{QuotaUnit, ServiceLimit};
///
/// let nothing = ServiceLimit::default();
/// assert_eq!(nothing.quota_unit, QuotaUnit::Requests);
/// assert_eq!(nothing.left(), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ServiceLimit {
    /// The policy's name; older headers have none.
    pub name: Option<String>,
    /// Whose share of the service's capacity it is (`pk`), of `RateLimit`, or else of the policy.
    pub partition_key: Option<Vec<u8>>,
    /// How much the policy allows in a window (`q`), in [`quota_unit`](Self::quota_unit)s.
    pub quota: Option<u64>,
    /// What is counted (`qu`). Only policies say it; where nothing is said, requests are meant.
    pub quota_unit: QuotaUnit,
    /// The policy's window (`w`), in whole seconds from 1 on. One that is longer than [`LONGEST_WAIT`] is not told: a shorter one
    /// would make more of the quota than it is.
    pub window: Option<Duration>,
    /// How much is left (`r`), in [`quota_unit`](Self::quota_unit)s.
    pub remaining: Option<u64>,
    /// Until there is more (`t`); zero where that has passed, and at most [`LONGEST_WAIT`].
    pub until_reset: Option<Duration>,
}

impl ServiceLimit {
    /// What is left of it and until when, if both are known and that time has not passed.
    ///
    /// ```
    /// use core::time::Duration;
    /// use sluicegate_http::{QuotaLeft, ServiceLimit};
    ///
    /// let mut limit = ServiceLimit::default();
    /// limit.remaining = Some(7);
    /// assert_eq!(limit.left(), None);
    /// limit.until_reset = Some(Duration::from_secs(60));
    /// assert_eq!(limit.left(), Some(QuotaLeft::new(7, Duration::from_secs(60))));
    /// ```
    #[must_use]
    pub fn left(&self) -> Option<QuotaLeft> {
        let until_reset = self.until_reset.filter(|until_reset| !until_reset.is_zero())?;
        Some(QuotaLeft::new(self.remaining?, until_reset))
    }
}

/// That with fewer tokens per time, or of equals that which lasts longer.
fn stricter(one: QuotaLeft, other: QuotaLeft) -> QuotaLeft {
    // Saturates beyond 2^64 tokens in a year: all of those are as good as endless.
    let rate =
        |left: QuotaLeft, beside: QuotaLeft| u128::from(left.tokens).saturating_mul(beside.until_reset.as_nanos());
    let order = rate(one, other).cmp(&rate(other, one));
    if order.then(Reverse(one.until_reset).cmp(&Reverse(other.until_reset))).is_le() { one } else { other }
}
