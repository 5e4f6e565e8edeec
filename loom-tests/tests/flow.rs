//! The flow of bucket, circuit breaker and concurrency limit, under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CoreFlow, flow, model};

// 2 threads, up to 3 preemptions: 1623 interleavings, 0.2 s.
#[test]
fn c14_trip_against_a_call() {
    model(Bound::preemptions(3), flow::trip_against_a_call::<CoreFlow>);
}

// 3 threads, up to 2 preemptions: 22737 interleavings, 3.6 s.
#[test]
fn c14_trip_against_calls() {
    model(Bound::preemptions(2), flow::trip_against_calls::<CoreFlow>);
}

// 3 threads, up to 2 preemptions: 9414 interleavings, 2.2 s.
#[test]
fn c14_failure_against_calls() {
    model(Bound::preemptions(2), flow::failure_against_calls::<CoreFlow>);
}

// 3 threads, up to 2 preemptions: 42384 interleavings, 8.4 s.
#[test]
fn c14_one_probe_of_three_pays() {
    model(Bound::preemptions(2), flow::one_probe_of_three_pays::<CoreFlow>);
}

// 3 threads, up to 2 preemptions: 73176 interleavings, 18 s.
#[test]
fn c14_two_probes_of_three_pay() {
    model(Bound::preemptions(2), flow::two_probes_of_three_pay::<CoreFlow>);
}

// 2 threads, up to 3 preemptions: 1717 interleavings, 0.2 s.
#[test]
fn c14_denied_token_against_denied_token() {
    model(Bound::preemptions(3), flow::denied_token_against_denied_token::<CoreFlow>);
}

// 2 threads, up to 3 preemptions: 372 interleavings, 0.1 s.
#[test]
fn c14_last_token_of_two() {
    model(Bound::preemptions(3), flow::last_token_of_two::<CoreFlow>);
}

// 2 threads, up to 3 preemptions: 3805 interleavings, 0.5 s.
#[test]
fn c14_refused_call_against_the_last_token() {
    model(Bound::preemptions(3), flow::refused_call_against_the_last_token::<CoreFlow>);
}

// 2 threads, up to 3 preemptions: 14 interleavings, under 0.1 s.
#[test]
fn c14_cancel_against_a_call() {
    model(Bound::preemptions(3), flow::cancel_against_a_call::<CoreFlow>);
}

// 2 threads, up to 3 preemptions: 44 interleavings, under 0.1 s.
#[test]
fn c14_cancelled_probe_against_a_call() {
    model(Bound::preemptions(3), flow::cancelled_probe_against_a_call::<CoreFlow>);
}

// 2 threads, up to 3 preemptions: 102 interleavings, under 0.1 s.
#[test]
fn c14_full_against_a_probe() {
    model(Bound::preemptions(3), flow::full_against_a_probe::<CoreFlow>);
}
