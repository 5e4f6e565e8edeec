//! Waiting under racing callers: a token bucket, a concurrency limit, whose permits come back when they are dropped, and reservations
//! of an adjustable bucket.
//!
//! Each body says what it proves. Beside each test: its threads, how many preemptions bound it, and what it costs.

use sluicegate_loom_tests::{
    Bound, RuntimeAdjustable, RuntimeBucket, RuntimePermits, RuntimeReservations, model, waiting,
};

// 2 threads, up to 4 preemptions: 5990 interleavings, 1.3 s.
#[test]
fn give_back_against_beginning() {
    model(Bound::preemptions(4), waiting::give_back_against_beginning::<RuntimeBucket>);
}

// 2 threads, up to 4 preemptions: 2543 interleavings, 0.3 s.
#[test]
fn release_against_beginning() {
    model(Bound::preemptions(4), waiting::give_back_against_beginning::<RuntimePermits>);
}

// 3 threads, up to 2 preemptions: 19147 interleavings, 4 s.
#[test]
fn give_back_against_two() {
    model(Bound::preemptions(2), waiting::give_back_against_two::<RuntimeBucket>);
}

// 3 threads, up to 2 preemptions: 9584 interleavings, 1.5 s.
#[test]
fn release_against_two() {
    model(Bound::preemptions(2), waiting::give_back_against_two::<RuntimePermits>);
}

// 3 threads, up to 3 preemptions: 12042 interleavings, 3 s.
#[test]
fn b06_give_back_against_cancel() {
    model(Bound::preemptions(3), waiting::give_back_against_cancel::<RuntimeBucket>);
}

// 3 threads, up to 3 preemptions: 4549 interleavings, 0.7 s.
#[test]
fn b06_release_against_cancel() {
    model(Bound::preemptions(3), waiting::give_back_against_cancel::<RuntimePermits>);
}

// 2 threads, up to 4 preemptions: 2529 interleavings, 0.5 s.
#[test]
fn b06_large_head_leaves_against_beginning() {
    model(Bound::preemptions(4), waiting::large_head_leaves_against_beginning::<RuntimeBucket>);
}

// 2 threads, up to 4 preemptions: 1861 interleavings, 0.3 s.
#[test]
fn b06_large_head_leaves_against_beginning_for_permits() {
    model(Bound::preemptions(4), waiting::large_head_leaves_against_beginning::<RuntimePermits>);
}

// 2 threads, up to 4 preemptions: 1663 interleavings, 0.2 s.
#[test]
fn close_against_beginning() {
    model(Bound::preemptions(4), waiting::close_against_beginning::<RuntimeBucket>);
}

// 2 threads, every interleaving: 105 interleavings, under 0.1 s.
#[test]
fn close_against_give_back() {
    model(Bound::NONE, waiting::close_against_give_back::<RuntimeBucket>);
}

// 2 threads, every interleaving: 105 interleavings, under 0.1 s.
#[test]
fn close_against_release() {
    model(Bound::NONE, waiting::close_against_give_back::<RuntimePermits>);
}

// 2 threads, up to 3 preemptions: 1569 interleavings, 0.3 s.
#[test]
fn b06_timeout_against_give_back() {
    model(Bound::preemptions(3), waiting::timeout_against_give_back::<RuntimeBucket>);
}

// 2 threads, up to 3 preemptions: 1047 interleavings, 0.1 s.
#[test]
fn b06_timeout_against_release() {
    model(Bound::preemptions(3), waiting::timeout_against_release::<RuntimePermits>);
}

// 3 threads, up to 3 preemptions: 1228 interleavings, 0.2 s.
#[test]
fn b06_timeout_against_barging() {
    model(Bound::preemptions(3), waiting::timeout_against_barging::<RuntimeBucket>);
}

// 3 threads, up to 3 preemptions: 299 interleavings, 0.1 s.
#[test]
fn give_back_against_the_timer() {
    model(Bound::preemptions(3), waiting::give_back_against_the_timer::<RuntimeBucket>);
}

// 2 threads, up to 4 preemptions: 4351 interleavings, 0.6 s.
#[test]
fn give_back_in_two_parts() {
    model(Bound::preemptions(4), waiting::give_back_in_two_parts::<RuntimeBucket>);
}

// 2 threads, up to 4 preemptions: 1394 interleavings, 0.2 s.
#[test]
fn b06_head_leaves_and_time_is_minded() {
    model(Bound::preemptions(4), waiting::head_leaves_and_time_is_minded::<RuntimeBucket>);
}

// 3 threads, up to 3 preemptions: 544 interleavings, 0.1 s.
#[test]
fn b06_head_leaves_against_the_turn() {
    model(Bound::preemptions(3), waiting::head_leaves_against_the_turn::<RuntimeBucket>);
}

// 2 threads, up to 3 preemptions: 2715 interleavings, 0.6 s.
#[test]
fn d02_settle_against_beginning() {
    model(Bound::preemptions(3), waiting::settle_against_beginning::<RuntimeReservations>);
}

// 3 threads, up to 3 preemptions: 352 interleavings, 0.1 s.
#[test]
fn d02_settle_against_the_timer() {
    model(Bound::preemptions(3), waiting::settle_against_the_timer::<RuntimeReservations>);
}

// 3 threads, up to 2 preemptions: 633 interleavings, 0.2 s.
#[test]
fn d02_settle_against_cancel() {
    model(Bound::preemptions(2), waiting::settle_against_cancel::<RuntimeReservations>);
}

// 3 threads, up to 2 preemptions: 603 interleavings, 0.2 s.
#[test]
fn d02_reservation_against_cancel() {
    model(Bound::preemptions(2), waiting::give_back_against_cancel::<RuntimeReservations>);
}

// 2 threads, up to 3 preemptions: 1905 interleavings, 0.3 s.
#[test]
fn c05_eviction_against_give_back() {
    model(Bound::preemptions(3), waiting::eviction_against_give_back::<RuntimeBucket>);
}

// 2 threads, up to 3 preemptions: 972 interleavings, 0.2 s.
#[test]
fn c05_eviction_against_release() {
    model(Bound::preemptions(3), waiting::eviction_against_give_back::<RuntimePermits>);
}

// 2 threads, up to 3 preemptions: 878 interleavings, 0.1 s.
#[test]
fn c05_eviction_against_eviction() {
    model(Bound::preemptions(3), waiting::eviction_against_eviction::<RuntimeBucket>);
}

// 3 threads, every interleaving: 3418 interleavings, 0.8 s.
#[test]
fn b07_newest_first_against_the_timer() {
    model(Bound::NONE, waiting::newest_first_against_the_timer::<RuntimeBucket>);
}

// 2 threads, up to 3 preemptions: 2223 interleavings, 0.7 s.
#[test]
fn b06_relief_against_a_call() {
    model(Bound::preemptions(3), waiting::relief_against_a_call::<RuntimeBucket>);
}

// 2 threads, up to 3 preemptions: 415 interleavings, 0.1 s.
#[test]
fn b06_relief_against_barging() {
    model(Bound::preemptions(3), waiting::relief_against_barging::<RuntimeBucket>);
}

// 3 threads, up to 2 preemptions: 1575 interleavings, 1 s.
#[test]
fn all_of_it_behind_one_that_was_granted() {
    model(Bound::preemptions(2), waiting::all_of_it_behind_one_that_was_granted::<RuntimeAdjustable>);
}

// 3 threads, up to 2 preemptions: 1139 interleavings, 0.5 s.
#[test]
fn b06_give_back_against_cancel_where_it_is_held() {
    model(Bound::preemptions(2), waiting::give_back_against_cancel::<RuntimeAdjustable>);
}
