//! Handles of keys: one budget whoever asks for it and by which way, and what becomes of a handle when the store changes its key.
//!
//! That a handle answers as the store would, whatever happens in between, is a law of its own in `keyed_law.rs`.
#![cfg(feature = "keyed")]
#![allow(clippy::std_instead_of_alloc, reason = "tests run on a host")]

mod support;

use core::hash::{BuildHasher, Hasher};
use core::num::NonZeroUsize;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::hash::{DefaultHasher, RandomState};
use std::sync::Arc;

use sluicegate_core::{
    Denied, Hierarchy, Inheritance, KeyHandle, KeyedOptions, KeyedTokenBucket, Level, Limit, Limiter, ManualClock,
    Nanos, Overflow, Remaining, Tier, Tiers, TokenBucket, TooManyKeys, quota,
};
use support::race;

type Store<K> = KeyedTokenBucket<K, parking_lot::RawRwLock, RandomState, ManualClock>;
type Tiered<K> = KeyedTokenBucket<K, parking_lot::RawRwLock, RandomState, ManualClock, (), Tiers>;

#[test]
fn a11_handles_and_the_store_share_a_limit_raced_by_16_threads() {
    const LIMIT: u64 = 30_000;
    let store: Store<u64> = Store::new("30000/1h".parse::<sluicegate_core::Quota>().unwrap());
    let handle = KeyHandle::new(&store, 7).unwrap();
    let admitted: u64 = race(16, |thread| {
        let own = handle.clone();
        let take = || if thread % 4 == 0 { store.try_acquire(&7, 1) } else { own.try_acquire(1) };
        (0..4_000).filter(|_| take().is_ok()).count() as u64
    })
    .iter()
    .sum();
    assert_eq!(admitted, LIMIT);
    assert_eq!(handle.inspect().level, 0);
    assert_eq!(store.inspect(&7).unwrap().level, 0);
}

// The clock stands, so that there is nothing but the capacity, which no change of the quota changes.
#[test]
fn c08_changes_of_quota_under_racing_handles_mint_and_lose_nothing() {
    for _ in 0..30 {
        let store: Store<u64> = Store::new(quota!("5000/1h"));
        let is_over = AtomicBool::new(false);
        let running = AtomicU64::new(4);
        let admitted: u64 = race(6, |thread| match thread {
            4 => {
                while !is_over.load(Ordering::Relaxed) {
                    for quota in [quota!("1/1h burst 5000"), quota!("7000/3h burst 5000"), quota!("5000/1h")] {
                        store.set_quota((), quota, Inheritance::Level).unwrap();
                    }
                }
                0
            }
            5 => {
                while !is_over.load(Ordering::Relaxed) {
                    store.clean_up();
                }
                0
            }
            _ => {
                let mut handle = KeyHandle::new(&store, 7).unwrap();
                let mut admitted = 0;
                for turn in 0..3_000 {
                    admitted += u64::from(handle.try_acquire(1).is_ok());
                    if turn % 16 == 0 {
                        handle.renew().unwrap();
                    }
                }
                if running.fetch_sub(1, Ordering::Relaxed) == 1 {
                    is_over.store(true, Ordering::Relaxed);
                }
                admitted
            }
        })
        .iter()
        .sum();
        assert_eq!(admitted, 5_000);
    }
}

#[test]
fn a01_handles_of_two_keys_share_no_budget() {
    let store: Store<u64> = Store::new(quota!("1/1m"));
    let [one, two] = [1, 2].map(|key| KeyHandle::new(&store, key).unwrap());
    assert!(one.try_acquire(1).is_ok());
    assert!(one.try_acquire(1).is_err());
    assert!(two.try_acquire(1).is_ok());
}

// What is owed, in units of another quota, can be as large as any number.
#[test]
fn a01_a_debt_that_was_carried_over_is_no_place_of_another_key() {
    let (fast, slow) = (quota!("1000000/1s burst 1 debt 20000000"), quota!("1/1000s"));
    let (now, owed) = (Nanos::new(69_414_584_320), 18_446_743);
    let options = KeyedOptions::new(fast).shards(NonZeroUsize::MIN);
    let store: Store<u64> = Store::new(options);
    store.clock().set(now);
    assert_eq!(store.debit(&1, owed + 1).unpaid, 0);
    store.set_quota((), slow, Inheritance::Level).unwrap();
    let others = [2, 3, 4].map(|key| KeyHandle::new(&store, key).unwrap());
    assert_eq!(store.inspect(&1).unwrap().level, 0);
    assert!(store.try_acquire(&1, 1).is_err());
    store.clean_up();
    assert!(others.iter().all(|other| other.try_acquire(1).is_ok()));
}

#[test]
fn a14_what_the_store_gives_back_reaches_the_handle() {
    let store: Store<u64> = Store::new(quota!("3/1m debt 2"));
    let handle = KeyHandle::new(&store, 1).unwrap();
    assert!(handle.try_acquire(3).is_ok());
    assert!(store.reset(&1));
    assert!(handle.try_acquire(3).is_ok());
    assert!(store.refund(&1, 1));
    assert!(handle.refund(1));
    assert_eq!(handle.try_acquire(2).unwrap().remaining, Remaining::Exactly(0));
    assert_eq!(handle.debit(3).unpaid, 1);
    assert_eq!(store.inspect(&1).unwrap().owed, 2);
    assert!(handle.reset());
    assert_eq!(handle.inspect().level, 3);
    assert!(handle.is_current());
}

#[test]
fn a23_a_full_key_stays_while_it_has_a_handle() {
    let options = KeyedOptions::new(quota!("1/1s")).cap(2).overflow(Overflow::Deny);
    let store: Store<u64> = Store::new(options.shards(NonZeroUsize::MIN));
    let handle = KeyHandle::new(&store, 1).unwrap();
    let clone = handle.clone();
    let second = KeyHandle::new(&store, 2).unwrap();
    store.clock().set(Nanos::from_secs(100));
    store.clean_up();
    assert_eq!(store.len(), 2);
    assert_eq!(KeyHandle::new(&store, 3).unwrap_err(), TooManyKeys);
    assert_eq!(store.try_acquire(&3, 1), Err(Denied::TooManyKeys));
    // A second handle of a key takes no second place.
    assert!(KeyHandle::new(&store, 2).is_ok());

    drop(handle);
    assert_eq!(store.try_acquire(&3, 1), Err(Denied::TooManyKeys), "key 1 has another handle");
    assert!(clone.try_acquire(1).is_ok());
    drop(clone);
    assert_eq!(store.try_acquire(&3, 1), Err(Denied::TooManyKeys), "key 1 is spent");
    store.clock().set(Nanos::from_secs(101));
    assert!(store.try_acquire(&3, 1).is_ok(), "a key that is full and has no handle makes place");
    assert_eq!(store.inspect(&1), None);
    assert!(second.is_current());
}

#[test]
fn c08_a_change_of_quota_is_right_at_once_and_renewing_makes_it_quick_again() {
    let store: Store<u64> = Store::new(quota!("10/1s"));
    let mut handle = KeyHandle::new(&store, 1).unwrap();
    assert!(handle.try_acquire(4).is_ok());
    store.set_quota((), quota!("20/1s burst 20"), Inheritance::Level).unwrap();
    assert!(!handle.is_current());
    // The store answers meanwhile.
    assert_eq!(handle.inspect().capacity, 20);
    assert_eq!(handle.try_acquire(7), handle.peek(7));
    assert!(handle.try_acquire(6).is_ok());
    handle.renew().unwrap();
    assert!(handle.is_current());
    assert_eq!((handle.inspect().level, handle.inspect().capacity), (0, 20));
    store.clock().set(Nanos::from_secs(1));
    assert!(handle.try_acquire(20).is_ok());
    assert_eq!(store.inspect(&1).unwrap().level, 0);

    // The same quota again changes nothing, and no handle goes.
    store.set_quota((), quota!("20/1s burst 20"), Inheritance::Level).unwrap();
    assert!(handle.is_current());
}

#[test]
fn c08_a_change_of_another_tier_leaves_a_handle_alone() {
    let store: Tiered<u64> =
        Tiered::with_tiers(quota!("1/1m"), &[quota!("5/1m")], RandomState::new(), ManualClock::new());
    store.set_tier(&1, Tier(1), Inheritance::Full).unwrap();
    let mut paid = KeyHandle::new(&store, 1).unwrap();
    let free = KeyHandle::new(&store, 2).unwrap();
    store.set_quota(Tier(0), quota!("2/1m"), Inheritance::Full).unwrap();
    assert!(paid.is_current() && !free.is_current());
    assert!(paid.try_acquire(5).is_ok());
    assert!(free.try_acquire(2).is_ok());
    assert!(free.try_acquire(1).is_err());

    store.set_tier(&1, Tier(0), Inheritance::Full).unwrap();
    assert!(!paid.is_current());
    assert_eq!(paid.try_acquire(3), Err(Denied::CostExceedsLimit { cost: 3, limit: 2 }));
    paid.renew().unwrap();
    assert_eq!(paid.try_acquire(3), Err(Denied::CostExceedsLimit { cost: 3, limit: 2 }));
    assert!(paid.try_acquire(2).is_ok());
}

#[test]
fn c15_a_removed_key_is_as_new_to_its_handle() {
    let store: Store<u64> = Store::new(quota!("2/1m"));
    let mut handle = KeyHandle::new(&store, 1).unwrap();
    assert!(handle.try_acquire(2).is_ok());
    assert!(store.remove(&1));
    assert!(!handle.is_current());
    assert_eq!(handle.inspect().level, 2);
    assert!(store.is_empty());
    assert!(handle.try_acquire(2).is_ok());
    handle.renew().unwrap();
    assert!(handle.try_acquire(1).is_err());
    assert_eq!(store.len(), 1);
}

#[test]
fn a10_without_a_quota_a_handle_adds_nothing_and_answers_as_the_store() {
    for limit in [Limit::Unlimited, Limit::DenyAll] {
        let store: Store<u64> = Store::new(limit);
        let mut handle = KeyHandle::new(&store, 1).unwrap();
        assert!(store.is_empty());
        assert!(handle.is_current());
        assert_eq!(handle.try_acquire(5), store.try_acquire(&1, 5));
        assert_eq!(handle.peek(5), store.peek(&1, 5));
        assert_eq!(handle.inspect(), store.key(&1).inspect_at(Nanos::ZERO));
        handle.renew().unwrap();
    }
}

/// A hasher that counts how often it is asked.
#[derive(Default)]
struct Counting(AtomicU64);

impl BuildHasher for Counting {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        self.0.fetch_add(1, Ordering::Relaxed);
        DefaultHasher::new()
    }
}

/// A key that may be compared with no other.
#[derive(Clone, Debug)]
struct Incomparable(Arc<AtomicBool>);

impl PartialEq for Incomparable {
    fn eq(&self, _: &Self) -> bool {
        assert!(self.0.load(Ordering::Relaxed), "compared");
        true
    }
}

impl Eq for Incomparable {}

impl core::hash::Hash for Incomparable {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(0);
    }
}

#[test]
fn a_request_by_a_handle_looks_nothing_up() {
    type Store = KeyedTokenBucket<Incomparable, parking_lot::RawRwLock, Counting, ManualClock>;
    let may_compare = Arc::new(AtomicBool::new(true));
    let store: Store = Store::new(quota!("2/1m"));
    let handle = KeyHandle::new(&store, Incomparable(Arc::clone(&may_compare))).unwrap();
    may_compare.store(false, Ordering::Relaxed);
    let asked = store.hasher().0.load(Ordering::Relaxed);
    // Also while somebody else has every shard locked.
    store.for_each(|_, _| {
        assert!(handle.try_acquire(2).is_ok());
        assert!(handle.try_acquire(1).is_err());
        assert!(handle.try_acquire_at(Nanos::from_secs(30), 1).is_ok());
        assert!(handle.try_acquire(0).is_ok());
        assert!(handle.peek(1).is_err());
        assert_eq!(handle.inspect().level, 0);
    });
    assert_eq!(store.hasher().0.load(Ordering::Relaxed), asked);
}

std::thread_local! {
    /// How many keys are hashed before one panics.
    static FUSE: core::cell::Cell<Option<u32>> = const { core::cell::Cell::new(None) };
}

/// A key whose hash may panic.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fused(u64);

impl core::hash::Hash for Fused {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let left = FUSE.get().map(|left| left.checked_sub(1).expect("a hash that panics"));
        FUSE.set(left);
        self.0.hash(state);
    }
}

// A store whose table is made anew forgets keys when one of their hashes panics. A handle must not go on with what was forgotten.
#[test]
fn a01_a_key_that_is_forgotten_in_a_panic_and_its_handle_share_one_budget() {
    let options = KeyedOptions::new(quota!("10/1h")).shards(NonZeroUsize::MIN);
    for fuse in 2..40 {
        let store: Store<Fused> = Store::new(options);
        let handles = [0, 1, 2, 3, 4].map(|key| KeyHandle::new(&store, Fused(key)).unwrap());
        let panicked = (10..1_000).any(|key| {
            FUSE.set(Some(fuse));
            let first_use = core::panic::AssertUnwindSafe(|| _ = store.try_acquire(&Fused(key), 1));
            let is_panic = std::panic::catch_unwind(first_use).is_err();
            FUSE.set(None);
            is_panic
        });
        assert!(panicked);
        for handle in &handles {
            let both =
                || u64::from(handle.try_acquire(1).is_ok()) + u64::from(store.try_acquire(handle.key(), 1).is_ok());
            assert_eq!((0..20).map(|_| both()).sum::<u64>(), 10);
        }
    }
}

#[test]
fn c09_a_handle_is_a_level() {
    let store: Store<u64> = Store::new(quota!("2/1m"));
    let client = Level::new("client", KeyHandle::new(&store, 1).unwrap());
    let global =
        Level::new("global", sluicegate_core::AdjustableBucket::with_clock(quota!("9/1m"), ManualClock::new()));
    let levels = Hierarchy::new([&global]).unwrap();
    assert!(levels.try_acquire_with_at(Nanos::ZERO, [1], client.limiter(), 2).is_ok());
    let denied = levels.try_acquire_with_at(Nanos::ZERO, [1], client.limiter(), 1).unwrap_err();
    assert_eq!(denied.level, 1);
    assert_eq!(global.limiter().inspect_at(Nanos::ZERO).level, 8);

    // Every answer of the two ways is the same, also once the store has taken the key back.
    for _ in 0..2 {
        let (handle, key) = (client.limiter(), store.key(&1));
        for now in [Nanos::ZERO, Nanos::from_secs(29), Nanos::from_secs(30), Nanos::MAX] {
            for cost in [0, 1, 2, 3, u64::MAX] {
                assert_eq!(Limiter::peek_at(handle, now, cost), key.peek_at(now, cost));
                assert_eq!(handle.earliest_at(now, cost.into()), key.earliest_at(now, cost.into()));
            }
            assert_eq!(Limiter::inspect_at(handle, now), key.inspect_at(now));
        }
        store.set_quota((), quota!("2/2m"), Inheritance::Level).unwrap();
        assert!(!handle.is_current());
    }
}

#[test]
fn d01_a_handle_decides_as_a_bucket_of_its_own() {
    let store: Arc<Store<String>> = Arc::new(Store::new(quota!("7/3s burst 4")));
    let handle = KeyHandle::new(Arc::clone(&store), "ada".to_owned()).unwrap();
    let bucket = TokenBucket::with_clock(quota!("7/3s burst 4"), ManualClock::new());
    let mut now = Nanos::ZERO;
    for turn in 0..2_000_u64 {
        now = now + Duration::from_nanos(turn * 7_919 % 900_000_000);
        let cost = turn % 5;
        assert_eq!(handle.try_acquire_at(now, cost), bucket.try_acquire_at(now, cost));
    }
    // It keeps what it points to.
    drop(store);
    assert!(handle.try_acquire_at(now + Duration::from_secs(9), 4).is_ok());
}
