//! Writing results down, with what they were measured on.

use core::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs, io};

use crate::interleaved::{Effort, Timing};
use crate::single_step::Heat;

/// Writes a page of the record, and returns where.
///
/// # Errors
/// What the file system says.
pub fn write(name: &str, page: &str) -> io::Result<PathBuf> {
    let path = directory().join(name);
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(&path, page)?;
    Ok(path)
}

/// Where the pages are.
pub fn directory() -> PathBuf {
    here().join("record")
}

/// The page about single decisions.
pub fn single_step_page(results: &[(Heat, Vec<Timing>)], effort: Effort) -> String {
    let mut page = format!(
        "# A single decision\n\nOne thread, no contention. In each of {} rounds every contestant of a table makes {} calls in \
         turn, in changing order and in one process. A figure is the median over the rounds, in nanoseconds, with the loop \
         around it; the ratio is the median of the rounds' ratios to the baseline, so that what slows the machine down slows \
         both.\n\n{}",
        effort.rounds,
        effort.calls,
        conditions("record")
    );
    write_tables(&mut page, results);
    page
}

/// The page about decisions for one of many keys.
pub fn keyed_page(results: &[(Heat, Vec<Timing>)]) -> String {
    let mut page = format!(
        "# Decisions for one of many keys\n\n`u64` keys, one thread, no contention, no request denied and no key dropped. Contestants of a \
         table take turns in one process, in changing order; a figure is the median over the rounds, in nanoseconds, with the loop \
         and the making of a key around it; the ratio is the median of the rounds' ratios to the first row. All keep their keys in \
         hash tables behind locks that many readers share, governor in DashMap.\n\n{}",
        conditions("keyed_record")
    );
    write_tables(&mut page, results);
    page
}

/// The page about few and many keys.
pub fn keyed_sizes_page(results: &[(Heat, Vec<Timing>)]) -> String {
    let mut page = format!(
        "# Few and many keys\n\n`u64` keys, one thread, no contention, no request denied and no key dropped. Contestants of a table take turns in one \
         process, in changing order; a figure is the median over the rounds, in nanoseconds a key, with the loop and the making of a key around it; the \
         ratio is the median of the rounds' ratios to governor.\n\n{}",
        conditions("keyed_sizes")
    );
    write_tables(&mut page, results);
    page
}

/// The page about taking by `acquire`.
pub fn waiting_page(results: &[(Heat, Vec<Timing>)]) -> String {
    let mut page = format!(
        "# Taking what is there by `acquire`\n\nOn tokio's executor of one thread. Contestants of a table take turns in one process, in \
         changing order; a figure is the median over the rounds, in nanoseconds a token, with the loop around it; the ratio is the \
         median of the rounds' ratios to the baseline.\n\n{}",
        conditions("waiting_record")
    );
    write_tables(&mut page, results);
    page
}

/// The head of the page about the memory of keys.
pub fn memory_head() -> String {
    format!("# The memory of keys\n\n{}", conditions("keyed_memory"))
}

/// The head of the page about many waiters.
pub fn waiters_head() -> String {
    format!("# A hundred thousand waiters\n\n{}", conditions("waiters"))
}

/// The head of the page about waiting for what is scarce.
pub fn scarce_head() -> String {
    format!("# Waiting for what is scarce\n\n{}", conditions("scarce"))
}

fn write_tables(page: &mut String, results: &[(Heat, Vec<Timing>)]) {
    for (heat, timings) in results {
        let _ = write!(
            page,
            "\n## {}\n\n{}\n\n| | ns | middle half | ratio | target |\n|---|--:|--:|--:|--:|\n",
            heat.title, heat.note
        );
        for timing in timings {
            let target = heat
                .targets
                .iter()
                .find(|(name, _)| *name == timing.name)
                .map_or(String::new(), |(_, most)| verdict(timing.ratio, *most));
            let (low, high) = timing.middle_half;
            let _ = writeln!(
                page,
                "| {} | {:.2} | {low:.2} to {high:.2} | {:.2} | {target} |",
                timing.name, timing.nanos, timing.ratio
            );
        }
    }
}

/// A target, and whether what was measured meets it.
pub fn verdict(measured: f64, most: f64) -> String {
    // Two places are enough to compare by.
    let rounded = (most * 100.0).round() / 100.0;
    format!("{rounded}: {}", if measured <= most { "met" } else { "**missed**" })
}

/// What this run is of, as lines of a list: machine, versions and the command, which runs one of the benchmarks.
pub fn conditions(bench: &str) -> String {
    let lock = fs::read_to_string(here().join("../Cargo.lock")).unwrap_or_default();
    let version = |package| version_in(&lock, package).unwrap_or("unknown");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    format!(
        "- Measured on {}, commit {}, with `cargo bench -p sluicegate-benches --bench {bench}` and the workspace's `bench` \
         profile\n- {}; {} {}, {} core(s)\n- {}\n- {}\n",
        date(),
        commit(),
        cpu(),
        env::consts::OS,
        env::consts::ARCH,
        std::thread::available_parallelism().map_or(1, usize::from),
        said_by(Command::new(rustc).arg("--version")),
        VERSIONS.map(|package| format!("{package} {}", version(package))).join(", "),
    )
}

/// Whose versions are told: what is measured, and what it runs on.
const VERSIONS: [&str; 8] =
    ["sluicegate-core", "governor", "leaky-bucket", "ratelimit", "better-bucket", "tower", "quanta", "tokio"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The commit that is measured, and whether anything but the record has changed since.
fn commit() -> String {
    let git = |arguments: &[&str]| said_by(Command::new("git").args(arguments).current_dir(here()));
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude)record"]);
    let dirty = if changed.is_empty() { "" } else { "-dirty" };
    format!("{}{dirty}", git(&["rev-parse", "--short", "HEAD"]))
}

/// The first line that a command prints.
fn said_by(command: &mut Command) -> String {
    let output = command.output().ok().filter(|output| output.status.success());
    let text = output.map_or("unknown".into(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.lines().next().unwrap_or_default().into()
}

fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(':').nth(1));
    model.map_or("unknown processor".into(), |model| model.trim().into())
}

/// The version of `package` in the text of a lock file.
fn version_in<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let line = lock.lines().skip_while(|line| *line != name).nth(1)?;
    line.strip_prefix("version = \"")?.strip_suffix('"')
}

/// Today's date in UTC.
fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The Gregorian date of a day counted from 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let (mut year, mut left) = (1970, days);
    let is_leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(19_722), (2023, 12, 31));
        assert_eq!(civil(19_723), (2024, 1, 1));
    }

    #[test]
    fn versions() {
        let lock =
            "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"ab\"\nversion = \"4.5.6\"\n";
        assert_eq!(version_in(lock, "ab"), Some("4.5.6"));
        assert_eq!(version_in(lock, "b"), None);
    }
}
