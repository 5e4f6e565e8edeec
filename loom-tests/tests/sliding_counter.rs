//! The sliding counter under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CoreCounter, counter, model};

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn a11_last_unit_of_two() {
    model(Bound::NONE, counter::last_unit_of_two::<CoreCounter>);
}

// 3 threads, up to 3 preemptions: 3539 interleavings, 0.4 s.
#[test]
fn a11_last_units_of_three() {
    model(Bound::preemptions(3), counter::last_units_of_three::<CoreCounter>);
}

// 2 threads, every interleaving: 32 interleavings, under 0.1 s.
#[test]
fn c03_denial_takes_nothing() {
    model(Bound::NONE, counter::denial_takes_nothing::<CoreCounter>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn rollover_against_rollover() {
    model(Bound::NONE, counter::rollover_against_rollover::<CoreCounter>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn rollover_against_late_reading() {
    model(Bound::NONE, counter::rollover_against_late_reading::<CoreCounter>);
}

// 2 threads, every interleaving: 32 interleavings, under 0.1 s.
#[test]
fn refund_against_acquire() {
    model(Bound::NONE, counter::refund_against_acquire::<CoreCounter>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn refund_against_rollover() {
    model(Bound::NONE, counter::refund_against_rollover::<CoreCounter>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn refund_against_refund() {
    model(Bound::NONE, counter::refund_against_refund::<CoreCounter>);
}

// 2 threads, every interleaving: 1668 interleavings, under 0.1 s.
#[test]
fn unit_always_free() {
    model(Bound::NONE, counter::unit_always_free::<CoreCounter>);
}

// 2 threads, every interleaving: 168 interleavings, under 0.1 s.
#[test]
fn b08_looking_takes_nothing() {
    model(Bound::NONE, counter::looking_takes_nothing::<CoreCounter>);
}
