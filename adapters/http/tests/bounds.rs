//! Times that nobody means, beyond any quota's.

use core::time::Duration;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName};
use sluicegate_http::{
    LONGEST_WAIT, Nanos, PaceRule, QuotaAccount, QuotaLeft, ServiceLimits, quota, quota_left, try_quota_left,
};

#[test]
fn no_time_is_read_that_is_longer_than_the_longest() {
    let longest = LONGEST_WAIT.as_secs().to_string();
    let beyond = (LONGEST_WAIT.as_secs() + 1).to_string();
    let ahead = (NOW + LONGEST_WAIT.as_secs() + 1).to_string();
    let cases: [(u64, &[(&str, &str)]); 14] = [
        (0, &[("retry-after", &longest)]),
        (0, &[("retry-after", &beyond)]),
        (0, &[("retry-after", "999999999999999")]),
        (0, &[("retry-after", "99999999999999999999")]),
        (0, &[("retry-after", "18446744073709551615.999999999")]),
        (0, &[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")]),
        (1, &[("ratelimit", r#""a";r=1;t=999999999999999"#)]),
        (1, &[("ratelimit", "remaining=1, reset=999999999999999")]),
        (1, &[("ratelimit-remaining", "1"), ("ratelimit-reset", "999999999.999")]),
        (1, &[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", &ahead)]),
        (1, &[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "99999999999")]),
        (1, &[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "999999999999999")]),
        (1, &[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset-after", "99999999999999999999")]),
        (u64::MAX, &[("x-rate-limit-remaining", "99999999999999999999"), ("x-rate-limit-reset", &beyond)]),
    ];
    for (tokens, lines) in cases {
        let left = QuotaLeft::new(tokens, LONGEST_WAIT);
        assert_eq!(try_quota_left(&headers(lines), at(NOW)), Ok(Some(left)), "{lines:?}");
        assert_eq!(quota_left(&headers(lines), at(NOW)), Some(left), "{lines:?}");

        // Whoever goes by it overflows nothing.
        let mut account = QuotaAccount::unknown();
        account.report(Nanos::HORIZON, left);
        assert_eq!(account.left(Nanos::HORIZON), Some(left));
        assert!(PaceRule::new().evaluate(quota!("9/1ns burst 1"), Some(left)) <= 1_000_000);
    }
}

#[test]
fn what_is_just_within_the_longest_is_read_as_it_is() {
    let just_below = LONGEST_WAIT - Duration::from_secs(1);
    let reset = (NOW + just_below.as_secs()).to_string();
    let lines = headers(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", &reset)]);
    assert_eq!(quota_left(&lines, at(NOW)), Some(QuotaLeft::new(1, just_below)));
}

#[test]
fn a_window_that_is_too_long_is_not_told_rather_than_cut() {
    for (value, window) in [
        (r#""a";q=5;w=31622400"#, Some(LONGEST_WAIT)),
        (r#""a";q=5;w=31622401"#, None),
        (r#""a";q=5;w=999999999999999"#, None),
    ] {
        let read = ServiceLimits::try_read(&headers(&[("ratelimit-policy", value)]), at(NOW)).unwrap();
        assert_eq!((read.limits[0].quota, read.limits[0].window), (Some(5), window), "{value}");
    }
}

#[test]
fn dates_far_in_the_past_are_over_or_refused() {
    let read = |date| try_quota_left(&headers(&[("retry-after", date)]), at(NOW));
    assert_eq!(read("Thu, 01 Jan 1970 00:00:00 GMT"), Ok(None));
    assert!(read("Wed, 31 Dec 1969 23:59:59 GMT").is_err());
    assert!(read("Sat, 01 Jan 0000 00:00:00 GMT").is_err());
    assert!(read("Sat, 01 Jan 10000 00:00:00 GMT").is_err());
    assert_eq!(quota_left(&headers(&[("retry-after", "Wed, 31 Dec 1969 23:59:59 GMT")]), at(NOW)), None);
}

#[test]
fn any_clock_will_do() {
    let clocks = [SystemTime::UNIX_EPOCH - Duration::from_secs(1 << 40), at(0), at(NOW), at(i64::MAX as u64)];
    for now in clocks {
        for lines in [
            [("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"), ("x-ratelimit-remaining", "1")],
            [("x-ratelimit-reset", "999999999999999"), ("x-ratelimit-remaining", "1")],
            [("x-ratelimit-reset", "1000000000"), ("x-ratelimit-remaining", "1")],
        ] {
            let left = try_quota_left(&headers(&lines), now).unwrap();
            assert!(left.is_none_or(|left| left.until_reset <= LONGEST_WAIT));
        }
    }
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
    }
    headers
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// 9 November 2025, and some.
const NOW: u64 = 1_762_700_000;
