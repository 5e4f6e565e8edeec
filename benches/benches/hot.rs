//! What does one hot limiter do for 1 to 64 threads that ask it at once? Beside the rivals, in turns.

use core::fmt::Write as _;

use sluicegate_benches::hot::{Asked, BY_CORE, BY_THREAD, HANDLE, KEYED, NO_STORE, THREADS, measure};
use sluicegate_benches::interleaved::{Effort, Timing};
use sluicegate_benches::{is_measuring, record};

/// What is aimed at, as times of a call.
fn met(asked: Asked, columns: &[Vec<Timing>]) -> String {
    let at = |threads: usize, name: &str| {
        let column = THREADS.iter().position(|each| *each == threads).map(|column| &columns[column]);
        column.and_then(|column| column.iter().find(|timing| timing.name == name)).expect("it was measured")
    };
    let mut rows = String::new();
    let mut row = |what: &str, ratio: f64, most: f64| {
        let _ = writeln!(rows, "| {what} | {ratio:.2} | {} |", record::verdict(ratio, most));
    };
    match asked {
        Asked::Plenty => {
            for (by, name) in [("core", BY_CORE), ("thread", BY_THREAD)] {
                let [one, two] = [1, 2].map(|threads| at(threads, name));
                row(
                    &format!("`ShardedWindow` by {by}, two threads, of one thread's"),
                    two.nanos / one.nanos,
                    1.0 / 1.9,
                );
                row(&format!("`ShardedWindow` by {by}, two threads, of governor's"), two.ratio, 0.25);
            }
        }
        Asked::Spent => {}
        Asked::Key | Asked::SpentKey => {
            let answer = if asked == Asked::Key { "admitted" } else { "denied" };
            let mut row_of = |what: &str, name: &str, most: f64| {
                row(&format!("{what}, 64 threads, {answer}, of governor's"), at(64, name).ratio, most);
            };
            row_of("`KeyedTokenBucket`, one key", KEYED, 1.0 / 2.5);
            row_of("`KeyHandle`", HANDLE, 1.0 / 6.0);
            row_of("no store, which bounds both", NO_STORE, 1.0 / 6.0);
        }
    }
    rows
}

const TABLES: [(&str, Asked); 4] = [
    ("Admitted", Asked::Plenty),
    ("Denied", Asked::Spent),
    ("One key of a store, admitted", Asked::Key),
    ("One key of a store, denied", Asked::SpentKey),
];

fn main() -> std::io::Result<()> {
    let effort = if is_measuring() { Effort { rounds: 31, calls: 1_000_000 } } else { Effort::TRIAL };
    let mut page = format!(
        "# One hot limiter\n\nSo many threads ask one limiter at once. In each of {} rounds every contestant gets {} calls in turn, shared by \
         the threads, in changing order; the time runs from the first thread's first call to the last one's last. Millions of calls a second, medians; in \
         brackets the median of the rounds' ratios of throughput to governor's. Every call's answer is checked. `ShardedWindow` has 4 shards, chosen by \
         the number of the core or of the thread. governor is its direct limiter's `check`, and its keyed limiter's `check_key` as shipped. `no store` is what bounds the decisions on one key: all take turns at one word.\n\n{}",
        effort.rounds,
        effort.calls,
        record::conditions("hot"),
    );
    let mut targets = String::new();
    for (title, asked) in TABLES {
        let columns = THREADS.map(|threads| measure(asked, threads, effort));
        let _ = write!(page, "\n## {title}\n\n| threads |");
        THREADS.iter().for_each(|threads| _ = write!(page, " {threads} |"));
        page.push_str("\n|---|");
        THREADS.iter().for_each(|_| page.push_str("--:|"));
        page.push('\n');
        if is_measuring() {
            targets.push_str(&met(asked, &columns));
        }
        for row in 0..columns[0].len() {
            let _ = write!(page, "| {} |", columns[0][row].name);
            for timing in columns.iter().map(|column| &column[row]) {
                let _ = write!(page, " {:.1} ({:.2}x) |", 1e3 / timing.nanos, 1.0 / timing.ratio);
            }
            page.push('\n');
        }
    }
    let _ = write!(page, "\n## Times as a share\n\n| | ratio | target |\n|---|--:|--:|\n{targets}");
    if is_measuring() {
        println!("{page}\nwrote {}", record::write("hot.md", &page)?.display());
    }
    Ok(())
}
