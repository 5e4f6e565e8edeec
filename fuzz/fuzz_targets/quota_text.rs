//! Arbitrary text as a limit: it never panics, it means what a slow reader of the same grammar says, and what was read
//! prints as text that reads back equal.
#![no_main]

use core::time::Duration;

use libfuzzer_sys::fuzz_target;
use sluicegate_core::{Limit, Quota, QuotaError, Rate};

fuzz_target!(|text: &str| {
    let read = text.parse::<Limit>();
    match (&read, read_slowly(text)) {
        (Ok(limit), Some(expected)) => assert_eq!(Ok(*limit), expected, "{text:?}"),
        (Err(error), Some(expected)) => assert_eq!(error.quota_error(), expected.err(), "{text:?}: {error}"),
        (Err(error), None) => assert!(
            error.quota_error().is_none_or(|error| error == QuotaError::ZeroPeriod || error == QuotaError::ZeroTokens),
            "{text:?}: {error}"
        ),
        (Ok(limit), None) => panic!("{text:?} was read as {limit}"),
    }
    match read {
        Ok(limit) => {
            let printed = limit.to_string();
            assert_eq!(printed.parse(), Ok(limit), "{text:?} prints as {printed:?}");
            assert_eq!(text.parse::<Quota>().ok(), limit.quota());
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() > 20 && message.len() < 1_000, "{message}");
            assert!(!message.chars().any(char::is_control), "{message:?}");
            assert!(text.parse::<Quota>().is_err());
        }
    }
});

/// The limit that a text describes, or why it cannot be; `None` where it does not follow the grammar:
/// `off`, `deny`, or `TOKENS / [COUNT] UNIT [burst CAPACITY]`.
fn read_slowly(text: &str) -> Option<Result<Limit, QuotaError>> {
    const SPACES: [char; 4] = [' ', '\t', '\n', '\r'];
    let text = text.trim_matches(SPACES);
    match text.to_ascii_lowercase().as_str() {
        "off" => return Some(Ok(Limit::Unlimited)),
        "deny" => return Some(Ok(Limit::DenyAll)),
        _ => {}
    }
    let (tokens, rest) = text.split_once('/')?;
    let tokens = whole_number(tokens.trim_end_matches(SPACES))?;
    let rest = rest.trim_start_matches(SPACES);

    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(rest.len());
    let count = if digits == 0 { 1 } else { whole_number(&rest[..digits])? };
    let rest = rest[digits..].trim_start_matches(SPACES);
    let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let length: u64 = match &rest[..letters] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 60 * 60 * 1_000_000_000,
        "d" => 24 * 60 * 60 * 1_000_000_000,
        _ => return None,
    };
    let period = Duration::from_nanos(count.checked_mul(length)?);

    let rest = &rest[letters..];
    let burst = if rest.is_empty() {
        tokens
    } else {
        let word = rest.trim_start_matches(SPACES);
        if word.len() == rest.len() || !word.is_char_boundary(5) || !word[..5].eq_ignore_ascii_case("burst") {
            return None;
        }
        let number = word[5..].trim_start_matches(SPACES);
        if number.len() == word.len() - 5 {
            return None;
        }
        whole_number(number)?
    };
    let quota = Rate::new(tokens, period).and_then(|rate| Quota::with_burst(rate, burst));
    Some(quota.map(Limit::Quota))
}

/// Digits with single underscores between them.
fn whole_number(text: &str) -> Option<u64> {
    if text.split('_').any(|digits| digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    text.replace('_', "").parse().ok()
}
