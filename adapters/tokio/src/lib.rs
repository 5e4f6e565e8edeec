#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

use core::future::Future;
use core::time::Duration;
use std::sync::OnceLock;

use tokio::time::{Instant, Sleep};

// Every item of runtime and core, except those that are defined below under the same name for tokio.
pub use sluicegate_runtime::*;
#[cfg(feature = "keyed")]
pub use sluicegate_threads::SeededState;
pub use sluicegate_threads::{ThreadShard, shards_for_this_machine};

/// The lock around those who wait, for [`Queued`] limiters of your own.
pub type Lock = parking_lot::RawMutex;

sluicegate_runtime::limiters!(TokioRuntime, Lock);

/// A window for a limit that many cores share; [`sharded_window`] makes one.
pub type ShardedWindow =
    Queued<sluicegate_core::ShardedWindow<Box<[Shard]>, (), ThreadShard>, TokioRuntime, Lock, Growing>;

/// A window of `limit` with [`shards_for_this_machine`].
///
/// # Errors
/// [`QuotaError::BurstOnWindow`] when the quota's burst is not its number of tokens, [`QuotaError::WindowTooShort`] when the
/// window is too short for so large a limit.
///
/// ```
/// use sluicegate_tokio::{QuotaError, ShardedWindow, quota, sharded_window};
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
/// use sluicegate_tokio::{KeyedTokenBucket, quota};
///
/// let logins: KeyedTokenBucket<String> = KeyedTokenBucket::of(quota!("10/1m"));
/// assert!(logins.try_acquire(&"ada".into(), 10).is_ok());
/// assert!(logins.try_acquire(&"grace".into(), 1).is_ok());
/// ```
#[cfg(feature = "keyed")]
pub type KeyedTokenBucket<K, S = SeededState> =
    QueuedKeyed<sluicegate_core::KeyedTokenBucket<K, parking_lot::RawRwLock, S, ()>, TokioRuntime, Lock>;

/// Tokio's clock, its timer and its spawn.
///
/// # Guarantees
///
/// - Readings are those of [`tokio::time::Instant`], so `tokio::time::pause` and `advance` move limiters, and waits with them.
///   They count from one origin for the whole process, which the first reading puts a day before itself: a paused clock may have
///   been started, and stopped, earlier.
/// - `now` works anywhere; so does whatever does not wait.
///
/// # Panics
///
/// A wait that needs the timer panics outside of a tokio runtime, or in one that was built without its time driver, and `spawn`
/// outside of one, as all of tokio does.
///
/// # The timer's grain
///
/// Tokio's timer ticks in milliseconds and rounds up: a waiter wakes up to 1 ms after its instant, and never before. It is then
/// decided at the clock's reading, so nothing adds up over a line of waiters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TokioRuntime;

impl Clock for TokioRuntime {
    #[inline]
    fn now(&self) -> Nanos {
        let origin = origin();
        let now = Instant::now();
        match now.checked_duration_since(origin) {
            Some(since) => AT_ORIGIN + since,
            None => AT_ORIGIN.saturating_sub(origin.saturating_duration_since(now)),
        }
    }
}

impl Runtime for TokioRuntime {
    type Sleep = Sleep;

    fn sleep_until(&self, at: Nanos) -> Sleep {
        let instant = match AT_ORIGIN.saturating_duration_since(at) {
            Duration::ZERO => origin().checked_add(at.saturating_duration_since(AT_ORIGIN)).unwrap_or_else(far_away),
            // What the system cannot name was before it started.
            before => origin().checked_sub(before).unwrap_or_else(Instant::now),
        };
        tokio::time::sleep_until(instant)
    }
}

impl Spawn for TokioRuntime {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(task));
    }
}

/// The system's instant of [`AT_ORIGIN`]. Not tokio's, which may be one that somebody has moved.
#[inline]
fn origin() -> Instant {
    static ORIGIN: OnceLock<std::time::Instant> = OnceLock::new();
    Instant::from_std(*ORIGIN.get_or_init(std::time::Instant::now))
}

/// Beyond what the system's instants reach; whoever is woken then sleeps again.
fn far_away() -> Instant {
    Instant::now() + Duration::from_secs(30 * 365 * 86_400)
}

/// Room for paused clocks that began before the first reading.
const AT_ORIGIN: Nanos = Nanos::from_secs(86_400);
