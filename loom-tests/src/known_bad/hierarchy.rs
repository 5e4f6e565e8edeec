//! A compact hierarchy, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::Tree;
use crate::shim::{AtomicU64, give_way};

/// Bugs that a hierarchy may have, one switch each.
pub trait HierarchyFlaws: Send + Sync + 'static {
    /// Keeps what it holds at one level when another refuses.
    const FORGETS_TO_LET_GO: bool = false;
    /// Looks at all levels, and then takes as if nothing could have changed.
    const TRUSTS_ITS_LOOK: bool = false;
    /// Denies without asking whether what is missing is only held.
    const DENIES_AT_ONCE: bool = false;
    /// Believes a level that refuses its hold, without asking whether what is missing is only held.
    const BELIEVES_A_FAILED_HOLD: bool = false;
    /// Announces a hold after it has begun.
    const ANNOUNCES_LATE: bool = false;
    /// Holds before it has looked whether all levels have enough, and announces none of it.
    const HOLDS_FIRST: bool = false;
}

/// Three levels of units that are never refilled.
pub struct CompactTree<F> {
    levels: [CompactLevel; 3],
    flaws: PhantomData<F>,
}

struct CompactLevel {
    free: AtomicU64,
    /// Holds in flight below, holds that ended above.
    marks: AtomicU64,
}

impl CompactLevel {
    fn take(&self) -> bool {
        let mut free = self.free.load(Acquire);
        while free > 0 {
            match self.free.compare_exchange(free, free - 1, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(seen) => free = seen,
            }
        }
        false
    }

    fn begin(&self) {
        self.marks.fetch_add(1, Relaxed);
    }

    fn end(&self) {
        self.marks.fetch_add(ENDED - 1, Release);
    }

    /// Asks `decide` until it admits, or denies while nothing is held.
    fn settled<F: HierarchyFlaws>(&self, decide: impl Fn() -> bool) -> bool {
        let mut attempt = 0;
        loop {
            let before = self.marks.load(Acquire);
            if decide() {
                return true;
            }
            let quiet = before % ENDED == 0 && self.marks.load(Acquire) == before;
            if quiet || F::DENIES_AT_ONCE {
                return false;
            }
            give_way(attempt);
            attempt += 1;
        }
    }
}

impl<F: HierarchyFlaws> CompactTree<F> {
    /// Takes a unit at the inner level and then at the outer one; `None` if another request was in the way.
    fn take(&self, [outer, inner]: [usize; 2]) -> Option<Result<(), usize>> {
        let (at_outer, at_inner) = (&self.levels[outer], &self.levels[inner]);
        if F::TRUSTS_ITS_LOOK {
            let _ = (at_inner.take(), at_outer.take());
            return Some(Ok(()));
        }
        let announces = !F::ANNOUNCES_LATE && !F::HOLDS_FIRST;
        let before = at_inner.marks.load(Acquire);
        if announces {
            at_inner.begin();
        }
        if !at_inner.take() {
            let quiet = !announces
                || F::BELIEVES_A_FAILED_HOLD
                || (before % ENDED == 0 && at_inner.marks.load(Acquire) == before + 1);
            if announces {
                at_inner.end();
            }
            return quiet.then_some(Err(inner));
        }
        if F::ANNOUNCES_LATE {
            at_inner.begin();
        }
        let before = at_outer.marks.load(Acquire);
        let taken = at_outer.take();
        let quiet = before % ENDED == 0 && at_outer.marks.load(Acquire) == before;
        if !taken && !F::FORGETS_TO_LET_GO {
            at_inner.free.fetch_add(1, AcqRel);
        }
        if !F::HOLDS_FIRST {
            at_inner.end();
        }
        if taken { Some(Ok(())) } else { quiet.then_some(Err(outer)) }
    }
}

impl<F: HierarchyFlaws> Tree for CompactTree<F> {
    fn new(limits: [u64; 3]) -> Self {
        let level = |free| CompactLevel { free: AtomicU64::new(free), marks: AtomicU64::new(0) };
        Self { levels: limits.map(level), flaws: PhantomData }
    }

    fn try_acquire(&self, path: [usize; 2]) -> Result<(), usize> {
        let mut attempt = 0;
        loop {
            for index in path.into_iter().rev() {
                let level = &self.levels[index];
                if !F::HOLDS_FIRST && !level.settled::<F>(|| level.free.load(Acquire) > 0) {
                    return Err(index);
                }
            }
            if let Some(decided) = self.take(path) {
                return decided;
            }
            give_way(attempt);
            attempt += 1;
        }
    }

    fn try_acquire_alone(&self, index: usize) -> bool {
        let level = &self.levels[index];
        level.settled::<F>(|| level.take())
    }

    fn free(&self, level: usize) -> u64 {
        self.levels[level].free.load(Acquire)
    }
}

impl<F> fmt::Debug for CompactTree<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactTree").finish_non_exhaustive()
    }
}

const ENDED: u64 = 1 << 24;
