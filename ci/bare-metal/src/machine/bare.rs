//! No operating system: text and exit code go to the emulator, by semihosting.

use core::fmt;

use semihosting::io::Write as _;

/// Runs `main`, prints what it writes and ends the emulator: with 0 if all went well, and otherwise with 1.
///
/// A panic is printed too, and ends it with 101.
pub fn finish(main: fn(&mut dyn fmt::Write) -> fmt::Result) -> ! {
    let result = semihosting::io::stdout().map_err(|_| fmt::Error).and_then(|stdout| {
        let mut out = Buffered { stdout, text: [0; 512], length: 0 };
        let result = main(&mut out);
        result.and(out.flush())
    });
    semihosting::process::exit(i32::from(result.is_err()))
}

/// Collects text: each call of the emulator stops the processor.
struct Buffered {
    stdout: semihosting::io::Stdout,
    text: [u8; 512],
    length: usize,
}

impl Buffered {
    fn flush(&mut self) -> fmt::Result {
        let length = core::mem::take(&mut self.length);
        self.stdout.write_all(&self.text[..length]).map_err(|_| fmt::Error)
    }
}

impl fmt::Write for Buffered {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if self.length == self.text.len() {
                self.flush()?;
            }
            self.text[self.length] = byte;
            self.length += 1;
        }
        Ok(())
    }
}
