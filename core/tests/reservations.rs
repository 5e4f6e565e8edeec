//! Reservations: what is held is there, and what is let go was never held.

mod support;

use core::cell::RefCell;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;

use proptest::prelude::*;
use sluicegate_core::{
    AdjustableBucket, Admitted, BucketState, BucketStep, Clock, Debit, Denied, Inheritance, Limit, ManualClock, Nanos,
    Observer, Remaining, Reservation, quota,
};
use support::{cases, indebted, magnitude};

type Bucket = AdjustableBucket<ManualClock>;

fn bucket(limit: impl Into<Limit>) -> Bucket {
    AdjustableBucket::with_clock(limit, ManualClock::new())
}

/// Limit, state and what is held.
fn all_of(bucket: &Bucket) -> String {
    format!("{bucket:?}")
}

const HELD_MAX: u64 = (1 << 40) - 1;

#[derive(Clone, Debug)]
enum Operation {
    Ahead(u64),
    /// A part of what is there, in 256ths; 255 is all.
    Reserve(u8),
    Cancel(usize),
    /// By somebody else.
    Acquire(u8),
    AcquireTokens(u64),
    Refund(u64),
    Debit(u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (0..1_u64 << 50, 0..50_u32).prop_map(|(span, shift)| Operation::Ahead(span >> shift)),
        3 => any::<u8>().prop_map(Operation::Reserve),
        3 => any::<usize>().prop_map(Operation::Cancel),
        3 => any::<u8>().prop_map(Operation::Acquire),
        1 => magnitude().prop_map(Operation::AcquireTokens),
        1 => magnitude().prop_map(Operation::Refund),
        1 => magnitude().prop_map(Operation::Debit),
    ]
}

fn part(level: u64, part: u8) -> u64 {
    (u128::from(level) * u128::from(part) / 255) as u64
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn d02_cancelled_in_any_order_equals_never_having_reserved(
        quota in indebted(),
        operations in prop::collection::vec(operation(), 1..60),
        late in prop::collection::vec(0..1_u64 << 40, 60),
    ) {
        let (reserved, plain) = (bucket(quota), bucket(quota));
        let mut reservations = Vec::new();
        let mut now = 0_u64;
        for (operation, late) in operations.into_iter().zip(late) {
            // Readings also go back, by a little.
            let at = Nanos::new(now.saturating_sub(if late % 4 == 0 { late } else { 0 }));
            match operation {
                Operation::Ahead(span) => now += span,
                Operation::Reserve(some) => {
                    let cost = part(reserved.inspect_at(at).level, some).min(HELD_MAX);
                    reservations.extend(reserved.reserve_at(at, cost));
                }
                Operation::Cancel(which) => {
                    if !reservations.is_empty() {
                        reservations.swap_remove(which % reservations.len()).cancel();
                    }
                }
                Operation::Acquire(_) | Operation::AcquireTokens(_) => {
                    let cost = match operation {
                        Operation::Acquire(some) => part(reserved.inspect_at(at).level, some),
                        Operation::AcquireTokens(cost) => cost,
                        _ => 0,
                    };
                    if reserved.try_acquire_at(at, cost).is_ok() {
                        prop_assert!(plain.try_acquire_at(at, cost).is_ok(), "a reservation makes room for nobody");
                    }
                }
                Operation::Refund(cost) => {
                    reserved.refund(cost);
                    plain.refund(cost);
                }
                Operation::Debit(cost) => {
                    let charged = reserved.debit_at(at, cost).charged;
                    prop_assert_eq!(plain.debit_at(at, charged).charged, charged);
                }
            }
            // Even while tokens are held, the state is that of a bucket where none ever were.
            let held = reservations.iter().map(Reservation::cost).sum::<u64>();
            prop_assert_eq!(reserved.held(), held);
            let (ours, theirs) = (reserved.inspect_at(at), plain.inspect_at(at));
            prop_assert_eq!((ours.level, ours.owed), (theirs.level.saturating_sub(held), theirs.owed));
        }
        reservations.clear();
        prop_assert_eq!(all_of(&reserved), all_of(&plain));
    }

    #[test]
    fn d02_settling_equals_taking_at_the_instant_of_settling(
        quota in indebted(),
        spans in prop::collection::vec((0..1_u64 << 50, 0..50_u32), 20),
        reserved_parts in prop::collection::vec(any::<u8>(), 1..8),
        order in prop::collection::vec((any::<usize>(), -3..=3_i8), 8),
        others in prop::collection::vec(any::<u8>(), 20),
    ) {
        let (reserved, plain) = (bucket(quota), bucket(quota));
        let mut spans = spans.into_iter().map(|(span, shift)| span >> shift);
        let mut others = others.into_iter();
        let mut now = Nanos::ZERO;
        let mut go = || {
            now = now + Duration::from_nanos(spans.next().unwrap_or(1));
            now
        };
        let mut somebody_else = |at: Nanos| {
            let cost = part(reserved.inspect_at(at).level, others.next().unwrap_or(0));
            assert_eq!(reserved.try_acquire_at(at, cost).is_ok(), plain.try_acquire_at(at, cost).is_ok());
        };
        let mut reservations = Vec::new();
        for some in reserved_parts {
            let at = go();
            let cost = part(reserved.inspect_at(at).level, some / 2).min(HELD_MAX);
            reservations.extend(reserved.reserve_at(at, cost));
            somebody_else(at);
        }
        let mut held = reserved.held();
        for (which, off) in order {
            if reservations.is_empty() {
                break;
            }
            let reservation = reservations.swap_remove(which % reservations.len());
            let cost = reservation.cost();
            held -= cost;
            let at = go();
            let spent = match off {
                3 => cost / 3,
                -3 => cost.saturating_mul(3),
                off => cost.saturating_add_signed(off.into()),
            };
            let debit = reservation.settle_at(at, spent);
            prop_assert_eq!(debit.charged.checked_add(debit.unpaid), Some(spent));
            prop_assert!(debit.charged >= spent.min(cost), "what was held is there");
            // Without reservations the same is there, and what others hold on top.
            let most = plain.debit_at(at, debit.charged);
            prop_assert_eq!(most.charged, debit.charged);
            if debit.unpaid > 0 && held == 0 {
                prop_assert_eq!(plain.debit_at(at, debit.unpaid).charged, 0);
            }
            prop_assert!(plain.inspect_at(at).owed <= quota.debt());
            somebody_else(at);
        }
        reservations.clear();
        prop_assert_eq!(all_of(&reserved), all_of(&plain));
    }

    #[test]
    fn d02_what_is_settled_and_left_and_held_is_the_capacity(
        capacity in 1..1_u64 << 30,
        costs in prop::collection::vec((any::<u8>(), any::<u8>(), any::<usize>()), 1..20),
    ) {
        // At one reading, so that nothing flows in.
        let bucket = bucket(quota!("1/1h").burst(capacity).unwrap());
        let mut reservations = Vec::new();
        let mut spent = 0;
        for (some, used, which) in costs {
            let cost = part(bucket.inspect().level, some);
            reservations.push(bucket.reserve(cost).unwrap());
            if which % 3 > 0 {
                let reservation = reservations.swap_remove(which % reservations.len());
                let used = part(reservation.cost(), used);
                let debit = reservation.settle(used);
                prop_assert_eq!((debit.charged, debit.unpaid), (used, 0));
                spent += used;
            }
            prop_assert_eq!(spent + bucket.held() + bucket.inspect().level, capacity);
        }
        drop(reservations);
        prop_assert_eq!(spent + bucket.inspect().level, capacity);
    }
}

#[test]
fn d02_settling_more_takes_from_the_rest_and_then_the_debt() {
    let bucket = bucket(quota!("10/1s debt 3"));
    let others = bucket.reserve(4).unwrap();
    let debit = bucket.reserve(2).unwrap().settle(100);
    // Two held, four free, three of debt; what others hold is theirs.
    assert_eq!((debit.charged, debit.unpaid), (9, 91));
    assert_eq!((bucket.held(), bucket.inspect().level), (4, 0));
    let debit = others.settle(4);
    assert_eq!((debit.charged, debit.unpaid), (4, 0));
    assert_eq!(bucket.inspect().owed, 3);
}

#[test]
fn d02_refill_goes_on_beside_what_is_held() {
    let bucket = bucket(quota!("10/1s"));
    let reservation = bucket.reserve(6).unwrap();
    assert!(bucket.try_acquire(4).is_ok());
    bucket.clock().advance(Duration::from_secs(10));
    // Full, but for what is held.
    assert_eq!(bucket.inspect().level, 4);
    assert_eq!(bucket.try_acquire(5), Err(Denied::ConcurrencyLimited));
    drop(reservation);
    assert_eq!(bucket.inspect().level, 10);
}

#[test]
fn d02_the_hint_is_exact_while_others_hold() {
    let bucket = bucket(quota!("7/3s burst 10"));
    let _held = bucket.reserve(4).unwrap();
    assert!(bucket.try_acquire(6).is_ok());
    for cost in 1..=6 {
        let Err(Denied::RateLimited { retry_after }) = bucket.try_acquire(cost) else { panic!("{cost}") };
        assert_eq!(retry_after, Duration::from_nanos((cost * 3_000_000_000).div_ceil(7)));
        let hinted = Nanos::ZERO + retry_after;
        assert!(bucket.peek_at(hinted, cost).is_ok());
        assert!(bucket.peek_at(Nanos::new(hinted.as_u64() - 1), cost).is_err());
        assert_eq!(bucket.reserve(cost).unwrap_err(), Denied::RateLimited { retry_after });
    }
    for cost in 7..=10 {
        assert_eq!(bucket.try_acquire(cost), Err(Denied::ConcurrencyLimited));
        assert_eq!(bucket.reserve(cost).unwrap_err(), Denied::ConcurrencyLimited);
    }
    assert_eq!(bucket.try_acquire(11), Err(Denied::CostExceedsLimit { cost: 11, limit: 10 }));
}

#[test]
fn d02_at_most_2_to_the_40_less_1_are_held() {
    let bucket = bucket(quota!("1/1h burst 3_000_000_000_000"));
    let never = Denied::CostExceedsLimit { cost: HELD_MAX + 1, limit: HELD_MAX };
    assert_eq!(bucket.reserve(HELD_MAX + 1).unwrap_err(), never);
    let all = bucket.reserve(HELD_MAX).unwrap();
    assert_eq!(bucket.held(), HELD_MAX);
    assert_eq!(bucket.reserve(1).unwrap_err(), Denied::ConcurrencyLimited);
    // What is taken is not held.
    assert!(bucket.try_acquire(HELD_MAX + 1).is_ok());
    let left = 3_000_000_000_000 - 2 * HELD_MAX - 1;
    assert_eq!(bucket.inspect().level, left);
    // To take more is a matter of time, not of reservations.
    drop(all);
    assert!(bucket.try_acquire(HELD_MAX).is_ok());
    let denied = bucket.try_acquire(HELD_MAX + 1).unwrap_err();
    assert!(matches!(denied, Denied::RateLimited { .. }), "{denied}");
    assert_eq!(bucket.peek(HELD_MAX + 1), Err(denied));
}

#[test]
fn d02_nothing_is_given_back_twice() {
    let bucket = bucket(quota!("10/1h"));
    let debit = bucket.reserve(10).unwrap().settle(7);
    assert_eq!(debit.charged, 7);
    assert_eq!((bucket.held(), bucket.inspect().level), (0, 3));
    bucket.reserve(3).unwrap().cancel();
    assert_eq!((bucket.held(), bucket.inspect().level), (0, 3));
    let leaked = bucket.reserve(1).unwrap();
    core::mem::forget(leaked);
    assert_eq!((bucket.held(), bucket.inspect().level), (1, 2));
}

#[test]
fn d02_a_panic_while_a_reservation_is_held_restores_it() {
    let bucket = bucket(quota!("10/1s"));
    let before = all_of(&bucket);
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _reservation = bucket.reserve(8).unwrap();
        assert_eq!(bucket.inspect().level, 2);
        std::panic::resume_unwind(Box::new("the work failed"));
    }));
    assert!(result.is_err());
    assert_eq!(all_of(&bucket), before);
}

#[test]
fn d02_a_panic_of_an_observer_leaves_no_hold_behind() {
    struct Panics;
    impl Observer for Panics {
        fn admitted(&self, _: Nanos, _: u64, _: &Admitted) {
            std::panic::resume_unwind(Box::new("not my day"));
        }
        fn settled(&self, _: Nanos, _: u64, _: &Debit) {
            std::panic::resume_unwind(Box::new("not my day"));
        }
    }
    let bucket = bucket(quota!("10/1s")).observed_by(Panics);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(bucket.reserve(8)))).is_err());
    assert_eq!((bucket.held(), bucket.inspect().level), (0, 10));
}

#[derive(Default)]
struct Log(RefCell<Vec<String>>);

impl Observer for Log {
    fn admitted(&self, _: Nanos, cost: u64, admitted: &Admitted) {
        self.0.borrow_mut().push(format!("{cost} admitted, {} left", admitted.remaining));
    }
    fn denied(&self, _: Nanos, cost: u64, denied: &Denied) {
        self.0.borrow_mut().push(format!("{cost} denied, {denied}"));
    }
    fn refunded(&self, cost: u64) {
        self.0.borrow_mut().push(format!("{cost} refunded"));
    }
    fn settled(&self, now: Nanos, held: u64, debit: &Debit) {
        self.0.borrow_mut().push(format!("{now}: {} of {held} settled, {} unpaid", debit.charged, debit.unpaid));
    }
}

#[test]
fn d02_an_observer_is_told_of_each_end() {
    let bucket =
        AdjustableBucket::with_clock(quota!("10/1s"), ManualClock::at(Nanos::new(9))).observed_by(Log::default());
    bucket.reserve(6).unwrap().cancel();
    let _ = bucket.reserve(6).unwrap().settle(4);
    let _ = bucket.reserve(6).unwrap().settle(9);
    assert!(bucket.reserve(6).is_err());
    bucket.adjust(Limit::Unlimited, Inheritance::Level);
    bucket.reserve(6).unwrap().cancel();
    let _ = bucket.reserve(6).unwrap().settle(7);
    let expected = [
        "6 admitted, 4 left",
        "6 refunded",
        "6 admitted, 4 left",
        "9 ns: 4 of 6 settled, 0 unpaid",
        "6 admitted, 0 left",
        "9 ns: 6 of 6 settled, 3 unpaid",
        "6 denied, rate limited, retry after 600ms",
    ];
    assert_eq!(*bucket.observer().0.borrow(), expected);
}

#[test]
fn d02_without_a_limit_nothing_is_held_and_no_clock_is_read() {
    struct Untouchable;
    impl Clock for Untouchable {
        fn now(&self) -> Nanos {
            panic!("the clock was read")
        }
    }
    let bucket = AdjustableBucket::with_clock(Limit::Unlimited, Untouchable).observed_by(Log::default());
    for cost in [0, 1, u64::MAX] {
        let reservation = bucket.reserve(cost).unwrap();
        assert_eq!((reservation.cost(), bucket.held()), (cost, 0));
        let debit = reservation.settle(u64::MAX);
        assert_eq!((debit.charged, debit.unpaid), (u64::MAX, 0));
        assert_eq!(bucket.debit(cost).charged, cost);
        assert_eq!(bucket.try_acquire(cost).map(|admitted| admitted.remaining), Ok(Remaining::Unlimited));
        assert_eq!(bucket.peek(cost).map(|admitted| admitted.remaining), Ok(Remaining::Unlimited));
        assert_eq!((bucket.inspect().level, bucket.inspect().owed), (u64::MAX, 0));
        bucket.refund(cost);
        bucket.reserve(cost).unwrap().cancel();
    }
    assert!(bucket.observer().0.borrow().is_empty(), "{:?}", bucket.observer().0.borrow());
    let denied = AdjustableBucket::with_clock(Limit::DenyAll, ManualClock::new());
    assert_eq!(denied.reserve(0).unwrap_err(), Denied::Closed);
    assert_eq!((denied.debit(5).charged, denied.inspect().capacity), (0, 0));
}

#[test]
fn d02_made_without_a_limit_and_settled_under_one_it_is_charged_as_far_as_there_is() {
    let bucket = bucket(Limit::Unlimited);
    bucket.clock().set(Nanos::from_secs(100));
    let (first, second) = (bucket.reserve(50).unwrap(), bucket.reserve(50).unwrap());
    bucket.adjust(quota!("10/1s debt 5"), Inheritance::Level);
    first.cancel();
    assert_eq!(bucket.inspect().level, 10);
    let debit = second.settle(50);
    assert_eq!((debit.charged, debit.unpaid), (15, 35));
    assert_eq!(bucket.inspect().owed, 5);
}

#[test]
fn d02_made_under_a_quota_and_settled_without_a_limit_it_counts_once_there_is_one_again() {
    for between in [Limit::Unlimited, Limit::DenyAll] {
        let bucket = bucket(quota!("10/1s"));
        bucket.clock().set(Nanos::from_secs(100));
        let (first, second) = (bucket.reserve(4).unwrap(), bucket.reserve(3).unwrap());
        bucket.adjust(between, Inheritance::Level);
        // It counts when it is settled, not when it was made.
        bucket.clock().advance(Duration::from_secs(50));
        let debit = first.settle(6);
        assert_eq!(debit.charged, if between == Limit::Unlimited { 6 } else { 4 });
        second.cancel();
        assert_eq!(bucket.held(), 0);
        bucket.adjust(quota!("10/1s"), Inheritance::Level);
        assert_eq!(bucket.inspect().level, 6, "{between}");
    }
}

#[test]
fn d02_reservations_outlive_changes_of_the_quota() {
    let bucket = bucket(quota!("100/1h"));
    let (first, second) = (bucket.reserve(60).unwrap(), bucket.reserve(30).unwrap());
    // Far below what is held.
    bucket.adjust(quota!("10/1h"), Inheritance::Level);
    assert_eq!((bucket.held(), bucket.inspect().level), (90, 0));
    assert_eq!(bucket.try_acquire(1), Err(Denied::ConcurrencyLimited));
    assert_eq!(bucket.debit(1).charged, 0);
    assert_eq!(bucket.try_acquire(0).map(|admitted| admitted.remaining), Ok(Remaining::Exactly(0)));
    // What was held is there, though ten times the new capacity.
    let debit = first.settle(60);
    assert_eq!((debit.charged, debit.unpaid), (60, 0));
    bucket.adjust(quota!("700_000_000/1s burst 50"), Inheritance::Level);
    assert_eq!(bucket.held(), 30);
    bucket.adjust(quota!("1/1s burst 100 debt 90"), Inheritance::Level);
    assert_eq!(bucket.inspect().owed, 50);
    second.cancel();
    assert_eq!((bucket.held(), bucket.inspect().owed), (0, 50));
    bucket.clock().advance(Duration::from_secs(51));
    assert_eq!(bucket.inspect().level, 1);
}

#[test]
fn d02_a_settlement_at_a_reading_before_the_reservation_counts_at_the_reservation() {
    // Otherwise what it consumed would be refilled before it was reserved, and 15 admitted of 10.
    let bucket = bucket(quota!("1/1s burst 10"));
    let reservation = bucket.reserve_at(Nanos::from_secs(100), 5).unwrap();
    assert_eq!(reservation.settle_at(Nanos::ZERO, 5).charged, 5);
    assert_eq!(bucket.inspect_at(Nanos::from_secs(100)).level, 5);
    bucket.clock().set(Nanos::from_secs(100));
    let reservation = bucket.reserve(5).unwrap();
    bucket.clock().set(Nanos::from_secs(50));
    assert_eq!(reservation.settle(5).charged, 5);
    assert_eq!(bucket.inspect_at(Nanos::from_secs(100)).level, 0);
}

#[test]
fn d02_at_the_end_of_time_reservations_still_end() {
    let bucket = bucket(quota!("10/1s debt 5"));
    let reservation = bucket.reserve_at(Nanos::MAX, 10).unwrap();
    assert_eq!(bucket.try_acquire_at(Nanos::HORIZON, 1), Err(Denied::ConcurrencyLimited));
    assert_eq!(reservation.settle_at(Nanos::MAX, u64::MAX).charged, 15);
    assert_eq!(bucket.inspect_at(Nanos::MAX).owed, 5);
    assert!(matches!(bucket.reserve_at(Nanos::MAX, 1).unwrap_err(), Denied::RateLimited { .. }));
}

#[test]
fn a_bucket_can_be_a_static() {
    static BUCKET: Bucket = AdjustableBucket::with_limit(Limit::Quota(quota!("10/1m")), ManualClock::new());
    let reservation: Reservation<&'static Bucket> = BUCKET.reserve(3).unwrap();
    assert_eq!(std::thread::spawn(move || reservation.settle(2)).join().unwrap().charged, 2);
    assert_eq!(BUCKET.inspect().level, 8);
    assert_eq!(format!("{:?}", BUCKET.reserve(1).unwrap()), "Reservation { cost: 1, .. }");
}

#[test]
fn decides_as_the_step_and_the_plain_bucket_where_nothing_is_held() {
    let step = BucketStep::new(quota!("7/3s burst 20"));
    let bucket = bucket(quota!("7/3s burst 20"));
    let mut state = BucketState::FULL;
    for index in 0..2_000_u64 {
        let now = Nanos::new(index * 123_456_789);
        let (next, decision) = step.try_acquire(state, now, index % 5);
        assert_eq!(bucket.try_acquire_at(now, index % 5), decision);
        state = next;
    }
}

#[cfg(feature = "alloc")]
mod owned {
    extern crate alloc;
    use alloc::sync::Arc;

    use super::*;

    #[test]
    fn d02_an_owned_reservation_keeps_its_bucket_and_goes_anywhere() {
        let bucket = Arc::new(bucket(quota!("10/1h")));
        let reservation = bucket.reserve_owned(4).unwrap();
        let other = bucket.reserve_owned(3).unwrap();
        assert_eq!((bucket.held(), Arc::strong_count(&bucket)), (7, 3));
        let settled = std::thread::spawn(move || reservation.settle(2)).join().unwrap();
        assert_eq!(settled.charged, 2);
        // 6 fit beside the 3 that are held, once 1 of the 2 spent is back.
        let denied = bucket.reserve_owned(6).unwrap_err();
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(360)));
        std::thread::spawn(move || drop(other)).join().unwrap();
        assert_eq!((bucket.held(), bucket.inspect().level, Arc::strong_count(&bucket)), (0, 8, 1));
        let last = bucket.reserve_owned(8).unwrap();
        drop(bucket);
        assert_eq!(last.settle(9).unpaid, 1);
    }
}

/// A clock that panics when told to.
#[derive(Default)]
struct Fragile {
    clock: ManualClock,
    breaks: core::cell::Cell<bool>,
}

impl sluicegate_core::Clock for Fragile {
    fn now(&self) -> Nanos {
        assert!(!self.breaks.get(), "the clock breaks");
        self.clock.now()
    }
}

#[test]
fn d02_a_clock_that_panics_cancels_what_was_to_be_settled_and_no_change_is_left_half_made() {
    use core::panic::AssertUnwindSafe;
    let bucket = AdjustableBucket::with_clock(quota!("10/1s"), Fragile::default());
    let reservation = bucket.reserve(10).unwrap();
    bucket.clock().breaks.set(true);
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| reservation.settle(3))).is_err());
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| bucket.adjust(quota!("5/1s"), Inheritance::Level))).is_err());
    bucket.clock().breaks.set(false);
    assert_eq!((bucket.held(), bucket.inspect().level), (0, 10));
    bucket.adjust(quota!("5/1s"), Inheritance::Level);
    assert_eq!(bucket.inspect().level, 5);
}
