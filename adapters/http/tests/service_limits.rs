//! All that the headers of an answer say of limits.

use core::time::Duration;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName};
use sluicegate_http::{QuotaLeft, QuotaUnit, ServiceLimit, ServiceLimits};

#[test]
fn a_limit_has_the_policy_of_its_name_and_partition_key() {
    let read = read(&[
        ("ratelimit", r#""user";r=1;t=1;pk=:YQ==:, "user";r=2;pk=:Yg==:, "all";r=3, "user";r=4"#),
        ("ratelimit-policy", r#""user";q=10;w=1;pk=:YQ==:, "user";q=20;w=2;qu="acme""#),
        ("ratelimit-policy", r#""all";q=30;w=3;pk=:Yw==:, "none";q=40;w=4;qu="concurrent-requests";pk=::"#),
    ]);
    type Row<'a> = (&'a str, Option<&'a [u8]>, Option<u64>, &'a str, Option<u64>, Option<u64>, Option<u64>);
    let expected: [Row<'_>; 5] = [
        ("user", Some(b"a"), Some(10), "requests", Some(1), Some(1), Some(1)),
        ("user", Some(b"b"), Some(20), "acme", Some(2), Some(2), None),
        ("all", Some(b"c"), Some(30), "requests", Some(3), Some(3), None),
        ("user", None, Some(20), "acme", Some(2), Some(4), None),
        ("none", Some(b""), Some(40), "concurrent-requests", Some(4), None, None),
    ];
    assert_eq!(read.limits.iter().map(row).collect::<Vec<_>>(), expected);
    assert_eq!(read.limits[1].quota_unit, QuotaUnit::Other("acme".into()));
    assert_eq!(read.limits[4].quota_unit, QuotaUnit::ConcurrentRequests);

    fn row(limit: &ServiceLimit) -> Row<'_> {
        let ServiceLimit { quota, remaining, .. } = *limit;
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs());
        let (window, until_reset) = (seconds(limit.window), seconds(limit.until_reset));
        let name = limit.name.as_deref().unwrap();
        (name, limit.partition_key.as_deref(), quota, limit.quota_unit.as_str(), window, remaining, until_reset)
    }
}

#[test]
fn older_headers_say_the_same_without_a_name() {
    let limit = |quota: Option<u64>, window: Option<u64>, remaining: Option<u64>, millis: Option<u64>| {
        let mut limit = ServiceLimit::default();
        (limit.quota, limit.window) = (quota, window.map(Duration::from_secs));
        (limit.remaining, limit.until_reset) = (remaining, millis.map(Duration::from_millis));
        limit
    };
    type Case<'a> = (&'a [(&'a str, &'a str)], Vec<ServiceLimit>);
    let cases: [Case<'_>; 8] = [
        (&[("x-ratelimit-limit", "5000")], vec![limit(Some(5_000), None, None, None)]),
        (
            &[("x-ratelimit-limit", "5"), ("x-ratelimit-remaining", "4"), ("x-ratelimit-reset", "1762700009")],
            vec![limit(Some(5), None, Some(4), Some(9_000))],
        ),
        (
            &[("x-rate-limit-limit", "5"), ("x-rate-limit-remaining", "4"), ("x-rate-limit-reset", "9")],
            vec![limit(Some(5), None, Some(4), Some(9_000))],
        ),
        (&[("ratelimit-limit", "100;w=21600")], vec![limit(Some(100), Some(21_600), None, None)]),
        (
            &[("ratelimit-limit", "10, 10;w=1, 50;w=60"), ("ratelimit-reset", "1")],
            vec![limit(Some(10), None, None, Some(1_000))],
        ),
        (
            &[("ratelimit", "limit=100, remaining=99, reset=60"), ("ratelimit-policy", "100;w=60")],
            vec![limit(Some(100), None, Some(99), Some(60_000)), limit(Some(100), Some(60), None, None)],
        ),
        (
            &[("x-ratelimit-reset-after", "0.0015")],
            vec![{
                let mut limit = ServiceLimit::default();
                limit.until_reset = Some(Duration::from_micros(1_500));
                limit
            }],
        ),
        (&[("ratelimit", "comment=?1")], Vec::new()),
    ];
    for (lines, limits) in cases {
        assert_eq!(read(lines).limits, limits, "{lines:?}");
    }
}

#[test]
fn resets_after_a_time_win_over_points_in_time_unless_they_cannot_be_read() {
    let until = |reset_after| {
        let lines = [("x-ratelimit-reset", "1762700100"), ("x-ratelimit-reset-after", reset_after)];
        ServiceLimits::read(&headers(&lines), at(NOW)).limits[0].until_reset
    };
    for (reset_after, millis) in
        [("0", 0), ("0.25", 250), ("0.4000000953674316", 400), ("007.5", 7_500), ("x", 100_000)]
    {
        let nanos = if reset_after.len() > 9 { 95 } else { 0 };
        let expected = Duration::from_millis(millis) + Duration::from_nanos(nanos);
        assert_eq!(until(reset_after), Some(expected), "{reset_after}");
    }
}

#[test]
fn units_are_apart_but_nothing_is_nothing_in_each() {
    let policies =
        r#""count";q=9;w=60, "bytes";q=9000;w=60;qu="content-bytes", "at once";q=3;qu="concurrent-requests""#;
    let left = |limits, unit: &str| {
        let read = read(&[("ratelimit-policy", policies), ("ratelimit", limits)]);
        read.left(&QuotaUnit::from(unit)).map(|QuotaLeft { tokens, until_reset }| (tokens, until_reset.as_secs()))
    };
    let some = r#""count";r=5;t=60, "bytes";r=1;t=60, "at once";r=2;t=60"#;
    assert_eq!(left(some, "requests"), Some((5, 60)));
    assert_eq!(left(some, "content-bytes"), Some((1, 60)));
    assert_eq!(left(some, "concurrent-requests"), Some((2, 60)));
    assert_eq!(left(some, "acme"), None);
    let no_bytes = r#""count";r=5;t=60, "bytes";r=0;t=30"#;
    assert_eq!(left(no_bytes, "requests"), Some((0, 30)));
    assert_eq!(left(r#""count";r=5;t=60, "bytes";r=0;t=0"#, "requests"), Some((5, 60)), "that is over");
}

#[test]
fn while_there_is_a_wait_nothing_is_left() {
    let read = read(&[("retry-after", "7"), ("ratelimit", r#""a";r=5;t=60"#)]);
    assert_eq!(read.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(read.left(&QuotaUnit::Requests), Some(QuotaLeft::new(0, Duration::from_secs(7))));
    assert_eq!(read.limits[0].left(), Some(QuotaLeft::new(5, Duration::from_secs(60))));
}

#[test]
fn a_parameter_that_cannot_be_read_hides_no_other() {
    let lines = headers(&[("ratelimit", r#""a";r=5;t=-1;pk=b"#), ("ratelimit-policy", r#""a";q=9;w=0;qu=7;pk=1"#)]);
    let limit = &ServiceLimits::read(&lines, at(NOW)).limits[0];
    assert_eq!((limit.quota, limit.remaining), (Some(9), Some(5)));
    assert_eq!((limit.window, limit.until_reset, &limit.partition_key), (None, None, &None));
    assert_eq!(limit.quota_unit, QuotaUnit::Requests);
}

/// In time that grows with their number, not its square: that would be 4 * 10^8 comparisons.
#[test]
fn many_limits_are_joined_with_as_many_policies() {
    let mut lines = HeaderMap::new();
    let join = |item: &dyn Fn(u32) -> String| (0..20_000).map(item).collect::<Vec<_>>().join(", ");
    lines.append("ratelimit", join(&|number| format!("\"a\";r={number};pk=:{number:08}:")).parse().unwrap());
    lines.append("ratelimit-policy", join(&|number| format!("\"a\";q={number};pk=:{number:08}:")).parse().unwrap());
    let limits = ServiceLimits::try_read(&lines, at(NOW)).unwrap().limits;
    assert_eq!(limits.len(), 20_000);
    assert!(limits.iter().all(|limit| limit.quota == limit.remaining));
}

fn read(lines: &[(&str, &str)]) -> ServiceLimits {
    let headers = headers(lines);
    let read = ServiceLimits::try_read(&headers, at(NOW)).unwrap();
    assert_eq!(read, ServiceLimits::read(&headers, at(NOW)));
    read
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
