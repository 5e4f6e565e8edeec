//! Quotas and tiers that change: whatever the readings, the order of changes, and who else changes them.
#![cfg(feature = "keyed")]

mod support;

use core::cell::RefCell;
use core::hash::BuildHasherDefault;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::hash::DefaultHasher;

use proptest::prelude::*;
use sluicegate_core::{
    Denied, Inheritance, KeyedOptions, KeyedTokenBucket, Limit, ManualClock, Nanos, Observer, Overflow, Quota,
    SetTierError, Tier, Tiers, quota,
};
use support::{cases, race};

type Fixed = BuildHasherDefault<DefaultHasher>;
type Store = KeyedTokenBucket<u32, parking_lot::RawRwLock, Fixed, ManualClock>;
type Tiered<O = ()> = KeyedTokenBucket<u32, parking_lot::RawRwLock, Fixed, ManualClock, O, Tiers>;

fn options(limit: impl Into<Limit>) -> KeyedOptions {
    KeyedOptions::new(limit).shards(NonZeroUsize::new(4).unwrap())
}

fn tiered(options: impl Into<KeyedOptions>, others: &[Quota]) -> Tiered {
    Tiered::with_tiers(options, others, Fixed::default(), ManualClock::new())
}

fn after(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

#[test]
fn c08_a_change_at_an_earlier_reading_refills_no_span_twice() {
    // Empty at 0; 10 tokens a second or 1 a second until 100, of 5000.
    let (fast, slow) = (quota!("10/1s burst 5000"), quota!("1/1s burst 5000"));
    let store = Store::new(options(fast));
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 5000).is_ok());
    store.set_quota_at((), slow, after(100), Inheritance::Level).unwrap();
    assert_eq!(store.inspect_at(&1, after(100)).unwrap().level, 1000);
    // Back to the fast one at 50: what flowed in from 50 to 100 has flowed in.
    store.set_quota_at((), fast, after(50), Inheritance::Level).unwrap();
    assert_eq!(store.inspect_at(&1, after(100)).unwrap().level, 1000);
    assert_eq!(store.inspect_at(&1, after(101)).unwrap().level, 1010);

    let store = tiered(options(slow), &[fast]);
    let _ = store.debit_at(&1, Nanos::ZERO, 5000);
    for round in 0..5 {
        store.set_tier_at(&1, Tier(1), after(50), Inheritance::Level).unwrap();
        store.set_tier_at(&1, Tier(0), after(100), Inheritance::Level).unwrap();
        let level = store.inspect_at(&1, after(100)).unwrap().level;
        assert_eq!(level, 50 + 500, "round {round}");
    }

    // A key brings along up to when it was settled, also to a tier of the same quota.
    let store = tiered(options(fast), &[slow]);
    let _ = store.debit_at(&1, Nanos::ZERO, 5000);
    store.set_quota_at(Tier(0), slow, after(100), Inheritance::Level).unwrap();
    store.set_tier_at(&1, Tier(1), after(10), Inheritance::Level).unwrap();
    store.set_quota_at(Tier(1), fast, after(50), Inheritance::Level).unwrap();
    assert_eq!(store.inspect_at(&1, after(100)).unwrap().level, 1000);
}

#[test]
fn c08_full_begins_anew_at_its_own_reading_and_heals_a_change_far_ahead() {
    let store = Store::new(options(quota!("10/1s")));
    assert!(store.try_acquire_at(&1, after(1), 1).is_ok());
    store.set_quota_at((), quota!("20/1s"), Nanos::MAX, Inheritance::Level).unwrap();
    store.set_quota_at((), quota!("10/1s"), after(2), Inheritance::Spent).unwrap();
    assert!(store.peek_at(&1, after(2), 1).is_err() && store.peek_at(&2, after(2), 1).is_err());
    store.set_quota_at((), quota!("10/1s"), after(2), Inheritance::Full).unwrap();
    for key in [1, 2] {
        assert!(store.try_acquire_at(&key, after(2), 10).is_ok() && store.try_acquire_at(&key, after(2), 1).is_err());
    }
    // From there on changes follow one another again.
    store.set_quota_at((), quota!("20/1s"), after(3), Inheritance::Level).unwrap();
    assert_eq!(store.inspect_at(&1, after(3)).unwrap().level, 10);
}

#[test]
fn c08_the_same_quota_goes_on_as_it_is() {
    // At whatever reading: there is nothing to settle.
    let store = tiered(options(quota!("10/1s")), &[quota!("10/1s")]);
    assert!(store.try_acquire_at(&1, after(5), 4).is_ok());
    store.set_quota_at(Tier(0), quota!("10/1s"), Nanos::MAX, Inheritance::Level).unwrap();
    store.set_tier_at(&1, Tier(1), Nanos::MAX, Inheritance::Fraction).unwrap();
    store.set_quota_at(Tier(1), quota!("20/1s"), after(5), Inheritance::Level).unwrap();
    assert_eq!(store.inspect_at(&1, after(5)).unwrap().level, 6);
    assert!(store.peek_at(&2, after(5), 10).is_ok());
}

#[derive(Clone, Debug)]
enum Op {
    Acquire(u32, u64),
    CleanUp,
    SetTier(u32, u8),
    SetQuota(u8, Quota),
}

proptest! {
    #![proptest_config(cases(300))]

    // Readings of any kind, and all is kept at its level: no key ever gets more than the largest capacity and what the
    // fastest rate generates up to the latest reading.
    #[test]
    fn c08_no_order_of_readings_mints_anything(
        ops in prop::collection::vec((op(), 0..4_u64), 1..300),
    ) {
        let others = [quota!("5/1s burst 2"), quota!("1/7s burst 8")];
        let store = tiered(options(quota!("1/1s burst 4")), &others);
        let (mut admitted, mut latest) = ([0; 2], 0);
        for (op, second) in ops {
            let now = after(second);
            latest = latest.max(second);
            match op {
                Op::Acquire(key, cost) => {
                    if store.try_acquire_at(&key, now, cost).is_ok() {
                        admitted[key as usize] += cost;
                    }
                }
                Op::CleanUp => store.clean_up_at(now),
                Op::SetTier(key, tier) => store.set_tier_at(&key, Tier(tier), now, Inheritance::Level).unwrap(),
                Op::SetQuota(tier, quota) => {
                    store.set_quota_at(Tier(tier), quota, now, Inheritance::Level).unwrap();
                }
            }
            for admitted in admitted {
                prop_assert!(admitted <= 8 + 5 * latest, "{admitted} by {latest} s");
            }
        }
    }
}

fn op() -> impl Strategy<Value = Op> {
    let quotas = vec![quota!("1/1s burst 4"), quota!("5/1s burst 2"), quota!("5/1s burst 8"), quota!("1/7s burst 8")];
    prop_oneof![
        6 => (0..2_u32, 1..4_u64).prop_map(|(key, cost)| Op::Acquire(key, cost)),
        1 => Just(Op::CleanUp),
        3 => (0..2_u32, 0..3_u8).prop_map(|(key, tier)| Op::SetTier(key, tier)),
        3 => (0..3_u8, prop::sample::select(quotas)).prop_map(|(tier, quota)| Op::SetQuota(tier, quota)),
    ]
}

#[test]
fn c08_changes_at_once_leave_every_shard_with_one_quota() {
    const QUOTAS: [Quota; 4] = [quota!("1/1h"), quota!("2/1h"), quota!("3/1h"), quota!("4/1h")];
    let store = Store::new(KeyedOptions::new(QUOTAS[0]).shards(NonZeroUsize::new(64).unwrap()));
    for key in 0..500 {
        assert!(store.try_acquire_at(&key, Nanos::ZERO, 1).is_ok());
    }
    for _ in 0..200 {
        race(4, |thread| store.set_quota_at((), QUOTAS[thread], Nanos::ZERO, Inheritance::Spent).unwrap());
        let quota = store.quota_of(()).unwrap();
        store.for_each_at(Nanos::ZERO, |key, seen| assert_eq!(seen.capacity, quota.capacity(), "{key}"));
        assert_eq!(store.overflow(), Overflow::Shared(quota.into()));
    }
}

#[test]
fn c08_the_shared_limiter_follows_the_default_quota_unless_it_was_given() {
    let store = tiered(options(quota!("3/1h")).cap(1), &[quota!("9/1h")]);
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 3).is_ok());
    assert!(store.try_acquire_at(&2, Nanos::ZERO, 2).is_ok());
    store.set_quota_at(Tier(1), quota!("1/1h"), Nanos::ZERO, Inheritance::Full).unwrap();
    assert_eq!(store.overflow(), Overflow::Shared(quota!("3/1h").into()));
    store.set_quota_at(Tier(0), quota!("5/1h"), Nanos::ZERO, Inheritance::Spent).unwrap();
    assert_eq!(store.overflow(), Overflow::Shared(quota!("5/1h").into()));
    assert!(store.try_acquire_at(&3, Nanos::ZERO, 3).is_ok() && store.try_acquire_at(&4, Nanos::ZERO, 1).is_err());
    assert_eq!(store.limit(), quota!("3/1h").into());

    let given = options(quota!("3/1h")).cap(1).overflow(quota!("3/1h").into());
    let store = tiered(given, &[]);
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 1).is_ok());
    store.set_quota_at(Tier(0), quota!("5/1h"), Nanos::ZERO, Inheritance::Spent).unwrap();
    assert_eq!(store.overflow(), Overflow::Shared(quota!("3/1h").into()));
    assert!(store.try_acquire_at(&2, Nanos::ZERO, 3).is_ok() && store.try_acquire_at(&2, Nanos::ZERO, 1).is_err());
}

#[test]
fn c16_observers_are_told_of_changes_once_and_outside_the_locks() {
    #[derive(Default)]
    struct Told(RefCell<Vec<(Nanos, Limit, Limit)>>);
    impl Observer for &Told {
        fn adjusted(&self, now: Nanos, from: Limit, to: Limit) {
            self.0.borrow_mut().push((now, from, to));
        }
    }
    let (free, paid, more) = (quota!("3/1s"), quota!("9/1s"), quota!("5/1s"));
    let told = Told::default();
    let store = tiered(options(free).cap(1), &[paid]).observed_by(&told);
    store.set_quota_at(Tier(0), more, after(2), Inheritance::Level).unwrap();
    // Counts as made at the last change's reading.
    store.set_quota_at(Tier(0), free, after(1), Inheritance::Level).unwrap();
    store.set_tier_at(&1, Tier(1), after(3), Inheritance::Full).unwrap();
    // Nothing changes: a new key is what it is, there is no place, and no such tier.
    store.set_tier_at(&2, Tier(0), after(3), Inheritance::Full).unwrap();
    assert_eq!(store.set_tier_at(&2, Tier(1), after(3), Inheritance::Full), Err(SetTierError::TooManyKeys));
    assert_eq!(store.set_tier_at(&1, Tier(2), after(3), Inheritance::Full), Err(SetTierError::UnknownTier));
    assert!(store.set_quota_at(Tier(2), free, after(3), Inheritance::Full).is_err());
    let expected = [(2, free, more), (2, more, free), (3, free, paid)];
    assert_eq!(*told.0.borrow(), expected.map(|(at, from, to)| (after(at), from.into(), to.into())));
    assert_eq!(
        (store.quota_of(Tier(0)), store.quota_of(Tier(1)), store.quota_of(Tier(2))),
        (Some(free), Some(paid), None)
    );
    assert_eq!(Store::new(Limit::DenyAll).quota_of(()), None);
}

#[test]
fn a_new_key_can_be_given_less_or_more_than_a_new_key_has() {
    let store = tiered(options(quota!("10/10s")).cap(2), &[]);
    store.set_tier_at(&1, Tier(0), after(5), Inheritance::Empty).unwrap();
    assert_eq!(store.inspect_at(&1, after(6)).unwrap().level, 1);
    assert_eq!(store.tier(&1), Tier(0));
    // What equals a new key is not kept.
    for inheritance in [Inheritance::Level, Inheritance::Spent, Inheritance::Fraction, Inheritance::Full] {
        store.set_tier_at(&2, Tier(0), after(5), inheritance).unwrap();
        assert_eq!(store.len(), 1);
    }
    // New keys are left a half; one of them is to have all.
    store.set_quota_at(Tier(0), quota!("20/10s"), after(20), Inheritance::Level).unwrap();
    store.set_tier_at(&3, Tier(0), after(20), Inheritance::Full).unwrap();
    assert!(store.peek_at(&3, after(20), 20).is_ok() && store.peek_at(&4, after(20), 11).is_err());
    assert_eq!(store.set_tier_at(&4, Tier(0), after(20), Inheritance::Empty), Err(SetTierError::TooManyKeys));
    // It lacks nothing and new keys do: it stays until they are full as well.
    store.clean_up_at(after(24));
    assert_eq!(store.inspect_at(&3, after(24)).unwrap().level, 20);
    store.clean_up_at(after(25));
    assert!(store.is_empty());
}

#[test]
fn a_key_that_is_removed_is_as_new_keys_are_and_one_that_is_absent_is_not_reset() {
    let store = Store::new(options(quota!("10/10s")));
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 10).is_ok());
    store.set_quota_at((), quota!("20/10s"), Nanos::ZERO, Inheritance::Level).unwrap();
    assert!(store.remove(&1) && !store.reset(&1));
    assert!(store.peek_at(&1, Nanos::ZERO, 10).is_ok() && store.peek_at(&1, Nanos::ZERO, 11).is_err());
}

#[test]
fn d02_a_key_can_be_charged_for_what_has_happened() {
    let store = Store::new(options(quota!("5/1h debt 3")).cap(1).overflow(quota!("2/1h").into()));
    let debit = store.debit_at(&1, Nanos::ZERO, 7);
    assert_eq!((debit.charged, debit.unpaid), (7, 0));
    let seen = store.inspect_at(&1, Nanos::ZERO).unwrap();
    assert_eq!((seen.level, seen.owed), (0, 2));
    let debit = store.debit_at(&1, Nanos::ZERO, 7);
    assert_eq!((debit.charged, debit.unpaid), (1, 6));
    // Beyond the cap it is the shared limiter that pays, as far as it can.
    let debit = store.debit_at(&2, Nanos::ZERO, 3);
    assert_eq!((debit.charged, debit.unpaid, store.len()), (2, 1, 1));
    assert!(store.try_acquire_at(&2, Nanos::ZERO, 1).is_err());
    assert_eq!(store.debit_at(&3, Nanos::ZERO, 0).charged, 0);

    let store = Store::new(options(quota!("5/1h")).cap(1).overflow(Overflow::Deny));
    store.clock().advance(Duration::from_secs(9));
    assert_eq!((store.debit(&1, 0).charged, store.len()), (0, 0), "a debit of nothing created a key");
    assert_eq!((store.debit(&1, 9).charged, store.debit(&2, 9).unpaid), (5, 9));
    assert_eq!(store.try_acquire(&1, 1).map_err(|denied| denied.is_final()), Err(false));
    assert_eq!(Store::new(Limit::Unlimited).debit_at(&1, Nanos::ZERO, 9).charged, 9);
    assert_eq!(Store::new(Limit::DenyAll).debit_at(&1, Nanos::ZERO, 9).unpaid, 9);
    assert_eq!(store.try_acquire_at(&2, Nanos::ZERO, 1), Err(Denied::TooManyKeys));
}
