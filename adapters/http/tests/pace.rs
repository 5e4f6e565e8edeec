//! Headers that pace a quota.

use core::time::Duration;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName};
use sluicegate_http::{AdaptiveOptions, Nanos, PaceRule, QuotaAccount, Signals, quota, quota_left};

#[test]
fn c12_what_a_providers_headers_say_paces_downwards_and_back_to_the_base() {
    let base = quota!("10/1s");
    let mut policy = AdaptiveOptions::new(base).pace(PaceRule::new()).build().unwrap();
    let mut account = QuotaAccount::unknown();
    // The readings of the limiter and the system's time have nothing to do with each other.
    let at = |second| Nanos::from_secs(1_000 + second);
    let time = |second| SystemTime::UNIX_EPOCH + Duration::from_secs(1_762_700_000 + second);

    let answers: [(u64, &[(&str, &str)]); 4] = [
        // 200 in 100 s, which is 2 a second, is stricter than 5 a second.
        (
            5,
            &[
                ("ratelimit", r#""minute";r=300;t=60"#),
                ("x-ratelimit-remaining", "200"),
                ("x-ratelimit-reset", "1762700105"),
            ],
        ),
        // Less is left than two a second took.
        (15, &[("ratelimit", r#""minute";r=90;t=90"#)]),
        // Too much, whatever else it says.
        (25, &[("ratelimit", r#""minute";r=80;t=80"#), ("retry-after", "60")]),
        // Says nothing, so what was said counts on.
        (35, &[("ratelimit", "?")]),
    ];
    let mut seen = Vec::new();
    for second in (0..150).step_by(5) {
        for (_, lines) in answers.iter().filter(|(when, _)| *when == second) {
            let mut headers = HeaderMap::new();
            headers.extend(lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())));
            if let Some(left) = quota_left(&headers, time(second)) {
                account.report(at(second), left);
            }
        }
        let signals =
            account.left(at(second)).map_or(Signals::default(), |left| Signals::default().with_quota_left(left));
        let _ = policy.evaluate(at(second), &signals);
        seen.push((second, policy.allowed().pace, policy.allowed().share));
    }

    let of = |second: u64| seen[second as usize / 5];
    assert_eq!(of(0), (0, 1_000_000, 1_000_000), "nothing is known");
    assert_eq!(of(5), (5, 200_000, 500_000), "half at a time");
    assert_eq!(of(10), (10, 210_526, 210_526), "nobody has spent any of the 200, for 95 s");
    assert_eq!(of(15), (15, 100_000, 100_000));
    assert_eq!(of(25), (25, 0, 1), "nothing is left, whatever the floor");
    assert_eq!(of(80), (80, 0, 1), "until the wait is over");
    assert_eq!(of(85), (85, 1_000_000, 100_001), "and then a tenth of the base at a time");
    assert_eq!(of(125), (125, 1_000_000, 900_001));
    assert_eq!(of(130), (130, 1_000_000, 1_000_000));
    assert_eq!(policy.quota(), base);
}
