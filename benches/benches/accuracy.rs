//! How many tokens are admitted, and how many should be? Prints the record's table and writes nothing.

use sluicegate_benches::accuracy::{RATES, SPAN, outcome};
use sluicegate_benches::{is_measuring, record};

fn main() {
    let span = if is_measuring() { SPAN } else { SPAN / 1_000 };
    let outcomes = RATES.map(|rate| outcome(rate, span));
    if is_measuring() {
        print!("{}", record::accuracy_page(&outcomes));
    }
    for outcome in outcomes {
        assert_eq!(outcome.ours, outcome.exact, "ours is not exact at {}/s", outcome.rate);
    }
}
