//! A flood of keys that are never seen again, and the memory that it takes, counted by the allocator.
#![cfg(feature = "keyed")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::hash::BuildHasherDefault;
use core::net::Ipv6Addr;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::alloc::System;
use std::hash::DefaultHasher;

use sluicegate_core::{KeyedOptions, KeyedTokenBucket, ManualClock, Nanos, Overflow, quota};

/// Seeded with nothing, so that every run is the same.
type Fixed = BuildHasherDefault<DefaultHasher>;
type Store<K> = KeyedTokenBucket<K, parking_lot::RawRwLock, Fixed, ManualClock>;

/// The system's allocator, which also counts what each thread has out: a test's own is what it counts.
struct Counting;

std::thread_local! {
    static OUT: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: everything is the system allocator's; the counts touch no memory of its, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let out = OUT.get() + layout.size() as isize;
        OUT.set(out);
        MOST.set(MOST.get().max(out));
        // SAFETY: the caller's promise is what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // Below 0 where another thread had it.
        OUT.set(OUT.get() - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes that this thread has out, from which the most is counted anew.
fn start() -> isize {
    MOST.set(OUT.get());
    OUT.get()
}

/// The most bytes beyond `before` that this thread had out at once since it was last asked.
fn most_beyond(before: isize) -> usize {
    (MOST.replace(OUT.get()) - before).try_into().unwrap()
}

fn address(number: u64) -> Ipv6Addr {
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | u128::from(number))
}

#[test]
fn d03_half_a_million_addresses_against_a_cap_of_ten_thousand() {
    let before = start();
    const CAP: usize = 10_000;
    let options = KeyedOptions::new(quota!("10/1m")).cap(CAP).overflow(Overflow::Shared(quota!("600/1m").into()));
    let store: Store<Ipv6Addr> = Store::new(options);
    let abuser = address(u64::MAX);

    // 20 000 new addresses a second for 25 seconds. Each is full again after six, so that the store is full of spent keys.
    let (step, mut now, mut abused, mut served) = (Duration::from_micros(50), Nanos::ZERO, 0_u64, 0_u64);
    for number in 0..500_000 {
        now = now + step;
        served += u64::from(store.try_acquire_at(&address(number), now, 1).is_ok());
        if number % 10 == 0 {
            abused += u64::from(store.try_acquire_at(&abuser, now, 1).is_ok());
        }
        if number % 1_000 == 0 {
            assert!(store.len() <= CAP);
            let most = most_beyond(before);
            assert!(most <= store.memory_bound(), "{most} bytes of {} after {number}", store.memory_bound());
        }
    }
    // Ten at first and one in six seconds, to the token: the flood made nobody forget what it had spent.
    assert_eq!(abused, 10 + 25 / 6);
    assert!(store.try_acquire_at(&abuser, now, 1).is_err());
    // Its place, the shared limiter and the places of those that became full served the others: more than the cap.
    assert!(served > 3 * CAP as u64, "{served}");

    // A client that comes now, and again ten times a second while the flood goes on, has the chances of one of them: a place
    // becomes free for a twelfth of those that come. It is served within seconds.
    let honest = address(u64::MAX - 1);
    let mut number = 500_000;
    let tries = (0..100).position(|_| {
        for _ in 0..2_000 {
            now = now + step;
            number += 1;
            let _ = store.try_acquire_at(&address(number), now, 1);
        }
        store.try_acquire_at(&honest, now, 1).is_ok()
    });
    assert!(tries.is_some_and(|tries| tries < 60), "{tries:?}");
    // The flood is over: whoever comes is served at once.
    now = now + Duration::from_millis(100);
    assert!(store.try_acquire_at(&address(u64::MAX - 2), now, 1).is_ok());

    // When it is over, one pass gives everything back but the shards.
    store.clean_up_at(now + Duration::from_secs(60));
    assert_eq!(store.len(), 0);
    let left = OUT.get() - before;
    assert!(left < 16 * 512, "{left} bytes are left");
    drop(store);
    assert_eq!(OUT.get(), before);
}

#[test]
fn d03_the_bound_holds_at_every_cap_and_shard_count() {
    for cap in [0, 1, 3, 10, 100, 1_000, 7_000, 14_000] {
        for shards in [1, 4, 64] {
            let before = start();
            let options = KeyedOptions::new(quota!("1/1s")).cap(cap).overflow(Overflow::Deny);
            let store: Store<u64> = Store::new(options.shards(NonZeroUsize::new(shards).unwrap()));
            // Fill, let half of them become full, fill again, several times: tables are made anew with and without growing.
            let mut key = 0;
            for round in 0..6_u64 {
                for _ in 0..2 * cap {
                    key += 1;
                    let now = Nanos::from_millis(900 * round + 200 * (key % 2));
                    let _ = store.try_acquire_at(&key, now, 1);
                }
            }
            let most = most_beyond(before);
            assert!(
                most <= store.memory_bound(),
                "{most} of {} bytes, cap {cap}, {shards} shards",
                store.memory_bound()
            );
            assert!(store.len() <= cap);
        }
    }
}

#[test]
fn a23_a_table_is_cleaned_before_it_grows() {
    let store: Store<u64> = Store::new(KeyedOptions::new(quota!("1/1s")).shards(NonZeroUsize::MIN));
    // Until the table is full: the next key would allocate. How many that takes is its own affair.
    let mut keys = 0;
    let fills = |keys: u64| {
        let store: Store<u64> = Store::new(KeyedOptions::new(quota!("1/1s")).shards(NonZeroUsize::MIN));
        let mut allocated = false;
        for key in 0..=keys {
            let before = start();
            assert!(store.try_acquire_at(&key, Nanos::ZERO, 1).is_ok());
            allocated = most_beyond(before) > 0;
        }
        allocated
    };
    while keys < 400 || !fills(keys) {
        keys += 1;
    }
    for key in 0..keys {
        assert!(store.try_acquire_at(&key, Nanos::ZERO, 1).is_ok());
    }
    // All of them are full again a second later, which takes two readings to be sure of. Room for the first of these.
    assert!(store.remove(&1) && store.remove(&2));
    let before = start();
    for more in 0..keys {
        let now = Nanos::from_millis(1_001 + more);
        assert!(store.try_acquire_at(&(keys + more), now, 1).is_ok());
    }
    assert_eq!(most_beyond(before), 0);
    assert!(store.len() < keys as usize + 2, "{}", store.len());
}

#[test]
fn b09_a_store_that_has_become_idle_has_no_tables_either() {
    let store: Store<Ipv6Addr> = Store::new(quota!("1/1s"));
    let before = OUT.get();
    for number in 0..10_000 {
        assert!(store.try_acquire_at(&address(number), Nanos::ZERO, 1).is_ok());
    }
    assert!(OUT.get() - before > 200_000);
    store.clean_up_at(Nanos::from_secs(1));
    assert!(store.is_empty());
    assert!(OUT.get() - before <= 4_096, "{} bytes are left", OUT.get() - before);
}

#[test]
fn b09_a_store_that_was_never_used_has_no_tables() {
    let before = start();
    let store: Store<u64> = Store::new(KeyedOptions::new(quota!("1/1s")).shards(NonZeroUsize::MIN));
    assert!(store.peek(&1, 1).is_ok() && store.try_acquire(&1, 2).is_err());
    assert!(OUT.get() - before <= 512);
    drop(store);
    let off: Store<u64> = Store::new(sluicegate_core::Limit::Unlimited);
    assert!(off.try_acquire(&1, 2).is_ok());
    assert_eq!(OUT.get(), before);
}
