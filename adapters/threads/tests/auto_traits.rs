//! Which types can be sent, shared and moved: a change here is a breaking one.

use sluicegate_threads::{
    CoarseClock, CoarseClockError, CoarseShardedWindow, CoarseTokenBucket, OsClock, ShardedWindow, ThreadShard,
    TokenBucket,
};

macro_rules! table {
    ($($type:ty: $($bound:ident)+;)+) => {
        $(const _: () = { const fn has<T: $($bound +)+ ?Sized>() {} has::<$type>() };)+
    };
}

table! {
    OsClock: Send Sync Unpin Copy Default;
    CoarseClock: Send Sync Unpin Clone;
    CoarseClockError: Send Sync Unpin;
    ThreadShard: Send Sync Unpin Copy Default;
    TokenBucket: Send Sync Unpin;
    CoarseTokenBucket: Send Sync Unpin;
    ShardedWindow: Send Sync Unpin;
    CoarseShardedWindow: Send Sync Unpin;
}

#[cfg(feature = "tsc")]
table! {
    sluicegate_threads::TscClock: Send Sync Unpin Copy Default;
    sluicegate_threads::TscTokenBucket: Send Sync Unpin;
    sluicegate_threads::TscShardedWindow: Send Sync Unpin;
}

#[cfg(feature = "keyed")]
table! {
    sluicegate_threads::KeyedTokenBucket<String>: Send Sync Unpin;
    sluicegate_threads::CoarseKeyedTokenBucket<String>: Send Sync Unpin;
    sluicegate_threads::TieredTokenBucket<String>: Send Sync Unpin;
    sluicegate_threads::SeededState: Send Sync Unpin Clone Default;
}

#[cfg(feature = "cpu")]
table! {
    sluicegate_threads::CpuShard: Send Sync Unpin Copy Default;
}

#[test]
fn limiters_and_clocks_survive_panics() {
    // A panic of the caller's code leaves a limiter usable, so it is no obstacle to unwinding.
    fn unwind_safe<T: core::panic::UnwindSafe + core::panic::RefUnwindSafe>() {}
    unwind_safe::<TokenBucket>();
    unwind_safe::<ShardedWindow>();
    unwind_safe::<CoarseClock>();
}
