//! Hierarchies under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_core::{ManualClock, SlidingCounter};
use sluicegate_loom_tests::{Bound, CoreTree, hierarchy, model};

// 2 threads, up to 3 preemptions: 966 interleavings, 0.4 s.
#[test]
fn c09_last_unit_of_the_root() {
    model(Bound::preemptions(3), hierarchy::last_unit_of_the_root::<CoreTree>);
}

// 3 threads, up to 3 preemptions: 22859 interleavings, 10 s.
#[test]
fn c09_path_against_singles() {
    model(Bound::preemptions(3), hierarchy::path_against_singles::<CoreTree>);
}

// 3 threads, up to 2 preemptions: 11496 interleavings, 6 s.
#[test]
fn c09_path_against_path_and_single() {
    model(Bound::preemptions(2), hierarchy::path_against_path_and_single::<CoreTree>);
}

// 2 threads, up to 3 preemptions: 129 interleavings, under 0.1 s.
#[test]
fn c09_hopeless_request_holds_nothing() {
    model(Bound::preemptions(3), hierarchy::hopeless_request_holds_nothing::<CoreTree>);
}

// 2 threads, up to 2 preemptions: 7459 interleavings, 4 s.
#[test]
fn c09_opposite_orders() {
    model(Bound::preemptions(2), hierarchy::opposite_orders::<CoreTree>);
}

// 2 threads, up to 3 preemptions: 282 interleavings, under 0.1 s.
#[test]
fn c09_refused_inside_costs_nothing_outside() {
    model(Bound::preemptions(3), hierarchy::refused_inside_costs_nothing_outside::<CoreTree>);
}

// 2 threads, up to 2 preemptions: 943 interleavings, 0.2 s. A sliding counter for the window.
#[test]
fn c09_opposite_orders_over_a_counter() {
    model(Bound::preemptions(2), hierarchy::opposite_orders::<CoreTree<SlidingCounter<ManualClock>>>);
}

// 3 threads, up to 2 preemptions: 929 interleavings, 0.2 s. A sliding counter for the window.
#[test]
fn c09_path_against_singles_over_a_counter() {
    model(Bound::preemptions(2), hierarchy::path_against_singles::<CoreTree<SlidingCounter<ManualClock>>>);
}
