//! A compact store of keys, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::Arc;

use lock_api::RwLock;
use sluicegate_core::{BucketState, BucketStep, Denied, Inheritance, Nanos, Quota};

use super::kept::{CompactHandle, Word};
use crate::lock::ModelLock;
use crate::shim::AtomicU64;
use crate::{Handles, Served, Store};

/// Bugs that a store may have, one type each.
pub trait StoreFlaws: Send + Sync + 'static {
    /// Adds a key without looking again whether another caller has added it.
    const ADDS_UNSEEN: bool = false;
    /// Decides on a present key by storing back what it would leave.
    const STORES_BACK: bool = false;
    /// Drops whatever it finds.
    const DROPS_SPENT: bool = false;
    /// Looks for full keys among the readers, and drops them as the writer without looking again.
    const DROPS_BY_AN_OLD_LOOK: bool = false;
    /// Takes an absent key for one that was never seen.
    const FORGETS_WHAT_IT_DROPPED: bool = false;
    /// Looks whether there is a place, and counts the key later.
    const COUNTS_LATE: bool = false;
    /// Puts converted states back among the readers.
    const CONVERTS_AMONG_READERS: bool = false;
    /// Converts present keys only.
    const FORGETS_ABSENT_KEYS: bool = false;
    /// Changes shard by shard, whoever else does so meanwhile.
    const CHANGES_BESIDE_OTHERS: bool = false;
    /// Looks at a state that it takes back from handles, and then ends it.
    const ENDS_IN_TWO_STEPS: bool = false;
    /// A handle takes an ended state for one without tokens, and denies.
    const DENIES_BY_AN_END: bool = false;
    /// A handle shows what an ended state holds.
    const SHOWS_AN_END: bool = false;
    /// Drops full keys that have handles as any other.
    const DROPS_KEPT: bool = false;
    /// Removes a key and leaves its handles what they have.
    const REMOVES_UNTOLD: bool = false;
    /// Reads the clock for a change before it takes keys back from their handles.
    const READS_THE_CLOCK_FIRST: bool = false;
    /// Who takes a state back may then read a clock from before the handles' last readings.
    const ENDS_RELAXED: bool = false;
}

/// A list of keys and states in each of two shards, and one count of all keys.
pub struct CompactStore<F> {
    shards: [RwLock<ModelLock, Shard>; 2],
    keys: AtomicU64,
    cap: u64,
    changes: RwLock<ModelLock, ()>,
    clock: AtomicU64,
    flaws: PhantomData<F>,
}

struct Shard {
    step: BucketStep,
    entries: Vec<(u8, Word)>,
    absent: BucketState,
}

impl Shard {
    fn find(&self, key: u8) -> Option<&AtomicU64> {
        self.entries.iter().find(|(present, _)| *present == key).map(|(_, word)| word.cell())
    }
}

impl<F: StoreFlaws> CompactStore<F> {
    fn shard(&self, key: u8) -> &RwLock<ModelLock, Shard> {
        &self.shards[usize::from(key % 2)]
    }

    pub(super) fn decide_present(step: &BucketStep, word: &AtomicU64, now: Nanos, cost: u64) -> Served {
        let mut current = word.load(Relaxed);
        loop {
            let (next, decision) = step.try_acquire(BucketState::from_bits(current), now, cost);
            if decision.is_err() {
                return served(decision.is_ok());
            }
            if F::STORES_BACK {
                word.store(next.to_bits(), Relaxed);
                return Served::Admitted;
            }
            // Release, for the clock: who takes the word back reads one no earlier.
            match word.compare_exchange(current, next.to_bits(), Release, Relaxed) {
                Ok(_) => return Served::Admitted,
                Err(seen) => current = seen,
            }
        }
    }

    fn clean(&self, shard: &mut Shard, now: Nanos) {
        let Shard { step, entries, absent } = shard;
        let before = entries.len();
        entries.retain_mut(|(_, word)| {
            if !F::DROPS_KEPT && !word.take_back_unused::<F>() {
                return true;
            }
            let state = BucketState::from_bits(word.cell().load(Relaxed));
            let is_full = step.is_full(state, now) && step.is_full(*absent, now);
            if is_full && !F::FORGETS_WHAT_IT_DROPPED {
                *absent = BucketState::from_bits(absent.to_bits().max(state.to_bits()));
            }
            !(F::DROPS_SPENT || is_full)
        });
        self.keys.fetch_sub((before - entries.len()) as u64, Relaxed);
    }

    fn change(&self, quota: Quota, now: impl Fn() -> Nanos) {
        let new = BucketStep::new(quota);
        let _changing = if F::CHANGES_BESIDE_OTHERS { None } else { Some(self.changes.write()) };
        for lock in &self.shards {
            let convert = |shard: &Shard, now| {
                for (_, word) in &shard.entries {
                    let state = BucketState::from_bits(word.cell().load(Relaxed));
                    word.cell().store(new.inherit(&shard.step, state, now, Inheritance::Level).to_bits(), Relaxed);
                }
            };
            if F::CONVERTS_AMONG_READERS {
                convert(&lock.read(), now());
            }
            let mut shard = lock.write();
            let read_first = F::READS_THE_CLOCK_FIRST.then(&now);
            shard.entries.iter_mut().for_each(|(_, word)| word.take_back::<F>());
            let now = read_first.unwrap_or_else(&now);
            if !F::CONVERTS_AMONG_READERS {
                convert(&shard, now);
            }
            if !F::FORGETS_ABSENT_KEYS {
                shard.absent = new.inherit(&shard.step, shard.absent, now, Inheritance::Level);
            }
            shard.step = new;
        }
    }

    /// The reading of the clock.
    pub(super) fn now(&self) -> Nanos {
        Nanos::new(self.clock.load(Acquire))
    }

    fn claim(&self) -> bool {
        if F::COUNTS_LATE {
            let is_free = self.keys.load(Relaxed) < self.cap;
            self.keys.fetch_add(u64::from(is_free), Relaxed);
            return is_free;
        }
        let more = |keys| if keys < self.cap { Some(keys + 1) } else { None };
        self.keys.fetch_update(Relaxed, Relaxed, more).is_ok()
    }
}

fn served(is_admitted: bool) -> Served {
    if is_admitted { Served::Admitted } else { Served::Denied }
}

impl<F: StoreFlaws> Store for CompactStore<F> {
    fn new(quota: Quota, cap: usize) -> Self {
        let step = BucketStep::new(quota);
        let shard = || RwLock::new(Shard { step, entries: Vec::new(), absent: BucketState::FULL });
        let store = Self {
            shards: [shard(), shard()],
            keys: AtomicU64::new(0),
            cap: cap as u64,
            changes: RwLock::new(()),
            clock: AtomicU64::new(0),
            flaws: PhantomData,
        };
        store.clean_up(Nanos::ZERO);
        drop(store.changes.write());
        store
    }

    fn decide(&self, key: u8, now: Nanos, cost: u64) -> Served {
        {
            let shard = self.shard(key).read();
            if let Some(word) = shard.find(key) {
                return Self::decide_present(&shard.step, word, now, cost);
            }
            if let Err(Denied::RateLimited { .. }) = shard.step.try_acquire(shard.absent, now, cost).1 {
                return Served::Denied;
            }
        }
        let mut shard = self.shard(key).write();
        if !F::ADDS_UNSEEN {
            if let Some(word) = shard.find(key) {
                return Self::decide_present(&shard.step, word, now, cost);
            }
        }
        let (next, decision) = shard.step.try_acquire(shard.absent, now, cost);
        if decision.is_err() {
            return Served::Denied;
        }
        if !self.claim() {
            self.clean(&mut shard, now);
            if !self.claim() {
                return Served::TooManyKeys;
            }
        }
        shard.entries.push((key, Word::InPlace(AtomicU64::new(next.to_bits()))));
        Served::Admitted
    }

    fn refund(&self, key: u8, cost: u64) -> bool {
        let shard = self.shard(key).read();
        let Some(word) = shard.find(key) else { return false };
        let give_back = |bits| Some(shard.step.refund(BucketState::from_bits(bits), cost).to_bits());
        word.fetch_update(Relaxed, Relaxed, give_back).is_ok()
    }

    fn clean_up(&self, now: Nanos) {
        for shard in &self.shards {
            if F::DROPS_BY_AN_OLD_LOOK {
                let is_full = |shard: &Shard, word: &Word| {
                    shard.step.is_full(BucketState::from_bits(word.cell().load(Relaxed)), now)
                };
                let full: Vec<u8> = {
                    let shard = shard.read();
                    shard.entries.iter().filter(|(_, word)| is_full(&shard, word)).map(|(key, _)| *key).collect()
                };
                let mut shard = shard.write();
                let before = shard.entries.len();
                shard.entries.retain(|(key, _)| !full.contains(key));
                self.keys.fetch_sub((before - shard.entries.len()) as u64, Relaxed);
            } else {
                self.clean(&mut shard.write(), now);
            }
        }
    }

    fn set_quota(&self, quota: Quota, now: Nanos) {
        self.change(quota, || now);
    }

    fn level(&self, key: u8, now: Nanos) -> Option<u64> {
        let shard = self.shard(key).read();
        shard.find(key).map(|word| shard.step.inspect(BucketState::from_bits(word.load(Relaxed)), now).level)
    }

    fn keys(&self) -> usize {
        self.shards.iter().map(|shard| shard.read().entries.len()).sum()
    }
}

impl<F: StoreFlaws> Handles for CompactStore<F> {
    type Handle = CompactHandle<F>;

    fn handle(self: &Arc<Self>, key: u8) -> CompactHandle<F> {
        let mut shard = self.shard(key).write();
        let Shard { step, entries, .. } = &mut *shard;
        let word = entries.iter_mut().find(|(present, _)| *present == key).map(|(_, word)| word);
        CompactHandle::new(self, key, *step, word.expect("the key is there"))
    }

    fn remove(&self, key: u8) -> bool {
        let mut shard = self.shard(key).write();
        let Some(at) = shard.entries.iter().position(|(present, _)| *present == key) else { return false };
        let (_, mut word) = shard.entries.swap_remove(at);
        if !F::REMOVES_UNTOLD {
            word.take_back::<F>();
        }
        self.keys.fetch_sub(1, Relaxed);
        true
    }

    fn go_on(&self, now: Nanos) {
        self.clock.store(now.as_u64(), Release);
    }

    fn change_by_clock(&self, quota: Quota) {
        self.change(quota, || self.now());
    }
}

impl<F> fmt::Debug for CompactStore<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactStore").finish_non_exhaustive()
    }
}
