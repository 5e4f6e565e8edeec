//! What does a decision cost for one of a thousand to ten million keys, uniform and by Zipf's law? Beside governor's keyed limiter.

use sluicegate_benches::interleaved::Effort;
use sluicegate_benches::keyed_sizes::{TABLES, heat};
use sluicegate_benches::{is_measuring, record};

fn main() -> std::io::Result<()> {
    let effort =
        if is_measuring() { Effort { rounds: 301, calls: 4_096 } } else { Effort { calls: 512, ..Effort::TRIAL } };
    // A part of a title, for a closer look: measures the tables that match, prints them and writes nothing.
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let is_asked = |title: &str| part.as_ref().is_none_or(|part| title.contains(part.as_str()));
    let mut results = Vec::new();
    for (title, keys, likely) in TABLES.into_iter().filter(|(title, ..)| is_asked(title)) {
        let mut heat = heat(title, if is_measuring() { keys } else { keys / 1_000 + 1 }, likely);
        let timings = heat.run(effort);
        heat.contestants.clear();
        results.push((heat, timings));
    }
    let page = record::keyed_sizes_page(&results);
    if is_measuring() {
        println!("{page}");
        if part.is_none() {
            println!("wrote {}", record::write("keyed-sizes.md", &page)?.display());
        }
    }
    Ok(())
}
