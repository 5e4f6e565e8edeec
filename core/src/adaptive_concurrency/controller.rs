//! Window and law together.

use core::ops::RangeInclusive;

use super::{ConcurrencyLaw, SampleWindow, Sampled};
use crate::{Nanos, Outcome};

/// Gathers how calls end in windows, and lets a law go by each: for one caller, or behind a lock.
///
/// Whoever shares a limit wants `AdaptiveConcurrency` (feature `lock_api`), which is this behind a lock.
///
/// After a window that lowers the limit, calls that started before count for nothing, for at most the longest time of a window: they were let in under the limit before, and
/// one burst of drops must not lower it many times.
///
/// ```
/// use sluicegate_core::{AimdLaw, ConcurrencyController, Nanos, Outcome, SampleWindow};
///
/// let mut controller = ConcurrencyController::new(SampleWindow::default(), AimdLaw::default());
/// let mut limit = controller.limit();
/// for turn in 0..100 {
///     let (started, ended) = (Nanos::from_millis(20 * turn), Nanos::from_millis(20 * turn + 15));
///     if let Some(changed) = controller.add(started, ended, Outcome::Success, 8) {
///         limit = changed;
///     }
/// }
/// assert_eq!((limit, controller.closed_windows()), (15, 5));
/// ```
#[derive(Clone, Debug)]
pub struct ConcurrencyController<L> {
    window: SampleWindow,
    law: L,
    closed: u64,
    dropped: u64,
}

impl<L: ConcurrencyLaw> ConcurrencyController<L> {
    /// At the law's limit, with `window` to gather.
    pub const fn new(window: SampleWindow, law: L) -> Self {
        Self { window, law, closed: 0, dropped: 0 }
    }

    /// Adds a call that ended at `ended` while `in_use` was in use, itself included. If that closes a window which changes the limit,
    /// it is returned.
    pub fn add(&mut self, started: Nanos, ended: Nanos, outcome: Outcome, in_use: u32) -> Option<u32> {
        match self.window.add(started, ended, outcome, in_use, self.limit()) {
            Sampled::NotCounted | Sampled::Counted => None,
            Sampled::Dropped { .. } => {
                self.dropped = self.dropped.saturating_add(1);
                None
            }
            Sampled::Closed(window) => {
                self.closed = self.closed.saturating_add(1);
                let before = self.limit();
                let _ = self.law.update(&window);
                let limit = self.limit();
                if limit < before {
                    self.window.only_calls_from(ended);
                }
                (limit != before).then_some(limit)
            }
        }
    }

    /// The law's limit, within its bounds and 1 or more.
    pub fn limit(&self) -> u32 {
        let bounds = self.bounds();
        self.law.limit().max(*bounds.start()).min(*bounds.end()).max(1)
    }

    /// The law's bounds.
    pub fn bounds(&self) -> RangeInclusive<u32> {
        self.law.bounds()
    }
}

impl<L> ConcurrencyController<L> {
    /// The law.
    pub const fn law(&self) -> &L {
        &self.law
    }

    /// How many windows the law has gone by.
    pub const fn closed_windows(&self) -> u64 {
        self.closed
    }

    /// How many windows were dropped. Many of them mean that the windows' times are too short for so few calls.
    pub const fn dropped_windows(&self) -> u64 {
        self.dropped
    }
}
