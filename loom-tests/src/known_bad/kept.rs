//! Handles of a compact store's keys, and the states that they keep.

use core::fmt;
use core::mem;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::Arc;

use sluicegate_core::{BucketState, BucketStep, Nanos};

use super::keyed::{CompactStore, StoreFlaws};
use crate::shim::AtomicU64;
use crate::{Handle, Served, Store};

/// A key's state in a shard: there, or where handles keep it.
pub(super) enum Word {
    InPlace(AtomicU64),
    Kept(Arc<Kept>),
}

/// A state that a store shares with handles until it takes it back.
pub(super) struct Kept {
    word: AtomicU64,
    /// How many there are. The reference count beside it is not modelled; this one is, and may be seen stale.
    handles: AtomicU64,
}

impl Word {
    pub(super) fn cell(&self) -> &AtomicU64 {
        match self {
            Self::InPlace(word) => word,
            Self::Kept(kept) => &kept.word,
        }
    }

    pub(super) fn take_back<F: StoreFlaws>(&mut self) {
        if let Self::Kept(kept) = self {
            *self = Self::InPlace(AtomicU64::new(kept.end::<F>()));
        }
    }

    /// The same where there is no handle any more, and says whether the state is in its place now.
    pub(super) fn take_back_unused<F: StoreFlaws>(&mut self) -> bool {
        // Relaxed: what its last handle took is in the word, of which a swap sees the latest.
        if matches!(self, Self::Kept(kept) if kept.handles.load(Relaxed) > 0) {
            return false;
        }
        self.take_back::<F>();
        true
    }

    fn keep(&mut self) -> Arc<Kept> {
        if let Self::InPlace(word) = self {
            let word = mem::replace(word, AtomicU64::new(ENDED));
            *self = Self::Kept(Arc::new(Kept { word, handles: AtomicU64::new(0) }));
        }
        let Self::Kept(kept) = self else { unreachable!("it was put there") };
        kept.handles.fetch_add(1, Relaxed);
        Arc::clone(kept)
    }
}

impl Kept {
    fn end<F: StoreFlaws>(&self) -> u64 {
        let order = if F::ENDS_RELAXED { Relaxed } else { Acquire };
        if F::ENDS_IN_TWO_STEPS {
            let state = self.word.load(order);
            self.word.store(ENDED, Relaxed);
            return state;
        }
        self.word.swap(ENDED, order)
    }

    fn has_ended(&self) -> bool {
        self.word.load(Relaxed) == ENDED
    }
}

/// A handle of a [`CompactStore`]'s key.
pub struct CompactHandle<F> {
    store: Arc<CompactStore<F>>,
    key: u8,
    step: BucketStep,
    kept: Arc<Kept>,
}

impl<F> CompactHandle<F> {
    pub(super) fn new(store: &Arc<CompactStore<F>>, key: u8, step: BucketStep, word: &mut Word) -> Self {
        Self { store: Arc::clone(store), key, step, kept: word.keep() }
    }
}

impl<F: StoreFlaws> Handle for CompactHandle<F> {
    fn decide(&self, now: Nanos, cost: u64) -> Served {
        let served = CompactStore::<F>::decide_present(&self.step, &self.kept.word, now, cost);
        if served == Served::Admitted || F::DENIES_BY_AN_END || !self.kept.has_ended() {
            return served;
        }
        self.store.decide(self.key, now, cost)
    }

    fn decide_by_clock(&self, cost: u64) -> Served {
        self.decide(self.store.now(), cost)
    }

    fn level(&self, now: Nanos) -> u64 {
        let state = BucketState::from_bits(self.kept.word.load(Relaxed));
        if F::SHOWS_AN_END || !self.kept.has_ended() {
            return self.step.inspect(state, now).level;
        }
        self.store.level(self.key, now).unwrap_or_else(|| self.step.inspect(BucketState::FULL, now).level)
    }

    fn is_current(&self) -> bool {
        !self.kept.has_ended()
    }
}

impl<F> Clone for CompactHandle<F> {
    fn clone(&self) -> Self {
        self.kept.handles.fetch_add(1, Relaxed);
        Self { store: Arc::clone(&self.store), key: self.key, step: self.step, kept: Arc::clone(&self.kept) }
    }
}

impl<F> Drop for CompactHandle<F> {
    fn drop(&mut self) {
        self.kept.handles.fetch_sub(1, Release);
    }
}

impl<F> fmt::Debug for CompactHandle<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactHandle").finish_non_exhaustive()
    }
}

/// No state of a quota.
const ENDED: u64 = u64::MAX;
