//! What the keyed store promises, one key and one caller at a time.
#![cfg(feature = "keyed")]

use core::cell::{Cell, RefCell};
use core::hash::{BuildHasherDefault, Hash, Hasher};
use core::num::NonZeroUsize;
use core::time::Duration;
use std::hash::DefaultHasher;

use sluicegate_core::{
    Admitted, Clock, DecidedBy, Denied, Inheritance, KeyedOptions, KeyedTokenBucket, Limit, ManualClock, Nanos,
    Observer, Overflow, Remaining, SetTierError, Tier, Tiers, quota,
};

/// Seeded with nothing, so that every run is the same.
type Fixed = BuildHasherDefault<DefaultHasher>;
type Store<K, S = Fixed> = KeyedTokenBucket<K, parking_lot::RawRwLock, S, ManualClock>;
type Tiered = KeyedTokenBucket<u32, parking_lot::RawRwLock, Fixed, ManualClock, (), Tiers>;

fn options(limit: impl Into<Limit>) -> KeyedOptions {
    KeyedOptions::new(limit).shards(NonZeroUsize::new(4).unwrap())
}

fn after(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

#[test]
fn a01_no_two_identifiers_and_no_two_actions_share_budget() {
    let store: Store<(String, &'static str)> = Store::new(options(quota!("3/1h")));
    let keys = || ["ada", "grace", "Ada", ""].into_iter().flat_map(|id| [(id, "login"), (id, "publish"), (id, "")]);
    for (id, action) in keys() {
        let key = (id.to_owned(), action);
        for left in [2, 1, 0] {
            assert_eq!(store.try_acquire(&key, 1).unwrap().remaining, Remaining::Exactly(left));
        }
        assert!(store.try_acquire(&key, 1).is_err());
    }
    assert_eq!(store.len(), keys().count());
}

#[test]
fn b01_the_whole_key_is_the_identity_whatever_its_hash() {
    /// Every key has the same hash, so only equality tells them apart.
    #[derive(Clone, Copy, Default)]
    struct Blind;
    impl Hasher for Blind {
        fn write(&mut self, _: &[u8]) {}
        fn finish(&self) -> u64 {
            0
        }
    }
    // Another window or count is another key, and so another history.
    let store: Store<(&str, u64, u64), BuildHasherDefault<Blind>> = Store::new(options(quota!("1/1h")));
    let keys = || (0..20).flat_map(|count| (0..20).map(move |window| ("resource", count, window)));
    for key in keys() {
        assert!(store.try_acquire(&key, 1).is_ok(), "{key:?} shares a budget");
    }
    for key in keys() {
        assert!(store.try_acquire(&key, 1).is_err(), "{key:?} was forgotten");
    }
    assert_eq!(store.len(), 400);
}

#[test]
fn a02_ageing_reads_the_quota_that_an_entry_was_written_under() {
    // A key spent an hour's budget. Its tier's quota becomes a second's: settled by the old one, it still lacks as much.
    let store = Tiered::with_tiers(options(quota!("3600/1h")), &[], Fixed::default(), ManualClock::new());
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 3600).is_ok());
    store.set_quota_at(Tier(0), quota!("3600/1s"), after(1), Inheritance::Level).unwrap();
    assert_eq!(store.inspect_at(&1, after(1)).unwrap().level, 1);
    store.clean_up_at(after(1));
    assert_eq!(store.len(), 1, "a spent key was dropped by a quota that it was not written under");
    store.clean_up_at(after(2));
    assert_eq!(store.len(), 0);
}

#[test]
fn a14_reset_restores_the_full_budget_and_nobody_elses() {
    let store: Store<u32> = Store::new(options(quota!("5/1h")));
    for key in [1, 2] {
        assert!(store.try_acquire(&key, 5).is_ok());
    }
    assert!(store.reset(&1));
    assert_eq!(store.inspect(&1).unwrap().level, 5);
    assert!(store.try_acquire(&1, 5).is_ok());
    assert!(store.try_acquire(&1, 1).is_err());
    assert!(store.try_acquire(&2, 1).is_err());
    assert!(!store.reset(&3));
    assert_eq!(store.len(), 2);
}

#[test]
fn a23_clean_up_drops_a_bucket_only_once_it_is_full_again() {
    let store: Store<u64> = Store::new(options(quota!("10/10s")));
    // Key k spends k tokens, and is full again after k seconds.
    for key in 0..=10 {
        assert!(store.try_acquire_at(&key, Nanos::ZERO, key).is_ok());
    }
    for second in 0..=10 {
        for (early, kept) in [(Duration::from_nanos(1), 11 - second), (Duration::ZERO, 10 - second)] {
            let now = after(second) - early;
            store.clean_up_at(now);
            assert_eq!(store.len() as u64, kept.min(10), "{now:?}");
            for key in 1..=10_u64 {
                let is_full = u128::from(key) * 1_000_000_000 <= u128::from(now.as_u64());
                assert_eq!(store.inspect_at(&key, now).is_none(), is_full, "{key} at {now:?}");
            }
        }
    }
}

#[test]
fn a23_first_uses_clean_up_behind_those_that_never_came_back() {
    let store: Store<u64> = Store::new(options(quota!("1/1s")));
    // A hundred keys a second that are never seen again: 100 of them lack something at any time.
    let mut most = 0;
    for key in 0..100_000 {
        assert!(store.try_acquire_at(&key, Nanos::from_millis(10 * key), 1).is_ok());
        most = most.max(store.len());
    }
    assert!(most >= 100, "{most}");
    // A quarter of the table's slots on top, and some slots for each shard.
    assert!(most <= 250, "{most} keys for 100 that have spent something");
}

#[test]
fn b09_idle_leaves_no_entry_and_no_table() {
    let store: Store<u64> = Store::new(options(quota!("1/1s")));
    for key in 0..10_000 {
        assert!(store.try_acquire_at(&key, Nanos::ZERO, 1).is_ok());
    }
    store.clean_up_at(after(1));
    assert_eq!(store.len(), 0);
    store.for_each_at(after(1), |key, _| panic!("{key} is left"));
}

#[test]
fn b08_looking_a_refusal_and_a_cost_of_nothing_create_nothing() {
    let store: Store<String> = Store::new(options(quota!("5/1h")));
    assert_eq!(store.peek("ada", 5).unwrap().remaining, Remaining::Exactly(0));
    assert_eq!(store.peek("ada", 6), Err(Denied::CostExceedsLimit { cost: 6, limit: 5 }));
    assert_eq!(store.try_acquire("ada", 6), Err(Denied::CostExceedsLimit { cost: 6, limit: 5 }));
    assert_eq!(store.try_acquire("ada", u64::MAX), Err(Denied::CostExceedsLimit { cost: u64::MAX, limit: 5 }));
    assert_eq!(store.try_acquire("ada", 0).unwrap().remaining, Remaining::Exactly(5));
    assert_eq!(store.inspect("ada"), None);
    assert!(!store.refund("ada", 3) && !store.remove("ada") && !store.reset("ada"));
    assert!(store.is_empty());
    assert!(store.try_acquire("ada", 4).is_ok());
    for _ in 0..3 {
        assert!(store.peek("ada", 1).is_ok() && store.peek("ada", 2).is_err());
        assert_eq!(store.inspect("ada").unwrap().level, 1);
    }
}

#[test]
fn c07_inspect_shows_level_capacity_and_fill_and_an_unknown_id_is_not_found() {
    let store: Store<u32> = Store::new(options(quota!("8/8s")));
    assert!(store.try_acquire(&1, 6).is_ok());
    let seen = store.inspect(&1).unwrap();
    assert_eq!((seen.level, seen.capacity, seen.fill_percent()), (2, 8, 25));
    assert_eq!(store.inspect_at(&1, after(2)).unwrap().level, 4);
    assert_eq!(store.inspect(&1), Some(seen), "looking changed something");
    assert_eq!(store.inspect(&2), None);
    let mut all = Vec::new();
    store.for_each(|key, seen| all.push((*key, seen.level)));
    assert_eq!(all, [(1, 2)]);
}

#[test]
fn c15_keys_come_and_go_and_removing_an_unknown_one_is_not_found() {
    let store: Store<String> = Store::new(options(quota!("5/1h")));
    for key in ["ada", "grace"] {
        assert!(store.try_acquire(key, 5).is_ok());
    }
    assert!(store.remove("ada"));
    assert!(!store.remove("ada"));
    assert_eq!(store.len(), 1);
    assert!(store.try_acquire("ada", 5).is_ok(), "a key that was removed starts full");
    assert!(store.try_acquire("grace", 1).is_err(), "others are untouched");
}

#[test]
fn a10_off_touches_no_table_reads_no_clock_and_deny_admits_nobody() {
    struct Unread;
    impl Clock for Unread {
        fn now(&self) -> Nanos {
            panic!("the clock was read")
        }
    }
    /// Even hashing would be too much.
    #[derive(Clone, PartialEq, Eq)]
    struct Untouched;
    impl Hash for Untouched {
        fn hash<H: Hasher>(&self, _: &mut H) {
            panic!("the key was hashed")
        }
    }
    let open: KeyedTokenBucket<Untouched, parking_lot::RawRwLock, Fixed, Unread> =
        KeyedTokenBucket::with_clock(Limit::Unlimited, Unread);
    assert_eq!(open.try_acquire(&Untouched, u64::MAX).unwrap().remaining, Remaining::Unlimited);
    assert!(open.peek(&Untouched, 1).is_ok() && open.inspect(&Untouched).is_none());
    assert!(!open.refund(&Untouched, 1) && !open.reset(&Untouched) && !open.remove(&Untouched));
    open.clean_up();
    open.for_each(|_, _| panic!("there is a key"));
    assert_eq!((open.len(), open.memory_bound()), (0, 0));

    let shut: Store<u32> = Store::new(Limit::DenyAll);
    assert_eq!(shut.try_acquire(&1, 0), Err(Denied::Closed));
    assert_eq!(shut.peek(&1, 1), Err(Denied::Closed));
    assert!(shut.is_empty());
}

#[test]
fn d03_beyond_the_cap_new_keys_share_a_limiter_and_spent_ones_stay_spent() {
    let store: Store<u32> =
        Store::new(options(quota!("1/10s")).cap(3).overflow(Overflow::Shared(quota!("2/1s").into())));
    for key in 1..=3 {
        let decided = store.decide_at(&key, Nanos::ZERO, 1);
        assert!(decided.decision.is_ok() && decided.by == DecidedBy::Key);
    }
    // Two more are served by the shared limiter, the third is told when.
    for left in [1, 0] {
        let foreseen = store.foresee_at(&4, Nanos::ZERO, 1);
        let decided = store.decide_at(&4, Nanos::ZERO, 1);
        assert_eq!((decided, decided.by), (foreseen, DecidedBy::Overflow));
        assert_eq!(decided.decision.unwrap().remaining, Remaining::Exactly(left));
    }
    let denied = store.decide_at(&5, Nanos::ZERO, 1);
    assert_eq!(denied.by, DecidedBy::Overflow);
    assert_eq!(denied.decision, Err(Denied::RateLimited { retry_after: Duration::from_millis(500) }));
    // What a key may never ask for, and asking for nothing, is the key's own to answer.
    assert_eq!(store.decide_at(&5, Nanos::ZERO, 2).decision, Err(Denied::CostExceedsLimit { cost: 2, limit: 1 }));
    assert!(store.try_acquire_at(&5, Nanos::ZERO, 0).is_ok());
    // A refund of the shared limiter's is not a key's.
    assert!(!store.refund(&4, 1));
    store.refund_overflow(1);
    assert!(store.try_acquire_at(&5, Nanos::ZERO, 1).is_ok());
    for key in 1..=3 {
        assert!(store.try_acquire_at(&key, Nanos::ZERO, 1).is_err(), "a spent key got a fresh quota");
    }
    assert_eq!(store.len(), 3);
}

#[test]
fn d03_keys_that_have_become_full_make_place_in_any_shard() {
    let store: Store<u32> = Store::new(options(quota!("1/1s")).cap(64).overflow(Overflow::Deny));
    for key in 0..64 {
        assert!(store.try_acquire_at(&key, Nanos::ZERO, 1).is_ok());
    }
    assert_eq!(store.try_acquire_at(&64, after(1) - Duration::from_nanos(1), 1), Err(Denied::TooManyKeys));
    assert_eq!(store.len(), 64);
    // All have become full: none of as many new keys is turned away, whichever shard it belongs to.
    for key in 1000..1064 {
        let decided = store.decide_at(&key, after(1), 1);
        assert!(decided.decision.is_ok() && decided.by == DecidedBy::Key, "{key}: {decided:?}");
    }
    assert_eq!(store.try_acquire_at(&64, after(1), 1), Err(Denied::TooManyKeys));
    assert!(!Denied::TooManyKeys.is_final() && Denied::TooManyKeys.retry_after().is_none());
}

#[test]
fn d03_a_place_is_found_in_another_shard_too() {
    // Nobody looks through a store of so many, and most shards have nothing to give: each try looks at one other.
    let shards = NonZeroUsize::new(64).unwrap();
    let store: Store<u32> = Store::new(options(quota!("1/1s")).cap(65).overflow(Overflow::Deny).shards(shards));
    for key in 0..65 {
        assert!(store.try_acquire_at(&key, Nanos::ZERO, 1).is_ok());
    }
    assert!(store.remove(&64) && store.try_acquire_at(&64, after(60), 1).is_ok());
    for key in 100..200 {
        let now = after(u64::from(key));
        let tries = (1..=64).find(|_| store.try_acquire_at(&key, now, 1).is_ok());
        assert!(tries.is_some() && store.len() <= 65, "{key} found no place");
    }
}

#[test]
fn d03_a_store_of_few_keys_finds_every_place_at_once() {
    for cap in [1, 2, 3, 7, 32, 63, 64] {
        for shards in [1, 4, 64, usize::MAX] {
            let shards = NonZeroUsize::new(shards).unwrap();
            let options = KeyedOptions::new(quota!("2/2s")).cap(cap).overflow(Overflow::Deny).shards(shards);
            let store: Store<u32> = Store::new(options);
            assert!(store.memory_bound() <= cap * 4096, "{shards} shards for {cap} keys");
            for key in 0..cap as u32 {
                // The first is full again a second before the others.
                assert!(store.try_acquire_at(&key, Nanos::ZERO, if key == 0 { 1 } else { 2 }).is_ok());
            }
            assert_eq!(store.try_acquire_at(&1000, after(1) - Duration::from_nanos(1), 1), Err(Denied::TooManyKeys));
            assert!(store.try_acquire_at(&1000, after(1), 1).is_ok(), "cap {cap}, {shards} shards");
            assert_eq!(store.try_acquire_at(&2000, after(1), 1), Err(Denied::TooManyKeys));
        }
    }
}

#[test]
fn d03_a_place_that_a_first_use_makes_is_its_own() {
    let options = options(quota!("1/1s")).cap(1).overflow(Overflow::Deny).shards(NonZeroUsize::MIN);
    let store: Store<u32> = Store::new(options);
    for key in 0..10 {
        assert!(store.try_acquire_at(&key, after(u64::from(key)), 1).is_ok());
        assert_eq!(store.len(), 1);
    }
}

#[test]
fn a_cap_of_nothing_leaves_everything_to_the_overflow() {
    let store: Store<u32> = Store::new(options(quota!("5/1h")).cap(0));
    let admitted = (0..100).filter(|key| store.try_acquire(key, 1).is_ok()).count();
    assert_eq!((admitted, store.len()), (5, 0));
}

#[test]
fn d02_a_refund_gives_back_what_the_key_had_and_no_more() {
    let store: Store<u32> = Store::new(options(quota!("5/1h")));
    assert!(store.try_acquire(&1, 5).is_ok());
    assert!(store.refund(&1, 2));
    assert_eq!(store.inspect(&1).unwrap().level, 2);
    assert!(store.refund(&1, u64::MAX));
    assert_eq!(store.inspect(&1).unwrap().level, 5);
    assert!(store.try_acquire(&1, 6).is_err());
}

#[test]
fn a_present_key_is_found_without_being_cloned() {
    std::thread_local!(static CLONES: Cell<u32> = const { Cell::new(0) });
    #[derive(PartialEq, Eq, Hash)]
    struct Counted(u32);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            CLONES.set(CLONES.get() + 1);
            Self(self.0)
        }
    }
    let store: Store<Counted> = Store::new(options(quota!("5/1h")).cap(1));
    let key = Counted(1);
    assert!(store.peek(&key, 1).is_ok() && store.try_acquire(&key, 6).is_err());
    assert_eq!(CLONES.get(), 0);
    assert!(store.try_acquire(&key, 1).is_ok());
    assert_eq!(CLONES.get(), 1);
    for _ in 0..10 {
        let _ = (store.try_acquire(&key, 1), store.peek(&key, 1), store.inspect(&key), store.refund(&key, 1));
        let _ = store.try_acquire(&Counted(2), 1);
    }
    store.clean_up();
    assert_eq!(CLONES.get(), 1);
}

#[test]
fn observers_are_told_once_and_outside_the_locks() {
    #[derive(Default)]
    struct Told(RefCell<Vec<(bool, u64)>>);
    impl Observer for &Told {
        fn admitted(&self, _: Nanos, cost: u64, _: &Admitted) {
            self.0.borrow_mut().push((true, cost));
        }
        fn denied(&self, _: Nanos, cost: u64, _: &Denied) {
            self.0.borrow_mut().push((false, cost));
        }
    }
    let told = Told::default();
    let store = Store::<u32>::new(options(quota!("5/1h")).cap(1).overflow(Overflow::Deny)).observed_by(&told);
    let _ = (store.try_acquire(&1, 2), store.try_acquire(&1, 1), store.try_acquire(&1, 9), store.try_acquire(&2, 3));
    let _ = (store.peek(&1, 1), store.inspect(&1));
    assert_eq!(*told.0.borrow(), [(true, 2), (true, 1), (false, 9), (false, 3)]);
}

#[test]
fn clean_up_under_a_clock_that_steps_back_hands_out_no_fresh_quota() {
    // Spent at 100 s, dropped at 200 s by a reading that then turns out to have been ahead.
    let store: Store<u32> = Store::new(options(quota!("10/10s")).shards(NonZeroUsize::MIN));
    assert!(store.try_acquire_at(&1, after(100), 10).is_ok());
    store.clean_up_at(after(200));
    assert!(store.is_empty());
    let again = store.try_acquire_at(&1, after(100), 1);
    assert_eq!(again, Err(Denied::RateLimited { retry_after: Duration::from_secs(1) }));
    assert!(store.is_empty(), "a refusal created a key");
    // It is as if it had been kept: one token a second, and all of them after ten.
    assert!(store.try_acquire_at(&1, after(101), 1).is_ok());
    assert!(store.try_acquire_at(&1, after(101), 1).is_err());
    // Once the clock has caught up with where the dropped key was, a new key is full, not where the reading was.
    assert_eq!(store.peek_at(&2, after(110), 10).unwrap().remaining, Remaining::Exactly(0));
}

#[test]
fn hostile_readings_neither_panic_nor_lose_a_spent_key() {
    let store: Store<u32> = Store::new(options(quota!("2/1h")).cap(8).shards(NonZeroUsize::MIN));
    let readings =
        [0, 1, u64::MAX, Nanos::HORIZON.as_u64(), Nanos::HORIZON.as_u64() - 1, 3_600_000_000_000, 0, u64::MAX];
    for round in 0..200_u32 {
        let now = Nanos::new(readings[round as usize % readings.len()]);
        for cost in [0, 1, 2, u64::MAX] {
            let _ = store.try_acquire_at(&(round % 11), now, cost);
            let _ = (store.peek_at(&round, now, cost), store.inspect_at(&round, now), store.refund(&(round % 3), 1));
        }
        store.clean_up_at(now);
        assert!(store.len() <= 8);
    }
    // Spent at the horizon: no reading makes it full again.
    assert!((0..3).any(|_| store.try_acquire_at(&99, Nanos::MAX, 1).is_err()) || store.len() == 8);
    store.clean_up_at(Nanos::MAX);
    assert!(store.try_acquire_at(&99, Nanos::MAX, 1).is_err());
}

#[test]
fn tiers_are_changed_for_one_key_and_it_stays_while_it_is_no_new_key() {
    let others = [quota!("100/10s"), quota!("1/1h")];
    let store = Tiered::with_tiers(options(quota!("10/10s")).cap(2), &others, Fixed::default(), ManualClock::new());
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 6).is_ok());
    store.set_tier_at(&1, Tier(1), Nanos::ZERO, Inheritance::Level).unwrap();
    assert_eq!((store.tier(&1), store.inspect_at(&1, Nanos::ZERO).unwrap().level), (Tier(1), 4));
    assert_eq!(store.inspect_at(&1, after(1)).unwrap().level, 14);

    // Full, but not what a new key is: dropping it would take its tier.
    store.clean_up_at(after(100));
    assert_eq!(store.inspect_at(&1, after(100)).unwrap().capacity, 100);
    store.set_tier_at(&1, Tier(0), after(100), Inheritance::Level).unwrap();
    store.clean_up_at(after(100));
    assert!(store.is_empty());

    // A key that was never seen, the cap, and tiers that there are not.
    store.set_tier_at(&2, Tier(2), after(100), Inheritance::Full).unwrap();
    store.set_tier_at(&3, Tier(0), after(100), Inheritance::Full).unwrap();
    assert_eq!(store.len(), 1);
    assert!(store.try_acquire_at(&2, after(100), 1).is_ok() && store.try_acquire_at(&2, after(100), 1).is_err());
    store.set_tier_at(&3, Tier(1), after(100), Inheritance::Full).unwrap();
    let too_many = store.set_tier_at(&4, Tier(1), after(100), Inheritance::Full);
    assert_eq!(too_many, Err(SetTierError::TooManyKeys));
    for unknown in [3, 255] {
        let error = store.set_tier_at(&2, Tier(unknown), after(100), Inheritance::Full);
        assert_eq!(error, Err(SetTierError::UnknownTier));
        let error = store.set_quota_at(Tier(unknown), quota!("1/1s"), after(100), Inheritance::Full);
        assert_eq!(error, Err(SetTierError::UnknownTier));
    }
    assert_eq!(store.tier(&2), Tier(2));
}

#[test]
fn c08_a_change_of_quota_mints_nothing_for_keys_that_are_absent_either() {
    let store: Store<u32> = Store::new(options(quota!("10/10s")).shards(NonZeroUsize::MIN));
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 4).is_ok());
    // At 100 s both keys are full, one in the store and one not. The level is what is kept.
    store.set_quota_at((), quota!("20/10s"), after(100), Inheritance::Level).unwrap();
    assert_eq!(store.inspect_at(&1, after(100)).unwrap().level, 10);
    for key in [1, 2] {
        assert!(store.peek_at(&key, after(100), 10).is_ok() && store.peek_at(&key, after(100), 11).is_err(), "{key}");
    }
    // A key that is reset has more than a new key has, so it is not one.
    assert!(store.reset(&1));
    store.clean_up_at(after(100));
    assert_eq!(store.inspect_at(&1, after(100)).unwrap().level, 20);
    store.clean_up_at(after(105));
    assert!(store.is_empty());
    assert!(store.peek_at(&3, after(105), 20).is_ok());
}

#[test]
fn a11_first_uses_race_clean_ups() {
    let clock = ManualClock::new();
    let options = KeyedOptions::new(quota!("1000/1s burst 1")).shards(NonZeroUsize::MIN);
    let store = KeyedTokenBucket::<u32, parking_lot::RawRwLock, std::hash::RandomState, _>::with_clock(options, &clock);
    let is_over = core::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Spends one key, lets it become full again and drops it, over and over.
        scope.spawn(|| {
            while !is_over.load(core::sync::atomic::Ordering::Relaxed) {
                let _ = store.try_acquire(&0, 1);
                clock.advance(Duration::from_millis(1));
                store.clean_up();
            }
        });
        let denied = (1..20_000).filter(|key| store.try_acquire(key, 1).is_err()).count();
        is_over.store(true, core::sync::atomic::Ordering::Relaxed);
        assert_eq!(denied, 0, "a new key was taken for a spent one");
    });
    // At a reading of the caller's own from before that it is late.
    assert!(store.try_acquire(&0, 1).is_ok());
    clock.advance(Duration::from_secs(1));
    store.clean_up();
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 1).is_err());
}

/// After how many readings others act, and what they do.
type Meanwhile = (u32, fn(&Slow));

/// A clock that lets others act between one of its readings and the caller's next step.
#[derive(Default)]
struct Slow {
    at: ManualClock,
    /// How many readings it is until then, and what they do.
    meanwhile: core::cell::Cell<Option<Meanwhile>>,
    store: core::cell::OnceCell<KeyedTokenBucket<u8, parking_lot::RawRwLock, std::hash::RandomState, &'static Slow>>,
}

impl sluicegate_core::Clock for Slow {
    fn now(&self) -> Nanos {
        let reading = self.at.now();
        match self.meanwhile.take() {
            Some((0, meanwhile)) => meanwhile(self),
            later => self.meanwhile.set(later.map(|(readings, meanwhile)| (readings - 1, meanwhile))),
        }
        reading
    }
}

#[test]
fn b04_who_is_overtaken_while_it_is_suspended_is_decided_at_a_later_reading() {
    let clock: &'static Slow = Box::leak(Box::default());
    let store = clock.store.get_or_init(|| KeyedTokenBucket::with_clock(quota!("10/1s"), clock));
    assert!(store.try_acquire(&1, 10).is_ok());
    clock.at.set(Nanos::from_secs(1));
    clock.meanwhile.set(Some((0, |clock: &Slow| {
        // All that the bucket has at 1 s; and at 1.9 s it has nine again.
        assert!(clock.store.get().unwrap().try_acquire_at(&1, Nanos::from_secs(1), 10).is_ok());
        clock.at.set(Nanos::from_millis(1_900));
    })));
    assert_eq!(store.try_acquire(&1, 9).map(|admitted| admitted.at), Ok(Nanos::from_millis(1_900)));
}

#[test]
fn b04_who_is_overtaken_on_its_way_to_the_shared_limiter_is_decided_at_a_later_reading() {
    let clock: &'static Slow = Box::leak(Box::default());
    let options = KeyedOptions::new(quota!("10/10s")).cap(0).overflow(Overflow::Shared(quota!("10/10s").into()));
    let store = clock.store.get_or_init(|| KeyedTokenBucket::with_clock(options, clock));
    clock.at.set(Nanos::from_secs(5));
    // At the reading for the limiter itself, after those for a key that is not there.
    clock.meanwhile.set(Some((2, |clock: &Slow| {
        // All that is there at 6 s; and at 9 s there are three again.
        assert!(clock.store.get().unwrap().try_acquire_at(&1, Nanos::from_secs(6), 10).is_ok());
        clock.at.set(Nanos::from_secs(9));
    })));
    assert_eq!(store.try_acquire(&2, 3).map(|admitted| admitted.at), Ok(Nanos::from_secs(9)));
}

#[test]
fn observers_of_a_store_are_told_what_came_back() {
    let told = Told::default();
    let options = KeyedOptions::new(quota!("10/1s")).cap(1).overflow(Overflow::Deny);
    let store = KeyedTokenBucket::<u8, parking_lot::RawRwLock, std::hash::RandomState, ManualClock>::with_parts(
        options,
        std::hash::RandomState::new(),
        ManualClock::new(),
    )
    .observed_by(&told);
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 3).is_ok());
    assert!(store.refund(&1, 1_000_000));
    assert_eq!(told.0.take(), 3);
    store.refund_overflow(77);
    assert_eq!(told.0.take(), 0, "nothing was taken from a limiter that there is not");
}

/// What was refunded.
#[derive(Default)]
struct Told(Cell<u64>);

impl sluicegate_core::Observer for &Told {
    fn refunded(&self, cost: u64) {
        self.0.set(self.0.get() + cost);
    }
}

#[test]
fn d03_the_overflow_limiter_refuses_nothing_for_ever() {
    let quota = quota!("10/1s");
    let options = KeyedOptions::new(quota).cap(1).overflow(quota!("2/1s").into());
    let store: Store<u8> = KeyedTokenBucket::with_clock(options, ManualClock::new());
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 10).is_ok());
    assert_eq!(store.try_acquire_at(&2, Nanos::ZERO, 5), Err(Denied::TooManyKeys));
    assert_eq!(store.peek_at(&2, Nanos::ZERO, 5), Err(Denied::TooManyKeys));
    store.clean_up_at(Nanos::from_secs(1));
    assert!(store.try_acquire_at(&2, Nanos::from_secs(1), 5).is_ok());
    assert_eq!(store.try_acquire_at(&3, Nanos::from_secs(1), 11).map_err(|denied| denied.is_final()), Err(true));
}

#[test]
fn d03_the_bound_of_memory_counts_tables_of_tiers() {
    let of = |tiers: usize| {
        let others = vec![quota!("2/1s"); tiers];
        KeyedTokenBucket::<u8, parking_lot::RawRwLock, Fixed, ManualClock, (), Tiers>::with_tiers(
            quota!("1/1s"),
            &others,
            Fixed::default(),
            ManualClock::new(),
        )
    };
    let (few, many) = (of(1), of(255));
    assert_eq!(many.memory_bound() - few.memory_bound(), 8 * 254 * size_of::<(sluicegate_core::BucketStep, Nanos)>());
}
