//! The concurrency limit that callers share.

use core::fmt;

use super::permit::Permit;
use super::{Outcome, PermitObserver, Usage};
use crate::Denied;
use crate::decision::Inspection;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};

/// A limit on what may be in use at once: requests in flight, connections, bytes in memory.
///
/// Each caller takes a [`Permit`] of some cost and holds it while it works; no clock is involved. What is in use and the
/// limit share one 64-bit word, 32 bits each, so every decision sees both at one instant.
///
/// # Guarantees
///
/// - When a permit is given out, what is in use including it is at most the limit. One is refused only when it would not
///   be at some instant between the call and its return.
/// - No permit is lost or made: what is in use is the cost of the permits that are out, whatever the order in which they
///   are released, split, merged or dropped, also while a panic unwinds. A permit is released once, because releasing
///   consumes it.
/// - A limit that is lowered below what is out takes nothing away and drains exactly: a cost passes once it and what is
///   still out fit into the new limit, and not before.
/// - Who gets a permit sees what those did before their release whose permits made room for it.
/// - Calls are lock-free and allocate nothing.
///
/// # Costs
///
/// A cost above the limit is [`Denied::CostExceedsLimit`]. Under a limit of 0 everything is [`Denied::Closed`]. A cost of 0
/// uses nothing and otherwise always passes.
///
/// # Trade-off
///
/// All callers share one word. A permit that is leaked ([`core::mem::forget`], a cycle of `Arc`s, a task that never ends) stays
/// in use for ever: safe code can do that, and nobody could tell such a holder from a slow one. Raising the limit by what
/// was leaked makes up for it.
///
/// # With a rate limit
///
/// Take the permit first and the tokens then. When the tokens are denied, giving the permit back with
/// [`Permit::ignore`] leaves everything as it was, whatever happened meanwhile, and needs no reading. (For that instant the
/// permit is in use, and a racing caller may be told so.) The other way round tokens would have to be refunded, and a
/// window that has passed, or a slot of a leaky bucket that others queue behind, cannot take them back. Where not even that
/// instant is to be, [`Hierarchy::try_acquire_permit_at`](crate::Hierarchy::try_acquire_permit_at) takes both or neither.
///
/// It is no [`Limiter`](crate::Limiter): one leaves what it takes taken, and what is taken here has to be given back, which only a
/// permit does by itself.
///
/// ```
/// use sluicegate_core::{ConcurrencyLimit, Denied, ManualClock, Permit, TokenBucket, quota};
///
/// fn enter<'a>(
///     in_flight: &'a ConcurrencyLimit,
///     bucket: &TokenBucket<ManualClock>,
/// ) -> Result<Permit<&'a ConcurrencyLimit>, Denied> {
///     let permit = in_flight.try_acquire(1)?;
///     match bucket.try_acquire(1) {
///         Ok(_) => Ok(permit),
///         Err(denied) => {
///             permit.ignore();
///             Err(denied)
///         }
///     }
/// }
///
/// let (in_flight, bucket) = (ConcurrencyLimit::new(2), TokenBucket::with_clock(quota!("3/1s"), ManualClock::new()));
/// let (first, second) = (enter(&in_flight, &bucket)?, enter(&in_flight, &bucket)?);
/// assert_eq!(enter(&in_flight, &bucket).unwrap_err(), Denied::ConcurrencyLimited);
/// first.success();
/// drop(second);
/// enter(&in_flight, &bucket)?.success();
/// assert!(matches!(enter(&in_flight, &bucket).unwrap_err(), Denied::RateLimited { .. }));
/// assert_eq!(in_flight.usage().in_use, 0);
/// # Ok::<(), Denied>(())
/// ```
pub struct ConcurrencyLimit<O = ()> {
    word: AtomicU64,
    observer: O,
}

impl ConcurrencyLimit {
    const_unless_loom! {
        /// Nothing in use of `limit`; 0 admits nothing.
        pub fn new(limit: u32) -> Self {
            Self { word: AtomicU64::new(Usage::unused(limit).to_word()), observer: () }
        }
    }

    /// The same limit, which from now on tells `observer` of every permit.
    pub fn observed_by<O: PermitObserver>(self, observer: O) -> ConcurrencyLimit<O> {
        ConcurrencyLimit { word: self.word, observer }
    }
}

impl<O> ConcurrencyLimit<O> {
    /// What is in use and the limit, at one instant. Changes nothing.
    #[inline]
    pub fn usage(&self) -> Usage {
        // Relaxed: a look orders nothing.
        Usage::from_word(self.word.load(Ordering::Relaxed))
    }

    /// The cost of all permits that are out.
    #[inline]
    pub fn in_use(&self) -> u32 {
        self.usage().in_use
    }

    /// The limit.
    #[inline]
    pub fn limit(&self) -> u32 {
        self.usage().limit
    }

    /// What is free, out of the limit. Changes nothing.
    #[inline]
    pub fn inspect(&self) -> Inspection {
        self.usage().inspection()
    }

    /// The usage right after a permit of `cost`, or why there would be none; takes nothing and tells nobody.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn peek(&self, cost: u64) -> Result<Usage, Denied> {
        self.usage().take(cost).map(|(usage, _)| usage)
    }

    /// The observer.
    #[inline]
    pub const fn observer(&self) -> &O {
        &self.observer
    }
}

impl<O: PermitObserver> ConcurrencyLimit<O> {
    /// Takes a permit of `cost` that borrows this limit, or nothing.
    ///
    /// # Errors
    /// [`Denied::ConcurrencyLimited`] when too much is in use, [`Denied::CostExceedsLimit`] when `cost` is above the limit,
    /// [`Denied::Closed`] when the limit is 0. A denial takes nothing.
    #[inline]
    pub fn try_acquire(&self, cost: u64) -> Result<Permit<&Self>, Denied> {
        let (cost, mark) = self.take(cost)?;
        Ok(Permit::new(self, cost, mark))
    }

    /// Takes a permit of `cost` that shares this limit, and can go to another thread or task; or nothing. Needs the feature
    /// `alloc`.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    #[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
    #[inline]
    pub fn try_acquire_owned(
        self: &alloc::sync::Arc<Self>,
        cost: u64,
    ) -> Result<Permit<alloc::sync::Arc<Self>>, Denied> {
        let (cost, mark) = self.take(cost)?;
        Ok(Permit::new(alloc::sync::Arc::clone(self), cost, mark))
    }

    /// Sets the limit, also while permits are out, and returns the usage right after.
    ///
    /// Permits that are out stay valid. A lower limit drains; a higher one can be used at once, but nobody is woken here:
    /// who waits elsewhere has to be told.
    pub fn set_limit(&self, limit: u32) -> Usage {
        // Relaxed: it publishes nothing. It is a read-modify-write, so releases before it still reach who acquires after.
        let mut current = self.word.load(Ordering::Relaxed);
        loop {
            let usage = Usage { limit, ..Usage::from_word(current) };
            match self.word.compare_exchange_weak(current, usage.to_word(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    self.observer.limit_set(usage);
                    return usage;
                }
                Err(seen) => current = seen,
            }
        }
    }

    fn take(&self, cost: u64) -> Result<(u32, O::Mark), Denied> {
        match self.take_silently(cost) {
            Ok(taken) => Ok(taken.report()),
            Err(denied) => {
                self.observer.denied(cost, &denied);
                Err(denied)
            }
        }
    }

    pub(crate) fn tell_denied(&self, cost: u64, denied: &Denied) {
        self.observer.denied(cost, denied);
    }

    /// Releases what a permit held, and says how it was used.
    #[inline]
    pub(super) fn release(&self, cost: u32, mark: &O::Mark, outcome: Outcome) {
        let usage = self.give_back(cost);
        self.observer.released(mark, cost.into(), outcome, usage);
        if let Some(limit) = self.observer.limit_after(usage) {
            self.follow(usage, limit);
        }
    }

    /// Puts `limit` in force, which the observer asked for when it saw `usage`, or what it asks for when it sees what came between.
    #[cold]
    fn follow(&self, mut usage: Usage, mut limit: u32) {
        while let Err(seen) = self.replace_limit(usage.limit, limit) {
            usage = seen;
            match self.observer.limit_after(usage) {
                Some(next) => limit = next,
                None => return,
            }
        }
    }

    /// Sets the limit where it is still `before`; what is in use may have changed. If it is not, returns the usage seen.
    fn replace_limit(&self, before: u32, limit: u32) -> Result<(), Usage> {
        // Relaxed: as in `set_limit`.
        let mut current = self.word.load(Ordering::Relaxed);
        loop {
            let seen = Usage::from_word(current);
            if seen.limit != before {
                return Err(seen);
            }
            let usage = Usage { limit, ..seen };
            match self.word.compare_exchange_weak(current, usage.to_word(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    self.observer.limit_set(usage);
                    return Ok(());
                }
                Err(now) => current = now,
            }
        }
    }
}

impl<O> ConcurrencyLimit<O> {
    /// Takes `cost`, or nothing, and tells nobody yet.
    #[inline]
    pub(crate) fn take_silently(&self, cost: u64) -> Result<Taken<'_, O>, Denied> {
        // Relaxed: the swap orders, and a denial orders nothing.
        let mut current = self.word.load(Ordering::Relaxed);
        loop {
            let (usage, cost) = Usage::from_word(current).take(cost)?;
            // Acquire, paired with the release in `give_back`: who was let in because another left sees what it did.
            match self.word.compare_exchange_weak(current, usage.to_word(), Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(Taken { limit: self, cost, usage }),
                Err(seen) => current = seen,
            }
        }
    }

    fn give_back(&self, cost: u32) -> Usage {
        // No borrow from the limit above: what is in use includes this cost. Release: see `take`.
        let before = self.word.fetch_sub(cost.into(), Ordering::Release);
        Usage::from_word(before - u64::from(cost))
    }
}

/// A cost that was taken and has no permit yet. Dropped, also by a panic of the observer, it gives the cost back.
pub(crate) struct Taken<'a, O> {
    limit: &'a ConcurrencyLimit<O>,
    cost: u32,
    /// Right after it was taken.
    usage: Usage,
}

impl<O> Taken<'_, O> {
    pub(crate) const fn usage(&self) -> Usage {
        self.usage
    }
}

impl<O: PermitObserver> Taken<'_, O> {
    /// Tells the observer; from here on a permit has the cost.
    #[inline]
    pub(crate) fn report(mut self) -> (u32, O::Mark) {
        let mark = self.limit.observer.acquired(self.cost.into(), self.usage);
        (core::mem::take(&mut self.cost), mark)
    }
}

impl<O> Drop for Taken<'_, O> {
    #[inline]
    fn drop(&mut self) {
        if self.cost > 0 {
            self.limit.give_back(self.cost);
        }
    }
}

impl<O> fmt::Debug for ConcurrencyLimit<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimit").field("usage", &self.usage()).finish_non_exhaustive()
    }
}
