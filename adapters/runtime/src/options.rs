//! How a limiter treats those who wait for it.

use core::time::Duration;

/// How a [`Queued`](crate::Queued) limiter treats those who wait.
///
/// ```
/// use sluicegate_runtime::WaitOptions;
///
/// let options = WaitOptions::new().bound(1_000).fair(true);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct WaitOptions {
    pub(crate) bound: usize,
    pub(crate) is_newest_first: bool,
    pub(crate) is_evicting: bool,
    pub(crate) is_fair: bool,
    pub(crate) relief: Option<Duration>,
}

impl WaitOptions {
    /// Any number may wait, first in, first out; `try_acquire` does not look at who waits.
    pub const fn new() -> Self {
        Self { bound: usize::MAX, is_newest_first: false, is_evicting: false, is_fair: false, relief: Some(RELIEF) }
    }

    /// At most so many wait; 0 for nobody. One more is [`Denied::QueueFull`](sluicegate_core::Denied::QueueFull).
    pub const fn bound(mut self, bound: usize) -> Self {
        self.bound = bound;
        self
    }

    /// Whether one more beyond the bound is let in, and who has waited longest is told
    /// [`Denied::QueueFull`](sluicegate_core::Denied::QueueFull) instead.
    pub const fn evict_oldest(mut self, yes: bool) -> Self {
        self.is_evicting = yes;
        self
    }

    /// Whether the newest waiter goes first: under a load that lasts, some are served at once and the others give up, where first
    /// in, first out would serve everybody too late.
    pub const fn newest_first(mut self, yes: bool) -> Self {
        self.is_newest_first = yes;
        self
    }

    /// Whether `try_acquire` takes nothing while others wait, and is told when its turn would come. By default it takes what is
    /// there, before them.
    pub const fn fair(mut self, yes: bool) -> Self {
        self.is_fair = yes;
        self
    }

    /// How long after its expected turn a waiter takes matters into its own hands; 100 ms by default.
    ///
    /// The waiter at the head sleeps until the next turn, for all. If its task never polls it again, nobody else would look until
    /// somebody calls the limiter. So each waiter also sleeps until this long after the turn that it expects when it comes, and from
    /// then on minds the time as if it were at the head: however many are stuck ahead of it, it waits no longer than twice
    /// what it expected and this. In good order that sleep never ends. Where no clock knows its turn even then, because reservations
    /// hold what it lacks, it looks again each time after twice as long.
    ///
    /// So long is also held what was granted and is not learnt of, by limiters that hold it, such as an adjustable bucket: then it counts
    /// as taken. Should its waiter leave after all, it is given back as a refund, which brings back on top of a refill what that has
    /// replaced.
    ///
    /// `None` leaves all this out: one timer in all; whoever waits behind a waiter that is never polled again waits until any call of the
    /// limiter, and what is held for such a waiter stays held.
    pub const fn relief(mut self, after: Option<Duration>) -> Self {
        self.relief = after;
        self
    }
}

impl Default for WaitOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Longer than a busy executor leaves a task that it was told to wake, and short beside what somebody stuck would notice.
const RELIEF: Duration = Duration::from_millis(100);
