//! What a waiting future asks of the limiter that it waits for.

use core::task::{Poll, Waker};
use core::time::Duration;

use lock_api::RawMutex;
use sluicegate_core::{Denied, Nanos};

use crate::costs::Costs;
use crate::finally::Finally;
use crate::grant::{GiveBack, Grantor};
use crate::line::{Fetched, Hold, Line, Next, Unfetched, Wish};
use crate::news::News;
use crate::queued::Queued;
use crate::room::Room;
use crate::runtime::Runtime;

/// Something that [`Acquire`](crate::Acquire) can wait for: a reference to a [`Queued`] limiter, or an `Arc` of one.
pub trait Waitable: sealed::Sealed {
    /// What a waiter asks for.
    type Cost: Costs;
    /// What a waiter is given.
    type Grant;
    /// What a waiter is told that is given nothing.
    type Denial: Copy + Into<Denied>;
    /// The executor's clock and timer.
    type Runtime: Runtime;
    #[doc(hidden)]
    fn runtime(&self) -> &Self::Runtime;
    #[doc(hidden)]
    fn relief(&self) -> Option<Duration>;
    #[doc(hidden)]
    fn take_unless_others_wait(&self, cost: Self::Cost) -> Option<Answer<Self>>;
    /// Takes a place, which is in `place` as soon as it is taken and until it is given up, so that a panic in between leaves none behind.
    #[doc(hidden)]
    fn enter(
        &self,
        place: &mut Option<u32>,
        now: Nanos,
        cost: Self::Cost,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<Entered<Self>, Self::Denial>;
    #[doc(hidden)]
    fn look(&self, place: &mut Option<u32>, is_in_charge: bool, waker: &Waker) -> Looked<Answer<Self>>;
    #[doc(hidden)]
    fn leave(&self, place: u32);
    #[doc(hidden)]
    fn give_back(&self, cost: Self::Cost, grant: Self::Grant);
}

/// What a waiter is told.
pub(crate) type Answer<W> = Result<<W as Waitable>::Grant, <W as Waitable>::Denial>;

/// The expected turn, and what was seen.
pub(crate) type Entered<W> = (Option<Nanos>, Looked<Answer<W>>);

/// What a waiter sees.
#[doc(hidden)]
#[derive(Debug)]
pub enum Looked<A> {
    /// Its wait is over, and its place is given up.
    Over(A),
    /// It is in charge of time, and sleeps for all until then.
    MindsTimeUntil(Nanos),
    /// Somebody wakes it.
    Waits,
}

impl<A> Looked<A> {
    pub(crate) fn map<B>(self, answer: impl FnOnce(A) -> B) -> Looked<B> {
        match self {
            Self::Over(over) => Looked::Over(answer(over)),
            Self::MindsTimeUntil(next) => Looked::MindsTimeUntil(next),
            Self::Waits => Looked::Waits,
        }
    }
}

impl<L: Grantor, R: Runtime, M: RawMutex, S: Room> Waitable for Queued<L, R, M, S> {
    type Cost = L::Cost;
    type Grant = L::Grant;
    type Denial = L::Denial;
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
    fn take_unless_others_wait(&self, cost: L::Cost) -> Option<Answer<Self>> {
        if !self.waiting.is_none() {
            return None;
        }
        let now = self.runtime.now();
        let decision = self.limiter.take_at(now, cost);
        if decision.as_ref().is_err_and(|denial| !(*denial).into().is_final()) {
            return None;
        }
        self.limiter.tell(now, cost, decision.as_ref().map_err(|denial| *denial));
        Some(decision)
    }

    fn enter(
        &self,
        place: &mut Option<u32>,
        now: Nanos,
        cost: L::Cost,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<Entered<Self>, L::Denial> {
        let expected = self.enter_line(place, now, cost, Hold::UntilFetched, deadline, waker)?;
        Ok((expected, self.look(place, false, waker)))
    }

    fn look(&self, place: &mut Option<u32>, is_in_charge: bool, waker: &Waker) -> Looked<Answer<Self>> {
        self.look_in_line(place, is_in_charge, waker).map(|Fetched { at, cost, answer }| {
            self.limiter.tell(at, cost, answer.as_ref().map_err(|denial| *denial));
            answer
        })
    }

    fn leave(&self, place: u32) {
        let mut line = self.line.lock();
        let (unfetched, waker) = line.leave(place);
        self.unlock(line);
        // Also where an observer or a waker panics.
        let _next = Finally(|| self.let_all_go());
        drop(waker);
        if let Some(Unfetched { at, cost, grant, is_kept }) = unfetched {
            if is_kept {
                GiveBack::new(&self.limiter, cost, grant).tell(at);
            } else {
                self.limiter.let_go(at, cost, grant);
            }
        }
    }

    fn give_back(&self, cost: L::Cost, grant: L::Grant) {
        Self::give_back(self, cost, grant);
    }
}

impl<L: Grantor, R: Runtime, M: RawMutex, S: Room> Queued<L, R, M, S> {
    /// Takes a place at the end of the line, and tells the turn that it expects.
    pub(crate) fn enter_line(
        &self,
        place: &mut Option<u32>,
        now: Nanos,
        cost: L::Cost,
        hold: Hold,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<Option<Nanos>, L::Denial> {
        let mut news = News::none();
        let wish = Wish { cost, hold, is_patient: deadline.is_none() };
        let mut waker = Some(waker.clone());
        let mut line = self.line.lock();
        // Whoever can go goes, so that nobody who will not come makes a line look longer than it is.
        let is_all = line.let_go(self.runtime.now(), &self.limiter, &mut news);
        let joined = self.join(&mut line, now, wish, deadline, &mut waker, &mut news);
        let expected = line.turn_of_newest(now, &self.limiter);
        match joined {
            Ok(taken) => *place = Some(taken),
            Err(_) => drop(line.mind_time(self.runtime.now(), &self.limiter, None, &mut news)),
        }
        // Counted before the limiter is looked at: see `Waiting`.
        self.unlock(line);
        drop(waker);
        self.tell(news, is_all);
        joined.map(|_| expected).inspect_err(|denial| self.limiter.tell(now, cost, Err(*denial)))
    }

    fn join(
        &self,
        line: &mut Line<S, L>,
        now: Nanos,
        wish: Wish<L::Cost>,
        deadline: Option<Nanos>,
        waker: &mut Option<Waker>,
        news: &mut News,
    ) -> Result<u32, L::Denial> {
        let denial = |line: &Line<S, L>, denied| self.limiter.denial(now, line.with_those_ahead(wish.cost), denied);
        if line.is_closed() {
            return Err(denial(line, Denied::Closed));
        }
        let earliest = line.earliest(now, &self.limiter, wish.cost)?;
        // Who has no time and is not the first would make room for itself, or wait, in vain.
        let is_vain = deadline.is_some_and(|deadline| deadline <= now) && line.is_behind_others();
        if is_vain || deadline.is_some_and(|deadline| earliest > deadline) {
            let retry_after = earliest.saturating_duration_since(now);
            return Err(if is_vain || retry_after.is_zero() || line.waits_for_a_release(now, &self.limiter) {
                // A deadline that has passed is too early also where nothing is missing.
                line.denial_behind(now, &self.limiter, wish.cost)
            } else {
                denial(line, Denied::RateLimited { retry_after })
            });
        }
        line.join(now, &self.limiter, wish, deadline, waker, news).map_err(|denied| denial(line, denied))
    }

    /// Lets all go who can, and fetches the answer in `place` if there is one; nobody is told of it yet.
    pub(crate) fn look_in_line(
        &self,
        place: &mut Option<u32>,
        is_in_charge: bool,
        waker: &Waker,
    ) -> Looked<Fetched<L>> {
        // Who has no place waits for nothing.
        let Some(number) = *place else { return Looked::Waits };
        let mut news = News::none();
        // Cloned and dropped with the lock open, because both may run code of the executor.
        let mut waker = Some(waker.clone());
        let mut line = self.line.lock();
        let now = self.runtime.now();
        // What it learns of counts as taken before those behind it are looked at: what is held has no time to come back.
        let early = line.is_over(number).then(|| line.fetch(number, &self.limiter, &mut waker));
        let is_all = line.let_go(now, &self.limiter, &mut news);
        let fetched = early.unwrap_or_else(|| line.fetch(number, &self.limiter, &mut waker));
        if fetched.is_ready() {
            *place = None;
        }
        let polled = fetched.is_pending().then_some((number, is_in_charge));
        let next = line.mind_time(now, &self.limiter, polled, &mut news);
        self.unlock(line);
        drop(waker);
        self.tell(news, is_all);
        match (fetched, next) {
            (Poll::Ready(fetched), _) => Looked::Over(fetched),
            (Poll::Pending, Next::Until(next)) => Looked::MindsTimeUntil(next),
            (Poll::Pending, Next::Woken) => Looked::Waits,
        }
    }
}

/// Forwards to another, whichever method is asked.
macro_rules! forwards_to_waitable {
    ([$($generics:tt)*] $type:ty, $target:ty, |$this:ident| $to:expr) => {
        impl<$($generics)*> Waitable for $type {
            type Cost = <$target as Waitable>::Cost;
            type Grant = <$target as Waitable>::Grant;
            type Denial = <$target as Waitable>::Denial;
            type Runtime = <$target as Waitable>::Runtime;

            #[inline]
            fn runtime(&self) -> &Self::Runtime {
                let $this = self;
                ($to).runtime()
            }

            fn relief(&self) -> Option<Duration> {
                let $this = self;
                ($to).relief()
            }

            #[inline(always)]
            fn take_unless_others_wait(&self, cost: Self::Cost) -> Option<Answer<Self>> {
                let $this = self;
                ($to).take_unless_others_wait(cost)
            }

            fn enter(
                &self,
                place: &mut Option<u32>,
                now: Nanos,
                cost: Self::Cost,
                deadline: Option<Nanos>,
                waker: &Waker,
            ) -> Result<Entered<Self>, Self::Denial> {
                let $this = self;
                ($to).enter(place, now, cost, deadline, waker)
            }

            fn look(&self, place: &mut Option<u32>, is_in_charge: bool, waker: &Waker) -> Looked<Answer<Self>> {
                let $this = self;
                ($to).look(place, is_in_charge, waker)
            }

            fn leave(&self, place: u32) {
                let $this = self;
                ($to).leave(place);
            }

            fn give_back(&self, cost: Self::Cost, grant: Self::Grant) {
                let $this = self;
                Waitable::give_back($to, cost, grant);
            }
        }
    };
}

forwards_to_waitable!([W: Waitable + ?Sized] &W, W, |this| &**this);
#[cfg(feature = "alloc")]
forwards_to_waitable!([W: Waitable + ?Sized] alloc::sync::Arc<W>, W, |this| &**this);
#[cfg(feature = "alloc")]
forwards_to_waitable!([Q: crate::permits::Released] crate::permits::LineOf<Q>, Q::Line, |this| this.0.line());

mod sealed {
    use super::{Queued, Room};
    use crate::grant::Grantor;

    pub trait Sealed {}
    impl<L: Grantor, R, M, S: Room> Sealed for Queued<L, R, M, S> {}
    impl<W: Sealed + ?Sized> Sealed for &W {}
    impl<W: Sealed> Sealed for crate::reserve::Reserving<W> {}
    #[cfg(feature = "keyed")]
    impl<T: crate::Store, R: crate::Runtime + Clone, M: lock_api::RawMutex> Sealed for crate::KeyWaiter<T, R, M> {}
    #[cfg(feature = "alloc")]
    impl<W: Sealed + ?Sized> Sealed for alloc::sync::Arc<W> {}
    #[cfg(feature = "alloc")]
    impl<Q> Sealed for crate::permits::LineOf<Q> {}
}
