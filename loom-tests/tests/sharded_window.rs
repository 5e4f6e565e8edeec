//! The sharded window under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CoreWindow, model, window};

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn a17_last_unit_of_one_shard() {
    model(Bound::NONE, window::last_unit_of_one_shard::<CoreWindow>);
}

// 2 threads, every interleaving: 240 interleavings, under 0.1 s.
#[test]
fn a16_last_unit_across_shards() {
    model(Bound::NONE, window::last_unit_across_shards::<CoreWindow>);
}

// 2 threads, up to 4 preemptions: 6349 interleavings, 1.2 s.
#[test]
fn a16_sweep_against_sweep() {
    model(Bound::preemptions(4), window::sweep_against_sweep::<CoreWindow>);
}

// 3 threads, up to 3 preemptions: 3604 interleavings, 0.6 s.
#[test]
fn a17_two_units_of_three() {
    model(Bound::preemptions(3), window::two_units_of_three::<CoreWindow>);
}

// 2 threads, every interleaving: 168 interleavings, under 0.1 s.
#[test]
fn denial_takes_nothing() {
    model(Bound::NONE, window::denial_takes_nothing::<CoreWindow>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn rollover_in_one_shard() {
    model(Bound::NONE, window::rollover_in_one_shard::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 27387 interleavings, 2.6 s.
#[test]
fn rollover_against_late_reader() {
    model(Bound::preemptions(3), window::rollover_against_late_reader::<CoreWindow>);
}

// 2 threads, every interleaving: 168 interleavings, under 0.1 s.
#[test]
fn refund_against_acquire_in_one_shard() {
    model(Bound::NONE, window::refund_against_acquire_in_one_shard::<CoreWindow>);
}

// 2 threads, up to 4 preemptions: 9159 interleavings, 1.2 s.
#[test]
fn look_at_one_shard_never_waits() {
    model(Bound::preemptions(4), window::look_at_one_shard_never_waits::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 3536 interleavings, 0.3 s.
#[test]
fn refund_against_acquire() {
    model(Bound::preemptions(3), window::refund_against_acquire::<CoreWindow>);
}

// 2 threads, every interleaving: 633 interleavings, 0.1 s.
#[test]
fn refund_against_refund() {
    model(Bound::NONE, window::refund_against_refund::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 3591 interleavings, 0.4 s.
#[test]
fn refund_against_rollover() {
    model(Bound::preemptions(3), window::refund_against_rollover::<CoreWindow>);
}

// 2 threads, up to 4 preemptions: 22752 interleavings, 3.4 s.
#[test]
fn a16_unit_always_free() {
    model(Bound::preemptions(4), window::unit_always_free::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 17187 interleavings, 2.3 s.
#[test]
fn a16_unit_always_seen() {
    model(Bound::preemptions(3), window::unit_always_seen::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 10855 interleavings, 1.4 s.
#[test]
fn a18_pair_always_free() {
    model(Bound::preemptions(3), window::pair_always_free::<CoreWindow>);
}

// 2 threads, every interleaving: 1458 interleavings, 0.1 s.
#[test]
fn a18_both_shards_against_single() {
    model(Bound::NONE, window::both_shards_against_single::<CoreWindow>);
}

// 3 threads, up to 2 preemptions: 25490 interleavings, 4.8 s.
#[test]
fn a18_both_shards_against_singles() {
    model(Bound::preemptions(2), window::both_shards_against_singles::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 61750 interleavings, 8.9 s.
#[test]
fn a18_both_shards_against_two_in_a_row() {
    model(Bound::preemptions(3), window::both_shards_against_two_in_a_row::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 11311 interleavings, 1.5 s.
#[test]
fn a18_pair_against_pair() {
    model(Bound::preemptions(3), window::pair_against_pair::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 8922 interleavings, 1.2 s.
#[test]
fn a18_both_shards_against_refund() {
    model(Bound::preemptions(3), window::both_shards_against_refund::<CoreWindow>);
}

// 3 threads, up to 2 preemptions: 120015 interleavings, 22 s.
#[test]
fn a18_both_shards_refund_and_single() {
    model(Bound::preemptions(2), window::both_shards_refund_and_single::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 10006 interleavings, 1.3 s.
#[test]
fn a18_both_shards_against_rollover() {
    model(Bound::preemptions(3), window::both_shards_against_rollover::<CoreWindow>);
}

// 2 threads, every interleaving: 240 interleavings, under 0.1 s.
#[test]
fn a18_hold_overtaken_by_a_window() {
    model(Bound::NONE, window::hold_overtaken_by_a_window::<CoreWindow>);
}

// 3 threads, up to 2 preemptions: 3301 interleavings, 0.8 s.
#[test]
fn broken_hold() {
    model(Bound::preemptions(2), window::broken_hold::<CoreWindow>);
}

// 2 threads, up to 4 preemptions: 2405 interleavings, 0.3 s.
#[test]
fn denial_under_rollover() {
    model(Bound::preemptions(4), window::denial_under_rollover::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 8588 interleavings, 1.0 s.
#[test]
fn refund_against_denials() {
    model(Bound::preemptions(3), window::refund_against_denials::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 2003 interleavings, 0.2 s.
#[test]
fn refund_against_known_spent() {
    model(Bound::preemptions(3), window::refund_against_known_spent::<CoreWindow>);
}

// 2 threads, up to 3 preemptions: 12 interleavings, under 0.1 s.
#[test]
fn known_spent_against_rollover() {
    model(Bound::preemptions(3), window::known_spent_against_rollover::<CoreWindow>);
}
