//! A computer with an operating system.

use core::fmt;

/// Runs `main`, prints what it writes and ends the process: with 0 if all went well, and otherwise with 1.
pub fn finish(main: fn(&mut dyn fmt::Write) -> fmt::Result) -> ! {
    let mut text = String::new();
    let result = main(&mut text);
    std::print!("{text}");
    std::process::exit(i32::from(result.is_err()))
}
