//! Handles of keys, under racing callers and a store that takes keys back.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_core::Tiers;
use sluicegate_loom_tests::{Bound, CoreStore, handles, model};

// 2 threads, up to 3 preemptions: 36 interleavings, under 0.1 s.
#[test]
fn a11_last_token_of_a_handle_and_the_store() {
    model(Bound::preemptions(3), handles::last_token_of_a_handle_and_the_store::<CoreStore>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn a11_last_token_of_two_handles() {
    model(Bound::NONE, handles::last_token_of_two_handles::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 243 interleavings, under 0.1 s.
#[test]
fn c08_change_of_quota_against_a_handle() {
    model(Bound::preemptions(3), handles::change_of_quota_against_a_handle::<CoreStore>);
}

// 3 threads, up to 1 preemption: 7920 interleavings, 1.4 s.
#[test]
fn c08_change_of_quota_against_two_handles() {
    model(Bound::preemptions(1), handles::change_of_quota_against_two_handles::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 1036 interleavings, 0.2 s.
#[test]
fn c08_tokens_are_there_before_and_after() {
    model(Bound::preemptions(3), handles::tokens_are_there_before_and_after::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 4271 interleavings, 0.6 s.
#[test]
fn c08_change_by_clock_against_a_handle() {
    model(Bound::preemptions(3), handles::change_by_clock_against_a_handle::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 214 interleavings, under 0.1 s.
#[test]
fn c15_remove_against_a_handle() {
    model(Bound::preemptions(3), handles::remove_against_a_handle::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 11 interleavings, under 0.1 s.
#[test]
fn a23_clean_up_against_a_handle() {
    model(Bound::preemptions(3), handles::clean_up_against_a_handle::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 18 interleavings, under 0.1 s.
#[test]
fn a23_drop_of_the_last_handle_against_clean_up() {
    model(Bound::preemptions(3), handles::drop_of_the_last_handle_against_clean_up::<CoreStore>);
}

// 3 threads, up to 3 preemptions: 297 interleavings, 0.1 s.
#[test]
fn a23_drop_of_two_handles_against_clean_up() {
    model(Bound::preemptions(3), handles::drop_of_two_handles_against_clean_up::<CoreStore>);
}

// 3 threads, up to 3 preemptions: 1289 interleavings, 0.3 s.
#[test]
fn a23_drop_of_a_full_keys_handle_against_acquire() {
    model(Bound::preemptions(3), handles::drop_of_a_full_keys_handle_against_acquire::<CoreStore>);
}

// 2 threads, up to 3 preemptions: 129 interleavings, under 0.1 s.
#[test]
fn c08_change_of_tier_against_a_handle() {
    model(Bound::preemptions(3), handles::change_of_quota_against_a_handle::<CoreStore<Tiers>>);
}

// 2 threads, up to 3 preemptions: 556 interleavings, 0.1 s.
#[test]
fn c08_tokens_are_there_before_and_after_a_change_of_tier() {
    model(Bound::preemptions(3), handles::tokens_are_there_before_and_after::<CoreStore<Tiers>>);
}

// 2 threads, up to 3 preemptions: 771 interleavings, 0.1 s.
#[test]
fn c08_change_of_tier_by_clock_against_a_handle() {
    model(Bound::preemptions(3), handles::change_by_clock_against_a_handle::<CoreStore<Tiers>>);
}

// 3 threads, up to 2 preemptions: 47810 interleavings, 8.5 s.
#[test]
fn c08_change_of_tier_against_two_handles() {
    model(Bound::preemptions(2), handles::change_of_quota_against_two_handles::<CoreStore<Tiers>>);
}
