//! A compact limiter on a clock of its own, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::Clocked;
use crate::shim::AtomicU64;

/// Bugs that such a limiter may have, one switch each.
pub trait ClockedFlaws: Send + Sync + 'static {
    /// Denies by the reading it has, also what others have taken at later ones.
    const DENIES_BY_AN_OLD_READING: bool = false;
    /// Looks at what was taken after it has read the clock, and takes that for what was there before.
    const READS_THE_CLOCK_FIRST: bool = false;
    /// Who sees what was taken may still read a clock from before.
    const RELAXED_WORD: bool = false;
}

/// Each tick of the clock brings a token; the bucket holds two.
pub struct CompactClocked<F> {
    /// The tokens consumed since the beginning, those that overflowed among them.
    consumed: AtomicU64,
    clock: AtomicU64,
    flaws: PhantomData<F>,
}

impl<F: ClockedFlaws> CompactClocked<F> {
    fn read(&self) -> u64 {
        self.consumed.load(if F::RELAXED_WORD { Relaxed } else { Acquire })
    }

    fn now(&self) -> u64 {
        self.clock.load(Acquire)
    }
}

impl<F: ClockedFlaws> Clocked for CompactClocked<F> {
    fn new() -> Self {
        // One of two is taken.
        Self { consumed: AtomicU64::new(START + 1), clock: AtomicU64::new(START), flaws: PhantomData }
    }

    fn go_on(&self) {
        self.clock.store(START + 1, Release);
    }

    fn try_acquire(&self) -> bool {
        loop {
            let (seen, now) = if F::READS_THE_CLOCK_FIRST {
                let now = self.now();
                (self.read(), now)
            } else {
                let seen = self.read();
                (seen, self.now())
            };
            let mut current = seen;
            loop {
                let next = current.max(now) + 1;
                if next > now + 2 {
                    if current == seen || F::DENIES_BY_AN_OLD_READING {
                        return false;
                    }
                    break;
                }
                let order = if F::RELAXED_WORD { Relaxed } else { Release };
                match self.consumed.compare_exchange(current, next, order, Relaxed) {
                    Ok(_) => return true,
                    Err(now_there) => current = now_there,
                }
            }
        }
    }

    fn try_acquire_late(&self) -> bool {
        let order = if F::RELAXED_WORD { Relaxed } else { Release };
        self.consumed.compare_exchange(START + 1, START + 2, order, Relaxed).is_ok()
    }
}

impl<F> fmt::Debug for CompactClocked<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactClocked").finish_non_exhaustive()
    }
}

const START: u64 = 100;
