//! Many requests at once are decided as one after another.
#![cfg(feature = "keyed")]

mod support;

use core::hash::BuildHasherDefault;
use core::num::NonZeroUsize;
use std::hash::DefaultHasher;

use proptest::prelude::*;
use sluicegate_core::{
    Decision, Denied, KeyedOptions, KeyedTokenBucket, Limit, ManualClock, Nanos, Overflow, Quota, quota,
};
use support::{cases, race};

type Store = KeyedTokenBucket<u16, parking_lot::RawRwLock, BuildHasherDefault<DefaultHasher>, ManualClock>;

fn store(quota: Quota, shards: usize) -> Store {
    Store::new(KeyedOptions::new(quota).shards(NonZeroUsize::new(shards).unwrap()))
}

fn refer(requests: &[(u16, u64)]) -> Vec<(&u16, u64)> {
    requests.iter().map(|(key, cost)| (key, *cost)).collect()
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn each_is_decided_as_one_after_another(
        shards in 1..9_usize,
        batches in prop::collection::vec(
            (prop::collection::vec((0..40_u16, 0..5_u64), 0..150), 0..3_000_000_000_u64, any::<bool>()),
            1..6,
        ),
    ) {
        let quota = quota!("2/1s burst 4");
        let (together, apart) = (store(quota, shards), store(quota, shards));
        let (mut now, mut decisions) = (Nanos::ZERO, vec![Err(Denied::QueueFull); 3]);
        for (requests, ahead, by_own_clock) in batches {
            now = Nanos::new(now.as_u64() + ahead);
            if by_own_clock {
                together.clock().set(now);
                together.try_acquire_each(&refer(&requests), &mut decisions);
            } else {
                together.try_acquire_each_at(now, &refer(&requests), &mut decisions);
            }
            let expected: Vec<Decision> =
                requests.iter().map(|(key, cost)| apart.try_acquire_at(key, now, *cost)).collect();
            prop_assert_eq!(&decisions, &expected);
        }
        // Which keys that are full were dropped is another matter: that goes by the order of first uses in a shard.
        let level = |store: &Store, key| store.inspect_at(key, now).map_or(4, |seen| seen.level);
        for key in &(0..40).collect::<Vec<_>>() {
            prop_assert_eq!(level(&together, key), level(&apart, key));
        }
    }
}

#[test]
fn a11_racing_batches_admit_exactly_the_limit_of_each_key() {
    let store = store(quota!("100/1h"), 4);
    let admitted = race(8, |thread| {
        let keys: Vec<u16> = (0..200).map(|place| (place * 7 + thread as u16) % 50).collect();
        let requests: Vec<_> = keys.iter().map(|key| (key, 1)).collect();
        let (mut admitted, mut decisions) = ([0; 50], Vec::new());
        for _ in 0..10 {
            store.try_acquire_each(&requests, &mut decisions);
            for (key, decision) in keys.iter().zip(&decisions) {
                admitted[usize::from(*key)] += u64::from(decision.is_ok());
            }
        }
        admitted
    });
    for key in 0..50 {
        assert_eq!(admitted.iter().map(|admitted| admitted[key]).sum::<u64>(), 100, "key {key}");
    }
}

#[test]
fn d03_a_batch_keeps_to_the_cap() {
    let options = KeyedOptions::new(quota!("1/1h")).cap(10).overflow(Overflow::Deny);
    let store = Store::new(options.shards(NonZeroUsize::new(4).unwrap()));
    let (keys, mut decisions) = ((0..100).collect::<Vec<u16>>(), Vec::new());
    store.try_acquire_each(&keys.iter().map(|key| (key, 1)).collect::<Vec<_>>(), &mut decisions);
    assert_eq!(decisions.iter().filter(|decision| decision.is_ok()).count(), 10);
    assert_eq!(decisions.iter().filter(|decision| **decision == Err(Denied::TooManyKeys)).count(), 90);
    assert_eq!(store.len(), 10);
}

#[test]
fn without_a_quota_each_is_answered_alike_and_nothing_is_kept() {
    let mut decisions = Vec::new();
    for (limit, is_admitted) in [(Limit::Unlimited, true), (Limit::DenyAll, false)] {
        let store = Store::new(limit);
        store.try_acquire_each(&[(&1, 1), (&2, u64::MAX)], &mut decisions);
        assert!(decisions.len() == 2 && decisions.iter().all(|decision| decision.is_ok() == is_admitted));
        store.try_acquire_each_at::<u16>(Nanos::ZERO, &[], &mut decisions);
        assert!(decisions.is_empty() && store.is_empty());
    }
}
