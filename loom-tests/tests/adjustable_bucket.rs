//! The bucket that is reserved from and changed, under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CoreAdjustable, adjustable, model};

// 2 threads, every interleaving: 4625 interleavings, 0.9 s.
#[test]
fn a11_last_token_of_two() {
    model(Bound::NONE, adjustable::last_token_of_two::<CoreAdjustable>);
}

// 2 threads, up to 3 preemptions: 304 interleavings, 0.1 s.
#[test]
fn d02_cancel_against_acquire() {
    model(Bound::preemptions(3), adjustable::cancel_against_acquire::<CoreAdjustable>);
}

// 2 threads, up to 3 preemptions: 1448 interleavings, 0.3 s.
#[test]
fn d02_cancel_against_cancel() {
    model(Bound::preemptions(3), adjustable::cancel_against_cancel::<CoreAdjustable>);
}

// 2 threads, up to 3 preemptions: 304 interleavings, 0.1 s.
#[test]
fn d02_settle_against_acquire() {
    model(Bound::preemptions(3), adjustable::settle_against_acquire::<CoreAdjustable>);
}

// 2 threads, up to 3 preemptions: 304 interleavings, 0.1 s.
#[test]
fn d02_held_is_there_to_settle() {
    model(Bound::preemptions(3), adjustable::held_is_there_to_settle::<CoreAdjustable>);
}

// 2 threads, up to 3 preemptions: 304 interleavings, 0.1 s.
#[test]
fn d02_hold_outlives_refill() {
    model(Bound::preemptions(3), adjustable::hold_outlives_refill::<CoreAdjustable>);
}

// 2 threads, up to 3 preemptions: 308 interleavings, 0.1 s.
#[test]
fn c08_nothing_old_lands_after_a_change() {
    model(Bound::preemptions(3), adjustable::nothing_old_lands_after_a_change::<CoreAdjustable>);
}

// 3 threads, up to 3 preemptions: 7462 interleavings, 2 s.
#[test]
fn c08_change_keeps_the_level() {
    model(Bound::preemptions(3), adjustable::change_keeps_the_level::<CoreAdjustable>);
}

// 2 threads, up to 3 preemptions: 1599 interleavings, 0.4 s.
#[test]
fn c08_two_changes_within_a_decision() {
    model(Bound::preemptions(3), adjustable::two_changes_within_a_decision::<CoreAdjustable>);
}

// 2 threads, every interleaving: 84 interleavings, under 0.1 s.
#[test]
fn c08_change_against_change() {
    model(Bound::NONE, adjustable::change_against_change::<CoreAdjustable>);
}

// 2 threads, up to 3 preemptions: 487 interleavings, 0.1 s.
#[test]
fn c08_change_under_a_reservation() {
    model(Bound::preemptions(3), adjustable::change_under_a_reservation::<CoreAdjustable>);
}
