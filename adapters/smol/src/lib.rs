#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use std::time::Instant;

use smol::Timer;

// Every item of runtime and core, except those that are defined below under the same name for smol.
pub use sluicegate_runtime::*;
#[cfg(feature = "keyed")]
pub use sluicegate_threads::SeededState;
pub use sluicegate_threads::{OsClock, ThreadShard, shards_for_this_machine};

/// The lock around those who wait, for [`Queued`] limiters of your own.
pub type Lock = parking_lot::RawMutex;

sluicegate_runtime::limiters!(SmolRuntime, Lock);

/// A window for a limit that many cores share; [`sharded_window`] makes one.
pub type ShardedWindow =
    Queued<sluicegate_core::ShardedWindow<Box<[Shard]>, (), ThreadShard>, SmolRuntime, Lock, Growing>;

/// A window of `limit` with [`shards_for_this_machine`].
///
/// # Errors
/// [`QuotaError::BurstOnWindow`] when the quota's burst is not its number of tokens, [`QuotaError::WindowTooShort`] when the
/// window is too short for so large a limit.
///
/// ```
/// use sluicegate_smol::{QuotaError, ShardedWindow, quota, sharded_window};
///
/// let window: ShardedWindow = sharded_window(quota!("300/1m"))?;
/// assert!(window.try_acquire(300).is_ok());
/// # Ok::<(), QuotaError>(())
/// ```
pub fn sharded_window<L>(limit: L) -> Result<ShardedWindow, QuotaError>
where
    L: TryInto<WindowLimit, Error = QuotaError>,
{
    ShardedWindow::of(limit, shards_for_this_machine())
}

/// A token bucket for each key, waited for in order for each; made by `KeyedTokenBucket::of(limit)`. Needs the feature `keyed`.
///
/// ```
/// use sluicegate_smol::{KeyedTokenBucket, quota};
///
/// let logins: KeyedTokenBucket<String> = KeyedTokenBucket::of(quota!("10/1m"));
/// assert!(logins.try_acquire(&"ada".into(), 10).is_ok());
/// assert!(logins.try_acquire(&"grace".into(), 1).is_ok());
/// ```
#[cfg(feature = "keyed")]
pub type KeyedTokenBucket<K, S = SeededState> =
    QueuedKeyed<sluicegate_core::KeyedTokenBucket<K, parking_lot::RawRwLock, S, ()>, SmolRuntime, Lock>;

/// The operating system's monotonic clock, async-io's timer and smol's spawn.
///
/// # Guarantees
///
/// - Readings are those of [`OsClock`], and agree with it: they never go back, and count from one origin for the whole process.
/// - A wait wakes at the instant it was meant for or after, as soon as the system and the executor come to it. The timer's
///   grain is that of the system's poller.
/// - It runs anywhere: async-io brings its own thread, and the tasks' executor starts with the first task.
///
/// There is no way to pause its time. For tests in virtual time put a [`ManualRuntime`] in its place, which needs no executor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SmolRuntime;

impl Clock for SmolRuntime {
    #[inline]
    fn now(&self) -> Nanos {
        OsClock.now()
    }
}

impl Runtime for SmolRuntime {
    type Sleep = SmolSleep;

    fn sleep_until(&self, at: Nanos) -> SmolSleep {
        let now = Instant::now();
        let left = at.saturating_duration_since(OsClock::reading_of(now));
        SmolSleep(now.checked_add(left).map_or_else(Timer::never, Timer::at))
    }
}

impl Spawn for SmolRuntime {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        smol::spawn(task).detach();
    }
}

/// Sleeps until a reading of [`SmolRuntime`].
pub struct SmolSleep(Timer);

impl Future for SmolSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }
}

impl fmt::Debug for SmolSleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SmolSleep").finish_non_exhaustive()
    }
}
