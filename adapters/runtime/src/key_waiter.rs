//! How a future waits for one of many keys.

use alloc::sync::Arc;
use core::cell::RefCell;
use core::fmt;
use core::task::Waker;
use core::time::Duration;

use lock_api::RawMutex;
use sluicegate_core::{Admitted, Decision, Denied, Nanos};

use crate::keyed::{Inner, KeyQueue};
use crate::runtime::Runtime;
use crate::store::Store;
use crate::waitable::{Entered, Looked, Waitable};

/// How a waiting future refers to one key of a store: it shares the store, and can go to another task.
pub struct KeyWaiter<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    inner: Arc<Inner<T, R, M>>,
    key: T::Key,
    /// For as long as it waits.
    queue: RefCell<Option<KeyQueue<T, R, M>>>,
}

impl<T, R, M> Waitable for KeyWaiter<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    type Cost = u64;
    type Grant = Admitted;
    type Denial = Denied;
    type Runtime = R;

    fn runtime(&self) -> &R {
        &self.inner.runtime
    }

    fn relief(&self) -> Option<Duration> {
        self.inner.options.relief
    }

    fn take_unless_others_wait(&self, cost: u64) -> Option<Decision> {
        let queue = self.inner.queue_of(&self.key);
        if let Ok(Some(queue)) = queue {
            self.inner.forget_if_idle(queue);
            return None;
        }
        let now = self.inner.runtime.now();
        let decision = queue.and_then(|_| self.inner.store.take_at(&self.key, now, cost));
        if decision.as_ref().is_err_and(|denied| !denied.is_final()) {
            return None;
        }
        self.inner.store.tell(&self.key, now, cost, decision.as_ref().map_err(|denied| *denied));
        Some(decision)
    }

    fn enter(
        &self,
        place: &mut Option<u32>,
        now: Nanos,
        cost: u64,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<Entered<Self>, Denied> {
        let queue = self
            .inner
            .join(&self.key)
            .inspect_err(|denied| self.inner.store.tell(&self.key, now, cost, Err(*denied)))?;
        let entered = self.queue.borrow_mut().insert(queue).enter(place, now, cost, deadline, waker);
        if matches!(entered, Err(_) | Ok((_, Looked::Over(_)))) {
            self.forget_queue();
        }
        entered
    }

    fn look(&self, place: &mut Option<u32>, is_in_charge: bool, waker: &Waker) -> Looked<Decision> {
        let looked = match &*self.queue.borrow() {
            Some(queue) => queue.look(place, is_in_charge, waker),
            // Only who has entered has a place.
            None => Looked::Over(Err(Denied::Closed)),
        };
        if let Looked::Over(_) = looked {
            self.forget_queue();
        }
        looked
    }

    fn leave(&self, place: u32) {
        if let Some(queue) = &*self.queue.borrow() {
            queue.leave(place);
        }
    }

    fn give_back(&self, cost: u64, _grant: Admitted) {
        self.inner.give_back(&self.key, cost);
    }
}

impl<T, R, M> KeyWaiter<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    pub(crate) const fn new(inner: Arc<Inner<T, R, M>>, key: T::Key) -> Self {
        Self { inner, key, queue: RefCell::new(None) }
    }

    /// It waits no more.
    fn forget_queue(&self) {
        let queue = self.queue.take();
        if let Some(queue) = queue {
            self.inner.forget_if_idle(queue);
        }
    }
}

impl<T, R, M> Drop for KeyWaiter<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    fn drop(&mut self) {
        self.forget_queue();
    }
}

impl<T, R, M> fmt::Debug for KeyWaiter<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyWaiter").finish_non_exhaustive()
    }
}
