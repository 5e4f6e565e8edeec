//! Limiters that read their own clock, under racing callers and a clock that moves.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{
    Bound, ClockedAdjustable, ClockedAdjustableDebtor, ClockedBucket, ClockedCounter, ClockedDebtor, ClockedHandle,
    ClockedKey, ClockedKeyDebtor, ClockedOverflow, ClockedPacer, ClockedShards, ClockedWindow, model, own_clock,
};

// 2 threads, every interleaving: 2009 interleavings, 0.3 s.
#[test]
fn bucket_overtaken() {
    model(Bound::NONE, own_clock::overtaken_at_a_later_reading::<ClockedBucket>);
}

// 2 threads, every interleaving: 2009 interleavings, 0.3 s.
#[test]
fn bucket_debit_overtaken() {
    model(Bound::NONE, own_clock::overtaken_at_a_later_reading::<ClockedDebtor>);
}

// 2 threads, up to 3 preemptions: 496 interleavings, 0.1 s.
#[test]
fn adjustable_overtaken() {
    model(Bound::preemptions(3), own_clock::overtaken_at_a_later_reading::<ClockedAdjustable>);
}

// 2 threads, up to 3 preemptions: 496 interleavings, 0.1 s.
#[test]
fn adjustable_debit_overtaken() {
    model(Bound::preemptions(3), own_clock::overtaken_at_a_later_reading::<ClockedAdjustableDebtor>);
}

// 2 threads, every interleaving: 2009 interleavings, 0.3 s.
#[test]
fn counter_overtaken() {
    model(Bound::NONE, own_clock::overtaken_at_a_later_reading::<ClockedCounter>);
}

// 2 threads, every interleaving: 2009 interleavings, 0.3 s.
#[test]
fn leaky_bucket_overtaken() {
    model(Bound::NONE, own_clock::overtaken_at_a_later_reading::<ClockedPacer>);
}

// 2 threads, up to 3 preemptions: 2616 interleavings, 0.4 s.
#[test]
fn key_overtaken() {
    model(Bound::preemptions(3), own_clock::overtaken_at_a_later_reading::<ClockedKey>);
}

// 2 threads, up to 3 preemptions: 2632 interleavings, 0.4 s.
#[test]
fn key_debit_overtaken() {
    model(Bound::preemptions(3), own_clock::overtaken_at_a_later_reading::<ClockedKeyDebtor>);
}

// 2 threads, every interleaving: 2009 interleavings, 0.2 s.
#[test]
fn handle_overtaken() {
    model(Bound::NONE, own_clock::overtaken_at_a_later_reading::<ClockedHandle>);
}

// 2 threads, up to 2 preemptions: 3964 interleavings, 1.3 s.
#[test]
fn overflow_overtaken() {
    model(Bound::preemptions(2), own_clock::overtaken_at_a_later_reading::<ClockedOverflow>);
}

// 2 threads, every interleaving: 1104 interleavings, 0.2 s.
#[test]
fn window_overtaken() {
    model(Bound::NONE, own_clock::overtaken_by_the_end_of_the_window::<ClockedWindow>);
}

// 2 threads, up to 3 preemptions: 1503 interleavings, 0.4 s.
#[test]
fn window_of_two_shards_overtaken() {
    model(Bound::preemptions(3), own_clock::overtaken_by_the_end_of_the_window::<ClockedShards>);
}

// 3 threads, up to 1 preemption: 8134 interleavings, 3 s.
#[test]
fn window_overtaken_twice() {
    model(Bound::preemptions(1), own_clock::two_overtaken_by_the_end_of_the_window::<ClockedShards>);
}
