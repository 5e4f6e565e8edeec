//! Lines of any input, in memory that does not depend on their length.

use std::io::{self, Read};

/// Reads lines as bytes, through one buffer that also bounds them.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Box<[u8]>,
    /// What has been read and not yet handed out: `buffer[start..end]`.
    start: usize,
    end: usize,
}

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    Text(&'a [u8]),
    /// Longer than [`LONGEST`]; it has been skipped.
    TooLong,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        // A line of exactly the longest length still has its end, `\r\n` too, in the buffer.
        Self { reader, buffer: vec![0; LONGEST + 2].into_boxed_slice(), start: 0, end: 0 }
    }

    /// The next line, or `None` at the end of the input. The last line need not have an end; `\r\n` also is one.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut searched = self.start;
        loop {
            if let Some(offset) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let line = self.start..searched + offset;
                self.start = line.end + 1;
                return Ok(Some(bounded(&self.buffer[line])));
            }
            if self.end - self.start == self.buffer.len() {
                self.skip_line()?;
                return Ok(Some(Line::TooLong));
            }
            searched = self.end;
            if self.end == self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                searched -= self.start;
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.fill()? == 0 {
                let line = self.start..self.end;
                self.start = self.end;
                return Ok((!line.is_empty()).then(|| bounded(&self.buffer[line])));
            }
        }
    }

    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            (self.start, self.end) = (0, 0);
            if self.fill()? == 0 {
                return Ok(());
            }
            if let Some(offset) = memchr::memchr(b'\n', &self.buffer[..self.end]) {
                self.start = offset + 1;
                return Ok(());
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(length) => {
                    self.end += length;
                    return Ok(length);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// A line up to its `\n`, without its `\r`.
fn bounded(line: &[u8]) -> Line<'_> {
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    if text.len() > LONGEST { Line::TooLong } else { Line::Text(text) }
}

/// 1 MiB: far more than any server writes for a request, and little enough to hold.
pub(crate) const LONGEST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn lines(text: &[u8], step: usize) -> Vec<Option<Vec<u8>>> {
        let mut lines = Lines::new(Trickle(text, step));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(match line {
                Line::Text(text) => Some(text.to_vec()),
                Line::TooLong => None,
            });
        }
        all
    }

    #[test]
    fn ends_are_found_however_the_bytes_arrive() {
        for step in [1, 2, 3, 100] {
            let expected = [&b"a"[..], b"", b"bc", b"d\rd", b"e"].map(|line| Some(line.to_vec()));
            assert_eq!(lines(b"a\n\nbc\r\nd\rd\ne", step), expected, "{step}");
            assert_eq!(lines(b"", step), []);
            assert_eq!(lines(b"\n", step), [Some(vec![])]);
        }
    }

    #[test]
    fn a_line_beyond_the_bound_is_skipped_and_the_next_is_whole() {
        for (length, fits) in [(LONGEST, true), (LONGEST + 1, false), (3 * LONGEST, false)] {
            for step in [usize::MAX, 1000, 65_537] {
                for end in [&b"\n"[..], b"\r\n"] {
                    let mut text = b"first\n".to_vec();
                    text.resize(text.len() + length, b'x');
                    text.extend([end, b"last"].concat());
                    let read = lines(&text, step);
                    assert_eq!(read.len(), 3, "{length} {step}");
                    assert_eq!((read[0].as_deref(), read[2].as_deref()), (Some(&b"first"[..]), Some(&b"last"[..])));
                    assert_eq!(read[1].as_ref().map(Vec::len), fits.then_some(length), "{length} {step} {end:?}");
                }
            }
        }
    }
}
