#![cfg_attr(any(not(doctest), all(feature = "keyed", feature = "wait")), doc = include_str!("../README.md"))]
#![cfg_attr(
    all(doctest, not(all(feature = "keyed", feature = "wait"))),
    doc = "The page's examples need the features `keyed` and `wait`."
)]
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
#[cfg(feature = "wait")]
mod parking;
#[cfg(feature = "system")]
mod system_load;
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
#[cfg(all(feature = "wait", feature = "keyed"))]
pub use parking::WaitingKeyedTokenBucket;
#[cfg(feature = "wait")]
pub use parking::{
    ParkUntil, ThreadTime, Wait, WaitingAdjustableBucket, WaitingConcurrencyLimit, WaitingFlow, WaitingFlowRegistry,
    WaitingLeakyBucket, WaitingShardedWindow, WaitingSlidingCounter, WaitingSlidingLog, WaitingTokenBucket,
};
#[cfg(all(feature = "wait", feature = "keyed"))]
pub use sluicegate_runtime::QueuedKeyed;
/// What waits share on threads and on executors.
#[cfg(feature = "wait")]
pub use sluicegate_runtime::{
    self, Acquire, AddFlowError, Costs, FlowEvents, FlowOptions, FlowOptionsError, FlowPath, FlowPlaces, FlowPlan,
    FlowRegistry, Flowed, Grantor, Growing, InFlightLaw, ManualRuntime, Measure, OnRestart, Pace, Paced, Queued,
    QueuedFlow, QueuedFlowPermit, QueuedPermits, RegistryObserver, Reserve, Reserving, Runtime, Spawn, UnknownFlow,
    WaitOptions, WaitedPermit, WaitedReservation, WhenEmpty,
};
#[cfg(feature = "system")]
pub use system_load::SystemLoad;
pub use thread_shard::ThreadShard;
#[cfg(feature = "tsc")]
pub use tsc_clock::TscClock;
