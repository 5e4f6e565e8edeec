//! A progress bar, when somebody watches and it takes long enough to be worth one.

use std::io::{self, IsTerminal, Read, Write};

use indicatif::{ProgressBar, ProgressBarIter, ProgressStyle};

use crate::input::Source;

#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// A bar over all of `sources`, or one that never shows.
    pub(crate) fn new(sources: &[Source]) -> Self {
        let bytes: u64 = sources.iter().map(Source::bytes).sum();
        let is_long = bytes >= WORTH_A_BAR || sources.iter().any(|source| source.bytes() == 0);
        if !is_long || !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let (bar, template) = if sources.iter().all(|source| source.bytes() > 0) {
            (ProgressBar::new(bytes), "{bar:30} {percent:>3}%  {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left")
        } else {
            (ProgressBar::new_spinner(), "{spinner} {bytes}  {bytes_per_sec}")
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// `reader`, watched.
    pub(crate) fn watch<R: Read>(&self, reader: R) -> ProgressBarIter<R> {
        self.0.wrap_read(reader)
    }

    /// Prints a line to standard error without tearing the bar.
    pub(crate) fn note(&self, line: &str) {
        self.0.suspend(|| {
            // Where standard error is closed nobody misses it.
            let _ = writeln!(io::stderr().lock(), "{line}");
        });
    }

    pub(crate) fn finish(&self) {
        self.0.finish_and_clear();
    }
}

/// Less is read before an eye has seen a bar.
const WORTH_A_BAR: u64 = 64 << 20;
