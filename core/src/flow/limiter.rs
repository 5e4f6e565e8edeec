//! The flow, and how a call enters it.

use core::fmt;

use super::parts::{CallBreaker, CallLimit, FlowObserver};
use super::permit::FlowPermit;
use super::refusal::{FlowRefusal, FlowStage};
use crate::sync::{AtomicU64, Ordering};
use crate::{CallOutcome, Clock, Denied, Limiter, Nanos, Outcome};

/// A limiter, a circuit breaker, a limit on calls in flight, the call, and what is learnt from it: as one.
///
/// # Who pays
///
/// A call is made if every part lets it pass, and otherwise no part keeps a trace of it:
///
/// - What the limiter refuses is no failure to the breaker, and takes no probe's place.
/// - An open breaker and a full concurrency limit take no token: the limiter is asked last, and so nothing is ever given back to it.
/// - While the breaker is half-open exactly its probes pass, and only as far as the limiter lets them.
/// - Where several parts refuse, the first is named, in the order limiter, breaker, concurrency limit: it is the one whose `retry_after`
///   the caller needs.
///
/// In races a place in flight, or a probe's, may be held for the instant until another part has refused, and a caller who comes in that
/// instant be told that there is none. It is refused rightly by then: by the part that refused the other.
///
/// # What a call's end does
///
/// | [`CallOutcome`] | breaker | concurrency limit | [`take_overloaded`](Self::take_overloaded) |
/// |---|---|---|---|
/// | `Success` | success | `Success` | |
/// | `Failure` | failure | `Ignored`: it says nothing about load | |
/// | `Overloaded` | failure | `Dropped` | counts |
/// | `Ignored` | as if it had not been made | `Ignored` | |
/// | the caller's code panicked | failure | `Dropped` | |
/// | cancelled: the future or the permit was dropped | [`cancelled_as`](Self::cancelled_as), `Ignored` unless told otherwise | `Dropped` | if so |
///
/// # Costs
///
/// A flow of a limiter alone costs what the limiter does and a second reading of the clock. Parts that are `()` cost nothing. Calls
/// allocate nothing; what locks there are is the breaker's.
///
/// ```
/// # #[cfg(feature = "lock_api")] {
/// use core::time::Duration;
/// use sluicegate_core::{
///     BreakerOptions, CircuitBreaker, ConcurrencyLimit, Flow, FlowError, FlowStage, ManualClock, TokenBucket, quota,
/// };
///
/// let clock = ManualClock::new();
/// let policy = BreakerOptions::new().any_failure_share().consecutive_failures(2).build()?;
/// let flow = Flow::new(TokenBucket::with_limit(quota!("100/1s").into(), ()), &clock)
///     .breaker(CircuitBreaker::<parking_lot::RawMutex, _>::with_clock(policy, ()))
///     .concurrency(ConcurrencyLimit::new(20));
///
/// assert_eq!(flow.call(1, || Ok::<_, &str>("answer")), Ok("answer"));
/// for _ in 0..2 {
///     assert_eq!(flow.call(1, || Err::<(), _>("broken")), Err(FlowError::Failed("broken")));
/// }
/// let refused = flow.enter(1).unwrap_err();
/// assert_eq!((refused.stage, refused.denied.retry_after()), (FlowStage::Breaker, Some(Duration::from_secs(5))));
/// // Only what was called has paid.
/// assert_eq!(flow.limiter().inspect_at(flow.clock().now()).level, 97);
/// # use sluicegate_core::Clock;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Flow<L, C, B = (), P = (), O = ()> {
    limiter: L,
    breaker: B,
    concurrency: P,
    clock: C,
    observer: O,
    cancelled_as: CallOutcome,
    /// Calls that ended so since it was last asked.
    overloaded: AtomicU64,
}

impl<L: Limiter, C: Clock> Flow<L, C> {
    /// Calls at the pace of `limiter`, by the time of `clock`. The limiter's own clock, if it has one, is not read.
    pub fn new(limiter: L, clock: C) -> Self {
        Self {
            limiter,
            breaker: (),
            concurrency: (),
            clock,
            observer: (),
            cancelled_as: CallOutcome::Ignored,
            overloaded: AtomicU64::new(0),
        }
    }
}

impl<L, C, B, P, O> Flow<L, C, B, P, O> {
    /// The same flow behind `breaker`, whose own clock is not read.
    pub fn breaker<New: CallBreaker>(self, breaker: New) -> Flow<L, C, New, P, O> {
        let Self { limiter, breaker: _, concurrency, clock, observer, cancelled_as, overloaded } = self;
        Flow { limiter, breaker, concurrency, clock, observer, cancelled_as, overloaded }
    }

    /// The same flow with a limit on calls in flight.
    pub fn concurrency<New: CallLimit>(self, concurrency: New) -> Flow<L, C, B, New, O> {
        let Self { limiter, breaker, concurrency: _, clock, observer, cancelled_as, overloaded } = self;
        Flow { limiter, breaker, concurrency, clock, observer, cancelled_as, overloaded }
    }

    /// The same flow, which from now on tells `observer` of every refusal and every end.
    pub fn observed_by<New: FlowObserver>(self, observer: New) -> Flow<L, C, B, P, New> {
        let Self { limiter, breaker, concurrency, clock, observer: _, cancelled_as, overloaded } = self;
        Flow { limiter, breaker, concurrency, clock, observer, cancelled_as, overloaded }
    }

    /// What a call counts as that is cancelled. `Ignored` is the default, because the caller may have lost interest. Where callers cancel when it takes
    /// too long, and nothing within the call does, `Overloaded` is right.
    pub fn cancelled_as(self, outcome: CallOutcome) -> Self {
        Self { cancelled_as: outcome, ..self }
    }

    /// The limiter.
    pub const fn limiter(&self) -> &L {
        &self.limiter
    }

    /// The breaker. ([`breaker`](Self::breaker) sets it.)
    pub const fn circuit_breaker(&self) -> &B {
        &self.breaker
    }

    /// The limit on calls in flight. ([`concurrency`](Self::concurrency) sets it.)
    pub const fn in_flight(&self) -> &P {
        &self.concurrency
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// How many calls have ended as [`CallOutcome::Overloaded`] since this was last called: what an
    /// [`AdaptivePolicy`](crate::AdaptivePolicy) wants to know. Whoever calls it takes them from who does so otherwise.
    pub fn take_overloaded(&self) -> u64 {
        // Relaxed: a count orders nothing.
        self.overloaded.swap(0, Ordering::Relaxed)
    }

    pub(super) fn cancelled(&self) -> CallOutcome {
        self.cancelled_as
    }

    #[cold]
    pub(super) fn count_overloaded(&self) {
        self.overloaded.fetch_add(1, Ordering::Relaxed);
    }
}

impl<L: Limiter, C: Clock, B: CallBreaker, P: CallLimit, O: FlowObserver> Flow<L, C, B, P, O> {
    /// Lets a call of `cost` enter now, or not. What it returns has to be told how the call ended.
    ///
    /// # Errors
    /// [`FlowRefusal`] names the part that refuses, and why.
    #[inline]
    pub fn enter(&self, cost: u64) -> Result<FlowPermit<'_, L, C, B, P, O>, FlowRefusal> {
        self.enter_at(self.clock.now(), cost)
    }

    /// The same at the reading `now`.
    ///
    /// # Errors
    /// As [`enter`](Self::enter).
    #[inline]
    pub fn enter_at(&self, now: Nanos, cost: u64) -> Result<FlowPermit<'_, L, C, B, P, O>, FlowRefusal> {
        if !self.breaker.is_closed() {
            self.knock(now, cost)?;
        }
        let entered = match self.concurrency.take() {
            Ok(place) => self.enter_parts(now, place, |limiter| limiter.try_acquire_at(now, cost).map(drop)),
            Err(denied) => Err(FlowRefusal { stage: FlowStage::Concurrency, denied }),
        };
        entered.map_err(|refusal| self.refuse(now, cost, refusal))
    }

    /// Asks the limiter before a breaker that is not closed, which a probe changes.
    #[cold]
    fn knock(&self, now: Nanos, cost: u64) -> Result<(), FlowRefusal> {
        let refused = |denied| self.refuse(now, cost, FlowRefusal { stage: FlowStage::Limiter, denied });
        self.limiter.peek_at(now, cost).map(drop).map_err(|denied| {
            self.limiter.tell(now, cost, &Err(denied));
            refused(denied)
        })
    }

    /// The same with a place in flight that was taken before, and with `take` to take the cost: from what was reserved before, say. `take` is
    /// called last, once every other part has let the call pass, and not at all if one has not.
    ///
    /// # Errors
    /// [`FlowRefusal`] names the part that refuses, and why. The place is given back then.
    #[inline]
    pub fn enter_with<'f>(
        &'f self,
        now: Nanos,
        cost: u64,
        place: P::InFlight<'f>,
        take: impl FnOnce(&'f L) -> Result<(), Denied>,
    ) -> Result<FlowPermit<'f, L, C, B, P, O>, FlowRefusal> {
        self.enter_parts(now, place, take).inspect_err(|refusal| self.observer.call_refused(now, cost, refusal))
    }

    #[inline]
    fn enter_parts<'f>(
        &'f self,
        now: Nanos,
        place: P::InFlight<'f>,
        take: impl FnOnce(&'f L) -> Result<(), Denied>,
    ) -> Result<FlowPermit<'f, L, C, B, P, O>, FlowRefusal> {
        let passed = match self.breaker.pass_at(now) {
            Ok(passed) => passed,
            Err(denied) => {
                P::release(place, Outcome::Ignored);
                return Err(FlowRefusal { stage: FlowStage::Breaker, denied });
            }
        };
        if let Err(denied) = take(&self.limiter) {
            drop(passed);
            P::release(place, Outcome::Ignored);
            return Err(FlowRefusal { stage: FlowStage::Limiter, denied });
        }
        Ok(FlowPermit::new(self, now, passed, place))
    }

    /// Refuses at once what nobody should wait for: a cost that the limiter [never](Denied::is_final) admits, and any call while the breaker is open. For who waits for
    /// the limiter before it [enters](Self::enter_with); it takes nothing, and tells of a refusal.
    ///
    /// # Errors
    /// [`FlowRefusal`] names the part that refuses, and why.
    pub fn turn_away_at(&self, now: Nanos, cost: u64) -> Result<(), FlowRefusal> {
        let (stage, denied) = match (self.limiter.peek_at(now, cost), self.breaker.peek_at(now)) {
            (Err(denied), _) if denied.is_final() => (FlowStage::Limiter, denied),
            (_, Err(denied)) => (FlowStage::Breaker, denied),
            (_, Ok(())) => return Ok(()),
        };
        let refusal = FlowRefusal { stage, denied };
        self.tell(now, cost, &refusal);
        self.observer.call_refused(now, cost, &refusal);
        Err(refusal)
    }

    /// What [`enter_at`](Self::enter_at) would answer as far as limiter and breaker go; takes nothing and tells nobody.
    ///
    /// # Errors
    /// As `enter_at`.
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Result<(), FlowRefusal> {
        let refused = |stage| move |denied| FlowRefusal { stage, denied };
        self.limiter.peek_at(now, cost).map_err(refused(FlowStage::Limiter))?;
        self.breaker.peek_at(now).map_err(refused(FlowStage::Breaker))
    }

    /// Has the part that is named tell of a refusal that it did not decide on itself.
    fn tell(&self, now: Nanos, cost: u64, refusal: &FlowRefusal) {
        match refusal.stage {
            FlowStage::Limiter => self.limiter.tell(now, cost, &Err(refusal.denied)),
            FlowStage::Breaker => self.breaker.tell(now, &refusal.denied),
            FlowStage::Concurrency => {}
        }
    }

    /// Names who refuses first, and tells the observer.
    #[cold]
    fn refuse(&self, now: Nanos, cost: u64, refusal: FlowRefusal) -> FlowRefusal {
        let earlier = match refusal.stage {
            FlowStage::Limiter => None,
            FlowStage::Breaker | FlowStage::Concurrency => {
                self.peek_at(now, cost).err().filter(|earlier| earlier.stage < refusal.stage)
            }
        };
        if let Some(earlier) = &earlier {
            self.tell(now, cost, earlier);
        }
        let first = earlier.unwrap_or(refusal);
        self.observer.call_refused(now, cost, &first);
        first
    }
}

impl<L: fmt::Debug, C, B: fmt::Debug, P: fmt::Debug, O> fmt::Debug for Flow<L, C, B, P, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flow")
            .field("limiter", &self.limiter)
            .field("breaker", &self.breaker)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}
