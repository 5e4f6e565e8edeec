//! Limiters on an executor of one's own: one thread, which polls who was woken, and when nobody was sleeps until the next timer.
#![allow(clippy::std_instead_of_alloc, reason = "an example for programs that have std")]
use core::{future::Future, panic::AssertUnwindSafe, pin::Pin, task::Context, task::Poll, task::Waker};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::{panic::catch_unwind, task::Wake, thread, time::Instant};

use sluicegate_runtime::{Clock, Growing, Nanos, Queued, Runtime, Spawn, TokenBucket, WaitOptions, quota};

/// With the instant of its start; without, time stands still except that timers move it, so that tests need not sleep.
#[derive(Clone, Default)]
pub(crate) struct Tiny(Arc<Mutex<State>>, Option<Instant>);

#[derive(Default)]
struct State {
    now: Nanos,
    woken: VecDeque<Arc<Task>>,
    timers: BTreeMap<(Nanos, u64), Waker>,
    sleeps: u64,
}

pub(crate) struct Sleep(Tiny, (Nanos, u64));
struct Task(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>, Tiny);

impl Clock for Tiny {
    fn now(&self) -> Nanos {
        self.1.map_or_else(|| self.0.lock().unwrap().now, |start| Nanos::ZERO + start.elapsed())
    }
}
impl Runtime for Tiny {
    type Sleep = Sleep;
    fn sleep_until(&self, at: Nanos) -> Sleep {
        let mut state = self.0.lock().unwrap();
        state.sleeps += 1;
        Sleep(self.clone(), (at, state.sleeps))
    }
}
impl Spawn for Tiny {
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        Arc::new(Task(Mutex::new(Some(Box::pin(task))), self.clone())).wake();
    }
}
impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0.now() >= self.1.0 {
            return Poll::Ready(());
        }
        self.0.0.lock().unwrap().timers.insert(self.1, context.waker().clone());
        Poll::Pending
    }
}
impl Drop for Sleep {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().timers.remove(&self.1);
    }
}
impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let state = Arc::clone(&self.1.0);
        state.lock().unwrap().woken.push_back(self);
    }
}
impl Tiny {
    /// Until every task is done, or waits for what nobody here can bring about.
    pub(crate) fn run(&self) {
        loop {
            let mut state = self.0.lock().unwrap();
            if let Some(woken) = state.woken.pop_front() {
                drop(state);
                let (waker, mut task) = (Waker::from(Arc::clone(&woken)), woken.0.lock().unwrap());
                let poll =
                    || task.as_mut().is_none_or(|task| task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
                // A task that panics is gone, and the others go on.
                if catch_unwind(AssertUnwindSafe(poll)).unwrap_or(true) {
                    *task = None;
                }
            } else {
                let Some(((at, _), waker)) = state.timers.pop_first() else { return };
                state.now = at.max(state.now);
                drop(state);
                thread::sleep(self.1.map_or_else(Default::default, |_| at.saturating_duration_since(self.now())));
                waker.wake();
            }
        }
    }
}

fn main() {
    let tiny = Tiny(Arc::default(), Some(Instant::now()));
    let bucket = TokenBucket::with_limit(quota!("100/1s burst 1").into(), ());
    type Limiter = Queued<TokenBucket<()>, Tiny, parking_lot::RawMutex, Growing>;
    let limiter = Arc::new(Limiter::new(bucket, tiny.clone(), WaitOptions::new()));
    for request in 1..=3 {
        let turn = limiter.acquire_owned(1);
        tiny.spawn(async move { println!("request {request}: {:?}", turn.await.map(|admitted| admitted.at)) });
    }
    tiny.run();
}
