//! The sliding log as a limiter for one caller at a time.

use core::time::Duration;

use super::runs::{Run, Runs};
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::{Nanos, Rate};

/// A sliding log: exact over every interval, not only over aligned windows.
///
/// It remembers when it admitted what. A cost passes if and only if it and all that was admitted less than one window ago
/// stay within the limit.
///
/// # Guarantees
///
/// - No interval `[s, s + W)` of one window's length W ever holds more than the limit; a request is denied only if it
///   would. What was admitted at s counts until s + W and no longer.
/// - *Hint*: denied with `retry_after = r`, the same request alone succeeds r later and fails 1 ns before.
/// - A reading earlier than the latest one acted on counts as that latest one: it can neither reopen what has aged out nor
///   put a record out of order. Nothing panics or wraps under any clock.
/// - A refusal records nothing. A cost above the limit creates no state.
///
/// # Trade-offs
///
/// Memory grows with use, up to one record of 16 bytes for each unit of the limit; requests with equal readings share a
/// record, and a large cost takes no more than one. Where that is too much, a [`TokenBucket`](crate::TokenBucket) keeps one
/// word and is exact about another law. It takes `&mut self`: share it behind a lock.
///
/// # Complexity
///
/// Admitting is O(1) amortised over what ages out. Denying and looking are O(log records), giving back O(records).
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Denied, Nanos, Rate, SlidingLog};
///
/// let mut log = SlidingLog::new("3/1s".parse::<Rate>()?);
/// log.try_acquire_at(Nanos::from_millis(900), 2)?;
/// log.try_acquire_at(Nanos::from_millis(1100), 1)?;
///
/// // Two of the three age out at 1900 ms, although a new second began at 1000 ms.
/// let denied = log.try_acquire_at(Nanos::from_millis(1200), 1);
/// assert_eq!(denied, Err(Denied::RateLimited { retry_after: Duration::from_millis(700) }));
/// log.try_acquire_at(Nanos::from_millis(1900), 2)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SlidingLog<R> {
    rate: Rate,
    runs: R,
    /// The cost admitted since the log began, modulo 2^64.
    total: u64,
    /// The latest reading acted on, in nanoseconds.
    latest: u64,
}

#[cfg(feature = "alloc")]
impl SlidingLog<alloc::collections::VecDeque<Run>> {
    /// An empty log whose memory grows as needed. Needs the feature `alloc`.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, runs: alloc::collections::VecDeque::new(), total: 0, latest: 0 }
    }
}

impl<R> SlidingLog<R> {
    /// The limit per window.
    pub const fn rate(&self) -> Rate {
        self.rate
    }
}

impl<R: Runs> SlidingLog<R> {
    /// Takes `cost` at `now`, or nothing.
    ///
    /// # Errors
    /// [`Denied::RateLimited`] or [`Denied::CostExceedsLimit`].
    pub fn try_acquire_at(&mut self, now: Nanos, cost: u64) -> Decision {
        let limit = self.rate.tokens();
        if cost > limit {
            return Err(Denied::CostExceedsLimit { cost, limit });
        }
        self.latest = self.latest.max(now.as_u64());
        self.forget_aged();
        let used = self.used_from(0);
        if cost > limit - used {
            return Err(self.denial(now, 0, cost));
        }
        if cost > 0 {
            if self.newest().is_none_or(|run| run.at != self.latest) {
                self.runs.push_back(Run { at: self.latest, before: self.total });
            }
            self.total = self.total.wrapping_add(cost);
        }
        Ok(self.admitted(limit - used - cost))
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking and forgetting nothing.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        let limit = self.rate.tokens();
        if cost > limit {
            return Err(Denied::CostExceedsLimit { cost, limit });
        }
        let latest = self.latest.max(now.as_u64());
        let first = self.first_counted(latest);
        let used = self.used_from(first);
        if cost > limit - used {
            return Err(self.denial(now, first, cost));
        }
        Ok(Admitted::new(Remaining::Exactly(limit - used - cost), Nanos::new(latest)))
    }

    /// What is free at `now`. Changes nothing.
    pub fn inspect_at(&self, now: Nanos) -> Inspection {
        let first = self.first_counted(self.latest.max(now.as_u64()));
        Inspection::new(self.rate.tokens() - self.used_from(first), self.rate.tokens())
    }

    /// Gives back up to `cost` of what was admitted at the reading `taken_at`, which [`Admitted::at`] tells. What has aged out
    /// is gone.
    pub fn refund(&mut self, taken_at: Nanos, cost: u64) {
        let index = self.partition(|run| run.at < taken_at.as_u64());
        let Some(run) = self.run(index).filter(|run| run.at == taken_at.as_u64()) else {
            return;
        };
        let end = self.run(index + 1).map_or(self.total, |next| next.before);
        let returned = cost.min(end.wrapping_sub(run.before));
        // Everything after moves down, and a run that came to nothing goes: from the end, so that order is kept.
        let is_empty = returned == end.wrapping_sub(run.before);
        let mut later = index + 1;
        while let Some(run) = self.run(later) {
            let moved = Run { before: run.before.wrapping_sub(returned), ..run };
            self.replace(if is_empty { later - 1 } else { later }, moved);
            later += 1;
        }
        if is_empty {
            self.runs.pop_back();
        }
        self.total = self.total.wrapping_sub(returned);
    }

    /// Whether nothing is counted at `now`, so that this log equals a new one: a store may forget it.
    pub fn is_unused(&self, now: Nanos) -> bool {
        self.used_from(self.first_counted(self.latest.max(now.as_u64()))) == 0
    }

    /// The number of records kept; at most the limit.
    pub fn records(&self) -> usize {
        let (older, newer) = self.runs.pieces();
        older.len() + newer.len()
    }

    /// Gives memory back that a past peak needed. Has no effect on decisions.
    pub fn shrink(&mut self) {
        self.runs.shrink();
    }

    fn forget_aged(&mut self) {
        while self.run(0).is_some_and(|run| self.has_aged(run, self.latest)) {
            self.runs.pop_front();
        }
    }

    #[inline]
    fn has_aged(&self, run: Run, now: u64) -> bool {
        now.saturating_sub(run.at) >= self.rate.period_nanos()
    }

    /// The index of the first run that counts at `now`.
    fn first_counted(&self, now: u64) -> usize {
        self.partition(|run| self.has_aged(run, now))
    }

    /// What the runs from `first` on hold; at most the limit.
    #[inline]
    fn used_from(&self, first: usize) -> u64 {
        self.run(first).map_or(0, |run| self.total.wrapping_sub(run.before))
    }

    fn admitted(&self, left: u64) -> Admitted {
        Admitted::new(Remaining::Exactly(left), Nanos::new(self.latest))
    }

    /// When enough of the runs from `first` on will have aged.
    fn denial(&self, now: Nanos, first: usize, cost: u64) -> Denied {
        let used = self.used_from(first);
        // At least 1, and at most what is used, because the cost is at most the limit.
        let excess = used - (self.rate.tokens() - cost);
        let start = self.total.wrapping_sub(used);
        // The first run up to whose end the excess lies is the one before the first that begins at or after it.
        let last =
            self.partition(|run| self.total.wrapping_sub(run.before) > used || run.before.wrapping_sub(start) < excess);
        let at = self.run(last.saturating_sub(1)).map_or(0, |run| run.at);
        let free_at = at.saturating_add(self.rate.period_nanos());
        Denied::RateLimited { retry_after: Duration::from_nanos(free_at.saturating_sub(now.as_u64()).max(1)) }
    }

    #[inline]
    fn newest(&self) -> Option<Run> {
        let (older, newer) = self.runs.pieces();
        newer.last().or(older.last()).copied()
    }

    #[inline]
    fn run(&self, index: usize) -> Option<Run> {
        let (older, newer) = self.runs.pieces();
        match older.get(index) {
            Some(run) => Some(*run),
            None => newer.get(index - older.len()).copied(),
        }
    }

    fn replace(&mut self, index: usize, run: Run) {
        let (older, newer) = self.runs.pieces_mut();
        let split = older.len();
        let slot = if index < split { older.get_mut(index) } else { newer.get_mut(index - split) };
        if let Some(slot) = slot {
            *slot = run;
        }
    }

    /// The index of the first run for which `precedes` is false; it is true for a prefix only.
    fn partition(&self, precedes: impl Fn(Run) -> bool) -> usize {
        let (older, newer) = self.runs.pieces();
        let in_older = older.partition_point(|run| precedes(*run));
        if in_older < older.len() { in_older } else { in_older + newer.partition_point(|run| precedes(*run)) }
    }
}
