//! A bucket whose quota changes, and from which tokens are reserved and debited.

use core::fmt;
use core::time::Duration;

use sluicegate_core::{AdjustableBucket, Inheritance, Limit, ManualClock, Nanos, Quota, quota};

use crate::{Random, decision};

/// Changes of all kinds between quotas of all kinds, with takes, reservations and debits in between.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    let bucket = AdjustableBucket::with_clock(QUOTAS[0], ManualClock::at(Nanos::from_secs(86_400)));
    let mut random = Random::new(7);
    for _ in 0..200 {
        bucket.clock().advance(Duration::from_nanos(random.below(900_000_000)));
        let cost = random.one_of(&[0, 1, 1, 2, 5, 40]);
        match random.below(8) {
            0 => {
                let limit = Limit::Quota(random.one_of(&QUOTAS));
                let inheritance = random.one_of(&INHERITANCE);
                bucket.adjust(limit, inheritance);
                writeln!(out, "now {limit}, {inheritance:?}: {:?}", bucket.inspect())?;
            }
            1 => match bucket.reserve(cost) {
                Ok(reserved) => {
                    let spent = random.below(cost + 3);
                    bucket.clock().advance(Duration::from_nanos(random.below(900_000_000)));
                    write!(out, "hold {cost}, {} held, spent {spent}: ", bucket.held())?;
                    writeln!(out, "{:?}", reserved.settle(spent))?;
                }
                Err(denied) => writeln!(out, "hold {cost}: {denied:?}")?,
            },
            2 => {
                let was_held = bucket.reserve(cost).is_ok();
                writeln!(out, "hold and cancel {cost}: {was_held}, {:?}", bucket.inspect())?;
            }
            3 => writeln!(out, "debit {cost}: {:?}", bucket.debit(cost))?,
            4 => {
                bucket.refund(cost);
                writeln!(out, "refund {cost}: {:?}", bucket.inspect())?;
            }
            _ => decision(out, format_args!("take {cost}"), &bucket.try_acquire(cost))?,
        }
    }
    Ok(())
}

const QUOTAS: [Quota; 6] = [
    quota!("7/3s"),
    quota!("999999937/1s burst 40"),
    quota!("5/1s burst 20 debt 10"),
    quota!("1/30d burst 100"),
    quota!("300/1m burst 3"),
    quota!("3/1ms burst 50 debt 7"),
];
const INHERITANCE: [Inheritance; 5] =
    [Inheritance::Level, Inheritance::Spent, Inheritance::Fraction, Inheritance::Full, Inheritance::Empty];
