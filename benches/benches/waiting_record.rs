//! Measures what taking by `acquire` costs in turns, and writes the page of the record.

use sluicegate_benches::interleaved::Effort;
use sluicegate_benches::{is_measuring, record, waiting};

fn main() -> std::io::Result<()> {
    let mut results = Vec::new();
    for (effort, make) in waiting::heats() {
        let mut heat = make();
        let timings = heat.run(if is_measuring() { effort } else { Effort::TRIAL });
        heat.contestants.clear();
        results.push((heat, timings));
    }
    let page = record::waiting_page(&results);
    if is_measuring() {
        println!("{page}");
        println!("wrote {}", record::write("waiting.md", &page)?.display());
    }
    Ok(())
}
