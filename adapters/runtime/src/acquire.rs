//! The future of everybody who waits.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;
use sluicegate_core::{Clock, Nanos};

use crate::runtime::Runtime;
pub(crate) use crate::until::Until;
use crate::waitable::{Looked, Waitable};

pin_project! {
    /// Waits until its cost can be taken; see [`Queued::acquire`](crate::Queued::acquire).
    ///
    /// `W` is how it refers to the limiter: a reference, or an `Arc`. It completes with what was granted or with the reason why
    /// not, once; polled again after that, it is pending for ever. Dropped before, it has taken nothing.
    #[must_use = "nothing waits before the future is polled"]
    pub struct Acquire<W: Waitable> {
        limiter: W,
        cost: W::Cost,
        state: State,
        #[pin]
        sleep: Option<<W::Runtime as Runtime>::Sleep>,
        // Until when `sleep` sleeps.
        asleep: Option<Nanos>,
    }

    impl<W: Waitable> PinnedDrop for Acquire<W> {
        #[inline]
        fn drop(this: Pin<&mut Self>) {
            if let State::Waiting { place: Some(place), .. } = this.state {
                this.limiter.leave(place);
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Not polled yet.
    Fresh(Until),
    /// It has this place until it has fetched its answer; none only within a poll, or after one that panicked.
    Waiting {
        place: Option<u32>,
        deadline: Option<Nanos>,
        relief: Option<Nanos>,
        is_in_charge: bool,
    },
    Over,
}

impl<W: Waitable> Acquire<W> {
    #[inline]
    pub(crate) const fn new(limiter: W, cost: W::Cost, until: Until) -> Self {
        Self { limiter, cost, state: State::Fresh(until), sleep: None, asleep: None }
    }
}

impl<W: Waitable> Future for Acquire<W> {
    type Output = Result<W::Grant, W::Denial>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Fresh(_) = self.state {
            // What is free is taken without a lock, and without becoming a waiter.
            if let Some(decision) = self.limiter.take_unless_others_wait(self.cost) {
                *self.project().state = State::Over;
                return Poll::Ready(decision);
            }
        }
        self.wait(context)
    }
}

impl<W: Waitable> Acquire<W> {
    /// Waits. It is not taken where nobody has to, and so must not make that slower.
    #[cold]
    #[inline(never)]
    fn wait(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<W::Grant, W::Denial>> {
        let mut this = self.project();
        let mut has_slept = false;
        loop {
            let looked = match this.state {
                State::Fresh(until) => {
                    let now = this.limiter.runtime().now();
                    let deadline = until.deadline(now);
                    *this.state = State::Waiting { place: None, deadline, relief: None, is_in_charge: false };
                    let State::Waiting { place, relief, .. } = this.state else { return Poll::Pending };
                    match this.limiter.enter(place, now, *this.cost, deadline, context.waker()) {
                        Ok((expected, looked)) => {
                            *relief = expected.zip(this.limiter.relief()).map(|(turn, after)| turn + after);
                            looked
                        }
                        Err(denied) => Looked::Over(Err(denied)),
                    }
                }
                State::Waiting { place: None, .. } => return Poll::Pending,
                State::Waiting { place, relief, is_in_charge, .. } => {
                    // It should have gone by now. Whether those ahead are stuck or others have taken what was theirs: from now on
                    // it minds the time for all.
                    *is_in_charge |= relief.is_some_and(|relief| relief <= this.limiter.runtime().now());
                    this.limiter.look(place, *is_in_charge, context.waker())
                }
                State::Over => return Poll::Pending,
            };
            let next = match looked {
                Looked::Over(answer) => {
                    *this.state = State::Over;
                    this.sleep.set(None);
                    return Poll::Ready(answer);
                }
                // Who minds the time of all minds its own too.
                Looked::MindsTimeUntil(next) => Some(next),
                Looked::Waits => this.state.own_time(this.limiter),
            };
            let Some(next) = next else {
                this.sleep.set(None);
                *this.asleep = None;
                return Poll::Pending;
            };
            if *this.asleep != Some(next) {
                this.sleep.set(Some(this.limiter.runtime().sleep_until(next)));
                *this.asleep = Some(next);
            }
            match this.sleep.as_mut().as_pin_mut().map(|sleep| sleep.poll(context)) {
                Some(Poll::Ready(())) => {
                    this.sleep.set(None);
                    *this.asleep = None;
                }
                _ => return Poll::Pending,
            }
            // A timer that wakes too early, again and again, must not keep the executor from all else.
            if has_slept {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            has_slept = true;
        }
    }
}

impl State {
    /// When one who does not mind the time of all looks again for itself.
    fn own_time<W: Waitable>(&self, limiter: &W) -> Option<Nanos> {
        let Self::Waiting { deadline, relief, is_in_charge, .. } = *self else { return None };
        let relief = match (relief, limiter.relief()) {
            // It is in charge, and no clock knows when anybody goes. Those ahead may not tell it when that changes, so it looks
            // again, each time after twice as long.
            (Some(relief), Some(after)) if is_in_charge => {
                let now = limiter.runtime().now();
                Some(now + after + now.saturating_duration_since(relief))
            }
            (relief, _) => relief,
        };
        match (deadline, relief) {
            (Some(deadline), Some(relief)) => Some(deadline.min(relief)),
            (deadline, relief) => deadline.or(relief),
        }
    }
}

impl<W: Waitable> fmt::Debug for Acquire<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("cost", &self.cost).field("state", &self.state).finish_non_exhaustive()
    }
}
