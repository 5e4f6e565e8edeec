//! Headers of one number each: `Retry-After`, and those before `RateLimit`.

use core::time::Duration;

use http::HeaderValue;

use crate::reader::{Number, Reader, bounded, numbers};
use crate::{LONGEST_WAIT, ServiceLimit};

impl Reader<'_> {
    pub(crate) fn retry_after(&mut self) -> Option<Duration> {
        self.once(RETRY_AFTER, SECONDS_OR_DATE, |reader, value| match seconds(value) {
            Some(seconds) => Some(seconds),
            None => {
                let date = httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()?;
                Some(vec![date.duration_since(reader.now).unwrap_or_default()])
            }
        })
        .into_iter()
        .max()
        .map(bounded)
    }

    pub(crate) fn legacy(&mut self) -> Vec<ServiceLimit> {
        let limits = FAMILIES.into_iter().map(|family| self.family(family));
        limits.filter(|limit| *limit != ServiceLimit::default()).collect()
    }

    fn family(&mut self, family: Family) -> ServiceLimit {
        let (quota, window) = self.quota(family.limit).unzip();
        let remaining = self.once(family.remaining, TOKENS, |_, value| {
            Some(numbers(value)?.into_iter().map(|(number, _)| number.whole).collect())
        });
        let reset = self.once(family.reset, SECONDS_OR_TIME, |reader, value| {
            numbers(value)?.into_iter().map(|(number, _)| reader.until_reset(number)).collect()
        });
        let reset_after = family
            .reset_after
            .and_then(|header| self.once(header, SECONDS, |_, value| seconds(value)).into_iter().max());
        ServiceLimit {
            quota,
            window: window.flatten(),
            remaining: remaining.into_iter().min(),
            until_reset: reset_after.or(reset.into_iter().max()).map(bounded),
            ..ServiceLimit::default()
        }
    }

    /// The first number is the quota; those after it are policies, of which drafts had some here. `w` is a window, as in a policy.
    fn quota(&mut self, header: &'static str) -> Option<(u64, Option<Duration>)> {
        let headers = self.headers;
        let mut quota = None;
        for line in headers.get_all(header) {
            let Some(numbers) = numbers(line) else {
                self.refuse(header, line.as_bytes(), TOKENS);
                continue;
            };
            let first = numbers.first().map(|(number, parameters)| {
                let seconds = parameters.get("w").and_then(|window| u64::try_from(window.as_integer()?).ok());
                let window = seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
                (number.whole, window.filter(|window| *window <= LONGEST_WAIT))
            });
            quota = quota.or(first);
        }
        quota
    }

    fn until_reset(&self, Number { whole, billionths }: Number) -> Option<Duration> {
        match whole {
            0..POINTS_IN_SECONDS => Some(Duration::new(whole, billionths)),
            POINTS_IN_SECONDS..POINTS_IN_MILLIS => Some(self.until(Duration::new(whole, billionths))),
            POINTS_IN_MILLIS..BEYOND => Some(self.until(Duration::from_millis(whole))),
            BEYOND.. => None,
        }
    }
}

fn seconds(value: &HeaderValue) -> Option<Vec<Duration>> {
    Some(numbers(value)?.into_iter().map(|(number, _)| number.seconds()).collect())
}

/// What belongs together.
#[derive(Clone, Copy)]
struct Family {
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
    reset_after: Option<&'static str>,
}

const FAMILIES: [Family; 3] = [
    Family { limit: "RateLimit-Limit", remaining: "RateLimit-Remaining", reset: "RateLimit-Reset", reset_after: None },
    Family {
        limit: "X-RateLimit-Limit",
        remaining: "X-RateLimit-Remaining",
        reset: "X-RateLimit-Reset",
        reset_after: Some("X-RateLimit-Reset-After"),
    },
    Family {
        limit: "X-Rate-Limit-Limit",
        remaining: "X-Rate-Limit-Remaining",
        reset: "X-Rate-Limit-Reset",
        reset_after: Some("X-Rate-Limit-Reset-After"),
    },
];

const RETRY_AFTER: &str = "Retry-After";

/// From here on a reset is a point in time in Unix seconds: no limit lasts for 31 years, and no server's clock is at 2001.
const POINTS_IN_SECONDS: u64 = 1_000_000_000;
/// From here on in Unix milliseconds: of 1973, where seconds would be of the year 5138.
const POINTS_IN_MILLIS: u64 = 100_000_000_000;
/// No point in time that is meant, in either: milliseconds would be of the year 33658.
const BEYOND: u64 = 1_000_000_000_000_000;

const TOKENS: &str = "a number that is not negative";
const SECONDS: &str = "seconds, a number that is not negative";
const SECONDS_OR_TIME: &str = "seconds, or a point in time in Unix seconds, of up to 15 digits";
const SECONDS_OR_DATE: &str = "seconds, or a date as `Sun, 06 Nov 1994 08:49:37 GMT`";
