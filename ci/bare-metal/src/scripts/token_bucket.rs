//! Token buckets at rates that divide no second, and at the slowest and fastest.

use core::fmt;

use sluicegate_core::{Limit, ManualClock, Nanos, Quota, TokenBucket, quota};

use crate::{Random, decision};

/// Every quota is driven by calls of all kinds, at readings that are about a token apart.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for quota in QUOTAS {
        writeln!(out, "-- {quota}")?;
        let bucket = TokenBucket::with_clock(quota, ManualClock::at(START));
        drive(out, &bucket, quota)?;
    }
    for limit in [Limit::Unlimited, Limit::DenyAll] {
        let bucket = TokenBucket::with_limit(limit, ManualClock::new());
        decision(out, format_args!("{limit}"), &bucket.try_acquire(1))?;
    }
    Ok(())
}

fn drive(out: &mut dyn fmt::Write, bucket: &TokenBucket<ManualClock>, quota: Quota) -> fmt::Result {
    let mut random = Random::new(quota.capacity());
    let token = (quota.rate().period_nanos() / quota.rate().tokens()).max(1);
    let capacity = quota.capacity();
    for _ in 0..60 {
        let pause = random.below(token.saturating_mul(3));
        bucket.clock().advance(core::time::Duration::from_nanos(pause));
        let cost = random.one_of(&[1, 1, 1, 2, 0, capacity, capacity / 2, capacity + 1]);
        match random.below(8) {
            0 => {
                bucket.refund(cost);
                writeln!(out, "{pause} refund {cost}: {:?}", bucket.inspect())?;
            }
            1 => decision(out, format_args!("{pause} peek {cost}"), &bucket.peek(cost))?,
            _ => {
                let answer = bucket.try_acquire(cost);
                decision(out, format_args!("{pause} take {cost}"), &answer)?;
                // A hint is right to the nanosecond.
                if let Some(wait) = answer.err().and_then(|denied| denied.retry_after()) {
                    let then = sluicegate_core::Clock::now(bucket.clock()) + wait;
                    let before = then - core::time::Duration::from_nanos(1);
                    writeln!(out, "{} {}", bucket.peek_at(before, cost).is_ok(), bucket.peek_at(then, cost).is_ok())?;
                }
            }
        }
    }
    writeln!(out, "state {}", bucket.state().to_bits())
}

/// Checked by the compiler.
const QUOTAS: [Quota; 10] = [
    quota!("7/3s"),
    quota!("1/30d"),
    quota!("999999937/1s"),
    quota!("999999937/1s burst 3"),
    quota!("9_700_000_000/1s burst 1"),
    quota!("150_000_000/1s burst 1000"),
    quota!("300/1m burst 20"),
    quota!("1/1ns"),
    quota!("1/18446744073709551615ns"),
    quota!("86_399/1d burst 1_000_000"),
];
/// A year of uptime, and a little.
const START: Nanos = Nanos::new(31_557_600_000_000_007);
