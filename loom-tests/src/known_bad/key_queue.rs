//! A compact store of one key that can be waited for, right unless one of its flaws is switched on.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::sync::atomic::Ordering::{AcqRel, Acquire};
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use lock_api::Mutex;
use sluicegate_core::Denied;

use crate::lock::ModelMutex;
use crate::shim::AtomicU64;
use crate::{KeyQueue, Wait};

/// Bugs that a store which is waited for may have, one type each.
pub trait KeyQueueFlaws: Send + Sync + 'static {
    /// Whoever gives the queue up sees whether it is the last, and gives it up later.
    const GIVES_UP_LATE: bool = false;
    /// Whoever joins the queue is counted later.
    const JOINS_UNCOUNTED: bool = false;
    /// Whoever looks at the queue is counted, and leaves it to others to take the queue away.
    const LOOKS_AND_LEAVES_IT: bool = false;
    /// Waits for what was not there before it had joined the queue, without looking again.
    const JOINS_BLINDLY: bool = false;
    /// What was granted to a waiter that leaves before it learnt of it stays taken.
    const KEEPS_A_LOST_GRANT: bool = false;
    /// Closes the queue that there is, and not the store.
    const CLOSES_THE_QUEUE: bool = false;
}

/// What is free, and the queue while somebody refers to it.
pub struct CompactKeys<F>(Arc<Parts<F>>);

struct Parts<F> {
    free: AtomicU64,
    table: Mutex<ModelMutex, Table>,
    flaws: PhantomData<F>,
}

#[derive(Default)]
struct Table {
    is_closed: bool,
    entry: Option<Entry>,
}

struct Entry {
    users: u64,
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue(Mutex<ModelMutex, Line>);

#[derive(Default)]
struct Line {
    is_closed: bool,
    next: u64,
    waiters: Vec<(u64, Waker)>,
    over: Vec<(u64, Result<(), Denied>)>,
}

impl<F: KeyQueueFlaws> Parts<F> {
    fn take(&self) -> bool {
        let mut free = self.free.load(Acquire);
        while free > 0 {
            match self.free.compare_exchange(free, free - 1, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(seen) => free = seen,
            }
        }
        false
    }

    fn give_back(&self) {
        self.free.fetch_add(1, AcqRel);
        if let Some(queue) = self.find() {
            self.recheck(&queue);
            self.give_up(&queue);
        }
    }

    /// The queue, if there is one, counted.
    fn find(&self) -> Option<Arc<Queue>> {
        let mut table = self.table.lock();
        let entry = table.entry.as_mut()?;
        entry.users += 1;
        Some(Arc::clone(&entry.queue))
    }

    /// The same, made if there is none.
    fn join(&self) -> Result<Arc<Queue>, Denied> {
        let mut table = self.table.lock();
        if table.is_closed {
            return Err(Denied::Closed);
        }
        let entry = table.entry.get_or_insert_with(|| Entry { users: 0, queue: Arc::default() });
        let queue = Arc::clone(&entry.queue);
        if F::JOINS_UNCOUNTED {
            drop(table);
            table = self.table.lock();
        }
        if let Some(entry) = table.entry.as_mut().filter(|entry| Arc::ptr_eq(&entry.queue, &queue)) {
            entry.users += 1;
        }
        Ok(queue)
    }

    fn give_up(&self, queue: &Arc<Queue>) {
        let mut table = self.table.lock();
        let Some(entry) = table.entry.as_mut().filter(|entry| Arc::ptr_eq(&entry.queue, queue)) else { return };
        if F::GIVES_UP_LATE && entry.users > 1 {
            drop(table);
            if let Some(entry) = &mut self.table.lock().entry {
                entry.users -= 1;
            }
            return;
        }
        entry.users -= 1;
        if entry.users == 0 {
            table.entry = None;
        }
    }

    fn recheck(&self, queue: &Queue) {
        let mut line = queue.0.lock();
        let mut woken = Vec::new();
        while !line.waiters.is_empty() && self.take() {
            let (number, waker) = line.waiters.remove(0);
            line.over.push((number, Ok(())));
            woken.push(waker);
        }
        drop(line);
        woken.into_iter().for_each(Waker::wake);
    }

    fn close(&self, queue: &Queue) {
        let mut line = queue.0.lock();
        line.is_closed = true;
        let waiters = core::mem::take(&mut line.waiters);
        line.over.extend(waiters.iter().map(|(number, _)| (*number, Err(Denied::Closed))));
        drop(line);
        waiters.into_iter().for_each(|(_, waker)| waker.wake());
    }

    fn leave(&self, queue: &Arc<Queue>, number: u64) {
        let lost = {
            let mut line = queue.0.lock();
            line.waiters.retain(|(waiting, _)| *waiting != number);
            let place = line.over.iter().position(|(over, _)| *over == number);
            place.map(|place| line.over.remove(place).1)
        };
        if lost == Some(Ok(())) && !F::KEEPS_A_LOST_GRANT {
            self.free.fetch_add(1, AcqRel);
        }
        self.recheck(queue);
        self.give_up(queue);
    }
}

impl Queue {
    fn enter(&self, waker: &Waker) -> Option<u64> {
        let mut line = self.0.lock();
        if line.is_closed {
            return None;
        }
        line.next += 1;
        let number = line.next;
        line.waiters.push((number, waker.clone()));
        Some(number)
    }

    /// Its answer, or `None` and the waker is left.
    fn fetch(&self, number: u64, waker: &Waker) -> Option<Result<(), Denied>> {
        let mut line = self.0.lock();
        if let Some(waiting) = line.waiters.iter_mut().find(|(waiting, _)| *waiting == number) {
            waiting.1 = waker.clone();
        }
        let place = line.over.iter().position(|(over, _)| *over == number)?;
        Some(line.over.remove(place).1)
    }
}

/// A wait: its queue and number once it has joined.
struct CompactWait<F: KeyQueueFlaws> {
    parts: Arc<Parts<F>>,
    place: Option<(Arc<Queue>, u64)>,
}

impl<F: KeyQueueFlaws> Future for CompactWait<F> {
    type Output = Result<(), Denied>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let parts = Arc::clone(&self.parts);
        let (queue, number) = match self.place.clone() {
            Some(place) => place,
            None => {
                let queue = match parts.join() {
                    Ok(queue) => queue,
                    Err(denied) => return Poll::Ready(Err(denied)),
                };
                let Some(number) = queue.enter(context.waker()) else {
                    parts.give_up(&queue);
                    return Poll::Ready(Err(Denied::Closed));
                };
                self.place = Some((Arc::clone(&queue), number));
                if !F::JOINS_BLINDLY {
                    parts.recheck(&queue);
                }
                (queue, number)
            }
        };
        let Some(answer) = queue.fetch(number, context.waker()) else { return Poll::Pending };
        self.place = None;
        parts.give_up(&queue);
        Poll::Ready(answer)
    }
}

impl<F: KeyQueueFlaws> Drop for CompactWait<F> {
    fn drop(&mut self) {
        if let Some((queue, number)) = self.place.take() {
            self.parts.leave(&queue, number);
        }
    }
}

impl<F: KeyQueueFlaws> KeyQueue for CompactKeys<F> {
    fn new(limit: u64) -> Self {
        let table = Mutex::new(Table::default());
        drop(table.lock());
        Self(Arc::new(Parts { free: AtomicU64::new(limit), table, flaws: PhantomData }))
    }

    fn try_acquire(&self) -> bool {
        let queue = self.0.find();
        let is_taken = self.0.take();
        if let Some(queue) = queue {
            if F::LOOKS_AND_LEAVES_IT {
                if let Some(entry) = self.0.table.lock().entry.as_mut() {
                    entry.users -= 1;
                }
            } else {
                self.0.give_up(&queue);
            }
        }
        is_taken
    }

    fn acquire(&self) -> Wait<()> {
        Box::pin(CompactWait { parts: Arc::clone(&self.0), place: None })
    }

    fn give_back(&self) {
        self.0.give_back();
    }

    fn close(&self) {
        self.0.table.lock().is_closed = !F::CLOSES_THE_QUEUE;
        if let Some(queue) = self.0.find() {
            self.0.close(&queue);
            self.0.give_up(&queue);
        }
    }

    fn free(&self) -> u64 {
        self.0.free.load(Acquire)
    }

    fn queues(&self) -> usize {
        usize::from(self.0.table.lock().entry.is_some())
    }
}

impl<F> fmt::Debug for CompactKeys<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactKeys").finish_non_exhaustive()
    }
}
