//! Measures single decisions in turns, and writes the page of the record.

use sluicegate_benches::interleaved::Effort;
use sluicegate_benches::{is_measuring, record, single_step};

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

    // A trial shows that it runs; its figures mean nothing.
    if is_measuring() {
        println!("{single_step_page}");
        println!("wrote {}", record::write("single-step.md", &single_step_page)?.display());
    }
    Ok(())
}
