//! Runs the real command, in a directory of each test's own.

// Every test file is a crate that uses a part of this.
#![allow(dead_code)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub(crate) struct Place(PathBuf);

impl Place {
    /// An empty directory.
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// `sluicegate replay ARGUMENTS` here.
    pub(crate) fn replay(&self, arguments: &[&str]) -> Ran {
        self.replay_input(arguments, b"")
    }

    pub(crate) fn replay_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        self.run("replay", arguments, input)
    }

    /// `sluicegate COMMAND ARGUMENTS` here.
    pub(crate) fn run(&self, command: &str, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sluicegate"))
            .arg(command)
            .args(arguments)
            .current_dir(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A run that does not read its input may close it.
            scope.spawn(move || drop(stdin.write_all(input)));
            Ran::new(child.wait_with_output().unwrap())
        })
    }

    /// The object that `--json` prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        self.replay(&all).json()
    }
}

#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

/// A line of a common log.
pub(crate) fn line(ip: &str, time: &str, rest: &str) -> String {
    format!("{ip} - - [{time}] {rest}\n")
}

/// `count` requests of one client in one second.
pub(crate) fn lines(ip: &str, time: &str, count: usize) -> String {
    line(ip, time, "\"GET / HTTP/1.1\" 200 10").repeat(count)
}

/// Requests, admitted, denied.
pub(crate) fn counts(report: &Value) -> [u64; 3] {
    ["requests", "admitted", "denied"].map(|name| report[name].as_u64().unwrap())
}
