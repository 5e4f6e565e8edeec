//! Admission control (rate limiting), exact where others round.
//!
//! This crate decides whether a request may pass. It holds every algorithm of Sluicegate and nothing else: no operating
//! system, no allocator, no `unsafe`. A clock and a shard number are lent to it; `sluicegate-threads` and the other
//! adapters bring them for threads and for each async executor, and re-export this crate.
//!
//! | | admits | state | many callers | beyond its limit |
//! |---|---|---|---|---|
//! | [`TokenBucket`] | smoothly, bursts up to its capacity | one word | share one word | never |
//! | [`AdjustableBucket`] | the same; its limit may change, tokens can be reserved | two words, and 224 bytes of rules | share one word | never |
//! | [`ShardedWindow`] | all of its limit at any time in a window | one word a shard | scale with shards | 2x across one boundary |
//! | `SlidingLog` (feature `alloc` or `heapless`) | all of its limit in any interval of its length | up to 16 bytes a unit | behind a lock, `SharedSlidingLog` | never |
//! | [`SlidingCounter`] | about what the log admits | one word | share one word | less than 2x in an interval, by its phase; never in a window |
//! | [`LeakyBucket`] | at a constant rate; bursts wait in a bounded queue | one word | share one word | never |
//! | [`ConcurrencyLimit`] | what fits beside what is in use, whatever the time | one word | share one word | never; a lowered limit drains |
//! | [`Hierarchy`] | what every one of its levels admits | none of its own | as its levels | never, at any level |
//! | `KeyedTokenBucket` (feature `keyed`) | smoothly, for each key | a key and a word each, up to a cap | read lock of a shard | never |
//! | its `KeyHandle` | the same, for one of its keys | 256 bytes | share one word | never |
//!
//! All but the counter are *exact*, and it says by how much it errs: see the guarantees and trade-offs on each type.
//! Underneath are [`BucketStep`], [`WindowStep`], [`SlidingCounterStep`] and [`LeakyBucketStep`], pure functions of state,
//! reading and cost, for those who keep states themselves. `WaitQueue` (feature `alloc` or `heapless`) keeps those who wait
//! for a limiter in order; `FixedKeyedTokenBucket` keeps keys without an allocator.
//!
//! Around calls: [`Flow`] composes a limiter, a `CircuitBreaker` (feature `lock_api`; [`BreakerState`] for one owner) and a concurrency limit with the call and what
//! is learnt from it. [`AdaptivePolicy`] answers with the quota to put in force under load, after errors, and while a larger quota runs out.
//!
//! Which one? One limit: the bucket; a very hot one from many cores: the window. "No more than so many in *any* minute", to the
//! letter: the log, if there is memory for it, and the counter if not. Requests whose cost is known only afterwards, or a
//! limit that is changed while it is used: the adjustable bucket. A downstream that wants an even pace: the leaky bucket; one
//! that wants few at a time: the concurrency limit, and `AdaptiveConcurrency` (feature `lock_api`) where nobody knows how many.
//!
//! ```
//! use sluicegate_core::{Denied, ManualClock, TokenBucket, quota};
//!
//! let bucket = TokenBucket::with_clock(quota!("300/1m"), ManualClock::new());
//! match bucket.try_acquire(1) {
//!     Ok(admitted) => println!("{} left", admitted.remaining),
//!     Err(Denied::RateLimited { retry_after }) => println!("come back in {retry_after:?}"),
//!     Err(never) => println!("{never}"),
//! }
//! ```
//!
//! # Limits
//!
//! A limit holds within one process. Time is what the given clock says, in nanoseconds from the clock's origin, for 30
//! years from there ([`Nanos::HORIZON`]); costs and counts are whole numbers of up to 64 bits.
//!
//! # Features
//!
//! None is on by default.
//!
//! - `alloc`: shard counts chosen at run time, clocks behind `Arc` and `Box`, the sliding log, the wait queue, permits and
//!   reservations that own their limiter.
//! - `heapless`: the sliding log and the wait queue with capacities fixed at compile time. Needs Rust 1.88.
//! - `lock_api`: `SharedSlidingLog`, `CircuitBreaker` and `AdaptiveConcurrency`, behind any lock that implements lock_api's traits.
//! - `keyed`: the store of keys; implies `alloc` and `lock_api`.
//! - `loom`: for this project's own model checking, and without effect unless `--cfg sluicegate_loom` is set too.
//!
//! On targets without 64-bit atomics or compare-and-swap, [portable-atomic](https://docs.rs/portable-atomic) emulates
//! them. Which of its backends is sound on your target is your application's choice:
//! [`BARE_METAL.md`](https://github.com/sluicegate/sluicegate/blob/main/docs/BARE_METAL.md) says which, and which limiters an
//! interrupt handler may use.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    all(sluicegate_loom, feature = "loom"),
    allow(dead_code, unused_imports, reason = "models keep a rule in fewer words")
)]

#[cfg(feature = "alloc")]
extern crate alloc;

mod adaptive;
mod adaptive_concurrency;
mod adjustable_bucket;
mod arithmetic;
mod breaker;
mod clock;
mod concurrency;
mod decision;
mod flow;
mod hierarchy;
mod keyed;
mod leaky_bucket;
mod limiter;
mod nanos;
mod observer;
mod quota;
mod rate;
mod shard;
mod sharded_window;
mod share;
mod sliding_counter;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod sliding_log;
mod sync;
mod telemetry;
mod text;
mod token_bucket;
#[cfg(any(feature = "alloc", feature = "heapless"))]
mod wait_queue;

pub use adaptive::{
    Adapted, AdaptiveOptions, AdaptiveOptionsError, AdaptivePolicy, ErrorRule, Load, LoadRule, PaceRule, QuotaAccount,
    QuotaLeft, Signals,
};
#[cfg(feature = "lock_api")]
pub use adaptive_concurrency::{AdaptiveConcurrency, CallMark};
pub use adaptive_concurrency::{
    AimdLaw, AimdOptions, ClosedWindow, ConcurrencyController, ConcurrencyLaw, GradientLaw, GradientOptions,
    LawOptionsError, SampleOptions, SampleOptionsError, SampleWindow, Sampled,
};
pub use adjustable_bucket::{AdjustError, AdjustableBucket, Clocked, Reservable, Reservation};
#[cfg(feature = "lock_api")]
pub use breaker::{BreakerObserver, BreakerPermit, CircuitBreaker};
pub use breaker::{BreakerOptions, BreakerOptionsError, BreakerPhase, BreakerPolicy, BreakerState, Call, CallOutcome};
pub use clock::{Clock, ManualClock};
pub use concurrency::{ConcurrencyLimit, Holder, Outcome, Permit, PermitObserver, Usage};
pub use decision::{Admitted, Decision, Denied, Inspection, Remaining};
pub use flow::{CallBreaker, CallLimit, Flow, FlowError, FlowObserver, FlowPermit, FlowRefusal, FlowStage};
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
pub use hierarchy::OwnedHierarchy;
pub use hierarchy::{DeniedBy, DuplicateLevel, Hierarchy, Holding, Level};
pub use keyed::{DecidedBy, FixedKeyedTokenBucket, KeyedDecision, Lookup, Overflow};
#[cfg(feature = "keyed")]
pub use keyed::{
    KeyHandle, KeyLimiter, KeyedOptions, KeyedTokenBucket, OneQuota, Quotas, SetTierError, Tier, Tiers, TooManyKeys,
};
pub use leaky_bucket::{Departure, LeakyBucket, LeakyBucketState, LeakyBucketStep, Pacing};
pub use limiter::Limiter;
pub use nanos::Nanos;
pub use observer::Observer;
pub use quota::{Limit, Quota};
pub use rate::{PER_DAY, PER_HOUR, PER_MINUTE, PER_SECOND, QuotaError, Rate};
pub use shard::{CachePadded, CounterShard, FixedShard, HashedShard, ShardId};
pub use sharded_window::{Shard, ShardedWindow, Shards, WindowLimit, WindowState, WindowStep};
pub use share::{Share, ShareError};
pub use sliding_counter::{SlidingCounter, SlidingCounterCell, SlidingCounterState, SlidingCounterStep};
#[cfg(feature = "heapless")]
pub use sliding_log::FixedSlidingLog;
#[cfg(all(feature = "lock_api", any(feature = "alloc", feature = "heapless")))]
pub use sliding_log::SharedSlidingLog;
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use sliding_log::{Run, Runs, SlidingLog};
/// For this project's own models only: what the limiters run on while they are model-checked.
#[cfg(all(sluicegate_loom, feature = "loom"))]
#[doc(hidden)]
pub use sync::ModelAtomicU64;
pub use telemetry::{
    Alert, AlertChange, AlertChanges, AlertOptions, AlertOptionsError, AlertPolicy, AlertValue, Alerts,
    CounterSnapshot, Counters,
};
pub use text::ParseError;
pub use token_bucket::{BucketCell, BucketState, BucketStep, Debit, Inheritance, TokenBucket};
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub use wait_queue::{QueueFull, Served, Slots, Ticket, Verdict, WaitQueue, Waiting};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
