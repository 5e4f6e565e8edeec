//! The report: what the pages of the record say, together, with pictures.

pub mod charts;
pub mod tables;

use core::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use tables::Table;

/// A page of the record, and what makes it.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The benchmark that writes it.
    pub bench: &'static str,
    /// The package that has the benchmark.
    pub package: &'static str,
    /// The file in the record.
    pub file: &'static str,
    /// What of it the report shows.
    pub shown: Shown,
}

/// What the report shows of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A picture for each table with a column `ns`.
    Bars,
    /// A picture for each table whose columns are numbers of threads.
    Lines,
    /// All tables as they are.
    Whole,
    /// Nothing but a link.
    Link,
}

/// All pages, in the order of the report. The benchmarks run in this order too.
pub const PAGES: [Page; 15] = [
    ours("accuracy", "accuracy.md", Shown::Whole),
    Page { package: "sluicegate-paused-benches", ..ours("paused_accuracy", "accuracy-tokio.md", Shown::Whole) },
    ours("fairness", "fairness.md", Shown::Whole),
    ours("scarce", "scarce.md", Shown::Whole),
    ours("record", "single-step.md", Shown::Bars),
    ours("hot", "hot.md", Shown::Lines),
    ours("denials", "denials.md", Shown::Whole),
    ours("pipeline", "pipeline.md", Shown::Whole),
    ours("keyed_record", "keyed.md", Shown::Bars),
    ours("keyed_sizes", "keyed-sizes.md", Shown::Bars),
    ours("waiting_record", "waiting.md", Shown::Bars),
    ours("waiters", "waiters.md", Shown::Whole),
    ours("memory", "memory.md", Shown::Whole),
    ours("keyed_memory", "keyed-memory.md", Shown::Whole),
    // Only compares; the counts on record are made by hand, when they are meant to change.
    Page { package: "sluicegate-counts", ..ours("counts", "counts.txt", Shown::Link) },
];

const fn ours(bench: &'static str, file: &'static str, shown: Shown) -> Page {
    Page { bench, package: "sluicegate-benches", file, shown }
}

/// Makes the report of the pages in `record`, and writes it and its pictures there. Pages that are not there are left out, and named.
///
/// # Errors
/// What the file system says.
pub fn write(record: &Path, conditions: &str) -> io::Result<()> {
    let mut targets = String::new();
    let mut body = String::new();
    for page in &PAGES {
        let Ok(text) = fs::read_to_string(record.join(page.file)) else {
            let _ = writeln!(body, "\n## {}\n\nWas not measured.", page.file);
            continue;
        };
        let title = match page.shown {
            Shown::Link => "Instructions of every hot path",
            _ => text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(page.file),
        };
        let _ = writeln!(body, "\n## {title}\n\nAll of it, and how it was measured: [{}]({}).", page.file, page.file);
        for table in tables::of(&text) {
            collect_targets(&mut targets, page, &table);
            show(record, &mut body, page, &table)?;
        }
    }
    let conditions = conditions.replacen("Measured on", "Put together on", 1);
    let report = format!(
        "# Report\n\nMade by one command, from the pages beside it, each of which says when and how it was measured. Every figure is of this machine; ratios are of one \
         run.\n\n{conditions}\n## Targets\n\nShares of a rival's time, or of an admission's, unless a unit is there. Where they come from, and what bounds those that are \
         missed, is in [the benchmarks' text](../README.md#targets).\n\n| | of | measured | target |\n|---|---|--:|--:|\n{targets}{body}"
    );
    fs::write(record.join("REPORT.md"), report)
}

/// The rows of a table that have a target.
fn collect_targets(targets: &mut String, page: &Page, table: &Table) {
    let Some(target) = table.column("target") else { return };
    let nanos = table.column("beyond nothing").or(table.column("over the call"));
    let Some(measured) = table.column("ratio").or(nanos) else { return };
    let unit = if nanos.is_some() { " ns" } else { "" };
    for row in table.rows.iter().filter(|row| !row[target].is_empty()) {
        let _ = writeln!(
            targets,
            "| {} | [{}]({}) | {}{unit} | {} |",
            row[0], table.title, page.file, row[measured], row[target]
        );
    }
}

fn show(record: &Path, body: &mut String, page: &Page, table: &Table) -> io::Result<()> {
    let picture = match page.shown {
        Shown::Bars => charts::bars(table, "ns"),
        Shown::Lines => charts::lines(table),
        Shown::Whole => {
            let _ = writeln!(body, "\n### {}\n\n{}", table.title, table.text);
            None
        }
        Shown::Link => None,
    };
    if let Some(picture) = picture {
        let name = format!("{}-{}.svg", page.bench.replace('_', "-"), file_name(&table.title));
        fs::write(record.join(&name), picture)?;
        let _ = writeln!(body, "\n![{}]({name})", table.title);
    }
    Ok(())
}

/// A title as part of the name of a file.
fn file_name(title: &str) -> String {
    let words = title.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_what_the_pages_say() {
        let record = std::env::temp_dir().join(format!("sluicegate-report-{}", std::process::id()));
        fs::create_dir_all(&record).expect("a directory for temporary files");
        let page = "# A single decision\n\nText.\n\n## Admitted, all\n\n| | ns | middle half | ratio | target |\n|---|--:|--:|--:|--:|\n\
                    | governor | 20.00 | 19.00 to 21.00 | 1.00 |  |\n| ours | 5.00 | 4.00 to 6.00 | 0.25 | 0.4: met |\n";
        fs::write(record.join("single-step.md"), page).expect("a page");
        let hot =
            "# Hot\n\n## Admitted\n\n| threads | 1 | 2 |\n|---|--:|--:|\n| governor | 80.0 (1.00x) | 40.0 (1.00x) |\n";
        fs::write(record.join("hot.md"), hot).expect("a page");
        write(&record, "- Measured on a day\n").expect("a report");
        let read = |name: &str| fs::read_to_string(record.join(name)).expect("it was written");
        let report = read("REPORT.md");
        assert!(report.contains("- Put together on a day\n"), "the pages say when they were measured: {report}");
        assert!(report.contains("| ours | [Admitted, all](single-step.md) | 0.25 | 0.4: met |"), "{report}");
        assert!(report.contains("![Admitted, all](record-admitted-all.svg)"), "{report}");
        assert!(report.contains("## accuracy.md\n\nWas not measured."), "{report}");
        assert!(read("record-admitted-all.svg").contains("governor"));
        assert!(read("hot-admitted.svg").contains("<svg"));
        let _ = fs::remove_dir_all(&record);
    }
}
