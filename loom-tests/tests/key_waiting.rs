//! Waiting for a key under racing callers: its queue comes and goes.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, RuntimeKeys, key_waiting, model};

// 2 threads, up to 3 preemptions: 1578 interleavings, 0.2 s.
#[test]
fn b09_last_leaves_against_joining() {
    model(Bound::preemptions(3), key_waiting::last_leaves_against_joining::<RuntimeKeys>);
}

// 2 threads, up to 4 preemptions: 1912 interleavings, 0.3 s.
#[test]
fn b09_two_leave_at_once() {
    model(Bound::preemptions(4), key_waiting::two_leave_at_once::<RuntimeKeys>);
}

// 2 threads, up to 4 preemptions: 1786 interleavings, 0.3 s.
#[test]
fn b09_look_against_the_last_who_leaves() {
    model(Bound::preemptions(4), key_waiting::look_against_the_last_who_leaves::<RuntimeKeys>);
}

// 2 threads, up to 3 preemptions: 3014 interleavings, 0.5 s.
#[test]
fn give_back_against_joining() {
    model(Bound::preemptions(3), key_waiting::give_back_against_joining::<RuntimeKeys>);
}

// 2 threads, up to 3 preemptions: 1652 interleavings, 0.3 s.
#[test]
fn b06_give_back_against_leaving() {
    model(Bound::preemptions(3), key_waiting::give_back_against_leaving::<RuntimeKeys>);
}

// 2 threads, up to 4 preemptions: 270 interleavings, under 0.1 s.
#[test]
fn b05_close_against_joining() {
    model(Bound::preemptions(4), key_waiting::close_against_joining::<RuntimeKeys>);
}
