//! The observer that moves the limit which it observes.
//!
//! Window and law are under a lock. The limit that the law came to is also in a word of its own, `wanted`, written under the lock and
//! read without, so that a release finds without the lock that all is well. It is put in force by a swap that succeeds only where the limit
//! is still the one that was looked at, and otherwise looks again. So a limit that was set by hand beyond the law's bounds stays.
//!
//! What is put in force is read under the lock. `wanted` may be older than the limit that was looked at, and would bring an older limit
//! back. The law's limit cannot: whoever set the limit that was looked at had left the lock before.

use core::fmt;
use core::ops::RangeInclusive;

use lock_api::{Mutex, RawMutex};

use super::{ConcurrencyController, ConcurrencyLaw};
use crate::sync::{AtomicU64, Ordering};
use crate::{Clock, ConcurrencyLimit, Denied, Nanos, Outcome, PermitObserver, Usage};

/// Adapts the [`ConcurrencyLimit`] that it observes: each permit's mark is the reading at which it was taken, and its release is a sample.
///
/// # Guarantees
///
/// - The limit is what the law says after the latest window; it is put in force by the release that closes the window. However many
///   releases race, each sample is in one window, and the law goes by each window once.
/// - The limit is within the law's bounds, and 1 or more, unless it is set by hand: see below.
/// - Nobody's code but the law's runs under the lock: not the clock's, nor the inner observer's.
///
/// # Setting the limit by hand
///
/// A limit beyond the law's bounds, set with [`ConcurrencyLimit::set_limit`], stays: 0 closes it, a very high one opens it, and meanwhile nothing
/// is a sample. The law goes on where it was once a limit within its bounds is set. One that is within them lasts until the next release.
///
/// # Costs
///
/// Samples are calls and not costs: one of a large cost counts as one. A permit that was [split](crate::Permit::split) is a sample for each part, all with
/// the start of the whole; one that was merged ends with the one that took it. A call whose cost is above the limit is denied as one that
/// never fits, and the law may lower the limit to its least: no cost should be above that, in particular where callers wait for permits.
///
/// # Pauses
///
/// What is held in a [pause](crate::Permit::pause) is not in use, and the time of a call counts from the end of its last one.
///
/// # Trade-off
///
/// A release takes the lock for some nanoseconds, and longer where it closes a window; an ignored one does not. An acquisition reads the
/// clock. The inner observer's [`limit_after`](PermitObserver::limit_after) is not asked.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{AdaptiveConcurrency, AimdOptions, ConcurrencyController, ManualClock, SampleOptions};
///
/// let window = SampleOptions::new().lasting(Duration::from_secs(1), Duration::from_secs(10)).samples(3).build()?;
/// let controller = ConcurrencyController::new(window, AimdOptions::new().limits(1, 4, 9).build()?);
/// let limit = AdaptiveConcurrency::<parking_lot::RawMutex, _, _>::new(controller, ManualClock::new()).into_limit();
///
/// for _ in 0..4 {
///     let (one, two) = (limit.try_acquire(1)?, limit.try_acquire(1)?);
///     limit.observer().clock().advance(Duration::from_millis(500));
///     one.success();
///     two.success();
/// }
/// assert_eq!(limit.limit(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AdaptiveConcurrency<R, L, C, O = ()> {
    controller: Mutex<R, ConcurrencyController<L>>,
    /// Its limit, as it was when the lock was open last.
    wanted: AtomicU64,
    /// How much is held in a pause.
    paused: AtomicU64,
    bounds: RangeInclusive<u32>,
    clock: C,
    inner: O,
}

impl<R: RawMutex, L: ConcurrencyLaw, C> AdaptiveConcurrency<R, L, C> {
    /// Adapts by `controller`, on `clock`.
    pub fn new(controller: ConcurrencyController<L>, clock: C) -> Self {
        Self {
            wanted: AtomicU64::new(controller.limit().into()),
            paused: AtomicU64::new(0),
            bounds: controller.bounds(),
            controller: Mutex::new(controller),
            clock,
            inner: (),
        }
    }

    /// The same, which also tells `inner` of every permit.
    pub fn observed_by<O: PermitObserver>(self, inner: O) -> AdaptiveConcurrency<R, L, C, O> {
        let Self { controller, wanted, paused, bounds, clock, .. } = self;
        AdaptiveConcurrency { controller, wanted, paused, bounds, clock, inner }
    }
}

impl<R: RawMutex, L: ConcurrencyLaw, C: Clock, O: PermitObserver> AdaptiveConcurrency<R, L, C, O> {
    /// The limit that it adapts, at the law's limit and with nothing in use.
    pub fn into_limit(self) -> ConcurrencyLimit<Self> {
        ConcurrencyLimit::new(self.wanted()).observed_by(self)
    }
}

impl<R: RawMutex, L, C, O> AdaptiveConcurrency<R, L, C, O> {
    /// A copy of window and law.
    pub fn controller(&self) -> ConcurrencyController<L>
    where
        L: Clone,
    {
        self.controller.lock().clone()
    }

    /// The clock.
    #[inline]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Who else is told.
    #[inline]
    pub const fn inner(&self) -> &O {
        &self.inner
    }

    #[inline]
    fn wanted(&self) -> u32 {
        // Relaxed: an old value is of no harm, see above; who has just written it sees that. It holds a limit, of 32 bits.
        self.wanted.load(Ordering::Relaxed) as u32
    }
}

/// What a permit of an adaptive limit carries: when its call started, whether it is paused, and the mark of the inner observer.
#[derive(Clone, Copy, Debug)]
pub struct CallMark<M> {
    started: Nanos,
    is_paused: bool,
    inner: M,
}

impl<R: RawMutex, L: ConcurrencyLaw, C: Clock, O: PermitObserver> PermitObserver for AdaptiveConcurrency<R, L, C, O> {
    type Mark = CallMark<O::Mark>;

    fn acquired(&self, cost: u64, usage: Usage) -> Self::Mark {
        CallMark { started: self.clock.now(), is_paused: false, inner: self.inner.acquired(cost, usage) }
    }

    fn denied(&self, cost: u64, denied: &Denied) {
        self.inner.denied(cost, denied);
    }

    fn paused(&self, mark: &mut Self::Mark, cost: u64) {
        self.paused.fetch_add(cost, Ordering::Relaxed);
        mark.is_paused = true;
        self.inner.paused(&mut mark.inner, cost);
    }

    fn resumed(&self, mark: &mut Self::Mark, cost: u64) {
        self.paused.fetch_sub(cost, Ordering::Relaxed);
        mark.is_paused = false;
        mark.started = self.clock.now();
        self.inner.resumed(&mut mark.inner, cost);
    }

    fn released(&self, mark: &Self::Mark, cost: u64, outcome: Outcome, usage: Usage) {
        if mark.is_paused {
            self.paused.fetch_sub(cost, Ordering::Relaxed);
        }
        if outcome != Outcome::Ignored && self.bounds.contains(&usage.limit) {
            // Relaxed: it may be of a moment later than the usage, and so by a little too much or too little, for this one sample. Each is a part of
            // what was in use, which fits into 32 bits.
            let paused = self.paused.load(Ordering::Relaxed);
            let in_use = (u64::from(usage.in_use).saturating_sub(paused) + cost).min(u32::MAX.into()) as u32;
            let now = self.clock.now();
            let mut controller = self.controller.lock();
            if let Some(limit) = controller.add(mark.started, now, outcome, in_use) {
                // Relaxed: see `wanted`. The lock orders those who write it.
                self.wanted.store(limit.into(), Ordering::Relaxed);
            }
        }
        self.inner.released(&mark.inner, cost, outcome, usage);
    }

    fn limit_after(&self, usage: Usage) -> Option<u32> {
        if self.wanted() == usage.limit || !self.bounds.contains(&usage.limit) {
            return None;
        }
        let limit = self.controller.lock().limit();
        (limit != usage.limit).then_some(limit)
    }

    fn limit_set(&self, usage: Usage) {
        self.inner.limit_set(usage);
    }
}

impl<R: RawMutex, L: ConcurrencyLaw, C, O> fmt::Debug for AdaptiveConcurrency<R, L, C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdaptiveConcurrency")
            .field("wanted", &self.wanted())
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
