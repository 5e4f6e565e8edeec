//! What the models ask of a limiter that reads its own clock, and core's limiters that answer.

use std::sync::Arc;

use sluicegate_core::{
    AdjustableBucket, KeyHandle, KeyedOptions, KeyedTokenBucket, LeakyBucket, ManualClock, Nanos, Overflow, PER_SECOND,
    Pacing, Quota, Rate, Shard, ShardedWindow, SlidingCounter, TokenBucket, WindowLimit, quota,
};

use crate::Seat;
use crate::lock::ModelLock;
use crate::store::Parity;

/// A limiter on a clock of its own, right or wrong. At `NOW`, where it begins, it has one unit; at `LATER` it has one more,
/// or, where it counts by windows, as many as it ever has.
pub trait Clocked: Send + Sync + 'static {
    /// As it is at `NOW`.
    fn new() -> Self;
    /// Moves its clock on to `LATER`.
    fn go_on(&self);
    /// Takes a unit by its own clock, or nothing.
    fn try_acquire(&self) -> bool;
    /// Takes a unit at `NOW`, whatever its clock says, and not at any later reading; or nothing.
    fn try_acquire_late(&self) -> bool;
}

/// Where the models' clocks begin.
const NOW: Nanos = Nanos::from_secs(100);
/// Half a second after `NOW` for what refills.
const LATER: Nanos = Nanos::new(100_500_000_000);

/// Core's limiters, each behind the calls that read a clock.
macro_rules! clocked {
    ($($(#[$doc:meta])* $name:ident($limiter:ty): $make:expr, $later:expr, $take:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($limiter);

        impl Clocked for $name {
            fn new() -> Self {
                let make: fn(ManualClock) -> $limiter = $make;
                Self(make(ManualClock::at(NOW)))
            }

            fn go_on(&self) {
                self.0.clock().set($later);
            }

            fn try_acquire(&self) -> bool {
                let take: fn(&$limiter) -> bool = $take;
                take(&self.0)
            }

            fn try_acquire_late(&self) -> bool {
                self.0.try_acquire_at(NOW, 1).is_ok_and(|taken| taken.at == NOW)
            }
        }
    )+};
}

clocked! {
    /// [`TokenBucket::try_acquire`].
    ClockedBucket(TokenBucket<ManualClock>): |clock| {
        let bucket = TokenBucket::with_clock(TWO_A_SECOND, clock);
        assert!(bucket.try_acquire(1).is_ok());
        bucket
    }, LATER, |bucket| bucket.try_acquire(1).is_ok();
    /// [`TokenBucket::debit`].
    ClockedDebtor(TokenBucket<ManualClock>): |clock| {
        let bucket = TokenBucket::with_clock(TWO_A_SECOND, clock);
        assert!(bucket.try_acquire(1).is_ok());
        bucket
    }, LATER, |bucket| bucket.debit(1).unpaid == 0;
    /// [`AdjustableBucket::try_acquire`].
    ClockedAdjustable(AdjustableBucket<ManualClock>): |clock| {
        let bucket = AdjustableBucket::with_clock(TWO_A_SECOND, clock);
        assert!(bucket.try_acquire(1).is_ok());
        bucket
    }, LATER, |bucket| bucket.try_acquire(1).is_ok();
    /// [`AdjustableBucket::debit`].
    ClockedAdjustableDebtor(AdjustableBucket<ManualClock>): |clock| {
        let bucket = AdjustableBucket::with_clock(TWO_A_SECOND, clock);
        assert!(bucket.try_acquire(1).is_ok());
        bucket
    }, LATER, |bucket| bucket.debit(1).unpaid == 0;
    /// [`SlidingCounter::try_acquire`]: at half of a window, half of what the one before took is let go.
    ClockedCounter(SlidingCounter<ManualClock>): |clock| {
        let counter = SlidingCounter::with_clock(limit(4), clock).expect("a small limit");
        // All of the window before is taken, and a quarter of a second into this one a unit is free.
        assert!(counter.try_acquire_at(Nanos::from_secs(99), 4).is_ok());
        counter.clock().set(Nanos::new(100_250_000_000));
        counter
    }, LATER, |counter| counter.try_acquire(1).is_ok();
    /// [`LeakyBucket::try_acquire`]: a place in the queue is free, and half a second later another one.
    ClockedPacer(LeakyBucket<ManualClock>): |clock| {
        let pacing = Rate::new(2, PER_SECOND).and_then(|rate| Pacing::new(rate, 1)).expect("a small queue");
        let bucket = LeakyBucket::with_clock(pacing, clock);
        assert!(bucket.try_acquire(1).is_ok());
        bucket
    }, LATER, |bucket| bucket.try_acquire(1).is_ok();
    /// [`ShardedWindow::try_acquire`], one shard: `LATER` is in the next window.
    ClockedWindow(ShardedWindow<[Shard; 1], ManualClock, Seat>): |clock| {
        let window = ShardedWindow::with_array(limit(2), clock, Seat);
        assert!(window.try_acquire(1).is_ok());
        window
    }, NOW.saturating_add(core::time::Duration::from_secs(1)), |window| window.try_acquire(1).is_ok();
    /// [`ShardedWindow::try_acquire`], two shards, of which the callers' is spent.
    ClockedShards(ShardedWindow<[Shard; 2], ManualClock, Seat>): |clock| {
        let window = ShardedWindow::with_array(limit(2), clock, Seat);
        assert!(window.try_acquire(1).is_ok());
        window
    }, NOW.saturating_add(core::time::Duration::from_secs(1)), |window| window.try_acquire(1).is_ok();
}

/// A store of keys, each behind a call on one of them.
macro_rules! clocked_keys {
    ($($(#[$doc:meta])* $name:ident: $options:expr, $take:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(KeyedTokenBucket<u8, ModelLock, Parity, ManualClock>);

        impl Clocked for $name {
            fn new() -> Self {
                let options: KeyedOptions = $options;
                let options = options.shards(core::num::NonZeroUsize::MIN);
                let store = KeyedTokenBucket::with_parts(options, Parity, ManualClock::at(NOW));
                assert!(store.try_acquire(&1, 1).is_ok());
                Self(store)
            }

            fn go_on(&self) {
                self.0.clock().set(LATER);
            }

            fn try_acquire(&self) -> bool {
                let take: fn(&KeyedTokenBucket<u8, ModelLock, Parity, ManualClock>) -> bool = $take;
                take(&self.0)
            }

            fn try_acquire_late(&self) -> bool {
                self.0.try_acquire_at(&1, NOW, 1).is_ok_and(|taken| taken.at == NOW)
            }
        }
    )+};
}

clocked_keys! {
    /// [`KeyedTokenBucket::try_acquire`] of a key that is there.
    ClockedKey: KeyedOptions::new(TWO_A_SECOND), |store| store.try_acquire(&1, 1).is_ok();
    /// [`KeyedTokenBucket::debit`] of a key that is there.
    ClockedKeyDebtor: KeyedOptions::new(TWO_A_SECOND), |store| store.debit(&1, 1).unpaid == 0;
    /// [`KeyedTokenBucket::try_acquire`] where there is no place and all keys share a limiter.
    ClockedOverflow: KeyedOptions::new(TWO_A_SECOND).cap(0).overflow(Overflow::Shared(TWO_A_SECOND.into())),
        |store| store.try_acquire(&1, 1).is_ok();
}

/// [`KeyHandle::try_acquire`].
#[derive(Debug)]
pub struct ClockedHandle(KeyHandle<Arc<KeyedTokenBucket<u8, ModelLock, Parity, ManualClock>>, u8>);

impl Clocked for ClockedHandle {
    fn new() -> Self {
        let ClockedKey(store) = ClockedKey::new();
        Self(KeyHandle::new(Arc::new(store), 1).expect("the key is there"))
    }

    fn go_on(&self) {
        self.0.store().clock().set(LATER);
    }

    fn try_acquire(&self) -> bool {
        self.0.try_acquire(1).is_ok()
    }

    fn try_acquire_late(&self) -> bool {
        self.0.try_acquire_at(NOW, 1).is_ok_and(|taken| taken.at == NOW)
    }
}

fn limit(count: u64) -> WindowLimit {
    format!("{count}/1s").parse().expect("a second is long enough for small limits")
}

const TWO_A_SECOND: Quota = quota!("2/1s");
