//! Measures decisions for one of many keys in turns, and writes the page of the record.

use sluicegate_benches::interleaved::Effort;
use sluicegate_benches::{is_measuring, keyed, record};

fn main() -> std::io::Result<()> {
    // A part of a title, for a closer look: measures the tables that match, prints them and writes nothing.
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let mut results = Vec::new();
    for (effort, make) in keyed::heats() {
        let mut heat = make();
        if part.as_ref().is_none_or(|part| heat.title.contains(part.as_str())) {
            let timings = heat.run(if is_measuring() { effort } else { Effort::TRIAL });
            heat.contestants.clear();
            results.push((heat, timings));
        }
    }
    let page = record::keyed_page(&results);
    if is_measuring() {
        println!("{page}");
        if part.is_none() {
            println!("wrote {}", record::write("keyed.md", &page)?.display());
        }
    }
    Ok(())
}
