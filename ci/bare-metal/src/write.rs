//! How scripts write what was decided.

use core::fmt;

use sluicegate_core::{Decision, Denied};

/// Writes `decision` on one line, after what was asked: every field, spans in nanoseconds.
///
/// # Errors
/// Only those of `out`.
pub fn decision(out: &mut dyn fmt::Write, asked: fmt::Arguments<'_>, decision: &Decision) -> fmt::Result {
    out.write_fmt(asked)?;
    match decision {
        Ok(admitted) => writeln!(out, ": {} left at {}", admitted.remaining, admitted.at.as_u64()),
        Err(Denied::RateLimited { retry_after }) => writeln!(out, ": wait {}", retry_after.as_nanos()),
        Err(never) => writeln!(out, ": {never}"),
    }
}
