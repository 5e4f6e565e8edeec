//! The report for programs.

use serde::Serialize;

use crate::options::Options;
use crate::replay::Replayed;

/// One JSON object in one line.
pub(crate) fn render(options: &Options, replayed: &Replayed<'_>) -> String {
    let tally = &replayed.tally;
    let report = Report {
        requests: tally.requests,
        admitted: tally.requests - tally.denied,
        denied: tally.denied,
        keys: tally.keys.len(),
        denied_keys: tally.denied_keys(),
        unparsed: replayed.unparsed,
        out_of_order: replayed.out_of_order,
        from: tally.span.map(|(first, _)| first.to_string()),
        to: tally.span.map(|(_, last)| last.to_string()),
        limit: options.limit.to_string(),
        algorithm: options.algorithm.name(),
        by: options.by,
        top_denied: tally
            .most_refused(options.top)
            .into_iter()
            .map(|refused| TopDenied {
                key: refused.key,
                requests: refused.requests,
                denied: refused.denied,
                first_denied_at: refused.first_denied_at.to_string(),
            })
            .collect(),
    };
    // Strings and numbers always have a JSON text.
    let mut text = serde_json::to_string(&report).unwrap_or_default();
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Report {
    requests: u64,
    admitted: u64,
    denied: u64,
    keys: usize,
    denied_keys: usize,
    unparsed: u64,
    out_of_order: u64,
    from: Option<String>,
    to: Option<String>,
    limit: String,
    algorithm: &'static str,
    by: &'static str,
    top_denied: Vec<TopDenied>,
}

#[derive(Serialize)]
struct TopDenied {
    key: String,
    requests: u64,
    denied: u64,
    first_denied_at: String,
}
