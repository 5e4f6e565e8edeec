//! A key of a store where a limiter is asked for.
#![cfg(feature = "keyed")]

mod support;

use core::cell::RefCell;
use core::hash::BuildHasherDefault;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::hash::DefaultHasher;

use proptest::prelude::*;
use sluicegate_core::{
    AdjustableBucket, Admitted, Denied, Hierarchy, KeyedOptions, KeyedTokenBucket, Level, Limit, Limiter, ManualClock,
    Nanos, Observer, Overflow, TokenBucket, WaitQueue, quota,
};
use support::cases;

type Store<O = ()> = KeyedTokenBucket<u32, parking_lot::RawRwLock, BuildHasherDefault<DefaultHasher>, ManualClock, O>;

fn options(limit: impl Into<Limit>) -> KeyedOptions {
    KeyedOptions::new(limit).shards(NonZeroUsize::new(4).unwrap())
}

fn after(seconds: u64) -> Nanos {
    Nanos::from_secs(seconds)
}

proptest! {
    #![proptest_config(cases(200))]

    // Whatever is asked, at readings that do not go back: the answers of a bucket of its own.
    #[test]
    fn d01_a_key_answers_as_a_bucket_of_its_own(
        ops in prop::collection::vec((0..6_u32, 0..3_u32, 0..6_u64, 0..2_000_000_000_u64), 1..80),
    ) {
        let limit = quota!("3/1s burst 4");
        let store = Store::new(options(limit));
        let buckets: Vec<_> = (0..3).map(|_| TokenBucket::with_limit(limit.into(), ManualClock::new())).collect();
        let mut now = after(3);
        for (what, id, cost, span) in ops {
            now = now + Duration::from_nanos(span);
            let (key, bucket): (&dyn Limiter, &dyn Limiter) = (&store.key(&id), &buckets[id as usize]);
            match what {
                0 => prop_assert_eq!(key.try_acquire_at(now, cost), bucket.try_acquire_at(now, cost)),
                1 => prop_assert_eq!(key.take_at(now, cost), bucket.take_at(now, cost)),
                2 => prop_assert_eq!(key.peek_at(now, cost), bucket.peek_at(now, cost)),
                3 => prop_assert_eq!(key.earliest_at(now, 7 * u128::from(cost)), bucket.earliest_at(now, 7 * u128::from(cost))),
                4 => store.clean_up_at(now),
                _ => prop_assert_eq!(key.inspect_at(now), bucket.inspect_at(now)),
            }
        }
    }
}

#[test]
fn c09_a_key_is_the_last_level_of_a_hierarchy() {
    let global = Level::new("global", AdjustableBucket::with_clock(quota!("10/1h"), ManualClock::new()));
    let store = Store::new(options(quota!("3/1h")));
    let levels = Hierarchy::new([&global]).unwrap();
    let ask = |key: u32, cost| levels.try_acquire_with_at(Nanos::ZERO, [cost], &store.key(&key), cost);
    assert!(ask(1, 3).is_ok() && ask(2, 2).is_ok());
    assert_eq!(ask(1, 1).unwrap_err().level, 1);
    assert_eq!(global.limiter().inspect_at(Nanos::ZERO).level, 5, "what a key denied cost the level above");
    assert!(ask(3, 3).is_ok() && ask(4, 2).is_ok());
    assert_eq!(ask(5, 1).unwrap_err().name, "global");
    assert_eq!((store.len(), store.inspect_at(&5, Nanos::ZERO)), (4, None), "a refusal above created a key");
}

#[test]
fn d03_who_looks_first_finds_a_place_as_well() {
    // Far too many to be looked through at once. All have become full, and nobody but those who look comes.
    for overflow in [Overflow::Deny, Overflow::Shared(Limit::DenyAll)] {
        let store = Store::new(options(quota!("1/1s")).cap(2_000).overflow(overflow));
        for key in 0..2_000 {
            assert!(store.try_acquire_at(&key, if key == 1_999 { Nanos::ZERO } else { after(2) }, 1).is_ok());
        }
        let queue = |key: u32| {
            let mut queue = WaitQueue::new(1);
            assert!(queue.push(1, None, ()).is_ok());
            (0..1_000).any(|_| {
                queue.grant_next_at(after(1), &store.key(&key)).is_some_and(|served| served.verdict.is_granted())
            })
        };
        assert!(queue(5_000), "a place was never found");
        assert!(!queue(5_001), "there was but one");
        assert_eq!(store.key(&5_001).peek_at(after(1), 1), Err(Denied::TooManyKeys));
        assert_eq!(store.len(), 2_000);
    }
}

#[test]
fn looks_change_nothing_and_off_and_deny_answer_as_a_buckets_do() {
    let store = Store::new(options(quota!("5/1h")));
    let key = store.key(&1);
    assert!(key.peek_at(Nanos::ZERO, 5).is_ok() && key.peek_at(Nanos::ZERO, 6).is_err());
    assert_eq!((key.inspect_at(Nanos::ZERO).level, key.inspect_at(Nanos::ZERO).capacity), (5, 5));
    assert!(key.earliest_at(Nanos::ZERO, 9).is_some() && store.is_empty());
    for limit in [Limit::Unlimited, Limit::DenyAll] {
        let (store, bucket) = (Store::new(limit), TokenBucket::with_limit(limit, ManualClock::new()));
        let key = store.key(&1);
        assert_eq!(key.try_acquire_at(after(1), 9), bucket.try_acquire_at(after(1), 9));
        assert_eq!(key.take_at(after(1), 9), Limiter::take_at(&bucket, after(1), 9));
        assert_eq!(key.peek_at(after(1), 9), bucket.peek_at(after(1), 9));
        assert_eq!(key.inspect_at(after(1)), bucket.inspect_at(after(1)));
        assert_eq!(key.earliest_at(after(1), 9), bucket.earliest_at(after(1), 9));
    }
}

#[test]
fn the_earliest_reading_is_no_later_than_what_a_shared_limiter_allows() {
    let store = Store::new(options(quota!("1/1h")).cap(1).overflow(quota!("100/1s").into()));
    assert_eq!(store.key(&1).earliest_at(Nanos::ZERO, 3), Some(after(7_200)));
    assert!(store.try_acquire_at(&1, Nanos::ZERO, 1).is_ok());
    assert_eq!(store.key(&1).earliest_at(Nanos::ZERO, 3), Some(after(3 * 3_600)));
    assert_eq!(store.key(&2).earliest_at(Nanos::ZERO, 3), Some(Nanos::ZERO));
    assert!((0..3).all(|_| store.key(&2).try_acquire_at(Nanos::ZERO, 1).is_ok()));
}

#[test]
fn an_observer_is_told_only_of_what_stands() {
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
    let store = Store::new(options(quota!("5/1h"))).observed_by(&told);
    let key = store.key(&1);
    let taken = [key.take_at(Nanos::ZERO, 2), key.take_at(Nanos::ZERO, 1), key.take_at(Nanos::ZERO, 9)];
    assert!(told.0.borrow().is_empty() && key.peek_at(Nanos::ZERO, 1).is_ok());
    key.tell(Nanos::ZERO, 2, &taken[0]);
    key.tell(Nanos::ZERO, 9, &taken[2]);
    let _ = key.try_acquire_at(Nanos::ZERO, 1);
    assert_eq!(*told.0.borrow(), [(true, 2), (false, 9), (true, 1)]);

    let open = Store::new(Limit::Unlimited).observed_by(&told);
    let _ = open.key(&1).try_acquire_at(Nanos::ZERO, 1);
    open.key(&1).tell(Nanos::ZERO, 1, &open.key(&1).take_at(Nanos::ZERO, 1));
    assert_eq!(told.0.borrow().len(), 3);
}
