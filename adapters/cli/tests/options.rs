//! Wrong options, wrong files: one clear line, exit code 2, and nothing else happens.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

mod support;

use std::fs;
use std::process::{Command, Stdio};

use support::{Place, Ran, lines};

const LOG: &str = "a.log";

fn place(name: &str) -> Place {
    let place = Place::new(name);
    place.write(LOG, lines("1.2.3.4", "17/May/2015:10:05:03 +0000", 12));
    place
}

#[test]
fn every_mistake_has_one_line_that_names_it_and_what_is_right() {
    let place = place("options-mistakes");
    fs::create_dir(place.path().join("directory")).unwrap();
    let cases: &[(&[&str], &[&str])] = &[
        (&[], &["<FILE>"]),
        (&["nowhere.log"], &["cannot read nowhere.log", "No such file"]),
        (&[LOG, "nowhere.log"], &["cannot read nowhere.log"]),
        (&["directory"], &["cannot read directory", "is a directory"]),
        (&["-", "-"], &["'-' is named twice"]),
        (&[LOG, "--limit", "10"], &["'10'", "--limit", "300/1m"]),
        (&[LOG, "--limit", "0"], &["--limit", "`off`", "`deny`"]),
        (&[LOG, "--limit", "0/1m"], &["--limit", "`deny`"]),
        (&[LOG, "--limit", "ten/1m"], &["'ten/1m'", "--limit", "expected TOKENS/PERIOD"]),
        (&[LOG, "--limit", "10/fortnight"], &["--limit", "ns, us, ms, s, m, h or d"]),
        (&[LOG, "--limit", "10/1m burst 0"], &["--limit", "least is 1"]),
        (&[LOG, "--limit", "99999999999/1s"], &["--limit", "9.7 tokens per ns"]),
        (&[LOG, "--limit", "1/1m burst 9999999999999999999"], &["--limit", "the largest at this rate is"]),
        (&[LOG, "--limit"], &["--limit"]),
        (&[LOG, "--limit", "5/1m", "--limit", "6/1m"], &["--limit", "multiple times"]),
        (&[LOG, "--burst", "0"], &["'0'", "--burst", "least is 1"]),
        (&[LOG, "--burst", "-5"], &["'-5'", "--burst", "whole number from 1"]),
        (&[LOG, "--burst", "many"], &["'many'", "--burst", "whole number from 1"]),
        (&[LOG, "--burst", "99999999999999999999"], &["--burst", "whole number from 1 to 18446744073709551615"]),
        (&[LOG, "--burst", "18446744073709551615"], &["--burst", "the largest at this rate is"]),
        (&[LOG, "--burst", "5", "--limit", "off"], &["--burst 5", "--limit off", "10/1m"]),
        (&[LOG, "--burst", "5", "--limit", "deny"], &["--burst 5", "--limit deny", "10/1m"]),
        (&[LOG, "--burst", "5", "--algorithm", "fixed-window"], &["--burst 5", "fixed-window", "no other burst"]),
        (&[LOG, "--burst", "10", "--algorithm", "fixed-window"], &["--burst 10", "fixed-window"]),
        (&[LOG, "--limit", "10/1m burst 20", "--algorithm", "fixed-window"], &["--limit", "burst of 20", "window"]),
        (&[LOG, "--burst", "5", "--algorithm", "sliding-log"], &["--burst 5", "sliding-log", "no other burst"]),
        (&[LOG, "--burst", "5", "--algorithm", "sliding-counter"], &["--burst 5", "sliding-counter", "no other burst"]),
        (&[LOG, "--limit", "10/1m burst 20", "--algorithm", "sliding-log"], &["--limit", "burst of 20", "no other"]),
        (
            &[LOG, "--limit", "10/1m burst 20", "--algorithm", "sliding-counter"],
            &["--limit", "burst of 20", "no other"],
        ),
        (&[LOG, "--limit", "0/1m", "--algorithm", "sliding-log"], &["--limit", "`deny`"]),
        (&[LOG, "--limit", "131072/1s", "--algorithm", "sliding-counter"], &["--limit", "largest", "is 131071"]),
        (&[LOG, "--limit", "1/5479d", "--algorithm", "sliding-counter"], &["--limit", "15 years (5478d)"]),
        (
            &[LOG, "--algorithm", "leaky"],
            &["'leaky'", "--algorithm", "token-bucket, fixed-window, sliding-log, sliding-counter"],
        ),
        (&[LOG, "--by", "agent"], &["'agent'", "--by", "ip, path, method, status, all"]),
        (&[LOG, "--cost", "2"], &["'2'", "--cost", "1, bytes"]),
        (&[LOG, "--format", "xml"], &["'xml'", "--format", "auto, common, combined, json-lines, regex"]),
        (&[LOG, "--format", "regex"], &["--format regex", "--pattern", "`time` and `key`"]),
        (&[LOG, "--format", "common", "--pattern", "x"], &["--pattern", "--format regex"]),
        (&[LOG, "--pattern", "(?<key>x)"], &["--pattern", "no named group `time`"]),
        (&[LOG, "--pattern", "(?<time>x)"], &["--pattern", "no named group `key`"]),
        (&[LOG, "--pattern", "(?<time>x)(?<key>"], &["--pattern", "unclosed group"]),
        (&[LOG, "--pattern", "(?<time>x)(?<key>y)", "--cost", "bytes"], &["--pattern", "group `cost`"]),
        (&[LOG, "--time-format", "%H:%M"], &["'%H:%M'", "--time-format", "whole date and time"]),
        (&[LOG, "--time-format", "%!"], &["'%!'", "--time-format"]),
        (&[LOG, "--top", "-1"], &["'-1'", "--top", "whole number"]),
        (&[LOG, "--top", "x"], &["'x'", "--top", "whole number"]),
        (&[LOG, "--frobnicate"], &["--frobnicate"]),
        (&[LOG, "--limt", "5/1m"], &["--limt", "--limit"]),
        (&[LOG, "--plot", "directory"], &["--plot directory", "is a directory"]),
        (&[LOG, "--plot", "no/such/directory/x.svg"], &["--plot no/such/directory/x.svg", "No such file"]),
        (&[LOG, "--plot", "a.log/x.svg"], &["--plot a.log/x.svg", "Not a directory"]),
        (&[LOG, "--plot", LOG], &["--plot", "also a log to read"]),
        (&[LOG, "--plot", "directory/../a.log"], &["--plot", "also a log to read"]),
        (&[LOG, "--limit", "line\nbreak"], &["line\\nbreak"]),
    ];
    for (arguments, parts) in cases {
        let ran = place.replay(arguments);
        refused(arguments, &ran);
        for part in *parts {
            assert!(ran.err.contains(part), "{arguments:?} should say {part:?}: {}", ran.err);
        }
        assert_eq!(place.names(), [LOG, "directory"], "{arguments:?} left something");
    }
    assert_eq!(fs::read_to_string(place.path().join(LOG)).unwrap().lines().count(), 12);
}

#[track_caller]
fn refused(arguments: &[&str], ran: &Ran) {
    assert_eq!(ran.code, Some(2), "{arguments:?} {ran:?}");
    assert_eq!(ran.out, "", "{arguments:?}");
    assert!(ran.err.starts_with("error: ") && ran.err.ends_with('\n'), "{arguments:?} {ran:?}");
    assert_eq!(ran.err.lines().count(), 1, "{arguments:?} {ran:?}");
}

#[cfg(unix)]
#[test]
fn a_plot_cannot_replace_a_log_through_a_link_or_a_redirection() {
    let place = place("options-links");
    std::os::unix::fs::symlink(LOG, place.path().join("symbolic")).unwrap();
    fs::hard_link(place.path().join(LOG), place.path().join("hard")).unwrap();
    for plot in ["symbolic", "hard"] {
        let arguments = [LOG, "--plot", plot];
        refused(&arguments, &place.replay(&arguments));
    }
    let log = fs::File::open(place.path().join(LOG)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
        .args(["replay", "-", "--plot", LOG])
        .current_dir(place.path())
        .stdin(log)
        .output()
        .unwrap();
    refused(&["-", "--plot", LOG], &Ran::new(output));
    assert_eq!(fs::read_to_string(place.path().join(LOG)).unwrap().lines().count(), 12);
}

#[test]
fn what_stdout_cannot_take_is_said_and_a_closed_one_is_no_failure() {
    let place = place("options-stdout");
    // A reader that is gone before anything is written.
    for arguments in [&["replay", LOG][..], &["replay", LOG, "--json"], &["replay", "--help"], &["--help"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
            .args(arguments)
            .current_dir(place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = Ran::new(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{arguments:?}");
    }
    if let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") {
        let output = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
            .args(["replay", LOG])
            .current_dir(place.path())
            .stdout(full)
            .output()
            .unwrap();
        refused(&["> /dev/full"], &Ran::new(output));
    }
}

#[test]
fn help_names_every_option_and_shows_examples() {
    let place = place("options-help");
    let long = place.replay(&["--help"]);
    let short = place.replay(&["-h"]);
    for (help, lines) in [(&long, 150), (&short, 60)] {
        assert_eq!((help.code, help.err.as_str()), (Some(0), ""));
        assert!(help.out.lines().count() < lines, "{}", help.out);
        for name in [
            "--limit",
            "--burst",
            "--algorithm",
            "--by",
            "--format",
            "--pattern",
            "--time-format",
            "--cost",
            "--stream",
            "--strict",
            "--top",
            "--json",
            "--plot",
            "Examples:",
        ] {
            assert!(help.out.contains(name), "{name}: {}", help.out);
        }
    }
}

#[test]
fn burst_overrides_the_limits_own() {
    let place = place("options-burst");
    let report = place.json(&[LOG, "--limit", "5/1m burst 7", "--burst", "11"]);
    assert_eq!((&report["limit"], &report["denied"]), (&"5/1m burst 11".into(), &1.into()));
    let report = place.json(&[LOG, "--limit", "300/60s", "--burst", "300"]);
    assert_eq!(report["limit"], "300/1m");
    let report = place.json(&[LOG, "--limit", "off"]);
    assert_eq!((&report["limit"], &report["denied"], &report["admitted"]), (&"off".into(), &0.into(), &12.into()));
    let report = place.json(&[LOG, "--limit", "deny", "--algorithm", "fixed-window"]);
    assert_eq!((&report["limit"], &report["denied"], &report["admitted"]), (&"deny".into(), &12.into(), &0.into()));
    for algorithm in ["sliding-log", "sliding-counter"] {
        for (limit, canonical, denied) in [("off", "off", 0), ("deny", "deny", 12), ("5/60s", "5/1m", 7)] {
            let report = place.json(&[LOG, "--limit", limit, "--algorithm", algorithm]);
            assert_eq!((&report["limit"], &report["denied"]), (&canonical.into(), &denied.into()), "{algorithm}");
            assert_eq!(report["algorithm"], algorithm);
        }
    }
    // Limits that only a log can keep.
    let report = place.json(&[LOG, "--limit", "18446744073709551615/1ns", "--algorithm", "sliding-log"]);
    assert_eq!((&report["limit"], &report["denied"]), (&"18446744073709551615/1ns".into(), &0.into()));
}
