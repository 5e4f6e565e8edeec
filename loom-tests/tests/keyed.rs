//! The keyed store under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CoreStore, keyed, model};

// 2 threads, up to 3 preemptions: 3830 interleavings, 0.5 s.
#[test]
fn a11_first_use_of_two() {
    model(Bound::preemptions(3), keyed::first_use_of_two::<CoreStore>);
}

// 3 threads, up to 1 preemption: 2710 interleavings, 0.6 s.
#[test]
fn a11_first_use_of_three() {
    model(Bound::preemptions(1), keyed::first_use_of_three::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 1439 interleavings, 0.2 s.
#[test]
fn a11_last_token_of_a_present_key() {
    model(Bound::preemptions(3), keyed::last_token_of_a_present_key::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 498 interleavings, 0.1 s.
#[test]
fn d03_last_place_of_two() {
    model(Bound::preemptions(3), keyed::last_place_of_two::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 3830 interleavings, 0.5 s.
#[test]
fn d03_place_of_a_full_key() {
    model(Bound::preemptions(3), keyed::place_of_a_full_key::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 139 interleavings, under 0.1 s.
#[test]
fn a23_clean_up_against_acquire() {
    model(Bound::preemptions(3), keyed::clean_up_against_acquire::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 139 interleavings, under 0.1 s.
#[test]
fn a23_clean_up_of_a_spent_key() {
    model(Bound::preemptions(3), keyed::clean_up_of_a_spent_key::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 139 interleavings, under 0.1 s.
#[test]
fn d03_clean_up_against_late_reading() {
    model(Bound::preemptions(3), keyed::clean_up_against_late_reading::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 1088 interleavings, 0.2 s.
#[test]
fn d02_refund_and_clean_up_against_acquire() {
    model(Bound::preemptions(3), keyed::refund_and_clean_up_against_acquire::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 376 interleavings, under 0.1 s.
#[test]
fn c08_change_of_quota_against_acquire() {
    model(Bound::preemptions(3), keyed::change_of_quota_against_acquire::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 3830 interleavings, 0.5 s.
#[test]
fn c08_change_of_quota_against_first_use() {
    model(Bound::preemptions(3), keyed::change_of_quota_against_first_use::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 139 interleavings, under 0.1 s.
#[test]
fn c08_two_changes_of_quota() {
    model(Bound::preemptions(3), keyed::two_changes_of_quota::<CoreStore>);
}
