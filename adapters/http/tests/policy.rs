//! What a policy says of a rate.

use core::time::Duration;

use http::HeaderMap;
use proptest::prelude::*;
use sluicegate_http::{Admitted, Inspection, LimitHeaders, Nanos, Quota, Rate, Remaining};

#[test]
fn a_policy_has_exactly_the_rates_ratio_wherever_15_digits_have_it() {
    let cases = [
        // Whole seconds, as configured.
        ("100/1m", "q=100;w=60"),
        ("100/1s burst 500", "q=100;w=1"),
        ("7/3s", "q=7;w=3"),
        ("1/1d burst 1", "q=1;w=86400"),
        ("999999999999999/9999999s burst 1", "q=999999999999999;w=9999999"),
        // Others, as the smallest pair.
        ("10/100ms", "q=100;w=1"),
        ("150/1500ms", "q=100;w=1"),
        ("7/1500ms", "q=14;w=3"),
        ("1/1ms", "q=1000;w=1"),
        ("9/1ns burst 1", "q=9000000000;w=1"),
        ("1/1000000001ns", "q=1000000000;w=1000000001"),
        ("999999/999999999999999ns", "q=1001000000000;w=1001001001001"),
        ("999999/999999999999998ns", "q=499999500000000;w=499999999999999"),
        // Also where what was configured is too large.
        ("1000000000000000/10000000s burst 1", "q=100000000;w=1"),
        ("18446744073709551615/18446744073709551615ns burst 1", "q=1000000000;w=1"),
        // Rounded down: a little more than a million tokens, or than 11 days.
        ("1000001/1000000001ns", "q=2000001;w=2"),
        ("1/1000000000000001ns burst 1", "q=1;w=1000001"),
        ("1/18446744073709551615ns burst 1", "q=1;w=18446744074"),
        ("18446744073709551614/18446744073709551615ns burst 1", "q=999998999999999;w=999999"),
    ];
    for (quota, expected) in cases {
        assert_eq!(written(quota.parse().unwrap()), format!(r#""x";{expected}"#), "{quota}");
    }
}

proptest! {
    #[test]
    fn a_policy_never_promises_more_than_the_rate_and_at_most_a_millionth_less(
        tokens in size(),
        period in size(),
    ) {
        let Ok(quota) = Quota::with_burst(Rate::new(tokens, Duration::from_nanos(period)).unwrap(), 1) else {
            return Ok(());
        };
        let written = written(quota);
        let (q, w) = written.strip_prefix(r#""x";q="#).unwrap().split_once(";w=").unwrap();
        let (q, w): (u128, u128) = (q.parse().unwrap(), w.parse().unwrap());
        prop_assert!((1..=MOST).contains(&q) && (1..=MOST).contains(&w));
        // q / w seconds beside tokens / period.
        let (said, true_rate) = (q * u128::from(period), u128::from(tokens).checked_mul(w * 1_000_000_000));
        let true_rate = true_rate.unwrap_or(u128::MAX);
        prop_assert!(said <= true_rate, "more");
        prop_assert!(true_rate - said <= true_rate / 1_000_000, "much less");
        if tokens < 1_000_000 && u128::from(period) <= MOST {
            prop_assert_eq!(said, true_rate);
        }
    }
}

fn written(quota: Quota) -> String {
    let mut headers = HeaderMap::new();
    let admitted = Admitted::new(Remaining::Exactly(1), Nanos::ZERO);
    LimitHeaders::new("x", quota.into()).unwrap().write(&mut headers, Ok(admitted), Inspection::new(1, 1));
    headers["ratelimit-policy"].to_str().unwrap().to_owned()
}

/// Of every size alike.
fn size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0..64_u32).prop_map(|(bits, shift)| (bits >> shift).max(1))
}

/// The most that an integer of a structured field can be.
const MOST: u128 = 999_999_999_999_999;
