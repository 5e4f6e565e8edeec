//! `sluicegate`: what would this rate limit have done to that access log, and what will this flow do when the service is slow?
//!
//! `sluicegate replay` reads logs, lets the log's own times be the clock, and asks the limiters of `sluicegate-core` about
//! every request. `sluicegate simulate` makes up requests and a service, and puts a flow of `sluicegate-runtime` between them. Nothing is
//! decided here: this crate reads, counts and draws.
//!
//! From what a person types to what a person sees, a file each: `args` and `options`, `input` and `lines`, `format`,
//! `keys`, `limiter`, `replay`, `tally` and `timeline`, `table`, `json` and `plot`; `simulate` with files of its own; and
//! `picture`, what the pictures of both share.

#![forbid(unsafe_code)]
// A command needs an operating system; where a name comes from says nothing here.
#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc)]

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

mod args;
mod error;
mod escape;
mod format;
mod input;
mod json;
mod keys;
mod limiter;
mod lines;
mod options;
mod output;
mod picture;
mod plot;
mod progress;
mod replay;
mod simulate;
mod table;
mod tally;
mod time;
mod timeline;
mod trace;

use args::{Args, Command};
use error::Error;
use options::Options;
use output::Target;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) if args::is_for_reading(&error) => {
            // Help or the version: as clap prints it. A reader who has gone away is no failure.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(FAILURE));
        }
        Err(error) => return fail(&args::in_one_line(&error)),
    };
    let ran = match args.command {
        Command::Replay(args) => Options::new(*args).and_then(|options| replay(&options)),
        Command::Simulate(args) => simulate::simulate(*args),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

fn replay(options: &Options) -> Result<(), Error> {
    let replayed = replay::replay(options)?;
    let text = if options.json { json::render(options, &replayed) } else { table::render(options, &replayed) };
    // The plot first: when it cannot be written, nothing is printed.
    if let Some(target) = &options.plot {
        let plot = plot::render(options, &replayed);
        Target::write(target, plot.as_bytes())?;
    }
    output::print(&text)
}

fn fail(message: &str) -> ExitCode {
    // Where even standard error is closed, the exit code has to do.
    let _ = writeln!(io::stderr().lock(), "error: {message}");
    ExitCode::from(FAILURE)
}

/// What a wrong option, an unreadable file and a strict run that met an unreadable line exit with.
const FAILURE: u8 = 2;
