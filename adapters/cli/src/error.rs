//! Why a run stops. Every message is one line that names what is wrong and what would be right.

use std::fmt;
use std::io;

use crate::escape::escaped;

/// Everything here exits with 2.
#[derive(Debug)]
pub(crate) enum Error {
    /// Options that do not go together, or a value that cannot be: the caller's to change.
    Usage(String),
    /// A file that cannot be opened or read, or that broke off.
    Read { name: String, error: io::Error },
    /// The plot's file, or standard output.
    Write { name: String, error: io::Error },
    /// `--strict` met a line that it cannot read.
    Unreadable { name: String, line: u64, reason: String },
    /// The log spans more time than this limit can be followed over; see `limiter`.
    Span { limit: String, key: String },
    /// More distinct keys than are counted.
    TooManyKeys,
    /// A scenario that cannot be run, and where in it that is said.
    Scenario { name: String, line: usize, column: usize, reason: String },
    /// A scenario that had to be given up while it ran.
    Simulation { name: String, reason: String },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::Read { name, error } => write!(f, "cannot read {}: {}", escaped(name), Plain(error)),
            Self::Write { name, error } => write!(f, "cannot write {}: {}", escaped(name), Plain(error)),
            Self::Unreadable { name, line, reason } => {
                write!(f, "{}:{line}: {reason} (--strict stops at the first such line)", escaped(name))
            }
            Self::Span { limit, key } => write!(
                f,
                "--limit {limit} takes more than 15 years to refill, and the log spans more time than it can be followed \
                 over exactly (key {}): replay fewer years at once, or a limit that refills sooner",
                escaped(key)
            ),
            Self::TooManyKeys => f.write_str("more than 4294967295 distinct keys: choose a coarser --by"),
            Self::Scenario { name, line, column, reason } => {
                write!(f, "{}:{line}:{column}: {}", escaped(name), escaped(reason))
            }
            Self::Simulation { name, reason } => write!(f, "{}: {reason}", escaped(name)),
        }
    }
}

impl std::error::Error for Error {}

/// An `io::Error` without its number, in one line.
struct Plain<'a>(&'a io::Error);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        write!(f, "{}", escaped(text))
    }
}
