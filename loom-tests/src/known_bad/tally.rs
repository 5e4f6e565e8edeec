//! Counters with planted bugs.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use crate::shim::AtomicU64;
use crate::tally::Tally;

/// Which bugs there are.
pub trait TallyFlaws: Send + Sync + 'static {
    /// A turn is counted by each who saw that it was due.
    const COUNTS_TWICE: bool = false;
    /// A sum is stored back without compare-and-swap.
    const STORES_BACK: bool = false;
}

/// Bursts and costs of ten tokens.
#[derive(Debug)]
pub struct CompactTally<F> {
    /// Odd once it is half full, even after a burst.
    turns: AtomicU64,
    cost: AtomicU64,
    flaws: PhantomData<F>,
}

impl<F: TallyFlaws> CompactTally<F> {
    fn turn(&self, parity: u64) {
        let turns = self.turns.load(Relaxed);
        if turns % 2 != parity {
            return;
        }
        if F::COUNTS_TWICE {
            self.turns.fetch_add(1, Relaxed);
        } else {
            let _ = self.turns.compare_exchange(turns, turns + 1, Relaxed, Relaxed);
        }
    }
}

impl<F: TallyFlaws> Tally for CompactTally<F> {
    fn new() -> Self {
        Self { turns: AtomicU64::new(0), cost: AtomicU64::new(0), flaws: PhantomData }
    }

    fn admitted(&self, cost: u64, left: u64) {
        let mut sum = self.cost.load(Relaxed);
        if F::STORES_BACK {
            self.cost.store(sum.saturating_add(cost), Relaxed);
        } else {
            while let Err(seen) = self.cost.compare_exchange(sum, sum.saturating_add(cost), Relaxed, Relaxed) {
                sum = seen;
            }
        }
        if left.saturating_add(cost) >= 5 {
            self.turn(0);
        }
        if left == 0 {
            self.turn(1);
        }
    }

    fn cost(&self) -> u64 {
        self.cost.load(Relaxed)
    }

    fn bursts(&self) -> u64 {
        self.turns.load(Relaxed) / 2
    }
}
