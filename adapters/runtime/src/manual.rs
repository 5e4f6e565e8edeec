//! Virtual time for waits.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use lock_api::{Mutex, RawMutex};
use sluicegate_core::{Clock, Nanos};

use crate::runtime::Runtime;

/// Time that moves only when told to, and wakes those who sleep on its way: an hour's wait is a test of milliseconds, on any
/// executor.
///
/// Clones share one time. `M` is the lock around it.
///
/// ```
/// use core::future::Future;
/// use core::pin::pin;
/// use core::task::{Context, Waker};
/// use core::time::Duration;
/// use sluicegate_runtime::{Clock, ManualRuntime, Nanos, Runtime};
///
/// let time = ManualRuntime::<parking_lot::RawMutex>::new();
/// let mut sleep = pin!(time.sleep_until(Nanos::from_secs(3600)));
/// let mut context = Context::from_waker(Waker::noop());
/// assert!(sleep.as_mut().poll(&mut context).is_pending());
/// assert_eq!(time.sleepers(), 1);
///
/// time.advance(Duration::from_secs(3600));
/// assert!(sleep.as_mut().poll(&mut context).is_ready());
/// assert_eq!((time.now(), time.sleepers()), (Nanos::from_secs(3600), 0));
/// ```
pub struct ManualRuntime<M: RawMutex>(Arc<Mutex<M, Time>>);

struct Time {
    now: Nanos,
    /// Who sleeps until when, in the order in which they fell asleep.
    sleepers: BTreeMap<(Nanos, u64), Waker>,
    next: u64,
}

impl<M: RawMutex> ManualRuntime<M> {
    /// Time at the origin.
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Time { now: Nanos::ZERO, sleepers: BTreeMap::new(), next: 0 })))
    }

    /// How many sleep.
    pub fn sleepers(&self) -> usize {
        self.0.lock().sleepers.len()
    }

    /// When the next one wakes.
    pub fn next_wake(&self) -> Option<Nanos> {
        self.0.lock().sleepers.keys().next().map(|(at, _)| *at)
    }

    /// Lets so much time pass at once, and wakes those whose sleep is over.
    pub fn advance(&self, by: Duration) {
        let to = self.now().saturating_add(by);
        self.set(to);
    }

    /// Moves to a reading, which may be an earlier one, and wakes those whose sleep is over then.
    pub fn set(&self, to: Nanos) {
        self.0.lock().now = to;
        loop {
            // One at a time, and with the lock open: a waker may come back here.
            let mut time = self.0.lock();
            let Some(entry) = time.sleepers.first_entry().filter(|entry| entry.key().0 <= to) else { return };
            let waker = entry.remove();
            drop(time);
            waker.wake();
        }
    }
}

impl<M: RawMutex> Default for ManualRuntime<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: RawMutex> Clone for ManualRuntime<M> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<M: RawMutex> Clock for ManualRuntime<M> {
    fn now(&self) -> Nanos {
        self.0.lock().now
    }
}

impl<M: RawMutex> Runtime for ManualRuntime<M> {
    type Sleep = ManualSleep<M>;

    fn sleep_until(&self, at: Nanos) -> ManualSleep<M> {
        let mut time = self.0.lock();
        time.next += 1;
        ManualSleep { time: self.clone(), key: (at, time.next) }
    }
}

/// Sleeps until a reading of a [`ManualRuntime`].
pub struct ManualSleep<M: RawMutex> {
    time: ManualRuntime<M>,
    key: (Nanos, u64),
}

impl<M: RawMutex> Future for ManualSleep<M> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // A waker may come back here when it is cloned or dropped, and so neither happens with the lock taken.
        let waker = context.waker().clone();
        let mut time = self.time.0.lock();
        let is_over = time.now >= self.key.0;
        let old = if is_over { time.sleepers.remove(&self.key) } else { time.sleepers.insert(self.key, waker) };
        drop(time);
        drop(old);
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<M: RawMutex> Drop for ManualSleep<M> {
    fn drop(&mut self) {
        let mut time = self.time.0.lock();
        let waker = time.sleepers.remove(&self.key);
        drop(time);
        drop(waker);
    }
}

impl<M: RawMutex> fmt::Debug for ManualRuntime<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualRuntime").field("now", &self.now()).field("sleepers", &self.sleepers()).finish()
    }
}

impl<M: RawMutex> fmt::Debug for ManualSleep<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualSleep").field(&self.key.0).finish()
    }
}
