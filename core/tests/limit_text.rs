//! Limits as people write them: what is read, how it prints, and what a mistake is answered with.

use core::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{Limit, Quota, QuotaError, Rate, quota};

const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

#[test]
fn reads_and_prints_examples() {
    let examples = [
        ("300/1m", "300/1m"),
        ("300/m", "300/1m"),
        ("300/60s", "300/1m"),
        ("300/60000ms", "300/1m"),
        ("  300 / 1 m  ", "300/1m"),
        ("\t300/1m\r\n", "300/1m"),
        ("7/3s burst 20", "7/3s burst 20"),
        ("7/3s  BURST\t20 ", "7/3s burst 20"),
        ("7/3s burst 7", "7/3s"),
        ("100/1s burst 50 debt 20", "100/1s burst 50 debt 20"),
        ("100/1s debt 20", "100/1s debt 20"),
        ("100/1s burst 100 DEBT\t2_0 ", "100/1s debt 20"),
        ("100/1s burst 50 debt 0", "100/1s burst 50"),
        ("100/1s debt 00", "100/1s"),
        ("1/30d", "1/30d"),
        ("1/720h", "1/30d"),
        ("1/90s", "1/90s"),
        ("1/24h", "1/1d"),
        ("1/1000us", "1/1ms"),
        ("1_000_000/1s", "1000000/1s"),
        ("007/1s", "7/1s"),
        ("5/1_500ms", "5/1500ms"),
        ("1/18446744073709551615ns", "1/18446744073709551615ns"),
        ("off", "off"),
        (" OFF ", "off"),
        ("deny", "deny"),
        ("Deny\n", "deny"),
    ];
    for (text, printed) in examples {
        let limit: Limit = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(limit.to_string(), printed, "{text:?}");
        assert_eq!(printed.parse(), Ok(limit), "{text:?}");
        assert_eq!(format!("{limit:?}"), format!("Limit({printed})"));
    }
}

#[test]
fn a_quota_and_a_rate_print_like_the_limit() {
    let quota = quota!("7/3s burst 20");
    assert_eq!((quota.rate().tokens(), quota.rate().period(), quota.capacity()), (7, Duration::from_secs(3), 20));
    assert_eq!(format!("{quota} {quota:?}"), "7/3s burst 20 Quota(7/3s burst 20)");
    assert_eq!(format!("{} {:?}", quota.rate(), quota.rate()), "7/3s Rate(7/3s)");
    assert_eq!(Limit::from(quota).to_string(), quota.to_string());
    assert!("off".parse::<Quota>().is_err(), "a quota is not a limit");
    assert!("7/3s burst 20".parse::<Rate>().is_err(), "a rate has no burst");
}

#[test]
fn every_mistake_is_answered_with_text_fault_and_remedy() {
    const EXPECTED: &str = "expected TOKENS/PERIOD [burst CAPACITY] [debt TOKENS], such as 300/1m or 7/3s burst 20; \
                            a limit may also be `off` or `deny`";
    const UNITS: &str = "expected ns, us, ms, s, m, h or d, as in 300/1m or 7/3s burst 20";
    const TOKENS: &str = "the tokens are not a whole number from 1 to 18446744073709551615";
    const COUNT: &str = "the number in the period is not a whole number from 1 to 18446744073709551615";
    const BURST: &str = "the burst is not a whole number from 1 to 18446744073709551615";
    const DEBT: &str = "the debt is not a whole number from 0 to 18446744073709551615";
    const REST: &str = "something follows that is not `burst CAPACITY` or `debt TOKENS`";
    const BARE_ZERO: &str = "0 can be read both ways; write `off` for no limit or `deny` to admit nothing";
    const NO_PERIOD: &str = "a number alone has no period; write tokens per period, as in 300/1m";
    const TWO_UNITS: &str = "a period is one number and one unit; write 90s, not 1m30s";
    const LOWER_CASE: &str = "units of time are in lower case";
    const ALONE: &str = "`off` and `deny` stand alone; nothing may follow them";
    const TOO_LONG: &str = "the period is too long; the longest is 18446744073709551615ns, about 584 years";

    let whole = |text: &str, fault: &str| (text.to_owned(), format!("{text:?}: {fault}; {EXPECTED}"));
    let unit = |text: &str, fault: &str| (text.to_owned(), format!("{text:?}: {fault}; {UNITS}"));
    let plain = |text: &str, fault: &str| (text.to_owned(), format!("{text:?}: {fault}"));
    let table = [
        whole("", "nothing to read"),
        whole(" \t\n", "nothing to read"),
        plain("0", BARE_ZERO),
        plain(" 00 ", BARE_ZERO),
        plain("300", NO_PERIOD),
        whole("-5/1m", TOKENS),
        whole("+5/1m", TOKENS),
        whole("1.5/1m", TOKENS),
        whole("1,5/1m", TOKENS),
        whole("five/1m", TOKENS),
        whole("/1m", TOKENS),
        whole("1e3/1m", "no `/` between tokens and period"),
        whole("0x10/1m", "no `/` between tokens and period"),
        whole("1__0/1m", TOKENS),
        whole("_10/1m", TOKENS),
        whole("10_/1m", TOKENS),
        whole("18446744073709551616/1m", TOKENS),
        whole("99999999999999999999999999/1m", TOKENS),
        whole("10 per minute", "no `/` between tokens and period"),
        whole("10 1m", "no `/` between tokens and period"),
        whole("10/", "no period after `/`"),
        whole("10/ ", "no period after `/`"),
        unit("10//1m", "unknown unit of time"),
        unit("10/1", "the period has no unit of time"),
        unit("10/60 ", "the period has no unit of time"),
        unit("10/1 burst 5", "the period has no unit of time"),
        unit("10/ burst 5", "the period has no unit of time"),
        unit("10/1y", "unknown unit of time"),
        unit("10/1sec", "unknown unit of time"),
        unit("10/1\u{b5}s", "unknown unit of time"),
        unit("10/1M", LOWER_CASE),
        unit("10/1MS", LOWER_CASE),
        unit("10/S", LOWER_CASE),
        plain("10/1m30s", TWO_UNITS),
        whole("10/1m 30s", REST),
        whole("10/-1m", COUNT),
        whole("10/+1m", COUNT),
        whole("10/1.5m", COUNT),
        whole("10/.5m", COUNT),
        whole("10/99999999999999999999s", COUNT),
        plain("10/18446744073709551615s", TOO_LONG),
        plain("10/213504d", TOO_LONG),
        plain("10/0s", "a period of 0: the least is 1ns"),
        plain("0/1m", "0 tokens per period: the least is 1; use `deny` to admit nothing, `off` for no limit"),
        plain("10/1m burst 0", "a burst of 0: the least is 1; use `deny` to admit nothing, `off` for no limit"),
        whole("10/1m burst", "no number after `burst`"),
        whole("10/1m burst ", "no number after `burst`"),
        whole("10/1m burst many", BURST),
        whole("10/1m burst -1", BURST),
        whole("10/1m burst 1.5", BURST),
        whole("10/1m burst 18446744073709551616", BURST),
        whole("10/1m burst 5 5", REST),
        whole("10/1m burst5", REST),
        whole("10/1m debt", "no number after `debt`"),
        whole("10/1m burst 5 debt \t", "no number after `debt`"),
        whole("10/1m debt some", DEBT),
        whole("10/1m burst 5 debt -1", DEBT),
        whole("10/1m debt 1.5", DEBT),
        whole("10/1m debt 1,5", DEBT),
        whole("10/1m debt 18446744073709551616", DEBT),
        whole("10/1m debt 5 5", REST),
        whole("10/1m debt 5 debt 5", REST),
        // The burst comes first.
        whole("10/1m debt 5 burst 5", REST),
        whole("10/1m burst 5debt 5", REST),
        whole("10/1m burst debt 5", BURST),
        whole("10/1m debt5", REST),
        whole("10/1m debts 5", REST),
        whole("10/1m, debt 5", REST),
        plain(
            "100/1s burst 50 debt 9223372036854775807",
            "a debt of 9223372036854775807: the largest at this rate and burst is 9223371942181975757",
        ),
        whole("10/1m bursting 5", REST),
        whole("10/1m, burst 5", REST),
        whole("10/1m;", REST),
        whole("10/1m\0", REST),
        whole("\x0010/1m", TOKENS),
        whole("\u{1b}[31m10/1m", TOKENS),
        whole("\u{661}\u{660}/1m", TOKENS),
        whole("10/1m \u{1f980}", REST),
        plain("off 5", ALONE),
        plain("deny burst 5", ALONE),
        plain("off-peak", ALONE),
        whole("offline", TOKENS),
        whole("unlimited", TOKENS),
        plain("10000000000/1s", "a rate of 10000000000/1s: the highest is about 9.7 tokens per ns (9700000000/1s)"),
        plain(
            "1/1s burst 9223372036854775807",
            "a burst of 9223372036854775807: the largest at this rate is 9223372035908047807",
        ),
    ];
    for (text, message) in table {
        match text.parse::<Limit>() {
            Ok(limit) => panic!("{text:?} was read as {limit}"),
            Err(error) => {
                assert_eq!(error.to_string(), message);
                assert_eq!(format!("{error:?}"), format!("ParseError({message})"));
            }
        }
    }
}

#[test]
fn an_error_tells_a_quota_that_cannot_be_from_a_text_that_is_none() {
    let quota_error = |text: &str| text.parse::<Limit>().unwrap_err().quota_error();
    assert_eq!(quota_error("0/1m"), Some(QuotaError::ZeroTokens));
    assert_eq!(quota_error("1/0m"), Some(QuotaError::ZeroPeriod));
    assert_eq!(quota_error("1/1m burst 0"), Some(QuotaError::ZeroBurst));
    assert!(matches!(quota_error("10/1ns"), Some(QuotaError::RateTooHigh { .. })));
    assert!(matches!(quota_error("1/1s debt 10000000000000000000"), Some(QuotaError::DebtTooLarge { .. })));
    assert_eq!(quota_error("1/1y"), None);
    assert_eq!(quota_error(""), None);
}

#[test]
fn a_long_text_is_cut_between_characters() {
    for width in ["a", "\u{e9}", "\u{20ac}", "\u{1f980}"] {
        for offset in 0..8 {
            let text = " ".repeat(offset) + &width.repeat(1000);
            let message = text.parse::<Limit>().unwrap_err().to_string();
            let (excerpt, _) = message.split_once("\"...: ").unwrap_or_else(|| panic!("{message}"));
            let excerpt = &excerpt[1..];
            assert!(text.starts_with(excerpt) && excerpt.len() > 40 && excerpt.len() <= 48, "{message}");
            assert!(message.len() < 400, "{message}");
        }
    }
    // The longest that is not cut.
    let text = "x".repeat(48);
    assert!(text.parse::<Limit>().unwrap_err().to_string().starts_with(&format!("{text:?}: ")));
}

#[test]
fn no_message_carries_a_control_character() {
    for byte in (0..32).chain([127]) {
        let text = format!("10/1m{}x", char::from(byte));
        if let Err(error) = text.parse::<Limit>() {
            assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
        }
    }
}

proptest! {
    #[test]
    fn what_prints_reads_back_equal(
        tokens in magnitude(), period in magnitude(), burst in magnitude(), debt in magnitude(),
    ) {
        let rate = Rate::new(tokens, Duration::from_nanos(period)).unwrap();
        prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        let quotas = [Quota::new(rate), Quota::with_burst(rate, burst)];
        let indebted = quotas.map(|quota| quota.and_then(|quota| quota.with_debt(debt)));
        for quota in quotas.into_iter().chain(indebted).flatten() {
            prop_assert_eq!(quota.to_string().parse(), Ok(quota));
            prop_assert_eq!(quota.to_string().parse(), Ok(Limit::Quota(quota)));
        }
    }

    #[test]
    fn the_unit_printed_is_the_largest_that_divides(period in magnitude()) {
        let printed = Rate::new(1, Duration::from_nanos(period)).unwrap().to_string();
        let (unit, length) = UNITS.into_iter().rfind(|(_, length)| period % length == 0).unwrap();
        prop_assert_eq!(printed, format!("1/{}{unit}", period / length));
    }

    #[test]
    fn spelling_does_not_matter(
        tokens in 1_u64..1_000_000,
        count in 1_u64..1_000,
        unit in 0_usize..7,
        burst in prop::option::of(1_u64..1_000_000),
        debt in prop::option::of(0_u64..1_000_000),
        gaps in prop::collection::vec("[ \t\r\n]{0,3}", 8),
    ) {
        let (name, length) = UNITS[unit];
        let rate = Rate::new(tokens, Duration::from_nanos(count * length)).unwrap();
        let mut text = format!("{}{tokens}{}/{}{count}{}{name}", gaps[0], gaps[1], gaps[2], gaps[3]);
        let expected = match burst {
            Some(burst) => {
                text += &format!(" {}burst {}{burst}", gaps[4], gaps[5]);
                Quota::with_burst(rate, burst)
            }
            None => Quota::new(rate),
        };
        let expected = match debt {
            Some(debt) => {
                text += &format!(" {}deBt {}{debt}", gaps[6], gaps[7]);
                expected.and_then(|quota| quota.with_debt(debt))
            }
            None => expected,
        };
        text += &gaps[5];
        match (text.parse::<Quota>(), expected) {
            (Ok(read), Ok(expected)) => prop_assert_eq!(read, expected),
            (Err(error), Err(expected)) => prop_assert_eq!(error.quota_error(), Some(expected)),
            other => prop_assert!(false, "{:?}: {:?}", text, other),
        }
    }

    #[test]
    fn does_not_panic_on_arbitrary_text(text in any::<String>()) {
        check_arbitrary(&text)?;
    }

    #[test]
    fn does_not_panic_on_nearly_a_limit(text in "[0-9_ /.+-]{0,24}[a-zA-Z0-9 ]{0,6}( burst ?[0-9_-]{0,21})?( debt ?[0-9_-]{0,21})?.{0,2}") {
        check_arbitrary(&text)?;
    }
}

fn check_arbitrary(text: &str) -> Result<(), TestCaseError> {
    match text.parse::<Limit>() {
        Ok(limit) => prop_assert_eq!(limit.to_string().parse(), Ok(limit)),
        Err(error) => prop_assert!(error.to_string().len() > 20 && error.to_string().len() < 600, "{}", error),
    }
    Ok(())
}

/// Numbers of every size.
fn magnitude() -> impl Strategy<Value = u64> {
    prop_oneof![
        1..=1000_u64,
        (0..20_u32).prop_map(|exponent| 10_u64.pow(exponent)),
        (0..7_usize, 1..1_000_u64).prop_map(|(unit, count)| UNITS[unit].1.saturating_mul(count)),
        (1..=u64::MAX, 0..64_u32).prop_map(|(number, shift)| (number >> shift).max(1)),
    ]
}

#[test]
fn d02_a_window_has_no_debt() {
    use sluicegate_core::WindowLimit;
    let error = "10/1m debt 5".parse::<WindowLimit>().unwrap_err();
    assert_eq!(error.quota_error(), Some(QuotaError::DebtOnWindow { debt: 5 }));
    assert_eq!(WindowLimit::new(Limit::Quota(quota!("10/1m debt 5"))), Err(QuotaError::DebtOnWindow { debt: 5 }));
    assert!("10/1m debt 0".parse::<WindowLimit>().is_ok());
}
