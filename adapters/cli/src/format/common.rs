//! The Common Log Format and its longer form, Combined.
//!
//! By hand rather than with a regular expression: it is most of the work of a run.

use std::borrow::Cow;

use super::{ALL, Record, Selection, Unreadable, parse_cost, request_part};
use crate::args::{By, Cost};
use crate::time::{LogTime, TimeFormat, parse_common};

/// Reads `ADDRESS IDENT USER [TIME] "METHOD PATH PROTOCOL" STATUS BYTES`; what follows matters only in Combined.
pub(super) fn read<'l>(line: &'l [u8], selection: &Selection, is_combined: bool) -> Result<Record<'l>, Unreadable> {
    let line = line.trim_ascii();
    let (address, rest) = split_at_byte(line, b' ').ok_or(NO_TIME)?;
    let (time, rest) = find_time(rest, &selection.time)?;
    let Request { request, status, bytes, rest } = find_request(rest).ok_or(NO_REQUEST)?;
    if is_combined && !has_referrer_and_agent(rest) {
        return Err("no referrer and agent in quotes after the size, as in combined logs");
    }
    let key = match selection.by {
        By::Ip => address,
        By::Path | By::Method => request_part(request, selection.by),
        By::Status => status,
        By::All => ALL,
    };
    let cost = match selection.cost {
        Cost::One => 1,
        Cost::Bytes => parse_cost(bytes)?,
    };
    Ok(Record { time, key: Cow::Borrowed(key), cost })
}

/// The first brackets that hold a time, and what follows them. A user's name may hold brackets and spaces too.
fn find_time<'l>(text: &'l [u8], format: &TimeFormat) -> Result<(LogTime, &'l [u8]), Unreadable> {
    let mut problem = NO_TIME;
    let mut rest = text;
    while let Some((_, inner)) = split_at_byte(rest, b'[') {
        let near = &inner[..inner.len().min(LONGEST_TIME)];
        if let Some(length) = memchr::memchr(b']', near) {
            let (time, after) = (&inner[..length], &inner[length + 1..]);
            let parsed = match format {
                TimeFormat::Known => parse_common(time).or_else(|| format.parse(time)),
                TimeFormat::Strptime(_) => format.parse(time),
            };
            match parsed {
                Some(parsed) => return Ok((parsed, after)),
                None => problem = "the time in brackets is not one that can be read (see --time-format)",
            }
        }
        rest = inner;
    }
    Err(problem)
}

struct Request<'l> {
    request: &'l [u8],
    status: &'l [u8],
    bytes: &'l [u8],
    rest: &'l [u8],
}

/// The quoted request and what follows it. The request ends at the first quote that is not escaped and that a status and a
/// size follow: some servers write quotes in requests as they are.
fn find_request(text: &[u8]) -> Option<Request<'_>> {
    let text = text.trim_ascii_start().strip_prefix(b"\"")?;
    memchr::memchr_iter(b'"', text).find_map(|end| {
        let backslashes = text[..end].iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 1 {
            return None;
        }
        let after = text[end + 1..].strip_prefix(b" ")?;
        let (status, after) = split_word(after);
        let (bytes, after) = split_word(after.strip_prefix(b" ")?);
        let is_number = |word: &[u8]| word == b"-" || (!word.is_empty() && word.iter().all(u8::is_ascii_digit));
        (is_number(status) && is_number(bytes)).then_some(Request { request: &text[..end], status, bytes, rest: after })
    })
}

fn has_referrer_and_agent(rest: &[u8]) -> bool {
    rest.starts_with(b" \"") && memchr::memchr_iter(b'"', rest).count() >= 4
}

fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    memchr::memchr(byte, text).map(|at| (&text[..at], &text[at + 1..]))
}

fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(memchr::memchr(b' ', text).unwrap_or(text.len()))
}

const NO_TIME: Unreadable = "not a common log line: no time in brackets, as in [17/May/2015:10:05:03 +0000]";
const NO_REQUEST: Unreadable =
    "not a common log line: no request in quotes with a status and a size, as in \"GET / HTTP/1.1\" 200 512";

/// Bounds the search for a closing bracket, so that a line of opening ones takes no longer than another.
const LONGEST_TIME: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str, by: By) -> Result<(String, String, u64), Unreadable> {
        let selection = Selection { by, cost: Cost::Bytes, time: TimeFormat::Known };
        read(line.as_bytes(), &selection, false)
            .map(|record| (record.time.to_string(), String::from_utf8_lossy(&record.key).into_owned(), record.cost))
    }

    #[test]
    fn lines_of_real_servers_are_read() {
        let time = "2015-05-17T10:05:03Z".to_owned();
        for (line, by, key, cost) in [
            (
                r#"1.2.3.4 - - [17/May/2015:10:05:03 +0000] "GET /a?b HTTP/1.1" 200 203023 "-" "-""#,
                By::Ip,
                "1.2.3.4",
                203_023,
            ),
            (r#"::1 - john doe [17/May/2015:12:05:03 +0200] "GET /a?b HTTP/1.1" 304 -"#, By::Path, "/a", 0),
            (r#"h - [x] [17/May/2015:10:05:03 +0000] "PUT /\"q\" HTTP/1.1" 201 5 0.25"#, By::Path, r#"/\"q\""#, 5),
            (r#"h - - [17/May/2015:10:05:03 +0000] "GET /" onx="1 HTTP/1.1" 400 5"#, By::Path, r#"/""#, 5),
            (r#"h - - [17/May/2015:10:05:03 +0000] "\x16\x03\x01" 400 5"#, By::Method, "-", 5),
            (r#"h - - [17/May/2015:10:05:03 +0000] "" 408 0"#, By::Status, "408", 0),
            (r#"h - - [17/May/2015:10:05:03 +0000] "-" - -"#, By::All, "all", 0),
            (r#"h - - [2015-05-17T10:05:03Z] "GET / HTTP/2.0" 200 1"#, By::Method, "GET", 1),
        ] {
            assert_eq!(fields(line, by), Ok((time.clone(), key.to_owned(), cost)), "{line}");
        }
    }

    #[test]
    fn other_lines_are_not() {
        for line in [
            "word",
            "h - - 17/May/2015:10:05:03 +0000 \"GET / HTTP/1.1\" 200 1",
            "h - - [17/Mai/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 1",
            "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1 200 1",
            "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200",
            "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" OK 1",
            "h - - [17/May/2015:10:05:03 +0000] \"GET / HTTP/1.1\" 200 -1",
        ] {
            assert!(fields(line, By::Ip).is_err(), "{line}");
        }
    }

    #[test]
    fn combined_wants_what_common_leaves_out() {
        let selection = Selection { by: By::Ip, cost: Cost::One, time: TimeFormat::Known };
        let common = br#"h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1"#;
        let combined = br#"h - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 1 "-" "Agent \"x\"""#;
        assert!(read(common, &selection, false).is_ok() && read(combined, &selection, false).is_ok());
        assert!(read(common, &selection, true).is_err() && read(combined, &selection, true).is_ok());
    }
}
