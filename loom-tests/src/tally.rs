//! Bodies of the counters' models. Bounds and costs are beside the tests that run them.

use std::sync::Arc;

use sluicegate_core::{Admitted, Counters, Nanos, Observer, Quota, Rate, Remaining};

use crate::{promise, race2};

/// Counts what is admitted, of ten tokens.
pub trait Tally: Send + Sync + 'static {
    /// Nothing was counted.
    fn new() -> Self;
    /// A request took `cost` and left so many tokens.
    fn admitted(&self, cost: u64, left: u64);
    /// What was taken in all.
    fn cost(&self) -> u64;
    /// How often it went from half full or more to less than one.
    fn bursts(&self) -> u64;
}

impl Tally for Counters {
    fn new() -> Self {
        let rate = Rate::new(10, core::time::Duration::from_secs(1)).expect("a rate");
        Self::with_limit(Quota::new(rate).expect("a quota").into())
    }
    fn admitted(&self, cost: u64, left: u64) {
        Observer::admitted(self, Nanos::ZERO, cost, &Admitted::new(Remaining::Exactly(left), Nanos::ZERO));
    }
    fn cost(&self) -> u64 {
        self.snapshot().admitted_cost
    }
    fn bursts(&self) -> u64 {
        self.snapshot().bursts
    }
}

/// Two callers see the end of one burst: it counts once, and whoever sees it later begins no other.
pub fn burst_seen_by_two<T: Tally>() {
    let tally = Arc::new(T::new());
    tally.admitted(1, 5);
    race2(&tally, |tally: &T| tally.admitted(1, 0), |tally: &T| tally.admitted(1, 0));
    tally.admitted(1, 0);
    promise!(tally.bursts() == 1, "one burst counts as {}", tally.bursts());
}

/// Two costs at once, of which the second may have no room: none is lost, and nothing wraps.
pub fn costs_of_two<T: Tally>() {
    for (most, cost) in [(0, 2), (u64::MAX - 3, 2)] {
        let tally = Arc::new(T::new());
        tally.admitted(most, 10);
        race2(&tally, move |tally: &T| tally.admitted(cost, 10), |tally: &T| tally.admitted(cost, 10));
        let sum = most.saturating_add(2 * cost);
        promise!(tally.cost() == sum, "{most} and twice {cost} are {}", tally.cost());
    }
}
