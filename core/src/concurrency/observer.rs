//! Being told how permits are used.

use super::Usage;
use crate::Denied;

/// How the work under a permit ended, for whoever adapts the limit to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It was done: how long it took says how loaded the callee is.
    Success,
    /// It says nothing about load: it failed early, was served from a cache, or was refused by another limiter.
    Ignored,
    /// It was given up: timed out, cancelled, overloaded or panicked. A permit that is dropped without a word counts so.
    Dropped,
}

/// Is told of every permit given out, refused and given back, after it has taken effect and outside any lock.
///
/// `()` is the observer that does nothing; it is the default and costs nothing. Methods run on the caller's thread. They
/// should be quick and must not block; two callers' events may arrive in another order than they took effect. The usage
/// that each is given is the one right after its own change, whatever came later.
///
/// What [`acquired`](Self::acquired) returns, the *mark*, stays with the permit until its release: a reading of a clock,
/// what was in use, or nothing. So a controller that adapts the limit learns the time and the usage at both ends of each
/// piece of work, and keeps no table.
///
/// `released` is called in the permit's drop and should not panic: while another panic unwinds, a second one aborts.
/// A panic in `acquired` reaches the caller, and the cost is free again.
///
/// ```
/// use core::cell::Cell;
/// use core::time::Duration;
/// use sluicegate_core::{Clock, ConcurrencyLimit, ManualClock, Nanos, Outcome, PermitObserver, Usage};
///
/// /// Remembers how long the latest success took.
/// #[derive(Default)]
/// struct Latency {
///     clock: ManualClock,
///     latest: Cell<Duration>,
/// }
///
/// impl PermitObserver for Latency {
///     type Mark = Nanos;
///
///     fn acquired(&self, _cost: u64, _usage: Usage) -> Nanos {
///         self.clock.now()
///     }
///
///     fn released(&self, started: &Nanos, _cost: u64, outcome: Outcome, _usage: Usage) {
///         if outcome == Outcome::Success {
///             self.latest.set(self.clock.now().saturating_duration_since(*started));
///         }
///     }
/// }
///
/// let limit = ConcurrencyLimit::new(2).observed_by(Latency::default());
/// let permit = limit.try_acquire(1)?;
/// limit.observer().clock.advance(Duration::from_millis(7));
/// permit.success();
/// assert_eq!(limit.observer().latest.get(), Duration::from_millis(7));
/// # Ok::<(), sluicegate_core::Denied>(())
/// ```
pub trait PermitObserver {
    /// What a permit carries from its acquisition to its release.
    type Mark;

    /// A permit of `cost` was given out, with `usage` right after it.
    fn acquired(&self, cost: u64, usage: Usage) -> Self::Mark;

    /// A permit of `cost` was refused.
    #[inline]
    fn denied(&self, cost: u64, denied: &Denied) {
        let _ = (cost, denied);
    }

    /// Nothing is done under a permit of `cost` for now: its holder [waits](crate::Permit::pause) for something else.
    #[inline]
    fn paused(&self, mark: &mut Self::Mark, cost: u64) {
        let _ = (mark, cost);
    }

    /// What a permit of `cost` was taken for begins only [now](crate::Permit::resume). Each pause ends so, or with `released`.
    #[inline]
    fn resumed(&self, mark: &mut Self::Mark, cost: u64) {
        let _ = (mark, cost);
    }

    /// A permit of `cost`, or the part of one that was split off, came back, with `usage` right after it.
    fn released(&self, mark: &Self::Mark, cost: u64, outcome: Outcome, usage: Usage);

    /// Which limit is to replace that of `usage`, if any: how an observer adapts the limit that it observes.
    ///
    /// Asked after each release that it was told of, and outside any lock. The answer is put in force only where the limit is still that of
    /// `usage`; where another was set meanwhile, this is asked again. [`limit_set`](Self::limit_set) follows as for any other change.
    #[inline]
    fn limit_after(&self, usage: Usage) -> Option<u32> {
        let _ = usage;
        None
    }

    /// The limit was set, with `usage` right after it.
    #[inline]
    fn limit_set(&self, usage: Usage) {
        let _ = usage;
    }
}

impl PermitObserver for () {
    type Mark = ();

    #[inline]
    fn acquired(&self, _cost: u64, _usage: Usage) {}

    #[inline]
    fn released(&self, _mark: &(), _cost: u64, _outcome: Outcome, _usage: Usage) {}
}

/// One that may be there or not.
impl<O: PermitObserver> PermitObserver for Option<O> {
    type Mark = Option<O::Mark>;

    #[inline]
    fn acquired(&self, cost: u64, usage: Usage) -> Self::Mark {
        self.as_ref().map(|observer| observer.acquired(cost, usage))
    }

    #[inline]
    fn denied(&self, cost: u64, denied: &Denied) {
        if let Some(observer) = self {
            observer.denied(cost, denied);
        }
    }

    #[inline]
    fn paused(&self, mark: &mut Self::Mark, cost: u64) {
        if let (Some(observer), Some(mark)) = (self, mark) {
            observer.paused(mark, cost);
        }
    }

    #[inline]
    fn resumed(&self, mark: &mut Self::Mark, cost: u64) {
        if let (Some(observer), Some(mark)) = (self, mark) {
            observer.resumed(mark, cost);
        }
    }

    #[inline]
    fn released(&self, mark: &Self::Mark, cost: u64, outcome: Outcome, usage: Usage) {
        if let (Some(observer), Some(mark)) = (self, mark) {
            observer.released(mark, cost, outcome, usage);
        }
    }

    #[inline]
    fn limit_after(&self, usage: Usage) -> Option<u32> {
        self.as_ref().and_then(|observer| observer.limit_after(usage))
    }

    #[inline]
    fn limit_set(&self, usage: Usage) {
        if let Some(observer) = self {
            observer.limit_set(usage);
        }
    }
}

impl<O: PermitObserver + ?Sized> PermitObserver for &O {
    type Mark = O::Mark;

    #[inline]
    fn acquired(&self, cost: u64, usage: Usage) -> O::Mark {
        (**self).acquired(cost, usage)
    }

    #[inline]
    fn denied(&self, cost: u64, denied: &Denied) {
        (**self).denied(cost, denied);
    }

    #[inline]
    fn paused(&self, mark: &mut O::Mark, cost: u64) {
        (**self).paused(mark, cost);
    }

    #[inline]
    fn resumed(&self, mark: &mut O::Mark, cost: u64) {
        (**self).resumed(mark, cost);
    }

    #[inline]
    fn released(&self, mark: &O::Mark, cost: u64, outcome: Outcome, usage: Usage) {
        (**self).released(mark, cost, outcome, usage);
    }

    #[inline]
    fn limit_after(&self, usage: Usage) -> Option<u32> {
        (**self).limit_after(usage)
    }

    #[inline]
    fn limit_set(&self, usage: Usage) {
        (**self).limit_set(usage);
    }
}
