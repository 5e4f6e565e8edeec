//! Any log: a regular expression says where its time and key are.

use std::borrow::Cow;

use regex::bytes::{CaptureLocations, Regex};

use super::{ALL, Record, Selection, Unreadable, parse_cost};
use crate::args::{By, Cost};

/// A regular expression that was found to have the groups it needs.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    selection: Selection,
    time: usize,
    key: usize,
    cost: Option<usize>,
}

impl Pattern {
    /// Compiles `text`. A group `cost` counts unless `costs_one`.
    pub(crate) fn new(text: &str, selection: Selection, costs_one: bool) -> Result<Self, String> {
        let regex = Regex::new(text).map_err(|error| in_one_line(&error))?;
        let group = |name| regex.capture_names().position(|known| known == Some(name));
        let time = group("time").ok_or("it has no named group `time`: write (?<time>...) around the time")?;
        let key = group("key").ok_or("it has no named group `key`: write (?<key>...) around what has a limit")?;
        let cost = if costs_one { None } else { group("cost") };
        if cost.is_none() && selection.cost == Cost::Bytes {
            return Err("'--cost bytes' needs a named group `cost`: write (?<cost>...) around the size".to_owned());
        }
        Ok(Self { selection, time, key, cost, regex })
    }

    pub(crate) fn has_cost(&self) -> bool {
        self.cost.is_some()
    }

    pub(super) fn matcher(&self) -> Matcher<'_> {
        Matcher { locations: self.regex.capture_locations(), pattern: self }
    }
}

/// A pattern with room for what it finds.
#[derive(Debug)]
pub(crate) struct Matcher<'a> {
    pattern: &'a Pattern,
    locations: CaptureLocations,
}

impl Matcher<'_> {
    pub(super) fn read<'l>(&mut self, line: &'l [u8]) -> Result<Record<'l>, Unreadable> {
        // The pattern is about characters, so that `.` and \S match what a person would think.
        match String::from_utf8_lossy(line) {
            Cow::Borrowed(_) => self.find(line),
            Cow::Owned(text) => {
                let Record { time, key, cost } = self.find(text.as_bytes())?;
                Ok(Record { time, key: Cow::Owned(key.into_owned()), cost })
            }
        }
    }

    fn find<'l>(&mut self, line: &'l [u8]) -> Result<Record<'l>, Unreadable> {
        let pattern = self.pattern;
        pattern.regex.captures_read(&mut self.locations, line).ok_or("--pattern does not match")?;
        let group = |index| self.locations.get(index).map(|(start, end)| &line[start..end]);
        let time = group(pattern.time).ok_or("the group `time` of --pattern matched nothing")?;
        let time =
            pattern.selection.time.parse(time).ok_or("the time is not one that can be read (see --time-format)")?;
        let key = match pattern.selection.by {
            By::All => ALL,
            _ => group(pattern.key).ok_or("the group `key` of --pattern matched nothing")?,
        };
        let cost = match pattern.cost {
            Some(index) => parse_cost(group(index).unwrap_or_default())?,
            None => 1,
        };
        Ok(Record { time, key: Cow::Borrowed(key), cost })
    }
}

/// The last line of regex's message: the others draw the pattern and an arrow.
fn in_one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}
