//! What a decision for one of many keys costs, on one thread without contention.

use alloc::boxed::Box;
use core::cell::Cell;
use core::hash::{BuildHasher, Hash};
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::hash::RandomState;

use dashmap::DashMap;
use governor::clock::Clock as GovernorClock;
use governor::middleware::NoOpMiddleware;
use governor::state::InMemoryState;
use governor::{Quota, RateLimiter};
use parking_lot::{RawRwLock, RwLock};
use sluicegate_threads::sluicegate_core::KeyedTokenBucket;
use sluicegate_threads::{Clock, KeyedOptions, ManualClock, Nanos, SeededState, TscClock, quota};

use crate::interleaved::{Contestant, Effort};
use crate::rival::{self, Given, Quanta};
use crate::single_step::Heat;

/// governor's keyed limiter, on the store that it has by default, with any hasher and clock.
pub type Rival<K, S, C> =
    RateLimiter<K, DashMap<K, InMemoryState, S>, C, NoOpMiddleware<<C as GovernorClock>::Instant>>;

/// Ours with any hasher and clock.
pub type Ours<K, S, C> = KeyedTokenBucket<K, RawRwLock, S, C>;

/// Which keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// One.
    Hot,
    /// Any of a million, each as likely as the others.
    Uniform,
    /// Ever new ones; a turn begins with an empty store.
    New,
}

/// Tables, each made only when it is its turn, because some of them take much memory.
pub fn heats() -> Vec<(Effort, fn() -> Heat)> {
    let (short, long) = (Effort { rounds: 501, calls: 4_096 }, Effort { rounds: 301, calls: 20_000 });
    vec![
        (short, || as_used("One hot key, as each is used", Keys::Hot)),
        (short, || same::<RandomState, 10>("One hot key, both SipHash", Keys::Hot)),
        (short, || same::<SeededState, 20>("One hot key, both ahash", Keys::Hot)),
        (short, || as_used("A million keys, as each is used", Keys::Uniform)),
        (short, || same::<RandomState, 30>("A million keys, both SipHash", Keys::Uniform)),
        (short, || same::<SeededState, 40>("A million keys, both ahash", Keys::Uniform)),
        (long, || as_used("First uses, as each is used", Keys::New)),
        (long, || same::<SeededState, 60>("First uses, both ahash", Keys::New)),
    ]
}

const GOVERNOR: &str = "governor, its clock";
const GOVERNOR_GIVEN: &str = "governor, reading given";
const OURS: &str = "`KeyedTokenBucket`, `TscClock`";
const OURS_GIVEN: &str = "`KeyedTokenBucket`, reading given";
const OURS_EACH: &str = "`try_acquire_each` of 256, `TscClock`";
const BOUND: &str = "no table, reading given";
const BOUND_TIMED: &str = "no table, `TscClock`";

/// Each with its default hasher: governor's is SipHash, ours ahash.
fn as_used(title: &'static str, keys: Keys) -> Heat {
    Heat {
        title,
        note: "governor is `RateLimiter::keyed` as shipped: SipHash, its default clock, the counter that `TscClock` reads. Ours \
               has its default hasher, ahash with seeds. `reading given` is for a request that has read the clock already. `no \
               table` is what bounds both: the hash, a lock taken for reading, a compare-and-swap in an array at the hash's place, \
               and no decision.",
        baseline: GOVERNOR,
        targets: targets(keys),
        contestants: [
            shipped(keys),
            governor_given::<RandomState, 1>(GOVERNOR_GIVEN, keys),
            ours_timed::<SeededState>(OURS, keys),
            ours_given::<SeededState>(OURS_GIVEN, keys),
        ]
        .into_iter()
        .chain(ours_each::<SeededState>(keys))
        .chain(bounds::<SeededState>(keys))
        .collect(),
    }
}

/// Both with one hasher, on one kind of clock in each of the two pairs.
fn same<S, const ID: u32>(title: &'static str, keys: Keys) -> Heat
where
    S: BuildHasher + Clone + Default + 'static,
{
    Heat {
        title,
        note: "The same hasher for both. The first and third read the same counter, the second and fourth are given a reading.",
        baseline: GOVERNOR,
        // What is aimed at is meant beside what is shipped.
        targets: &[],
        contestants: [
            governor_timed::<S, ID>(GOVERNOR, keys),
            governor_given::<S, ID>(GOVERNOR_GIVEN, keys),
            ours_timed::<S>(OURS, keys),
            ours_given::<S>(OURS_GIVEN, keys),
        ]
        .into_iter()
        .chain(ours_each::<S>(keys))
        .chain(bounds::<S>(keys))
        .collect(),
    }
}

/// A first use makes a place, which nothing is promised about.
const fn targets(keys: Keys) -> &'static [(&'static str, f64)] {
    match keys {
        Keys::New => &[],
        Keys::Hot => &[(OURS, 0.45), (OURS_GIVEN, 0.45)],
        Keys::Uniform => &[(OURS, 0.4), (OURS_GIVEN, 0.4), (OURS_EACH, 0.25)],
    }
}

fn shipped(keys: Keys) -> Contestant<'static> {
    let quota = rival_quota();
    contestant(
        GOVERNOR,
        keys,
        move || RateLimiter::<u64, _, _, _>::keyed(quota),
        RateLimiter::len,
        |limiter, key| {
            black_box(limiter.check_key(key).is_ok());
        },
    )
}

fn governor_timed<S, const ID: u32>(name: &'static str, keys: Keys) -> Contestant<'static>
where
    S: BuildHasher + Clone + Default + 'static,
{
    contestant(
        name,
        keys,
        || rival_on::<u64, S, _>(Quanta::<ID>::default()),
        RateLimiter::len,
        |limiter, key| {
            black_box(limiter.check_key(key).is_ok());
        },
    )
}

fn governor_given<S, const ID: u32>(name: &'static str, keys: Keys) -> Contestant<'static>
where
    S: BuildHasher + Clone + Default + 'static,
{
    let reading: &'static Cell<u64> = Box::leak(Box::new(Cell::new(0)));
    contestant(
        name,
        keys,
        move || rival_on::<u64, S, _>(Given::<ID>(reading)),
        RateLimiter::len,
        move |limiter, key| {
            reading.set(black_box(reading.get() + 1));
            black_box(limiter.check_key(key).is_ok());
        },
    )
}

fn ours_timed<S: BuildHasher + Default + 'static>(name: &'static str, keys: Keys) -> Contestant<'static> {
    contestant(
        name,
        keys,
        || Ours::<u64, S, _>::with_clock(options(), TscClock::new()),
        KeyedTokenBucket::len,
        |limiter, key| {
            black_box(limiter.try_acquire(key, 1).is_ok());
        },
    )
}

fn ours_given<S: BuildHasher + Default + 'static>(name: &'static str, keys: Keys) -> Contestant<'static> {
    let mut now = 0;
    contestant(
        name,
        keys,
        || Ours::<u64, S, _>::with_clock(options(), ManualClock::new()),
        KeyedTokenBucket::len,
        move |limiter, key| {
            now += 1;
            black_box(limiter.try_acquire_at(key, Nanos::new(black_box(now)), 1).is_ok());
        },
    )
}

/// Many requests at once, where keys are many.
fn ours_each<S: BuildHasher + Default + 'static>(keys: Keys) -> Option<Contestant<'static>> {
    let Keys::Uniform = keys else { return None };
    let limiter = Ours::<u64, S, _>::with_clock(options(), TscClock::new());
    for key in 0..MANY {
        let _ = limiter.try_acquire(&key, 1);
    }
    let (mut numbers, mut decisions) = (Numbers::default(), Vec::new());
    Some(Contestant::of_turns(OURS_EACH, move |calls| {
        for _ in 0..calls / 256 {
            let keys: [u64; 256] = core::array::from_fn(|_| numbers.below(MANY));
            limiter.try_acquire_each(&keys.each_ref().map(|key| (key, 1)), &mut decisions);
            black_box(&decisions);
        }
    }))
}

/// What any such limiter has to do at least, where keys are there already: nobody who finds keys by a hash, behind a lock, can be
/// quicker.
fn bounds<S: BuildHasher + Default + 'static>(keys: Keys) -> Vec<Contestant<'static>> {
    if keys == Keys::New {
        return Vec::new();
    }
    let mut now = 0;
    let timed = |slots: &Slots<S>, key: &u64| slots.count(key, slots.clock.now().as_u64());
    vec![
        contestant(BOUND_TIMED, keys, Slots::<S>::new, Slots::keys, timed),
        contestant(BOUND, keys, Slots::<S>::new, Slots::keys, move |slots, key| {
            now += 1;
            slots.count(key, black_box(now));
        }),
    ]
}

/// As many slots, of the same size, as a store has for a million keys.
struct Slots<S> {
    hasher: S,
    clock: TscClock,
    slots: RwLock<Vec<(u64, AtomicU64)>>,
}

impl<S: BuildHasher + Default> Slots<S> {
    fn new() -> Self {
        let slots = (0..MANY.next_power_of_two() * 2).map(|slot| (slot, AtomicU64::new(0))).collect();
        Self { hasher: S::default(), clock: TscClock::new(), slots: RwLock::new(slots) }
    }

    fn keys(&self) -> usize {
        MANY as usize
    }

    #[inline]
    fn count(&self, key: &u64, now: u64) {
        let slots = self.slots.read();
        let (number, word) = &slots[self.hasher.hash_one(key) as usize % slots.len()];
        let seen = word.load(Ordering::Relaxed);
        let next = seen.max(now).wrapping_add(*number);
        black_box(word.compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed).is_ok());
    }
}

/// A burst that nobody uses up, at a rate so low that no key is full again, and dropped, before all are there. Both express
/// it exactly.
fn options() -> KeyedOptions {
    KeyedOptions::new(quota!("1/10s burst 500000000"))
}

/// The same for governor.
fn rival_quota() -> Quota {
    let quota = Quota::with_period(Duration::from_secs(10)).expect("not 0");
    quota.allow_burst(rival::count(500_000_000))
}

/// governor with any hasher and clock.
pub fn rival_on<K: Clone + Eq + Hash, S, C>(clock: C) -> Rival<K, S, C>
where
    S: BuildHasher + Clone + Default,
    C: GovernorClock,
{
    RateLimiter::new(rival_quota(), DashMap::with_hasher(S::default()), clock)
}

fn contestant<L: 'static>(
    name: &'static str,
    keys: Keys,
    make: impl Fn() -> L + 'static,
    keys_of: impl Fn(&L) -> usize,
    mut ask: impl FnMut(&L, &u64) + 'static,
) -> Contestant<'static> {
    let mut numbers = Numbers::default();
    match keys {
        Keys::Hot => {
            let limiter = make();
            Contestant::new(name, move || ask(&limiter, black_box(&7)))
        }
        Keys::Uniform => {
            let limiter = make();
            (0..MANY).for_each(|key| ask(&limiter, &key));
            assert_eq!(keys_of(&limiter), MANY as usize, "{name} has not all keys");
            Contestant::new(name, move || ask(&limiter, &numbers.below(MANY)))
        }
        Keys::New => Contestant::of_turns(name, move |calls| {
            let limiter = make();
            for _ in 0..calls {
                ask(&limiter, &numbers.next());
            }
        }),
    }
}

/// A million; in tests, which only look whether every contestant does its work, what an unoptimised build fills in a moment.
const MANY: u64 = if cfg!(test) { 10_000 } else { 1_000_000 };

/// Numbers without a pattern: xorshift, which costs a nanosecond, for every contestant.
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Default for Numbers {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Numbers {
    /// The next number; the same one comes only after 2^64 - 1 others.
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heat_runs_and_names_its_own_contestants() {
        for (_, make) in heats() {
            let mut heat = make();
            let timings = heat.run(Effort::TRIAL);
            for name in heat.targets.iter().map(|(name, _)| *name).chain([heat.baseline]) {
                assert!(timings.iter().any(|timing| timing.name == name), "{}: {name}", heat.title);
            }
        }
    }

    #[test]
    fn nobody_runs_out() {
        let ours = Ours::<u64, SeededState, _>::with_clock(options(), TscClock::new());
        let rival = rival_on::<u64, SeededState, _>(Quanta::<99>::default());
        for _ in 0..10_000 {
            assert!(ours.try_acquire(&7, 1).is_ok() && rival.check_key(&7).is_ok());
        }
    }
}
