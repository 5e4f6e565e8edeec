//! Where scenarios come from, and where in them something is wrong.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::check::{Plan, Problem};
use crate::error::Error;
use crate::input::Source;

/// A scenario's text, and what messages call it.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) name: String,
    pub(super) text: String,
}

impl Text {
    pub(super) fn read(source: &Source, path: &Path) -> Result<Self, Error> {
        let name = source.name();
        let mut bytes = Vec::new();
        let read = match source {
            Source::Stdin => io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes),
            Source::File { .. } => File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes)),
        };
        match read {
            Err(error) => return Err(Error::Read { name, error }),
            Ok(_) if bytes.len() as u64 > LARGEST => {
                let error = io::Error::other("it is larger than 1 MiB: no scenario is");
                return Err(Error::Read { name, error });
            }
            Ok(_) => {}
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, text }),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                let problem = Problem { at: valid..valid, reason: "these bytes are not UTF-8".to_owned() };
                Err(Self { name, text }.error(&problem))
            }
        }
    }

    pub(super) fn plan(&self) -> Result<Plan, Error> {
        Plan::parse(&self.text).map_err(|problem| self.error(&problem))
    }

    /// The problem, with its line and column, both from 1 on; columns are characters.
    fn error(&self, problem: &Problem) -> Error {
        let before = self.text.get(..problem.at.start.min(self.text.len())).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Error::Scenario {
            name: self.name.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            reason: problem.reason.clone(),
        }
    }
}

const LARGEST: u64 = 1 << 20;
