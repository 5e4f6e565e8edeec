//! What limiters write into the headers of an answer.

use core::time::Duration;
use std::time::SystemTime;

use http::HeaderMap;
use proptest::prelude::*;
use sluicegate_http::{
    Admitted, Denied, FixedShard, Inspection, Limit, LimitHeaders, ManualClock, NameError, Nanos, Quota, QuotaUnit,
    Remaining, Shard, ShardedWindow, TokenBucket, WindowLimit, quota, try_quota_left,
};

#[test]
fn the_time_is_until_all_is_there_again_rounded_up() {
    let limit = quota!("10/7s");
    let said = |remaining, inspection| {
        let headers = written(Limit::Quota(limit), Ok(Admitted::new(remaining, Nanos::ZERO)), inspection);
        headers["ratelimit"].to_str().unwrap().to_owned()
    };
    assert_eq!(said(Remaining::Exactly(10), full(10)), r#""x";r=10;t=0"#);
    assert_eq!(said(Remaining::Exactly(9), full(10)), r#""x";r=9;t=1"#);
    assert_eq!(said(Remaining::Exactly(0), full(10)), r#""x";r=0;t=7"#);
    assert_eq!(said(Remaining::AtLeast(1), Inspection::new(8, 10)), r#""x";r=8;t=2"#, "more than the shard knows");
    assert_eq!(said(Remaining::AtLeast(0), owing(10, Inspection::new(0, 10))), r#""x";r=0;t=14"#);
    let endless = said(Remaining::AtLeast(0), owing(u64::MAX, Inspection::new(0, u64::MAX)));
    assert_eq!(endless, r#""x";r=0;t=999999999999999"#, "more than can be written");
}

#[test]
fn a_third_of_a_nanosecond_past_a_second_is_the_next_second() {
    let admitted = Ok(Admitted::new(Remaining::Exactly(2), Nanos::ZERO));
    let headers = written(Limit::Quota(quota!("3/3000000001ns")), admitted, full(3));
    assert_eq!(headers["ratelimit"], r#""x";r=2;t=2"#);
}

#[test]
fn a_window_says_when_it_ends() {
    let limit = quota!("10/60s");
    let window: ShardedWindow<[Shard; 4], _, _> =
        ShardedWindow::with_array(WindowLimit::try_from(limit).unwrap(), ManualClock::new(), FixedShard(0));
    let said = LimitHeaders::window("x", Limit::Quota(limit)).unwrap();
    let write = |decision| {
        let mut headers = HeaderMap::new();
        said.write(&mut headers, decision, window.inspect());
        headers
    };
    window.clock().advance(Duration::from_millis(60_000 * 7 + 15_500));
    assert_eq!(write(window.try_acquire(2))["ratelimit"], r#""x";r=8;t=45"#);
    window.clock().advance(Duration::from_secs(20));
    let denied = write(window.try_acquire(9));
    assert_eq!((&denied["ratelimit"], &denied["retry-after"]), (&r#""x";r=8;t=25"#.parse().unwrap(), &25.into()));
    assert_eq!(write(Err(Denied::ConcurrencyLimited))["ratelimit"], r#""x";r=8;t=60"#);
}

#[test]
fn a_denial_says_when_to_come_back_twice_alike_in_whole_seconds_of_at_least_one() {
    let nanos = Duration::from_nanos;
    let limited = |retry_after| Denied::RateLimited { retry_after };
    let cases = [
        (limited(nanos(1)), Some("1")),
        (limited(nanos(1_000_000_000)), Some("1")),
        (limited(nanos(1_000_000_001)), Some("2")),
        (limited(Duration::ZERO), Some("1")),
        (limited(nanos(700_000_000_000)), Some("700")),
        (limited(Duration::MAX), Some("999999999999999")),
        (Denied::CircuitOpen { retry_after: Some(nanos(4_500_000_000)) }, Some("5")),
        (Denied::CircuitOpen { retry_after: None }, None),
        (Denied::CostExceedsLimit { cost: 11, limit: 10 }, None),
        (Denied::ConcurrencyLimited, None),
        (Denied::TooManyKeys, None),
        (Denied::QueueFull, None),
        (Denied::Closed, None),
    ];
    for (denied, expected) in cases {
        // Full after 70 s, which is earlier than some and later than others.
        let headers = written(Limit::Quota(quota!("1/10s burst 10")), Err(denied), Inspection::new(3, 10));
        assert_eq!(headers.get("retry-after").map(|value| value.to_str().unwrap()), expected, "{denied:?}");
        assert_eq!(headers["ratelimit"], format!(r#""x";r=3;t={}"#, expected.unwrap_or("70")), "{denied:?}");

        let mut window = HeaderMap::new();
        let said = LimitHeaders::window("x", Limit::Quota(quota!("10/1m"))).unwrap();
        said.write(&mut window, Err(denied), Inspection::new(3, 10));
        assert_eq!(window["ratelimit"], format!(r#""x";r=3;t={}"#, expected.unwrap_or("60")), "{denied:?}");
    }
}

#[test]
fn nothing_is_written_where_there_is_no_limit_and_no_time_where_nothing_passes() {
    let all = Ok(Admitted::new(Remaining::Unlimited, Nanos::ZERO));
    assert!(written(Limit::Unlimited, all, full(u64::MAX)).is_empty());
    assert!(written(Limit::Quota(quota!("1/1s")), all, full(u64::MAX)).is_empty(), "the limit was lifted");
    let headers = written(Limit::DenyAll, Err(Denied::Closed), full(0));
    assert_eq!(
        (&headers["ratelimit-policy"], &headers["ratelimit"]),
        (&r#""x";q=0"#.parse().unwrap(), &r#""x";r=0"#.parse().unwrap())
    );
    assert_eq!(headers.len(), 2);
    assert_eq!(try_quota_left(&headers, SystemTime::UNIX_EPOCH), Ok(None));
}

#[test]
fn where_there_is_no_limit_an_open_circuit_still_says_when_to_come_back() {
    let open = Denied::CircuitOpen { retry_after: Some(Duration::from_millis(2_500)) };
    let headers = written(Limit::Unlimited, Err(open), full(u64::MAX));
    assert_eq!((headers.len(), &headers["retry-after"]), (1, &3.into()));
}

#[test]
fn units_and_partition_keys_are_written_as_such() {
    let said = LimitHeaders::new("x", Limit::Quota(quota!("100/1m"))).unwrap();
    let cases = [
        (QuotaUnit::Requests, "requests"),
        (QuotaUnit::ContentBytes, "content-bytes"),
        (QuotaUnit::ConcurrentRequests, "concurrent-requests"),
        (QuotaUnit::Other(r#"acme "tokens""#.into()), r#"acme \"tokens\""#),
    ];
    for (unit, expected) in cases {
        let said = said.clone().with_quota_unit(&unit).unwrap();
        let mut headers = HeaderMap::new();
        said.write(&mut headers, Ok(Admitted::new(Remaining::Exactly(1), Nanos::ZERO)), full(1));
        assert_eq!(headers["ratelimit-policy"], format!(r#""x";q=100;w=60;qu="{expected}""#));
        assert_eq!(headers["ratelimit"], r#""x";r=1;t=0"#);
    }
    for (key, expected) in [(&b""[..], ""), (b"App-999", "QXBwLTk5OQ=="), (b"\xff\n", "/wo=")] {
        let said = said.clone().with_quota_unit(&QuotaUnit::Requests).unwrap();
        let mut headers = HeaderMap::new();
        let denied = Denied::RateLimited { retry_after: Duration::from_secs(1) };
        said.write_partition(&mut headers, Err(denied), Inspection::new(0, 1), key);
        assert_eq!(headers["ratelimit-policy"], format!(r#""x";q=100;w=60;qu="requests";pk=:{expected}:"#));
        assert_eq!(headers["ratelimit"], format!(r#""x";r=0;t=1;pk=:{expected}:"#));
    }
    for (unit, error) in [("", NameError::Empty), ("\n", NameError::Unprintable { name: r"\n".into() })] {
        assert_eq!(said.clone().with_quota_unit(&unit.into()).unwrap_err(), error);
    }
}

#[test]
fn several_limiters_are_one_list_and_the_longer_wait_stays() {
    for (waits, said) in [([2, 9], "9"), ([9, 2], "9")] {
        let mut headers = HeaderMap::new();
        for (name, wait) in ["second", "day"].into_iter().zip(waits) {
            let one = LimitHeaders::new(name, Limit::Quota(quota!("10/1s"))).unwrap();
            let denied = Denied::RateLimited { retry_after: Duration::from_secs(wait) };
            one.write(&mut headers, Err(denied), Inspection::new(0, 10));
        }
        let all: Vec<_> = headers.get_all("ratelimit").iter().map(|line| line.to_str().unwrap()).collect();
        assert_eq!(all, [format!(r#""second";r=0;t={}"#, waits[0]), format!(r#""day";r=0;t={}"#, waits[1])]);
        assert_eq!(headers.get_all("ratelimit-policy").iter().count(), 2);
        assert_eq!(headers.get_all("retry-after").iter().collect::<Vec<_>>(), [said]);
        assert!(try_quota_left(&headers, SystemTime::UNIX_EPOCH).is_ok());
    }
}

#[test]
fn names_that_cannot_be_written_are_refused() {
    let refused = |name: &str| LimitHeaders::new(name, Limit::Unlimited).unwrap_err();
    assert_eq!(refused(""), NameError::Empty);
    for (name, quoted) in [("m\u{fc}ll", r"m\u{fc}ll"), ("a\nb", r"a\nb"), ("\u{7f}", r"\u{7f}"), ("a\0", r"a\u{0}")] {
        assert_eq!(refused(name), NameError::Unprintable { name: quoted.into() });
        assert_eq!(LimitHeaders::window(name, Limit::DenyAll).unwrap_err(), refused(name));
        let text = format!("the name \"{quoted}\" cannot be written: give printable ASCII, from space to `~`");
        assert_eq!(refused(name).to_string(), text);
    }
    let long = format!("{}\u{fc}", "a".repeat(60));
    assert_eq!(refused(&long), NameError::Unprintable { name: format!("{}...", "a".repeat(60)) });
    let odd = LimitHeaders::new(r#"a "b\c", ~"#, Limit::DenyAll).unwrap();
    let mut headers = HeaderMap::new();
    odd.write(&mut headers, Err(Denied::Closed), full(0));
    assert_eq!(headers["ratelimit"], r#""a \"b\\c\", ~";r=0"#);
}

#[test]
fn a_map_that_is_full_is_left_as_it_is() {
    let limit = quota!("1/1h");
    let bucket = TokenBucket::with_clock(limit, ManualClock::new());
    assert!(bucket.try_acquire(1).is_ok());
    let said = LimitHeaders::new("search", Limit::Quota(limit)).unwrap();
    let mut headers = HeaderMap::new();
    for number in 0.. {
        let name: http::HeaderName = format!("x-{number}").parse().unwrap();
        if headers.try_append(name, http::HeaderValue::from_static("1")).is_err() {
            break;
        }
    }
    let before = headers.len();
    said.write(&mut headers, bucket.try_acquire(1), bucket.inspect());
    said.write_partition(&mut headers, bucket.try_acquire(1), bucket.inspect(), b"key");
    assert_eq!(headers.len(), before);
}

proptest! {
    #[test]
    fn no_numbers_panic(
        quota in prop_oneof![Just("18446744073709551615/18446744073709551615ns burst 1"), Just("1/18446744073709551615ns"), Just("9/1ns")],
        numbers in [extreme(), extreme(), extreme(), extreme()],
        kind in 0..3,
        window: bool,
    ) {
        let quota: Quota = quota.parse().unwrap();
        let new = if window { LimitHeaders::window } else { LimitHeaders::new };
        let [level, capacity, owed, other] = numbers;
        let decision = match kind {
            0 => Ok(Admitted::new(Remaining::Exactly(other), Nanos::new(level))),
            1 => Ok(Admitted::new(Remaining::AtLeast(other), Nanos::new(level))),
            _ => Err(Denied::RateLimited { retry_after: Duration::from_secs(other) }),
        };
        let mut headers = HeaderMap::new();
        let inspection = owing(owed, Inspection::new(level, capacity));
        new("x", Limit::Quota(quota)).unwrap().write(&mut headers, decision, inspection);
        prop_assert!(headers.contains_key("ratelimit") && headers.contains_key("ratelimit-policy"));
        prop_assert!(try_quota_left(&headers, SystemTime::UNIX_EPOCH).is_ok());
    }
}

fn written(limit: Limit, decision: Result<Admitted, Denied>, inspection: Inspection) -> HeaderMap {
    let mut headers = HeaderMap::new();
    LimitHeaders::new("x", limit).unwrap().write(&mut headers, decision, inspection);
    headers
}

fn full(capacity: u64) -> Inspection {
    Inspection::new(capacity, capacity)
}

fn owing(owed: u64, mut inspection: Inspection) -> Inspection {
    inspection.owed = owed;
    inspection
}

fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(u64::MAX - 1), any::<u64>()]
}
