//! What a waiting future asks of the limiter that it waits for.

use core::task::{Poll, Waker};
use core::time::Duration;

use lock_api::RawMutex;
use sluicegate_core::{Denied, Nanos};

use crate::grant::Grantor;
use crate::line::Next;
use crate::news::News;
use crate::queued::Queued;
use crate::room::Room;
use crate::runtime::Runtime;

/// Something that [`Acquire`](crate::Acquire) can wait for: a reference to a [`Queued`] limiter, or an `Arc` of one.
pub trait Waitable: sealed::Sealed {
    /// What a waiter is given.
    type Grant;
    /// The executor's clock and timer.
    type Runtime: Runtime;
    #[doc(hidden)]
    fn runtime(&self) -> &Self::Runtime;
    #[doc(hidden)]
    fn relief(&self) -> Option<Duration>;
    #[doc(hidden)]
    fn take_unless_others_wait(&self, cost: u64) -> Option<Result<Self::Grant, Denied>>;
    #[doc(hidden)]
    #[allow(clippy::type_complexity, reason = "the place, the expected turn, and what was seen")]
    fn enter(
        &self,
        now: Nanos,
        cost: u64,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<(u32, Option<Nanos>, Looked<Self::Grant>), Denied>;
    #[doc(hidden)]
    fn look(&self, place: u32, is_in_charge: bool, waker: &Waker) -> Looked<Self::Grant>;
    #[doc(hidden)]
    fn leave(&self, place: u32);
}

/// What a waiter sees.
#[doc(hidden)]
#[derive(Debug)]
pub enum Looked<G> {
    /// Its wait is over, and its place is given up.
    Over(Result<G, Denied>),
    /// It is in charge of time, and sleeps for all until then.
    MindsTimeUntil(Nanos),
    /// Somebody wakes it.
    Waits,
}

impl<L: Grantor, R: Runtime, M: RawMutex, S: Room> Waitable for Queued<L, R, M, S> {
    type Grant = L::Grant;
    type Runtime = R;

    #[inline]
    fn runtime(&self) -> &R {
        &self.runtime
    }

    fn relief(&self) -> Option<Duration> {
        self.options.relief
    }

    /// Decides at once where nobody waits and the answer is not to wait.
    #[inline(always)]
    fn take_unless_others_wait(&self, cost: u64) -> Option<Result<L::Grant, Denied>> {
        if !self.waiting.is_none() {
            return None;
        }
        let now = self.runtime.now();
        let decision = self.limiter.take_at(now, cost);
        if decision.as_ref().is_err_and(|denied| !denied.is_final()) {
            return None;
        }
        self.limiter.tell(now, cost, decision.as_ref().map_err(|denied| *denied));
        Some(decision)
    }

    fn enter(
        &self,
        now: Nanos,
        cost: u64,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<(u32, Option<Nanos>, Looked<L::Grant>), Denied> {
        let mut news = News::none();
        let (place, expected) = {
            let mut line = self.line.lock();
            let joined = if line.is_closed() {
                Err(Denied::Closed)
            } else {
                let earliest = line.earliest(now, &self.limiter, cost);
                let in_time = earliest.and_then(|earliest| match deadline {
                    Some(deadline) if earliest > deadline => {
                        // A deadline that has passed is too early also where nothing is missing.
                        let retry_after = earliest.saturating_duration_since(now).max(Duration::from_nanos(1));
                        Err(Denied::RateLimited { retry_after })
                    }
                    _ => Ok(()),
                });
                in_time.and_then(|()| line.join(now, cost, deadline, waker.clone(), &mut news))
            };
            let expected = line.turn_of_newest(now, &self.limiter);
            // Counted before the limiter is looked at: see `Waiting`.
            self.unlock(line);
            (joined, expected)
        };
        news.tell();
        match place {
            Ok(place) => Ok((place, expected, self.look(place, false, waker))),
            Err(denied) => {
                self.limiter.tell(now, cost, Err(denied));
                Err(denied)
            }
        }
    }

    fn look(&self, place: u32, is_in_charge: bool, waker: &Waker) -> Looked<L::Grant> {
        let mut news = News::none();
        let mut line = self.line.lock();
        let now = self.runtime.now();
        let is_all = line.let_go(now, &self.limiter, &mut news);
        if is_in_charge {
            line.keep_unfetched(&self.limiter);
        }
        let cost = line.cost(place);
        // What it learns of counts as taken before the next turn is looked for: what is held has no time to come back.
        let fetched = line.fetch(place, &self.limiter, waker);
        let next = line.mind_time(now, &self.limiter, Some((place, is_in_charge)), &mut news);
        self.unlock(line);
        news.tell();
        if !is_all {
            self.recheck();
        }
        match (fetched, next) {
            (Poll::Ready((at, answer)), _) => {
                self.limiter.tell(at, cost, answer.as_ref().map_err(|denied| *denied));
                Looked::Over(answer)
            }
            (Poll::Pending, Next::Until(next)) => Looked::MindsTimeUntil(next),
            (Poll::Pending, Next::Woken) => Looked::Waits,
        }
    }

    fn leave(&self, place: u32) {
        let mut line = self.line.lock();
        let lost = line.leave(place);
        self.unlock(line);
        if let Some(give_back) = lost {
            give_back(&self.limiter);
        }
        self.recheck();
    }
}

/// Forwards through a pointer, whichever method is asked.
macro_rules! points_to_waitable {
    ($pointer:ty) => {
        impl<W: Waitable + ?Sized> Waitable for $pointer {
            type Grant = W::Grant;
            type Runtime = W::Runtime;

            #[inline]
            fn runtime(&self) -> &W::Runtime {
                (**self).runtime()
            }

            fn relief(&self) -> Option<Duration> {
                (**self).relief()
            }

            #[inline(always)]
            fn take_unless_others_wait(&self, cost: u64) -> Option<Result<W::Grant, Denied>> {
                (**self).take_unless_others_wait(cost)
            }

            fn enter(
                &self,
                now: Nanos,
                cost: u64,
                deadline: Option<Nanos>,
                waker: &Waker,
            ) -> Result<(u32, Option<Nanos>, Looked<W::Grant>), Denied> {
                (**self).enter(now, cost, deadline, waker)
            }

            fn look(&self, place: u32, is_in_charge: bool, waker: &Waker) -> Looked<W::Grant> {
                (**self).look(place, is_in_charge, waker)
            }

            fn leave(&self, place: u32) {
                (**self).leave(place);
            }
        }
    };
}

points_to_waitable!(&W);
#[cfg(feature = "alloc")]
points_to_waitable!(alloc::sync::Arc<W>);

mod sealed {
    use super::{Queued, Room};
    use crate::grant::Grantor;

    pub trait Sealed {}
    impl<L: Grantor, R, M, S: Room> Sealed for Queued<L, R, M, S> {}
    impl<W: Sealed + ?Sized> Sealed for &W {}
    #[cfg(feature = "keyed")]
    impl<T: crate::Store, R: crate::Runtime + Clone, M: lock_api::RawMutex> Sealed for crate::KeyWaiter<T, R, M> {}
    #[cfg(feature = "alloc")]
    impl<W: Sealed + ?Sized> Sealed for alloc::sync::Arc<W> {}
}
