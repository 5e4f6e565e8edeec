//! The circuit breaker under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CoreBreaker, breaker, model};

// 3 threads, every interleaving: 9976 interleavings, 1.6 s.
#[test]
fn trip_is_seen() {
    model(Bound::NONE, breaker::trip_is_seen::<CoreBreaker>);
}

// 2 threads, every interleaving: 29 interleavings, under 0.1 s.
#[test]
fn trip_against_a_call() {
    model(Bound::NONE, breaker::trip_against_a_call::<CoreBreaker>);
}

// 2 threads, every interleaving: 8 interleavings, under 0.1 s.
#[test]
fn late_failure_against_trip_and_probe() {
    model(Bound::NONE, breaker::late_failure_against_trip_and_probe::<CoreBreaker>);
}

// 2 threads, every interleaving: 5 interleavings, under 0.1 s.
#[test]
fn c14_late_success_against_failures() {
    model(Bound::NONE, breaker::late_success_against_failures::<CoreBreaker>);
}

// 3 threads, every interleaving: 17216 interleavings, 3 s.
#[test]
fn racing_trips() {
    model(Bound::NONE, breaker::racing_trips::<CoreBreaker>);
}

// 2 threads, every interleaving: 4 interleavings, under 0.1 s.
#[test]
fn failures_in_a_row() {
    model(Bound::NONE, breaker::failures_in_a_row::<CoreBreaker>);
}

// 3 threads, up to 3 preemptions: 1742 interleavings, 0.3 s.
#[test]
fn c14_one_probe_of_three() {
    model(Bound::preemptions(3), breaker::one_probe_of_three::<CoreBreaker>);
}

// 3 threads, up to 3 preemptions: 1742 interleavings, 0.3 s.
#[test]
fn c14_two_probes_of_three() {
    model(Bound::preemptions(3), breaker::two_probes_of_three::<CoreBreaker>);
}

// 3 threads, every interleaving: 942 interleavings, 0.2 s.
#[test]
fn c14_dropped_probe_against_two() {
    model(Bound::NONE, breaker::dropped_probe_against_two::<CoreBreaker>);
}

// 2 threads, every interleaving: 5 interleavings, under 0.1 s.
#[test]
fn c14_success_against_failure() {
    model(Bound::NONE, breaker::success_against_failure::<CoreBreaker>);
}

// 2 threads, every interleaving: 58 interleavings, under 0.1 s.
#[test]
fn c14_success_against_success() {
    model(Bound::NONE, breaker::success_against_success::<CoreBreaker>);
}

// 2 threads, every interleaving: 31 interleavings, under 0.1 s.
#[test]
fn c14_late_failure_of_a_probe() {
    model(Bound::NONE, breaker::late_failure_of_a_probe::<CoreBreaker>);
}

// 2 threads, every interleaving: 4 interleavings, under 0.1 s.
#[test]
fn c14_late_success_of_a_probe() {
    model(Bound::NONE, breaker::late_success_of_a_probe::<CoreBreaker>);
}

// 3 threads, every interleaving: 13289 interleavings, 2.1 s.
#[test]
fn c14_patience_against_success() {
    model(Bound::NONE, breaker::patience_against_success::<CoreBreaker>);
}

// 3 threads, every interleaving: 1862 interleavings, 0.3 s.
#[test]
fn c14_patience_against_drop() {
    model(Bound::NONE, breaker::patience_against_drop::<CoreBreaker>);
}

// 2 threads, every interleaving: 6 interleavings, under 0.1 s.
#[test]
fn close_against_a_probe() {
    model(Bound::NONE, breaker::close_against_a_probe::<CoreBreaker>);
}

// 2 threads, every interleaving: 6 interleavings, under 0.1 s.
#[test]
fn close_against_trip() {
    model(Bound::NONE, breaker::close_against_trip::<CoreBreaker>);
}

// 2 threads, every interleaving: 157 interleavings, under 0.1 s.
#[test]
fn trip_by_hand_against_a_call() {
    model(Bound::NONE, breaker::trip_by_hand_against_a_call::<CoreBreaker>);
}

// 2 threads, every interleaving: 20261 interleavings, 1.8 s.
#[test]
fn observer_looks() {
    model(Bound::NONE, breaker::observer_looks::<CoreBreaker>);
}
