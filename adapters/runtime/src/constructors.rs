//! Limiters for one executor, made from their limit alone.

#[cfg(feature = "alloc")]
use alloc::boxed::Box;
#[cfg(feature = "alloc")]
use core::num::NonZeroUsize;

use lock_api::RawMutex;
use sluicegate_core::{AdjustableBucket, Limit, TokenBucket};
#[cfg(feature = "alloc")]
use sluicegate_core::{QuotaError, Shard, ShardId, ShardedWindow, WindowLimit};

use crate::options::WaitOptions;
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
