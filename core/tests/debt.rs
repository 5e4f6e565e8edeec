//! Costs that are known only afterwards may overdraw a bucket, as far as its quota says and no further.

mod support;

use core::time::Duration;

use num_traits::ToPrimitive;
use proptest::prelude::*;
use sluicegate_core::{
    AdjustableBucket, BucketCell, BucketState, BucketStep, Denied, Limit, ManualClock, Nanos, Quota, Remaining,
    TokenBucket, quota,
};
use support::adjusting::Beside;
use support::{cases, indebted, magnitude};

/// The reading `seconds` after the origin.
fn at(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

#[test]
fn d02_a_debit_takes_what_is_there_and_then_the_debt() {
    let step = BucketStep::new(quota!("10/1s burst 20 debt 5"));
    let now = at(1_000);
    let (state, debit) = step.debit(BucketState::FULL, now, 18);
    assert_eq!((debit.charged, debit.unpaid), (18, 0));
    assert_eq!((step.inspect(state, now).level, step.inspect(state, now).owed), (2, 0));
    let (state, debit) = step.debit(state, now, 5);
    assert_eq!((debit.charged, debit.unpaid), (5, 0));
    assert_eq!((step.inspect(state, now).level, step.inspect(state, now).owed), (0, 3));
    let (state, debit) = step.debit(state, now, u64::MAX);
    assert_eq!((debit.charged, debit.unpaid), (2, u64::MAX - 2));
    assert_eq!(step.inspect(state, now).owed, 5);
    let (after, debit) = step.debit(state, now, 1);
    assert_eq!((debit.charged, debit.unpaid, after), (0, 1, state), "nothing beyond the debt, and no write");
}

#[test]
fn d02_without_a_debt_a_debit_takes_what_is_there() {
    let step = BucketStep::new(quota!("10/1s"));
    let (state, debit) = step.debit(BucketState::FULL, at(7), 12);
    assert_eq!((debit.charged, debit.unpaid), (10, 2));
    assert_eq!(step.try_acquire(BucketState::FULL, at(7), 10).0, state, "as an acquire of it");
    assert_eq!((step.inspect(state, at(7)).level, step.inspect(state, at(7)).owed), (0, 0));
}

#[test]
fn d02_refill_pays_the_debt_before_anything_is_admitted() {
    let step = BucketStep::new(quota!("10/1s debt 10"));
    let now = at(50);
    let (state, _) = step.debit(BucketState::FULL, now, 20);
    // Ten are owed: a second pays them, and a tenth more brings one.
    let retry_after = Duration::from_millis(1_100);
    assert_eq!(step.try_acquire(state, now, 1).1, Err(Denied::RateLimited { retry_after }));
    let owed = |millis| step.inspect(state, now + Duration::from_millis(millis));
    assert_eq!((owed(0).owed, owed(1).owed, owed(99).owed, owed(100).owed, owed(101).owed), (10, 10, 10, 9, 9));
    assert_eq!((owed(999).owed, owed(1_000).owed, owed(1_099).level, owed(1_100).level), (1, 0, 0, 1));
    assert!(step.try_acquire(state, now + Duration::from_nanos(1_099_999_999), 1).1.is_err());
    assert!(step.try_acquire(state, now + retry_after, 1).1.is_ok());
    // A cost of 0 is never denied.
    assert_eq!(step.try_acquire(state, now, 0).1.map(|admitted| admitted.remaining), Ok(Remaining::Exactly(0)));
}

#[test]
fn d02_what_is_given_back_pays_the_debt_first() {
    let step = BucketStep::new(quota!("10/1s debt 10"));
    let now = at(50);
    let (state, _) = step.debit(BucketState::FULL, now, 20);
    let state = step.refund(state, 4);
    assert_eq!((step.inspect(state, now).owed, step.inspect(state, now).level), (6, 0));
    let state = step.refund(state, 9);
    assert_eq!((step.inspect(state, now).owed, step.inspect(state, now).level), (0, 3));
    let state = step.refund(state, u64::MAX);
    assert!(step.is_full(state, now));
    assert_eq!(step.inspect(state, now).level, 10);
}

#[test]
fn d02_at_a_late_reading_a_debit_counts_what_was_consumed_meanwhile() {
    let step = BucketStep::new(quota!("10/1s debt 10"));
    let (state, _) = step.try_acquire(BucketState::FULL, at(50), 10);
    // A second earlier there were, with what is consumed now, 10 owed: no room.
    let (after, debit) = step.debit(state, at(49), 1);
    assert_eq!((debit.charged, debit.unpaid, after), (0, 1, state));
    let (after, debit) = step.debit(state, Nanos::new(49_500_000_000), 7);
    assert_eq!((debit.charged, debit.unpaid), (5, 2));
    assert_eq!(step.inspect(after, at(50)).owed, 5);
    // Far in the past nothing is charged and nothing breaks.
    assert_eq!(step.debit(state, Nanos::ZERO, u64::MAX), (state, step.debit(state, at(49), u64::MAX).1));
}

#[test]
fn d02_at_the_end_of_time_the_debt_still_holds() {
    let step = BucketStep::new(quota!("10/1s debt 10"));
    for now in [Nanos::HORIZON, Nanos::MAX] {
        let (state, debit) = step.debit(BucketState::FULL, now, 100);
        assert_eq!((debit.charged, debit.unpaid), (20, 80));
        assert_eq!(step.inspect(state, now).owed, 10);
        assert!(matches!(step.try_acquire(state, now, 1).1, Err(Denied::RateLimited { .. })));
        assert_eq!(step.debit(state, Nanos::MAX, 1).0, state);
    }
}

#[test]
fn the_largest_debt_works_at_both_ends() {
    let largest = |quota: Quota| match quota.with_debt(u64::MAX) {
        Err(sluicegate_core::QuotaError::DebtTooLarge { largest, .. }) => quota.with_debt(largest).unwrap(),
        other => panic!("{other:?}"),
    };
    for quota in [quota!("100/1s"), quota!("7/3s burst 20"), quota!("1/1d"), quota!("9_700_000_000/1s")] {
        let quota = largest(quota);
        let step = BucketStep::new(quota);
        let most = quota.capacity() + quota.debt();
        for now in [Nanos::ZERO, Nanos::HORIZON, Nanos::MAX] {
            let (state, debit) = step.debit(BucketState::FULL, now, u64::MAX);
            assert_eq!((debit.charged, debit.unpaid), (most, u64::MAX - most));
            assert_eq!(step.inspect(state, now).owed, quota.debt());
            assert!(step.try_acquire(state, now, 1).1.is_err());
            assert_eq!(step.debit(state, now, 1).1.unpaid, 1);
            assert!(step.is_full(step.refund(state, u64::MAX), now));
        }
    }
}

#[test]
fn off_charges_all_and_deny_nothing() {
    for cost in [0, 1, u64::MAX] {
        let off = TokenBucket::with_clock(Limit::Unlimited, ManualClock::new());
        assert_eq!((off.debit(cost).charged, off.debit_at(at(1), cost).unpaid), (cost, 0));
        let deny = TokenBucket::with_clock(Limit::DenyAll, ManualClock::new());
        assert_eq!((deny.debit(cost).charged, deny.debit_at(at(1), cost).unpaid), (0, cost));
    }
}

#[test]
fn what_is_owed_is_told_with_what_is_held() {
    // Held tokens are there; what is held cannot be taken, and so is no room for a debit.
    let bucket = AdjustableBucket::with_clock(quota!("10/1s debt 5"), ManualClock::new());
    let reservation = bucket.reserve(4).unwrap();
    let debit = bucket.debit(100);
    assert_eq!((debit.charged, debit.unpaid), (11, 89));
    assert_eq!((bucket.inspect().level, bucket.inspect().owed), (0, 1));
    let debit = reservation.settle(4);
    assert_eq!((debit.charged, debit.unpaid), (4, 0));
    assert_eq!(bucket.inspect().owed, 5);
}

#[derive(Clone, Debug)]
enum Operation {
    Acquire(u64),
    AcquireLevel(i8),
    Refund(u64),
    Debit(u64),
    /// What may be charged, and some more or less.
    DebitRoom(i8),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        1 => magnitude().prop_map(Operation::Acquire),
        3 => (-1..=1_i8).prop_map(Operation::AcquireLevel),
        1 => magnitude().prop_map(Operation::Refund),
        2 => magnitude().prop_map(Operation::Debit),
        4 => (-2..=2_i8).prop_map(Operation::DebitRoom),
        1 => Just(Operation::Debit(0)),
        1 => Just(Operation::Debit(u64::MAX)),
    ]
}

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn d02_decides_and_charges_as_the_ideal_bucket(
        quota in indebted(),
        operations in prop::collection::vec((support::moves(), operation()), 1..30),
    ) {
        let step = BucketStep::new(quota);
        let (cell, mut state) = (BucketCell::new(), BucketState::FULL);
        let bucket = AdjustableBucket::with_clock(quota, ManualClock::new());
        let plain = TokenBucket::with_clock(quota, ManualClock::new());
        let mut beside = Beside::new(&bucket);
        let mut now = Nanos::ZERO;
        let mut latest = Nanos::ZERO;
        for (to, operation) in operations {
            now = to.after(now, beside.hinted, quota);
            match operation {
                Operation::Acquire(_) | Operation::AcquireLevel(_) => {
                    let cost = match operation {
                        Operation::AcquireLevel(off) => {
                            bucket.inspect_at(now).level.saturating_add_signed(off.into())
                        }
                        Operation::Acquire(cost) => cost,
                        _ => 0,
                    };
                    let decision = beside.acquire(now, cost);
                    prop_assert_eq!(plain.try_acquire_at(now, cost), decision);
                    prop_assert_eq!(cell.try_acquire(&step, now, cost), decision);
                    state = step.try_acquire(state, now, cost).0;
                    if decision.is_ok() && cost > 0 {
                        latest = latest.max(now);
                    }
                }
                Operation::Refund(cost) => {
                    beside.refund(cost);
                    plain.refund(cost);
                    cell.refund(&step, cost);
                    state = step.refund(state, cost);
                }
                Operation::Debit(_) | Operation::DebitRoom(_) => {
                    let cost = match operation {
                        Operation::DebitRoom(off) => {
                            let room = beside.level(now).floor().to_integer().to_u64().unwrap_or(0);
                            (room + quota.debt()).saturating_add_signed(off.into())
                        }
                        Operation::Debit(cost) => cost,
                        _ => 0,
                    };
                    let debit = beside.debit(now, cost);
                    prop_assert_eq!(plain.debit_at(now, cost), debit);
                    prop_assert_eq!(cell.debit(&step, now, cost), debit);
                    let (next, stepped) = step.debit(state, now, cost);
                    prop_assert_eq!(stepped, debit);
                    state = next;
                    if debit.charged > 0 {
                        latest = latest.max(now);
                    }
                }
            }
            prop_assert_eq!((cell.state(), plain.state()), (state, state));
            beside.look(now);
            prop_assert_eq!(plain.inspect_at(now), bucket.inspect_at(now));
            // Never more than the debt, at the latest reading that anything was consumed at.
            prop_assert!(bucket.inspect_at(latest).owed <= quota.debt());
        }
    }

    #[test]
    fn d02_any_word_is_a_state_of_a_bucket_that_may_owe(
        quota in indebted(), bits in any::<u64>(), reading in any::<u64>(), cost in magnitude(),
    ) {
        let step = BucketStep::new(quota);
        let (state, now) = (BucketState::from_bits(bits), Nanos::new(reading));
        let (after, debit) = step.debit(state, now, cost);
        prop_assert_eq!(debit.charged.checked_add(debit.unpaid), Some(cost));
        prop_assert!(debit.charged <= quota.capacity() + quota.debt());
        let _ = step.inspect(after, now);
        let _ = step.try_acquire(after, now, cost);
        let _ = step.refund(after, cost);
        prop_assert_eq!(debit.charged == 0, after == state);
    }
}
