//! Many threads at one store: first use, the cap, and clean-up while others decide.
//!
//! The models in `loom-tests` visit every interleaving of few calls; these visit few interleavings of very many.
#![cfg(feature = "keyed")]

mod support;

use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::hash::RandomState;

use sluicegate_core::{
    DecidedBy, Denied, Inheritance, KeyedOptions, KeyedTokenBucket, ManualClock, Nanos, Overflow, Tier, Tiers, quota,
};
use support::{Numbers, race};

type Store<K> = KeyedTokenBucket<K, parking_lot::RawRwLock, RandomState, ManualClock>;

#[test]
fn a11_first_use_raced_by_64_threads_admits_exactly_the_limit() {
    for round in 0..100 {
        let limit = [1, 7, 63, 64, 100][round % 5];
        let quota = format!("{limit}/1h").parse::<sluicegate_core::Quota>().unwrap();
        let store: Store<String> = Store::new(quota);
        let admitted: u64 =
            race(64, |_| (0..3).filter(|_| store.try_acquire("new", 1).is_ok()).count() as u64).iter().sum();
        assert_eq!(admitted, limit.min(64 * 3));
        assert_eq!(store.len(), 1);
        assert_eq!(store.inspect("new").unwrap().level, 0);
    }
}

#[test]
fn d03_racing_first_uses_never_exceed_the_cap() {
    const CAP: u64 = 100;
    for shards in [1, 16] {
        let options = KeyedOptions::new(quota!("1/1h")).cap(CAP as usize).overflow(Overflow::Deny);
        let store: Store<u64> = Store::new(options.shards(NonZeroUsize::new(shards).unwrap()));
        let counts = race(16, |thread| {
            let mut own = 0;
            for key in 0..200 {
                let decided = store.decide(&(thread as u64 * 1000 + key), 1);
                assert!(store.len() as u64 <= CAP);
                match decided.by {
                    DecidedBy::Key => own += u64::from(decided.decision.is_ok()),
                    DecidedBy::Overflow => assert_eq!(decided.decision, Err(Denied::TooManyKeys)),
                }
            }
            own
        });
        assert_eq!(counts.iter().sum::<u64>(), CAP, "{shards} shards");
        let mut shown = 0;
        store.for_each(|_, seen| {
            assert_eq!(seen.level, 0);
            shown += 1;
        });
        assert_eq!((store.len() as u64, shown), (CAP, CAP));
    }
}

#[test]
fn a23_clean_up_while_others_decide_loses_and_makes_nothing() {
    // Time moves on, so that entries become full and are dropped and come back: per key, no more than the law allows.
    const KEYS: usize = 40;
    const STEP: u64 = 1_000_000;
    let store: Store<usize> =
        Store::new(KeyedOptions::new(quota!("1000/1s burst 3")).shards(NonZeroUsize::new(2).unwrap()));
    let reading = AtomicU64::new(0);
    let admitted: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    race(8, |thread| {
        let mut numbers = Numbers(thread as u64 + 1);
        for _ in 0..4_000 {
            // A late reading now and then: the clock of another core.
            let late = numbers.below(2) * numbers.below(3) * STEP;
            let now = Nanos::new(reading.fetch_add(STEP / 50, Ordering::Relaxed).saturating_sub(late));
            let key = numbers.below(KEYS as u64) as usize;
            let cost = 1 + numbers.below(3);
            match numbers.below(12) {
                0 => store.clean_up_at(now),
                1 => {
                    let _ = (store.peek_at(&key, now, cost), store.inspect_at(&key, now));
                }
                _ => {
                    if store.try_acquire_at(&key, now, cost).is_ok() {
                        admitted[key].fetch_add(cost, Ordering::Relaxed);
                    }
                }
            }
        }
    });
    let span = reading.load(Ordering::Relaxed);
    let mut total = 0;
    for (key, admitted) in admitted.iter().enumerate() {
        let (admitted, most) = (admitted.load(Ordering::Relaxed), 3 + span / STEP);
        assert!(admitted <= most, "{key}: {admitted} of {most}");
        total += admitted;
    }
    assert!(total > 0);
    store.clean_up_at(Nanos::new(span + 10 * STEP));
    assert!(store.is_empty());
}

#[test]
fn d02_what_is_refunded_and_kept_adds_up_while_keys_come_and_go() {
    // Nothing refills: what is held at the end and what is left are the budget, for each key.
    const BUDGET: u64 = 20;
    let store: Store<u64> = Store::new(KeyedOptions::new(quota!("20/1h")).shards(NonZeroUsize::MIN));
    let kept = race(8, |thread| {
        let mut numbers = Numbers(thread as u64 + 7);
        let mut mine = [0_u64; 4];
        for _ in 0..3_000 {
            let key = numbers.below(4);
            let held = &mut mine[key as usize];
            let cost = 1 + numbers.below(3);
            if store.try_acquire_at(&key, Nanos::ZERO, cost).is_ok() {
                *held += cost;
            }
            if *held > 0 && numbers.below(2) == 0 {
                let back = 1 + numbers.below(*held);
                // A key of which something is held is not full, so it is there.
                assert!(store.refund(&key, back));
                *held -= back;
            }
            if numbers.below(20) == 0 {
                store.clean_up_at(Nanos::ZERO);
            }
            // Others come meanwhile, so that tables are made anew.
            if numbers.below(10) == 0 {
                let _ = store.try_acquire_at(&(100 + numbers.below(500)), Nanos::ZERO, 1);
            }
        }
        mine
    });
    for key in 0..4_u64 {
        let held: u64 = kept.iter().map(|mine| mine[key as usize]).sum();
        let left = store.inspect_at(&key, Nanos::ZERO).map_or(BUDGET, |seen| seen.level);
        assert_eq!(held + left, BUDGET, "{key}");
    }
}

#[test]
fn c08_quotas_and_tiers_that_change_under_load_mint_nothing() {
    // Nothing refills, and the level is kept: however often quotas change, each key gives its 30 and no more.
    type Tiered = KeyedTokenBucket<u64, parking_lot::RawRwLock, RandomState, ManualClock, (), Tiers>;
    const QUOTAS: [sluicegate_core::Quota; 3] = [quota!("30/720h"), quota!("60/720h"), quota!("30/700h")];
    let store = Tiered::with_tiers(QUOTAS[0], &QUOTAS[1..], RandomState::new(), ManualClock::new());
    let is_over = AtomicBool::new(false);
    let admitted = race(6, |thread| {
        let mut numbers = Numbers(thread as u64 + 3);
        let mut admitted = 0;
        if thread == 0 {
            for _ in 0..600 {
                let tier = Tier(numbers.below(3) as u8);
                store.set_tier_at(&numbers.below(5), tier, Nanos::ZERO, Inheritance::Level).unwrap();
                let quota = QUOTAS[numbers.below(3) as usize];
                store.set_quota_at(Tier(numbers.below(3) as u8), quota, Nanos::ZERO, Inheritance::Level).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
        }
        for _ in 0..2_000 {
            admitted += u64::from(store.try_acquire_at(&numbers.below(5), Nanos::ZERO, 1).is_ok());
        }
        admitted
    });
    assert!(is_over.load(Ordering::Relaxed));
    // A change rounds down by less than a unit, which is less than a token.
    let total: u64 = admitted.iter().sum();
    assert!(total <= 150, "{total}");
    assert!(total >= 145, "{total}");
}
