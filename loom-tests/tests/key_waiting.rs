//! Waiting for a key under racing callers: its queue comes and goes.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, RuntimeKeys, key_waiting, model};

// 2 threads, up to 3 preemptions.
#[test]
fn b09_last_leaves_against_joining() {
    model(Bound::preemptions(3), key_waiting::last_leaves_against_joining::<RuntimeKeys>);
}

// 2 threads, up to 3 preemptions.
#[test]
fn b09_two_leave_at_once() {
    model(Bound::preemptions(3), key_waiting::two_leave_at_once::<RuntimeKeys>);
}

// 2 threads, up to 3 preemptions.
#[test]
fn b09_look_against_the_last_who_leaves() {
    model(Bound::preemptions(3), key_waiting::look_against_the_last_who_leaves::<RuntimeKeys>);
}

// 2 threads, up to 3 preemptions.
#[test]
fn give_back_against_joining() {
    model(Bound::preemptions(3), key_waiting::give_back_against_joining::<RuntimeKeys>);
}

// 2 threads, up to 3 preemptions.
#[test]
fn b06_give_back_against_leaving() {
    model(Bound::preemptions(3), key_waiting::give_back_against_leaving::<RuntimeKeys>);
}

// 2 threads, up to 3 preemptions.
#[test]
fn b05_close_against_joining() {
    model(Bound::preemptions(3), key_waiting::close_against_joining::<RuntimeKeys>);
}
