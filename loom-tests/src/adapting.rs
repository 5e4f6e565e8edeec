//! Bodies of the models of a concurrency limit that adapts itself. Bounds and costs are beside the tests that run them.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::sync::Arc;

use sluicegate_core::{
    AdaptiveConcurrency, Clock, ClosedWindow, ConcurrencyController, ConcurrencyLaw, ConcurrencyLimit, Nanos, Permit,
    SampleOptions,
};

use crate::{ModelMutex, promise, race2};

/// A limit that goes up by one with each window, right or wrong.
pub trait Adapting: Send + Sync + 'static {
    /// What was taken.
    type Permit: Send + 'static;
    /// A limit of [`FIRST`], whose windows have so many samples.
    fn new(samples: u32) -> Self;
    /// Takes one, or nothing.
    fn try_acquire(&self) -> Option<Self::Permit>;
    /// Gives it back, as one that has succeeded.
    fn success(permit: Self::Permit);
    /// Sets the limit by hand.
    fn set_limit(&self, limit: u32);
    /// What is in use, and the limit.
    fn usage(&self) -> (u32, u32);
    /// How many windows its law has gone by, and which limit it came to.
    fn law(&self) -> (u64, u32);
}

/// Two releases race to close one window: its law goes by it once, and the other one is in the next window.
pub fn window_closed_by_two<A: Adapting>() {
    let limit = Arc::new(A::new(2));
    let [first, a, b] = [(); 3].map(|()| take(&*limit));
    A::success(first);
    race2(&limit, |_| A::success(a), |_| A::success(b));
    promise!(limit.law() == (1, FIRST + 1), "one window was closed: {:?}", limit.law());
    promise!(limit.usage() == (0, FIRST + 1), "and its limit is in force: {:?}", limit.usage());
    A::success(take(&*limit));
    promise!(limit.law().0 == 2, "nobody was left out of the next one: {:?}", limit.law());
}

/// Two releases close a window each: the limit in force is that of the later one.
pub fn two_windows_closed<A: Adapting>() {
    let limit = Arc::new(A::new(1));
    let [a, b] = [(); 2].map(|()| take(&*limit));
    race2(&limit, |_| A::success(a), |_| A::success(b));
    promise!(limit.law() == (2, FIRST + 2), "two windows were closed: {:?}", limit.law());
    promise!(limit.usage() == (0, FIRST + 2), "the older limit came last: {:?}", limit.usage());
}

/// A release closes a window while the limit is set to nothing by hand: that stays, whoever comes first.
pub fn closed_by_hand_against_a_window<A: Adapting>() {
    let limit = Arc::new(A::new(1));
    let permit = take(&*limit);
    race2(&limit, |_| A::success(permit), |limit: &A| limit.set_limit(0));
    promise!(limit.usage() == (0, 0), "it was closed by hand: {:?}", limit.usage());
}

fn take<A: Adapting>(limit: &A) -> A::Permit {
    limit.try_acquire().expect("nobody races yet")
}

/// The limit that each model begins with.
pub const FIRST: u32 = 3;

/// [`AdaptiveConcurrency`].
#[derive(Debug)]
pub struct CoreAdapting(Arc<Limit>);

/// What was taken from it.
#[derive(Debug)]
pub struct CorePermit(Permit<Arc<Limit>>);

type Limit = ConcurrencyLimit<AdaptiveConcurrency<ModelMutex, Rising, Stalled>>;

impl Adapting for CoreAdapting {
    type Permit = CorePermit;

    fn new(samples: u32) -> Self {
        let options = SampleOptions::new().lasting(Duration::ZERO, Duration::from_secs(1)).samples(samples);
        let window = options.build().expect("models use small windows");
        let adaptive = AdaptiveConcurrency::new(ConcurrencyController::new(window, Rising(FIRST)), Stalled);
        Self(Arc::new(adaptive.into_limit()))
    }

    fn try_acquire(&self) -> Option<Self::Permit> {
        self.0.try_acquire_owned(1).ok().map(CorePermit)
    }

    fn success(permit: Self::Permit) {
        permit.0.success();
    }

    fn set_limit(&self, limit: u32) {
        self.0.set_limit(limit);
    }

    fn usage(&self) -> (u32, u32) {
        let usage = self.0.usage();
        (usage.in_use, usage.limit)
    }

    fn law(&self) -> (u64, u32) {
        let controller = self.0.observer().controller();
        (controller.closed_windows(), controller.limit())
    }
}

/// Up by one with each window.
#[derive(Clone, Debug)]
struct Rising(u32);

impl ConcurrencyLaw for Rising {
    fn limit(&self) -> u32 {
        self.0
    }

    fn bounds(&self) -> RangeInclusive<u32> {
        1..=100
    }

    fn update(&mut self, _window: &ClosedWindow) -> u32 {
        self.0 += 1;
        self.0
    }
}

/// Not modelled: what is under test orders nothing by its clock.
#[derive(Debug)]
struct Stalled;

impl Clock for Stalled {
    fn now(&self) -> Nanos {
        Nanos::from_secs(1)
    }
}
