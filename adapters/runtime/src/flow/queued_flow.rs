//! The flow that can wait.

use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use lock_api::RawMutex;
use sluicegate_core::{
    AdaptiveConcurrency, AdjustableBucket, BreakerObserver, CallOutcome, CircuitBreaker, ConcurrencyController,
    ConcurrencyLimit, Denied, Flow, FlowError, FlowObserver, FlowPermit, FlowRefusal, FlowStage, Inheritance, Limit,
    Nanos, Observer,
};

use super::answer::{FlowPath, Flowed};
use super::options::{FlowOptions, FlowOptionsError, InFlight, WhenEmpty};
use super::parts::{FlowBucket, FlowLimiter, FlowPlaces};
use crate::finally::Finally;
use crate::permits::{QueuedPermits, WaitedPermit};
use crate::queued::Queued;
use crate::runtime::Runtime;

/// Who is told of all that happens in a flow: what its bucket decides, what its breaker does, and how calls end.
///
/// Whatever implements the three is one. Each part has a clone, so share it by `Arc`.
pub trait FlowEvents: Observer + BreakerObserver + FlowObserver + Clone {}

impl<O: Observer + BreakerObserver + FlowObserver + Clone> FlowEvents for O {}

type Breaker<M, O> = Option<CircuitBreaker<M, (), O>>;
type Places<R, M> = Option<FlowPlaces<R, M>>;
type Parts<R, M, O> = Flow<FlowLimiter<R, M, O>, R, Breaker<M, O>, Places<R, M>, O>;

/// A call that has entered a [`QueuedFlow`].
pub type QueuedFlowPermit<'f, R, M, O = ()> = FlowPermit<'f, FlowLimiter<R, M, O>, R, Breaker<M, O>, Places<R, M>, O>;

/// A [`Flow`] whose calls can wait: a bucket whose limit can be changed, a circuit breaker, a limit on calls in flight, a time limit; and what
/// becomes of a call when the bucket is empty.
///
/// # Guarantees
///
/// Those of a [`Flow`]: who pays, what each end does, that nothing leaks. And of waiting:
///
/// - Who waits holds no token and no probe's place. A place in flight is taken first and kept while waiting for tokens: whoever is behind needs both, and
///   so nobody loses by it. To a law that adapts the number of places, one that is kept so is not in use, and how such a wait ends says nothing.
/// - An open breaker refuses at once. One that opens meanwhile refuses whoever has waited; the tokens go to the next, as if they had never been taken.
/// - A cost that can never pass, and a flow that is closed, are told at once and by the limiter, whatever else there is to wait for.
/// - Of those who wait a change of the limit, and every end of a call, wakes whom it concerns.
///
/// # Cancel safety
///
/// A future may be dropped at any moment. Before the call is made it has taken nothing, and counts nowhere. Afterwards the call was cancelled: it counts as
/// [`FlowOptions::cancelled_as`] says, and its cost stays taken.
///
/// One that is leaked, or never polled again, keeps what its turn gave it: its tokens are held, and its place in flight is in use, for as long as it exists.
///
/// # Costs
///
/// Where calls queue, no cost above 2^40 - 1 can pass, because so many tokens at most can be held. Where the limit adapts, its burst does too: a cost above what is left of it can
/// not pass until it has recovered, and is refused as one that never fits; see [`AdaptiveOptions::least_burst`](sluicegate_core::AdaptiveOptions::least_burst).
///
/// # Complexity
///
/// What is not refused takes the decisions of its parts and two readings of the clock; waiting is that of [`Queued`]. Calls that do not wait allocate nothing.
///
/// ```
/// # use core::{future::Future, pin::pin, task::{Context, Poll, Waker}, time::Duration};
/// use sluicegate_runtime::{FlowOptions, FlowPath, ManualRuntime, QueuedFlow, WhenEmpty, quota};
///
/// type Lock = parking_lot::RawMutex;
///
/// let time = ManualRuntime::<Lock>::new();
/// let options = FlowOptions::new(quota!("10/1s burst 1")).when_empty(WhenEmpty::Queue).in_flight(5);
/// let flow = QueuedFlow::<_, Lock>::new(options, time.clone())?;
///
/// # let mut context = Context::from_waker(Waker::noop());
/// let mut first = pin!(flow.call(1, || async { Ok::<_, ()>("first") }));
/// let Poll::Ready(Ok(answer)) = first.as_mut().poll(&mut context) else { panic!("there is a token") };
/// assert_eq!((answer.value, answer.path), ("first", FlowPath::Direct));
///
/// let mut second = pin!(flow.call(1, || async { Ok::<_, ()>("second") }));
/// assert!(second.as_mut().poll(&mut context).is_pending());
/// time.advance(Duration::from_millis(100));
/// let Poll::Ready(Ok(answer)) = second.as_mut().poll(&mut context) else { panic!("a token has come") };
/// assert_eq!(answer.path, FlowPath::Queued { waited: Duration::from_millis(100) });
/// # Ok::<(), sluicegate_runtime::FlowOptionsError>(())
/// ```
pub struct QueuedFlow<R: Runtime, M: RawMutex, O: FlowEvents = ()> {
    parts: Parts<R, M, O>,
    options: FlowOptions,
}

impl<R: Runtime + Clone, M: RawMutex> QueuedFlow<R, M> {
    /// A flow on an executor's time, with nobody in it.
    ///
    /// # Errors
    /// [`FlowOptionsError`] names what cannot be, and what can.
    pub fn new(options: FlowOptions, runtime: R) -> Result<Self, FlowOptionsError> {
        Self::observed_by(options, runtime, ())
    }
}

impl<R: Runtime + Clone + Default, M: RawMutex> QueuedFlow<R, M> {
    /// A flow on the executor's time.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(options: FlowOptions) -> Result<Self, FlowOptionsError> {
        Self::new(options, R::default())
    }
}

impl<R: Runtime + Clone, M: RawMutex, O: FlowEvents> QueuedFlow<R, M, O> {
    /// The same, which tells `observer` of all that happens.
    ///
    /// # Errors
    /// As [`new`](QueuedFlow::new).
    pub fn observed_by(options: FlowOptions, runtime: R, observer: O) -> Result<Self, FlowOptionsError> {
        options.check()?;
        let bucket = AdjustableBucket::with_limit(options.limit, ()).observed_by(observer.clone());
        let bucket = Queued::new(bucket, runtime.clone(), options.waiting);
        let breaker =
            options.breaker.map(|policy| CircuitBreaker::with_clock(policy, ()).observed_by(observer.clone()));
        let in_flight = match options.in_flight {
            None => None,
            Some(InFlight::Fixed(calls)) => Some(ConcurrencyLimit::new(calls).observed_by(None)),
            Some(InFlight::Adaptive { samples, law }) => {
                let window = samples.build().map_err(FlowOptionsError::Samples)?;
                let controller = ConcurrencyController::new(window, law);
                let limit = ConcurrencyLimit::new(controller.limit());
                Some(limit.observed_by(Some(AdaptiveConcurrency::new(controller, runtime.clone()))))
            }
        };
        let in_flight = in_flight.map(|limit| QueuedPermits::new(limit, runtime.clone(), options.waiting));
        let parts = Flow::new(FlowLimiter(bucket), runtime)
            .breaker(breaker)
            .concurrency(in_flight)
            .observed_by(observer)
            .cancelled_as(options.cancelled_as);
        Ok(Self { parts, options })
    }
}

impl<R: Runtime, M: RawMutex, O: FlowEvents> QueuedFlow<R, M, O> {
    /// Calls `call` once every part lets it pass. `Ok` is a success, and every error a failure. Where the flow degrades and has nothing to put
    /// in the place of the call, as here, it refuses it.
    ///
    /// # Errors
    /// [`FlowError::Refused`] where it was not called, [`FlowError::Failed`] with its own error, [`FlowError::TimedOut`] where it
    /// took longer than the [time limit](FlowOptions::time_limit).
    pub async fn call<T, E, F>(&self, cost: u64, call: impl FnOnce() -> F) -> Result<Flowed<T>, FlowError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.call_judged(cost, CallOutcome::of, call).await
    }

    /// The same, and has `judge` say how the call ended: which errors are the other side's, and which of them say that it has too much to do.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_judged<T, E, F>(
        &self,
        cost: u64,
        judge: impl FnOnce(&Result<T, E>) -> CallOutcome,
        call: impl FnOnce() -> F,
    ) -> Result<Flowed<T>, FlowError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let (permit, path) = self.enter(cost).await?;
        let value = self.run(permit, judge, call).await?;
        Ok(Flowed { value, path })
    }

    /// The same, and where the flow [degrades](WhenEmpty::Degrade) and refuses the call, whatever part refuses it, `instead` takes its place. It
    /// takes no token and no place, and how it ends counts nowhere.
    ///
    /// # Errors
    /// As [`call`](Self::call), or those of `instead`.
    ///
    /// ```
    /// # use core::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// use sluicegate_runtime::{CallOutcome, FlowOptions, ManualRuntime, QueuedFlow, WhenEmpty, quota};
    ///
    /// type Lock = parking_lot::RawMutex;
    ///
    /// let options = FlowOptions::new(quota!("1/1m")).when_empty(WhenEmpty::Degrade);
    /// let flow = QueuedFlow::<_, Lock>::new(options, ManualRuntime::<Lock>::new())?;
    /// let fetch = || async { Ok::<_, ()>("fresh") };
    /// let judge = |_: &Result<_, ()>| CallOutcome::Success;
    /// # let mut context = Context::from_waker(Waker::noop());
    /// for (value, is_degraded) in [("fresh", false), ("cached", true)] {
    ///     let mut answer = pin!(flow.call_or(1, judge, fetch, |_refusal| async { Ok("cached") }));
    ///     let Poll::Ready(Ok(answer)) = answer.as_mut().poll(&mut context) else { panic!("nobody waits") };
    ///     assert_eq!((answer.value, answer.path.is_degraded()), (value, is_degraded));
    /// }
    /// # Ok::<(), sluicegate_runtime::FlowOptionsError>(())
    /// ```
    pub async fn call_or<T, E, F, G>(
        &self,
        cost: u64,
        judge: impl FnOnce(&Result<T, E>) -> CallOutcome,
        call: impl FnOnce() -> F,
        instead: impl FnOnce(FlowRefusal) -> G,
    ) -> Result<Flowed<T>, FlowError<E>>
    where
        F: Future<Output = Result<T, E>>,
        G: Future<Output = Result<T, E>>,
    {
        match self.enter(cost).await {
            Ok((permit, path)) => {
                let value = self.run(permit, judge, call).await?;
                Ok(Flowed { value, path })
            }
            Err(refusal) if self.options.when_empty == WhenEmpty::Degrade => {
                let value = instead(refusal).await.map_err(FlowError::Failed)?;
                Ok(Flowed { value, path: FlowPath::Degraded(refusal) })
            }
            Err(refusal) => Err(FlowError::Refused(refusal)),
        }
    }

    /// Lets a call of `cost` enter once every part lets it pass, or not at all: for who makes the call elsewhere. The permit has to be
    /// told how the call ended; there is no time limit but the caller's.
    ///
    /// # Errors
    /// [`FlowRefusal`] names the part that refuses, and why.
    pub async fn enter(&self, cost: u64) -> Result<(QueuedFlowPermit<'_, R, M, O>, FlowPath), FlowRefusal> {
        let now = self.runtime().now();
        let deadline = match self.options.when_empty {
            WhenEmpty::Reject | WhenEmpty::Degrade => {
                return self.parts.enter_at(now, cost).map(|permit| (permit, FlowPath::Direct));
            }
            WhenEmpty::Queue => None,
            WhenEmpty::QueueFor(longest) => Some(now.saturating_add(longest)),
        };
        let mut has_waited = false;
        // Nobody waits for what can never be, nor for what an open breaker would refuse.
        self.parts.turn_away_at(now, cost)?;
        let mut place = match self.parts.in_flight() {
            None => None,
            Some(places) => {
                let place = match deadline {
                    None => places.acquire_permit(1),
                    Some(deadline) => places.acquire_permit_deadline(1, deadline),
                };
                let place = noting(&mut has_waited, place).await;
                Some(place.map_err(|denied| self.refuse(cost, FlowStage::Concurrency, denied))?)
            }
        };
        // Until the call enters, the place is held and not used: dropped, it says nothing.
        place.as_mut().into_iter().for_each(WaitedPermit::pause);
        let tokens = match deadline {
            None => self.bucket().reserve(cost),
            Some(deadline) => self.bucket().reserve_deadline(cost, deadline),
        };
        let tokens = noting(&mut has_waited, tokens).await;
        let tokens = tokens.map_err(|denied| self.refuse(cost, FlowStage::Limiter, denied))?;
        place.as_mut().into_iter().for_each(WaitedPermit::resume);
        let entered = self.runtime().now();
        let permit = self.parts.enter_with(entered, cost, place, |limiter| {
            // Its turn may have come before the flow was closed, and it comes for it only now.
            if limiter.bucket().is_closed() || limiter.bucket().limiter().limit() == Limit::DenyAll {
                return Err(Denied::Closed);
            }
            // What was held is there. (Granted while there was no limit, nothing was.)
            let _ = tokens.settle_at(entered, cost);
            Ok(())
        })?;
        let waited = entered.saturating_duration_since(now);
        let path = if has_waited { FlowPath::Queued { waited } } else { FlowPath::Direct };
        Ok((permit, path))
    }

    async fn run<T, E, F>(
        &self,
        mut permit: QueuedFlowPermit<'_, R, M, O>,
        judge: impl FnOnce(&Result<T, E>) -> CallOutcome,
        call: impl FnOnce() -> F,
    ) -> Result<T, FlowError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let limit = self.options.time_limit;
        let timer = limit.map(|limit| self.runtime().sleep_until(permit.since().saturating_add(limit)));
        let mut timer = pin!(timer);
        permit.while_calling();
        let mut future = pin!(Some(call()));
        let answer = poll_fn(|context| {
            // Dropped within the poll, it is by a panic; and between two, by whoever cancels.
            permit.while_calling();
            let polled = future.as_mut().as_pin_mut().map_or(Poll::Pending, |future| future.poll(context));
            permit.while_pending();
            match (polled, timer.as_mut().as_pin_mut()) {
                (Poll::Ready(answer), _) => Poll::Ready(Some(answer)),
                (Poll::Pending, Some(timer)) => timer.poll(context).map(|()| None),
                (Poll::Pending, None) => Poll::Pending,
            }
        })
        .await;
        permit.while_calling();
        match (answer, limit) {
            (Some(answer), _) => {
                let outcome = judge(&answer);
                permit.finish(outcome);
                answer.map_err(FlowError::Failed)
            }
            (None, limit) => {
                // What it holds is let go of before its place is.
                future.set(None);
                permit.finish(CallOutcome::Overloaded);
                Err(FlowError::TimedOut { after: limit.unwrap_or_default() })
            }
        }
    }

    fn refuse(&self, cost: u64, stage: FlowStage, denied: Denied) -> FlowRefusal {
        // All parts are closed with the bucket, which is the first that says so.
        let is_closed = denied == Denied::Closed && self.bucket().is_closed();
        let stage = if is_closed { FlowStage::Limiter } else { stage };
        let refusal = FlowRefusal { stage, denied };
        self.parts.observer().call_refused(self.runtime().now(), cost, &refusal);
        refusal
    }

    /// Changes the limit now, and wakes those whom that concerns; see [`Queued::adjust`].
    pub fn adjust(&self, limit: impl Into<Limit>, inheritance: Inheritance) {
        self.bucket().adjust(limit, inheritance);
    }

    /// What the flow was made of. Its limit may have been adjusted since: see [`limit`](Self::limit).
    pub const fn options(&self) -> &FlowOptions {
        &self.options
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.bucket().limiter().limit()
    }

    /// The bucket, with those who wait for it.
    pub const fn bucket(&self) -> &FlowBucket<R, M, O> {
        self.parts.limiter().bucket()
    }

    /// The circuit breaker, if there is one.
    pub const fn breaker(&self) -> Option<&CircuitBreaker<M, (), O>> {
        self.parts.circuit_breaker().as_ref()
    }

    /// The places in flight, if they are limited, with those who wait for them.
    pub const fn in_flight(&self) -> Option<&FlowPlaces<R, M>> {
        self.parts.in_flight().as_ref()
    }

    /// The executor's clock and timer.
    pub const fn runtime(&self) -> &R {
        self.parts.clock()
    }

    /// The observer.
    pub const fn observer(&self) -> &O {
        self.parts.observer()
    }

    /// How many calls have ended as [`CallOutcome::Overloaded`] since this was last called. Of a flow of a [registry](crate::FlowRegistry) that adapts, leave
    /// them to the registry, which goes by them.
    pub fn take_overloaded(&self) -> u64 {
        self.parts.take_overloaded()
    }

    /// Whether a call of `cost` would enter at `now`, as far as bucket and breaker go. Takes nothing and tells nobody.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), FlowRefusal> {
        self.parts.peek_at(now, cost)
    }

    /// Ends all waits, and refuses all calls that are to come, with [`Denied::Closed`]. Calls that were made go on.
    pub fn close(&self) {
        // Also where a waker panics.
        let _places = Finally(|| {
            if let Some(places) = self.in_flight() {
                places.close();
            }
        });
        self.bucket().close();
    }
}

impl<R: Runtime, M: RawMutex, O: FlowEvents> fmt::Debug for QueuedFlow<R, M, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedFlow").field("options", &self.options).finish_non_exhaustive()
    }
}

/// `future`, noting whether it was not ready at once.
async fn noting<F: Future>(is_late: &mut bool, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        *is_late |= polled.is_pending();
        polled
    })
    .await
}
