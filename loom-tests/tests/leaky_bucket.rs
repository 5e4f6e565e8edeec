//! The leaky bucket under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CorePacer, model, pacer};

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn c06_slots_of_two() {
    model(Bound::NONE, pacer::slots_of_two::<CorePacer>);
}

// 3 threads, up to 3 preemptions: 3539 interleavings, 0.6 s.
#[test]
fn c06_last_place_in_the_queue() {
    model(Bound::preemptions(3), pacer::last_place_in_the_queue::<CorePacer>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn c06_costs_above_one() {
    model(Bound::NONE, pacer::costs_above_one::<CorePacer>);
}

// 2 threads, every interleaving: 32 interleavings, under 0.1 s.
#[test]
fn c06_refusal_takes_nothing() {
    model(Bound::NONE, pacer::refusal_takes_nothing::<CorePacer>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn late_reading() {
    model(Bound::NONE, pacer::late_reading::<CorePacer>);
}

// 2 threads, every interleaving: 28 interleavings, under 0.1 s.
#[test]
fn cancel_against_arrival() {
    model(Bound::NONE, pacer::cancel_against_arrival::<CorePacer>);
}

// 2 threads, every interleaving: 13 interleavings, under 0.1 s.
#[test]
fn cancel_against_cancel() {
    model(Bound::NONE, pacer::cancel_against_cancel::<CorePacer>);
}

// 3 threads, up to 3 preemptions: 730 interleavings, 0.1 s.
#[test]
fn cancel_against_cancel_and_arrival() {
    model(Bound::preemptions(3), pacer::cancel_against_cancel_and_arrival::<CorePacer>);
}
