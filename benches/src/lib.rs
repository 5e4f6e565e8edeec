//! What the benchmarks share: the contestants, the exact figures, interleaved timing and the pages of the record.
//!
//! `benches/*.rs` hold one question each; `README.md` says which and how to run them.

#![forbid(unsafe_code)]

extern crate alloc;

pub mod accuracy;
pub mod async_rivals;
pub mod crowd;
pub mod denials;
pub mod fairness;
pub mod hot;
pub mod interleaved;
pub mod keyed;
pub mod keyed_sizes;
pub mod off;
pub mod pipeline;
pub mod record;
pub mod report;
pub mod rival;
pub mod scarce;
pub mod single_step;
pub mod waiting;

/// Whether this run is to measure: `cargo bench` says `--bench`, and `cargo test --benches` does not.
pub fn is_measuring() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}
