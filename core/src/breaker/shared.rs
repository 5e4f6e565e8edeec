//! The breaker that callers share: the state machine behind a lock, and its door beside it.
//!
//! A call that passes a closed breaker changes nothing in it. So whether it is closed, and in which epoch, is published in a word of its
//! own, the door: it is written under the lock, with every change of phase, and read without. Who reads that it is closed has passed at
//! that instant. Everything else is under the lock: how calls end, which of them are probes, and who finds the door shut.

use core::fmt;

use lock_api::{Mutex, RawMutex};

use super::policy::BreakerPolicy;
use super::state::{BreakerPhase, BreakerState, Call, CallOutcome};
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Clock, Denied, Nanos};

/// A circuit breaker that any number of callers share: it lets calls pass while they succeed, none while they fail, and a few from time to
/// time to find out which.
///
/// # Guarantees
///
/// - Those of [`BreakerState`], for all callers together: of any number that race when it has cooled down, exactly as many pass as there are
///   probes.
/// - Results of calls from before it last changed are ignored, however late they come.
/// - A permit that is dropped is forgotten: an early return, a cancelled task and a panic give a probe's place back. Whoever wants a panic
///   to count as a failure says so, as a [flow](crate) does.
/// - The observer is told outside the lock, once for each change.
///
/// # Trade-offs
///
/// A call that passes while the breaker is closed reads one word; how it ended is counted under the lock, some nanoseconds. Waiting is the
/// lock's: `parking_lot` yields to the system, `spin` does not. A permit that is leaked keeps a probe's place until the policy's [patience](crate::BreakerOptions::probe_patience) is over. Calls are
/// synchronous, so there is nothing to cancel.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{BreakerOptions, BreakerPhase, CircuitBreaker, Denied, ManualClock};
///
/// let policy = BreakerOptions::new().any_failure_share().consecutive_failures(1).probes(1).build()?;
/// let breaker: CircuitBreaker<parking_lot::RawMutex, _> = CircuitBreaker::with_clock(policy, ManualClock::new());
/// breaker.try_call()?.failure();
/// assert_eq!(breaker.phase(), BreakerPhase::Open);
/// assert!(matches!(breaker.try_call(), Err(Denied::CircuitOpen { .. })));
/// breaker.clock().advance(Duration::from_secs(5));
/// breaker.try_call()?.success();
/// assert_eq!(breaker.phase(), BreakerPhase::Closed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CircuitBreaker<R, C, O = ()> {
    /// [`BreakerState::door`], as it was when the lock was open last.
    door: AtomicU64,
    state: Mutex<R, BreakerState>,
    clock: C,
    observer: O,
}

impl<R: RawMutex, C> CircuitBreaker<R, C> {
    const_unless_loom! {
        /// Closed, on `clock`.
        pub fn with_clock(policy: BreakerPolicy, clock: C) -> Self {
            let state = BreakerState::new(policy);
            Self { door: AtomicU64::new(state.door()), state: Mutex::new(state), clock, observer: () }
        }
    }

    /// The same breaker, which from now on tells `observer` of every change and refusal.
    pub fn observed_by<O: BreakerObserver>(self, observer: O) -> CircuitBreaker<R, C, O> {
        CircuitBreaker { door: self.door, state: self.state, clock: self.clock, observer }
    }
}

impl<R: RawMutex, C: Default> CircuitBreaker<R, C> {
    /// Closed, on the default clock.
    pub fn new(policy: BreakerPolicy) -> Self {
        Self::with_clock(policy, C::default())
    }
}

impl<R: RawMutex, C, O> CircuitBreaker<R, C, O> {
    /// The phase. It is [`BreakerPhase::Open`] until a call passes after the cool-down.
    pub fn phase(&self) -> BreakerPhase {
        self.state.lock().phase()
    }

    /// Whether it is closed. Takes no lock.
    #[inline]
    pub fn is_closed(&self) -> bool {
        // Any reading will do: none is part of the answer.
        self.pass(Nanos::ZERO).is_some()
    }

    /// A copy of all that it knows.
    pub fn state(&self) -> BreakerState {
        self.state.lock().clone()
    }

    /// What [`try_call_at`](Self::try_call_at) would answer, letting nothing pass and telling nobody. (A clock that went back is noticed here too, so whoever
    /// only looks is not shut out for longer either.)
    ///
    /// # Errors
    /// As `try_call_at`.
    pub fn peek_at(&self, now: Nanos) -> Result<(), Denied> {
        match self.pass(now) {
            Some(_) => Ok(()),
            None => {
                let mut state = self.state.lock();
                state.follow(now);
                state.peek(now)
            }
        }
    }

    /// A call that passes because it is closed.
    #[inline]
    fn pass(&self, now: Nanos) -> Option<Call> {
        // Relaxed: it publishes nothing but itself.
        BreakerState::pass(self.door.load(Ordering::Relaxed), now)
    }

    /// The clock.
    #[inline]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The observer.
    #[inline]
    pub const fn observer(&self) -> &O {
        &self.observer
    }
}

impl<R: RawMutex, C, O: BreakerObserver> CircuitBreaker<R, C, O> {
    /// Lets a call pass at the reading `now`, or not.
    ///
    /// # Errors
    /// [`Denied::CircuitOpen`], with the time after which a call passes; none is known while probes are out.
    #[inline]
    pub fn try_call_at(&self, now: Nanos) -> Result<BreakerPermit<'_, R, C, O>, Denied> {
        match self.pass(now) {
            Some(call) => Ok(BreakerPermit { breaker: self, call: Some(call) }),
            None => self.knock_at(now),
        }
    }

    /// Where the door was shut.
    #[cold]
    fn knock_at(&self, now: Nanos) -> Result<BreakerPermit<'_, R, C, O>, Denied> {
        let (passed, change) = self.change(|state| state.try_call(now));
        // Before anybody is told, so that a panic there gives a probe's place back.
        let passed = passed.map(|call| BreakerPermit { breaker: self, call: Some(call) });
        self.tell(now, change);
        if let Err(denied) = &passed {
            self.observer.refused(now, denied);
        }
        passed
    }

    /// Opens it at `now`, as if it had tripped: before maintenance, say.
    pub fn trip_at(&self, now: Nanos) {
        let ((), change) = self.change(|state| state.trip(now));
        self.tell(now, change);
    }

    /// Closes it at `now`, and forgets all results.
    pub fn close_at(&self, now: Nanos) {
        let ((), change) = self.change(BreakerState::close);
        self.tell(now, change);
    }

    /// Tells what it answers, and from which phase to which it has gone, if it has.
    #[inline]
    fn change<T>(&self, run: impl FnOnce(&mut BreakerState) -> T) -> (T, Option<(BreakerPhase, BreakerPhase)>) {
        let mut state = self.state.lock();
        let (from, door) = (state.phase(), state.door());
        let answer = run(&mut state);
        if state.door() == door {
            return (answer, None);
        }
        // Relaxed: see `pass`. The lock orders those who write it.
        self.door.store(state.door(), Ordering::Relaxed);
        (answer, Some((from, state.phase())))
    }

    #[inline]
    fn tell(&self, now: Nanos, change: Option<(BreakerPhase, BreakerPhase)>) {
        match change {
            Some((from, to)) if from != to => self.observer.changed(now, from, to),
            _ => {}
        }
    }
}

impl<R: RawMutex, C: Clock, O: BreakerObserver> CircuitBreaker<R, C, O> {
    /// Lets a call pass now, or not.
    ///
    /// # Errors
    /// As [`try_call_at`](Self::try_call_at).
    #[inline]
    pub fn try_call(&self) -> Result<BreakerPermit<'_, R, C, O>, Denied> {
        self.try_call_at(self.clock.now())
    }
}

impl<R: RawMutex, C, O> fmt::Debug for CircuitBreaker<R, C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CircuitBreaker").field("phase", &self.phase()).finish_non_exhaustive()
    }
}

/// A call that a [`CircuitBreaker`] let pass. Dropped, it is as if it had never been made.
#[must_use = "a call that is dropped at once counts for nothing"]
pub struct BreakerPermit<'b, R: RawMutex, C, O: BreakerObserver = ()> {
    breaker: &'b CircuitBreaker<R, C, O>,
    /// Until it is settled.
    call: Option<Call>,
}

impl<R: RawMutex, C, O: BreakerObserver> BreakerPermit<'_, R, C, O> {
    /// Counts how the call has ended, at the reading `now`.
    #[inline]
    pub fn settle_at(mut self, now: Nanos, outcome: CallOutcome) {
        if let Some(call) = self.call.take() {
            let ((), change) = self.breaker.change(|state| state.settle(now, call, outcome));
            self.breaker.tell(now, change);
        }
    }
}

impl<R: RawMutex, C: Clock, O: BreakerObserver> BreakerPermit<'_, R, C, O> {
    /// Counts how the call has ended now.
    pub fn settle(self, outcome: CallOutcome) {
        let now = self.breaker.clock.now();
        self.settle_at(now, outcome);
    }

    /// It has succeeded now.
    pub fn success(self) {
        self.settle(CallOutcome::Success);
    }

    /// It has failed now.
    pub fn failure(self) {
        self.settle(CallOutcome::Failure);
    }
}

impl<R: RawMutex, C, O: BreakerObserver> Drop for BreakerPermit<'_, R, C, O> {
    #[inline]
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            self.breaker.state.lock().forget(call);
        }
    }
}

impl<R: RawMutex, C, O: BreakerObserver> fmt::Debug for BreakerPermit<'_, R, C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerPermit").field("call", &self.call).finish_non_exhaustive()
    }
}

/// Is told what a breaker does, outside its lock. `()` is the observer that does nothing, and costs nothing.
///
/// Two callers' events may arrive in another order than they took effect.
pub trait BreakerObserver {
    /// It went from one phase to another at `now`.
    #[inline]
    fn changed(&self, now: Nanos, from: BreakerPhase, to: BreakerPhase) {
        let _ = (now, from, to);
    }

    /// A call did not pass at `now`.
    #[inline]
    fn refused(&self, now: Nanos, denied: &Denied) {
        let _ = (now, denied);
    }
}

impl BreakerObserver for () {}

/// Both are told, the first one first. Nest pairs for more.
impl<A: BreakerObserver, B: BreakerObserver> BreakerObserver for (A, B) {
    #[inline]
    fn changed(&self, now: Nanos, from: BreakerPhase, to: BreakerPhase) {
        self.0.changed(now, from, to);
        self.1.changed(now, from, to);
    }

    #[inline]
    fn refused(&self, now: Nanos, denied: &Denied) {
        self.0.refused(now, denied);
        self.1.refused(now, denied);
    }
}

/// Whoever points to an observer is one.
macro_rules! points_to_observer {
    ($pointer:ty) => {
        impl<O: BreakerObserver + ?Sized> BreakerObserver for $pointer {
            #[inline]
            fn changed(&self, now: Nanos, from: BreakerPhase, to: BreakerPhase) {
                (**self).changed(now, from, to);
            }

            #[inline]
            fn refused(&self, now: Nanos, denied: &Denied) {
                (**self).refused(now, denied);
            }
        }
    };
}

points_to_observer!(&O);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
points_to_observer!(alloc::sync::Arc<O>);
