//! The token bucket under racing callers.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{Bound, CoreBucket, bucket, model};

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn a11_last_token_of_two() {
    model(Bound::NONE, bucket::last_token_of_two::<CoreBucket>);
}

// 3 threads, up to 3 preemptions: 3539 interleavings, 0.3 s.
#[test]
fn a11_last_tokens_of_three() {
    model(Bound::preemptions(3), bucket::last_tokens_of_three::<CoreBucket>);
}

// 3 threads, up to 3 preemptions: 3163 interleavings, 0.2 s.
#[test]
fn c03_costs_above_one() {
    model(Bound::preemptions(3), bucket::costs_above_one::<CoreBucket>);
}

// 2 threads, every interleaving: 32 interleavings, under 0.1 s.
#[test]
fn c03_denial_takes_nothing() {
    model(Bound::NONE, bucket::denial_takes_nothing::<CoreBucket>);
}

// 2 threads, every interleaving: 32 interleavings, under 0.1 s.
#[test]
fn refund_against_acquire() {
    model(Bound::NONE, bucket::refund_against_acquire::<CoreBucket>);
}

// 2 threads, every interleaving: 1668 interleavings, under 0.1 s.
#[test]
fn token_always_there() {
    model(Bound::NONE, bucket::token_always_there::<CoreBucket>);
}

// 3 threads, up to 3 preemptions: 3539 interleavings, 0.3 s.
#[test]
fn refund_never_above_capacity() {
    model(Bound::preemptions(3), bucket::refund_never_above_capacity::<CoreBucket>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn late_reading() {
    model(Bound::NONE, bucket::late_reading::<CoreBucket>);
}

// 2 threads, every interleaving: 76 interleavings, under 0.1 s.
#[test]
fn a13_denial_then_hint() {
    model(Bound::NONE, bucket::denial_then_hint::<CoreBucket>);
}

// 2 threads, every interleaving: 168 interleavings, under 0.1 s.
#[test]
fn c07_looking_takes_nothing() {
    model(Bound::NONE, bucket::looking_takes_nothing::<CoreBucket>);
}
