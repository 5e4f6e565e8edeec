//! The sliding log as a limiter for one caller at a time.

use super::runs::{Run, Runs};
#[cfg(feature = "heapless")]
use crate::QuotaError;
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::nanos::nanos_to_duration;
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
/// - A reading earlier than the latest one that something was taken at counts as that one: it can neither reopen what has
///   aged out nor put a record out of order. Nothing panics or wraps under any clock. Readings are told apart in all of
///   their 64 bits, past [`Nanos::HORIZON`] too.
/// - A denial changes nothing, and neither does a cost of 0, which is always admitted.
/// - *Conservation*: what is refunded can be taken again, and no more.
///
/// # Trade-offs
///
/// Memory grows with use, up to one record of 16 bytes for each unit of the limit; requests with equal readings share a
/// record, and a large cost takes no more than one. It is not given back by itself: see [`shrink`](Self::shrink). Where
/// that is too much, a [`SlidingCounter`](crate::SlidingCounter) keeps one word and estimates, and a
/// [`TokenBucket`](crate::TokenBucket) keeps one word and is exact about another law. It takes `&mut self`: share it
/// behind a lock.
///
/// # Complexity
///
/// Deciding and looking are O(log records). An admission also drops the records that have aged out, each once. Giving back
/// is O(records). A call is synchronous, so there is nothing to cancel.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Denied, Nanos, Rate, SlidingLog};
///
/// # #[cfg(feature = "alloc")] {
/// let mut log = SlidingLog::new("3/1s".parse::<Rate>()?);
/// log.try_acquire_at(Nanos::from_millis(900), 2)?;
/// log.try_acquire_at(Nanos::from_millis(1100), 1)?;
///
/// // Two of the three age out at 1900 ms, although a new second began at 1000 ms.
/// let denied = log.try_acquire_at(Nanos::from_millis(1200), 1);
/// assert_eq!(denied, Err(Denied::RateLimited { retry_after: Duration::from_millis(700) }));
/// log.try_acquire_at(Nanos::from_millis(1900), 2)?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SlidingLog<R> {
    rate: Rate,
    runs: R,
    /// The cost admitted since the log began, modulo 2^64.
    total: u64,
    /// The latest reading that something was taken at, in nanoseconds. The newest run has it too, unless it was given back.
    latest: u64,
}

/// A sliding log for at most `N` units per window, in place: 16 bytes for each of the `N`. Needs the feature `heapless`.
///
/// ```
/// use sluicegate_core::{FixedSlidingLog, Nanos, QuotaError, Rate};
///
/// let mut log = FixedSlidingLog::<4>::with_array("3/1s".parse::<Rate>()?)?;
/// log.try_acquire_at(Nanos::ZERO, 3)?;
/// assert!(log.try_acquire_at(Nanos::from_millis(999), 1).is_err());
///
/// let too_large = FixedSlidingLog::<4>::with_array("5/1s".parse::<Rate>()?);
/// assert_eq!(too_large.err(), Some(QuotaError::LimitAboveCapacity { limit: 5, capacity: 4 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "heapless")]
pub type FixedSlidingLog<const N: usize> = SlidingLog<heapless::Deque<Run, N>>;

#[cfg(feature = "alloc")]
impl SlidingLog<alloc::collections::VecDeque<Run>> {
    /// An empty log whose memory grows as needed. Needs the feature `alloc`.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, runs: alloc::collections::VecDeque::new(), total: 0, latest: 0 }
    }
}

#[cfg(feature = "heapless")]
impl<const N: usize> FixedSlidingLog<N> {
    /// An empty log in place, also in a constant. Needs the feature `heapless`.
    ///
    /// Every unit of the limit may need a record of its own, so the limit is at most `N`: a log that ran out of records
    /// would have to deny what the law admits.
    ///
    /// # Errors
    /// [`QuotaError::LimitAboveCapacity`] when the limit is above `N`.
    pub const fn with_array(rate: Rate) -> Result<Self, QuotaError> {
        if rate.tokens() > N as u64 {
            return Err(QuotaError::LimitAboveCapacity { limit: rate.tokens(), capacity: N });
        }
        Ok(Self { rate, runs: heapless::Deque::new(), total: 0, latest: 0 })
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
    /// [`Denied::RateLimited`] or [`Denied::CostExceedsLimit`]. A denial changes nothing.
    pub fn try_acquire_at(&mut self, now: Nanos, cost: u64) -> Decision {
        let latest = self.latest.max(now.as_u64());
        let first = self.first_counted(latest);
        let admitted = self.decide(now, latest, first, cost)?;
        if cost > 0 {
            // Nothing aged counts again: from here on, no reading is earlier than this one.
            self.latest = latest;
            for _ in 0..first {
                self.runs.pop_front();
            }
            if self.newest().is_none_or(|run| run.at != latest) {
                self.runs.push_back(Run { at: latest, before: self.total }, self.rate.tokens());
            }
            self.total = self.total.wrapping_add(cost);
        }
        Ok(admitted)
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking and forgetting nothing.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        let latest = self.latest.max(now.as_u64());
        self.decide(now, latest, self.first_counted(latest), cost)
    }

    /// What is free at `now`. Changes nothing.
    pub fn inspect_at(&self, now: Nanos) -> Inspection {
        let first = self.first_counted(self.latest.max(now.as_u64()));
        Inspection::new(self.rate.tokens() - self.used_from(first), self.rate.tokens())
    }

    /// Gives back `cost` that was admitted at the reading `taken_at`, which [`Admitted::at`] tells: for work that turned
    /// out not to be done.
    ///
    /// What has aged out is gone. No more comes back than was taken at that reading, by whomever.
    pub fn refund(&mut self, taken_at: Nanos, cost: u64) {
        let _ = self.give_back(taken_at, cost);
    }

    /// As [`refund`](Self::refund); tells how much came back.
    pub(super) fn give_back(&mut self, taken_at: Nanos, cost: u64) -> u64 {
        let index = self.partition(|run| run.at < taken_at.as_u64());
        let Some(run) = self.run(index).filter(|run| run.at == taken_at.as_u64()) else {
            return 0;
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
        returned
    }

    /// Whether this log decides as a new one would at every reading from `now` on: a store may forget it.
    pub fn is_unused(&self, now: Nanos) -> bool {
        now.as_u64() >= self.latest && self.used_from(self.first_counted(now.as_u64())) == 0
    }

    /// The number of records kept; at most the limit. Those that have aged out since the latest admission are among them.
    pub fn records(&self) -> usize {
        let (older, newer) = self.runs.pieces();
        older.len() + newer.len()
    }

    /// Gives memory back that a past peak needed. Has no effect on decisions.
    pub fn shrink(&mut self) {
        self.runs.shrink();
    }

    fn decide(&self, now: Nanos, latest: u64, first: usize, cost: u64) -> Decision {
        let limit = self.rate.tokens();
        if cost > limit {
            return Err(Denied::CostExceedsLimit { cost, limit });
        }
        let free = limit - self.used_from(first);
        if cost > free {
            return Err(self.denial(now, first, cost));
        }
        Ok(Admitted::new(Remaining::Exactly(free - cost), Nanos::new(latest)))
    }

    #[inline]
    fn has_aged(&self, run: Run, now: u64) -> bool {
        now.saturating_sub(run.at) >= self.rate.period_nanos()
    }

    /// The index of the first run that counts at `now`, which is no earlier than `latest`.
    #[inline]
    fn first_counted(&self, now: u64) -> usize {
        // Mostly nothing has aged since the last call, which takes no search to see.
        if self.run(0).is_none_or(|oldest| !self.has_aged(oldest, now)) {
            return 0;
        }
        self.partition(|run| self.has_aged(run, now))
    }

    /// What the runs from `first` on hold; at most the limit.
    #[inline]
    fn used_from(&self, first: usize) -> u64 {
        self.run(first).map_or(0, |run| self.total.wrapping_sub(run.before))
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
        // In 128 bits, because a long window may end past the last reading. It ends after `latest`, so after `now`.
        let wait = (u128::from(at) + u128::from(self.rate.period_nanos())).saturating_sub(u128::from(now.as_u64()));
        Denied::RateLimited { retry_after: nanos_to_duration(wait) }
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
