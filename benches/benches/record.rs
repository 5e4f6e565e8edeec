//! Measures single decisions and accuracy, and writes both pages of the record.

use sluicegate_benches::interleaved::Effort;
use sluicegate_benches::{accuracy, is_measuring, record, single_step};

fn main() -> std::io::Result<()> {
    let effort = if is_measuring() { Effort::FULL } else { Effort::TRIAL };
    // A part of a title, for a closer look: measures the tables that match, prints them and writes nothing.
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));

    let results: Vec<_> = single_step::heats()
        .into_iter()
        .filter(|heat| part.as_ref().is_none_or(|part| heat.title.contains(part.as_str())))
        .map(|mut heat| {
            let timings = heat.run(effort);
            (heat, timings)
        })
        .collect();
    let single_step_page = record::single_step_page(&results, effort);
    if part.is_some() {
        println!("{single_step_page}");
        return Ok(());
    }

    let span = if is_measuring() { accuracy::SPAN } else { accuracy::SPAN / 1_000 };
    let outcomes = accuracy::RATES.map(|rate| accuracy::outcome(rate, span));
    let accuracy_page = record::accuracy_page(&outcomes);
    // A trial shows that it runs; its figures mean nothing.
    if is_measuring() {
        println!("{accuracy_page}\n{single_step_page}");
        for (name, page) in [("accuracy.md", accuracy_page), ("single-step.md", single_step_page)] {
            println!("wrote {}", record::write(name, &page)?.display());
        }
    }
    for outcome in outcomes {
        assert_eq!(outcome.ours, outcome.exact, "ours is not exact at {}/s", outcome.rate);
    }
    Ok(())
}
