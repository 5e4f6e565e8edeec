//! Ending a task that sleeps.

use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::{Poll, Waker};

use lock_api::{Mutex, RawMutex};

/// Says to one task that it is to end.
pub(super) struct Stop<M>(Mutex<M, State>);

enum State {
    /// Nobody has asked yet, or the one who sleeps.
    Going(Option<Waker>),
    Stopped,
}

impl<M: RawMutex> Stop<M> {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(State::Going(None)))
    }

    /// Ends the task, also where it sleeps.
    pub(super) fn stop(&self) {
        let before = core::mem::replace(&mut *self.0.lock(), State::Stopped);
        if let State::Going(Some(waker)) = before {
            waker.wake();
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(*self.0.lock(), State::Stopped)
    }

    /// Sleeps until `sleep` is over, or it is to end; tells whether it is to go on.
    pub(super) async fn goes_on_after(&self, sleep: impl Future<Output = ()>) -> bool {
        let mut sleep = pin!(sleep);
        poll_fn(|context| {
            // A waker is cloned and dropped with the lock open.
            let waker = context.waker().clone();
            let replaced = {
                let mut state = self.0.lock();
                match &mut *state {
                    State::Stopped => return Poll::Ready(false),
                    State::Going(sleeper) => sleeper.replace(waker),
                }
            };
            drop(replaced);
            sleep.as_mut().poll(context).map(|()| true)
        })
        .await
    }
}
