//! Waiting for one of many keys.

use core::time::Duration;
use std::hash::RandomState;

use parking_lot::{RawMutex, RawRwLock};
use sluicegate_runtime::{
    Clock, Denied, Inheritance, KeyedTokenBucket, ManualClock, Nanos, QueuedKeyed, Quota, Runtime, WaitOptions, quota,
};

use crate::counted::CountedRuntime;
use crate::executor::Executor;
use crate::limiters::{is_granted, is_rate_limited};
use crate::tasks::{assert_on_time, at_once, pass, settle, spawn, start, unless};

/// Its own clock is never read.
type Buckets = KeyedTokenBucket<u32, RawRwLock, RandomState, ManualClock>;
type Keys<R> = QueuedKeyed<Buckets, R, RawMutex>;

/// The keys from 1 to 3 are there, and have just been emptied.
fn empty<R: Runtime + Clone>(runtime: &R, quota: Quota, options: WaitOptions) -> Keys<R> {
    let keys = Keys::new(Buckets::new(quota), runtime.clone(), options);
    for key in 1..=3 {
        assert!(keys.try_acquire(&key, quota.capacity()).is_ok());
    }
    keys
}

fn level<R: Runtime + Clone>(keys: &Keys<R>, key: u32, now: Nanos) -> Option<u64> {
    keys.store().inspect_at(&key, now).map(|seen| seen.level)
}

/// Costs included, and each key in its own order, however they come mixed.
pub async fn b07_waiters_for_a_key_go_first_in_first_out<E: Executor>(runtime: E::Runtime) {
    let keys = empty(&runtime, quota!("10/10s"), WaitOptions::new());
    let begin = runtime.now();
    let (mut waiters, mut ahead) = (Vec::new(), [0; 4]);
    for number in 0..90_u32 {
        let (key, cost) = (1 + number % 3, [3, 1, 10, 1, 2][number as usize % 5]);
        ahead[key as usize] += cost;
        let waiter = start::<E, _>(&runtime, keys.acquire(key, cost)).await;
        waiters.push((ahead[key as usize], waiter));
    }
    assert_eq!(keys.waited_for(), 3);
    for (due, waiter) in waiters {
        let waiter = waiter.await;
        assert_on_time::<E>(waiter.at, begin + Duration::from_secs(due));
        assert!(waiter.with.is_ok());
    }
    assert_eq!(keys.waited_for(), 0);
}

/// Neither one whose head waits for long, nor one whose head is never polled again.
pub async fn a01_keys_do_not_hold_one_another_up<E: Executor>(runtime: E::Runtime) {
    let keys = empty(&runtime, quota!("10/10s"), WaitOptions::new().relief(None));
    let begin = runtime.now();
    let long = start::<E, _>(&runtime, keys.acquire(1, 10)).await;
    let mut stuck = Box::pin(keys.acquire(2, 1));
    assert_eq!(at_once(&mut stuck).await, None);
    let behind = start::<E, _>(&runtime, keys.acquire(2, 1)).await;
    let other = start::<E, _>(&runtime, keys.acquire(3, 1)).await;
    assert!(is_granted(at_once(keys.acquire(4, 10)).await), "nobody waits for it");
    let other = other.await;
    assert!(other.with.is_ok());
    assert_on_time::<E>(other.at, begin + Duration::from_secs(1));
    let long = long.await;
    assert!(long.with.is_ok());
    assert_on_time::<E>(long.at, begin + Duration::from_secs(10));
    let now = runtime.now();
    keys.recheck(&2);
    let behind = behind.await;
    assert_eq!(behind.at, now, "whoever calls lets those go who are behind");
    assert!(behind.with.is_ok());
    drop(stuck);
    assert_eq!(keys.waited_for(), 0);
}

/// Before its turn, and after it was granted what it has not learnt of.
pub async fn b06_who_leaves_a_key_lets_those_behind_move_up<E: Executor>(runtime: E::Runtime) {
    let keys = empty(&runtime, quota!("10/10s"), WaitOptions::new().relief(None));
    let mut large = Box::pin(keys.acquire(1, 10));
    assert_eq!(at_once(&mut large).await, None);
    let small = start::<E, _>(&runtime, keys.acquire(1, 2)).await;
    pass::<E>(&runtime, Duration::from_millis(2_500)).await;
    let now = runtime.now();
    drop(large);
    let small = small.await;
    assert_eq!(small.at, now);
    assert!(small.with.is_ok());
    assert_eq!((level(&keys, 1, now), keys.waited_for()), (Some(0), 0));

    let mut granted = Box::pin(keys.acquire(2, 5));
    assert_eq!(at_once(&mut granted).await, None);
    let next = start::<E, _>(&runtime, keys.acquire(2, 5)).await;
    pass::<E>(&runtime, Duration::from_secs(3)).await;
    keys.recheck(&2);
    assert_eq!(level(&keys, 2, runtime.now()), Some(0), "the first one has it");
    let now = runtime.now();
    drop(granted);
    let next = next.await;
    assert_eq!(next.at, now);
    assert!(next.with.is_ok());
    assert_eq!((level(&keys, 2, now), keys.waited_for()), (Some(0), 0));
}

/// A wait that is certainly too short fails before it begins; one that others make too short ends in time, and takes nothing.
pub async fn b05_a_timeout_ends_the_wait_for_a_key<E: Executor>(runtime: E::Runtime) {
    let keys = empty(&runtime, quota!("10/10s"), WaitOptions::new());
    let begin = runtime.now();
    let short = Duration::from_secs(2) - Duration::from_nanos(1);
    assert!(is_rate_limited(at_once(keys.acquire_timeout(1, 2, short)).await));
    assert!(is_rate_limited(at_once(keys.acquire_deadline(1, 2, begin + short)).await));
    let never = Denied::CostExceedsLimit { cost: 11, limit: 10 };
    assert_eq!(at_once(keys.acquire_timeout(1, 11, Duration::MAX)).await, Some(Err(never)));
    assert_eq!(keys.waited_for(), 0, "nobody waits yet");

    let until = begin + Duration::from_millis(5_500);
    let timed = start::<E, _>(&runtime, keys.acquire_timeout(1, 5, Duration::from_millis(5_500))).await;
    let dated = start::<E, _>(&runtime, keys.acquire_deadline(2, 5, until)).await;
    let in_time = start::<E, _>(&runtime, keys.acquire_deadline(3, 5, until)).await;
    pass::<E>(&runtime, Duration::from_secs(3)).await;
    assert!(keys.try_acquire(&1, 1).is_ok() && keys.try_acquire(&2, 1).is_ok());
    for (key, waiter) in [(1, timed), (2, dated)] {
        let waiter = waiter.await;
        assert!(is_rate_limited(Some(waiter.with)));
        assert_on_time::<E>(waiter.at, until);
        assert_eq!(level(&keys, key, until), Some(4));
    }
    assert!(in_time.await.with.is_ok());
    assert_eq!(keys.waited_for(), 0);
}

/// At once, for each key, and for whoever comes later, for a key that nobody has waited for, too.
pub async fn b05_closing_ends_the_wait_for_every_key<E: Executor>(runtime: E::Runtime) {
    let keys = empty(&runtime, quota!("10/10h"), WaitOptions::new());
    let mut waiters = Vec::new();
    for number in 0..30 {
        waiters.push(start::<E, _>(&runtime, keys.acquire(1 + number % 3, 1)).await);
    }
    settle::<E>(&runtime).await;
    let now = runtime.now();
    keys.close();
    for waiter in waiters {
        let waiter = waiter.await;
        assert_eq!((waiter.at, waiter.with), (now, Err(Denied::Closed)));
    }
    for key in [1, 4] {
        assert_eq!(keys.try_acquire(&key, 1), Err(Denied::Closed));
        assert_eq!(at_once(keys.acquire(key, 1)).await, Some(Err(Denied::Closed)));
    }
    assert_eq!(keys.waited_for(), 0);
}

/// What comes back, and what a change of the quota brings, goes to those who wait.
pub async fn c08_waiters_for_a_key_see_a_change_at_once<E: Executor>(runtime: E::Runtime) {
    let keys = empty(&runtime, quota!("10/10h"), WaitOptions::new());
    let refunded = start::<E, _>(&runtime, keys.acquire(1, 2)).await;
    let faster = start::<E, _>(&runtime, keys.acquire(2, 1)).await;
    let begin = runtime.now();
    settle::<E>(&runtime).await;
    let now = runtime.now();
    assert!(keys.refund(&1, 2));
    let refunded = refunded.await;
    assert_eq!(refunded.at, now);
    assert!(refunded.with.is_ok());
    let half = begin + Duration::from_secs(1_800);
    runtime.sleep_until(half).await;
    let now = runtime.now();
    keys.store().set_quota_at((), quota!("10/10m"), now, Inheritance::Level).expect("there is one quota");
    keys.recheck_all();
    let faster = faster.await;
    assert!(faster.with.is_ok());
    // Half a token was there, or a little more; the rest comes in half a minute.
    assert!(faster.at <= half + (Duration::from_secs(30) + 2 * E::GRAIN) && faster.at > half, "{faster:?}");
    assert_eq!(keys.waited_for(), 0);
}

/// Whoever would have to wait for one more is told so; whoever need not wait is not.
pub async fn d03_no_more_keys_are_waited_for_than_may<E: Executor>(runtime: E::Runtime) {
    let keys = empty(&runtime, quota!("10/10s"), WaitOptions::new()).most_keys(2);
    let first = start::<E, _>(&runtime, keys.acquire(1, 1)).await;
    let second = start::<E, _>(&runtime, keys.acquire(2, 1)).await;
    assert_eq!(at_once(keys.acquire(3, 1)).await, Some(Err(Denied::QueueFull)));
    assert!(is_granted(at_once(keys.acquire(4, 1)).await));
    let same = start::<E, _>(&runtime, keys.acquire(1, 1)).await;
    assert_eq!(keys.waited_for(), 2);
    assert!(second.await.with.is_ok());
    let third = start::<E, _>(&runtime, keys.acquire(3, 2)).await;
    for waiter in [first, same, third] {
        assert!(waiter.await.with.is_ok());
    }
    assert_eq!(keys.waited_for(), 0);
}

/// Neither a queue nor a timer: once those who waited were served, refused or dropped, though their futures may be kept.
pub async fn b09_nothing_is_left_of_a_key_that_nobody_waits_for<E: Executor>(runtime: E::Runtime) {
    let counted = CountedRuntime::new(runtime.clone());
    let keys = empty(&counted, quota!("10/10s"), WaitOptions::new());
    assert!(is_granted(at_once(keys.acquire(4, 10)).await));
    assert!(is_rate_limited(Some(keys.try_acquire(&4, 1))));
    assert!(is_rate_limited(at_once(keys.acquire_timeout(4, 1, Duration::ZERO)).await));
    assert_eq!((keys.waited_for(), counted.sleeps_ever()), (0, 0));

    let mut served = Box::pin(keys.acquire(1, 1));
    assert_eq!(at_once(&mut served).await, None);
    let mut late = Box::pin(keys.acquire_timeout(2, 2, Duration::from_millis(2_500)));
    assert_eq!(at_once(&mut late).await, None);
    let mut granted = Box::pin(keys.acquire(3, 2));
    assert_eq!(at_once(&mut granted).await, None);
    assert_eq!((keys.waited_for(), counted.sleeps()), (3, 3));
    assert!((&mut served).await.is_ok());
    assert_eq!((keys.waited_for(), counted.sleeps()), (2, 2), "it is over, and kept");
    let mut hasty = Box::pin(keys.acquire_timeout(1, 1, Duration::ZERO));
    assert!(is_rate_limited(at_once(&mut hasty).await));
    assert_eq!((keys.waited_for(), counted.sleeps()), (2, 2), "nor has that one waited");
    assert!(keys.try_acquire(&2, 1).is_ok());
    assert!(is_rate_limited(Some((&mut late).await)));
    assert_eq!((keys.waited_for(), counted.sleeps()), (1, 1));
    keys.recheck_all();
    assert_eq!(keys.waited_for(), 1, "it has not learnt of what it was granted");
    drop(granted);
    assert_eq!((keys.waited_for(), counted.sleeps()), (0, 0));
    drop((served, late, hasty));
}

/// A hundred tasks wait for three keys, try, leave and time out, many of them at the same readings: each key's tokens are all
/// accounted for, and no queue is left, although nobody looks afterwards who could take it away.
pub async fn b09_no_queue_is_left_however_tasks_race<E: Executor>(runtime: E::Runtime) {
    let keys = empty(&runtime, quota!("100/1s burst 1000"), WaitOptions::new());
    let begin = runtime.now();
    let tasks: Vec<_> = (0..100_u32)
        .map(|number| {
            let (keys, clock) = (keys.clone(), runtime.clone());
            spawn::<E, _>(&runtime, async move {
                let (key, mut taken) = (1 + number % 3, 0);
                for round in 0..4_u32 {
                    let ticks = 1 + (number * 7 + round * 11) % 40;
                    let answer = match (number / 3 + round) % 4 {
                        0 => Some(keys.try_acquire(&key, 1)),
                        1 => Some(keys.acquire_timeout(key, 1, TICK * ticks).await),
                        2 => unless(clock.clone(), clock.now() + TICK * ticks, keys.acquire(key, 1)).await,
                        _ => Some(keys.acquire(key, 1).await),
                    };
                    taken += u64::from(is_granted(answer));
                }
                (key, taken)
            })
        })
        .collect();
    let mut taken = [0; 4];
    for task in tasks {
        let (key, number) = task.await;
        taken[key as usize] += number;
    }
    assert_eq!(keys.waited_for(), 0);
    let now = runtime.now();
    let flowed = (now.saturating_duration_since(begin).as_nanos() / TICK.as_nanos()) as u64;
    for key in 1..=3 {
        assert!(taken[key as usize] > 0);
        assert_eq!(level(&keys, key, now), Some(flowed - taken[key as usize]), "key {key}");
    }
}

const TICK: Duration = Duration::from_millis(10);
