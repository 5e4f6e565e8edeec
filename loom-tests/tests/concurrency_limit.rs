//! The concurrency limit under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CorePermits, model, permits};

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn c17_last_unit_of_two() {
    model(Bound::NONE, permits::last_unit_of_two::<CorePermits>);
}

// 3 threads, up to 3 preemptions: 3163 interleavings, 0.5 s.
#[test]
fn c17_costs_above_one() {
    model(Bound::preemptions(3), permits::costs_above_one::<CorePermits>);
}

// 2 threads, every interleaving: 32 interleavings, under 0.1 s.
#[test]
fn c17_denial_takes_nothing() {
    model(Bound::NONE, permits::denial_takes_nothing::<CorePermits>);
}

// 2 threads, every interleaving: 13 interleavings, under 0.1 s.
#[test]
fn release_against_release() {
    model(Bound::NONE, permits::release_against_release::<CorePermits>);
}

// 2 threads, every interleaving: 18 interleavings, under 0.1 s.
#[test]
fn release_against_acquire() {
    model(Bound::NONE, permits::release_against_acquire::<CorePermits>);
}

// 2 threads, every interleaving: 1764 interleavings, 0.2 s.
#[test]
fn unit_always_free() {
    model(Bound::NONE, permits::unit_always_free::<CorePermits>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn shrink_against_acquire() {
    model(Bound::NONE, permits::shrink_against_acquire::<CorePermits>);
}

// 2 threads, every interleaving: 1668 interleavings, 0.1 s.
#[test]
fn shrink_then_acquire_against_acquire() {
    model(Bound::NONE, permits::shrink_then_acquire_against_acquire::<CorePermits>);
}

// 3 threads, up to 3 preemptions: 1285 interleavings, 0.2 s.
#[test]
fn shrink_against_release_and_acquire() {
    model(Bound::preemptions(3), permits::shrink_against_release_and_acquire::<CorePermits>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn limit_against_limit() {
    model(Bound::NONE, permits::limit_against_limit::<CorePermits>);
}

// 3 threads, up to 3 preemptions: 1217 interleavings, 0.2 s.
#[test]
fn release_is_seen() {
    model(Bound::preemptions(3), permits::release_is_seen::<CorePermits>);
}
