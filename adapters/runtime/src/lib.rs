#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(any(feature = "alloc", feature = "heapless"))]
mod acquire;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod adjust;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod constructors;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod costs;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod finally;
#[cfg(feature = "alloc")]
mod flow;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod grant;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod hierarchy;
#[cfg(feature = "keyed")]
mod key_waiter;
#[cfg(feature = "keyed")]
mod keyed;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod line;
#[cfg(feature = "alloc")]
mod manual;
#[cfg(feature = "alloc")]
mod names;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod news;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod options;
mod paced;
#[cfg(feature = "alloc")]
mod permits;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod queued;
#[cfg(feature = "alloc")]
mod registry;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod reserve;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod room;
mod runtime;
#[cfg(feature = "futures")]
mod sink;
#[cfg(feature = "keyed")]
mod store;
#[cfg(feature = "futures")]
mod stream;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod sync;
mod until;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod waitable;
mod with_clock;

pub use sluicegate_core;
pub use sluicegate_core::*;

#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use acquire::Acquire;
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use costs::Costs;
#[cfg(feature = "alloc")]
pub use flow::{
    FlowBucket, FlowEvents, FlowLimiter, FlowOptions, FlowOptionsError, FlowPath, FlowPlaces, Flowed, InFlightLaw,
    QueuedFlow, QueuedFlowPermit, WhenEmpty,
};
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use grant::Grantor;
#[cfg(feature = "keyed")]
pub use key_waiter::KeyWaiter;
#[cfg(feature = "keyed")]
pub use keyed::{OneKey, QueuedKeyed};
#[cfg(feature = "alloc")]
pub use manual::ManualRuntime;
#[cfg(feature = "alloc")]
pub use names::GrowingSlidingLog;
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use options::WaitOptions;
pub use paced::{Pace, Paced, Pacer};
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub use permits::LineOf;
#[cfg(feature = "alloc")]
pub use permits::{AcquirePermit, QueuedPermits, Released, WaitedPermit};
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use queued::Queued;
#[cfg(feature = "alloc")]
pub use registry::{
    AddFlowError, FlowPlan, FlowRegistry, Measure, OnRestart, RegisteredFlow, RegistryObserver, UnknownFlow, Watched,
};
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use reserve::{Reserve, Reserves, Reserving, WaitedReservation};
#[cfg(feature = "heapless")]
pub use room::Fixed;
#[cfg(feature = "alloc")]
pub use room::Growing;
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use room::Room;
pub use runtime::{Runtime, Spawn};
#[cfg(feature = "futures")]
pub use sink::{LimitedSink, SinkError};
#[cfg(feature = "keyed")]
pub use store::Store;
#[cfg(feature = "futures")]
pub use stream::{LimitStream, Limited, Refused};
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use waitable::Waitable;
pub use with_clock::WithClock;
