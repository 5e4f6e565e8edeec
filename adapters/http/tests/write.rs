//! What limiters write into the headers of an answer.

use core::time::Duration;
use std::time::SystemTime;

use http::HeaderMap;
use proptest::prelude::*;
use sluicegate_http::{
    Admitted, Denied, FixedShard, Inspection, Limit, LimitHeaders, ManualClock, NameError, Nanos, Quota, QuotaLeft,
    Rate, Remaining, Shard, ShardedWindow, TokenBucket, WindowLimit, quota, try_quota_left,
};

#[test]
fn a_policy_is_the_rate_in_whole_seconds_and_never_more_than_it() {
    let cases = [
        ("100/1m", r#""x";q=100;w=60"#),
        ("100/1s burst 500", r#""x";q=100;w=1"#),
        ("10/100ms", r#""x";q=100;w=1"#),
        ("7/1500ms", r#""x";q=9;w=2"#),
        ("1/1d burst 1", r#""x";q=1;w=86400"#),
        ("18446744073709551615/18446744073709551615ns burst 1", r#""x";q=999999999999999;w=18446744074"#),
    ];
    for (limit, expected) in cases {
        let headers = written(limit.parse().unwrap(), Ok(Admitted::new(Remaining::Exactly(0), Nanos::ZERO)), full(1));
        assert_eq!(headers["ratelimit-policy"], expected, "{limit}");
    }
}

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
fn a_denial_says_when_to_come_back_in_whole_seconds_of_at_least_one() {
    let nanos = Duration::from_nanos;
    let limited = |retry_after| Denied::RateLimited { retry_after };
    let cases = [
        (limited(nanos(1)), Some("1")),
        (limited(nanos(1_000_000_000)), Some("1")),
        (limited(nanos(1_000_000_001)), Some("2")),
        (limited(Duration::ZERO), Some("1")),
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
        let headers = written(Limit::Quota(quota!("10/1s")), Err(denied), Inspection::new(3, 10));
        assert_eq!(headers.get("retry-after").map(|value| value.to_str().unwrap()), expected, "{denied:?}");
        assert_eq!(headers["ratelimit"], r#""x";r=3;t=1"#);
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
fn several_limiters_are_one_list_and_the_longer_wait_stays() {
    for (waits, said) in [([2, 9], "9"), ([9, 2], "9")] {
        let mut headers = HeaderMap::new();
        for (name, wait) in ["second", "day"].into_iter().zip(waits) {
            let one = LimitHeaders::new(name, Limit::Quota(quota!("10/1s"))).unwrap();
            let denied = Denied::RateLimited { retry_after: Duration::from_secs(wait) };
            one.write(&mut headers, Err(denied), Inspection::new(0, 10));
        }
        let all: Vec<_> = headers.get_all("ratelimit").iter().collect();
        assert_eq!(all, [r#""second";r=0;t=1"#, r#""day";r=0;t=1"#]);
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

proptest! {
    #[test]
    fn what_a_bucket_writes_is_read_back(
        name in "[ -~]{1,20}",
        (tokens, period) in (1..1_000_u64, 1..10_000_000_000_000_u64),
        burst in 1..100_000_u64,
        steps in prop::collection::vec((0..20_000_000_000_u64, 0..2_000_u64), 1..20),
    ) {
        let quota = Quota::with_burst(Rate::new(tokens, Duration::from_nanos(period)).unwrap(), burst).unwrap();
        let said = LimitHeaders::new(&name, Limit::Quota(quota)).unwrap();
        let bucket = TokenBucket::with_clock(quota, ManualClock::new());
        for (time, cost) in steps {
            bucket.clock().advance(Duration::from_nanos(time));
            let decision = bucket.try_acquire(cost);
            let mut headers = HeaderMap::new();
            said.write(&mut headers, decision, bucket.inspect());
            let read = try_quota_left(&headers, SystemTime::UNIX_EPOCH).unwrap();
            // In other words than the crate's: by which whole second so many tokens have come.
            let level = bucket.inspect().level;
            let has_come = |seconds: u64| u128::from(seconds) * 1_000_000_000 * u128::from(tokens) / u128::from(period);
            match (decision, read) {
                (Err(Denied::RateLimited { retry_after }), Some(left)) => {
                    prop_assert_eq!(left.tokens, 0);
                    let ahead = left.until_reset - retry_after;
                    prop_assert!(ahead < Duration::from_secs(1));
                }
                (_, Some(QuotaLeft { tokens, until_reset, .. })) => {
                    prop_assert_eq!(tokens, level);
                    let missing = u128::from(burst - level);
                    prop_assert!(has_come(until_reset.as_secs()) >= missing);
                    prop_assert!(has_come(until_reset.as_secs() - 1) < missing);
                }
                (_, None) => prop_assert_eq!(level, burst),
            }
        }
    }

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
    assert_eq!(headers.len(), before);
}
