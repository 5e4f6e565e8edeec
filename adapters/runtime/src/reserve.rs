//! Waiting for tokens whose number is known only afterwards.

use core::fmt;
use core::task::Waker;
use core::time::Duration;

use lock_api::RawMutex;
use sluicegate_core::{AdjustableBucket, Admitted, Debit, Decision, Denied, Holding, Nanos, Observer, Reservation};

use crate::acquire::{Acquire, Until};
use crate::grant::Grantor;
use crate::line::{Fetched, Hold};
use crate::queued::Queued;
use crate::room::Room;
use crate::runtime::Runtime;
use crate::waitable::{Answer, Entered, Looked, Waitable};

/// Waits for a [`WaitedReservation`]; see [`Queued::reserve`].
pub type Reserve<W> = Acquire<Reserving<W>>;

/// Tokens held for a request whose cost is known only afterwards. They stand in one line with all who wait for the bucket, whatever
/// they wait for.
///
/// ```
/// # #[cfg(feature = "alloc")] {
/// # use core::{future::Future, pin::pin, task::{Context, Poll, Waker}};
/// use sluicegate_runtime::{AdjustableBucket, Growing, ManualRuntime, Queued, WaitOptions, quota};
///
/// type Lock = parking_lot::RawMutex;
///
/// let bucket = AdjustableBucket::with_limit(quota!("1000/1m").into(), ());
/// let bucket = Queued::<_, _, Lock, Growing>::new(bucket, ManualRuntime::<Lock>::new(), WaitOptions::new());
/// let first = bucket.try_reserve(800)?;
/// let mut second = pin!(bucket.reserve(500));
/// # let mut context = Context::from_waker(Waker::noop());
/// assert!(second.as_mut().poll(&mut context).is_pending());
///
/// // It cost less, and what it did not need goes to the next.
/// assert_eq!(first.settle(300).charged, 300);
/// let Poll::Ready(second) = second.as_mut().poll(&mut context) else { panic!("500 of 700 are there") };
/// second?.cancel();
/// assert_eq!(bucket.try_acquire(700)?.remaining.exactly(), Some(0));
/// # }
/// # Ok::<(), sluicegate_core::Denied>(())
/// ```
impl<C, O: Observer, R: Runtime, M: RawMutex, S: Room> Queued<AdjustableBucket<C, O>, R, M, S> {
    /// Holds `cost` tokens now, or nothing; never waits. It takes what is free, also while others wait, unless
    /// [`WaitOptions::fair`](crate::WaitOptions::fair) says otherwise.
    ///
    /// # Errors
    /// As [`try_acquire`](Self::try_acquire).
    pub fn try_reserve(&self, cost: u64) -> Result<WaitedReservation<&Self>, Denied> {
        let (now, decision) = self.hold_at_once(cost);
        WaitedReservation::told(self, now, cost, decision)
    }

    fn hold_at_once(&self, cost: u64) -> (Nanos, Decision) {
        let now = self.runtime.now();
        (now, self.decide_at_once(now, cost, Holding::hold_at))
    }

    /// Waits until `cost` tokens can be held, in order, for as long as that takes.
    ///
    /// It waits as [`acquire`](Self::acquire) does, in the same line, and a future that is dropped has held nothing. What it was
    /// granted is held from the turn that it had in the line on, also before it is polled again.
    ///
    /// # Errors
    /// As `acquire`; and [`Denied::CostExceedsLimit`] for more than can be held, 2^40 - 1 tokens.
    pub fn reserve(&self, cost: u64) -> Reserve<&Self> {
        Acquire::new(Reserving(self), cost, Until::Ever)
    }

    /// Waits until `cost` tokens can be held, but no longer than `timeout`. Zero succeeds only if they are free now and nobody waits.
    ///
    /// # Errors
    /// As [`reserve`](Self::reserve) and [`acquire_timeout`](Self::acquire_timeout). It ends with
    /// [`Denied::ConcurrencyLimited`] where others hold so much that only the end of a reservation could have helped.
    pub fn reserve_timeout(&self, cost: u64, timeout: Duration) -> Reserve<&Self> {
        Acquire::new(Reserving(self), cost, Until::After(timeout))
    }

    /// Waits until `cost` tokens can be held, but no longer than until the clock reads `deadline`.
    ///
    /// # Errors
    /// As [`reserve_timeout`](Self::reserve_timeout).
    pub fn reserve_deadline(&self, cost: u64, deadline: Nanos) -> Reserve<&Self> {
        Acquire::new(Reserving(self), cost, Until::At(deadline))
    }
}

#[cfg(feature = "alloc")]
impl<C, O: Observer, R: Runtime, M: RawMutex, S: Room> Queued<AdjustableBucket<C, O>, R, M, S> {
    /// As [`try_reserve`](Self::try_reserve), for a reservation that shares the limiter and can go to another task.
    ///
    /// # Errors
    /// As `try_reserve`.
    pub fn try_reserve_owned(
        self: &alloc::sync::Arc<Self>,
        cost: u64,
    ) -> Result<WaitedReservation<alloc::sync::Arc<Self>>, Denied> {
        let (now, decision) = self.hold_at_once(cost);
        WaitedReservation::told(alloc::sync::Arc::clone(self), now, cost, decision)
    }

    /// As [`reserve`](Self::reserve), by a future and a reservation that share the limiter and can go to another task.
    pub fn reserve_owned(self: &alloc::sync::Arc<Self>, cost: u64) -> Reserve<alloc::sync::Arc<Self>> {
        Acquire::new(Reserving(alloc::sync::Arc::clone(self)), cost, Until::Ever)
    }

    /// As [`reserve_timeout`](Self::reserve_timeout), by a future and a reservation that share the limiter.
    pub fn reserve_timeout_owned(
        self: &alloc::sync::Arc<Self>,
        cost: u64,
        timeout: Duration,
    ) -> Reserve<alloc::sync::Arc<Self>> {
        Acquire::new(Reserving(alloc::sync::Arc::clone(self)), cost, Until::After(timeout))
    }

    /// As [`reserve_deadline`](Self::reserve_deadline), by a future and a reservation that share the limiter.
    pub fn reserve_deadline_owned(
        self: &alloc::sync::Arc<Self>,
        cost: u64,
        deadline: Nanos,
    ) -> Reserve<alloc::sync::Arc<Self>> {
        Acquire::new(Reserving(alloc::sync::Arc::clone(self)), cost, Until::At(deadline))
    }
}

/// Tokens that are held for one request until it is known what it cost: a [`Reservation`] whose end lets those go who wait.
///
/// Settled, cancelled or dropped, it ends once, and wakes those who can go with what it did not need before it returns. What is held is
/// not refilled; see [`Reservation`] for what holds.
///
/// # Cancel safety
///
/// A reservation within a future that is dropped is cancelled. One that is leaked holds its tokens for as long as the bucket lives,
/// and who waits for more than the rest waits for as long.
#[must_use = "a reservation that is dropped is cancelled at once"]
pub struct WaitedReservation<W: Reserves> {
    limiter: W,
    cost: u64,
    held: Admitted,
    is_settled: bool,
}

impl<W: Reserves> WaitedReservation<W> {
    /// Made before the observer is told, so that a panic there lets go of it.
    fn told(limiter: W, now: Nanos, cost: u64, decision: Decision) -> Result<Self, Denied> {
        match decision {
            Ok(held) => {
                let reservation = Self { limiter, cost, held, is_settled: false };
                reservation.limiter.tell(now, cost, Ok(&held));
                Ok(reservation)
            }
            Err(denied) => {
                limiter.tell(now, cost, Err(denied));
                Err(denied)
            }
        }
    }

    /// The tokens reserved.
    #[inline]
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Consumes the tokens that the request cost in the end, and lets go of the others. Reads the executor's clock.
    ///
    /// It may have cost more than was held: what exceeds it is taken as far as the rest of the bucket and its quota's
    /// [`debt`](sluicegate_core::Quota::debt) reach, and the answer tells what could not be.
    pub fn settle(self, spent: u64) -> Debit {
        self.settle_by(None, spent)
    }

    /// As [`settle`](Self::settle), at the reading `now`; or at the reading that it was granted at, if that is later.
    pub fn settle_at(self, now: Nanos, spent: u64) -> Debit {
        self.settle_by(Some(now), spent)
    }

    fn settle_by(mut self, now: Option<Nanos>, spent: u64) -> Debit {
        // Dropped afterwards, also by a panic of the observer, which wakes those whom it concerns.
        self.is_settled = true;
        self.limiter.settle(self.cost, &self.held, now, spent)
    }

    /// Lets go of all.
    pub fn cancel(self) {}
}

impl<W: Reserves> Drop for WaitedReservation<W> {
    fn drop(&mut self) {
        self.limiter.end(self.cost, (!self.is_settled).then_some(&self.held));
    }
}

impl<W: Reserves> fmt::Debug for WaitedReservation<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitedReservation").field("cost", &self.cost).finish_non_exhaustive()
    }
}

/// How a [`WaitedReservation`] refers to its limiter: by reference or by `Arc`.
pub trait Reserves: Waitable<Cost = u64, Grant = Admitted, Denial = Denied> {
    #[doc(hidden)]
    fn hold_unless_others_wait(&self, cost: u64) -> Option<(Nanos, Decision)>;
    #[doc(hidden)]
    fn enter_to_hold(
        &self,
        place: &mut Option<u32>,
        now: Nanos,
        cost: u64,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<Option<Nanos>, Denied>;
    #[doc(hidden)]
    fn look_untold(&self, place: &mut Option<u32>, is_in_charge: bool, waker: &Waker)
    -> Looked<(Nanos, u64, Decision)>;
    #[doc(hidden)]
    fn tell(&self, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>);
    /// At `now`, or by the executor's clock.
    #[doc(hidden)]
    fn settle(&self, cost: u64, held: &Admitted, now: Option<Nanos>, spent: u64) -> Debit;
    /// Lets go of what is held still, and lets others go with what was not needed.
    #[doc(hidden)]
    fn end(&self, cost: u64, held: Option<&Admitted>);
}

impl<C, O: Observer, R: Runtime, M: RawMutex, S: Room> Reserves for Queued<AdjustableBucket<C, O>, R, M, S> {
    fn hold_unless_others_wait(&self, cost: u64) -> Option<(Nanos, Decision)> {
        if !self.waiting.is_none() {
            return None;
        }
        let now = self.runtime.now();
        let decision = Holding::hold_at(&self.limiter, now, cost);
        let is_over = decision.is_ok() || decision.is_err_and(|denied| denied.is_final());
        is_over.then_some((now, decision))
    }

    fn enter_to_hold(
        &self,
        place: &mut Option<u32>,
        now: Nanos,
        cost: u64,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<Option<Nanos>, Denied> {
        self.enter_line(place, now, cost, Hold::Reserved, deadline, waker)
    }

    fn look_untold(
        &self,
        place: &mut Option<u32>,
        is_in_charge: bool,
        waker: &Waker,
    ) -> Looked<(Nanos, u64, Decision)> {
        self.look_in_line(place, is_in_charge, waker).map(|Fetched { at, cost, answer }| (at, cost, answer))
    }

    fn tell(&self, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>) {
        Grantor::tell(&self.limiter, now, cost, decision);
    }

    fn settle(&self, cost: u64, held: &Admitted, now: Option<Nanos>, spent: u64) -> Debit {
        let reservation = Reservation::of_held(&self.limiter, cost, held);
        match now {
            Some(now) => reservation.settle_at(now, spent),
            None => reservation.settle_by(&self.runtime, spent),
        }
    }

    fn end(&self, cost: u64, held: Option<&Admitted>) {
        /// Also where an observer panics.
        struct Ended<F: Fn()>(F);
        impl<F: Fn()> Drop for Ended<F> {
            fn drop(&mut self) {
                (self.0)();
            }
        }
        let _ended = Ended(|| self.let_all_go());
        drop(held.map(|held| Reservation::of_held(&self.limiter, cost, held)));
    }
}

macro_rules! points_to_reserves {
    ($pointer:ty) => {
        impl<W: Reserves + ?Sized> Reserves for $pointer {
            fn hold_unless_others_wait(&self, cost: u64) -> Option<(Nanos, Decision)> {
                (**self).hold_unless_others_wait(cost)
            }

            fn enter_to_hold(
                &self,
                place: &mut Option<u32>,
                now: Nanos,
                cost: u64,
                deadline: Option<Nanos>,
                waker: &Waker,
            ) -> Result<Option<Nanos>, Denied> {
                (**self).enter_to_hold(place, now, cost, deadline, waker)
            }

            fn look_untold(
                &self,
                place: &mut Option<u32>,
                is_in_charge: bool,
                waker: &Waker,
            ) -> Looked<(Nanos, u64, Decision)> {
                (**self).look_untold(place, is_in_charge, waker)
            }

            fn tell(&self, now: Nanos, cost: u64, decision: Result<&Admitted, Denied>) {
                (**self).tell(now, cost, decision);
            }

            fn settle(&self, cost: u64, held: &Admitted, now: Option<Nanos>, spent: u64) -> Debit {
                (**self).settle(cost, held, now, spent)
            }

            fn end(&self, cost: u64, held: Option<&Admitted>) {
                (**self).end(cost, held);
            }
        }
    };
}

points_to_reserves!(&W);
#[cfg(feature = "alloc")]
points_to_reserves!(alloc::sync::Arc<W>);

/// How a future that waits for a reservation refers to its limiter: as `W` does, by reference or by `Arc`.
#[derive(Clone, Copy)]
pub struct Reserving<W>(W);

/// What is granted is held, and not kept when the waiter learns of it: its reservation ends that.
impl<W: Reserves + Clone> Waitable for Reserving<W> {
    type Cost = u64;
    type Grant = WaitedReservation<W>;
    type Denial = Denied;
    type Runtime = W::Runtime;

    #[inline]
    fn runtime(&self) -> &W::Runtime {
        self.0.runtime()
    }

    fn relief(&self) -> Option<Duration> {
        self.0.relief()
    }

    fn take_unless_others_wait(&self, cost: u64) -> Option<Answer<Self>> {
        let (now, decision) = self.0.hold_unless_others_wait(cost)?;
        Some(WaitedReservation::told(self.0.clone(), now, cost, decision))
    }

    fn enter(
        &self,
        place: &mut Option<u32>,
        now: Nanos,
        cost: u64,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Result<Entered<Self>, Denied> {
        let expected = self.0.enter_to_hold(place, now, cost, deadline, waker)?;
        Ok((expected, self.look(place, false, waker)))
    }

    fn look(&self, place: &mut Option<u32>, is_in_charge: bool, waker: &Waker) -> Looked<Answer<Self>> {
        self.0
            .look_untold(place, is_in_charge, waker)
            .map(|(at, cost, decision)| WaitedReservation::told(self.0.clone(), at, cost, decision))
    }

    fn leave(&self, place: u32) {
        self.0.leave(place);
    }

    fn give_back(&self, _cost: u64, reservation: WaitedReservation<W>) {
        reservation.cancel();
    }
}

impl<W> fmt::Debug for Reserving<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserving").finish_non_exhaustive()
    }
}
