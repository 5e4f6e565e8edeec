//! What an error quotes of what others sent.

use std::time::SystemTime;

use http::{HeaderMap, HeaderValue};
use sluicegate_http::{HeaderError, quota_left, try_quota_left};

#[test]
fn an_error_quotes_64_characters_at_most_and_none_that_controls() {
    let quoted = |value: &[u8]| {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_bytes(value).unwrap());
        let error = try_quota_left(&headers, SystemTime::UNIX_EPOCH).unwrap_err();
        let HeaderError::Form { value, accepted, .. } = &error else { panic!("{error}") };
        assert_eq!(error.to_string(), format!("Retry-After is `{value}`: write {accepted}"));
        value.clone()
    };
    let x = |count| "x".repeat(count);
    assert_eq!(quoted(x(64).as_bytes()), x(64));
    assert_eq!(quoted(x(65).as_bytes()), format!("{}...", x(64)));
    assert_eq!(quoted(x(1_000_000).as_bytes()), format!("{}...", x(64)));
    assert_eq!(quoted(b"a\tb\xff"), r"a\tb\xff");
    // Two bytes of one character are two escapes, of which none is cut.
    assert_eq!(quoted(format!("{}\u{fc}", x(56)).as_bytes()), format!(r"{}\xc3\xbc", x(56)));
    assert_eq!(quoted(format!("{}\u{fc}", x(57)).as_bytes()), format!(r"{}\xc3...", x(57)));
    assert_eq!(quoted(format!("{}\u{fc}", x(61)).as_bytes()), format!("{}...", x(61)));
    assert_eq!(quoted(format!("{}\t", x(63)).as_bytes()), format!("{}...", x(63)));
}

#[test]
fn of_a_list_in_many_lines_64_characters_are_quoted_too() {
    let mut lines = HeaderMap::new();
    for _ in 0..1_000 {
        lines.append("ratelimit", HeaderValue::from_static(r#""a";r=x"#));
        lines.append("ratelimit-policy", HeaderValue::from_static("("));
    }
    match try_quota_left(&lines, SystemTime::UNIX_EPOCH) {
        Err(HeaderError::Form { value, .. }) => assert!(value.len() <= 67 && value.ends_with("..."), "{value}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(quota_left(&lines, SystemTime::UNIX_EPOCH), None);
}
