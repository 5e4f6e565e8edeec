//! The pure steps on states that the caller keeps, from arbitrary words.

use core::fmt;

use sluicegate_core::{BucketState, BucketStep, Nanos, quota};

use crate::{Random, decision};

/// Every word is a state of every quota: random ones are decided on at random readings.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    const STEPS: [BucketStep; 3] =
        [BucketStep::new(quota!("7/3s")), BucketStep::new(quota!("999999937/1s")), BucketStep::new(quota!("1/30d"))];
    let mut random = Random::new(1);
    for step in STEPS {
        writeln!(out, "-- {}", step.quota())?;
        for _ in 0..30 {
            let word = random.bits() >> random.below(64);
            let now = Nanos::new(random.bits() >> random.below(64));
            let (state, answer) = step.try_acquire(BucketState::from_bits(word), now, 1);
            let full = step.is_full(state, now);
            decision(out, format_args!("{word} at {}: {} {full}", now.as_u64(), state.to_bits()), &answer)?;
        }
    }
    Ok(())
}
