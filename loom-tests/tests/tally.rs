//! Counters under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_core::Counters;
use sluicegate_loom_tests::{Bound, model, tally};

// 2 threads, up to 3 preemptions: 14224 interleavings, 1.5 s.
#[test]
fn c16_burst_seen_by_two() {
    model(Bound::preemptions(3), tally::burst_seen_by_two::<Counters>);
}

// 2 threads, up to 3 preemptions: 4844 interleavings, 0.7 s.
#[test]
fn c16_costs_of_two() {
    model(Bound::preemptions(3), tally::costs_of_two::<Counters>);
}
