//! How many tokens are admitted, and how many should be? Fails where ours is not exact.

use sluicegate_benches::accuracy::page::Accuracy;
use sluicegate_benches::{is_measuring, record};

fn main() -> std::io::Result<()> {
    let accuracy = Accuracy::measure(if is_measuring() { 1_000 } else { 8 });
    let page = accuracy.page();
    assert!(accuracy.failures().is_empty(), "ours is not exact: {:#?}", accuracy.failures());
    if is_measuring() {
        println!("{page}\nwrote {}", record::write("accuracy.md", &page)?.display());
    }
    Ok(())
}
