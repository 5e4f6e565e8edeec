//! What a limiter says in the headers of an answer.

use core::time::Duration;

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use sfv::{Integer, ItemSerializer, KeyRef, StringRef, key_ref};
use sluicegate_core::{Admitted, Decision, Denied, Inspection, Limit, Quota, Remaining};

use crate::NameError;

/// Writes the state of one limiter into the headers of answers, by draft-ietf-httpapi-ratelimit-headers-10 and RFC 9110.
///
/// | header | for | |
/// |---|---|---|
/// | `RateLimit-Policy` | `"name";q=100;w=60` | the rate: 100 tokens in 60 s. Of a rate with another period than whole seconds it is the next whole second, and what the rate allows in it, rounded down. The burst is not said |
/// | `RateLimit` | `"name";r=7;t=3` | 7 whole tokens are left, and in 3 s there will be all of them, if nobody takes any; rounded up |
/// | `Retry-After` | `1` | whole seconds, rounded up, at least 1; only if the decision is a denial that says when to come back |
///
/// `RateLimit` goes by the decision where that knows exactly what was left, and otherwise by the inspection. Numbers end at
/// 999 999 999 999 999, as in all structured fields.
///
/// Nothing is said for [`Limit::Unlimited`], or by a decision for which there was no limit. Of [`Limit::DenyAll`] it is said that nothing is left (`q=0`, `r=0`), and no time.
///
/// ```
/// use sluicegate_http::{Limit, LimitHeaders, ManualClock, TokenBucket, quota};
///
/// let limit = quota!("2/1m");
/// let said = LimitHeaders::new("search", Limit::Quota(limit))?;
/// let bucket = TokenBucket::with_clock(limit, ManualClock::new());
///
/// let mut headers = http::HeaderMap::new();
/// bucket.try_acquire(2)?;
/// let decision = bucket.try_acquire(1);
/// said.write(&mut headers, decision, bucket.inspect());
/// assert_eq!(headers["ratelimit-policy"], r#""search";q=2;w=60"#);
/// assert_eq!(headers["ratelimit"], r#""search";r=0;t=60"#);
/// assert_eq!(headers["retry-after"], "30");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LimitHeaders {
    name: sfv::String,
    limit: Limit,
    window: bool,
    /// Says the same in every answer.
    policy: Option<HeaderValue>,
}

impl LimitHeaders {
    /// For a limiter that refills all the time, as a token bucket.
    ///
    /// # Errors
    /// [`NameError`] says which names can be written.
    pub fn new(name: &str, limit: Limit) -> Result<Self, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        let Ok(written) = StringRef::from_str(name) else { return Err(NameError::unprintable(name)) };
        let policy = match limit {
            Limit::Unlimited => None,
            Limit::DenyAll => item(written, [Some((QUOTA, 0)), None]),
            Limit::Quota(quota) => {
                let (tokens, seconds) = per_whole_seconds(quota);
                item(written, [Some((QUOTA, tokens)), Some((WINDOW, seconds))])
            }
        };
        Ok(Self { name: written.to_owned(), limit, window: false, policy })
    }

    /// For a fixed window that gives everything back at its end, as a [`ShardedWindow`](sluicegate_core::ShardedWindow): that end is what `t` says then.
    ///
    /// It goes by the decision's reading, and is a whole period where the decision has none.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn window(name: &str, limit: Limit) -> Result<Self, NameError> {
        Ok(Self { window: true, ..Self::new(name, limit)? })
    }

    /// Says in `headers` what was decided, and what `inspection` found right after it.
    ///
    /// What other limiters have said stays: `RateLimit-Policy` and `RateLimit` are lists, to which this limiter is added, and of `Retry-After` the
    /// longer wait stays. A map that is full is left as it is.
    pub fn write(&self, headers: &mut HeaderMap, decision: Decision, inspection: Inspection) {
        let Some(policy) = &self.policy else { return };
        if let Ok(Admitted { remaining: Remaining::Unlimited, .. }) = decision {
            return;
        }
        // A map that is full already is left as it is.
        let _ = headers.try_append(RATE_LIMIT_POLICY, policy.clone());
        let tokens = match decision {
            Ok(admitted) => admitted.remaining.exactly().unwrap_or(inspection.level),
            Err(_) => inspection.level,
        };
        let until_reset = self.limit.quota().map(|quota| self.seconds_until_reset(quota, tokens, decision, inspection));
        let said = item(&self.name, [Some((REMAINING, tokens)), until_reset.map(|seconds| (TIME, seconds))]);
        if let Some(said) = said {
            let _ = headers.try_append(RATE_LIMIT, said);
        }
        self.write_retry_after(headers, decision);
    }

    /// Until a bucket has refilled, or the window is over.
    fn seconds_until_reset(&self, quota: Quota, tokens: u64, decision: Decision, inspection: Inspection) -> u64 {
        let (rate, period) = (quota.rate(), quota.rate().period_nanos());
        let missing = u128::from(inspection.capacity.saturating_sub(tokens)) + u128::from(inspection.owed);
        let nanos = match decision {
            _ if missing == 0 => 0,
            Err(Denied::RateLimited { retry_after }) if self.window => retry_after.as_nanos(),
            Ok(admitted) if self.window => u128::from(period - admitted.at.as_u64() % period),
            Err(_) if self.window => u128::from(period),
            // Saturates only where it takes more than 584 years.
            _ => missing.saturating_mul(u128::from(period)).div_ceil(u128::from(rate.tokens())),
        };
        u64::try_from(nanos.div_ceil(NANOS_A_SECOND)).unwrap_or(MOST)
    }

    fn write_retry_after(&self, headers: &mut HeaderMap, decision: Decision) {
        let (Err(Denied::RateLimited { retry_after }) | Err(Denied::CircuitOpen { retry_after: Some(retry_after) })) =
            decision
        else {
            return;
        };
        let seconds = whole_seconds(retry_after).max(1);
        let said_before = headers.get(RETRY_AFTER).and_then(|said| said.to_str().ok()?.parse::<u64>().ok());
        if said_before.is_none_or(|before| before < seconds) {
            let _ = headers.try_insert(RETRY_AFTER, seconds.into());
        }
    }
}

/// What `quota` allows in the least number of whole seconds that is at least its period, rounded down.
fn per_whole_seconds(quota: Quota) -> (u64, u64) {
    let rate = quota.rate();
    let (tokens, period) = (u128::from(rate.tokens()), u128::from(rate.period_nanos()));
    let seconds = period.div_ceil(NANOS_A_SECOND);
    // The product of the whole may be beyond 128 bits.
    let tokens = tokens + tokens * (seconds * NANOS_A_SECOND - period) / period;
    (u64::try_from(tokens).unwrap_or(MOST), seconds as u64)
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_add(u64::from(duration.subsec_nanos() > 0)).min(MOST)
}

/// `"name";key=number`. There is none that could not be written: names and numbers are checked.
fn item(name: &StringRef, parameters: [Option<(&KeyRef, u64)>; 2]) -> Option<HeaderValue> {
    let mut item = ItemSerializer::new().bare_item(name);
    for (key, number) in parameters.into_iter().flatten() {
        item = item.parameter(key, Integer::try_from(number.min(MOST)).ok()?);
    }
    HeaderValue::try_from(item.finish()).ok()
}

const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

const QUOTA: &KeyRef = key_ref("q");
const WINDOW: &KeyRef = key_ref("w");
const REMAINING: &KeyRef = key_ref("r");
const TIME: &KeyRef = key_ref("t");

/// Integers of structured fields have up to 15 digits (RFC 9651, section 3.3.1).
const MOST: u64 = 999_999_999_999_999;
const NANOS_A_SECOND: u128 = 1_000_000_000;
