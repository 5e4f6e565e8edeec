//! The circuit breaker under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CoreBreaker, breaker, model};

// COST
#[test]
fn c14_trip_is_seen() {
    model(Bound::NONE, breaker::trip_is_seen::<CoreBreaker>);
}

// COST
#[test]
fn c14_trip_against_a_call() {
    model(Bound::NONE, breaker::trip_against_a_call::<CoreBreaker>);
}

// COST
#[test]
fn c14_late_failure_against_trip_and_probe() {
    model(Bound::NONE, breaker::late_failure_against_trip_and_probe::<CoreBreaker>);
}

// COST
#[test]
fn c14_late_success_against_failures() {
    model(Bound::NONE, breaker::late_success_against_failures::<CoreBreaker>);
}

// COST
#[test]
fn c14_racing_trips() {
    model(Bound::NONE, breaker::racing_trips::<CoreBreaker>);
}

// COST
#[test]
fn c14_failures_in_a_row() {
    model(Bound::NONE, breaker::failures_in_a_row::<CoreBreaker>);
}

// COST
#[test]
fn c14_one_probe_of_three() {
    model(Bound::preemptions(3), breaker::one_probe_of_three::<CoreBreaker>);
}

// COST
#[test]
fn c14_two_probes_of_three() {
    model(Bound::preemptions(3), breaker::two_probes_of_three::<CoreBreaker>);
}

// COST
#[test]
fn c14_dropped_probe_against_two() {
    model(Bound::NONE, breaker::dropped_probe_against_two::<CoreBreaker>);
}

// COST
#[test]
fn c14_success_against_failure() {
    model(Bound::NONE, breaker::success_against_failure::<CoreBreaker>);
}

// COST
#[test]
fn c14_success_against_success() {
    model(Bound::NONE, breaker::success_against_success::<CoreBreaker>);
}

// COST
#[test]
fn c14_late_failure_of_a_probe() {
    model(Bound::NONE, breaker::late_failure_of_a_probe::<CoreBreaker>);
}

// COST
#[test]
fn c14_late_success_of_a_probe() {
    model(Bound::NONE, breaker::late_success_of_a_probe::<CoreBreaker>);
}

// COST
#[test]
fn c14_patience_against_success() {
    model(Bound::NONE, breaker::patience_against_success::<CoreBreaker>);
}

// COST
#[test]
fn c14_patience_against_drop() {
    model(Bound::NONE, breaker::patience_against_drop::<CoreBreaker>);
}

// COST
#[test]
fn c14_close_against_a_probe() {
    model(Bound::NONE, breaker::close_against_a_probe::<CoreBreaker>);
}

// COST
#[test]
fn c14_close_against_trip() {
    model(Bound::NONE, breaker::close_against_trip::<CoreBreaker>);
}

// COST
#[test]
fn c14_trip_by_hand_against_a_call() {
    model(Bound::NONE, breaker::trip_by_hand_against_a_call::<CoreBreaker>);
}

// COST
#[test]
fn c14_observer_looks() {
    model(Bound::NONE, breaker::observer_looks::<CoreBreaker>);
}
