//! What does a denial cost beside an admission by the same limiter, and what by the rivals? And an action that is off?

use core::fmt::Write as _;

use sluicegate_benches::interleaved::Effort;
use sluicegate_benches::{denials, is_measuring, off, record};

fn main() -> std::io::Result<()> {
    let effort = if is_measuring() { Effort { rounds: 501, calls: 10_000 } } else { Effort::TRIAL };
    let mut page = format!(
        "# Denials, and actions that are off\n\nOne thread, no contention. In each of {} rounds all make {} calls in turn; medians, in nanoseconds with the loop \
         around them. Every answer is checked.\n\n{}\n## A denial beside an admission\n\nOn its default clock, ours on `TscClock`; asked only whether the \
         request may pass. Ours must not take longer to deny than to admit.\n\n\
         | | admitted, ns | denied, ns | ratio | target |\n|---|--:|--:|--:|--:|\n",
        effort.rounds,
        effort.calls,
        record::conditions("denials"),
    );
    for mut heat in denials::heats() {
        let timings = heat.run(effort);
        let [admitted, denied] = &timings[..] else { continue };
        let target = heat.targets.first().map_or(String::new(), |(_, most)| record::verdict(denied.ratio, *most));
        let _ = writeln!(
            page,
            "| {} | {:.2} | {:.2} | {:.2} | {target} |",
            heat.title, admitted.nanos, denied.nanos, denied.ratio
        );
    }
    page.push_str("\n## An action that is off\n\n| | ns | beyond nothing | target |\n|---|--:|--:|--:|\n");
    let timings = off::measure(effort);
    for timing in &timings {
        let beyond = timing.nanos - timings[0].nanos;
        let target = if timing.name == timings[0].name { String::new() } else { record::verdict(beyond, off::TARGET) };
        let _ = writeln!(page, "| {} | {:.2} | {beyond:.2} | {target} |", timing.name, timing.nanos);
    }
    if is_measuring() {
        println!("{page}\nwrote {}", record::write("denials.md", &page)?.display());
    }
    Ok(())
}
