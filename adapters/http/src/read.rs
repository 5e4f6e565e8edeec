//! What the headers of an answer say is left.

use core::cmp::Reverse;
use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue};
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parameters, Parser};
use sluicegate_core::QuotaLeft;

use crate::HeaderError;

/// The strictest of all that `headers` say is left at `now`, by the system's clock; `None` where they say nothing.
///
/// | header | read |
/// |---|---|
/// | `Retry-After` | seconds, or a date: nothing is left until then. It wins over all others |
/// | `RateLimit` | `"name";r=50;t=30` for each policy (IETF draft-ietf-httpapi-ratelimit-headers from 08 on), or `limit=100, remaining=50, reset=30` (07) |
/// | `RateLimit-Remaining` and `-Reset` | tokens, and seconds or a point in time (the same draft up to 06) |
/// | `X-RateLimit-Remaining` and `-Reset`, `X-Rate-Limit-Remaining` and `-Reset` | the same |
///
/// The strictest is that with the fewest tokens per time, and of equals that which lasts longer. Times beyond 584 years compare as that.
///
/// A reset of 1 000 000 000 or more is a point in time in Unix seconds (of 9 September 2001 or later), and one of 100 000 000 000 or more in Unix milliseconds;
/// below that it is a number of seconds, of up to 31 years. Numbers may have a fraction: tokens are rounded down.
///
/// Nothing is said by what is over at `now`, by a number of tokens without a time, or by a time without a number of tokens.
///
/// What cannot be read is skipped; [`try_quota_left`] tells of it. Of a header that is there several times but may be once, the fewest tokens and
/// the longest time count.
///
/// Reads no clock.
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
pub fn quota_left(headers: &HeaderMap, now: SystemTime) -> Option<QuotaLeft> {
    Reader { headers, now, error: None }.left()
}

/// As [`quota_left`], but everything has to be readable that says what is left.
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
/// [`HeaderError`] names the first header that cannot be read, its value and what is accepted.
pub fn try_quota_left(headers: &HeaderMap, now: SystemTime) -> Result<Option<QuotaLeft>, HeaderError> {
    let mut reader = Reader { headers, now, error: None };
    let left = reader.left();
    reader.error.map_or(Ok(left), Err)
}

/// Reads all that can be read, and keeps the first error.
struct Reader<'a> {
    headers: &'a HeaderMap,
    now: SystemTime,
    error: Option<HeaderError>,
}

impl Reader<'_> {
    fn left(&mut self) -> Option<QuotaLeft> {
        let retry_after = self.retry_after();
        let mut all = self.rate_limit();
        for (remaining, reset) in PAIRS {
            let (tokens, until_reset) = (self.remaining(remaining), self.reset(reset));
            all.extend(tokens.zip(until_reset).map(|(tokens, until_reset)| QuotaLeft::new(tokens, until_reset)));
        }
        let mut all = all.into_iter().filter(|left| !left.until_reset.is_zero());
        match retry_after {
            Some(wait) if !wait.is_zero() => Some(QuotaLeft::new(0, wait)),
            _ => all.next().map(|first| all.fold(first, stricter)),
        }
    }

    fn retry_after(&mut self) -> Option<Duration> {
        self.once(RETRY_AFTER, SECONDS_OR_DATE, |now, value| match numbers(value) {
            Some(numbers) => Some(numbers.into_iter().map(Duration::from_millis).collect()),
            None => {
                let date = httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()?;
                Some(vec![date.duration_since(now).unwrap_or_default()])
            }
        })
        .into_iter()
        .max()
    }

    fn remaining(&mut self, header: &'static str) -> Option<u64> {
        self.once(header, TOKENS, |_, value| numbers(value)).into_iter().min().map(|thousandths| thousandths / 1_000)
    }

    fn reset(&mut self, header: &'static str) -> Option<Duration> {
        self.once(header, SECONDS_OR_TIME, |now, value| {
            let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
            let until = |millis| match millis {
                0..POINTS_IN_SECONDS => Duration::from_millis(millis),
                POINTS_IN_SECONDS..POINTS_IN_MILLIS => Duration::from_millis(millis).saturating_sub(since_epoch),
                _ => Duration::from_millis(millis / 1_000).saturating_sub(since_epoch),
            };
            Some(numbers(value)?.into_iter().map(until).collect())
        })
        .into_iter()
        .max()
    }

    /// The values of a header that may have one, on however many lines they are.
    fn once<T>(
        &mut self,
        header: &'static str,
        accepted: &'static str,
        read: impl Fn(SystemTime, &HeaderValue) -> Option<Vec<T>>,
    ) -> Vec<T> {
        let mut values = Vec::new();
        for line in self.headers.get_all(header) {
            match read(self.now, line) {
                Some(read) => values.extend(read),
                None => self.refuse(header, line.as_bytes(), accepted),
            }
        }
        if values.len() > 1 {
            self.error.get_or_insert(HeaderError::Repeated { header, values: values.len() });
        }
        values
    }

    /// All lines are one value, as structured fields are; if that cannot be read, those of them that can.
    fn rate_limit(&mut self) -> Vec<QuotaLeft> {
        let headers = self.headers;
        let lines: Vec<&[u8]> = headers.get_all(RATE_LIMIT).iter().map(HeaderValue::as_bytes).collect();
        let whole = lines.join(&b", "[..]);
        if let Some(all) = self.service_limits(&whole) {
            return all;
        }
        self.refuse(RATE_LIMIT, &whole, SERVICE_LIMITS);
        lines.into_iter().filter_map(|line| self.service_limits(line)).flatten().collect()
    }

    /// Reads a list, or the dictionary of before. A list is never a dictionary that says anything: that needs a `=` after its first name.
    fn service_limits(&mut self, value: &[u8]) -> Option<Vec<QuotaLeft>> {
        if let Ok(list) = Parser::new(value).parse::<List>() {
            return Some(list.iter().filter_map(|entry| self.service_limit(entry, value)).collect());
        }
        let dictionary = Parser::new(value).parse::<Dictionary>().ok()?;
        let mut whole = |key| match dictionary.get(key)? {
            ListEntry::Item(Item { bare_item, .. }) => self.whole(bare_item, value),
            ListEntry::InnerList(_) => {
                self.refuse(RATE_LIMIT, value, SERVICE_LIMITS);
                None
            }
        };
        let (remaining, reset) = (whole("remaining"), whole("reset"));
        Some(remaining.zip(reset).map(|(tokens, seconds)| left(tokens, seconds)).into_iter().collect())
    }

    fn service_limit(&mut self, entry: &ListEntry, value: &[u8]) -> Option<QuotaLeft> {
        let parameters: &Parameters = match entry {
            ListEntry::Item(Item { bare_item: BareItem::String(_) | BareItem::Token(_), params }) => params,
            _ => {
                self.refuse(RATE_LIMIT, value, SERVICE_LIMITS);
                return None;
            }
        };
        let Some(remaining) = parameters.get("r") else {
            self.refuse(RATE_LIMIT, value, SERVICE_LIMITS);
            return None;
        };
        let tokens = self.whole(remaining, value);
        let seconds = parameters.get("t").and_then(|seconds| self.whole(seconds, value));
        tokens.zip(seconds).map(|(tokens, seconds)| left(tokens, seconds))
    }

    fn whole(&mut self, item: &BareItem, value: &[u8]) -> Option<u64> {
        let whole = item.as_integer().and_then(|whole| u64::try_from(whole).ok());
        if whole.is_none() {
            self.refuse(RATE_LIMIT, value, SERVICE_LIMITS);
        }
        whole
    }

    fn refuse(&mut self, header: &'static str, value: &[u8], accepted: &'static str) {
        self.error.get_or_insert_with(|| HeaderError::form(header, value, accepted));
    }
}

fn left(tokens: u64, seconds: u64) -> QuotaLeft {
    QuotaLeft::new(tokens, Duration::from_secs(seconds))
}

/// Numbers that are not negative, in thousandths; whatever parameters they have.
fn numbers(value: &HeaderValue) -> Option<Vec<u64>> {
    let list = Parser::new(value.as_bytes()).parse::<List>().ok()?;
    let number = |entry| match entry {
        ListEntry::Item(Item { bare_item: BareItem::Integer(whole), .. }) => {
            u64::try_from(whole).ok()?.checked_mul(1_000)
        }
        ListEntry::Item(Item { bare_item: BareItem::Decimal(decimal), .. }) => {
            u64::try_from(decimal.as_integer_scaled_1000()).ok()
        }
        _ => None,
    };
    let numbers: Option<Vec<u64>> = list.into_iter().map(number).collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

/// That with fewer tokens per time, or of equals that which lasts longer.
fn stricter(one: QuotaLeft, other: QuotaLeft) -> QuotaLeft {
    // Both products are of two words.
    let nanos = |left: QuotaLeft| u128::from(u64::try_from(left.until_reset.as_nanos()).unwrap_or(u64::MAX));
    let rate = |left: QuotaLeft, beside: QuotaLeft| u128::from(left.tokens) * nanos(beside);
    let order = rate(one, other).cmp(&rate(other, one));
    if order.then(Reverse(one.until_reset).cmp(&Reverse(other.until_reset))).is_le() { one } else { other }
}

const RATE_LIMIT: &str = "RateLimit";
const RETRY_AFTER: &str = "Retry-After";

/// How many tokens are left, and until when.
const PAIRS: [(&str, &str); 3] = [
    ("RateLimit-Remaining", "RateLimit-Reset"),
    ("X-RateLimit-Remaining", "X-RateLimit-Reset"),
    ("X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"),
];

/// From here on a reset, in thousandths, is a point in time in Unix seconds: no limit lasts for 31 years, and no server's clock is at 2001.
const POINTS_IN_SECONDS: u64 = 1_000_000_000_000;
/// From here on in Unix milliseconds: of 1973, where seconds would be of the year 5138.
const POINTS_IN_MILLIS: u64 = 100_000_000_000_000;

const SERVICE_LIMITS: &str = "`\"name\";r=50;t=30` for each policy, or `limit=100, remaining=50, reset=30`, of whole numbers that are not negative";
const TOKENS: &str = "a number of up to 15 digits that is not negative";
const SECONDS_OR_TIME: &str = "seconds, or a point in time in Unix seconds, of up to 15 digits";
const SECONDS_OR_DATE: &str = "seconds, or a date as `Sun, 06 Nov 1994 08:49:37 GMT`";
