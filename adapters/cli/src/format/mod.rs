//! What is in a line: a time, a key and a cost.

mod common;
mod json_lines;
mod pattern;

use std::borrow::Cow;

pub(crate) use pattern::Pattern;

use crate::args::{By, Cost};
use crate::time::{LogTime, TimeFormat};

/// What a line says about its request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) time: LogTime,
    pub(crate) key: Cow<'a, [u8]>,
    pub(crate) cost: u64,
}

/// Why a line cannot be read.
pub(crate) type Unreadable = &'static str;

/// What to take from a line.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) by: By,
    pub(crate) cost: Cost,
    pub(crate) time: TimeFormat,
}

/// How to read lines.
#[derive(Debug)]
pub(crate) enum Format {
    Auto(Selection),
    Common(Selection),
    Combined(Selection),
    JsonLines(Selection),
    Regex(Box<Pattern>),
}

/// Reads the lines of one file.
#[derive(Debug)]
pub(crate) enum Reader<'a> {
    /// Nothing was readable yet.
    Undecided(&'a Selection),
    Common {
        selection: &'a Selection,
        is_combined: bool,
    },
    JsonLines(&'a Selection),
    Regex(pattern::Matcher<'a>),
}

impl<'a> Reader<'a> {
    pub(crate) fn new(format: &'a Format) -> Self {
        match format {
            Format::Auto(selection) => Self::Undecided(selection),
            Format::Common(selection) => Self::Common { selection, is_combined: false },
            Format::Combined(selection) => Self::Common { selection, is_combined: true },
            Format::JsonLines(selection) => Self::JsonLines(selection),
            Format::Regex(pattern) => Self::Regex(pattern.matcher()),
        }
    }

    /// Reads a line that is not empty.
    pub(crate) fn read<'l>(&mut self, line: &'l [u8]) -> Result<Record<'l>, Unreadable> {
        match self {
            Self::Undecided(selection) => {
                let selection = *selection;
                let mut decided = match line.trim_ascii_start() {
                    [b'{', ..] => Self::JsonLines(selection),
                    _ => Self::Common { selection, is_combined: false },
                };
                let record = decided.read(line)?;
                *self = decided;
                Ok(record)
            }
            Self::Common { selection, is_combined } => common::read(line, selection, *is_combined),
            Self::JsonLines(selection) => json_lines::read(line, selection),
            Self::Regex(matcher) => matcher.read(line),
        }
    }
}

/// A number of bytes as logs write it: `-`, and nothing at all, is 0. More than 64 bits hold is as much as they do.
fn parse_cost(text: &[u8]) -> Result<u64, Unreadable> {
    match text {
        b"-" | b"" => Ok(0),
        _ if text.iter().all(u8::is_ascii_digit) => {
            Ok(text.iter().fold(0, |value: u64, byte| value.saturating_mul(10).saturating_add(u64::from(byte - b'0'))))
        }
        _ => Err("the size is not a whole number"),
    }
}

/// A path without its query string.
fn without_query(path: &[u8]) -> &[u8] {
    path.split(|byte| *byte == b'?').next().unwrap_or(path)
}

/// The method and the path of `GET /path HTTP/1.1`; `-` where a request line has no such parts, as garbage has not.
fn request_part(request: &[u8], by: By) -> &[u8] {
    let mut words = request.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return b"-";
    };
    if by == By::Method { method } else { without_query(path) }
}

/// The key of `--by all`.
const ALL: &[u8] = b"all";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_saturate_instead_of_wrapping() {
        assert_eq!(parse_cost(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_cost(b"18446744073709551616"), Ok(u64::MAX));
        assert_eq!(parse_cost(b"99999999999999999999999999"), Ok(u64::MAX));
        assert_eq!((parse_cost(b"-"), parse_cost(b""), parse_cost(b"007")), (Ok(0), Ok(0), Ok(7)));
        assert!(parse_cost(b"-5").is_err() && parse_cost(b"1.5").is_err() && parse_cost(b"+1").is_err());
    }

    #[test]
    fn requests_are_taken_apart() {
        assert_eq!(request_part(b"GET /a?b=c HTTP/1.1", By::Path), b"/a");
        assert_eq!(request_part(b"GET /a?b=c HTTP/1.1", By::Method), b"GET");
        assert_eq!(request_part(b"GET /a", By::Path), b"/a");
        assert_eq!(request_part(b"\\x16\\x03", By::Path), b"-");
        assert_eq!(request_part(b"-", By::Method), b"-");
    }
}
