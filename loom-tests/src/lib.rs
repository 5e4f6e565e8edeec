//! Models of every concurrent piece of Sluicegate, explored interleaving by interleaving.
//!
//! A *model* is a function that builds a limiter, races a few calls on it and asserts what must hold whatever the order.
//! Under `--cfg sluicegate_loom` [`model`] runs it once for each interleaving, and each stale value that the memory
//! orders allow; without the cfg it runs the same body many times on threads of the operating system.
//!
//! Bodies are generic over [`Bucket`], [`Window`] and the like: the tests run them on core's limiters, which must pass, and on
//! those of [`known_bad`], each of which has one planted bug that its model must find.

#![allow(clippy::std_instead_of_alloc, reason = "models run on a host")]
#![allow(
    clippy::missing_errors_doc,
    clippy::missing_panics_doc,
    reason = "limiters as in core; a model is there to panic"
)]

pub mod adapting;
pub mod adjustable;
pub mod breaker;
pub mod bucket;
mod circuit;
mod clocked;
pub mod counter;
mod doors;
pub mod flow;
pub mod handles;
pub mod hierarchy;
mod key_queue;
pub mod key_waiting;
pub mod keyed;
pub mod known_bad;
mod lock;
pub mod own_clock;
pub mod pacer;
pub mod permits;
mod queue;
pub mod scripts;
mod shim;
mod store;
pub mod tally;
pub mod waiting;
pub mod window;

pub use circuit::{Breaker, Calls, Change as PhaseChange, CoreBreaker, CoreFlow, Still, Told};
pub use clocked::{
    Clocked, ClockedAdjustable, ClockedAdjustableDebtor, ClockedBucket, ClockedCounter, ClockedDebtor, ClockedHandle,
    ClockedKey, ClockedKeyDebtor, ClockedOverflow, ClockedPacer, ClockedShards, ClockedWindow,
};
pub use doors::{
    Adjustable, Answer, Bucket, CoreAdjustable, CoreBucket, CoreCounter, CorePacer, CorePermits, CoreTree, CoreWindow,
    Counter, Held, HoldingTree, Kind, Pacer, Permits, Seat, Taken, Tree, Window,
};
pub use key_queue::{KeyQueue, RuntimeKeys};
pub use lock::{ModelLock, ModelMutex, SteppedMutex};
pub use queue::{
    FromLimit, Queue, Reserving, RuntimeAdjustable, RuntimeBucket, RuntimePermits, RuntimeReservations, Tokens, Wait,
    Waiter, Ways,
};
pub use shim::{Bound, model, models, race2, race3};
pub use store::{Change, CoreStore, Handle, Handles, Parity, ParityHasher, Served, Store};

/// Asserts a promise within a model. The words it fails with tell a broken promise from a limit of the model checker.
#[macro_export]
macro_rules! promise {
    ($holds:expr, $($promise:tt)+) => {
        assert!($holds, "{}: {}", $crate::BROKEN, format_args!($($promise)+))
    };
}

/// What every failure of [`promise!`] starts with.
pub const BROKEN: &str = "promise broken";
