//! Hierarchies under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_core::{ManualClock, SlidingCounter};
use sluicegate_loom_tests::{Bound, CoreTree, HoldingTree, hierarchy, model};

// 2 threads, up to 3 preemptions: 966 interleavings, 0.4 s.
#[test]
fn c09_last_unit_of_the_root() {
    model(Bound::preemptions(3), hierarchy::last_unit_of_the_root::<CoreTree>);
}

// 3 threads, up to 3 preemptions: 16520 interleavings, 5 s.
#[test]
fn c09_path_against_singles() {
    model(Bound::preemptions(3), hierarchy::path_against_singles::<CoreTree>);
}

// 3 threads, up to 2 preemptions: 5518 interleavings, 1.6 s.
#[test]
fn c09_path_against_path_and_single() {
    model(Bound::preemptions(2), hierarchy::path_against_path_and_single::<CoreTree>);
}

// 2 threads, up to 3 preemptions: 129 interleavings, under 0.1 s.
#[test]
fn c09_hopeless_request_holds_nothing() {
    model(Bound::preemptions(3), hierarchy::hopeless_request_holds_nothing::<CoreTree>);
}

// 2 threads, up to 2 preemptions: 1670 interleavings, 0.4 s.
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

// 2 threads, up to 3 preemptions: 3321 interleavings, 0.7 s. All levels hold, and keep when all do.
#[test]
fn c09_last_unit_of_the_root_held() {
    model(Bound::preemptions(3), hierarchy::last_unit_of_the_root::<HoldingTree>);
}

// 3 threads, up to 2 preemptions: 1365 interleavings, 0.3 s. All levels hold, and keep when all do.
#[test]
fn c09_path_against_singles_held() {
    model(Bound::preemptions(2), hierarchy::path_against_singles::<HoldingTree>);
}

// 2 threads, up to 2 preemptions: 2765 interleavings, 0.6 s. All levels hold, and keep when all do.
#[test]
fn c09_opposite_orders_held() {
    model(Bound::preemptions(2), hierarchy::opposite_orders::<HoldingTree>);
}
