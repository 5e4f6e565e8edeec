//! A compact limit that adapts itself, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::Arc;

use lock_api::Mutex;

use crate::adapting::{Adapting, FIRST};
use crate::lock::ModelMutex;
use crate::shim::AtomicU64;

/// Bugs that a limit which adapts itself may have.
pub trait AdaptingFlaws: Send + Sync + 'static {
    /// Finds that its sample closes the window, and closes it under the lock once more.
    const CLOSES_BY_AN_OLD_LOOK: bool = false;
    /// Puts the law's limit in force without looking whether another was set meanwhile.
    const SETS_BLINDLY: bool = false;
    /// Looks the law's limit up without the lock.
    const LOOKS_UNLOCKED: bool = false;
}

/// The word holds the limit above, and what is in use below.
pub struct CompactAdapting<F: AdaptingFlaws>(Arc<Parts<F>>);

/// What was taken.
pub struct CompactAdaptingPermit<F: AdaptingFlaws>(Arc<Parts<F>>);

struct Parts<F> {
    word: AtomicU64,
    state: Mutex<ModelMutex, State>,
    /// The law's limit. Used by one flaw only.
    published: AtomicU64,
    flaws: PhantomData<F>,
}

struct State {
    needed: u32,
    samples: u32,
    windows: u64,
    limit: u32,
}

impl State {
    fn close(&mut self) -> u32 {
        self.samples = 0;
        self.windows += 1;
        self.limit += 1;
        self.limit
    }
}

impl<F: AdaptingFlaws> Parts<F> {
    fn release(&self) {
        let seen = self.word.fetch_sub(1, Release) - 1;
        let mut state = self.state.lock();
        state.samples += 1;
        if state.samples < state.needed {
            return;
        }
        if F::CLOSES_BY_AN_OLD_LOOK {
            drop(state);
            state = self.state.lock();
        }
        let limit = state.close();
        if F::LOOKS_UNLOCKED {
            self.published.store(limit.into(), Relaxed);
        }
        drop(state);
        self.follow(seen, limit);
    }

    /// The law's limit is the latest one, and is looked up again wherever it was too late.
    fn follow(&self, mut seen: u64, mut limit: u32) {
        let mut current = self.word.load(Relaxed);
        loop {
            if !F::SETS_BLINDLY && current >> LIMIT_SHIFT != seen >> LIMIT_SHIFT {
                seen = current;
                limit = if F::LOOKS_UNLOCKED { self.published.load(Relaxed) as u32 } else { self.state.lock().limit };
            }
            if !F::SETS_BLINDLY && seen >> LIMIT_SHIFT == 0 {
                return;
            }
            match self.word.compare_exchange(current, with_limit(current, limit), Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => current = now,
            }
        }
    }
}

impl<F: AdaptingFlaws> Adapting for CompactAdapting<F> {
    type Permit = CompactAdaptingPermit<F>;

    fn new(samples: u32) -> Self {
        let state = State { needed: samples, samples: 0, windows: 0, limit: FIRST };
        let word = AtomicU64::new(with_limit(0, FIRST));
        let published = AtomicU64::new(FIRST.into());
        Self(Arc::new(Parts { word, state: Mutex::new(state), published, flaws: PhantomData }))
    }

    fn try_acquire(&self) -> Option<Self::Permit> {
        // Models take before they race.
        self.0.word.fetch_add(1, Acquire);
        Some(CompactAdaptingPermit(Arc::clone(&self.0)))
    }

    fn success(permit: Self::Permit) {
        permit.0.release();
    }

    fn set_limit(&self, limit: u32) {
        let mut current = self.0.word.load(Relaxed);
        while let Err(now) = self.0.word.compare_exchange(current, with_limit(current, limit), Relaxed, Relaxed) {
            current = now;
        }
    }

    fn usage(&self) -> (u32, u32) {
        let word = self.0.word.load(Relaxed);
        (word as u32, (word >> LIMIT_SHIFT) as u32)
    }

    fn law(&self) -> (u64, u32) {
        let state = self.0.state.lock();
        (state.windows, state.limit)
    }
}

impl<F: AdaptingFlaws> fmt::Debug for CompactAdapting<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompactAdapting").field(&self.usage()).finish()
    }
}

impl<F: AdaptingFlaws> fmt::Debug for CompactAdaptingPermit<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompactAdaptingPermit")
    }
}

fn with_limit(word: u64, limit: u32) -> u64 {
    u64::from(limit) << LIMIT_SHIFT | word & u64::from(u32::MAX)
}

const LIMIT_SHIFT: u32 = u32::BITS;
