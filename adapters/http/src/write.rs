//! What a limiter says in the headers of an answer.

use core::time::Duration;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use sfv::{Integer, ItemSerializer, KeyRef, RefBareItem, StringRef, key_ref};
use sluicegate_core::{Admitted, Decision, Inspection, Limit, Quota, Remaining};

use crate::policy::{MOST, NANOS_A_SECOND, in_whole_seconds};
use crate::{NameError, QuotaUnit};

/// Writes the state of one limiter into the headers of answers, by draft-ietf-httpapi-ratelimit-headers-11 and RFC 9110.
///
/// | header | for | |
/// |---|---|---|
/// | `RateLimit-Policy` | `"name";q=100;w=60` | the rate: 100 tokens in 60 s |
/// | `RateLimit` | `"name";r=7;t=3` | 7 whole tokens are left, and in 3 s there will be all of them, if nobody takes any. If the decision is a denial that says when to come back, then that: `t` is `Retry-After` |
/// | `Retry-After` | `1` | only if the decision is a denial that says when to come back |
///
/// # Times
///
/// They are whole seconds, rounded up, so that who waits as long does not come too early. `Retry-After` is at least 1. What one limiter
/// writes agrees: on a denial `t` and `Retry-After` are one number, as the draft wants no `Retry-After` before `t`. Of several limiters in the same
/// headers each has its own `t`; one that is not why the request was denied may be full only later than the `Retry-After` of the one that is, and
/// readers go by `Retry-After`.
///
/// # The rate in whole seconds
///
/// `q` and `w` have exactly the rate's ratio wherever numbers of 15 digits, the most in a structured field, can have it. A period of
/// whole seconds is said as configured; any other as the smallest pair of the same ratio: 7 in 3 s is `q=7;w=3`, 150 in 1.5 s is `q=100;w=1`, and one in
/// 1 ms is `q=1000;w=1`. Beyond that, which takes more than a million tokens or a period of more than 11 days of an odd number of nanoseconds,
/// it is less than the rate by at most a millionth, and never more.
///
/// It is less rather than an error or nothing: who spreads requests by it asks for no more than there is, while who is told of no policy
/// can only guess. The burst is not said, since the draft has no word for it: who starts with a full bucket may take more, and who takes all of `q` at once may
/// be denied where the burst is less.
///
/// # What is left
///
/// `r` goes by the decision where that knows exactly what was left, and otherwise by the inspection. Numbers end at
/// 999 999 999 999 999.
///
/// Of [`Limit::Unlimited`], or by a decision for which there was no limit, only `Retry-After` is said, which a circuit breaker may ask for. Of
/// [`Limit::DenyAll`] it is said that nothing is left (`q=0`, `r=0`), and no time.
///
/// # Cost
///
/// Writing allocates the text of `RateLimit`, and with a partition key that of the policy, in time linear in the name's and key's length. It
/// reads no clock and never panics.
///
/// ```
/// use sluicegate_http::{Limit, LimitHeaders, ManualClock, TokenBucket, quota};
///
/// let limit = quota!("2/1m");
/// let said = LimitHeaders::new("search", Limit::Quota(limit))?;
/// let bucket = TokenBucket::with_clock(limit, ManualClock::new());
///
/// let mut headers = http::HeaderMap::new();
/// said.write(&mut headers, bucket.try_acquire(2), bucket.inspect());
/// assert_eq!(headers["ratelimit-policy"], r#""search";q=2;w=60"#);
/// assert_eq!(headers["ratelimit"], r#""search";r=0;t=60"#);
///
/// let mut headers = http::HeaderMap::new();
/// said.write(&mut headers, bucket.try_acquire(1), bucket.inspect());
/// assert_eq!(headers["ratelimit"], r#""search";r=0;t=30"#);
/// assert_eq!(headers["retry-after"], "30");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LimitHeaders {
    name: sfv::String,
    unit: Option<sfv::String>,
    limit: Limit,
    window: bool,
    /// Says the same in every answer that has no partition key.
    policy: Option<HeaderValue>,
}

impl LimitHeaders {
    /// For a limiter that refills all the time, as a token bucket. `name` is what the policy is called, of printable ASCII.
    ///
    /// ```
    /// use sluicegate_http::{LimitHeaders, quota};
    ///
    /// assert!(LimitHeaders::new("search", quota!("100/1m").into()).is_ok());
    /// assert!(LimitHeaders::new("", quota!("100/1m").into()).is_err());
    /// ```
    ///
    /// # Errors
    /// [`NameError`] says which names can be written.
    pub fn new(name: &str, limit: Limit) -> Result<Self, NameError> {
        Ok(Self { name: printable(name)?, unit: None, limit, window: false, policy: None }.with_policy())
    }

    /// For a fixed window that gives everything back at its end, as a [`ShardedWindow`](sluicegate_core::ShardedWindow): that end is what `t` says then.
    ///
    /// It goes by the decision's reading, and is a whole period where the decision has none.
    ///
    /// ```
    /// use sluicegate_http::{Admitted, Inspection, LimitHeaders, Nanos, Remaining, quota};
    ///
    /// let said = LimitHeaders::window("search", quota!("100/1m").into())?;
    /// let mut headers = http::HeaderMap::new();
    /// let admitted = Admitted::new(Remaining::Exactly(99), Nanos::from_secs(130));
    /// said.write(&mut headers, Ok(admitted), Inspection::new(99, 100));
    /// assert_eq!(headers["ratelimit"], r#""search";r=99;t=50"#);
    /// # Ok::<(), sluicegate_http::NameError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn window(name: &str, limit: Limit) -> Result<Self, NameError> {
        Ok(Self { window: true, ..Self::new(name, limit)? })
    }

    /// Says in the policy what a token is (`qu`). Without it readers take tokens for requests, so say it where they are anything else.
    ///
    /// ```
    /// use sluicegate_http::{Admitted, Inspection, LimitHeaders, Nanos, QuotaUnit, Remaining, quota};
    ///
    /// let said = LimitHeaders::new("upload", quota!("65535/10s").into())?.with_quota_unit(&QuotaUnit::ContentBytes)?;
    /// let mut headers = http::HeaderMap::new();
    /// said.write(&mut headers, Ok(Admitted::new(Remaining::Exactly(9), Nanos::ZERO)), Inspection::new(9, 65_535));
    /// assert_eq!(headers["ratelimit-policy"], r#""upload";q=65535;w=10;qu="content-bytes""#);
    /// # Ok::<(), sluicegate_http::NameError>(())
    /// ```
    ///
    /// # Errors
    /// [`NameError`], for a unit of one's own that cannot be written.
    pub fn with_quota_unit(self, unit: &QuotaUnit) -> Result<Self, NameError> {
        Ok(Self { unit: Some(printable(unit.as_str())?), ..self }.with_policy())
    }

    /// Says in `headers` what was decided, and what `inspection` found right after it.
    ///
    /// What other limiters have said stays: `RateLimit-Policy` and `RateLimit` are lists, to which this limiter is added, and of `Retry-After` the
    /// longer wait stays; one that is no number of seconds is replaced. A map that is full is left as it is.
    ///
    /// ```
    /// use core::time::Duration;
    /// use sluicegate_http::{Denied, Inspection, LimitHeaders, quota};
    ///
    /// let mut headers = http::HeaderMap::new();
    /// for (name, wait) in [("second", 2), ("day", 900)] {
    ///     let said = LimitHeaders::new(name, quota!("10/1s").into())?;
    ///     let denied = Denied::RateLimited { retry_after: Duration::from_secs(wait) };
    ///     said.write(&mut headers, Err(denied), Inspection::new(0, 10));
    /// }
    /// let all: Vec<_> = headers.get_all("ratelimit").iter().collect();
    /// assert_eq!(all, [r#""second";r=0;t=2"#, r#""day";r=0;t=900"#]);
    /// assert_eq!(headers["retry-after"], "900");
    /// # Ok::<(), sluicegate_http::NameError>(())
    /// ```
    pub fn write(&self, headers: &mut HeaderMap, decision: Decision, inspection: Inspection) {
        self.write_item(headers, decision, inspection, self.policy.clone(), None);
    }

    /// As [`write`](Self::write), and says for whom it is (`pk`), where each key has a limit of its own: any bytes, none too.
    ///
    /// Whoever sees the answer sees the key. The draft advises against keys with sensitive information: give a public name or a digest,
    /// and never a token.
    ///
    /// ```
    /// use sluicegate_http::{Admitted, Inspection, LimitHeaders, Nanos, Remaining, quota};
    ///
    /// let said = LimitHeaders::new("user", quota!("100/1m").into())?;
    /// let mut headers = http::HeaderMap::new();
    /// let admitted = Admitted::new(Remaining::Exactly(100), Nanos::ZERO);
    /// said.write_partition(&mut headers, Ok(admitted), Inspection::new(100, 100), b"App-999");
    /// assert_eq!(headers["ratelimit-policy"], r#""user";q=100;w=60;pk=:QXBwLTk5OQ==:"#);
    /// assert_eq!(headers["ratelimit"], r#""user";r=100;t=0;pk=:QXBwLTk5OQ==:"#);
    /// # Ok::<(), sluicegate_http::NameError>(())
    /// ```
    pub fn write_partition(
        &self,
        headers: &mut HeaderMap,
        decision: Decision,
        inspection: Inspection,
        partition_key: &[u8],
    ) {
        let policy = self.policy_of(Some(partition_key));
        self.write_item(headers, decision, inspection, policy, Some(partition_key));
    }

    fn write_item(
        &self,
        headers: &mut HeaderMap,
        decision: Decision,
        inspection: Inspection,
        policy: Option<HeaderValue>,
        partition_key: Option<&[u8]>,
    ) {
        let retry_after = decision.err().and_then(|denied| Some(whole_seconds(denied.retry_after()?).max(1)));
        if let Some(seconds) = retry_after {
            write_retry_after(headers, seconds);
        }
        let Some(policy) = policy else { return };
        if let Ok(Admitted { remaining: Remaining::Unlimited, .. }) = decision {
            return;
        }
        // A map that is full already is left as it is.
        let _ = headers.try_append(RATE_LIMIT_POLICY, policy);
        let tokens = match decision {
            Ok(admitted) => admitted.remaining.exactly().unwrap_or(inspection.level),
            Err(_) => inspection.level,
        };
        let until_reset = || Some(self.seconds_until_reset(self.limit.quota()?, tokens, decision, inspection));
        let said = [
            Some((REMAINING, number(tokens))),
            retry_after.or_else(until_reset).map(|seconds| (TIME, number(seconds))),
            partition_key.map(|key| (PARTITION_KEY, RefBareItem::ByteSequence(key))),
        ];
        if let Some(said) = item(&self.name, said) {
            let _ = headers.try_append(RATE_LIMIT, said);
        }
    }

    /// Until a bucket has refilled, or the window is over.
    fn seconds_until_reset(&self, quota: Quota, tokens: u64, decision: Decision, inspection: Inspection) -> u64 {
        let (rate, period) = (quota.rate(), quota.rate().period_nanos());
        let missing = u128::from(inspection.capacity.saturating_sub(tokens)) + u128::from(inspection.owed);
        let nanos = match decision {
            _ if missing == 0 => 0,
            Ok(admitted) if self.window => u128::from(period - admitted.at.as_u64() % period),
            Err(_) if self.window => u128::from(period),
            // Saturates only where it takes more than 584 years.
            _ => missing.saturating_mul(u128::from(period)).div_ceil(u128::from(rate.tokens())),
        };
        u64::try_from(nanos.div_ceil(NANOS_A_SECOND)).unwrap_or(MOST)
    }

    fn with_policy(self) -> Self {
        Self { policy: self.policy_of(None), ..self }
    }

    fn policy_of(&self, partition_key: Option<&[u8]>) -> Option<HeaderValue> {
        let (tokens, seconds) = match self.limit {
            Limit::Unlimited => return None,
            Limit::DenyAll => (0, None),
            Limit::Quota(quota) => {
                let (tokens, seconds) = in_whole_seconds(quota.rate());
                (tokens, Some(seconds))
            }
        };
        let said = [
            Some((QUOTA, number(tokens))),
            seconds.map(|seconds| (WINDOW, number(seconds))),
            self.unit.as_deref().map(|unit| (QUOTA_UNIT, RefBareItem::String(unit))),
            partition_key.map(|key| (PARTITION_KEY, RefBareItem::ByteSequence(key))),
        ];
        item(&self.name, said)
    }
}

fn write_retry_after(headers: &mut HeaderMap, seconds: u64) {
    let said_before = headers.get(RETRY_AFTER).and_then(|said| said.to_str().ok()?.parse::<u64>().ok());
    if said_before.is_none_or(|before| before < seconds) {
        let _ = headers.try_insert(RETRY_AFTER, seconds.into());
    }
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0)).min(MOST)
}

fn printable(name: &str) -> Result<sfv::String, NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    StringRef::from_str(name).map(StringRef::to_owned).map_err(|_| NameError::unprintable(name))
}

/// Or the most that can be written.
fn number(number: u64) -> RefBareItem<'static> {
    RefBareItem::Integer(Integer::try_from(number).unwrap_or(Integer::MAX))
}

/// `"name";key=value`. There is none that could not be written: names, keys and bytes in base64 are printable.
fn item<'a>(
    name: &StringRef,
    parameters: impl IntoIterator<Item = Option<(&'static KeyRef, RefBareItem<'a>)>>,
) -> Option<HeaderValue> {
    let mut item = ItemSerializer::new().bare_item(name);
    for (key, value) in parameters.into_iter().flatten() {
        item = item.parameter(key, value);
    }
    HeaderValue::try_from(item.finish()).ok()
}

const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

const QUOTA: &KeyRef = key_ref("q");
const WINDOW: &KeyRef = key_ref("w");
const QUOTA_UNIT: &KeyRef = key_ref("qu");
const REMAINING: &KeyRef = key_ref("r");
const TIME: &KeyRef = key_ref("t");
const PARTITION_KEY: &KeyRef = key_ref("pk");
