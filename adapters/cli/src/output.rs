//! Where reports go.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::escape::escaped;
use crate::input::Source;

/// Prints `text` to standard output. A reader that has seen enough and closed it is no failure.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Write { name: "standard output".to_owned(), error })
        }
        _ => Ok(()),
    }
}

/// A file that can be written, and that is none of the inputs.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    /// A file is written beside its place and moved there, so that it is whole or not there. A pipe or a device cannot be.
    is_file: bool,
}

impl Target {
    /// Finds out, leaving no trace, whether `path` can be written.
    pub(crate) fn new(path: PathBuf, sources: &[Source]) -> Result<Self, Error> {
        // Only of a file: to look into a pipe would be to read from it.
        if path.is_file() && sources.iter().any(|source| source.is_file(&path)) {
            return Err(Error::Usage(format!(
                "invalid value '{}' for '--plot <OUT.svg>': this file is also a log to read; name another",
                escaped(&path.display().to_string())
            )));
        }
        match Self::check(&path) {
            Ok(is_file) => Ok(Self { path, is_file }),
            Err(error) => Err(failure(&path, error)),
        }
    }

    fn check(path: &Path) -> io::Result<bool> {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(io::Error::other("it is a directory")),
            Ok(metadata) if !metadata.is_file() => return Ok(false),
            Ok(metadata) if metadata.permissions().readonly() => return Err(io::ErrorKind::PermissionDenied.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        // Dropped, it is removed.
        Draft::beside(path).map(|_| true)
    }

    /// Writes the whole file, or leaves what was there.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let write = || -> io::Result<()> {
            if !self.is_file {
                return OpenOptions::new().write(true).open(&self.path)?.write_all(bytes);
            }
            let mut draft = Draft::beside(&self.path)?;
            draft.file.write_all(bytes)?;
            draft.file.sync_data()?;
            fs::rename(&draft.path, &draft.place)
        };
        write().map_err(|error| failure(&self.path, error))
    }
}

/// A new file that is removed unless it was moved to its place.
struct Draft {
    file: File,
    path: PathBuf,
    place: PathBuf,
}

impl Draft {
    fn beside(path: &Path) -> io::Result<Self> {
        // Behind a link, so that the link stays.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = place.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
        let name = format!(".{}.{}.part", name.to_string_lossy(), std::process::id());
        let path = place.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Self { file, path, place })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After it was moved there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

fn failure(path: &Path, error: io::Error) -> Error {
    Error::Write { name: format!("--plot {}", path.display()), error }
}
