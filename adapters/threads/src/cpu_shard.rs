//! Numbers of cores.

use sluicegate_core::ShardId;

#[cfg(any(doc, not(any(target_os = "linux", target_os = "android"))))]
use crate::ThreadShard;
use crate::waiting;

/// The number of the core that runs the caller: fewer shards than with [`ThreadShard`] where many threads share few cores.
///
/// Needs the feature `cpu`. On Linux and Android the kernel tells the number; on x86-64 that takes a few nanoseconds and
/// no system call, on aarch64 it takes a system call, so measure there before choosing it. On other systems it is
/// [`ThreadShard`]'s number. The caller may be moved to another core at any time, also before it uses the number: two
/// callers then meet in one shard, which costs a little speed and is never wrong.
///
/// `give_way` spins a little and then yields to the operating system.
///
/// ```
/// use sluicegate_threads::{CpuShard, OsClock, quota, shards_for_this_machine, sharded_window_with};
///
/// let window = sharded_window_with(quota!("1000000/1s"), shards_for_this_machine(), OsClock, CpuShard)?;
/// assert!(window.try_acquire(1).is_ok());
/// # Ok::<(), sluicegate_threads::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CpuShard;

impl ShardId for CpuShard {
    #[inline]
    fn shard(&self) -> usize {
        number()
    }

    #[inline]
    fn give_way(&self, attempt: u32) {
        waiting::give_way(attempt);
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn number() -> usize {
    rustix::thread::sched_getcpu()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
fn number() -> usize {
    ThreadShard.shard()
}
