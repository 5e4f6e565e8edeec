//! A compact leaky bucket, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use sluicegate_core::Nanos;

use crate::Pacer;
use crate::shim::AtomicU64;

/// Bugs that a leaky bucket may have, one type each.
pub trait PacerFlaws: Send + Sync + 'static {
    /// Stores the next free slot back without looking whether it moved.
    const STORES_BACK: bool = false;
    /// Takes first, looks then, and gives back what was too much.
    const TAKES_FIRST: bool = false;
    /// Takes the slot at its own reading, where that lies before the next free one.
    const LATE_READING_TURNS_BACK: bool = false;
    /// Gives a slot up by storing what was before, without looking whether another came.
    const CANCEL_STORES_BACK: bool = false;
    /// Gives a slot up by moving the next free one down, although a later item has been told its departure.
    const CANCEL_MOVES_OTHERS: bool = false;
}

/// The word holds the second of the next free slot.
pub struct CompactPacer<F> {
    next: AtomicU64,
    queue: u64,
    flaws: PhantomData<F>,
}

/// A slot.
#[derive(Debug)]
pub struct Slot {
    before: u64,
    at: u64,
    after: u64,
}

impl<F: PacerFlaws> Pacer for CompactPacer<F> {
    type Departure = Slot;

    fn new(queue: u64) -> Self {
        Self { next: AtomicU64::new(0), queue, flaws: PhantomData }
    }

    fn try_acquire(&self, now: Nanos, cost: u64) -> Option<Slot> {
        let now = now.as_u64() / 1_000_000_000;
        let mut before = self.next.load(Relaxed);
        loop {
            if F::TAKES_FIRST && before > now {
                before = self.next.fetch_add(cost, Relaxed);
                if before > now + self.queue {
                    self.next.fetch_sub(cost, Relaxed);
                    return None;
                }
                return Some(Slot { before, at: before, after: before + cost });
            }
            if before > now + self.queue {
                return None;
            }
            let at = if F::LATE_READING_TURNS_BACK { now } else { before.max(now) };
            let slot = Slot { before, at, after: at + cost };
            if F::STORES_BACK {
                self.next.store(slot.after, Relaxed);
                return Some(slot);
            }
            match self.next.compare_exchange(before, slot.after, Relaxed, Relaxed) {
                Ok(_) => return Some(slot),
                Err(seen) => before = seen,
            }
        }
    }

    fn at(slot: &Slot) -> Nanos {
        Nanos::from_secs(slot.at)
    }

    fn cancel(&self, slot: Slot) -> Result<(), Slot> {
        if F::CANCEL_MOVES_OTHERS {
            self.next.fetch_sub(slot.after - slot.at, Relaxed);
            return Ok(());
        }
        if F::CANCEL_STORES_BACK {
            if self.next.load(Relaxed) != slot.after {
                return Err(slot);
            }
            self.next.store(slot.before, Relaxed);
            return Ok(());
        }
        match self.next.compare_exchange(slot.after, slot.before, Relaxed, Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => Err(slot),
        }
    }
}

impl<F> fmt::Debug for CompactPacer<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactPacer").finish_non_exhaustive()
    }
}
