//! What cannot be read, and what cannot be written.

use core::ascii;
use core::fmt;

/// Why what a header says is not known. It is the mistake of whoever sent it.
///
/// It quotes no more than the first 64 characters of a value, so it can be logged whatever was sent.
///
/// ```
/// use std::time::SystemTime;
/// use sluicegate_http::{HeaderError, try_quota_left};
///
/// let mut headers = http::HeaderMap::new();
/// headers.insert("retry-after", format!("x{}", "\t".repeat(70)).parse()?);
/// match try_quota_left(&headers, SystemTime::UNIX_EPOCH) {
///     Err(HeaderError::Form { header, value, .. }) => {
///         assert_eq!(header, "Retry-After");
///         assert_eq!(value, format!("x{}...", r"\t".repeat(31)));
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HeaderError {
    /// It has no form that is accepted.
    Form {
        /// Its name.
        header: &'static str,
        /// Its value, or that of the line that is wrong. Bytes beyond printable ASCII are escaped; of more than 64 characters, escapes
        /// counted as they are written, the first are here, followed by `...`. No escape is cut in two.
        value: String,
        /// What is accepted.
        accepted: &'static str,
    },
    /// It may be there once, and has several values.
    Repeated {
        /// Its name.
        header: &'static str,
        /// How many values it has.
        values: usize,
    },
}

impl HeaderError {
    pub(crate) fn form(header: &'static str, value: &[u8], accepted: &'static str) -> Self {
        Self::Form { header, value: excerpt(value.iter().map(|byte| ascii::escape_default(*byte))), accepted }
    }
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { header, value, accepted } => write!(f, "{header} is `{value}`: write {accepted}"),
            Self::Repeated { header, values } => write!(f, "{header} has {values} values: write one"),
        }
    }
}

impl core::error::Error for HeaderError {}

/// Why a limiter's name, or its quota unit, cannot be written. It is a mistake in the configuration.
///
/// ```
/// use sluicegate_http::{Limit, LimitHeaders, NameError};
///
/// assert_eq!(LimitHeaders::new("", Limit::Unlimited).unwrap_err(), NameError::Empty);
/// let error = LimitHeaders::new("caf\u{e9}", Limit::Unlimited).unwrap_err();
/// assert_eq!(error.to_string(), r#"the name "caf\u{e9}" cannot be written: give printable ASCII, from space to `~`"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameError {
    /// There is none.
    Empty,
    /// It has other characters than printable ASCII, which strings of structured fields do not have (RFC 9651, section 3.3.3).
    Unprintable {
        /// The name, escaped as in a Rust string; of more than 64 characters the first, followed by `...`.
        name: String,
    },
}

impl NameError {
    pub(crate) fn unprintable(name: &str) -> Self {
        Self::Unprintable { name: excerpt(name.chars().map(char::escape_default)) }
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a limiter's name or unit is empty: give one character or more"),
            Self::Unprintable { name } => {
                write!(f, "the name \"{name}\" cannot be written: give printable ASCII, from space to `~`")
            }
        }
    }
}

impl core::error::Error for NameError {}

/// The first of `parts` that have room, each whole, and whether there are more. Looks at no more than it takes.
fn excerpt(parts: impl Iterator<Item = impl fmt::Display>) -> String {
    let mut excerpt = String::new();
    for part in parts {
        let length = excerpt.len();
        excerpt.push_str(&part.to_string());
        // Every part is ASCII, so bytes are characters.
        if excerpt.len() > EXCERPT {
            excerpt.truncate(length);
            excerpt.push_str("...");
            break;
        }
    }
    excerpt
}

/// Characters: enough for every value that is meant seriously, and little enough for a line of a log.
const EXCERPT: usize = 64;
