//! Another clock over an executor's timer.

use sluicegate_core::{Clock, Nanos};

use crate::runtime::Runtime;

/// An executor's timer with a clock of the caller's choice: one that is read more quickly, mostly.
///
/// Both clocks must go at the same pace, and need not have the same origin. A sleep lasts for what is left by the clock when it
/// begins; where the timer's clock is ahead by then, a waiter sleeps again.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// use sluicegate_runtime::{Clock, ManualClock, ManualRuntime, Nanos, WithClock};
///
/// let timer = ManualRuntime::<parking_lot::RawMutex>::new();
/// let clock = ManualClock::new();
/// clock.set(Nanos::from_secs(100));
/// let time = WithClock::new(&clock, timer.clone());
/// assert_eq!(time.now(), Nanos::from_secs(100));
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct WithClock<C, R> {
    clock: C,
    timer: R,
}

impl<C: Clock, R: Runtime> WithClock<C, R> {
    /// `clock` over the timer of `runtime`.
    pub const fn new(clock: C, runtime: R) -> Self {
        Self { clock, timer: runtime }
    }
}

impl<C: Clock, R: Runtime> Clock for WithClock<C, R> {
    #[inline]
    fn now(&self) -> Nanos {
        self.clock.now()
    }
}

impl<C: Clock, R: Runtime> Runtime for WithClock<C, R> {
    type Sleep = R::Sleep;

    fn sleep_until(&self, at: Nanos) -> R::Sleep {
        let left = at.saturating_duration_since(self.clock.now());
        self.timer.sleep_until(self.timer.now().saturating_add(left))
    }
}
