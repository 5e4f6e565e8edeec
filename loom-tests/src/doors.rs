//! What the models ask of a limiter, and core's limiters that answer.

use core::cell::Cell;
use core::num::NonZeroUsize;
use core::time::Duration;

use sluicegate_core::{
    Decision, ManualClock, Nanos, PER_SECOND, Quota, Rate, Remaining, Shard, ShardId, ShardedWindow, TokenBucket,
    WindowLimit,
};

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

/// The shard number that the calling thread chose last: a limiter has one source of numbers, and a model says who sits
/// where.
#[derive(Clone, Copy, Debug)]
pub struct Seat;

impl Seat {
    /// Sits the calling thread down at `seat`.
    pub fn take(seat: usize) {
        SEAT.with(|chosen| chosen.set(seat));
    }
}

impl ShardId for Seat {
    fn shard(&self) -> usize {
        SEAT.with(Cell::get)
    }

    fn give_way(&self, attempt: u32) {
        give_way(attempt);
    }
}

thread_local! {
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro knows no constants")]
    static SEAT: Cell<usize> = Cell::new(0);
}

fn answer(decision: Decision) -> Answer {
    match decision {
        Ok(admitted) => Ok(Taken { at: admitted.at, remaining: admitted.remaining }),
        Err(denied) => Err(denied.retry_after().expect("no model asks for more than the limit")),
    }
}
