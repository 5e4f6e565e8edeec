//! Runs everything that the record has, and writes the report with its pictures.
//!
//! With names of benchmarks, `-- accuracy hot`, it runs only those, and makes the report of all pages that are there; with `-- --pages` it
//! runs none.

use std::env;
use std::process::Command;

use sluicegate_benches::report::{self, PAGES};
use sluicegate_benches::{is_measuring, record};

fn main() -> std::io::Result<()> {
    if !is_measuring() {
        return Ok(());
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let is_of_pages = env::args().any(|argument| argument == "--pages");
    let mut failed = Vec::new();
    let named: Vec<_> = env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let is_run = |bench: &str| !is_of_pages && (named.is_empty() || named.iter().any(|name| name == bench));
    for page in PAGES.iter().filter(|page| is_run(page.bench)) {
        println!("== {}", page.bench);
        let status = Command::new(&cargo)
            .args(["bench", "--quiet", "-p", page.package, "--bench", page.bench])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()?;
        if !status.success() {
            failed.push(page.bench);
        }
    }
    report::write(&record::directory(), &record::conditions("report"))?;
    println!("wrote {}", record::directory().join("REPORT.md").display());
    assert!(failed.is_empty(), "these failed, and what they last wrote is in the report: {failed:?}");
    Ok(())
}
