//! Waiting for one of many keys.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use hashbrown::HashTable;
use lock_api::{Mutex, RawMutex};
use sluicegate_core::{Admitted, Decision, Denied, Nanos};

use crate::acquire::{Acquire, Until};
use crate::finally::{Finally, for_all};
use crate::grant::Grantor;
use crate::key_waiter::KeyWaiter;
use crate::options::WaitOptions;
use crate::queued::Queued;
use crate::room::Growing;
use crate::runtime::Runtime;
use crate::store::Store;
use crate::sync::Waiting;

/// A store of keys whose tokens can be waited for, in order for each key.
///
/// A key for which nobody waits costs what it costs in the store. The first who has to wait makes a queue for its key, and the
/// last who leaves takes it away, so nothing is left when nobody waits.
///
/// Each queue is as [`Queued`] says, with the same options for all keys; [`WaitOptions::bound`] holds for each key, and
/// [`most_keys`](Self::most_keys) for how many are waited for at once. The store's own clock is not read: the runtime's is.
///
/// # Cancel safety
///
/// As of [`Queued`]: a future that is dropped has taken nothing, and the last of a key takes its queue away.
///
/// # Complexity
///
/// As the store, and one load, for a key where nobody waits for any; where somebody does, a lookup under the lock of the queues. O(n) of
/// the keys that are waited for: [`recheck_all`](Self::recheck_all), [`close`](Self::close).
///
/// # Example
///
/// ```
/// # use core::{future::Future, pin::pin, task::{Context, Waker}, time::Duration};
/// use std::hash::RandomState;
/// use parking_lot::{RawMutex, RawRwLock};
/// use sluicegate_runtime::{KeyedTokenBucket, ManualRuntime, QueuedKeyed, WaitOptions, quota};
///
/// let time = ManualRuntime::<RawMutex>::new();
/// let store: KeyedTokenBucket<&str, RawRwLock, RandomState, ()> =
///     KeyedTokenBucket::with_parts(quota!("1/1m"), RandomState::new(), ());
/// let logins: QueuedKeyed<_, _, RawMutex> = QueuedKeyed::new(store, time.clone(), WaitOptions::new());
///
/// assert!(logins.try_acquire(&"ada", 1).is_ok());
/// let mut ada = pin!(logins.acquire("ada", 1));
/// # let mut context = Context::from_waker(Waker::noop());
/// assert!(ada.as_mut().poll(&mut context).is_pending());
/// assert!(logins.try_acquire(&"grace", 1).is_ok());
/// time.advance(Duration::from_secs(60));
/// assert!(ada.as_mut().poll(&mut context).is_ready());
/// assert_eq!(logins.waited_for(), 0);
/// ```
pub struct QueuedKeyed<T: Store, R, M> {
    inner: Arc<Inner<T, R, M>>,
}

pub(crate) struct Inner<T: Store, R, M> {
    pub(crate) store: T,
    pub(crate) runtime: R,
    pub(crate) options: WaitOptions,
    waiting: Waiting,
    queues: Mutex<M, Queues<T, R, M>>,
}

struct Queues<T: Store, R, M> {
    table: HashTable<KeyQueue<T, R, M>>,
    is_closed: bool,
    most: usize,
}

pub(crate) type KeyQueue<T, R, M> = Arc<Queued<OneKey<T, R, M>, R, M, Growing>>;

/// One key of a store, as its queue asks for it.
pub struct OneKey<T: Store, R, M> {
    inner: Arc<Inner<T, R, M>>,
    key: T::Key,
}

impl<T: Store, R, M> Grantor for OneKey<T, R, M> {
    type Cost = u64;
    type Grant = Admitted;
    type Denial = Denied;

    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        self.inner.store.take_at(&self.key, now, cost)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), Denied> {
        self.inner.store.peek_at(&self.key, now, cost)
    }

    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        self.inner.store.earliest_at(&self.key, now, total)
    }

    fn denial(&self, _now: Nanos, _total: u128, denied: Denied) -> Denied {
        denied
    }

    fn give_back(&self, cost: u64, _grant: Admitted) {
        self.inner.store.refund(&self.key, cost);
    }

    fn tell(&self, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>) {
        self.inner.store.tell(&self.key, now, cost, decision);
    }
}

impl<T, R, M> QueuedKeyed<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    /// Nobody waits yet for any key of `store`.
    pub fn new(store: T, runtime: R, options: WaitOptions) -> Self {
        let queues = Mutex::new(Queues { table: HashTable::new(), is_closed: false, most: MOST_KEYS });
        let inner = Inner { store, runtime, options, waiting: Waiting::none(), queues };
        Self { inner: Arc::new(inner) }
    }

    /// The same, where so many keys are waited for at most, 65 536 by default; whoever would have to wait for one more is
    /// [`Denied::QueueFull`].
    #[must_use]
    pub fn most_keys(self, most: usize) -> Self {
        self.inner.queues.lock().most = most;
        self
    }

    /// The store. What is changed there past this type is seen by those who wait at the turn they expected.
    pub fn store(&self) -> &T {
        &self.inner.store
    }

    /// The executor's clock and timer.
    pub fn runtime(&self) -> &R {
        &self.inner.runtime
    }

    /// How many keys are waited for.
    pub fn waited_for(&self) -> usize {
        self.inner.queues.lock().table.len()
    }

    /// Takes `cost` of `key` now, or nothing; never waits.
    ///
    /// # Errors
    /// As [`Queued::try_acquire`].
    pub fn try_acquire(&self, key: &T::Key, cost: u64) -> Decision {
        let queue = self.inner.queue_of(key);
        if let Ok(Some(queue)) = queue {
            let decision = queue.try_acquire(cost);
            self.inner.forget_if_idle(queue);
            return decision;
        }
        let now = self.inner.runtime.now();
        let decision = queue.and_then(|_| self.inner.store.take_at(key, now, cost));
        self.inner.store.tell(key, now, cost, decision.as_ref().map_err(|denied| *denied));
        decision
    }

    /// Waits until `cost` of `key` can be taken, as [`Queued::acquire`] does.
    ///
    /// # Errors
    /// As that; [`Denied::QueueFull`] also where too many keys are waited for, and [`Denied::TooManyKeys`] as the store says.
    pub fn acquire(&self, key: T::Key, cost: u64) -> Acquire<KeyWaiter<T, R, M>> {
        self.wait(key, cost, Until::Ever)
    }

    /// Waits no longer than `timeout`, as [`Queued::acquire_timeout`] does.
    ///
    /// # Errors
    /// As that; [`Denied::QueueFull`] also where too many keys are waited for, and [`Denied::TooManyKeys`] as the store says.
    pub fn acquire_timeout(&self, key: T::Key, cost: u64, timeout: Duration) -> Acquire<KeyWaiter<T, R, M>> {
        self.wait(key, cost, Until::After(timeout))
    }

    /// Waits no longer than until `deadline`, as [`Queued::acquire_deadline`] does.
    ///
    /// # Errors
    /// As that; [`Denied::QueueFull`] also where too many keys are waited for, and [`Denied::TooManyKeys`] as the store says.
    pub fn acquire_deadline(&self, key: T::Key, cost: u64, deadline: Nanos) -> Acquire<KeyWaiter<T, R, M>> {
        self.wait(key, cost, Until::At(deadline))
    }

    fn wait(&self, key: T::Key, cost: u64, until: Until) -> Acquire<KeyWaiter<T, R, M>> {
        Acquire::new(KeyWaiter::new(Arc::clone(&self.inner), key), cost, until)
    }

    /// Gives `cost` of `key` back, as the store's `refund`, and wakes those who can go with it.
    pub fn refund(&self, key: &T::Key, cost: u64) -> bool {
        self.inner.give_back(key, cost)
    }

    /// Lets all go who wait for `key` and can, and tells those who never will, after the store was changed past this type.
    pub fn recheck(&self, key: &T::Key) {
        self.inner.recheck(key);
    }

    /// Lets all go who wait for any key and can, and tells those who never will, after the store's quotas were changed past this type.
    pub fn recheck_all(&self) {
        if self.inner.waiting.is_none_after_change() {
            return;
        }
        let queues = self.inner.queues.lock().all();
        for_all(queues, |queue| {
            queue.recheck();
            self.inner.forget_if_idle(queue);
        });
    }

    /// Ends all waits for any key, and all that are to come, with [`Denied::Closed`]. What was granted stays granted.
    pub fn close(&self) {
        let queues = {
            let mut queues = self.inner.queues.lock();
            queues.is_closed = true;
            self.inner.waiting.set(queues.count());
            queues.all()
        };
        for_all(queues, |queue| {
            queue.close();
            self.inner.forget_if_idle(queue);
        });
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.inner.queues.lock().is_closed
    }
}

impl<T: Store, R, M> Queues<T, R, M> {
    fn all(&self) -> Vec<KeyQueue<T, R, M>> {
        self.table.iter().cloned().collect()
    }

    /// How many there are. A store that was closed counts as one that is always waited for, so that everybody looks.
    fn count(&self) -> usize {
        self.table.len() + usize::from(self.is_closed)
    }
}

impl<T, R, M> Inner<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    pub(crate) fn give_back(&self, key: &T::Key, cost: u64) -> bool {
        let _next = Finally(|| self.recheck(key));
        self.store.refund(key, cost)
    }

    fn recheck(&self, key: &T::Key) {
        if !self.waiting.is_none_after_change() {
            if let Ok(Some(queue)) = self.queue_of(key) {
                queue.recheck();
                self.forget_if_idle(queue);
            }
        }
    }

    /// The queue of a key for which somebody waits. Whoever is given it calls `forget_if_idle` with it afterwards, because the last
    /// waiter may have left meanwhile and found that somebody else refers to it.
    ///
    /// # Errors
    /// [`Denied::Closed`] once closed.
    pub(crate) fn queue_of(&self, key: &T::Key) -> Result<Option<KeyQueue<T, R, M>>, Denied> {
        if self.waiting.is_none() {
            return Ok(None);
        }
        let hash = self.store.hash(key);
        let queues = self.queues.lock();
        if queues.is_closed {
            return Err(Denied::Closed);
        }
        Ok(queues.table.find(hash, |queue| queue.limiter().key == *key).cloned())
    }

    /// The same, made if there is none.
    ///
    /// # Errors
    /// [`Denied::Closed`] once closed, and [`Denied::QueueFull`] where no more keys may be waited for.
    pub(crate) fn join(self: &Arc<Self>, key: &T::Key) -> Result<KeyQueue<T, R, M>, Denied> {
        let hash = self.store.hash(key);
        let mut queues = self.queues.lock();
        if queues.is_closed {
            return Err(Denied::Closed);
        }
        if let Some(queue) = queues.table.find(hash, |queue| queue.limiter().key == *key) {
            return Ok(Arc::clone(queue));
        }
        if queues.table.len() >= queues.most {
            return Err(Denied::QueueFull);
        }
        let one = OneKey { inner: Arc::clone(self), key: key.clone() };
        let queue = Arc::new(Queued::new(one, self.runtime.clone(), self.options));
        queues.table.insert_unique(hash, Arc::clone(&queue), |queue| self.store.hash(&queue.limiter().key));
        self.waiting.set(queues.count());
        Ok(queue)
    }

    /// Gives a reference to a queue up, and takes the queue away if that was the last one: whoever waits in it has one, and one is
    /// only had and given up under the lock, so that of two who give up at once the second is seen to be the last.
    pub(crate) fn forget_if_idle(&self, queue: KeyQueue<T, R, M>) {
        let mut queues = self.queues.lock();
        if Arc::strong_count(&queue) > 2 {
            drop(queue);
            return;
        }
        let hash = self.store.hash(&queue.limiter().key);
        let gone = queues.table.find_entry(hash, |other| Arc::ptr_eq(other, &queue)).ok().map(|entry| entry.remove().0);
        if queues.table.is_empty() {
            queues.table = HashTable::new();
        }
        self.waiting.set(queues.count());
        // A key may run code of its own when it is dropped.
        drop(queues);
        drop(gone);
    }
}

impl<T: Store + fmt::Debug, R, M> fmt::Debug for QueuedKeyed<T, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedKeyed").field("store", &self.inner.store).finish_non_exhaustive()
    }
}

impl<T: Store, R, M> fmt::Debug for OneKey<T, R, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneKey").finish_non_exhaustive()
    }
}

impl<T: Store, R, M> Clone for QueuedKeyed<T, R, M> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

/// Each is a queue of some hundred bytes and those who wait in it.
const MOST_KEYS: usize = 65_536;
