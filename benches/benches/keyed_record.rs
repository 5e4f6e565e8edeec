//! Measures decisions for one of many keys in turns, and writes the page of the record.

use std::process::Command;

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
    let mut page = record::keyed_page(&results);
    if is_measuring() && part.is_none() {
        page.push_str(&with_huge_pages()?);
    }
    if is_measuring() {
        println!("{page}");
        if part.is_none() {
            println!("wrote {}", record::write("keyed.md", &page)?.display());
        }
    }
    Ok(())
}

/// The tables of a million keys from a process of its own, whose memory the C library asks for in huge pages.
fn with_huge_pages() -> std::io::Result<String> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.args(["--bench", "A million keys"]).env("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1").output()?;
    let page = String::from_utf8_lossy(&output.stdout);
    let tables = page.split_once("\n## ").map_or("", |(_, tables)| tables);
    let head = "\n# With huge pages\n\nThe same on glibc with `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`, where the system allows huge pages: what \
                is left of a million keys once finding out where a page lies costs next to nothing.\n\n## ";
    Ok(format!("{head}{tables}"))
}
