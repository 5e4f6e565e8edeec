//! Short scripts of every kind of call, raced in every combination, with outcomes that some order must explain.

use sluicegate_loom_tests::scripts::{Door, Race, StillBucket, TwoShards};
use sluicegate_loom_tests::{Bound, CoreBucket, CoreWindow, models};

// 864 races of 2 threads.
#[test]
fn bucket_two_against_one() {
    run::<StillBucket<CoreBucket>>(Bound::preemptions(3), Race::two_against_one());
}

// 80 races of 3 threads.
#[test]
fn bucket_three_at_once() {
    run::<StillBucket<CoreBucket>>(Bound::preemptions(2), Race::three_at_once());
}

// 864 races of 2 threads.
#[test]
fn window_two_against_one() {
    run::<TwoShards<CoreWindow>>(Bound::preemptions(2), Race::two_against_one());
}

// 80 races of 3 threads.
#[test]
fn window_three_at_once() {
    run::<TwoShards<CoreWindow>>(Bound::preemptions(1), Race::three_at_once());
}

fn run<D: Door>(bound: Bound, races: Vec<Race>) {
    models(bound, races, Race::run::<D>);
}
