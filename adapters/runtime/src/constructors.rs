//! Limiters for one executor, made from their limit alone.

#[cfg(feature = "alloc")]
use alloc::boxed::Box;
#[cfg(feature = "alloc")]
use alloc::sync::Arc;
#[cfg(feature = "alloc")]
use core::num::NonZeroUsize;

use lock_api::RawMutex;
use sluicegate_core::{AdjustableBucket, Limit, QuotaError, SlidingCounter, TokenBucket, WindowLimit};
#[cfg(feature = "alloc")]
use sluicegate_core::{
    ConcurrencyLimit, DuplicateLevel, Holding, Level, OwnedHierarchy, Shard, ShardId, ShardedWindow, SharedSlidingLog,
    SlidingLog,
};
#[cfg(feature = "keyed")]
use sluicegate_core::{KeyedOptions, KeyedTokenBucket};

#[cfg(feature = "keyed")]
use crate::keyed::QueuedKeyed;
use crate::options::WaitOptions;
#[cfg(feature = "alloc")]
use crate::permits::QueuedPermits;
use crate::queued::Queued;
use crate::room::Room;
use crate::runtime::Runtime;

macro_rules! from_limit {
    ($($limiter:ident)+) => {$(
        impl<R: Runtime + Default, M: RawMutex, S: Room> Queued<$limiter<()>, R, M, S> {
            /// One that enforces `limit`, on the executor's clock and with [`WaitOptions::new`].
            ///
            /// `limit` is a [`Quota`](sluicegate_core::Quota), a [`Rate`](sluicegate_core::Rate) or a [`Limit`].
            pub fn of(limit: impl Into<Limit>) -> Self {
                Self::with_options(limit, WaitOptions::new())
            }

            /// As [`of`](Self::of), and says how it treats those who wait.
            pub fn with_options(limit: impl Into<Limit>, options: WaitOptions) -> Self {
                Self::new($limiter::with_limit(limit.into(), ()), R::default(), options)
            }
        }
    )+};
}

from_limit! { TokenBucket AdjustableBucket }

#[cfg(feature = "alloc")]
impl<I: ShardId + Default, R: Runtime + Default, M: RawMutex, S: Room>
    Queued<ShardedWindow<Box<[Shard]>, (), I>, R, M, S>
{
    /// A window that enforces `limit` over `shards` shards, on the executor's clock and with [`WaitOptions::new`].
    ///
    /// `limit` is a [`Quota`](sluicegate_core::Quota), a [`Rate`](sluicegate_core::Rate) or a [`Limit`].
    ///
    /// # Errors
    /// [`QuotaError::BurstOnWindow`] when the quota's burst is not its number of tokens, [`QuotaError::WindowTooShort`] when the
    /// window is too short for so large a limit.
    pub fn of<L>(limit: L, shards: NonZeroUsize) -> Result<Self, QuotaError>
    where
        L: TryInto<WindowLimit, Error = QuotaError>,
    {
        Self::with_options(limit, shards, WaitOptions::new())
    }

    /// As [`of`](Self::of), and says how it treats those who wait.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn with_options<L>(limit: L, shards: NonZeroUsize, options: WaitOptions) -> Result<Self, QuotaError>
    where
        L: TryInto<WindowLimit, Error = QuotaError>,
    {
        let window = ShardedWindow::with_shards(limit.try_into()?, shards, (), I::default());
        Ok(Self::new(window, R::default(), options))
    }
}

impl<R: Runtime + Default, M: RawMutex, S: Room> Queued<SlidingCounter<()>, R, M, S> {
    /// A counter that enforces `limit`, on the executor's clock and with [`WaitOptions::new`].
    ///
    /// `limit` is a [`Quota`](sluicegate_core::Quota), a [`Rate`](sluicegate_core::Rate) or a [`Limit`].
    ///
    /// # Errors
    /// [`QuotaError::BurstOnWindow`] when the quota's burst is not its number of tokens, and what [`SlidingCounter::with_limit`] says
    /// of a limit that one word cannot count.
    pub fn of<L>(limit: L) -> Result<Self, QuotaError>
    where
        L: TryInto<WindowLimit, Error = QuotaError>,
    {
        Self::with_options(limit, WaitOptions::new())
    }

    /// As [`of`](Self::of), and says how it treats those who wait.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn with_options<L>(limit: L, options: WaitOptions) -> Result<Self, QuotaError>
    where
        L: TryInto<WindowLimit, Error = QuotaError>,
    {
        Ok(Self::new(SlidingCounter::with_limit(limit.try_into()?, ())?, R::default(), options))
    }
}

#[cfg(feature = "alloc")]
impl<R: Runtime + Default, M: RawMutex, S: Room>
    Queued<SharedSlidingLog<M, alloc::collections::VecDeque<sluicegate_core::Run>>, R, M, S>
{
    /// A log that admits no more than `rate`'s tokens in any interval of its period, on the executor's clock and with
    /// [`WaitOptions::new`].
    pub fn of(rate: sluicegate_core::Rate) -> Self {
        Self::with_options(rate, WaitOptions::new())
    }

    /// As [`of`](Self::of), and says how it treats those who wait.
    pub fn with_options(rate: sluicegate_core::Rate, options: WaitOptions) -> Self {
        Self::new(SharedSlidingLog::new(SlidingLog::new(rate)), R::default(), options)
    }
}

#[cfg(feature = "alloc")]
impl<R: Runtime + Default, M: RawMutex, S: Room> QueuedPermits<R, M, S> {
    /// One that lets up to `limit` be in use at once, with [`WaitOptions::new`].
    pub fn of(limit: u32) -> Self {
        Self::with_options(limit, WaitOptions::new())
    }

    /// As [`of`](Self::of), and says how it treats those who wait.
    pub fn with_options(limit: u32, options: WaitOptions) -> Self {
        Self::new(ConcurrencyLimit::new(limit), R::default(), options)
    }
}

#[cfg(feature = "alloc")]
impl<const N: usize, R: Runtime + Default, M: RawMutex, S: Room> Queued<OwnedHierarchy<N>, R, M, S> {
    /// One for `levels` from the outermost inwards, which others may share, with [`WaitOptions::new`].
    ///
    /// # Errors
    /// [`DuplicateLevel`].
    pub fn of(levels: [Arc<Level<dyn Holding + Send + Sync>>; N]) -> Result<Self, DuplicateLevel> {
        Self::with_options(levels, WaitOptions::new())
    }

    /// As [`of`](Self::of), and says how it treats those who wait.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn with_options(
        levels: [Arc<Level<dyn Holding + Send + Sync>>; N],
        options: WaitOptions,
    ) -> Result<Self, DuplicateLevel> {
        Ok(Self::new(OwnedHierarchy::new(levels)?, R::default(), options))
    }
}

#[cfg(feature = "keyed")]
impl<K, L, S, R, M> QueuedKeyed<KeyedTokenBucket<K, L, S, ()>, R, M>
where
    K: core::hash::Hash + Eq + Clone,
    L: lock_api::RawRwLock,
    S: core::hash::BuildHasher + Default,
    R: Runtime + Clone + Default,
    M: RawMutex,
{
    /// A store for these options, which a limit alone can be, on the executor's clock and with [`WaitOptions::new`].
    pub fn of(options: impl Into<KeyedOptions>) -> Self {
        Self::with_options(options, WaitOptions::new())
    }

    /// As [`of`](Self::of), and says how it treats those who wait.
    pub fn with_options(keyed: impl Into<KeyedOptions>, options: WaitOptions) -> Self {
        Self::new(KeyedTokenBucket::with_parts(keyed, S::default(), ()), R::default(), options)
    }
}
