//! Where reports go.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use same_file::Handle;

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
        let is_stdout = matches!((Handle::stdout(), Handle::from_path(&path)), (Ok(own), Ok(other)) if own == other);
        if path.is_file() && is_stdout {
            return Err(Error::Usage(format!(
                "invalid value '{}' for '--plot <OUT.svg>': the report is printed to this file; name another",
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
            if let Ok(before) = fs::metadata(&draft.place) {
                draft.file.set_permissions(before.permissions())?;
            }
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
        let place = behind_links(path);
        place.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
        // Short, so that it fits wherever the file's own name does.
        let path = place.with_file_name(format!(".{}.part", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        Ok(Self { file, path, place })
    }
}

/// Where `path` leads, so that a link stays a link: also one to a file that is not there yet.
fn behind_links(path: &Path) -> PathBuf {
    let mut place = path.to_owned();
    for _ in 0..LINKS {
        match (fs::canonicalize(&place), fs::read_link(&place)) {
            (Ok(found), _) => return found,
            // Of an absolute link, all that is joined before it goes.
            (Err(_), Ok(link)) => place = place.parent().map_or(link.clone(), |folder| folder.join(link)),
            (Err(_), Err(_)) => break,
        }
    }
    place
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After it was moved there is nothing to remove.
        let _ = fs::remove_file(&self.path);
    }
}

/// As many links in a row as Linux follows.
const LINKS: usize = 40;

fn failure(path: &Path, error: io::Error) -> Error {
    Error::Write { name: format!("--plot {}", path.display()), error }
}
