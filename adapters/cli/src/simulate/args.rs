//! What a person types after `simulate`.

#![allow(rustdoc::bare_urls, rustdoc::invalid_html_tags, reason = "what documents an option is its --help text")]

use std::path::PathBuf;

use clap::Parser;

use super::examples::Example;

/// Simulate a flow in front of a service, in virtual time: what would it have admitted, and how would it have recovered?
///
/// A scenario says how requests arrive, how the service behaves as time goes on, and what stands in front of it: a quota, a circuit breaker, a
/// limit on calls in flight, and rules by which they adapt. Every decision is made by the code that a server runs. The same scenario has
/// the same result on every machine.
#[derive(Debug, Parser)]
#[command(after_help = SHORT_EXAMPLES, after_long_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct SimulateArgs {
    /// A scenario to run, in TOML; `-` is standard input
    #[arg(value_name = "SCENARIO.toml", required_unless_present = "example")]
    pub(crate) scenario: Option<PathBuf>,

    /// One that comes with the command, in place of a file: slow-downstream, provider-429 or day-quota
    ///
    /// slow-downstream: a service becomes slow for half a minute. {n}
    /// provider-429: a provider allows less than is asked of it, and answers 429. {n}
    /// day-quota: a quota of a day is spread over it.
    #[arg(long, value_name = "NAME", conflicts_with = "scenario", value_parser = Example::parse)]
    pub(crate) example: Option<Example>,

    /// Print the scenario's text and run nothing: to begin one's own with
    #[arg(long, conflicts_with_all = ["json", "plot"])]
    pub(crate) show: bool,

    /// Print one JSON object instead of tables
    ///
    /// Totals, the breaker, the share of the quota in force, and all counts for each of up to 240 parts of the time. Times are
    /// nanoseconds from the beginning, shares millionths; what there is none of is null.
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw what was offered, admitted and refused, latency, limits and the breaker over time into this SVG file
    #[arg(long, value_name = "OUT.svg")]
    pub(crate) plot: Option<PathBuf>,
}

const SHORT_EXAMPLES: &str = "\
Examples:
  sluicegate simulate --example slow-downstream --plot out.svg
  sluicegate simulate mine.toml --plot out.svg

--help says more.";

const EXAMPLES: &str = "\
Examples:
  What happens when a service becomes slow, and how it looks:
      sluicegate simulate --example slow-downstream --plot out.svg

  One's own, beginning with that:
      sluicegate simulate --example slow-downstream --show > mine.toml
      sluicegate simulate mine.toml --plot out.svg

  For a script:
      sluicegate simulate mine.toml --json

Exit code: 0 when the scenario was run; 2 when it or an option is wrong: then the last line on standard error says where,
as FILE:LINE:COLUMN, and what.";
