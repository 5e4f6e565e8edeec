//! The sharded window that programs use: a limit, its shards, a clock, a shard number and an observer.

use core::fmt;

use super::counts::Counts;
use super::limit::{Rule, WindowLimit};
use super::shards::{Shard, Shards};
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::observer::{Observer, report};
use crate::{Clock, Limiter, Nanos, ShardId};

/// A fixed window spread over shards: the exact door for one hot limit that many cores share.
///
/// In the window that the clock's reading names, exactly `min(limit, demanded)` is admitted: from any number of threads,
/// over any number of shards, at any costs. Window number n is the readings from `n * width` to `(n + 1) * width - 1`.
///
/// # Guarantees
///
/// - A caller whose shard is spent sweeps the others before it is denied: uneven load never denies early, and one caller
///   can spend the whole limit, also one smaller than the number of shards.
/// - A cost that no single shard can serve is taken from several, all or nothing, and is not denied while enough units
///   are free. Its tentative hold never makes another caller's denial wrong: who sees nothing free meanwhile looks again.
/// - A late reading can neither reopen an old window nor reset a new one. No window number is ever used again.
/// - The number of shards is fixed when the limiter is made; cores that come or go later move no cap.
/// - Calls allocate nothing and are synchronous, so there is nothing to cancel.
///
/// # Trade-offs
///
/// Across one boundary twice the limit can pass: all of a window at its end, all of the next at its start. Where that
/// matters use a [`TokenBucket`](crate::TokenBucket), which shares one word and scales less.
///
/// Single-shard calls are lock-free while anything is free. Refunds, costs that need several shards and
/// the first denial of a window hold its flag, for some tens of instructions, and denials wait while another call does: see [`ShardId::give_way`]. **Where a caller
/// may interrupt the holder and must not return to it first** (an interrupt handler that uses the limiter that it
/// interrupted), such a wait does not end: give that limiter one shard, which needs none of this, or mask the interrupt.
///
/// # Complexity
///
/// O(1) while the caller's shard has room, otherwise O(shards). Each shard has a padded cache line, and the limiter one
/// more.
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Denied, FixedShard, ManualClock, Shard, ShardedWindow, WindowLimit, quota};
///
/// let limit = WindowLimit::try_from(quota!("10/1s"))?;
/// let window: ShardedWindow<[Shard; 4], _, _> =
///     ShardedWindow::with_array(limit, ManualClock::new(), FixedShard(0));
/// window.try_acquire(1)?;
/// window.try_acquire(9)?; // more than one shard's slice
/// assert_eq!(window.try_acquire(1), Err(Denied::RateLimited { retry_after: Duration::from_secs(1) }));
///
/// window.clock().advance(Duration::from_secs(1));
/// window.try_acquire(10)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedWindow<S, C, I, O = ()> {
    limit: WindowLimit,
    counts: Counts<S>,
    clock: C,
    shard_id: I,
    observer: O,
}

impl<const N: usize, C, I> ShardedWindow<[Shard; N], C, I> {
    crate::sync::const_unless_loom! {
        /// A window of `limit` over `N` shards, without an allocation and in a constant too. `N` is at least 1, which the
        /// compiler checks.
        pub fn with_array(limit: WindowLimit, clock: C, shard_id: I) -> Self {
            const { assert!(N > 0, "a sharded window needs at least one shard") };
            let counts = Counts::new(limit.layout(), crate::sync::array_of!(Shard::new()), N);
            Self { limit, counts, clock, shard_id, observer: () }
        }
    }
}

#[cfg(feature = "alloc")]
impl<C, I> ShardedWindow<alloc::boxed::Box<[Shard]>, C, I> {
    /// A window of `limit` over `shards` shards. Needs the feature `alloc`.
    ///
    /// One shard for each core that calls is a good number. More than the limit is allowed and does no harm.
    pub fn with_shards(limit: WindowLimit, shards: core::num::NonZeroUsize, clock: C, shard_id: I) -> Self {
        let words = (0..shards.get()).map(|_| Shard::new()).collect();
        Self { limit, counts: Counts::new(limit.layout(), words, shards.get()), clock, shard_id, observer: () }
    }
}

impl<S, C, I> ShardedWindow<S, C, I> {
    /// The same window, which from now on tells `observer` of every decision.
    pub fn observed_by<O: Observer>(self, observer: O) -> ShardedWindow<S, C, I, O> {
        ShardedWindow { limit: self.limit, counts: self.counts, clock: self.clock, shard_id: self.shard_id, observer }
    }
}

impl<S: Shards, C, I, O> ShardedWindow<S, C, I, O> {
    /// The limit.
    pub fn limit(&self) -> WindowLimit {
        self.limit
    }

    /// The number of shards; at least 1.
    pub fn shard_count(&self) -> usize {
        self.counts.shard_count()
    }

    /// How much of the limit each shard may admit, from shard 0 on. The sum is exactly the limit and no two differ by more
    /// than 1. Empty without a quota.
    pub fn caps(&self) -> impl Iterator<Item = u64> + use<S, C, I, O> {
        let caps = self.counts.caps();
        let count = if self.limit.is_quota() { self.counts.shard_count() } else { 0 };
        (0..count).map(move |index| caps.of(index))
    }

    /// The clock.
    #[inline]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The source of shard numbers.
    #[inline]
    pub const fn shard_id(&self) -> &I {
        &self.shard_id
    }

    /// The observer.
    #[inline]
    pub const fn observer(&self) -> &O {
        &self.observer
    }
}

impl<S: Shards, C, I: ShardId, O> ShardedWindow<S, C, I, O> {
    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking nothing and telling nobody. O(shards).
    ///
    /// `remaining` is then a bound over all shards, where an admission only tells that of one.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        match self.limit.rule {
            Rule::Step(_) => self.counts.peek(now, cost, &self.shard_id),
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
            Rule::DenyAll => Err(Denied::Closed),
        }
    }

    /// What is free at `now`, summed over the shards. Changes nothing. O(shards).
    ///
    /// While others take, it lies between what was free when the call began and what is when it ends. While others refund
    /// without a pause, it waits for one.
    pub fn inspect_at(&self, now: Nanos) -> Inspection {
        match self.limit.rule {
            Rule::Step(_) => Inspection::new(self.counts.free(now, &self.shard_id), self.counts.limit()),
            Rule::Unlimited => Inspection::new(u64::MAX, u64::MAX),
            Rule::DenyAll => Inspection::new(0, 0),
        }
    }
}

impl<S: Shards, C, I: ShardId, O: Observer> ShardedWindow<S, C, I, O> {
    /// Takes `cost` at the reading `now`, or nothing.
    ///
    /// One reading can serve all limiters of a request. It must come from a clock with the same origin every time.
    /// Without a limit the request is admitted and nobody is told.
    ///
    /// # Errors
    /// [`Denied::RateLimited`] with what is left of the window when too little is free, [`Denied::CostExceedsLimit`] when
    /// `cost` is more than the limit, [`Denied::Closed`] under [`Limit::DenyAll`](crate::Limit::DenyAll). A denial takes nothing.
    #[inline(always)]
    pub fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        match self.limit.rule {
            Rule::Step(_) => report(&self.observer, now, cost, self.counts.try_acquire(now, cost, &self.shard_id)),
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
            Rule::DenyAll => report(&self.observer, now, cost, Err(Denied::Closed)),
        }
    }

    pub(crate) fn take_silently(&self, now: Nanos, cost: u64) -> Decision {
        match self.limit.rule {
            Rule::Step(_) => self.counts.try_acquire(now, cost, &self.shard_id),
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
            Rule::DenyAll => Err(Denied::Closed),
        }
    }

    /// Tells how much came back, where there is something to count.
    pub(crate) fn refund_silently(&self, taken_at: Nanos, cost: u64) -> Option<u64> {
        self.limit.is_quota().then(|| self.counts.refund(taken_at, cost, &self.shard_id))
    }

    pub(crate) fn tell(&self, now: Nanos, cost: u64, decision: Decision) {
        if !matches!(self.limit.rule, Rule::Unlimited) {
            let _ = report(&self.observer, now, cost, decision);
        }
    }

    /// Gives back `cost` that was admitted at the reading `taken_at`, which [`Admitted::at`] tells: for work that turned
    /// out not to be done.
    ///
    /// What was taken in a window that has passed is gone with it, and a window never has more than its limit free. The
    /// reading is needed because giving back into a later window would admit more than its limit there.
    ///
    /// ```
    /// use sluicegate_core::{FixedShard, ManualClock, Shard, ShardedWindow, WindowLimit, quota};
    ///
    /// let limit = WindowLimit::try_from(quota!("5/1s"))?;
    /// let window: ShardedWindow<[Shard; 2], _, _> =
    ///     ShardedWindow::with_array(limit, ManualClock::new(), FixedShard(0));
    /// let admitted = window.try_acquire(5)?;
    /// window.refund(admitted.at, 2);
    /// assert_eq!(window.inspect().level, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refund(&self, taken_at: Nanos, cost: u64) {
        if let Some(returned) = self.refund_silently(taken_at, cost) {
            self.observer.refunded(returned);
        }
    }
}

impl<S: Shards, C: Clock, I: ShardId, O: Observer> ShardedWindow<S, C, I, O> {
    /// Takes `cost` now, or nothing.
    ///
    /// A denial is right at an instant within the call, however long the caller was suspended in it: the clock is read again
    /// before one, but where the window was known to be spent before it was read. Without a limit the request is admitted at [`Nanos::ZERO`]: no clock is read and nobody is told.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    #[inline(always)]
    pub fn try_acquire(&self, cost: u64) -> Decision {
        match self.limit.rule {
            Rule::Step(_) => {
                let (now, decision) = self.counts.try_acquire_by(&self.clock, cost, &self.shard_id);
                report(&self.observer, now, cost, decision)
            }
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, Nanos::ZERO)),
            Rule::DenyAll => report(&self.observer, self.clock.now(), cost, Err(Denied::Closed)),
        }
    }

    /// What [`try_acquire`](Self::try_acquire) would answer, taking nothing and telling nobody. O(shards).
    ///
    /// `remaining` is then a bound over all shards, where an admission only tells that of one.
    ///
    /// # Errors
    /// As `try_acquire`.
    pub fn peek(&self, cost: u64) -> Decision {
        match self.limit.rule {
            Rule::Unlimited => Ok(Admitted::new(Remaining::Unlimited, Nanos::ZERO)),
            _ => self.peek_at(self.clock.now(), cost),
        }
    }

    /// What is free now, summed over the shards. Changes nothing. O(shards).
    pub fn inspect(&self) -> Inspection {
        self.inspect_at(if self.limit.is_quota() { self.clock.now() } else { Nanos::ZERO })
    }
}

impl<S: Shards, C, I: ShardId, O: Observer> Limiter for ShardedWindow<S, C, I, O> {
    #[inline]
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        self.try_acquire_at(now, cost)
    }

    #[inline]
    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.peek_at(now, cost)
    }

    #[inline]
    fn inspect_at(&self, now: Nanos) -> Inspection {
        self.inspect_at(now)
    }

    #[inline]
    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        self.take_silently(now, cost)
    }

    #[inline]
    fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
        self.tell(now, cost, *decision);
    }
}

impl<S: Shards, C, I, O> fmt::Debug for ShardedWindow<S, C, I, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedWindow")
            .field("limit", &self.limit())
            .field("shards", &self.shard_count())
            .finish_non_exhaustive()
    }
}
