//! How many tokens are admitted where tokio's clock is read, and how many should be? Fails where ours is not exact.

use core::fmt::Write as _;

use sluicegate_benches::{accuracy, is_measuring, record};
use sluicegate_paused_benches::{CONTESTANTS, GRIDS, worst};

fn main() -> std::io::Result<()> {
    let size = if is_measuring() { 100 } else { 2 };
    let conditions =
        record::conditions("paused_accuracy").replace("-p sluicegate-benches", "-p sluicegate-paused-benches");
    let mut page = format!(
        "# Accuracy on tokio's clock\n\nIn paused time, asked without waiting and for one token at a time; judged as in [accuracy](accuracy.md), over the \
         patterns by a steady clock. leaky-bucket adds a token whenever one is due, and so does the task that refills the semaphore; the nearest \
         whole number of nanoseconds is all that either can be told. tower's `RateLimit` is given the burst in the time that it takes to come: a \
         window that begins with its first request.\n\n{conditions}\n| rate |",
    );
    for (name, _) in CONTESTANTS {
        let _ = write!(page, " {name} |");
    }
    page.push_str("\n|---|");
    CONTESTANTS.iter().for_each(|_| page.push_str("--:|"));
    page.push('\n');
    let mut failures = Vec::new();
    for grid in &GRIDS {
        let _ = write!(page, "| {} |", grid.text);
        for (who, contestant) in CONTESTANTS.iter().enumerate() {
            let score = worst(contestant, grid, size);
            let _ = write!(page, " {} |", accuracy::page::cell(Some(score)));
            if who == 0 && !score.is_exact() {
                failures.push((grid.text, score));
            }
        }
        page.push('\n');
    }
    assert!(failures.is_empty(), "ours is not exact: {failures:#?}");
    if is_measuring() {
        println!("{page}\nwrote {}", record::write("accuracy-tokio.md", &page)?.display());
    }
    Ok(())
}
