//! Where logs come from: files and standard input, packed or not.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use same_file::Handle;

use crate::error::Error;

/// A log that was found to be there.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Stdin,
    File {
        path: PathBuf,
        /// 0 where it is not known: pipes and devices.
        bytes: u64,
    },
}

impl Source {
    /// Finds out whether `path` can be read, so that a wrong name is reported before anything starts.
    pub(crate) fn new(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            return Ok(Self::Stdin);
        }
        let check = || -> io::Result<u64> {
            let metadata = fs::metadata(path)?;
            if metadata.is_dir() {
                return Err(io::Error::other("it is a directory"));
            }
            // Opening and closing a pipe would be noticed at its other end.
            if metadata.is_file() {
                File::open(path)?;
                return Ok(metadata.len());
            }
            Ok(0)
        };
        match check() {
            Ok(bytes) => Ok(Self::File { path: path.to_owned(), bytes }),
            Err(error) => Err(Error::Read { name: path.display().to_string(), error }),
        }
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File { path, .. } => path.display().to_string(),
        }
    }

    /// How much there is to read, as far as that is known.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Stdin => 0,
            Self::File { bytes, .. } => *bytes,
        }
    }

    /// Whether `path` names the same file, through whatever link or redirection.
    pub(crate) fn is_file(&self, path: &Path) -> bool {
        let own = match self {
            Self::Stdin => Handle::stdin(),
            Self::File { path, bytes: 1.. } => Handle::from_path(path),
            // An empty file holds nothing to lose, and a pipe must not be opened twice; but names can be compared.
            Self::File { path: own, .. } => {
                return own == path
                    || fs::canonicalize(own)
                        .ok()
                        .is_some_and(|own| fs::canonicalize(path).is_ok_and(|path| own == path));
            }
        };
        matches!((own, Handle::from_path(path)), (Ok(own), Ok(other)) if own == other)
    }

    /// Opens it; `watch` sees the bytes as they are stored, before they are unpacked.
    pub(crate) fn open<R: Read>(&self, watch: impl FnOnce(Box<dyn Read>) -> R) -> io::Result<Input<R>> {
        let stored: Box<dyn Read> = match self {
            Self::Stdin => Box::new(io::stdin().lock()),
            Self::File { path, .. } => Box::new(File::open(path)?),
        };
        Input::new(watch(stored))
    }
}

/// The bytes of a log.
#[derive(Debug)]
pub(crate) enum Input<R> {
    Plain(Begun<R>),
    Gzip(Members<Begun<R>>),
}

type Begun<R> = io::Chain<Cursor<Vec<u8>>, R>;

impl<R: Read> Input<R> {
    /// Looks at the first bytes: names lie, and standard input has none.
    fn new(mut stored: R) -> io::Result<Self> {
        let mut first = Vec::with_capacity(GZIP.len());
        stored.by_ref().take(GZIP.len() as u64).read_to_end(&mut first)?;
        let is_gzip = first == GZIP;
        let begun = Cursor::new(first).chain(stored);
        Ok(if is_gzip { Self::Gzip(Members::new(begun)) } else { Self::Plain(begun) })
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(plain) => plain.read(buffer),
            Self::Gzip(gzip) => gzip.read(buffer),
        }
    }
}

/// One gzip member after another; zeros may follow the last, as tapes and block devices pad.
#[derive(Debug)]
pub(crate) struct Members<R> {
    /// `None` once the last has ended.
    member: Option<Box<GzDecoder<BufReader<R>>>>,
}

impl<R: Read> Members<R> {
    fn new(stored: R) -> Self {
        Self { member: Some(Box::new(GzDecoder::new(BufReader::new(stored)))) }
    }
}

impl<R: Read> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let length = member.read(buffer)?;
            if length > 0 || buffer.is_empty() {
                return Ok(length);
            }
            let Some(mut stored) = self.member.take().map(|member| member.into_inner()) else { break };
            while let [0, ..] = stored.fill_buf()? {
                stored.consume(1);
            }
            match stored.fill_buf()? {
                [] => break,
                [first, ..] if *first == GZIP[0] => self.member = Some(Box::new(GzDecoder::new(stored))),
                _ => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "what follows the gzip data is no gzip data",
                    ));
                }
            }
        }
        Ok(0)
    }
}

/// RFC 1952: two bytes of identification, and deflate, the only method there is.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];
