//! Changes of a limit while it is in use: settled under the old quota, gone on under the new, nothing made and nothing lost.

mod support;

use core::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{
    AdjustError, AdjustableBucket, BucketState, BucketStep, Clock, Denied, Inheritance, Limit, ManualClock, Nanos,
    Observer, Remaining, quota,
};
use support::adjusting::Beside;
use support::ideal::{Tokens, unit, whole};
use support::{Numbers, cases, indebted, magnitude, moves};

const ALL: [Inheritance; 5] =
    [Inheritance::Level, Inheritance::Spent, Inheritance::Fraction, Inheritance::Full, Inheritance::Empty];

fn inheritance() -> impl Strategy<Value = Inheritance> + Clone {
    prop::sample::select(ALL.to_vec())
}

fn limit() -> impl Strategy<Value = Limit> + Clone {
    prop_oneof![
        8 => indebted().prop_map(Limit::Quota),
        1 => Just(Limit::Unlimited),
        1 => Just(Limit::DenyAll),
    ]
}

type Bucket = AdjustableBucket<ManualClock>;

fn bucket(limit: impl Into<Limit>) -> Bucket {
    AdjustableBucket::with_clock(limit, ManualClock::new())
}

#[test]
fn c08_the_table_of_inheritance_holds() {
    use Inheritance::{Empty, Fraction, Full, Level, Spent};
    let small = [quota!("1/1s burst 10 debt 9"), quota!("700_000_000/1s burst 10 debt 9")];
    let large = [quota!("1/1s burst 20 debt 9"), quota!("700_000_000/1s burst 20 debt 9")];
    // From capacity to capacity, with a level, what is kept.
    type Row = (bool, i64, [(Inheritance, i64); 5]);
    let table: [Row; 6] = [
        (true, 4, [(Level, 4), (Spent, 14), (Fraction, 8), (Full, 20), (Empty, 0)]),
        (false, 14, [(Level, 10), (Spent, 4), (Fraction, 7), (Full, 10), (Empty, 0)]),
        (false, 4, [(Level, 4), (Spent, 0), (Fraction, 2), (Full, 10), (Empty, 0)]),
        (true, -3, [(Level, -3), (Spent, 7), (Fraction, -3), (Full, 20), (Empty, -3)]),
        (false, -3, [(Level, -3), (Spent, -3), (Fraction, -3), (Full, 10), (Empty, -3)]),
        (true, 10, [(Level, 10), (Spent, 20), (Fraction, 20), (Full, 20), (Empty, 0)]),
    ];
    for seconds in [0, 1_000_000, 900_000_000] {
        for (from, to) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for (is_raised, level, kept) in table {
                let (old, new) = if is_raised { (small[from], large[to]) } else { (large[from], small[to]) };
                for (inheritance, expected) in kept {
                    let now = Nanos::from_secs(seconds);
                    let bucket = bucket(old);
                    bucket.clock().set(now);
                    let debit = bucket.debit((old.capacity() as i64 - level) as u64);
                    assert_eq!(debit.unpaid, 0);
                    bucket.adjust(new, inheritance);
                    let inspection = bucket.inspect();
                    let told = if inspection.owed > 0 { -(inspection.owed as i64) } else { inspection.level as i64 };
                    assert_eq!(told, expected, "{level} from {old} to {new}, {inheritance:?}");
                    assert_eq!(inspection.capacity, new.capacity());
                }
            }
        }
    }
}

#[test]
fn c08_no_change_of_many_makes_a_token_and_each_loses_less_than_a_unit() {
    // At one reading, where no refill hides anything; also between grids that no unit is common to.
    let quotas = [
        quota!("7/3s burst 1000"),
        quota!("1000/1s burst 2000"),
        quota!("700_000_000/1s burst 1500"),
        quota!("999_999_937/1s burst 1000"),
        quota!("86_399/1d burst 1200"),
        quota!("1/30d burst 1000"),
    ];
    for (reading, changes, inheritance) in [
        (0, 100, Inheritance::Level),
        (123_456_789_012_345_678, 1_000, Inheritance::Level),
        (123_456_789_012_345_678, 100, Inheritance::Fraction),
        (987_654_321_987_654, 100, Inheritance::Spent),
    ] {
        let now = Nanos::new(reading);
        let mut numbers = Numbers(reading);
        let mut old = BucketStep::new(quotas[0]);
        // A level with a fraction.
        let (mut state, _) = old.try_acquire(BucketState::FULL, Nanos::new(reading.saturating_sub(98_765_431)), 500);
        let mut before = level(&old, state, now);
        for _ in 0..changes {
            let new = BucketStep::new(quotas[numbers.below(6) as usize]);
            let next = new.inherit(&old, state, now, inheritance);
            let after = level(&new, next, now);
            let (from, to) = (whole(old.quota().capacity()), whole(new.quota().capacity()));
            let ideal = match inheritance {
                Inheritance::Level => before.clone(),
                Inheritance::Spent => (&to - (from - &before)).max(whole(0)),
                Inheritance::Fraction => &before * &to / from,
                _ => panic!(),
            }
            .min(to);
            assert!(after <= ideal, "{inheritance:?} made {}", after - ideal);
            assert!(&ideal - &after < unit(new.quota()), "{inheritance:?} lost {}", ideal - after);
            (old, state, before) = (new, next, after);
        }
        assert!(before < whole(2_000) && (before > whole(0) || inheritance == Inheritance::Spent));
    }
}

/// The level in full precision: what `BucketState` counts is units of the quota's grid, so the wait for one unit more than
/// there is tells it.
fn level(step: &BucketStep, state: BucketState, now: Nanos) -> Tokens {
    // The state at which this bucket would be full: found by bisection, with the public means only.
    let (mut full, mut not) = (0_u64, u64::MAX);
    while not - full > 1 {
        let middle = full + (not - full) / 2;
        if step.is_full(BucketState::from_bits(middle), now) { full = middle } else { not = middle }
    }
    let ahead = whole(state.to_bits().max(full)) - whole(full);
    whole(step.quota().capacity()) - ahead * unit(step.quota())
}

#[test]
fn c08_changing_back_and_forth_while_time_goes_on_mints_nothing() {
    // Two buckets of the same rate on grids of their own: whatever changes, by every reading no more than the capacity and
    // what flowed in was admitted, but for a unit for each change.
    let quotas = [quota!("1000/1s burst 50"), quota!("3000/3s burst 50"), quota!("1000/1s burst 50 debt 7")];
    let bucket = bucket(quotas[0]);
    let mut numbers = Numbers(3);
    let (mut admitted, mut now) = (0_u64, 0_u64);
    for round in 0..3_000 {
        now += numbers.below(2_000_000);
        let at = Nanos::new(now);
        bucket.adjust_at(at, Limit::Quota(quotas[round % 3]), Inheritance::Level);
        let level = bucket.inspect_at(at).level;
        assert!(bucket.try_acquire_at(at, level).is_ok());
        admitted += level;
        assert!(u128::from(admitted) <= 50 + u128::from(now) / 1_000_000, "{admitted} by {now}");
    }
    // And none was lost but for roundings: all of these grids are exact and have units of a nanosecond.
    assert!(u128::from(admitted) + 1 >= u128::from(now) / 1_000_000 + 50);
}

#[test]
fn c08_drawing_readings_back_between_changes_mints_nothing() {
    // A slow quota is exchanged for a fast one at a reading a second late, and back at the latest, again and again: the same
    // second must not be refilled twice.
    let (slow, fast) = (quota!("1/1h burst 100"), quota!("50/1s burst 100"));
    let bucket = bucket(slow);
    let now = Nanos::from_secs(1_000);
    assert!(bucket.try_acquire_at(now, 100).is_ok());
    for _ in 0..50 {
        bucket.adjust_at(Nanos::from_secs(999), fast.into(), Inheritance::Level);
        bucket.adjust_at(now, slow.into(), Inheritance::Level);
    }
    let level = bucket.inspect_at(now).level;
    assert!(level <= 50, "{level} of at most one second's 50");
}

#[test]
fn c08_full_begins_anew_even_after_a_clock_that_leapt() {
    let bucket = bucket(quota!("10/1s"));
    bucket.adjust_at(Nanos::MAX, quota!("20/1s").into(), Inheritance::Level);
    let now = Nanos::from_secs(10);
    assert!(bucket.try_acquire_at(now, 1).is_err());
    bucket.adjust_at(now, quota!("10/1s").into(), Inheritance::Full);
    assert!(bucket.try_acquire_at(now, 10).is_ok());
    bucket.adjust_at(now, quota!("5/1s").into(), Inheritance::Level);
    assert_eq!(bucket.inspect_at(now + Duration::from_secs(1)).level, 5);
}

#[test]
fn c08_the_same_quota_again_changes_nothing() {
    for inheritance in [Inheritance::Level, Inheritance::Spent, Inheritance::Fraction] {
        let quota = quota!("700_000_000/1s burst 1000 debt 9");
        let (changed, plain) = (bucket(quota), bucket(quota));
        let mut numbers = Numbers(1);
        for round in 0..200_u64 {
            let now = Nanos::new(round * 3 + numbers.below(1_000_000));
            let cost = numbers.below(300);
            assert_eq!(changed.try_acquire_at(now, cost), plain.try_acquire_at(now, cost));
            changed.adjust_at(Nanos::new(numbers.below(1_000_000)), quota.into(), inheritance);
            assert_eq!(format!("{changed:?}"), format!("{plain:?}"));
        }
    }
}

#[test]
fn c08_off_and_deny_leave_the_last_quota_refilling() {
    let quota = quota!("10/1s");
    for between in [Limit::Unlimited, Limit::DenyAll] {
        let bucket = bucket(quota);
        bucket.clock().set(Nanos::from_secs(100));
        assert!(bucket.try_acquire(10).is_ok());
        bucket.adjust(between, Inheritance::Level);
        let decision = bucket.try_acquire(1_000);
        match between {
            Limit::Unlimited => assert_eq!(decision.map(|admitted| admitted.remaining), Ok(Remaining::Unlimited)),
            _ => assert_eq!(decision, Err(Denied::Closed)),
        }
        bucket.refund(1_000);
        let _ = bucket.debit(1_000);
        bucket.clock().advance(Duration::from_millis(300));
        bucket.adjust(quota, Inheritance::Level);
        assert_eq!(bucket.inspect().level, 3);
        // To another quota by way of deny, the level as of then.
        bucket.adjust(between, Inheritance::Level);
        bucket.clock().advance(Duration::from_millis(300));
        bucket.adjust(quota!("1/1h burst 100"), Inheritance::Level);
        assert_eq!(bucket.inspect().level, 6);
    }
}

#[test]
fn c08_a_first_quota_begins_as_asked_for() {
    for first in [Limit::Unlimited, Limit::DenyAll] {
        for inheritance in ALL {
            let bucket = bucket(first);
            bucket.clock().set(Nanos::from_secs(100));
            bucket.adjust(quota!("10/1s"), inheritance);
            let expected = if inheritance == Inheritance::Empty { 0 } else { 10 };
            assert_eq!(bucket.inspect().level, expected, "{first} and then {inheritance:?}");
        }
    }
}

#[test]
fn c08_late_readings_after_a_change_are_harmless() {
    let bucket = bucket(quota!("10/1s burst 100"));
    let change = Nanos::from_secs(100);
    assert!(bucket.try_acquire_at(change, 40).is_ok());
    bucket.adjust_at(change, quota!("20/1s burst 80").into(), Inheritance::Level);
    // A second earlier there were 20 less under the quota in force.
    assert_eq!(bucket.inspect_at(Nanos::from_secs(99)).level, 40);
    assert!(bucket.try_acquire_at(Nanos::from_secs(99), 40).is_ok());
    let retry_after = Duration::from_millis(50);
    assert_eq!(bucket.try_acquire_at(Nanos::from_secs(99), 1), Err(Denied::RateLimited { retry_after }));
    assert_eq!(bucket.inspect_at(change).level, 20);
}

#[test]
fn c08_an_observer_is_told_of_each_change() {
    #[derive(Default)]
    struct Log(core::cell::RefCell<Vec<String>>);
    impl Observer for Log {
        fn adjusted(&self, now: Nanos, from: Limit, to: Limit) {
            self.0.borrow_mut().push(format!("{now}: {from} to {to}"));
        }
    }
    let bucket =
        AdjustableBucket::with_clock(quota!("10/1s"), ManualClock::at(Nanos::new(5))).observed_by(Log::default());
    bucket.adjust(Limit::Unlimited, Inheritance::Level);
    bucket.adjust(Limit::DenyAll, Inheritance::Level);
    assert_eq!(bucket.try_adjust_at(Nanos::new(7), quota!("1/1s").into(), Inheritance::Full), Ok(()));
    let told = bucket.observer().0.borrow().join(", ");
    assert_eq!(told, "5 ns: 10/1s to off, 5 ns: off to deny, 7 ns: deny to 1/1s");
}

#[test]
fn c08_an_observer_that_changes_the_limit_again_meets_no_lock() {
    struct Reenter(core::cell::Cell<Option<&'static AdjustableBucket<ManualClock, Reenter>>>);
    impl Observer for Reenter {
        fn adjusted(&self, now: Nanos, _: Limit, _: Limit) {
            if let Some(bucket) = self.0.take() {
                bucket.adjust_at(now, Limit::DenyAll, Inheritance::Level);
            }
        }
    }
    let bucket: &_ = Box::leak(Box::new(bucket(quota!("1/1s")).observed_by(Reenter(None.into()))));
    bucket.observer().0.set(Some(bucket));
    bucket.adjust(quota!("2/1s"), Inheritance::Level);
    assert_eq!(bucket.limit(), Limit::DenyAll);
    assert_eq!(AdjustError.to_string(), "another change of this bucket is under way, try again");
}

#[test]
fn c08_thousands_of_changes_come_round_the_version_and_mean_the_same() {
    // More changes than a short version would tell apart.
    let quotas = [quota!("10/1s burst 10"), quota!("20/1s burst 30")];
    let bucket = bucket(quotas[0]);
    assert!(bucket.try_acquire_at(Nanos::ZERO, 7).is_ok());
    for round in 1..40_000_usize {
        bucket.adjust_at(Nanos::ZERO, quotas[round % 2].into(), Inheritance::Level);
    }
    assert_eq!(bucket.limit(), Limit::Quota(quotas[1]));
    assert_eq!(bucket.inspect_at(Nanos::ZERO).level, 3);
}

/// The clock of a caller that is overtaken between its look and its reading: the first reading lets `then` happen.
struct Overtaken {
    clock: ManualClock,
    then: core::cell::Cell<Option<Box<dyn FnOnce()>>>,
}

impl Clock for Overtaken {
    fn now(&self) -> Nanos {
        if let Some(then) = self.then.take() {
            then();
        }
        self.clock.now()
    }
}

#[test]
fn c08_no_call_decides_under_a_quota_at_a_reading_that_none_was() {
    // Whatever the limit was when the call looked, and whatever it is when it acts.
    type Call = fn(&AdjustableBucket<Overtaken>);
    let calls: [Call; 5] = [
        |bucket| _ = bucket.try_acquire(1),
        |bucket| _ = bucket.reserve(1).map(|reservation| reservation.settle(1)),
        |bucket| _ = bucket.debit(1),
        |bucket| _ = bucket.peek(1),
        |bucket| _ = bucket.inspect(),
    ];
    for call in calls {
        for before in [Limit::Unlimited, Limit::DenyAll, quota!("7/1h").into()] {
            let clock = Overtaken { clock: ManualClock::at(Nanos::from_secs(100)), then: None.into() };
            let bucket: &'static _ = Box::leak(Box::new(AdjustableBucket::with_clock(before, clock)));
            let change = || bucket.adjust_at(Nanos::from_secs(100), quota!("10/1s").into(), Inheritance::Level);
            bucket.clock().then.set(Some(Box::new(change)));
            call(bucket);
            if before == Limit::Unlimited {
                // No clock was read. From here on it will be.
                assert_eq!(bucket.limit(), Limit::Unlimited);
                bucket.clock().then.take().unwrap()();
            }
            let level = bucket.inspect_at(Nanos::from_secs(100)).level;
            assert!([6, 7, 9, 10].contains(&level), "{level}");
        }
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Acquire(u64),
    AcquireLevel(i8),
    Refund(u64),
    Debit(u64),
    Reserve(u64),
    ReserveLevel(i8),
    Settle(usize, u64),
    /// What is held and so much more or less.
    SettleHeld(usize, i8),
    Cancel(usize),
    Adjust(Limit, Inheritance),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        1 => magnitude().prop_map(Operation::Acquire),
        4 => (-1..=1_i8).prop_map(Operation::AcquireLevel),
        1 => magnitude().prop_map(Operation::Refund),
        2 => magnitude().prop_map(Operation::Debit),
        1 => Just(Operation::Debit(u64::MAX)),
        2 => magnitude().prop_map(Operation::Reserve),
        3 => (-3..=1_i8).prop_map(Operation::ReserveLevel),
        1 => (any::<usize>(), magnitude()).prop_map(|(which, spent)| Operation::Settle(which, spent)),
        3 => (any::<usize>(), -2..=2_i8).prop_map(|(which, off)| Operation::SettleHeld(which, off)),
        2 => any::<usize>().prop_map(Operation::Cancel),
        4 => (limit(), inheritance()).prop_map(|(limit, inheritance)| Operation::Adjust(limit, inheritance)),
    ]
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn c08_decides_as_the_ideal_bucket_through_every_change(
        first in limit(),
        operations in prop::collection::vec((moves(), operation()), 1..30),
    ) {
        let bucket = bucket(first);
        let mut beside = Beside::new(&bucket);
        let mut now = Nanos::ZERO;
        for (to, operation) in operations {
            now = to.after(now, beside.hinted, beside.quota().unwrap_or(quota!("10/1s")));
            let level = bucket.inspect_at(now).level;
            match operation {
                Operation::Acquire(cost) => { let _ = beside.acquire(now, cost); }
                Operation::AcquireLevel(off) => { let _ = beside.acquire(now, level.saturating_add_signed(off.into())); }
                Operation::Refund(cost) => beside.refund(cost),
                Operation::Debit(cost) => { let _ = beside.debit(now, cost); }
                Operation::Reserve(cost) => { let _ = beside.reserve(now, cost); }
                Operation::ReserveLevel(off) => {
                    let cost = (level / 2).saturating_add_signed(off.into()).min((1 << 40) + 1);
                    let _ = beside.reserve(now, cost);
                }
                Operation::Settle(which, spent) => beside.settle(which, now, spent),
                Operation::SettleHeld(which, off) => {
                    let held = beside.held() / beside.reservations().max(1) as u64;
                    beside.settle(which, now, held.saturating_add_signed(off.into()));
                }
                Operation::Cancel(which) => beside.cancel(which),
                Operation::Adjust(limit, inheritance) => beside.adjust(now, limit, inheritance),
            }
            beside.look(now);
        }
        beside.finish(now);
    }

    #[test]
    fn c08_each_choice_keeps_what_its_table_says(
        old in indebted(), new in indebted(), inheritance in inheritance(),
        reading in 0..940_000_000_000_000_000_u64, taken in magnitude(), waited in 0..1_u64 << 40,
    ) {
        let (from, to) = (BucketStep::new(old), BucketStep::new(new));
        let now = Nanos::new(reading + waited);
        let (state, _) = from.debit(BucketState::FULL, Nanos::new(reading), taken);
        let before = level(&from, state, now);
        let kept = to.inherit(&from, state, now, inheritance);
        prop_assume!(kept.to_bits() != u64::MAX);
        let after = level(&to, kept, now);
        let owed = before.clone().min(whole(0));
        let (c, d) = (whole(old.capacity()), whole(new.capacity()));
        let expected = match inheritance {
            Inheritance::Level => before.clone(),
            Inheritance::Spent => (&d - (c - &before)).max(owed),
            Inheritance::Fraction if before > whole(0) => &before * &d / c,
            Inheritance::Fraction => before.clone(),
            Inheritance::Full => d.clone(),
            Inheritance::Empty => owed,
            other => panic!("{other:?}"),
        }
        .min(d);
        prop_assert!(after <= expected, "{} of {}", after, expected);
        prop_assert!(&expected - &after < unit(new), "{} of {}", after, expected);
        // Where nothing has to be rounded, nothing is.
        if expected.is_integer() {
            prop_assert_eq!(&after, &expected);
        }
    }

    #[test]
    fn c08_any_word_and_any_reading_can_be_inherited(
        old in indebted(), new in indebted(), inheritance in inheritance(), bits in any::<u64>(), reading in any::<u64>(),
    ) {
        let (from, to) = (BucketStep::new(old), BucketStep::new(new));
        for bits in [bits, 0, u64::MAX] {
            for now in [reading, 0, u64::MAX].map(Nanos::new) {
                let kept = to.inherit(&from, BucketState::from_bits(bits), now, inheritance);
                prop_assert!(to.inspect(kept, now).level <= new.capacity());
                let _ = to.try_acquire(kept, now, 1);
                let _ = to.debit(kept, now, u64::MAX);
                if inheritance == Inheritance::Full {
                    prop_assert!(to.is_full(kept, now));
                }
                if inheritance == Inheritance::Empty {
                    prop_assert_eq!(to.inspect(kept, now).level, 0);
                }
            }
        }
    }
}

/// A clock that lets others act between its reading and the caller's next step.
#[derive(Default)]
struct Slow {
    at: ManualClock,
    meanwhile: core::cell::Cell<Option<fn(&Self)>>,
    bucket: core::cell::OnceCell<AdjustableBucket<&'static Slow>>,
}

impl sluicegate_core::Clock for Slow {
    fn now(&self) -> Nanos {
        let reading = self.at.now();
        if let Some(meanwhile) = self.meanwhile.take() {
            meanwhile(self);
        }
        reading
    }
}

#[test]
fn c08_a_change_overtaken_by_acquires_carries_no_refill_over_to_the_new_rate() {
    let clock: &'static Slow = Box::leak(Box::default());
    let bucket = clock.bucket.get_or_init(|| AdjustableBucket::with_clock(quota!("1000000/1s burst 100"), clock));
    clock.meanwhile.set(Some(|clock| {
        // 10 ms later, all of the burst has come back a hundred times.
        clock.at.advance(Duration::from_millis(10));
        assert!(clock.bucket.get().unwrap().try_acquire_at(clock.at.now(), 1).is_ok());
    }));
    bucket.adjust(quota!("1/1s burst 100"), Inheritance::Level);
    assert_eq!((bucket.inspect().level, bucket.inspect().owed), (99, 0));
}

#[test]
fn c08_a_change_that_changes_nothing_leaves_the_next_one_free() {
    let bucket = AdjustableBucket::with_clock(quota!("10/1s"), ManualClock::new());
    assert!(bucket.try_acquire(10).is_ok());
    bucket.adjust_at(Nanos::HORIZON, Limit::Quota(quota!("10/1s")), Inheritance::Level);
    bucket.adjust_at(Nanos::HORIZON, Limit::Unlimited, Inheritance::Level);
    bucket.adjust_at(Nanos::ZERO, Limit::Quota(quota!("20/1s")), Inheritance::Level);
    assert_eq!(bucket.try_acquire_at(Nanos::from_secs(1), 20).map(|_| ()), Ok(()));
}
