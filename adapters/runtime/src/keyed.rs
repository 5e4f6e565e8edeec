//! Waiting for one of many keys.

use alloc::sync::Arc;
use core::cell::OnceCell;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::task::Waker;
use core::time::Duration;

use hashbrown::HashTable;
use lock_api::{Mutex, RawMutex, RawRwLock};
use sluicegate_core::{Admitted, Decision, Denied, KeyedTokenBucket, Limiter, Nanos, Observer, Quotas};

use crate::acquire::{Acquire, Until};
use crate::grant::Grantor;
use crate::options::WaitOptions;
use crate::queued::Queued;
use crate::room::Growing;
use crate::runtime::Runtime;
use crate::sync::Waiting;
use crate::waitable::{Looked, Waitable};

/// A store of keys, as those who wait for one ask it. Its own clock is never read.
pub trait Store {
    /// What it keeps tokens for.
    type Key: Eq + Clone;

    /// The hash of a key, by the store's hasher.
    fn hash(&self, key: &Self::Key) -> u64;

    /// Takes `cost` of `key`, or nothing, and tells no observer.
    ///
    /// # Errors
    /// Why not.
    fn take_at(&self, key: &Self::Key, now: Nanos, cost: u64) -> Decision;

    /// What `take_at` would answer.
    ///
    /// # Errors
    /// As `take_at`.
    fn peek_at(&self, key: &Self::Key, now: Nanos, cost: u64) -> Result<(), Denied>;

    /// As [`Limiter::earliest_at`].
    fn earliest_at(&self, key: &Self::Key, now: Nanos, total: u128) -> Option<Nanos>;

    /// Gives `cost` of `key` back, and tells whether it is there.
    fn refund(&self, key: &Self::Key, cost: u64) -> bool;

    /// Tells the observer of a decision that stands.
    fn tell(&self, key: &Self::Key, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>);
}

impl<K, L, S, C, O, Q> Store for KeyedTokenBucket<K, L, S, C, O, Q>
where
    K: Hash + Eq + Clone,
    L: RawRwLock,
    S: BuildHasher,
    O: Observer,
    Q: Quotas,
{
    type Key = K;

    fn hash(&self, key: &K) -> u64 {
        self.hasher().hash_one(key)
    }

    #[inline]
    fn take_at(&self, key: &K, now: Nanos, cost: u64) -> Decision {
        Limiter::take_at(&self.key(key), now, cost)
    }

    #[inline]
    fn peek_at(&self, key: &K, now: Nanos, cost: u64) -> Result<(), Denied> {
        Limiter::peek_at(&self.key(key), now, cost).map(drop)
    }

    fn earliest_at(&self, key: &K, now: Nanos, total: u128) -> Option<Nanos> {
        Limiter::earliest_at(&self.key(key), now, total)
    }

    fn refund(&self, key: &K, cost: u64) -> bool {
        self.refund(key, cost)
    }

    #[inline]
    fn tell(&self, key: &K, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>) {
        Limiter::tell(&self.key(key), now, cost, &decision.copied());
    }
}

/// A store of keys whose tokens can be waited for, in order for each key.
///
/// A key for which nobody waits costs what it costs in the store. The first who has to wait makes a queue for its key, and the
/// last who leaves takes it away, so nothing is left when nobody waits.
///
/// Each queue is as [`Queued`] says, with the same options for all keys; [`WaitOptions::bound`] holds for each key, and
/// [`most_keys`](Self::most_keys) for how many are waited for at once. The store's own clock is not read: the runtime's is.
pub struct QueuedKeyed<T: Store, R, M> {
    inner: Arc<Inner<T, R, M>>,
}

struct Inner<T: Store, R, M> {
    store: T,
    runtime: R,
    options: WaitOptions,
    most_keys: usize,
    waiting: Waiting,
    queues: Mutex<M, HashTable<KeyQueue<T, R, M>>>,
}

type KeyQueue<T, R, M> = Arc<Queued<OneKey<T, R, M>, R, M, Growing>>;

/// One key of a store, as its queue asks for it.
pub struct OneKey<T: Store, R, M> {
    inner: Arc<Inner<T, R, M>>,
    key: T::Key,
}

impl<T: Store, R, M> Grantor for OneKey<T, R, M> {
    type Grant = Admitted;

    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        self.inner.store.take_at(&self.key, now, cost)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), Denied> {
        self.inner.store.peek_at(&self.key, now, cost)
    }

    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        self.inner.store.earliest_at(&self.key, now, total)
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
        let queues = Mutex::new(HashTable::new());
        let inner = Inner { store, runtime, options, most_keys: MOST_KEYS, waiting: Waiting::none(), queues };
        Self { inner: Arc::new(inner) }
    }

    /// The same, where so many keys are waited for at most, 65 536 by default; whoever would have to wait for one more is
    /// [`Denied::QueueFull`].
    #[must_use]
    pub fn most_keys(mut self, most: usize) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.most_keys = most;
        }
        self
    }

    /// The store. What is changed there past this type is seen by those who wait at the turn they expected.
    pub fn store(&self) -> &T {
        &self.inner.store
    }

    /// How many keys are waited for.
    pub fn waited_for(&self) -> usize {
        self.inner.queues.lock().len()
    }

    /// Takes `cost` of `key` now, or nothing; never waits.
    ///
    /// # Errors
    /// As [`Queued::try_acquire`].
    pub fn try_acquire(&self, key: &T::Key, cost: u64) -> Decision {
        match self.inner.queue_of(key) {
            Some(queue) => {
                let decision = queue.try_acquire(cost);
                self.inner.forget_if_idle(queue);
                decision
            }
            None => {
                let now = self.inner.runtime.now();
                let decision = self.inner.store.take_at(key, now, cost);
                self.inner.store.tell(key, now, cost, decision.as_ref().map_err(|denied| *denied));
                decision
            }
        }
    }

    /// Waits until `cost` of `key` can be taken, as [`Queued::acquire`] does.
    pub fn acquire(&self, key: T::Key, cost: u64) -> Acquire<KeyWaiter<T, R, M>> {
        self.wait(key, cost, Until::Ever)
    }

    /// Waits no longer than `timeout`, as [`Queued::acquire_timeout`] does.
    pub fn acquire_timeout(&self, key: T::Key, cost: u64, timeout: Duration) -> Acquire<KeyWaiter<T, R, M>> {
        self.wait(key, cost, Until::After(timeout))
    }

    /// Waits no longer than until `deadline`, as [`Queued::acquire_deadline`] does.
    pub fn acquire_deadline(&self, key: T::Key, cost: u64, deadline: Nanos) -> Acquire<KeyWaiter<T, R, M>> {
        self.wait(key, cost, Until::At(deadline))
    }

    fn wait(&self, key: T::Key, cost: u64, until: Until) -> Acquire<KeyWaiter<T, R, M>> {
        let waiter = KeyWaiter { inner: Arc::clone(&self.inner), key, queue: OnceCell::new() };
        Acquire::new(waiter, cost, until)
    }

    /// Gives `cost` of `key` back, as the store's `refund`, and wakes those who can go with it.
    pub fn refund(&self, key: &T::Key, cost: u64) -> bool {
        let is_found = self.inner.store.refund(key, cost);
        self.recheck(key);
        is_found
    }

    /// Lets all go who wait for `key` and can, after the store was changed past this type.
    pub fn recheck(&self, key: &T::Key) {
        if !self.inner.waiting.is_none_after_change() {
            if let Some(queue) = self.inner.queue_of(key) {
                queue.recheck();
                self.inner.forget_if_idle(queue);
            }
        }
    }

    /// Lets all go who wait for any key and can: after a change of the store's quotas.
    pub fn recheck_all(&self) {
        if self.inner.waiting.is_none_after_change() {
            return;
        }
        let queues: alloc::vec::Vec<_> = self.inner.queues.lock().iter().cloned().collect();
        for queue in queues {
            queue.recheck();
            self.inner.forget_if_idle(queue);
        }
    }
}

impl<T, R, M> Inner<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    /// The queue of a key for which somebody waits. Whoever is given it calls `forget_if_idle` with it afterwards, because the last
    /// waiter may have left meanwhile and found that somebody else refers to it.
    fn queue_of(&self, key: &T::Key) -> Option<KeyQueue<T, R, M>> {
        if self.waiting.is_none() {
            return None;
        }
        let hash = self.store.hash(key);
        self.queues.lock().find(hash, |queue| queue.limiter().key == *key).cloned()
    }

    /// The same, made if there is none.
    fn join(self: &Arc<Self>, key: &T::Key) -> Option<KeyQueue<T, R, M>> {
        let hash = self.store.hash(key);
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.find(hash, |queue| queue.limiter().key == *key) {
            return Some(Arc::clone(queue));
        }
        if queues.len() >= self.most_keys {
            return None;
        }
        let one = OneKey { inner: Arc::clone(self), key: key.clone() };
        let queue = Arc::new(Queued::new(one, self.runtime.clone(), self.options));
        queues.insert_unique(hash, Arc::clone(&queue), |queue| self.store.hash(&queue.limiter().key));
        self.waiting.set(queues.len());
        Some(queue)
    }

    /// Takes a queue away that nobody else refers to: whoever waits in one refers to it, and it is only found under the lock.
    fn forget_if_idle(&self, queue: KeyQueue<T, R, M>) {
        let mut queues = self.queues.lock();
        if Arc::strong_count(&queue) > 2 {
            return;
        }
        let hash = self.store.hash(&queue.limiter().key);
        let gone = queues.find_entry(hash, |other| Arc::ptr_eq(other, &queue)).ok().map(|entry| entry.remove().0);
        if queues.is_empty() {
            *queues = HashTable::new();
        }
        self.waiting.set(queues.len());
        // A key may run code of its own when it is dropped.
        drop(queues);
        drop(gone);
    }
}

/// How a waiting future refers to one key of a store: it shares the store, and can go to another task.
pub struct KeyWaiter<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    inner: Arc<Inner<T, R, M>>,
    key: T::Key,
    /// Once it had to wait.
    queue: OnceCell<KeyQueue<T, R, M>>,
}

impl<T, R, M> Waitable for KeyWaiter<T, R, M>
where
    T: Store,
    R: Runtime + Clone,
    M: RawMutex,
{
    type Grant = Admitted;
    type Runtime = R;

    fn runtime(&self) -> &R {
        &self.inner.runtime
    }

    fn relief(&self) -> Option<Duration> {
        self.inner.options.relief
    }

    fn take_unless_others_wait(&self, cost: u64) -> Option<Decision> {
        if let Some(queue) = self.inner.queue_of(&self.key) {
            self.inner.forget_if_idle(queue);
            return None;
        }
        let now = self.inner.runtime.now();
        let decision = self.inner.store.take_at(&self.key, now, cost);
        if decision.as_ref().is_err_and(|denied| !denied.is_final()) {
            return None;
        }
        self.inner.store.tell(&self.key, now, cost, decision.as_ref().map_err(|denied| *denied));
        Some(decision)
    }

    fn enter(
        &self,
        now: Nanos,
        cost: u64,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<(u32, Option<Nanos>, Looked<Admitted>), Denied> {
        let Some(queue) = self.inner.join(&self.key) else { return Err(Denied::QueueFull) };
        self.queue.get_or_init(|| queue).enter(now, cost, deadline, waker)
    }

    fn look(&self, place: u32, is_in_charge: bool, waker: &Waker) -> Looked<Admitted> {
        match self.queue.get() {
            Some(queue) => queue.look(place, is_in_charge, waker),
            // Only who has entered has a place.
            None => Looked::Over(Err(Denied::Closed)),
        }
    }

    fn leave(&self, place: u32) {
        if let Some(queue) = self.queue.get() {
            queue.leave(place);
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
        if let Some(queue) = self.queue.take() {
            self.inner.forget_if_idle(queue);
        }
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
