//! What the models ask of a store of keys that can be waited for, and the runtime's that answers.

use core::fmt;

use sluicegate_core::{Admitted, Denied, Limiter, Nanos, PER_HOUR, Quota, Rate, TokenBucket};
use sluicegate_runtime::{ManualRuntime, QueuedKeyed, Store, WaitOptions};

use crate::lock::{ModelMutex, SteppedMutex};
use crate::{Wait, promise};

/// One key of a store that can be waited for, right or wrong. Its clock stands, and every cost is 1.
pub trait KeyQueue: Send + Sync + 'static {
    /// One of which all is free, for which nobody waits, and whose locks were used.
    fn new(limit: u64) -> Self;
    /// Takes one now, and tells whether it was there.
    fn try_acquire(&self) -> bool;
    /// Waits for one.
    fn acquire(&self) -> Wait<()>;
    /// Gives one back.
    fn give_back(&self);
    /// Ends all waits.
    fn close(&self);
    /// What is free.
    fn free(&self) -> u64;
    /// How many queues there are: one while somebody waits.
    fn queues(&self) -> usize;
}

/// A [`QueuedKeyed`] store, whose lock can be taken by another right after it was opened: references are counted there.
pub struct RuntimeKeys(QueuedKeyed<OneBucket, ManualRuntime<ModelMutex>, SteppedMutex>);

impl KeyQueue for RuntimeKeys {
    fn new(limit: u64) -> Self {
        let rate = Rate::new(1, PER_HOUR).expect("one an hour is a rate");
        let quota = Quota::new(rate).and_then(|quota| quota.burst(limit)).expect("a few tokens are a quota");
        let store = OneBucket(TokenBucket::with_limit(quota.into(), ()));
        let keys = Self(QueuedKeyed::new(store, ManualRuntime::new(), WaitOptions::new().relief(None)));
        promise!(keys.queues() == 0, "nobody waits yet");
        keys
    }

    fn try_acquire(&self) -> bool {
        self.0.try_acquire(&KEY, 1).is_ok()
    }

    fn acquire(&self) -> Wait<()> {
        let acquire = self.0.acquire(KEY, 1);
        Box::pin(async move { acquire.await.map(drop) })
    }

    fn give_back(&self) {
        self.0.refund(&KEY, 1);
    }

    fn close(&self) {
        self.0.close();
    }

    fn free(&self) -> u64 {
        self.0.store().0.inspect_at(Nanos::ZERO).level
    }

    fn queues(&self) -> usize {
        self.0.waited_for()
    }
}

impl fmt::Debug for RuntimeKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeKeys").finish_non_exhaustive()
    }
}

/// A store of one key. What a store of many does has models of its own.
struct OneBucket(TokenBucket<()>);

impl Store for OneBucket {
    type Key = u8;

    fn hash(&self, key: &u8) -> u64 {
        u64::from(*key)
    }

    fn take_at(&self, _key: &u8, now: Nanos, cost: u64) -> Result<Admitted, Denied> {
        Limiter::take_at(&self.0, now, cost)
    }

    fn peek_at(&self, _key: &u8, now: Nanos, cost: u64) -> Result<(), Denied> {
        Limiter::peek_at(&self.0, now, cost).map(drop)
    }

    fn earliest_at(&self, _key: &u8, now: Nanos, total: u128) -> Option<Nanos> {
        Limiter::earliest_at(&self.0, now, total)
    }

    fn refund(&self, _key: &u8, cost: u64) -> bool {
        self.0.refund(cost);
        true
    }

    fn tell(&self, _key: &u8, _now: Nanos, _cost: u64, _decision: Result<&Admitted, Denied>) {}
}

const KEY: u8 = 1;
