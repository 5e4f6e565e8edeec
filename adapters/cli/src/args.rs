//! What a person types. `options` turns it into what a run needs.

#![allow(rustdoc::bare_urls, rustdoc::invalid_html_tags, reason = "what documents an option is its --help text")]

use std::fmt::Write;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand, ValueEnum};

use crate::simulate::SimulateArgs;

/// Exact rate limiting, asked from the command line.
#[derive(Debug, Parser)]
#[command(name = "sluicegate", version, about, max_term_width = 110)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay access logs against a limit: what would it have admitted, and whom would it have refused?
    Replay(Box<ReplayArgs>),
    /// Simulate a flow in front of a service: what would it have admitted, and how would it have recovered?
    Simulate(Box<SimulateArgs>),
}

/// Replay access logs against a limit: what would it have admitted, and whom would it have refused?
///
/// The log is the clock: every request is decided at the time that its line says, by the same code that a server with
/// this limit runs. A report goes to standard output; unreadable lines are counted, and the first few are named on
/// standard error.
#[derive(Debug, Parser)]
#[command(after_help = SHORT_EXAMPLES, after_long_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct ReplayArgs {
    /// Logs to read, in this order; `-` is standard input
    ///
    /// Files that begin as gzip files do are unpacked, whatever their names.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<std::path::PathBuf>,

    /// The limit of each key: TOKENS/PERIOD [burst N], off or deny
    ///
    /// As in 300/1m, 7/3s or 1/30d; units are ns us ms s m h d. A token bucket may have a burst of its own, as in
    /// '7/3s burst 20'; otherwise its burst is TOKENS. off admits and deny refuses everything.
    #[arg(long, value_name = "LIMIT", default_value = "10/1m", help_heading = "What to ask")]
    pub(crate) limit: String,

    /// How much a token bucket holds, instead of the limit's own burst
    #[arg(long, value_name = "N", help_heading = "What to ask", allow_negative_numbers = true)]
    #[arg(value_parser = parse_burst)]
    pub(crate) burst: Option<u64>,

    /// token-bucket, fixed-window, sliding-log or sliding-counter
    ///
    /// A token bucket refills smoothly and admits a burst at once: between any two instants no more than the burst and
    /// what was refilled meanwhile.
    ///
    /// A fixed window admits TOKENS in each window of PERIOD. Windows are aligned to the Unix epoch: those of 1m begin with
    /// the minutes of UTC, those of 1d with its days.
    ///
    /// A sliding log admits TOKENS in any interval of PERIOD, wherever it begins. It remembers what it admitted in the latest.
    ///
    /// A sliding counter estimates that from two fixed windows: what the one before took counts less and less as this one
    /// passes.
    #[arg(long, value_name = "ALGORITHM", default_value = "token-bucket", help_heading = "What to ask")]
    #[arg(value_parser = Algorithm::parse)]
    pub(crate) algorithm: Algorithm,

    /// What has a limit of its own: ip, path, method, status, or all together [default: ip]
    ///
    /// Paths are taken without their query strings. With --pattern the key is what its group `key` holds, and --by only
    /// names it in the report; except that all still puts all requests together.
    #[arg(long, value_enum, value_name = "KEY", hide_possible_values = true, help_heading = "What to ask")]
    pub(crate) by: Option<By>,

    /// What a request takes from its limit: 1, or its response size in bytes [default: 1]
    ///
    /// With bytes the limit counts bytes, as in --limit 5000000/1m. A size of `-` is 0. A request larger than the limit
    /// holds is always refused. With --pattern its group `cost` is taken where there is one, unless this says 1.
    #[arg(long, value_enum, value_name = "COST", hide_possible_values = true, help_heading = "What to ask")]
    pub(crate) cost: Option<Cost>,

    /// auto, common, combined, json-lines, or regex with --pattern [default: auto]
    ///
    /// auto takes each file for what its first readable line is: json-lines or common.
    ///
    /// common is `ADDRESS IDENT USER [TIME] "METHOD PATH PROTOCOL" STATUS BYTES`, and anything may follow.
    ///
    /// combined is the same, and "REFERRER" "AGENT" must follow.
    ///
    /// json-lines is one object a line, from which the first of these fields is taken that it has:
    /// {n}  time    time timestamp ts @timestamp time_iso8601 time_local msec datetime date
    /// {n}  ip      ip remote_addr client_ip remote_ip clientip client remote_host
    /// {n}  path    path uri request_uri url, or the path in request
    /// {n}  method  method request_method http_method verb, or the method in request
    /// {n}  status  status status_code response_code code
    /// {n}  bytes   bytes body_bytes_sent bytes_sent response_size size content_length
    #[arg(long, value_enum, value_name = "FORMAT", hide_possible_values = true, help_heading = "How to read")]
    pub(crate) format: Option<FormatName>,

    /// A regular expression with groups named time and key, and perhaps cost, for any log
    ///
    /// As in '^(?<time>\S+) user=(?<key>\w+)'. It implies --format regex. The syntax is that of https://docs.rs/regex.
    #[arg(long, value_name = "RE", help_heading = "How to read", allow_hyphen_values = true)]
    pub(crate) pattern: Option<String>,

    /// A strptime format for times, as in "%Y-%m-%d %H:%M:%S%.f %z"
    ///
    /// Without it a time may be RFC 3339 (2015-05-17T10:05:03Z), the common log's (17/May/2015:10:05:03 +0000), or a Unix
    /// time: in seconds, also with a fraction, or in milliseconds, microseconds or nanoseconds, told apart by their size.
    /// A time without a zone is in UTC. A time before 1800 or after 2261 cannot be read.
    #[arg(long, value_name = "FORMAT", help_heading = "How to read", allow_hyphen_values = true)]
    pub(crate) time_format: Option<String>,

    /// Take lines as they come, not in the order of their times
    ///
    /// For logs larger than memory and for pipes: no line is kept, and memory grows only with the number of keys, and with
    /// what a sliding log remembers of each. Lines that are out of order are decided at their own, late times, as by a limiter
    /// whose clock did that. Without --stream the lines of all files are first put in the order of their times, 16 bytes
    /// each; those with equal times stay in the order they were read.
    #[arg(long, help_heading = "How to read")]
    pub(crate) stream: bool,

    /// Stop at the first line that cannot be read
    #[arg(long, help_heading = "How to read")]
    pub(crate) strict: bool,

    /// How many of the most refused keys to list
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "What to print", allow_negative_numbers = true)]
    #[arg(value_parser = parse_top)]
    pub(crate) top: usize,

    /// Print one JSON object instead of tables
    ///
    /// Its fields are requests, admitted, denied, keys, denied_keys, unparsed, out_of_order, from, to, limit, algorithm,
    /// by, and top_denied, a list of objects with key, requests, denied, first_denied_at. Times are RFC 3339 in UTC; from
    /// and to are null when no line was read.
    #[arg(long, help_heading = "What to print")]
    pub(crate) json: bool,

    /// Draw admitted and denied requests over time into this SVG file
    #[arg(long, value_name = "OUT.svg", help_heading = "What to print")]
    pub(crate) plot: Option<std::path::PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    TokenBucket,
    FixedWindow,
    SlidingLog,
    SlidingCounter,
}

impl Algorithm {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token-bucket",
            Self::FixedWindow => "fixed-window",
            Self::SlidingLog => "sliding-log",
            Self::SlidingCounter => "sliding-counter",
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        [Self::TokenBucket, Self::FixedWindow, Self::SlidingLog, Self::SlidingCounter]
            .into_iter()
            .find(|algorithm| algorithm.name() == text)
            .ok_or_else(|| "available: token-bucket, fixed-window, sliding-log, sliding-counter".to_owned())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Ip,
    Path,
    Method,
    Status,
    All,
}

impl By {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Path => "path",
            Self::Method => "method",
            Self::Status => "status",
            Self::All => "all",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cost {
    #[value(name = "1")]
    One,
    Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatName {
    Auto,
    Common,
    Combined,
    JsonLines,
    Regex,
}

fn parse_burst(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 1 to {}", u64::MAX))
}

fn parse_top(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number, 0 for none".to_owned())
}

/// Whether clap's answer is help or the version, and not a complaint.
pub(crate) fn is_for_reading(error: &clap::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// clap's complaint without its usage and its pointers to help, in one line.
pub(crate) fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let mut line = String::new();
    for part in text.lines().map(str::trim) {
        if part.starts_with("Usage:") || part.starts_with("For more information") {
            break;
        }
        // That an unknown option could be meant as a file's name helps nobody who mistyped it.
        if part.starts_with("tip: to pass '") {
            let command = if text.contains("Usage: sluicegate simulate") { "simulate" } else { "replay" };
            let _ = write!(line, "; `sluicegate {command} --help` lists the options");
        } else if !part.is_empty() {
            if !line.is_empty() {
                line.push_str(if part.starts_with("tip:") { "; " } else { " " });
            }
            line.push_str(part);
        }
    }
    crate::escape::escaped(&line).to_string()
}

const SHORT_EXAMPLES: &str = "\
Examples:
  sluicegate replay access.log --limit 300/1m
  zcat old/*.gz | sluicegate replay - --stream --limit '7/3s burst 20' --by path

--help says more.";

const EXAMPLES: &str = "\
Examples:
  Would 300 requests a minute for each address have hurt anyone?
      sluicegate replay access.log access.log.1.gz --limit 300/1m

  The same for each path, with room for short bursts, and a picture:
      sluicegate replay access.log --limit '7/3s burst 20' --by path --plot paths.svg

  All traffic together, at most 50 MB a minute:
      sluicegate replay access.log --limit 50000000/1m --cost bytes --by all

  A log of one's own, from a pipe, for a script:
      journalctl -u api -o cat | sluicegate replay - --stream --json \\
          --pattern '^(?<time>\\S+) user=(?<key>\\w+)' --limit 100/1h

Exit code: 0 when the logs were replayed, whatever was refused; 2 when an option or a file is wrong, or --strict met
an unreadable line. Empty lines are skipped; lines longer than 1 MiB count as unreadable.";
