//! How many instructions does each hot path run? Counted by valgrind, and compared with the counts on record.
//!
//! Runs itself under callgrind, twice for each path: the second run makes more calls, and the difference is theirs alone.

use core::fmt::Write as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::{env, fs};

use sluicegate_counts::PATHS;

fn main() -> ExitCode {
    let mut arguments: Vec<_> = env::args().skip(1).collect();
    let given = arguments.len();
    // `cargo bench` says so, and `cargo test --benches` does not.
    arguments.retain(|argument| argument != "--bench");
    let is_measuring = arguments.len() < given;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--run", path, calls] => run(path, calls),
        ["--bless"] => return bless(),
        [] if is_measuring => return compare(),
        // `cargo test --benches` only looks whether it runs.
        [] => PATHS.iter().for_each(|(name, _)| run(name, "10")),
        _ => {
            eprintln!("usage: ci/counts.sh [--bless]");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Makes so many calls on one path.
fn run(path: &str, calls: &str) {
    let (_, prepare) = PATHS.iter().find(|(name, _)| *name == path).expect("a path of this name");
    prepare()(calls.parse().expect("a number of calls"));
}

fn compare() -> ExitCode {
    let Some((recorded_with, recorded)) = recorded() else {
        eprintln!("there are no counts on record: make them with --bless");
        return ExitCode::FAILURE;
    };
    if recorded_with != compiler() {
        eprintln!("the counts on record are for {recorded_with}, and this is {}", compiler());
        return CANNOT_COMPARE.into();
    }
    let (mut table, mut worse) = (String::new(), 0);
    for (name, _) in PATHS {
        let now = match count(name) {
            Ok(now) => now,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let Some(before) = recorded.iter().find(|(path, _)| path == name).map(|(_, count)| *count) else {
            let _ = writeln!(table, "{name:48} {:>8} {now:>8.1}            NOT ON RECORD", "-");
            worse += 1;
            continue;
        };
        let change = 100.0 * (now - before) / before;
        let is_worse = change > MOST_PERCENT;
        let verdict = if is_worse {
            "WORSE"
        } else if change < -MOST_PERCENT {
            "better: bless it"
        } else {
            ""
        };
        let _ = writeln!(table, "{name:48} {before:>8.1} {now:>8.1} {change:>+8.2} %  {verdict}");
        worse += usize::from(is_worse);
    }
    println!("{:48} {:>8} {:>8} {:>10}", "instructions a call", "record", "now", "change");
    print!("{table}");
    if worse > 0 {
        eprintln!(
            "{worse} path(s) run over {MOST_PERCENT} % more instructions than on record, or are not there: see above"
        );
        eprintln!("if that is meant: ci/counts.sh --bless");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Writes what is counted now down as what is right.
fn bless() -> ExitCode {
    let mut text = format!(
        "# Instructions of one call on each hot path, counted by valgrind; `ci/counts.sh` fails where there are {MOST_PERCENT} % more.\n\
         # They are those of one compiler. Made by `ci/counts.sh --bless`.\n{}\n",
        compiler()
    );
    for (name, _) in PATHS {
        match count(name) {
            Ok(count) => {
                let _ = writeln!(text, "{count:>8.1}  {name}");
            }
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        }
    }
    print!("{text}");
    match fs::write(record(), text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", record().display());
            ExitCode::FAILURE
        }
    }
}

/// The compiler and paths with their counts that are on record.
fn recorded() -> Option<(String, Vec<(String, f64)>)> {
    let text = fs::read_to_string(record()).ok()?;
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let compiler = lines.next()?.into();
    let path = |line: &str| -> Option<(String, f64)> {
        let (count, name) = line.trim().split_once("  ")?;
        Some((name.into(), count.parse().ok()?))
    };
    Some((compiler, lines.filter_map(path).collect()))
}

fn record() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../record/counts.txt")
}

/// What compiled this, and for what.
fn compiler() -> String {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    format!("{version}, {} {}", env::consts::ARCH, env::consts::OS)
}

/// Instructions of one call.
fn count(path: &str) -> Result<f64, String> {
    let (few, many) = (under_valgrind(path, FEW)?, under_valgrind(path, MANY)?);
    Ok((many - few) / (MANY - FEW) as f64)
}

/// Instructions of the whole process that makes so many calls.
fn under_valgrind(path: &str, calls: u64) -> Result<f64, String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(this)
        .args(["--run", path, &calls.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("I ") && line.contains("refs:"));
    let digits = line.and_then(|line| line.rsplit(':').next()).map(|count| count.replace([',', ' '], ""));
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(format!("{path}: valgrind said: {said}")),
    }
}

/// More than this is a regression.
const MOST_PERCENT: f64 = 5.0;

/// Enough for tables and logs to have grown to their size.
const FEW: u64 = 1_000;

/// So that a rounding of the start counts for nothing.
const MANY: u64 = 3_000;

/// The exit status that tells `ci/counts.sh` that this compiler's counts cannot be compared.
const CANNOT_COMPARE: u8 = 77;
