//! Who is asked for accuracy: ours and every rival whose clock can be given.

use alloc::boxed::Box;
use alloc::rc::Rc;
use core::cell::Cell;
use core::time::Duration;

use better_bucket::{BucketConfig, BucketCore};
use governor::Quota;
use parking_lot::RawRwLock;
use sluicegate_threads::sluicegate_core::{AdjustableBucket, KeyedTokenBucket, TokenBucket};
use sluicegate_threads::{ManualClock, Nanos, SeededState};

use super::grid::Grid;
use crate::rival;

/// Takes `cost` tokens at a reading, or none.
pub trait Asked {
    /// Whether it was admitted.
    fn take(&mut self, now: u64, cost: u32) -> bool;

    /// In how many nanoseconds the limiter says to come back for as much, without changing anything; `None` if it does not say.
    fn hint(&mut self, _now: u64, _cost: u32) -> Option<u64> {
        None
    }
}

/// A limiter, new and full.
#[derive(Clone, Copy, Debug)]
pub struct Contestant {
    /// What it is.
    pub name: &'static str,
    /// A full one, whose clock begins at 0; `None` where it cannot express the grid.
    pub make: fn(&Grid) -> Option<Box<dyn Asked>>,
}

/// Sluicegate's buckets, which differ in what else they do.
pub const OURS: [Contestant; 3] = [
    Contestant {
        name: "`TokenBucket`",
        make: |grid| Some(Box::new(OursAsked(TokenBucket::with_clock(grid.quota(), ManualClock::new())))),
    },
    Contestant {
        name: "`AdjustableBucket`",
        make: |grid| Some(Box::new(OursAsked(AdjustableBucket::with_clock(grid.quota(), ManualClock::new())))),
    },
    Contestant {
        name: "`KeyedTokenBucket`",
        make: |grid| Some(Box::new(OfKey(Keyed::with_clock(grid.quota(), ManualClock::new())))),
    },
];

/// The rivals.
pub const RIVALS: [Contestant; 4] = [
    Contestant { name: "governor `per_second`", make: |grid| governed(grid, as_named) },
    Contestant { name: "governor `with_period`", make: |grid| governed(grid, nearest) },
    Contestant { name: "ratelimit", make: rate_limited },
    Contestant { name: "better-bucket", make: better },
];

struct OursAsked<L>(L);

impl<L: sluicegate_threads::Limiter> Asked for OursAsked<L> {
    fn take(&mut self, now: u64, cost: u32) -> bool {
        self.0.try_acquire_at(Nanos::new(now), cost.into()).is_ok()
    }

    fn hint(&mut self, now: u64, cost: u32) -> Option<u64> {
        let denied = self.0.peek_at(Nanos::new(now), cost.into()).err()?;
        denied.retry_after().map(nanos)
    }
}

type Keyed = KeyedTokenBucket<u64, RawRwLock, SeededState, ManualClock>;

struct OfKey(Keyed);

impl Asked for OfKey {
    fn take(&mut self, now: u64, cost: u32) -> bool {
        self.0.try_acquire_at(&7, Nanos::new(now), cost.into()).is_ok()
    }
}

/// `Quota::per_second`, `per_minute` or `per_hour` where one says just this, and otherwise the nearest period.
fn as_named(grid: &Grid) -> Option<Quota> {
    let tokens = rival::count(grid.tokens);
    match grid.period / 1_000_000_000 {
        1 => Some(Quota::per_second(tokens)),
        60 => Some(Quota::per_minute(tokens)),
        3_600 => Some(Quota::per_hour(tokens)),
        _ => nearest(grid),
    }
}

/// The nearest whole number of nanoseconds per token, which is all that governor can express.
fn nearest(grid: &Grid) -> Option<Quota> {
    let tokens = u64::from(grid.tokens);
    Quota::with_period(Duration::from_nanos((grid.period + tokens / 2) / tokens))
}

fn governed(grid: &Grid, quota: fn(&Grid) -> Option<Quota>) -> Option<Box<dyn Asked>> {
    let reading: &'static Cell<u64> = Box::leak(Box::new(Cell::new(0)));
    let quota = quota(grid)?.allow_burst(rival::count(grid.burst));
    Some(Box::new(Governed { limiter: rival::given(quota, reading), reading }))
}

struct Governed {
    limiter: rival::Direct<rival::Given<'static, 77>>,
    reading: &'static Cell<u64>,
}

impl Asked for Governed {
    fn take(&mut self, now: u64, cost: u32) -> bool {
        self.reading.set(now);
        matches!(self.limiter.check_n(rival::count(cost)), Ok(Ok(())))
    }

    fn hint(&mut self, now: u64, cost: u32) -> Option<u64> {
        use governor::clock::Clock as _;
        self.reading.set(now);
        let denied = self.limiter.check_n(rival::count(cost)).ok()?.err()?;
        Some(nanos(denied.wait_time_from(rival::Given::<77>(self.reading).now())))
    }
}

fn rate_limited(grid: &Grid) -> Option<Box<dyn Asked>> {
    let reading = Rc::new(Cell::new(0));
    let limiter = ratelimit::Builder::with_clock(grid.tokens.into(), Shared(Rc::clone(&reading)))
        .period(Duration::from_nanos(grid.period))
        .max_tokens(grid.burst.into())
        .initial_available(grid.burst.into())
        .build()
        .ok()?;
    Some(Box::new(RateLimited { limiter, reading }))
}

struct Shared(Rc<Cell<u64>>);

impl ratelimit::Clock for Shared {
    fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.0.get())
    }
}

struct RateLimited {
    limiter: ratelimit::Ratelimiter<Shared>,
    reading: Rc<Cell<u64>>,
}

impl Asked for RateLimited {
    fn take(&mut self, now: u64, cost: u32) -> bool {
        self.reading.set(now);
        self.limiter.try_wait_n(cost.into()).is_ok()
    }

    fn hint(&mut self, now: u64, cost: u32) -> Option<u64> {
        self.reading.set(now);
        match self.limiter.try_wait_n(cost.into()) {
            Err(ratelimit::TryWaitError::Insufficient(wait)) => Some(nanos(wait)),
            _ => None,
        }
    }
}

fn better(grid: &Grid) -> Option<Box<dyn Asked>> {
    let period = Duration::from_nanos(grid.period);
    let config = BucketConfig::new(grid.burst, grid.tokens, period, grid.burst).ok()?;
    Some(Box::new(Better(BucketCore::new(config, Duration::ZERO))))
}

struct Better(BucketCore);

impl Asked for Better {
    fn take(&mut self, now: u64, cost: u32) -> bool {
        self.0.try_acquire_at(cost, Duration::from_nanos(now))
    }

    fn hint(&mut self, now: u64, cost: u32) -> Option<u64> {
        self.0.acquire_at(cost, Duration::from_nanos(now)).retry_after().map(nanos)
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
