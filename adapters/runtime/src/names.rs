//! Names for the limiters of one executor.

/// Defines the names of the limiters that tasks of one executor wait for: what the adapters export, and what an executor of your own
/// can.
///
/// It takes a [`Runtime`](crate::Runtime) that is `Default` and a lock of [`lock_api`](https://docs.rs/lock_api), and defines
/// `TokenBucket`, `AdjustableBucket`, `SlidingCounter`, `SlidingLog`, `ConcurrencyLimit`, `LeakyBucket`, `WaitedHierarchy`, `Flow`, and for a
/// runtime that can [`Spawn`](crate::Spawn) too `FlowRegistry`.
///
/// ```
/// # use core::future::{Ready, ready};
/// # use sluicegate_runtime::{Clock, Nanos, Runtime, quota};
/// # #[derive(Default)]
/// # pub struct MyRuntime;
/// # impl Clock for MyRuntime {
/// #     fn now(&self) -> Nanos {
/// #         Nanos::ZERO
/// #     }
/// # }
/// # impl Runtime for MyRuntime {
/// #     type Sleep = Ready<()>;
/// #     fn sleep_until(&self, _: Nanos) -> Ready<()> {
/// #         ready(())
/// #     }
/// # }
/// sluicegate_runtime::limiters!(MyRuntime, parking_lot::RawMutex);
///
/// let bucket = TokenBucket::of(quota!("300/1m burst 20"));
/// assert!(bucket.try_acquire(20).is_ok());
/// let downloads = ConcurrencyLimit::of(3);
/// assert!(downloads.try_acquire_permit(4).is_err());
/// ```
#[macro_export]
macro_rules! limiters {
    ($runtime:ty, $lock:ty) => {
        /// A token bucket that is waited for in order; made by `TokenBucket::of(limit)` or `TokenBucket::with_options`.
        pub type TokenBucket =
            $crate::Queued<$crate::sluicegate_core::TokenBucket<()>, $runtime, $lock, $crate::Growing>;

        /// A token bucket whose limit may change and whose tokens can be reserved; made as a [`TokenBucket`].
        pub type AdjustableBucket =
            $crate::Queued<$crate::sluicegate_core::AdjustableBucket<()>, $runtime, $lock, $crate::Growing>;

        /// At most so much in any interval of one length; made by `SlidingLog::of(rate)`.
        pub type SlidingLog = $crate::Queued<$crate::GrowingSlidingLog<$lock>, $runtime, $lock, $crate::Growing>;

        /// About what a [`SlidingLog`] admits, in one word; made by `SlidingCounter::of(limit)`.
        pub type SlidingCounter =
            $crate::Queued<$crate::sluicegate_core::SlidingCounter<()>, $runtime, $lock, $crate::Growing>;

        /// A limit of what is in use at once, whose permits are waited for in order; made by `ConcurrencyLimit::of(limit)`.
        pub type ConcurrencyLimit = $crate::QueuedPermits<$runtime, $lock, $crate::Growing>;

        /// What every one of `N` levels admits, waited for as a whole with a cost for each; made by `WaitedHierarchy::of(levels)`.
        pub type WaitedHierarchy<const N: usize> =
            $crate::Queued<$crate::OwnedHierarchy<N>, $runtime, $lock, $crate::Growing>;

        /// Departures at a constant rate; made by `LeakyBucket::of(pacing)`.
        pub type LeakyBucket = $crate::Paced<$runtime>;

        /// Bucket, circuit breaker, places in flight, time limit and the call as one; made by `Flow::of(options)`. `O` is told what happens.
        pub type Flow<O = ()> = $crate::QueuedFlow<$runtime, $lock, O>;

        /// Flows by their names, which adapt and outlive panics; made by `FlowRegistry::default()`. `O` is told what happens in flows, `E` what
        /// becomes of them.
        pub type FlowRegistry<O = (), E = ()> = $crate::FlowRegistry<$runtime, $lock, O, E>;
    };
}

/// A sliding log of any limit behind a lock.
pub type GrowingSlidingLog<M> =
    sluicegate_core::SharedSlidingLog<M, alloc::collections::VecDeque<sluicegate_core::Run>>;
