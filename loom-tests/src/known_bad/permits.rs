//! A compact concurrency limit, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use std::sync::Arc;

use crate::Permits;
use crate::shim::AtomicU64;

/// Bugs that a concurrency limit may have, one type each.
pub trait PermitFlaws: Send + Sync + 'static {
    /// Stores what would be in use back without looking whether it still is.
    const ACQUIRE_STORES_BACK: bool = false;
    /// Takes first, looks then, and gives back what was too much.
    const TAKES_FIRST: bool = false;
    /// Stores what would still be in use back without looking whether it changed.
    const RELEASE_STORES_BACK: bool = false;
    /// Stores a new limit beside what was in use, without looking whether it changed.
    const LIMIT_STORES_BACK: bool = false;
    /// Keeps the limit in a word of its own, read before the word of what is in use is changed.
    const LIMIT_APART: bool = false;
    /// Gives back what a permit held twice, as far as that much is in use.
    const RELEASES_TWICE: bool = false;
    /// Releases without publishing what was done before.
    const RELAXED_RELEASE: bool = false;
    /// Acquires without looking at what was published.
    const RELAXED_ACQUIRE: bool = false;
}

/// The word holds what is in use above, and the limit below.
pub struct CompactPermits<F: PermitFlaws>(Arc<Words<F>>);

struct Words<F> {
    word: AtomicU64,
    /// Used by one flaw only.
    limit: AtomicU64,
    flaws: PhantomData<F>,
}

/// What was taken.
pub struct CompactPermit<F: PermitFlaws> {
    words: Arc<Words<F>>,
    cost: u64,
}

impl<F: PermitFlaws> Words<F> {
    fn take(&self, cost: u64) -> bool {
        let mut current = self.word.load(Relaxed);
        let apart = self.limit(current);
        loop {
            let (in_use, limit) = (current >> LIMIT_BITS, if F::LIMIT_APART { apart } else { current & LIMIT_MASK });
            if F::TAKES_FIRST {
                let before = self.word.fetch_add(cost << LIMIT_BITS, Acquire) >> LIMIT_BITS;
                if before + cost <= limit {
                    return true;
                }
                self.word.fetch_sub(cost << LIMIT_BITS, Release);
                return false;
            }
            if in_use + cost > limit {
                return false;
            }
            let next = current + (cost << LIMIT_BITS);
            if F::ACQUIRE_STORES_BACK {
                self.word.store(next, Relaxed);
                return true;
            }
            match self.word.compare_exchange(current, next, Self::TAKE, Relaxed) {
                Ok(_) => return true,
                Err(seen) => current = seen,
            }
        }
    }

    fn give_back(&self, cost: u64) {
        if F::RELEASE_STORES_BACK {
            let current = self.word.load(Relaxed);
            self.word.store(current - (cost << LIMIT_BITS), Release);
            return;
        }
        let before = self.word.fetch_sub(cost << LIMIT_BITS, Self::GIVE_BACK) >> LIMIT_BITS;
        if F::RELEASES_TWICE && before >= 2 * cost {
            self.word.fetch_sub(cost << LIMIT_BITS, Release);
        }
    }

    fn limit(&self, word: u64) -> u64 {
        if F::LIMIT_APART { self.limit.load(Acquire) } else { word & LIMIT_MASK }
    }

    const TAKE: Ordering = if F::RELAXED_ACQUIRE { Relaxed } else { Acquire };
    const GIVE_BACK: Ordering = if F::RELAXED_RELEASE { Relaxed } else { Release };
}

impl<F: PermitFlaws> Permits for CompactPermits<F> {
    type Permit = CompactPermit<F>;

    fn new(limit: u32) -> Self {
        let limit = u64::from(limit);
        Self(Arc::new(Words { word: AtomicU64::new(limit), limit: AtomicU64::new(limit), flaws: PhantomData }))
    }

    fn try_acquire(&self, cost: u64) -> Option<CompactPermit<F>> {
        self.0.take(cost).then(|| CompactPermit { words: Arc::clone(&self.0), cost })
    }

    fn set_limit(&self, limit: u32) {
        let limit = u64::from(limit);
        if F::LIMIT_APART {
            self.0.limit.store(limit, Release);
            return;
        }
        let mut current = self.0.word.load(Relaxed);
        loop {
            let next = current & !LIMIT_MASK | limit;
            if F::LIMIT_STORES_BACK {
                self.0.word.store(next, Relaxed);
                return;
            }
            match self.0.word.compare_exchange(current, next, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(seen) => current = seen,
            }
        }
    }

    fn usage(&self) -> (u64, u64) {
        let word = self.0.word.load(Relaxed);
        (word >> LIMIT_BITS, self.0.limit(word))
    }
}

impl<F: PermitFlaws> Drop for CompactPermit<F> {
    fn drop(&mut self) {
        self.words.give_back(self.cost);
    }
}

impl<F: PermitFlaws> fmt::Debug for CompactPermits<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactPermits").finish_non_exhaustive()
    }
}

impl<F: PermitFlaws> fmt::Debug for CompactPermit<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactPermit").field("cost", &self.cost).finish_non_exhaustive()
    }
}

const LIMIT_BITS: u32 = 32;
const LIMIT_MASK: u64 = (1 << LIMIT_BITS) - 1;
