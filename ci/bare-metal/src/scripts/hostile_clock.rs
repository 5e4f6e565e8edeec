//! Clocks that stall, jump, step back and run past the horizon.

use core::fmt;

use sluicegate_core::{FixedShard, ManualClock, Nanos, Shard, ShardedWindow, TokenBucket, WindowLimit, quota};

use crate::decision;

/// A bucket and a window on the same absurd readings.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    const QUOTAS: [sluicegate_core::Quota; 3] = [quota!("7/3s"), quota!("1/30d burst 2"), quota!("999999937/1s")];
    for quota in QUOTAS {
        writeln!(out, "-- {quota}")?;
        let bucket = TokenBucket::with_clock(quota, ManualClock::new());
        let window = WindowLimit::from_rate(quota.rate()).map(|limit| {
            ShardedWindow::<[Shard; 3], _, _>::with_array(limit, ManualClock::new(), FixedShard(1))
        });
        let Ok(window) = window else { return Err(fmt::Error) };
        for reading in READINGS {
            let now = Nanos::new(reading);
            for cost in [1, quota.capacity(), u64::MAX] {
                decision(out, format_args!("bucket {reading} {cost}"), &bucket.try_acquire_at(now, cost))?;
                decision(out, format_args!("window {reading} {cost}"), &window.try_acquire_at(now, cost))?;
            }
        }
    }
    Ok(())
}

const HORIZON: u64 = Nanos::HORIZON.as_u64();
const READINGS: [u64; 14] = [
    0,
    1,
    0,
    3_000_000_000,
    2_999_999_999,
    1 << 32,
    (1 << 32) - 1,
    HORIZON - 1,
    HORIZON,
    HORIZON + 1,
    u64::MAX,
    1 << 63,
    5,
    HORIZON - 1_000_000_000,
];
