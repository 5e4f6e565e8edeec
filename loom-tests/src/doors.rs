//! What the models ask of a limiter, and core's limiters that answer.

use core::cell::Cell;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::Arc;

use sluicegate_core::{
    AdjustableBucket, ConcurrencyLimit, Decision, Departure, Hierarchy, Holding, Inheritance, LeakyBucket, Level,
    Limit, ManualClock, Nanos, PER_SECOND, Pacing, Permit, Quota, Rate, Remaining, Reservation, Shard, ShardId,
    ShardedWindow, SlidingCounter, SlidingCounterStep, TokenBucket, WindowLimit,
};

use crate::promise;
use crate::shim::{give_way, thread_local};

/// What was taken, or how long to wait. No model asks for more than the limit.
pub type Answer = Result<Taken, Duration>;

/// An admission. Core's own type cannot be made outside of core, so the broken limiters could not answer with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The reading that it counts under.
    pub at: Nanos,
    /// What was left.
    pub remaining: Remaining,
}

/// A token bucket, right or wrong.
pub trait Bucket: Send + Sync + 'static {
    /// A full one.
    fn new(quota: Quota) -> Self;
    /// Takes `cost` at `now`, or nothing.
    fn try_acquire(&self, now: Nanos, cost: u64) -> Answer;
    /// Gives `cost` back.
    fn refund(&self, cost: u64);
    /// What `try_acquire` would answer.
    fn peek(&self, now: Nanos, cost: u64) -> Answer;
    /// Whole tokens at `now`.
    fn level(&self, now: Nanos) -> u64;
}

/// A sharded window, right or wrong; its width is a second.
pub trait Window: Send + Sync + 'static {
    /// An unused one.
    fn new(limit: u64, shards: usize) -> Self;
    /// Takes `cost` at `now`, or nothing, starting at shard `seat`.
    fn try_acquire(&self, seat: usize, now: Nanos, cost: u64) -> Answer;
    /// Gives back `cost`, taken at `taken_at`, starting at shard `seat`.
    fn refund(&self, seat: usize, taken_at: Nanos, cost: u64);
    /// What `try_acquire` would answer.
    fn peek(&self, seat: usize, now: Nanos, cost: u64) -> Answer;
    /// What is free at `now`.
    fn free(&self, seat: usize, now: Nanos) -> u64;
}

/// A bucket that can be reserved from and changed, right or wrong.
pub trait Adjustable: Send + Sync + 'static {
    /// A full one.
    fn new(quota: Quota) -> Self;
    /// Takes `cost` at `now`, or nothing.
    fn try_acquire(&self, now: Nanos, cost: u64) -> bool;
    /// Holds `cost` at `now`, or nothing.
    fn reserve(&self, now: Nanos, cost: u64) -> Option<Box<dyn Held + '_>>;
    /// Goes on under `quota`, with the same level if there is room.
    fn adjust(&self, now: Nanos, quota: Quota);
    /// Whole tokens at `now` that nobody holds.
    fn level(&self, now: Nanos) -> u64;
}

/// What is held.
pub trait Held {
    /// Lets go of it.
    fn cancel(self: Box<Self>);
    /// Spends so much of it, lets go of the rest, and tells what could be spent.
    fn settle(self: Box<Self>, now: Nanos, spent: u64) -> u64;
}

/// [`AdjustableBucket`].
#[derive(Debug)]
pub struct CoreAdjustable(AdjustableBucket<ManualClock>);

impl Adjustable for CoreAdjustable {
    fn new(quota: Quota) -> Self {
        Self(AdjustableBucket::with_clock(quota, ManualClock::new()))
    }

    fn try_acquire(&self, now: Nanos, cost: u64) -> bool {
        self.0.try_acquire_at(now, cost).is_ok()
    }

    fn reserve(&self, now: Nanos, cost: u64) -> Option<Box<dyn Held + '_>> {
        self.0.reserve_at(now, cost).ok().map(|reservation| Box::new(reservation) as Box<dyn Held>)
    }

    fn adjust(&self, now: Nanos, quota: Quota) {
        let mut attempt = 0;
        while self.0.try_adjust_at(now, Limit::Quota(quota), Inheritance::Level).is_err() {
            give_way(attempt);
            attempt += 1;
        }
    }

    fn level(&self, now: Nanos) -> u64 {
        self.0.inspect_at(now).level
    }
}

impl Held for Reservation<&AdjustableBucket<ManualClock>> {
    fn cancel(self: Box<Self>) {}

    fn settle(self: Box<Self>, now: Nanos, spent: u64) -> u64 {
        self.settle_at(now, spent).charged
    }
}

/// Three levels of units that are not refilled while a model runs, right or wrong.
pub trait Tree: Send + Sync + 'static {
    /// Levels with so many units each.
    fn new(limits: [u64; 3]) -> Self;
    /// Takes a unit at each of two levels, the outer one given first; or tells which one refused.
    fn try_acquire(&self, path: [usize; 2]) -> Result<(), usize>;
    /// Takes a unit at one level.
    fn try_acquire_alone(&self, level: usize) -> bool;
    /// What a level has.
    fn free(&self, level: usize) -> u64;
}

/// [`Hierarchy`] over levels of different kinds: a window or another kind, a bucket, a window.
#[derive(Debug)]
pub struct CoreTree<K = ShardedWindow<[Shard; 1], ManualClock, Seat>> {
    outer: Level<K>,
    bucket: Level<AdjustableBucket<ManualClock>>,
    window: Level<ShardedWindow<[Shard; 1], ManualClock, Seat>>,
}

/// What the outermost level may be.
pub trait Kind: Holding + Send + Sync + 'static {
    /// An unused one.
    fn of(limit: WindowLimit) -> Self;
}

impl Kind for ShardedWindow<[Shard; 1], ManualClock, Seat> {
    fn of(limit: WindowLimit) -> Self {
        Self::with_array(limit, ManualClock::new(), Seat)
    }
}

impl Kind for SlidingCounter<ManualClock> {
    fn of(limit: WindowLimit) -> Self {
        Self::with_limit(limit, ManualClock::new()).expect("a second is long enough for small limits")
    }
}

impl<K: Kind> CoreTree<K> {
    fn level(&self, index: usize) -> &Level<dyn Holding + Send + Sync> {
        match index {
            0 => &self.outer,
            1 => &self.bucket,
            _ => &self.window,
        }
    }
}

impl<K: Kind> Tree for CoreTree<K> {
    fn new(limits: [u64; 3]) -> Self {
        let limit = |index: usize| match Rate::new(limits[index], PER_SECOND) {
            Ok(rate) => Limit::Quota(Quota::new(rate).expect("models use small limits")),
            Err(_) => Limit::DenyAll,
        };
        let window = |index| WindowLimit::new(limit(index)).expect("a second is long enough for small limits");
        let bucket = AdjustableBucket::with_limit(limit(1), ManualClock::new());
        Self {
            outer: Level::with_give_way("outer", K::of(window(0)), give_way),
            bucket: Level::with_give_way("bucket", bucket, give_way),
            window: Level::with_give_way("window", Kind::of(window(2)), give_way),
        }
    }

    fn try_acquire(&self, path: [usize; 2]) -> Result<(), usize> {
        let hierarchy = Hierarchy::new(path.map(|index| self.level(index))).expect("a path names two levels");
        hierarchy.try_acquire_at(NOW, [1, 1]).map(|_| ()).map_err(|refused| path[refused.level])
    }

    fn try_acquire_alone(&self, level: usize) -> bool {
        self.level(level).try_acquire_at(NOW, 1).is_ok()
    }

    fn free(&self, level: usize) -> u64 {
        self.level(level).limiter().inspect_at(NOW).level
    }
}

/// A [`CoreTree`] that holds at all levels and then keeps, as a queue does: the outermost holds as well, and once all do, no hold is
/// in flight.
#[derive(Debug)]
pub struct HoldingTree(CoreTree);

impl Tree for HoldingTree {
    fn new(limits: [u64; 3]) -> Self {
        Self(CoreTree::new(limits))
    }

    fn try_acquire(&self, path: [usize; 2]) -> Result<(), usize> {
        let hierarchy = Hierarchy::new(path.map(|index| self.0.level(index))).expect("a path names two levels");
        let held = hierarchy.hold_at(NOW, [1, 1]).map_err(|refused| path[refused.level])?;
        hierarchy.keep([1, 1], &held);
        Ok(())
    }

    fn try_acquire_alone(&self, level: usize) -> bool {
        self.0.try_acquire_alone(level)
    }

    fn free(&self, level: usize) -> u64 {
        self.0.free(level)
    }
}

/// A concurrency limit, right or wrong.
pub trait Permits: Send + Sync + 'static {
    /// What was taken; dropping it gives it back.
    type Permit: Send + 'static;
    /// An unused one.
    fn new(limit: u32) -> Self;
    /// Takes `cost`, or nothing.
    fn try_acquire(&self, cost: u64) -> Option<Self::Permit>;
    /// Sets the limit.
    fn set_limit(&self, limit: u32);
    /// What is in use, and the limit.
    fn usage(&self) -> (u64, u64);
}

/// A leaky bucket of one a second, right or wrong.
pub trait Pacer: Send + Sync + 'static {
    /// A slot.
    type Departure: Send + 'static;
    /// An idle one.
    fn new(queue: u64) -> Self;
    /// Takes a slot, or nothing.
    fn try_acquire(&self, now: Nanos, cost: u64) -> Option<Self::Departure>;
    /// When it departs.
    fn at(departure: &Self::Departure) -> Nanos;
    /// Gives the slot up if it is the newest.
    fn cancel(&self, departure: Self::Departure) -> Result<(), Self::Departure>;
}

/// A sliding counter, right or wrong; its window is a second.
pub trait Counter: Send + Sync + 'static {
    /// An unused one.
    fn new(limit: u64) -> Self;
    /// Takes `cost` at `now`, or nothing.
    fn try_acquire(&self, now: Nanos, cost: u64) -> Answer;
    /// Gives back `cost`, taken at `taken_at`.
    fn refund(&self, taken_at: Nanos, cost: u64);
    /// What `try_acquire` would answer.
    fn peek(&self, now: Nanos, cost: u64) -> Answer;
    /// What is free at `now`.
    fn free(&self, now: Nanos) -> u64;
}

/// [`TokenBucket`].
#[derive(Debug)]
pub struct CoreBucket(TokenBucket<ManualClock>);

impl Bucket for CoreBucket {
    fn new(quota: Quota) -> Self {
        Self(TokenBucket::with_clock(quota, ManualClock::new()))
    }

    fn try_acquire(&self, now: Nanos, cost: u64) -> Answer {
        answer(self.0.try_acquire_at(now, cost))
    }

    fn refund(&self, cost: u64) {
        self.0.refund(cost);
    }

    fn peek(&self, now: Nanos, cost: u64) -> Answer {
        answer(self.0.peek_at(now, cost))
    }

    fn level(&self, now: Nanos) -> u64 {
        self.0.inspect_at(now).level
    }
}

/// [`ShardedWindow`].
#[derive(Debug)]
pub struct CoreWindow(ShardedWindow<Box<[Shard]>, ManualClock, Seat>);

impl Window for CoreWindow {
    fn new(limit: u64, shards: usize) -> Self {
        let rate = Rate::new(limit, PER_SECOND).expect("models use small limits");
        let limit = WindowLimit::from_rate(rate).expect("a second is long enough for small limits");
        let shards = NonZeroUsize::new(shards).expect("models use some shards");
        Self(ShardedWindow::with_shards(limit, shards, ManualClock::new(), Seat))
    }

    fn try_acquire(&self, seat: usize, now: Nanos, cost: u64) -> Answer {
        Seat::take(seat);
        answer(self.0.try_acquire_at(now, cost))
    }

    fn refund(&self, seat: usize, taken_at: Nanos, cost: u64) {
        Seat::take(seat);
        self.0.refund(taken_at, cost);
    }

    fn peek(&self, seat: usize, now: Nanos, cost: u64) -> Answer {
        Seat::take(seat);
        answer(self.0.peek_at(now, cost))
    }

    fn free(&self, seat: usize, now: Nanos) -> u64 {
        Seat::take(seat);
        self.0.inspect_at(now).level
    }
}

/// [`ConcurrencyLimit`].
#[derive(Debug)]
pub struct CorePermits(Arc<ConcurrencyLimit>);

impl Permits for CorePermits {
    type Permit = Permit<Arc<ConcurrencyLimit>>;

    fn new(limit: u32) -> Self {
        Self(Arc::new(ConcurrencyLimit::new(limit)))
    }

    fn try_acquire(&self, cost: u64) -> Option<Self::Permit> {
        self.0.try_acquire_owned(cost).ok()
    }

    fn set_limit(&self, limit: u32) {
        self.0.set_limit(limit);
    }

    fn usage(&self) -> (u64, u64) {
        let usage = self.0.usage();
        (usage.in_use.into(), usage.limit.into())
    }
}

/// [`LeakyBucket`].
#[derive(Debug)]
pub struct CorePacer(LeakyBucket<ManualClock>);

impl Pacer for CorePacer {
    type Departure = Departure;

    fn new(queue: u64) -> Self {
        let rate = Rate::new(1, PER_SECOND).expect("models use small rates");
        let pacing = Pacing::new(rate, queue).and_then(|pacing| pacing.with_largest_cost(5));
        Self(LeakyBucket::with_clock(pacing.expect("models use small queues"), ManualClock::new()))
    }

    fn try_acquire(&self, now: Nanos, cost: u64) -> Option<Departure> {
        self.0.try_acquire_at(now, cost).ok()
    }

    fn at(departure: &Departure) -> Nanos {
        departure.at
    }

    fn cancel(&self, departure: Departure) -> Result<(), Departure> {
        self.0.cancel(departure)
    }
}

/// [`SlidingCounter`].
#[derive(Debug)]
pub struct CoreCounter(SlidingCounter<ManualClock>);

impl Counter for CoreCounter {
    fn new(limit: u64) -> Self {
        let rate = Rate::new(limit, PER_SECOND).expect("models use small limits");
        let step = SlidingCounterStep::new(rate).expect("a second is long enough for small limits");
        Self(SlidingCounter::with_step(step, ManualClock::new()))
    }

    fn try_acquire(&self, now: Nanos, cost: u64) -> Answer {
        answer(self.0.try_acquire_at(now, cost))
    }

    fn refund(&self, taken_at: Nanos, cost: u64) {
        self.0.refund(taken_at, cost);
    }

    fn peek(&self, now: Nanos, cost: u64) -> Answer {
        answer(self.0.peek_at(now, cost))
    }

    fn free(&self, now: Nanos) -> u64 {
        self.0.inspect_at(now).level
    }
}

/// The shard number that the calling thread chose last: a limiter has one source of numbers, and a model says who sits
/// where.
#[derive(Clone, Copy, Debug)]
pub struct Seat;

impl Seat {
    /// Sits the calling thread down at `seat`.
    pub fn take(seat: usize) {
        SEAT.with(|chosen| chosen.set(seat));
    }

    /// Makes a call during which the calling thread may not wait for another one: it stands for an interrupt handler, and
    /// the other for what it interrupted.
    pub fn without_waiting<T>(call: impl FnOnce() -> T) -> T {
        MAY_WAIT.with(|may_wait| may_wait.set(false));
        let result = call();
        MAY_WAIT.with(|may_wait| may_wait.set(true));
        result
    }
}

impl ShardId for Seat {
    fn shard(&self) -> usize {
        SEAT.with(Cell::get)
    }

    fn give_way(&self, attempt: u32) {
        promise!(MAY_WAIT.with(Cell::get), "who interrupts another waits for it, which is for ever");
        give_way(attempt);
    }
}

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro knows no constants")]
    static SEAT: Cell<usize> = Cell::new(0);
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro knows no constants")]
    static MAY_WAIT: Cell<bool> = Cell::new(true);
}

fn answer(decision: Decision) -> Answer {
    match decision {
        Ok(admitted) => Ok(Taken { at: admitted.at, remaining: admitted.remaining }),
        Err(denied) => Err(denied.retry_after().expect("no model asks for more than the limit")),
    }
}

/// Far from the origin, so that an unused state lies behind it.
const NOW: Nanos = Nanos::from_secs(100);
