//! What the models ask of a limiter that can be waited for, and the runtime's that answer.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;
use std::task::Wake;

use sluicegate_core::{
    AdjustableBucket, Admitted, Clock, ConcurrencyLimit, Denied, Limit, Limiter, PER_SECOND, Quota, Rate, TokenBucket,
};
use sluicegate_runtime::{
    Grantor, Growing, ManualRuntime, Queued, QueuedPermits, WaitOptions, WaitedPermit, WaitedReservation,
};

use crate::lock::ModelMutex;
use crate::promise;
use crate::shim::AtomicU64;

/// A limiter that can be waited for, right or wrong. Its clock stands but for [`tick`](Self::tick), and nobody but whoever is in
/// charge of time looks by itself.
pub trait Queue: Send + Sync + 'static {
    /// What was granted.
    type Held: Send + 'static;
    /// One of which all is free, for which nobody waits, and whose locks were used. A bucket gets a token a second.
    fn with(limit: u64, ways: Ways) -> Self;
    /// The same with nothing out of the ordinary.
    fn new(limit: u64) -> Self
    where
        Self: Sized,
    {
        Self::with(limit, Ways::default())
    }
    /// Takes `cost` now, or nothing.
    fn try_acquire(&self, cost: u64) -> Option<Self::Held>;
    /// Waits for `cost`, for no longer than so many seconds.
    fn acquire(&self, cost: u64, timeout: Option<u64>) -> Wait<Self::Held>;
    /// Gives back what was granted.
    fn give_back(&self, held: Self::Held);
    /// Ends all waits.
    fn close(&self);
    /// A second passes.
    fn tick(&self);
    /// What is free.
    fn free(&self) -> u64;
    /// How many sleep.
    fn sleepers(&self) -> usize;
}

/// A limiter from which tokens can be reserved, right or wrong: what is granted is held until it is settled.
pub trait Reserving: Queue {
    /// Ends a reservation of which so much was spent.
    fn settle(&self, held: Self::Held, spent: u64);
}

/// How a queue treats those who wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    /// How many seconds after its turn a waiter minds the time for all.
    pub relief: Option<u64>,
    /// How many wait at most; the oldest of them makes room.
    pub bound: Option<u64>,
    /// Whether the newest goes first.
    pub is_newest_first: bool,
}

/// A wait that has not begun.
pub type Wait<H> = Pin<Box<dyn Future<Output = Result<H, Denied>> + Send>>;

/// Somebody who waits, and is polled when it was woken.
pub struct Waiter<H> {
    /// `None` once it is over.
    wait: Option<Wait<H>>,
    answer: Option<Result<H, Denied>>,
    woken: Arc<Woken>,
}

struct Woken(AtomicU64);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // As executors do: whoever is polled sees what was done before it was woken.
        self.0.store(1, Release);
    }
}

impl<H> Waiter<H> {
    /// Begins to wait: polls once.
    pub fn begin(wait: Wait<H>) -> Self {
        let mut waiter = Self { wait: Some(wait), answer: None, woken: Arc::new(Woken(AtomicU64::new(0))) };
        waiter.poll();
        waiter
    }

    /// Polls for as long as it was woken meanwhile.
    pub fn run(&mut self) {
        while self.wait.is_some() && self.woken.0.compare_exchange(1, 0, Acquire, Relaxed).is_ok() {
            self.poll();
        }
    }

    /// What it was told, if its wait is over.
    pub fn answer(&self) -> Option<Result<(), Denied>> {
        self.answer.as_ref().map(|answer| answer.as_ref().map(drop).map_err(|denied| *denied))
    }

    /// Whether it has what it waited for.
    pub fn is_granted(&self) -> bool {
        matches!(self.answer, Some(Ok(_)))
    }

    fn poll(&mut self) {
        let Some(wait) = &mut self.wait else { return };
        let waker = Waker::from(Arc::clone(&self.woken));
        if let Poll::Ready(answer) = wait.as_mut().poll(&mut Context::from_waker(&waker)) {
            self.answer = Some(answer);
            self.wait = None;
        }
    }
}

impl<H> fmt::Debug for Waiter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("answer", &self.answer()).finish_non_exhaustive()
    }
}

type Time = ManualRuntime<ModelMutex>;

/// A [`Queued`] [`TokenBucket`].
pub type RuntimeBucket = Tokens<TokenBucket<()>>;
/// A [`Queued`] [`AdjustableBucket`], which holds what a waiter has not fetched.
pub type RuntimeAdjustable = Tokens<AdjustableBucket<()>>;

/// A [`Queued`] bucket.
#[derive(Debug)]
pub struct Tokens<L: Grantor>(Arc<Queued<L, Time, ModelMutex, Growing>>);

/// What a bucket is made of.
pub trait FromLimit {
    /// A full one.
    fn from_limit(limit: Limit) -> Self;
}

impl FromLimit for TokenBucket<()> {
    fn from_limit(limit: Limit) -> Self {
        Self::with_limit(limit, ())
    }
}

impl FromLimit for AdjustableBucket<()> {
    fn from_limit(limit: Limit) -> Self {
        Self::with_limit(limit, ())
    }
}

impl<L> Queue for Tokens<L>
where
    L: Grantor<Cost = u64, Grant = Admitted, Denial = Denied> + Limiter + FromLimit + Send + Sync + 'static,
{
    type Held = (u64, Admitted);

    fn with(limit: u64, ways: Ways) -> Self {
        Self(used(Queued::new(L::from_limit(quota(limit).into()), Time::new(), options(ways))))
    }

    fn try_acquire(&self, cost: u64) -> Option<Self::Held> {
        self.0.try_acquire(cost).ok().map(|admitted| (cost, admitted))
    }

    fn acquire(&self, cost: u64, timeout: Option<u64>) -> Wait<Self::Held> {
        let acquire = match timeout {
            Some(seconds) => self.0.acquire_timeout_owned(cost, Duration::from_secs(seconds)),
            None => self.0.acquire_owned(cost),
        };
        Box::pin(async move { acquire.await.map(|admitted| (cost, admitted)) })
    }

    fn give_back(&self, (cost, admitted): Self::Held) {
        self.0.give_back(cost, admitted);
    }

    fn close(&self) {
        self.0.close();
    }

    fn tick(&self) {
        self.0.runtime().advance(SECOND);
    }

    fn free(&self) -> u64 {
        self.0.limiter().inspect_at(self.0.runtime().now()).level
    }

    fn sleepers(&self) -> usize {
        self.0.runtime().sleepers()
    }
}

/// A [`Queued`] [`ConcurrencyLimit`].
#[derive(Debug)]
pub struct RuntimePermits(Arc<QueuedPermits<Time, ModelMutex, Growing>>);

impl Queue for RuntimePermits {
    type Held = WaitedPermit<Arc<QueuedPermits<Time, ModelMutex, Growing>>>;

    fn with(limit: u64, ways: Ways) -> Self {
        let limit = ConcurrencyLimit::new(limit.try_into().expect("a few permits"));
        let limiter = QueuedPermits::new(limit, Time::new(), options(ways));
        promise!(limiter.waiters() == 0 && limiter.runtime().sleepers() == 0, "nobody waits yet");
        Self(Arc::new(limiter))
    }

    fn try_acquire(&self, cost: u64) -> Option<Self::Held> {
        let mut taken = Waiter::begin(self.acquire(cost, Some(0)));
        taken.answer.take()?.ok()
    }

    fn acquire(&self, cost: u64, timeout: Option<u64>) -> Wait<Self::Held> {
        match timeout {
            Some(seconds) => Box::pin(self.0.acquire_permit_timeout_owned(cost, Duration::from_secs(seconds))),
            None => Box::pin(self.0.acquire_permit_owned(cost)),
        }
    }

    fn give_back(&self, held: Self::Held) {
        drop(held);
    }

    fn close(&self) {
        self.0.close();
    }

    fn tick(&self) {
        self.0.runtime().advance(SECOND);
    }

    fn free(&self) -> u64 {
        let usage = self.0.usage();
        u64::from(usage.limit) - u64::from(usage.in_use)
    }

    fn sleepers(&self) -> usize {
        self.0.runtime().sleepers()
    }
}

/// The reservations of a [`Queued`] [`AdjustableBucket`].
#[derive(Debug)]
pub struct RuntimeReservations(Arc<Reservable>);

type Reservable = Queued<AdjustableBucket<()>, Time, ModelMutex, Growing>;

impl Queue for RuntimeReservations {
    type Held = WaitedReservation<Arc<Reservable>>;

    fn with(limit: u64, ways: Ways) -> Self {
        Self(used(Queued::new(AdjustableBucket::with_limit(quota(limit).into(), ()), Time::new(), options(ways))))
    }

    fn try_acquire(&self, cost: u64) -> Option<Self::Held> {
        self.0.try_reserve_owned(cost).ok()
    }

    fn acquire(&self, cost: u64, timeout: Option<u64>) -> Wait<Self::Held> {
        match timeout {
            Some(seconds) => Box::pin(self.0.reserve_timeout_owned(cost, Duration::from_secs(seconds))),
            None => Box::pin(self.0.reserve_owned(cost)),
        }
    }

    fn give_back(&self, held: Self::Held) {
        held.cancel();
    }

    fn close(&self) {
        self.0.close();
    }

    fn tick(&self) {
        self.0.runtime().advance(SECOND);
    }

    fn free(&self) -> u64 {
        self.0.limiter().inspect_at(self.0.runtime().now()).level
    }

    fn sleepers(&self) -> usize {
        self.0.runtime().sleepers()
    }
}

impl Reserving for RuntimeReservations {
    fn settle(&self, held: Self::Held, spent: u64) {
        promise!(held.settle(spent).unpaid == 0, "no more is spent than was held");
    }
}

/// One a second.
fn quota(limit: u64) -> Quota {
    let rate = Rate::new(1, PER_SECOND).expect("one a second is a rate");
    Quota::new(rate).and_then(|quota| quota.burst(limit)).expect("a few tokens are a quota")
}

/// Its locks have been used, and so made, before anybody races.
fn used<L: Grantor>(queued: Queued<L, Time, ModelMutex, Growing>) -> Arc<Queued<L, Time, ModelMutex, Growing>> {
    promise!(queued.waiters() == 0 && queued.runtime().sleepers() == 0, "nobody waits yet");
    Arc::new(queued)
}

fn options(ways: Ways) -> WaitOptions {
    let options = WaitOptions::new().relief(ways.relief.map(Duration::from_secs)).newest_first(ways.is_newest_first);
    match ways.bound {
        Some(bound) => options.bound(bound.try_into().expect("a few waiters")).evict_oldest(true),
        None => options,
    }
}

const SECOND: Duration = Duration::from_secs(1);
