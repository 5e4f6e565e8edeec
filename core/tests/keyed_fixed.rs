//! The store of keys in an array, against a slow model that never forgets, and what it promises.

mod support;

use core::cell::Cell;
use core::hash::{BuildHasher, BuildHasherDefault, Hasher};
use core::time::Duration;
use std::collections::HashMap;
use std::hash::DefaultHasher;
use std::sync::Mutex;

use proptest::prelude::*;
use sluicegate_core::{
    BucketState, BucketStep, DecidedBy, Denied, FixedKeyedTokenBucket, Limit, ManualClock, Nanos, Overflow, Quota,
    Remaining, quota,
};
use support::cases;

type Fixed<const N: usize, H = DefaultHasher> = FixedKeyedTokenBucket<u8, BuildHasherDefault<H>, ManualClock, N>;

/// Sends many keys to few slots, so that they stand behind each other.
#[derive(Default)]
struct Crowding(u64);

impl Hasher for Crowding {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = u64::from(bytes[0]) % 3 * 5;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Clone, Debug)]
enum Op {
    Acquire(u8, u64),
    Refund(u8, u64),
    Reset(u8),
    Remove(u8),
    CleanUp,
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..14_u8;
    prop_oneof![
        10 => (key.clone(), 0..5_u64).prop_map(|(key, cost)| Op::Acquire(key, cost)),
        1 => (key.clone(), 0..3_u64).prop_map(|(key, cost)| Op::Refund(key, cost)),
        1 => key.clone().prop_map(Op::Reset),
        1 => key.prop_map(Op::Remove),
        1 => Just(Op::CleanUp),
    ]
}

fn follow<const N: usize, H: Hasher + Default>(quota: Quota, ops: &[(Op, u64)]) -> Result<(), TestCaseError> {
    let shared = quota!("2/1s");
    let mut store: Fixed<N, H> = Fixed::new(Limit::Quota(quota), Overflow::Shared(shared.into()));
    let (step, shared) = (BucketStep::new(quota), BucketStep::new(shared));
    let (mut keys, mut of_shared) = (HashMap::<u8, BucketState>::new(), BucketState::FULL);
    let mut now = Nanos::from_secs(5);
    for (op, span) in ops {
        now = now + Duration::from_nanos(*span);
        match *op {
            Op::Acquire(key, cost) => {
                let (was_present, len) = (store.inspect_at(&key, now).is_some(), store.len());
                let foreseen = store.peek_at(&key, now, cost);
                let decided = store.decide_at(&key, now, cost);
                if decided.by == DecidedBy::Key {
                    let (next, expected) = step.try_acquire(keys.get(&key).copied().unwrap_or_default(), now, cost);
                    prop_assert_eq!(decided.decision, expected);
                    if was_present || len < Fixed::<N, H>::CAP {
                        prop_assert_eq!(foreseen, expected);
                    }
                    keys.insert(key, next);
                } else {
                    prop_assert!(!was_present && len == Fixed::<N, H>::CAP);
                    let mut full = 0;
                    store.for_each_at(now, |_, seen| full += u32::from(seen.level == seen.capacity));
                    prop_assert_eq!(full, 0, "a place was there");
                    let (next, expected) = shared.try_acquire(of_shared, now, cost);
                    // A key may have a place of its own later: no refusal here is for ever.
                    let expected =
                        expected.map_err(|denied| if denied.is_final() { Denied::TooManyKeys } else { denied });
                    prop_assert_eq!((decided.decision, foreseen), (expected, expected));
                    of_shared = next;
                }
            }
            Op::Refund(key, cost) => {
                if store.refund(&key, cost) {
                    let state = keys.entry(key).or_default();
                    *state = step.refund(*state, cost);
                }
            }
            Op::Reset(key) => {
                if store.reset(&key) {
                    keys.insert(key, BucketState::FULL);
                }
            }
            Op::Remove(key) => {
                store.remove(&key);
                keys.remove(&key);
            }
            Op::CleanUp => store.clean_up_at(now),
        }
        let mut present = 0;
        for key in 0..14 {
            let expected = step.inspect(keys.get(&key).copied().unwrap_or_default(), now);
            match store.inspect_at(&key, now) {
                Some(seen) => {
                    present += 1;
                    prop_assert_eq!(seen, expected);
                }
                None => prop_assert_eq!(expected.level, expected.capacity, "{} was dropped and was not full", key),
            }
        }
        prop_assert!(present == store.len() && store.len() <= Fixed::<N, H>::CAP);
        if matches!(op, Op::CleanUp) {
            store.for_each_at(now, |_, seen| assert!(seen.level < seen.capacity));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn d01_dropping_changes_no_answer(
        quota in prop::sample::select(vec![quota!("3/1s"), quota!("7/3s burst 4"), quota!("999999937/1s burst 3")]),
        ops in prop::collection::vec((op(), prop_oneof![Just(0), 0..300_000_000_u64, Just(5_000_000_000)]), 1..120),
    ) {
        follow::<16, DefaultHasher>(quota, &ops)?;
        follow::<16, Crowding>(quota, &ops)?;
        follow::<8, Crowding>(quota, &ops)?;
        follow::<3, DefaultHasher>(quota, &ops)?;
    }

    // Readings of any kind: nothing is admitted that would not have been without clean-up.
    #[test]
    fn d03_dropping_admits_nothing_under_any_clock(
        ops in prop::collection::vec((0..8_u8, 0..4_u64, any::<bool>(), reading()), 1..150),
    ) {
        let quota = quota!("3/1s");
        let mut store: Fixed<16> = Fixed::new(Limit::Quota(quota), Overflow::Deny);
        let (step, mut keys) = (BucketStep::new(quota), HashMap::<u8, BucketState>::new());
        for (key, cost, cleans, now) in ops {
            if cleans {
                store.clean_up_at(now);
            }
            let state = keys.entry(key).or_default();
            let (next, expected) = step.try_acquire(*state, now, cost);
            if store.try_acquire_at(&key, now, cost).is_ok() {
                prop_assert!(expected.is_ok(), "{key} got {cost} at {now:?}, which it had spent");
                *state = next;
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(200))]

    // One reading anywhere ahead among others that do not go back: every key but those that were asked at it gets what it
    // would without clean-up.
    #[test]
    fn d03_one_reading_far_ahead_shuts_nobody_else_out(
        before in prop::collection::vec((0..40_u8, 0..4_u64, 0..300_000_000_u64), 0..40),
        (leaper, far, leapers) in (0..40_u8, any::<u64>(), 1..3_u8),
        after in prop::collection::vec((0..40_u8, 0..4_u64, 0..300_000_000_u64), 1..40),
    ) {
        let quota = quota!("3/1s");
        let mut store: Fixed<64> = Fixed::new(Limit::Quota(quota), Overflow::Deny);
        let (step, mut keys) = (BucketStep::new(quota), HashMap::<u8, BucketState>::new());
        let mut ask = |key, now, cost| {
            let state = keys.entry(key).or_default();
            let (next, expected) = step.try_acquire(*state, now, cost);
            prop_assert_eq!(store.try_acquire_at(&key, now, cost), expected, "{} at {:?}", key, now);
            *state = next;
            Ok(())
        };
        let mut now = Nanos::from_secs(5);
        for (key, cost, span) in before {
            now = now + Duration::from_nanos(span);
            ask(key, now, cost)?;
        }
        for more in 0..leapers {
            ask(leaper + more, now.max(Nanos::new(far)), 1)?;
        }
        for (key, cost, span) in after {
            now = now + Duration::from_nanos(span);
            ask(key, now, cost)?;
        }
    }
}

fn reading() -> impl Strategy<Value = Nanos> {
    prop_oneof![
        6 => (0..5_000_000_000_u64).prop_map(Nanos::new),
        1 => any::<u64>().prop_map(Nanos::new),
        1 => prop::sample::select(vec![Nanos::ZERO, Nanos::MAX, Nanos::HORIZON]),
    ]
}

#[test]
fn d03_beyond_the_cap_new_keys_are_denied_until_a_key_has_become_full() {
    let mut store: Fixed<8> = Fixed::new(Limit::Quota(quota!("1/1s")), Overflow::Deny);
    assert_eq!(Fixed::<8>::CAP, 7);
    for key in 0..7 {
        assert!(store.try_acquire_at(&key, Nanos::from_millis(u64::from(key)), 1).is_ok());
    }
    assert_eq!(store.try_acquire_at(&7, Nanos::from_millis(999), 1), Err(Denied::TooManyKeys));
    assert_eq!(store.decide_at(&7, Nanos::from_secs(1), 1).by, DecidedBy::Key);
    assert_eq!(store.decide_at(&8, Nanos::from_secs(1), 1).by, DecidedBy::Overflow);
    assert_eq!(store.len(), 7);
}

#[test]
fn limits_without_a_count_and_stores_without_slots() {
    let mut open: Fixed<4> = Fixed::new(Limit::Unlimited, Overflow::Deny);
    assert_eq!(open.try_acquire(&1, u64::MAX).unwrap().remaining, Remaining::Unlimited);
    let mut shut: Fixed<4> = Fixed::new(Limit::DenyAll, Overflow::Deny);
    assert_eq!(shut.try_acquire(&1, 0), Err(Denied::Closed));
    assert!(!open.refund(&1, 1) && !open.remove(&1) && !shut.reset(&1) && open.is_empty() && shut.is_empty());

    let mut none: Fixed<0> = Fixed::new(Limit::Quota(quota!("1/1s")), Overflow::Shared(quota!("2/1s").into()));
    assert_eq!((0..9).filter(|key| none.try_acquire(key, 1).is_ok()).count(), 2);
    none.refund_overflow(1);
    assert!(none.try_acquire(&1, 1).is_ok() && none.try_acquire(&1, 1).is_err());
    let mut free: Fixed<0> = Fixed::new(Limit::Quota(quota!("1/1s")), Overflow::Shared(Limit::Unlimited));
    assert!((0..9).all(|key| free.try_acquire(&key, 1).is_ok()));
}

#[test]
fn a_store_can_be_a_static_behind_a_lock() {
    static STORE: Mutex<Fixed<4>> = Mutex::new(FixedKeyedTokenBucket::with_parts(
        Limit::Quota(quota!("1/1s")),
        Overflow::Deny,
        BuildHasherDefault::new(),
        ManualClock::new(),
    ));
    let mut store = STORE.lock().unwrap();
    assert!(store.try_acquire(&1, 1).is_ok() && store.try_acquire(&1, 1).is_err());
}

#[test]
fn a_hasher_that_panics_while_a_key_is_removed_forgets_nobody() {
    use core::panic::AssertUnwindSafe;
    use std::panic::catch_unwind;

    /// All keys meet in one place; and the hash that is counted down to panics.
    #[derive(Clone, Copy, Default)]
    struct Counting;
    std::thread_local! {
        static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    }
    impl Hasher for Counting {
        fn finish(&self) -> u64 {
            LEFT.set(LEFT.get() - 1);
            assert!(LEFT.get() > 0, "the hasher panics");
            0
        }
        fn write(&mut self, _: &[u8]) {}
    }
    impl BuildHasher for Counting {
        type Hasher = Self;
        fn build_hasher(&self) -> Self {
            *self
        }
    }
    for at in 1..=3 {
        let mut store =
            FixedKeyedTokenBucket::<u32, Counting, ManualClock, 16>::new(quota!("5/1h").into(), Overflow::Deny);
        for key in 0..3 {
            assert!(store.try_acquire_at(&key, Nanos::ZERO, 5).is_ok());
        }
        LEFT.set(at);
        assert!(catch_unwind(AssertUnwindSafe(|| store.remove(&0))).is_err());
        LEFT.set(u32::MAX);
        let mut keys = Vec::new();
        store.for_each_at(Nanos::ZERO, |key, inspection| keys.push((*key, inspection.level)));
        keys.sort_unstable();
        assert_eq!((store.len(), keys), (3, vec![(0, 0), (1, 0), (2, 0)]), "{at}");
        assert!((0..3).all(|key| store.try_acquire_at(&key, Nanos::ZERO, 1).is_err()), "{at}");
        assert!(store.remove(&1) && store.try_acquire_at(&1, Nanos::ZERO, 5).is_ok());
    }
}
