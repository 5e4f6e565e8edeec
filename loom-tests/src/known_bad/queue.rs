//! A compact queue before a token bucket, right unless one of its flaws is switched on.

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;
use core::pin::Pin;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Arc;

use lock_api::Mutex;
use sluicegate_core::Denied;

use crate::lock::ModelMutex;
use crate::shim::{AtomicU64, fence};
use crate::{Queue, Reserving, Wait, Ways};

/// Bugs that a queue may have, one type each.
pub trait QueueFlaws: Send + Sync + 'static {
    /// No fence between changing the limiter and looking who waits.
    const GIVES_BACK_UNFENCED: bool = false;
    /// No fence between being counted and looking at the limiter.
    const JOINS_UNFENCED: bool = false;
    /// Waits for what was not there before it was counted, without looking again.
    const JOINS_BLINDLY: bool = false;
    /// Looks whether the line is closed, and joins it later.
    const JOINS_A_CLOSED_LINE: bool = false;
    /// What was granted to a waiter that leaves before it learnt of it stays taken.
    const KEEPS_A_LOST_GRANT: bool = false;
    /// Looks at nothing when it leaves.
    const LEAVES_SILENTLY: bool = false;
    /// Gives up by what it saw before it locked the line again.
    const EXPIRES_BY_AN_OLD_LOOK: bool = false;
    /// Looks who waits before it settles, and tells those.
    const SETTLES_AFTER_LOOKING: bool = false;
    /// Settles without looking who waits.
    const SETTLES_SILENTLY: bool = false;
    /// Whoever gives back too little for the head lets it sleep as long as before.
    const LETS_THE_HEAD_SLEEP: bool = false;
    /// Whoever makes room is not told.
    const EVICTS_UNTOLD: bool = false;
    /// Sees who is to make room, and has it make room after locking the line again.
    const EVICTS_BY_AN_OLD_LOOK: bool = false;
    /// Who comes to stand at the head sleeps for nobody while another one sleeps already.
    const LEAVES_TIME_TO_ANOTHER: bool = false;
    /// Whoever is relieved looks once, and does not mind the time for those ahead of it.
    const IS_RELIEVED_ONCE: bool = false;
    /// Whoever was relieved and goes counts as one who minds the time.
    const KEEPS_THE_TIME: bool = false;
}

/// A bucket's word beside a list of who waits. Time is counted in seconds, and a token comes a second.
pub struct CompactQueue<F>(Arc<Parts<F>>);

struct Parts<F> {
    limit: u64,
    ways: Ways,
    now: AtomicU64,
    /// The second at which everything will have come back.
    full_at: AtomicU64,
    /// How many wait, and one for a line that is closed.
    waiting: AtomicU64,
    line: Mutex<ModelMutex, Line>,
    flaws: PhantomData<F>,
}

#[derive(Default)]
struct Line {
    is_closed: bool,
    next: u64,
    waiters: Vec<Waiting>,
    over: Vec<(Number, u64, Result<(), Denied>)>,
    woken: Vec<Waker>,
    /// For whom somebody minds the time who is not at the head.
    minded: Option<Number>,
}

struct Waiting {
    number: Number,
    cost: u64,
    deadline: Option<u64>,
    relief: Option<u64>,
    asleep_until: Option<u64>,
    waker: Waker,
}

type Number = u64;

impl<F: QueueFlaws> Parts<F> {
    fn take(&self, now: u64, cost: u64) -> bool {
        let mut current = self.full_at.load(Acquire);
        loop {
            let next = current.max(now) + cost;
            if next > now + self.limit {
                return false;
            }
            match self.full_at.compare_exchange(current, next, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(seen) => current = seen,
            }
        }
    }

    fn give_back(&self, cost: u64) {
        self.full_at.fetch_sub(cost, AcqRel);
        self.recheck();
    }

    fn recheck(&self) {
        if !F::GIVES_BACK_UNFENCED {
            fence(SeqCst);
        }
        if self.waiting.load(Relaxed) > 0 {
            self.locked(|line| {
                self.let_go(line);
                self.mind_time(line, None);
            });
        }
    }

    /// Runs `change` with the line locked, and wakes whom it concerns.
    fn locked<R>(&self, change: impl FnOnce(&mut Line) -> R) -> R {
        let mut line = self.line.lock();
        let result = change(&mut line);
        let woken = core::mem::take(&mut line.woken);
        self.waiting.store(line.waiters.len() as u64 + u64::from(line.is_closed), Relaxed);
        if !F::JOINS_UNFENCED {
            fence(SeqCst);
        }
        drop(line);
        woken.into_iter().for_each(Waker::wake);
        result
    }

    fn let_go(&self, line: &mut Line) {
        let now = self.now.load(Acquire);
        line.expire(|deadline| deadline < now);
        while line.waiters.first().is_some_and(|head| self.take(now, head.cost)) {
            line.end(0, Ok(()));
        }
        if line.expire(|deadline| deadline <= now) {
            self.let_go(line);
        }
    }

    /// Has whoever is at the head sleep until the next wait is over. It is told so unless it is the one that is being polled.
    fn mind_time(&self, line: &mut Line, polled: Option<Number>) {
        let now = self.now.load(Acquire);
        let deadline = line.waiters.iter().filter_map(|waiter| waiter.deadline).min();
        let Some(head) = line.waiters.first() else { return };
        let turn = (self.full_at.load(Acquire).max(now) + head.cost).saturating_sub(self.limit);
        let next = deadline.map_or(turn, |deadline| turn.min(deadline));
        let (head, is_minded) = (head.number, line.minded == Some(head.number));
        let sleeps = |waiter: &Waiting| waiter.number != head && waiter.asleep_until.is_some();
        let is_left = F::LEAVES_TIME_TO_ANOTHER && line.waiters.iter().any(sleeps);
        for waiter in &mut line.waiters {
            let is_relieved = waiter.relief.is_some_and(|relief| relief <= now);
            if polled == Some(waiter.number) {
                waiter.asleep_until = match waiter.number == head && !is_left {
                    true => Some(next),
                    false if is_relieved && !F::IS_RELIEVED_ONCE => Some(next),
                    false if is_relieved => None,
                    false => waiter.relief,
                };
            } else if waiter.number == head
                && !is_minded
                && !F::LETS_THE_HEAD_SLEEP
                && waiter.asleep_until.is_none_or(|at| at > next)
            {
                line.woken.push(waiter.waker.clone());
            }
        }
    }

    fn join(&self, cost: u64, timeout: Option<u64>, waker: &Waker) -> Option<Number> {
        if F::JOINS_A_CLOSED_LINE && self.locked(|line| line.is_closed) {
            return None;
        }
        let seen = match F::EVICTS_BY_AN_OLD_LOOK {
            true => self.locked(|line| self.who_makes_room(line)),
            false => None,
        };
        self.locked(|line| {
            if line.is_closed && !F::JOINS_A_CLOSED_LINE {
                return None;
            }
            if let Some(number) = if F::EVICTS_BY_AN_OLD_LOOK { seen } else { self.who_makes_room(line) } {
                line.evict(number, F::EVICTS_UNTOLD);
            }
            line.next += 1;
            let (number, now) = (line.next, self.now.load(Acquire));
            let deadline = timeout.map(|timeout| now + timeout);
            let ahead: u64 = line.waiters.iter().map(|waiter| waiter.cost).sum();
            let turn = (self.full_at.load(Acquire).max(now) + ahead + cost).saturating_sub(self.limit).max(now);
            let relief = self.ways.relief.map(|after| turn + after);
            let place = if self.ways.is_newest_first { 0 } else { line.waiters.len() };
            let waiter = Waiting { number, cost, deadline, relief, asleep_until: None, waker: waker.clone() };
            line.waiters.insert(place, waiter);
            if F::JOINS_BLINDLY {
                self.mind_time(line, Some(number));
            }
            Some(number)
        })
    }

    fn look(&self, number: Number, waker: &Waker) -> Option<Result<(), Denied>> {
        if F::EXPIRES_BY_AN_OLD_LOOK {
            let now = self.now.load(Acquire);
            let is_late = self.locked(|line| {
                let waiter = line.waiters.iter().find(|waiter| waiter.number == number)?;
                waiter.deadline.filter(|deadline| *deadline <= now)
            });
            if is_late.is_some() {
                return self.locked(|line| {
                    line.remove(number);
                    Some(Err(DENIED))
                });
            }
        }
        self.locked(|line| {
            let now = self.now.load(Acquire);
            let is_relieved = |waiter: &Waiting| waiter.number == number && waiter.relief.is_some_and(|at| at <= now);
            let is_in_charge = line.waiters.iter().any(is_relieved);
            self.let_go(line);
            if F::KEEPS_THE_TIME && is_in_charge {
                line.minded = line.waiters.first().map(|head| head.number);
            }
            self.mind_time(line, Some(number));
            let waiting = line.waiters.iter_mut().find(|waiter| waiter.number == number);
            match waiting {
                Some(waiting) => {
                    waiting.waker = waker.clone();
                    None
                }
                None => line.remove(number).map(|(_, answer)| answer),
            }
        })
    }

    /// The oldest, if there are as many as may be.
    fn who_makes_room(&self, line: &Line) -> Option<Number> {
        let is_full = self.ways.bound.is_some_and(|bound| line.waiters.len() as u64 >= bound);
        line.waiters.iter().map(|waiter| waiter.number).min().filter(|_| is_full)
    }

    fn leave(&self, number: Number) {
        let lost = self.locked(|line| line.remove(number));
        match lost {
            Some((cost, Ok(()))) if !F::KEEPS_A_LOST_GRANT => self.give_back(cost),
            _ if !F::LEAVES_SILENTLY => self.recheck(),
            _ => {}
        }
    }
}

impl Line {
    /// Ends the waits whose deadline is one of those, and tells whether one of them was.
    fn expire(&mut self, is_over: impl Fn(u64) -> bool) -> bool {
        let mut any = false;
        while let Some(place) = self.waiters.iter().position(|waiter| waiter.deadline.is_some_and(&is_over)) {
            self.end(place, Err(DENIED));
            any = true;
        }
        any
    }

    /// Has one make room, whether it waits or not.
    fn evict(&mut self, number: Number, untold: bool) {
        self.over.retain(|(over, ..)| *over != number);
        if let Some(place) = self.waiters.iter().position(|waiter| waiter.number == number) {
            self.end(place, Err(Denied::QueueFull));
            if untold {
                self.woken.pop();
            }
        }
    }

    fn end(&mut self, place: usize, answer: Result<(), Denied>) {
        let waiter = self.waiters.remove(place);
        self.over.push((waiter.number, waiter.cost, answer));
        self.woken.push(waiter.waker);
    }

    fn remove(&mut self, number: Number) -> Option<(u64, Result<(), Denied>)> {
        self.waiters.retain(|waiter| waiter.number != number);
        let place = self.over.iter().position(|(over, ..)| *over == number)?;
        let (_, cost, answer) = self.over.remove(place);
        Some((cost, answer))
    }
}

/// A wait: its number once it has joined.
struct CompactWait<F: QueueFlaws> {
    parts: Arc<Parts<F>>,
    cost: u64,
    timeout: Option<u64>,
    number: Option<Number>,
}

impl<F: QueueFlaws> Future for CompactWait<F> {
    type Output = Result<u64, Denied>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let parts = Arc::clone(&self.parts);
        let number = match self.number {
            Some(number) => number,
            None => {
                if parts.waiting.load(Relaxed) == 0 && parts.take(parts.now.load(Acquire), self.cost) {
                    return Poll::Ready(Ok(self.cost));
                }
                let joined = parts.join(self.cost, self.timeout, context.waker());
                let Some(number) = joined else { return Poll::Ready(Err(Denied::Closed)) };
                self.number = joined;
                if F::JOINS_BLINDLY {
                    return Poll::Pending;
                }
                number
            }
        };
        let Some(answer) = parts.look(number, context.waker()) else { return Poll::Pending };
        self.number = None;
        Poll::Ready(answer.map(|()| self.cost))
    }
}

impl<F: QueueFlaws> Drop for CompactWait<F> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.parts.leave(number);
        }
    }
}

impl<F: QueueFlaws> Queue for CompactQueue<F> {
    /// The cost.
    type Held = u64;

    fn with(limit: u64, ways: Ways) -> Self {
        let line = Mutex::new(Line::default());
        drop(line.lock());
        Self(Arc::new(Parts {
            limit,
            ways,
            now: AtomicU64::new(START),
            full_at: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            line,
            flaws: PhantomData,
        }))
    }

    fn try_acquire(&self, cost: u64) -> Option<u64> {
        self.0.take(self.0.now.load(Acquire), cost).then_some(cost)
    }

    fn acquire(&self, cost: u64, timeout: Option<u64>) -> Wait<u64> {
        Box::pin(CompactWait { parts: Arc::clone(&self.0), cost, timeout, number: None })
    }

    fn give_back(&self, held: u64) {
        self.0.give_back(held);
    }

    fn close(&self) {
        self.0.locked(|line| {
            line.is_closed = true;
            while !line.waiters.is_empty() {
                line.end(0, Err(Denied::Closed));
            }
        });
    }

    fn tick(&self) {
        let now = self.0.now.fetch_add(1, AcqRel) + 1;
        self.0.locked(|line| {
            for waiter in &mut line.waiters {
                if waiter.asleep_until.is_some_and(|until| until <= now) {
                    waiter.asleep_until = None;
                    line.woken.push(waiter.waker.clone());
                }
            }
        });
    }

    fn free(&self) -> u64 {
        let now = self.0.now.load(Acquire);
        now + self.0.limit - self.0.full_at.load(Acquire).max(now)
    }

    fn sleepers(&self) -> usize {
        self.0.locked(|line| line.waiters.iter().filter(|waiter| waiter.asleep_until.is_some()).count())
    }
}

impl<F: QueueFlaws> Reserving for CompactQueue<F> {
    fn settle(&self, held: u64, spent: u64) {
        let unspent = held - spent;
        if F::SETTLES_SILENTLY || (F::SETTLES_AFTER_LOOKING && self.0.waiting.load(Relaxed) == 0) {
            self.0.full_at.fetch_sub(unspent, AcqRel);
        } else {
            self.0.give_back(unspent);
        }
    }
}

impl<F> fmt::Debug for CompactQueue<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactQueue").finish_non_exhaustive()
    }
}

/// A second at which an unused bucket is full.
const START: u64 = 100;
/// How long to wait is in no model's promise.
const DENIED: Denied = Denied::RateLimited { retry_after: Duration::from_secs(1) };
