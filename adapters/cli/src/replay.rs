//! From lines to decisions.

use crate::error::Error;
use crate::escape::escaped;
use crate::format::{Reader, Record};
use crate::input::Source;
use crate::lines::{LONGEST, Line, Lines};
use crate::options::Options;
use crate::progress::Progress;
use crate::tally::Tally;
use crate::time::LogTime;
use crate::trace::Trace;

/// A log, replayed.
#[derive(Debug)]
pub(crate) struct Replayed<'a> {
    pub(crate) tally: Tally<'a>,
    pub(crate) unparsed: u64,
    pub(crate) out_of_order: u64,
}

/// Reads all sources and decides on every request.
pub(crate) fn replay(options: &Options) -> Result<Replayed<'_>, Error> {
    let mut run = Run {
        options,
        progress: Progress::new(&options.sources),
        tally: Tally::new(&options.limiter, !options.is_stream),
        trace: Trace::default(),
        latest: None,
        unparsed: 0,
        out_of_order: 0,
    };
    let result = options.sources.iter().try_for_each(|source| run.read(source));
    run.progress.finish();
    result?;
    run.decide_in_order()?;
    run.summarise_unparsed();
    Ok(Replayed { tally: run.tally, unparsed: run.unparsed, out_of_order: run.out_of_order })
}

struct Run<'a> {
    options: &'a Options,
    progress: Progress,
    tally: Tally<'a>,
    /// Empty in a stream.
    trace: Trace,
    /// The latest time so far.
    latest: Option<LogTime>,
    unparsed: u64,
    out_of_order: u64,
}

impl Run<'_> {
    fn read(&mut self, source: &Source) -> Result<(), Error> {
        let failure = |error| Error::Read { name: source.name(), error };
        let input = source.open(|stored| self.progress.watch(stored)).map_err(failure)?;
        let mut lines = Lines::new(input);
        let mut reader = Reader::new(&self.options.format);
        let mut number = 0;
        while let Some(line) = lines.next().map_err(failure)? {
            number += 1;
            let text = match line {
                Line::Text(text) if number == 1 => text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text),
                Line::Text(text) => text,
                Line::TooLong => {
                    self.unreadable(source, number, &format!("longer than {LONGEST} bytes"))?;
                    continue;
                }
            };
            if text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match reader.read(text) {
                Ok(record) => self.take(&record)?,
                Err(reason) => self.unreadable(source, number, reason)?,
            }
        }
        Ok(())
    }

    fn take(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let key = self.tally.keys.number(&record.key)?;
        match self.latest {
            Some(latest) if record.time < latest => self.out_of_order += 1,
            _ => self.latest = Some(record.time),
        }
        if self.options.is_stream {
            self.decide(record.time, key, record.cost)
        } else {
            self.trace.push(record.time, key, record.cost);
            Ok(())
        }
    }

    fn decide_in_order(&mut self) -> Result<(), Error> {
        let mut trace = std::mem::take(&mut self.trace);
        if self.out_of_order > 0 {
            trace.sort();
        }
        trace.iter().try_for_each(|(time, key, cost)| self.decide(time, key, cost))
    }

    fn decide(&mut self, time: LogTime, key: u32, cost: u64) -> Result<(), Error> {
        match self.tally.decide(time, key, cost) {
            Some(()) => Ok(()),
            None => Err(self.tally.span_error(self.options.limit.to_string(), key)),
        }
    }

    fn unreadable(&mut self, source: &Source, line: u64, reason: &str) -> Result<(), Error> {
        if self.options.is_strict {
            return Err(Error::Unreadable { name: source.name(), line, reason: reason.to_owned() });
        }
        self.unparsed += 1;
        if self.unparsed <= SHOWN {
            self.progress.note(&format!("warning: {}:{line}: {reason}", escaped(&source.name())));
        }
        Ok(())
    }

    fn summarise_unparsed(&self) {
        if self.unparsed > SHOWN {
            self.progress.note(&format!("warning: {} more lines could not be read", self.unparsed - SHOWN));
        }
        if self.unparsed > 0 && self.tally.requests == 0 {
            self.progress.note("warning: no line could be read: see --format, --pattern and --time-format");
        }
    }
}

/// How many unreadable lines are named.
const SHOWN: u64 = 3;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
