//! The keyed store against a slow model that never forgets: a map from each key to its tier and the state of its step.
#![cfg(feature = "keyed")]

mod support;

use core::hash::BuildHasherDefault;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::collections::HashMap;
use std::hash::DefaultHasher;

use proptest::prelude::*;
use sluicegate_core::{
    BucketState, BucketStep, DecidedBy, Denied, Inheritance, KeyHandle, KeyedOptions, KeyedTokenBucket, ManualClock,
    Nanos, Overflow, Quota, Tier, Tiers, TooManyKeys, quota,
};
use support::cases;

type Store = KeyedTokenBucket<u8, parking_lot::RawRwLock, BuildHasherDefault<DefaultHasher>, ManualClock, (), Tiers>;

#[derive(Clone, Debug)]
enum Op {
    Acquire(u8, u64),
    /// By the key's handle, or by the store where it has none.
    AcquireByHandle(u8, u64),
    /// Makes the key a handle, or renews the one that it has.
    Hold(u8),
    LetGo(u8),
    Refund(u8, u64),
    Reset(u8),
    Remove(u8),
    CleanUp,
    SetTier(u8, u8, Inheritance),
    SetQuota(u8, Quota, Inheritance),
}

/// Quotas that are full again within some seconds, with and without an exact grid.
fn small_quota() -> impl Strategy<Value = Quota> {
    prop::sample::select(vec![
        quota!("1/1s"),
        quota!("5/1s burst 2"),
        quota!("7/3s burst 4"),
        quota!("2/1s burst 6"),
        quota!("999999937/1s burst 3"),
        quota!("3/1s debt 2"),
    ])
}

fn inheritance() -> impl Strategy<Value = Inheritance> {
    prop::sample::select(vec![
        Inheritance::Level,
        Inheritance::Spent,
        Inheritance::Fraction,
        Inheritance::Full,
        Inheritance::Empty,
    ])
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..12_u8;
    prop_oneof![
        12 => (key.clone(), 0..5_u64).prop_map(|(key, cost)| Op::Acquire(key, cost)),
        6 => (key.clone(), 0..5_u64).prop_map(|(key, cost)| Op::AcquireByHandle(key, cost)),
        2 => key.clone().prop_map(Op::Hold),
        1 => key.clone().prop_map(Op::LetGo),
        2 => (key.clone(), 0..3_u64).prop_map(|(key, cost)| Op::Refund(key, cost)),
        1 => key.clone().prop_map(Op::Reset),
        1 => key.clone().prop_map(Op::Remove),
        2 => Just(Op::CleanUp),
        1 => (key, 0..3_u8, inheritance()).prop_map(|(key, tier, inheritance)| Op::SetTier(key, tier, inheritance)),
        1 => (0..3_u8, small_quota(), inheritance()).prop_map(|(tier, quota, how)| Op::SetQuota(tier, quota, how)),
    ]
}

/// Spans that are mostly short beside what refills a bucket, and sometimes long.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..300_000_000_u64, 1 => 0..3_000_000_000_u64, 1 => Just(0), 1 => Just(20_000_000_000)]
}

struct Model {
    steps: [BucketStep; 3],
    /// What a key has that was never used or set up, in the default tier.
    new: BucketState,
    keys: HashMap<u8, (Tier, BucketState)>,
    shared: (BucketStep, BucketState),
}

impl Model {
    fn new(quotas: [Quota; 3], shared: Quota) -> Self {
        Self {
            steps: quotas.map(BucketStep::new),
            new: BucketState::FULL,
            keys: HashMap::new(),
            shared: (BucketStep::new(shared), BucketState::FULL),
        }
    }

    fn of(&self, key: u8) -> (Tier, BucketState, &BucketStep) {
        let (tier, state) = self.keys.get(&key).copied().unwrap_or((Tier(0), self.new));
        (tier, state, &self.steps[usize::from(tier.0)])
    }

    fn set(&mut self, key: u8, state: BucketState) {
        let (tier, ..) = self.of(key);
        self.keys.insert(key, (tier, state));
    }

    fn set_quota(&mut self, tier: u8, quota: Quota, now: Nanos, inheritance: Inheritance) {
        let (old, new) = (self.steps[usize::from(tier)], BucketStep::new(quota));
        self.steps[usize::from(tier)] = new;
        for (of, state) in self.keys.values_mut() {
            if of.0 == tier {
                *state = new.inherit(&old, *state, now, inheritance);
            }
        }
        if tier == 0 {
            self.new = new.inherit(&old, self.new, now, inheritance);
        }
    }
}

const QUOTAS: [Quota; 3] = [quota!("3/1s"), quota!("7/3s burst 5"), quota!("4/2s debt 1")];
const SHARED: Quota = quota!("2/1s");

fn store(cap: usize, shards: usize) -> Store {
    let options = KeyedOptions::new(QUOTAS[0])
        .cap(cap)
        .overflow(Overflow::Shared(SHARED.into()))
        .shards(NonZeroUsize::new(shards).unwrap());
    Store::with_tiers(options, &QUOTAS[1..], BuildHasherDefault::default(), ManualClock::new())
}

proptest! {
    #![proptest_config(cases(300))]

    // No reading is earlier than one before: every answer is that of the model, whatever was dropped in between.
    #[test]
    fn d01_dropping_changes_no_answer(
        ops in prop::collection::vec((op(), span()), 1..150),
        cap in prop_oneof![Just(100_usize), 1..6_usize],
        shards in prop::sample::select(vec![1_usize, 2, 4]),
    ) {
        let store = store(cap, shards);
        let mut model = Model::new(QUOTAS, SHARED);
        let mut now = Nanos::from_secs(5);
        let mut handles: HashMap<u8, KeyHandle<&Store, u8>> = HashMap::new();
        for (op, span) in ops {
            now = now + Duration::from_nanos(span);
            store.clock().set(now);
            match op {
                Op::AcquireByHandle(key, cost) if handles.get(&key).is_some_and(|handle| handle.is_current()) => {
                    let handle = &handles[&key];
                    let (_, state, step) = model.of(key);
                    let (next, expected) = step.try_acquire(state, now, cost);
                    prop_assert_eq!(handle.inspect(), step.inspect(state, now));
                    prop_assert_eq!(handle.peek(cost), expected);
                    let decision = if cost % 2 == 0 { handle.try_acquire(cost) } else { handle.try_acquire_at(now, cost) };
                    prop_assert_eq!(decision, expected);
                    prop_assert!(handle.is_current());
                    if next != state {
                        model.set(key, next);
                    }
                }
                Op::Hold(key) => {
                    let was_full = store.len() == cap;
                    let held = match handles.get_mut(&key) {
                        Some(handle) => handle.renew().is_ok(),
                        None => match KeyHandle::new(&store, key) {
                            Ok(handle) => handles.insert(key, handle).is_none(),
                            Err(TooManyKeys) => false,
                        },
                    };
                    prop_assert!(held || was_full);
                    prop_assert_eq!(held, handles.get(&key).is_some_and(|handle| handle.is_current()));
                }
                Op::LetGo(key) => _ = handles.remove(&key),
                Op::Acquire(key, cost) | Op::AcquireByHandle(key, cost) => {
                    let is_known = store.inspect_at(&key, now).is_some();
                    let was_full = store.len() == cap;
                    let foreseen = store.foresee_at(&key, now, cost);
                    let decided = match (&op, handles.get(&key)) {
                        // Its handle asks the store, which would have answered the same.
                        (Op::AcquireByHandle(..), Some(handle)) if foreseen.by == DecidedBy::Key => {
                            let mut decided = foreseen;
                            decided.decision = handle.try_acquire_at(now, cost);
                            decided
                        }
                        _ => store.decide_at(&key, now, cost),
                    };
                    let (_, state, step) = model.of(key);
                    match decided.by {
                        DecidedBy::Key => {
                            let (next, expected) = step.try_acquire(state, now, cost);
                            prop_assert_eq!(decided.decision, expected);
                            if foreseen.by == DecidedBy::Key {
                                prop_assert_eq!(foreseen.decision, expected);
                            }
                            if next != state {
                                model.set(key, next);
                            }
                        }
                        DecidedBy::Overflow => {
                            prop_assert!(!is_known && was_full, "the overflow decided on {key}");
                            let (step, state) = model.shared;
                            let (next, expected) = step.try_acquire(state, now, cost);
                            // A key may have a place of its own later: no refusal here is for ever.
                            let expected = expected.map_err(|denied| if denied.is_final() { Denied::TooManyKeys } else { denied });
                            prop_assert_eq!(decided.decision, expected);
                            prop_assert_eq!(foreseen, decided);
                            model.shared.1 = next;
                        }
                    }
                }
                Op::Refund(key, cost) => {
                    // What is not in the store is full, so that nothing can be given back.
                    let (_, state, step) = model.of(key);
                    let next = step.refund(state, cost);
                    if store.refund(&key, cost) {
                        model.set(key, next);
                    }
                }
                Op::Reset(key) => {
                    if store.reset(&key) {
                        model.set(key, BucketState::FULL);
                    }
                }
                Op::Remove(key) => {
                    store.remove(&key);
                    model.keys.remove(&key);
                }
                Op::CleanUp => store.clean_up_at(now),
                Op::SetTier(key, tier, inheritance) => {
                    let (old_tier, state, old) = model.of(key);
                    let is_absent = store.inspect_at(&key, now).is_none();
                    let next = model.steps[usize::from(tier)].inherit(old, state, now, inheritance);
                    let set = store.set_tier_at(&key, Tier(tier), now, inheritance);
                    if set.is_ok() {
                        prop_assert!(!is_absent || old_tier == Tier(0));
                        model.keys.insert(key, (Tier(tier), next));
                    }
                }
                Op::SetQuota(tier, quota, inheritance) => {
                    store.set_quota_at(Tier(tier), quota, now, inheritance).unwrap();
                    model.set_quota(tier, quota, now, inheritance);
                }
            }
            prop_assert!(store.len() <= cap);
            for (key, handle) in &handles {
                prop_assert!(!handle.is_current() || store.inspect_at(key, now).is_some(), "{} has a handle", key);
            }
            let mut present = 0;
            for key in 0..12 {
                let (tier, state, step) = model.of(key);
                match store.inspect_at(&key, now) {
                    Some(seen) => {
                        present += 1;
                        prop_assert_eq!(seen, step.inspect(state, now));
                        prop_assert_eq!(store.tier(&key), tier);
                    }
                    None => prop_assert_eq!(
                        (tier, step.inspect(state, now)),
                        (Tier(0), model.steps[0].inspect(model.new, now)),
                        "{} was dropped and was not what a new key is", key
                    ),
                }
            }
            prop_assert_eq!(store.len(), present);
        }
    }

    // Readings of any kind: nothing is admitted that would not have been without clean-up.
    #[test]
    fn d03_dropping_admits_nothing_under_any_clock(
        ops in prop::collection::vec((0..8_u8, 0..4_u64, any::<bool>(), reading()), 1..200),
        shards in prop::sample::select(vec![1_usize, 4]),
    ) {
        let store = store(100, shards);
        let mut model = Model::new(QUOTAS, SHARED);
        for (key, cost, cleans, now) in ops {
            if cleans {
                store.clean_up_at(now);
            }
            let decision = store.try_acquire_at(&key, now, cost);
            let (_, state, step) = model.of(key);
            let (next, expected) = step.try_acquire(state, now, cost);
            if decision.is_ok() {
                prop_assert!(expected.is_ok(), "{key} got {cost} at {now:?}, which it had spent");
                model.set(key, next);
            }
        }
    }
}

/// Readings ahead, behind and anywhere.
fn reading() -> impl Strategy<Value = Nanos> {
    prop_oneof![
        6 => (0..5_000_000_000_u64).prop_map(Nanos::new),
        1 => any::<u64>().prop_map(Nanos::new),
        1 => prop::sample::select(vec![Nanos::ZERO, Nanos::MAX, Nanos::HORIZON]),
    ]
}

proptest! {
    #![proptest_config(cases(200))]

    // One reading anywhere ahead among others that do not go back: every key but those that were asked at it gets what it
    // would without clean-up, those that were never seen too.
    #[test]
    fn d03_one_reading_far_ahead_shuts_nobody_else_out(
        before in prop::collection::vec((0..40_u8, 0..4_u64, span()), 0..60),
        leap in (0..40_u8, 0..4_u64, any::<u64>(), 1..3_u8),
        after in prop::collection::vec((0..40_u8, 0..4_u64, span()), 1..60),
        shards in prop::sample::select(vec![1_usize, 4]),
    ) {
        let store = store(100, shards);
        let mut model = Model::new(QUOTAS, SHARED);
        let mut ask = |key, now, cost| {
            let decision = store.try_acquire_at(&key, now, cost);
            let (_, state, step) = model.of(key);
            let (next, expected) = step.try_acquire(state, now, cost);
            prop_assert_eq!(decision, expected, "{} at {:?}", key, now);
            model.set(key, next);
            Ok(())
        };
        let mut now = Nanos::from_secs(5);
        for (key, cost, span) in before {
            now = now + Duration::from_nanos(span);
            ask(key, now, cost)?;
        }
        // One request may ask for several keys.
        let (key, cost, far, keys) = leap;
        for more in 0..keys {
            ask(key + more, now.max(Nanos::new(far)), cost)?;
        }
        for (key, cost, span) in after {
            now = now + Duration::from_nanos(span);
            ask(key, now, cost)?;
        }
    }

    // Where that reading drops keys, a new key waits no longer than the most spent of them had to, never until that reading.
    #[test]
    fn d03_a_clean_up_far_ahead_leaves_new_keys_the_true_wait(
        before in prop::collection::vec((0..40_u8, 0..4_u64, span()), 0..60),
        far in any::<u64>(),
        cap in 1..8_usize,
        shards in prop::sample::select(vec![1_usize, 4]),
    ) {
        let store = store(cap, shards);
        let mut now = Nanos::from_secs(5);
        for (key, cost, span) in before {
            now = now + Duration::from_nanos(span);
            let _ = store.try_acquire_at(&key, now, cost);
        }
        let far = now.max(Nanos::new(far));
        let _ = store.try_acquire_at(&200, far, 1);
        store.clean_up_at(far);
        for key in 100..110 {
            if let Err(Denied::RateLimited { retry_after }) = store.foresee_at(&key, now, 3).decision {
                // From empty to full.
                prop_assert!(retry_after <= Duration::from_secs(1), "{retry_after:?}");
            }
        }
    }
}

#[test]
fn d03_new_keys_wait_no_longer_than_what_spent_far_ahead() {
    let store = store(100, 1);
    assert!(store.try_acquire_at(&1, Nanos::from_secs(1_000), 3).is_ok());
    store.clean_up_at(Nanos::from_secs(2_000));
    assert!(store.is_empty());
    let wait = store.try_acquire_at(&2, Nanos::from_secs(10), 3).unwrap_err().retry_after();
    // Key 1 would be full again at 1001 s.
    assert_eq!(wait, Some(Duration::from_secs(991)));
}
