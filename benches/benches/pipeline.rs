//! What does a call through a flow cost over the same call without one?

use core::fmt::Write as _;

use sluicegate_benches::interleaved::Effort;
use sluicegate_benches::pipeline::{self, PLAIN, TARGET, WHOLE};
use sluicegate_benches::{is_measuring, record};

fn main() -> std::io::Result<()> {
    let effort = if is_measuring() { Effort { rounds: 501, calls: 10_000 } } else { Effort::TRIAL };
    let mut page = format!(
        "# A call through a flow\n\nOne thread, no contention, on `TscClock`; the call does nothing and succeeds. In each of {} rounds all make {} calls in \
         turn; medians, in nanoseconds with the loop around them.\n\n{}\n| | ns | over the call | target |\n|---|--:|--:|--:|\n",
        effort.rounds,
        effort.calls,
        record::conditions("pipeline"),
    );
    let timings = pipeline::measure(effort);
    let plain = timings.iter().find(|timing| timing.name == PLAIN).map_or(0.0, |timing| timing.nanos);
    for timing in &timings {
        let over = timing.nanos - plain;
        let target = if timing.name == WHOLE { record::verdict(over, TARGET) } else { String::new() };
        let _ = writeln!(page, "| {} | {:.1} | {over:.1} | {target} |", timing.name, timing.nanos);
    }
    if is_measuring() {
        println!("{page}\nwrote {}", record::write("pipeline.md", &page)?.display());
    }
    Ok(())
}
