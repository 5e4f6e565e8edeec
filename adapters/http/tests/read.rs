//! What is read from the headers of an answer.

use core::time::Duration;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use sluicegate_http::{
    HeaderError, LONGEST_WAIT, QuotaLeft, QuotaUnit, ServiceLimit, ServiceLimits, quota_left, try_quota_left,
};

/// 6 November 1994 at 08:49:37, the example of RFC 9110.
const EXAMPLE: u64 = 784_111_777;
/// 9 November 2025, and some.
const NOW: u64 = 1_762_700_000;

#[test]
fn the_headers_of_real_providers() {
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<(u64, u64)>);
    let cases: [Case<'_>; 22] = [
        (
            "GitHub",
            &[("x-ratelimit-limit", "5000"), ("x-ratelimit-remaining", "4999"), ("x-ratelimit-reset", "1762703600")],
            Some((4_999, 3_600_000)),
        ),
        (
            "GitHub, secondary limit",
            &[("x-ratelimit-remaining", "4000"), ("x-ratelimit-reset", "1762703600"), ("retry-after", "60")],
            Some((0, 60_000)),
        ),
        (
            "GitLab",
            &[
                ("RateLimit-Limit", "60"),
                ("RateLimit-Observed", "67"),
                ("RateLimit-Remaining", "0"),
                ("RateLimit-Reset", "1762700040"),
                ("Retry-After", "30"),
            ],
            Some((0, 30_000)),
        ),
        (
            "Cloudflare",
            &[("Ratelimit", r#""default";r=50;t=30"#), ("Ratelimit-Policy", r#""burst";q=100;w=60"#)],
            Some((50, 30_000)),
        ),
        (
            "express-rate-limit, draft 8",
            &[
                ("RateLimit", r#""100-in-15min"; r=99; t=900; pk=:MTI3LjAuMC4x:"#),
                ("RateLimit-Policy", r#""100-in-15min"; q=100; w=900"#),
            ],
            Some((99, 900_000)),
        ),
        (
            "express-rate-limit, draft 7",
            &[("RateLimit", "limit=100, remaining=99, reset=60"), ("RateLimit-Policy", "100;w=60")],
            Some((99, 60_000)),
        ),
        (
            "express-rate-limit, draft 6",
            &[("RateLimit-Remaining", "7"), ("RateLimit-Reset", "45"), ("RateLimit-Policy", "10;w=60")],
            Some((7, 45_000)),
        ),
        (
            "draft 8 by tokens, two policies",
            &[("RateLimit", "minute;r=50;t=30, day;r=1000;t=43200")],
            Some((1_000, 43_200_000)),
        ),
        (
            "Discord",
            &[
                ("X-RateLimit-Limit", "5"),
                ("X-RateLimit-Remaining", "1"),
                ("X-RateLimit-Reset", "1762700001.25"),
                ("X-RateLimit-Reset-After", "1.25"),
                ("X-RateLimit-Bucket", "abcd1234"),
            ],
            Some((1, 1_250)),
        ),
        (
            "Discord, where clocks disagree",
            &[("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1762700100"), ("X-RateLimit-Reset-After", "0.5")],
            Some((0, 500)),
        ),
        ("by the other name", &[("X-Rate-Limit-Remaining", "2"), ("X-Rate-Limit-Reset-After", "3")], Some((2, 3_000))),
        (
            "Reddit",
            &[("x-ratelimit-used", "2"), ("x-ratelimit-remaining", "598.9"), ("x-ratelimit-reset", "242")],
            Some((598, 242_000)),
        ),
        (
            "X",
            &[("x-rate-limit-limit", "900"), ("x-rate-limit-remaining", "899"), ("x-rate-limit-reset", "1762700900")],
            Some((899, 900_000)),
        ),
        ("Mailgun", &[("X-RateLimit-Remaining", "299"), ("X-RateLimit-Reset", "1762700059999")], Some((299, 59_999))),
        (
            "Docker Hub tells no time",
            &[("ratelimit-limit", "100;w=21600"), ("ratelimit-remaining", "76;w=21600")],
            None,
        ),
        (
            "Docker Hub beside a time",
            &[("ratelimit-remaining", "76;w=21600"), ("ratelimit-reset", "9")],
            Some((76, 9_000)),
        ),
        ("Heroku tells no time", &[("RateLimit-Remaining", "4500")], None),
        ("Slack", &[("Retry-After", "30")], Some((0, 30_000))),
        ("a date", &[("Retry-After", "Sun, 09 Nov 2025 15:00:00 GMT")], Some((0, 1_762_700_400_000 - NOW * 1_000))),
        ("over", &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1762699999")], None),
        ("a wait that is over", &[("Retry-After", "0"), ("RateLimit", r#""a";r=3;t=9"#)], Some((3, 9_000))),
        ("nothing", &[("content-type", "text/plain"), ("RateLimit", "")], None),
    ];
    for (who, lines, expected) in cases {
        let expected = expected.map(|(tokens, millis)| QuotaLeft::new(tokens, Duration::from_millis(millis)));
        assert_eq!(try_quota_left(&headers(lines), at(NOW)), Ok(expected), "{who}");
        assert_eq!(quota_left(&headers(lines), at(NOW)), expected, "{who}");
    }
}

#[test]
fn a_date_counts_from_now_and_in_all_three_forms() {
    for date in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        let headers = headers(&[("retry-after", date)]);
        assert_eq!(try_quota_left(&headers, at(EXAMPLE - 5)), Ok(Some(QuotaLeft::new(0, Duration::from_secs(5)))));
        assert_eq!(try_quota_left(&headers, at(EXAMPLE)), Ok(None));
        assert_eq!(try_quota_left(&headers, at(EXAMPLE + 5)), Ok(None));
    }
}

#[test]
fn a_reset_is_a_point_in_time_from_ten_digits_on() {
    let reset = |reset: &str, now| {
        let headers = headers(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", reset)]);
        try_quota_left(&headers, at(now)).unwrap().map(|left| left.until_reset.as_secs())
    };
    let longest = LONGEST_WAIT.as_secs();
    assert_eq!(reset("999999999", NOW), Some(longest));
    assert_eq!(reset("999999999", 999_999_990), Some(longest), "seconds");
    assert_eq!(reset("1000000000", NOW), None, "2001 is over");
    assert_eq!(reset("1000000000", 999_999_990), Some(10));
    assert_eq!(reset("99999999999", 99_999_999_990), Some(9));
    assert_eq!(reset("100000000000", NOW), None, "1973 is over");
    assert_eq!(reset("100000000000", 99_999_999), Some(1));
    let before_the_epoch = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    let lines = headers(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "1000000000")]);
    assert_eq!(quota_left(&lines, before_the_epoch), Some(QuotaLeft::new(1, LONGEST_WAIT)));
    let after = headers(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset-after", "1762700000")]);
    assert_eq!(quota_left(&after, at(NOW)), Some(QuotaLeft::new(1, LONGEST_WAIT)), "never a point in time");
}

#[test]
fn of_what_is_equally_strict_the_longer_counts() {
    let left = |value| quota_left(&headers(&[("ratelimit", value)]), at(NOW)).unwrap();
    for value in ["a;r=0;t=60, b;r=0;t=5", "b;r=0;t=5, a;r=0;t=60"] {
        assert_eq!(left(value), QuotaLeft::new(0, Duration::from_secs(60)));
    }
    for value in ["a;r=10;t=10, b;r=100;t=100", "b;r=100;t=100, a;r=10;t=10"] {
        assert_eq!(left(value), QuotaLeft::new(100, Duration::from_secs(100)));
    }
}

#[test]
fn what_cannot_be_read_is_refused_by_header_value_and_what_is_accepted() {
    let cases = [
        ("ratelimit", r#""a";r=-1;t=3"#, "RateLimit"),
        ("ratelimit", r#""a";r=1;t=-3"#, "RateLimit"),
        ("ratelimit", r#""a";r=1.5;t=3"#, "RateLimit"),
        ("ratelimit", r#""a";t=3"#, "RateLimit"),
        ("ratelimit", r#""a";r=1000000000000000;t=3"#, "RateLimit"),
        ("ratelimit", r#"("a");r=1;t=3"#, "RateLimit"),
        ("ratelimit", "5;r=1;t=3", "RateLimit"),
        ("ratelimit", "remaining=?1, reset=30", "RateLimit"),
        ("ratelimit", "remaining=(1), reset=30", "RateLimit"),
        ("ratelimit", "\u{fc};r=1;t=3", "RateLimit"),
        ("ratelimit-remaining", "-1", "RateLimit-Remaining"),
        ("ratelimit-reset", "soon", "RateLimit-Reset"),
        ("x-ratelimit-remaining", "", "X-RateLimit-Remaining"),
        ("x-ratelimit-remaining", "+1", "X-RateLimit-Remaining"),
        ("x-ratelimit-remaining", ".5", "X-RateLimit-Remaining"),
        ("x-ratelimit-limit", "many", "X-RateLimit-Limit"),
        ("x-ratelimit-reset", "1000000000000000", "X-RateLimit-Reset"),
        ("x-ratelimit-reset", "18446744073709551616", "X-RateLimit-Reset"),
        ("x-ratelimit-reset-after", "-1", "X-RateLimit-Reset-After"),
        ("x-ratelimit-reset-after", "1.", "X-RateLimit-Reset-After"),
        ("ratelimit", r#""a";r=1;pk="b""#, "RateLimit"),
        ("ratelimit-policy", r#""a";w=1"#, "RateLimit-Policy"),
        ("ratelimit-policy", r#""a";q=1;w=0"#, "RateLimit-Policy"),
        ("ratelimit-policy", r#""a";q=1;qu=3"#, "RateLimit-Policy"),
        ("ratelimit-policy", r#""a";q=1;pk=b"#, "RateLimit-Policy"),
        ("x-rate-limit-reset", "1e3", "X-Rate-Limit-Reset"),
        ("retry-after", "-5", "Retry-After"),
        ("retry-after", "tomorrow", "Retry-After"),
        ("retry-after", "Sun, 32 Nov 1994 08:49:37 GMT", "Retry-After"),
    ];
    for (name, value, expected) in cases {
        let lines = headers(&[(name, value), ("x-rate-limit-remaining", "4")]);
        match try_quota_left(&lines, at(NOW)) {
            Err(error @ HeaderError::Form { header, .. }) => {
                assert_eq!(header, expected);
                let text = error.to_string();
                let escaped = value.as_bytes().escape_ascii();
                assert!(text.starts_with(&format!("{expected} is `{escaped}`: write ")), "{text}");
            }
            other => panic!("{name}: {value}: {other:?}"),
        }
        assert_eq!(quota_left(&lines, at(NOW)), None, "{name}: {value}");
    }
}

#[test]
fn what_cannot_be_read_hides_nothing_that_can() {
    let five = Some(QuotaLeft::new(5, Duration::from_secs(60)));
    for bad in ["not, a (list", r#""a";r=-1;t=3"#, r#""a";r=0;t=x"#, "\u{fc}"] {
        for lines in [[bad, r#""b";r=5;t=60"#], [r#""b";r=5;t=60"#, bad]] {
            let lines = headers(&[("ratelimit", lines[0]), ("ratelimit", lines[1]), ("retry-after", bad)]);
            assert_eq!(quota_left(&lines, at(NOW)), five, "{bad}");
            assert!(try_quota_left(&lines, at(NOW)).is_err(), "{bad}");
        }
    }
}

#[test]
fn of_what_may_be_there_once_the_strictest_counts() {
    let twice = [
        headers(&[("x-ratelimit-remaining", "9, 4"), ("x-ratelimit-reset", "30")]),
        headers(&[("x-ratelimit-remaining", "4"), ("x-ratelimit-remaining", "9"), ("x-ratelimit-reset", "30")]),
    ];
    for lines in twice {
        assert_eq!(quota_left(&lines, at(NOW)), Some(QuotaLeft::new(4, Duration::from_secs(30))));
        let error = try_quota_left(&lines, at(NOW)).unwrap_err();
        assert_eq!(error, HeaderError::Repeated { header: "X-RateLimit-Remaining", values: 2 });
        assert_eq!(error.to_string(), "X-RateLimit-Remaining has 2 values: write one");
    }
    let lines =
        headers(&[("retry-after", "2"), ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "3")]);
    assert_eq!(quota_left(&lines, at(EXAMPLE - 7)), Some(QuotaLeft::new(0, Duration::from_secs(7))));
    assert!(try_quota_left(&lines, at(NOW)).is_err());
}

proptest! {
    #[test]
    fn no_bytes_panic_and_what_the_strict_form_reads_the_lenient_one_reads_too(
        lines in prop::collection::vec((0..NAMES.len(), value()), 0..6),
        now in prop_oneof![0..=u64::from(u32::MAX), Just(0), Just(i64::MAX as u64)],
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in &lines {
            // Some bytes no header can have.
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(HeaderName::from_static(NAMES[*name]), value);
            }
        }
        let lenient = ServiceLimits::read(&headers, at(now));
        if let Ok(strict) = ServiceLimits::try_read(&headers, at(now)) {
            prop_assert_eq!(&strict, &lenient);
        }
        let times = |limit: &ServiceLimit| [limit.until_reset, limit.window];
        for time in lenient.limits.iter().flat_map(times).chain([lenient.retry_after]).flatten() {
            prop_assert!(time <= LONGEST_WAIT);
        }
        let left = quota_left(&headers, at(now));
        prop_assert_eq!(left, lenient.left(&QuotaUnit::Requests));
        prop_assert!(left.is_none_or(|left| !left.until_reset.is_zero()));
        prop_assert!(try_quota_left(&headers, at(now)).is_err() || try_quota_left(&headers, at(now)) == Ok(left));
    }

    /// Beside a search over all of them, in numbers that cannot overflow: both are below 2^50.
    #[test]
    fn the_strictest_of_a_list_is_found(
        all in prop::collection::vec((prop_oneof![0..5_u64, 0..=MOST], prop_oneof![0..5_u64, 0..10_000_000_000_u64, 0..=MOST]), 0..6),
    ) {
        let value: Vec<_> = all.iter().map(|(r, t)| format!("\"a\";r={r};t={t}")).collect();
        let found = try_quota_left(&headers(&[("ratelimit", &value.join(", "))]), at(NOW)).unwrap();
        let running = || all.iter().filter(|(_, t)| *t > 0);
        match found {
            None => prop_assert_eq!(running().count(), 0),
            Some(found) => {
                let (tokens, seconds) = (found.tokens, found.until_reset.as_secs());
                let cut = |seconds: u64| seconds.min(LONGEST_WAIT.as_secs());
                prop_assert!(running().any(|(r, t)| (*r, cut(*t)) == (tokens, seconds)));
                for (r, t) in running() {
                    let (other, this) = (u128::from(*r) * u128::from(seconds), u128::from(tokens) * u128::from(cut(*t)));
                    prop_assert!(this < other || this == other && seconds >= cut(*t));
                }
            }
        }
    }
}

/// Arbitrary bytes, and such as get further.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        r#"[-+]?[0-9]{0,22}(\.[0-9]{0,5})?(;[a-z]=[0-9]{1,3})?(, ?[0-9]{1,12})?"#.prop_map(String::into_bytes),
        r#"("[a-z]"|[a-z])(;[rt]=-?[0-9]{0,16}){0,3}(, ?[("a-z;=0-9)]{0,9})?"#.prop_map(String::into_bytes),
        r#"("[ab]"(;(q|w|r|t)=[0-9]{1,15}|;qu="[a-z]{0,3}"|;pk=:([A-Z]{4})?:){0,5}, ?){0,3}9"#
            .prop_map(String::into_bytes),
        r#"(limit|remaining|reset)=-?[0-9]{1,16}(, ?(remaining|reset)=[0-9a-z]{1,16}){0,2}"#
            .prop_map(String::into_bytes),
        "(Sun|Mon), ?[0-3][0-9] (Dec|Feb|Foo) (9999|[0-9]{4}) [0-2][0-9]:[0-6][0-9]:[0-6][0-9] GMT"
            .prop_map(String::into_bytes),
        "(Sun|Fri)day, [0-3][0-9]-(Dec|Jan)-[0-9]{2} 23:59:59 GMT".prop_map(String::into_bytes),
    ]
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    headers
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

const NAMES: [&str; 14] = [
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-reset-after",
    "x-rate-limit-limit",
    "x-rate-limit-remaining",
    "x-rate-limit-reset",
    "x-rate-limit-reset-after",
    "retry-after",
];

/// The most that an integer of a structured field can be.
const MOST: u64 = 999_999_999_999_999;
