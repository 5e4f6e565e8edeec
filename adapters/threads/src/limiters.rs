//! Limiters on this crate's clocks, ready to be named and made in one line.

use alloc::boxed::Box;
use core::num::NonZeroUsize;
use std::thread;

use sluicegate_core::{QuotaError, Shard, WindowLimit};

use crate::{CoarseClock, OsClock, ThreadShard};

/// A token bucket on the operating system's clock.
///
/// It is core's [`TokenBucket`](sluicegate_core::TokenBucket) with the clock chosen, and all its methods are there. Write
/// `sluicegate_core::TokenBucket<C>`, which this crate re-exports with its module, for any other clock.
///
/// ```
/// use sluicegate_threads::{TokenBucket, quota};
///
/// let limiter = TokenBucket::new(quota!("300/1m"));
/// assert!(limiter.try_acquire(1).is_ok());
/// ```
pub type TokenBucket = sluicegate_core::TokenBucket<OsClock>;

/// A token bucket on the processor's time-stamp counter. Needs the feature `tsc`.
///
/// ```
/// use sluicegate_threads::{TscTokenBucket, quota};
///
/// let limiter = TscTokenBucket::new(quota!("300/1m"));
/// assert!(limiter.try_acquire(1).is_ok());
/// ```
#[cfg(feature = "tsc")]
pub type TscTokenBucket = sluicegate_core::TokenBucket<crate::TscClock>;

/// A token bucket on a [`CoarseClock`], which is given to `with_clock`.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_threads::{CoarseClock, CoarseTokenBucket, quota};
///
/// let clock = CoarseClock::new(Duration::from_millis(1))?;
/// let limiter = CoarseTokenBucket::with_clock(quota!("300/1m"), clock);
/// assert!(limiter.try_acquire(1).is_ok());
/// # Ok::<(), sluicegate_threads::CoarseClockError>(())
/// ```
pub type CoarseTokenBucket = sluicegate_core::TokenBucket<CoarseClock>;

/// A sharded window for threads, on the operating system's clock; [`sharded_window`] makes one.
///
/// It is core's [`ShardedWindow`](sluicegate_core::ShardedWindow) with storage, clock and shard number chosen. Write
/// `sluicegate_core::ShardedWindow<S, C, I>`, which this crate re-exports with its module, for any others.
pub type ShardedWindow = sluicegate_core::ShardedWindow<Box<[Shard]>, OsClock, ThreadShard>;

/// A sharded window for threads, on the processor's time-stamp counter; [`sharded_window_with`] makes one. Needs the
/// feature `tsc`.
///
/// ```
/// use sluicegate_threads::{
///     ThreadShard, TscClock, TscShardedWindow, quota, shards_for_this_machine, sharded_window_with,
/// };
///
/// let shards = shards_for_this_machine();
/// let window: TscShardedWindow = sharded_window_with(quota!("300/1m"), shards, TscClock::new(), ThreadShard)?;
/// assert!(window.try_acquire(1).is_ok());
/// # Ok::<(), sluicegate_threads::QuotaError>(())
/// ```
#[cfg(feature = "tsc")]
pub type TscShardedWindow = sluicegate_core::ShardedWindow<Box<[Shard]>, crate::TscClock, ThreadShard>;

/// A sharded window for threads, on a [`CoarseClock`]; [`sharded_window_with`] makes one.
pub type CoarseShardedWindow = sluicegate_core::ShardedWindow<Box<[Shard]>, CoarseClock, ThreadShard>;

/// A window of `limit` on the operating system's clock, with [`shards_for_this_machine`].
///
/// `limit` is a [`Quota`](crate::Quota), a [`Rate`](crate::Rate) or a [`Limit`](crate::Limit).
///
/// # Errors
/// [`QuotaError::BurstOnWindow`] when the quota's burst is not its number of tokens, [`QuotaError::WindowTooShort`] when
/// the window is too short for so large a limit.
///
/// ```
/// use sluicegate_threads::{QuotaError, ShardedWindow, quota, sharded_window};
///
/// let window: ShardedWindow = sharded_window(quota!("300/1m"))?;
/// assert!(window.try_acquire(1).is_ok());
/// assert_eq!(sharded_window(quota!("300/1m burst 20")).unwrap_err(), QuotaError::BurstOnWindow { burst: 20 });
/// # Ok::<(), QuotaError>(())
/// ```
pub fn sharded_window<L>(limit: L) -> Result<ShardedWindow, QuotaError>
where
    L: TryInto<WindowLimit, Error = QuotaError>,
{
    sharded_window_with(limit, shards_for_this_machine(), OsClock, ThreadShard)
}

/// A window of `limit` over `shards` shards, on any clock and shard number.
///
/// The number of shards never changes afterwards. One for each core that calls is a good number, 1 is allowed and is the
/// cheapest for refunds and costs above 1 where few threads race.
///
/// # Errors
/// As [`sharded_window`].
///
/// ```
/// use std::num::NonZeroUsize;
/// use std::time::Duration;
/// use sluicegate_threads::{CoarseClock, CoarseShardedWindow, ThreadShard, quota, sharded_window_with};
///
/// let clock = CoarseClock::new(Duration::from_millis(1))?;
/// let window: CoarseShardedWindow =
///     sharded_window_with(quota!("10/1h"), NonZeroUsize::new(4).unwrap(), clock, ThreadShard)?;
/// assert_eq!(window.caps().collect::<Vec<_>>(), [3, 3, 2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sharded_window_with<L, C, I>(
    limit: L,
    shards: NonZeroUsize,
    clock: C,
    shard_id: I,
) -> Result<sluicegate_core::ShardedWindow<Box<[Shard]>, C, I>, QuotaError>
where
    L: TryInto<WindowLimit, Error = QuotaError>,
{
    Ok(sluicegate_core::ShardedWindow::with_shards(limit.try_into()?, shards, clock, shard_id))
}

/// As many shards as threads can run at once in this process, as the operating system says now; 1 if it does not say.
///
/// It regards affinity masks and, on Linux, the quota of a control group.
///
/// ```
/// assert!(sluicegate_threads::shards_for_this_machine().get() >= 1);
/// ```
pub fn shards_for_this_machine() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
