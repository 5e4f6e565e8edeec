#![cfg_attr(any(not(doctest), feature = "keyed"), doc = include_str!("../README.md"))]
#![cfg_attr(all(doctest, not(feature = "keyed")), doc = "One of the page's examples needs the feature `keyed`.")]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod coarse_clock;
#[cfg(feature = "cpu")]
mod cpu_shard;
#[cfg(feature = "keyed")]
mod keyed;
mod limiters;
mod os_clock;
mod thread_shard;
#[cfg(feature = "tsc")]
mod tsc_clock;
mod waiting;

// Every item of core, except those that `limiters` defines under the same name for this crate's clocks.
pub use sluicegate_core;
pub use sluicegate_core::*;

pub use coarse_clock::{CoarseClock, CoarseClockError};
#[cfg(feature = "cpu")]
pub use cpu_shard::CpuShard;
#[cfg(feature = "keyed")]
pub use keyed::{CoarseKeyedTokenBucket, KeyedTokenBucket, SeededState, TieredTokenBucket};
#[cfg(all(feature = "keyed", feature = "tsc"))]
pub use keyed::{TscKeyedTokenBucket, TscTieredTokenBucket};
pub use limiters::{
    CoarseShardedWindow, CoarseTokenBucket, ShardedWindow, TokenBucket, sharded_window, sharded_window_with,
    shards_for_this_machine,
};
#[cfg(feature = "tsc")]
pub use limiters::{TscShardedWindow, TscTokenBucket};
pub use os_clock::OsClock;
pub use thread_shard::ThreadShard;
#[cfg(feature = "tsc")]
pub use tsc_clock::TscClock;
