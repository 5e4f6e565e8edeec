//! A concurrency limit that adapts itself, under racing releases.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::adapting::{self, CoreAdapting};
use sluicegate_loom_tests::{Bound, model};

// 2 threads, up to 4 preemptions: 3552 interleavings, 0.6 s.
#[test]
fn window_closed_by_two() {
    model(Bound::preemptions(4), adapting::window_closed_by_two::<CoreAdapting>);
}

// 2 threads, up to 4 preemptions: 6871 interleavings, 0.7 s.
#[test]
fn two_windows_closed() {
    model(Bound::preemptions(4), adapting::two_windows_closed::<CoreAdapting>);
}

// 2 threads, every interleaving: 1764 interleavings, 0.2 s.
#[test]
fn closed_by_hand_against_a_window() {
    model(Bound::NONE, adapting::closed_by_hand_against_a_window::<CoreAdapting>);
}
