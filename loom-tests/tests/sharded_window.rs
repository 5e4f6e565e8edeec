//! The sharded window under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CoreWindow, model, window};

// 2 threads, every interleaving: not measured.
#[test]
fn a17_last_unit_of_one_shard() {
    model(Bound::NONE, window::last_unit_of_one_shard::<CoreWindow>);
}

// 2 threads, every interleaving: not measured.
#[test]
fn a16_last_unit_across_shards() {
    model(Bound::NONE, window::last_unit_across_shards::<CoreWindow>);
}

// 2 threads, every interleaving: not measured.
#[test]
fn a16_sweep_against_sweep() {
    model(Bound::NONE, window::sweep_against_sweep::<CoreWindow>);
}

// 3 threads, up to 3 preemptions: not measured.
#[test]
fn a17_two_units_of_three() {
    model(Bound::preemptions(3), window::two_units_of_three::<CoreWindow>);
}

// 2 threads, every interleaving: not measured.
#[test]
fn denial_takes_nothing() {
    model(Bound::NONE, window::denial_takes_nothing::<CoreWindow>);
}

// 2 threads, every interleaving: not measured.
#[test]
fn rollover_in_one_shard() {
    model(Bound::NONE, window::rollover_in_one_shard::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: not measured.
#[test]
fn rollover_against_late_reader() {
    model(Bound::preemptions(3), window::rollover_against_late_reader::<CoreWindow>);
}

// 2 threads, every interleaving: not measured.
#[test]
fn refund_against_acquire_in_one_shard() {
    model(Bound::NONE, window::refund_against_acquire_in_one_shard::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: not measured.
#[test]
fn refund_against_acquire() {
    model(Bound::preemptions(3), window::refund_against_acquire::<CoreWindow>);
}

// 2 threads, every interleaving: not measured.
#[test]
fn refund_against_refund() {
    model(Bound::NONE, window::refund_against_refund::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: not measured.
#[test]
fn refund_against_rollover() {
    model(Bound::preemptions(3), window::refund_against_rollover::<CoreWindow>);
}

// 2 threads, every interleaving: not measured.
#[test]
fn a16_unit_always_free() {
    model(Bound::NONE, window::unit_always_free::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: not measured.
#[test]
fn a16_unit_always_seen() {
    model(Bound::preemptions(3), window::unit_always_seen::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: not measured.
#[test]
fn a18_pair_always_free() {
    model(Bound::preemptions(3), window::pair_always_free::<CoreWindow>);
}

// 2 threads, every interleaving: not measured.
#[test]
fn a18_both_shards_against_single() {
    model(Bound::NONE, window::both_shards_against_single::<CoreWindow>);
}

// 3 threads, up to 2 preemptions: not measured.
#[test]
fn a18_both_shards_against_singles() {
    model(Bound::preemptions(2), window::both_shards_against_singles::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: not measured.
#[test]
fn a18_pair_against_pair() {
    model(Bound::preemptions(3), window::pair_against_pair::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: not measured.
#[test]
fn a18_both_shards_against_refund() {
    model(Bound::preemptions(3), window::both_shards_against_refund::<CoreWindow>);
}

// 3 threads, up to 2 preemptions: not measured.
#[test]
fn a18_both_shards_refund_and_single() {
    model(Bound::preemptions(2), window::both_shards_refund_and_single::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: not measured.
#[test]
fn a18_both_shards_against_rollover() {
    model(Bound::preemptions(3), window::both_shards_against_rollover::<CoreWindow>);
}

// 3 threads, up to 2 preemptions: not measured.
#[test]
fn broken_hold() {
    model(Bound::preemptions(2), window::broken_hold::<CoreWindow>);
}

// 2 threads, every interleaving: not measured.
#[test]
fn denial_under_rollover() {
    model(Bound::NONE, window::denial_under_rollover::<CoreWindow>);
}
