//! Operations on an adjustable bucket, with reservations and changes of the limit, beside an ideal one in rationals of any
//! size. The model is the one of the tests.
#![no_main]

use core::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sluicegate_core::{AdjustableBucket, Inheritance, Limit, ManualClock, Nanos, Quota, QuotaError, Rate};

#[path = "../../core/tests/support"]
mod support {
    pub(crate) mod adjusting;
    pub(crate) mod ideal;
}
use support::adjusting::Beside;

/// A number and how far to shift it down, for numbers of every size.
type Number = (u64, u8);

#[derive(Arbitrary, Debug)]
struct Input {
    first: AnyLimit,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum AnyLimit {
    Off,
    Deny,
    Quota { tokens: Number, period: Number, burst: Number, debt: Number },
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Acquire(Number),
    /// All that is there, and this much more.
    AcquireLevel(i8),
    Refund(Number),
    Debit(Number),
    Reserve(Number),
    /// So many 256ths of what is there.
    ReserveLevel(u8),
    Cancel(u8),
    Settle(u8, Number),
    /// About what is held on average, and this much more.
    SettleHeld(u8, i8),
    Adjust(AnyLimit, u8),
    Advance(Number),
    StepBack(u32),
    GoTo(u64),
    /// To the reading that the latest denial named, or so many nanoseconds beside it.
    GoToHint(i8),
}

fuzz_target!(|input: Input| {
    let Some(first) = limit(&input.first) else { return };
    let bucket = AdjustableBucket::with_clock(first, ManualClock::new());
    let mut beside = Beside::new(&bucket);
    let mut now = 0_u64;
    for operation in input.operations.iter().take(64) {
        let at = Nanos::new(now);
        let level = bucket.inspect_at(at).level;
        match *operation {
            Operation::Acquire(cost) => _ = beside.acquire(at, number(cost)),
            Operation::AcquireLevel(more) => _ = beside.acquire(at, level.saturating_add_signed(more.into())),
            Operation::Refund(cost) => beside.refund(number(cost)),
            Operation::Debit(cost) => _ = beside.debit(at, number(cost)),
            Operation::Reserve(cost) => _ = beside.reserve(at, number(cost)),
            Operation::ReserveLevel(part) => {
                let cost = u128::from(level) * u128::from(part) / 255;
                _ = beside.reserve(at, (cost as u64).min((1 << 40) + 1));
            }
            Operation::Cancel(which) => beside.cancel(which.into()),
            Operation::Settle(which, spent) => beside.settle(which.into(), at, number(spent)),
            Operation::SettleHeld(which, more) => {
                let held = beside.held() / beside.reservations().max(1) as u64;
                beside.settle(which.into(), at, held.saturating_add_signed(more.into()));
            }
            Operation::Adjust(ref to, inheritance) => {
                let inheritance = match inheritance % 5 {
                    0 => Inheritance::Level,
                    1 => Inheritance::Spent,
                    2 => Inheritance::Fraction,
                    3 => Inheritance::Full,
                    _ => Inheritance::Empty,
                };
                if let Some(to) = limit(to) {
                    beside.adjust(at, to, inheritance);
                }
            }
            Operation::Advance(span) => now = now.saturating_add(number(span)),
            Operation::StepBack(span) => now = now.saturating_sub(span.into()),
            Operation::GoTo(reading) => now = reading,
            Operation::GoToHint(off) => now = beside.hinted.as_u64().saturating_add_signed(off.into()),
        }
        beside.look(Nanos::new(now));
    }
    beside.finish(Nanos::new(now));
});

fn number((number, by): Number) -> u64 {
    number >> (by % 64)
}

/// The limit, with a burst and a debt that the rate has room for.
fn limit(limit: &AnyLimit) -> Option<Limit> {
    let (tokens, period, burst, debt) = match *limit {
        AnyLimit::Off => return Some(Limit::Unlimited),
        AnyLimit::Deny => return Some(Limit::DenyAll),
        AnyLimit::Quota { tokens, period, burst, debt } => (tokens, period, burst, debt),
    };
    let rate = Rate::new(number(tokens), Duration::from_nanos(number(period))).ok()?;
    let quota = match Quota::with_burst(rate, number(burst)) {
        Err(QuotaError::BurstTooLarge { largest, .. }) => Quota::with_burst(rate, largest).unwrap(),
        quota => quota.ok()?,
    };
    let quota = match quota.with_debt(number(debt)) {
        Err(QuotaError::DebtTooLarge { debt, largest }) => {
            assert!(quota.with_debt(debt).is_err() && largest < debt);
            quota.with_debt(largest).unwrap()
        }
        quota => quota.unwrap(),
    };
    Some(Limit::Quota(quota))
}
