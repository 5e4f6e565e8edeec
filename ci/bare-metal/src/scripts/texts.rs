//! Limits read from text and printed, right and wrong ones.

use core::fmt;

use sluicegate_core::{HashedShard, Limit, ShardId, WindowLimit};

/// What each text says, as a limit of a bucket and of a window; then the numbers of hashed shards, modulo 2^16.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for text in TEXTS {
        match text.parse::<Limit>() {
            Ok(limit) => writeln!(out, "{text:?}: {limit}")?,
            Err(error) => writeln!(out, "{text:?}: {error}")?,
        }
        match text.parse::<WindowLimit>() {
            Ok(limit) => writeln!(out, "{text:?} as a window: {limit}")?,
            Err(error) => writeln!(out, "{text:?} as a window: {error}")?,
        }
    }
    for identity in ["", "a", "sensor-7", "a longer name than eight bytes"] {
        writeln!(out, "{identity:?}: shard {}", HashedShard::of(identity).shard() & 0xffff)?;
    }
    Ok(())
}

const TEXTS: [&str; 22] = [
    "300/1m",
    "300/60s",
    "7/3s burst 20",
    "1/30d",
    "999_999_937/1s",
    "10000000000/1s",
    "1/1ns",
    "18446744073709551615/18446744073709551615ns burst 5",
    "18446744073709551616/1s",
    "1/99999999999999999999d",
    "off",
    "deny",
    "0",
    "0/1s",
    "1/0s",
    "1/1s burst 0",
    "1/1s burst 9223372036854775807",
    "-1/1s",
    "1.5/1s",
    "10/1 fortnight",
    "",
    "10/1m burst",
];
