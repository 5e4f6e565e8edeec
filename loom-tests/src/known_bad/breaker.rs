//! A compact circuit breaker, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use lock_api::Mutex;
use sluicegate_core::BreakerPhase::{self, Closed, HalfOpen, Open};
use sluicegate_core::{CallOutcome, Nanos};

use crate::circuit::{COOL_DOWN, PATIENCE};
use crate::shim::AtomicU64;
use crate::{Breaker, ModelMutex, PhaseChange, Told};

/// Bugs that a circuit breaker may have, one type each.
pub trait BreakerFlaws: Send + Sync + 'static {
    /// Leaves the door open when it trips: the phase alone has changed.
    const LEAVES_THE_DOOR_OPEN: bool = false;
    /// Writes the door after it has let go of the lock.
    const WRITES_THE_DOOR_LATE: bool = false;
    /// Writes the door of a trip by hand before it has the lock, by what it read without.
    const WRITES_THE_DOOR_EARLY: bool = false;
    /// Counts the results of calls of any time.
    const COUNTS_LATE_RESULTS: bool = false;
    /// Counts a probe after it has let go of the lock under which it saw a place.
    const COUNTS_PROBES_LATE: bool = false;
    /// Keeps the place of a probe that is dropped.
    const KEEPS_DROPPED_PROBES: bool = false;
    /// Gives the place of a dropped probe back to whichever probes there are now.
    const GIVES_PLACES_TO_LATER: bool = false;
    /// Counts a failure under the lock, and trips under the lock again without another look.
    const TRIPS_IN_TWO_STEPS: bool = false;
    /// Goes on with the epoch when probes are given up.
    const GIVES_UP_IN_THE_SAME_EPOCH: bool = false;
    /// Tells its observer of a change from the phase that it saw before it had the lock.
    const TELLS_BY_AN_OLD_LOOK: bool = false;
    /// Tells its observer under the lock.
    const TELLS_UNDER_THE_LOCK: bool = false;
}

/// The door is the epoch, and whether it is closed.
pub struct CompactBreaker<F: BreakerFlaws> {
    door: AtomicU64,
    state: Mutex<ModelMutex, State>,
    failures: u32,
    probes: u32,
    told: Told<Self>,
    flaws: PhantomData<F>,
}

#[derive(Clone, Copy)]
struct State {
    phase: BreakerPhase,
    epoch: u64,
    /// When it opened, or when the first probe passed.
    since: Nanos,
    /// Failures in a row.
    failed: u32,
    /// Probes.
    passed: u32,
    succeeded: u32,
    trips: u32,
}

/// A call that passed.
pub struct CompactPassed<'b, F: BreakerFlaws> {
    breaker: &'b CompactBreaker<F>,
    epoch: u64,
    is_settled: bool,
}

impl State {
    fn enter(&mut self, phase: BreakerPhase, now: Nanos) {
        *self =
            Self { phase, epoch: self.epoch + 1, since: now, failed: 0, passed: 0, succeeded: 0, trips: self.trips };
    }

    fn trip(&mut self, now: Nanos) {
        self.trips += 1;
        self.enter(Open, now);
    }

    fn close(&mut self, now: Nanos) {
        self.trips = 0;
        self.enter(Closed, now);
    }

    /// Begins to probe if it is time to.
    fn move_on<F: BreakerFlaws>(&mut self, now: Nanos) {
        let waits = match self.phase {
            Closed => return,
            Open => COOL_DOWN * self.trips.min(2),
            HalfOpen => PATIENCE,
        };
        if now.saturating_duration_since(self.since) >= waits {
            let epoch = self.epoch;
            let is_later = self.phase == HalfOpen;
            self.enter(HalfOpen, now);
            if F::GIVES_UP_IN_THE_SAME_EPOCH && is_later {
                self.epoch = epoch;
            }
        }
    }

    fn has_place(&self, probes: u32) -> bool {
        match self.phase {
            Closed => true,
            Open => false,
            HalfOpen => self.passed < probes,
        }
    }

    /// Counts a result, and tells whether it trips at that.
    fn count(&mut self, now: Nanos, is_failure: bool, breaker: &CompactBreaker<impl BreakerFlaws>) -> bool {
        match self.phase {
            Closed => {
                self.failed = if is_failure { self.failed + 1 } else { 0 };
                self.failed >= breaker.failures
            }
            Open => false,
            HalfOpen if is_failure => true,
            HalfOpen => {
                self.succeeded += 1;
                if self.succeeded >= breaker.probes {
                    self.close(now);
                }
                false
            }
        }
    }

    fn door(&self) -> u64 {
        self.epoch << 1 | u64::from(self.phase == Closed)
    }
}

impl<F: BreakerFlaws> CompactBreaker<F> {
    fn change<T>(&self, now: Nanos, run: impl FnOnce(&mut State) -> T) -> T {
        let old_look = F::TELLS_BY_AN_OLD_LOOK.then(|| self.phase());
        let mut state = self.state.lock();
        let (from, door_before) = (old_look.unwrap_or(state.phase), state.door());
        let answer = run(&mut state);
        let (to, door) = (state.phase, state.door());
        if F::TELLS_UNDER_THE_LOCK {
            self.tell(now, (from, to));
        }
        let is_written = door != door_before && !(F::LEAVES_THE_DOOR_OPEN && to == Open);
        if F::WRITES_THE_DOOR_LATE {
            drop(state);
            if is_written {
                self.door.store(door, Relaxed);
            }
        } else {
            if is_written {
                self.door.store(door, Relaxed);
            }
            drop(state);
        }
        if !F::TELLS_UNDER_THE_LOCK {
            self.tell(now, (from, to));
        }
        answer
    }

    fn tell(&self, now: Nanos, (from, to): PhaseChange) {
        if from != to {
            self.told.tell(now, (from, to));
        }
    }

    fn knock(&self, now: Nanos) -> Option<u64> {
        let probes = self.probes;
        if F::COUNTS_PROBES_LATE {
            let seen = self.change(now, |state| {
                state.move_on::<F>(now);
                *state
            });
            return seen.has_place(probes).then(|| {
                self.state.lock().passed = seen.passed + 1;
                seen.epoch
            });
        }
        self.change(now, |state| {
            state.move_on::<F>(now);
            state.has_place(probes).then(|| {
                state.passed += 1;
                state.epoch
            })
        })
    }
}

impl<F: BreakerFlaws> Breaker for CompactBreaker<F> {
    type Passed<'b> = CompactPassed<'b, F>;

    fn new(failures: u32, probes: u32) -> Arc<Self> {
        let state = State { phase: Closed, epoch: 0, since: Nanos::ZERO, failed: 0, passed: 0, succeeded: 0, trips: 0 };
        let door = AtomicU64::new(state.door());
        let (state, told) = (Mutex::new(state), Told::default());
        // So that its lock is there before it is raced for.
        drop(state.lock());
        Arc::new(Self { door, state, failures, probes, told, flaws: PhantomData })
    }

    fn try_call(&self, now: Nanos) -> Option<CompactPassed<'_, F>> {
        let door = self.door.load(Relaxed);
        let epoch = if door & 1 == 1 { door >> 1 } else { self.knock(now)? };
        Some(CompactPassed { breaker: self, epoch, is_settled: false })
    }

    fn settle(mut passed: CompactPassed<'_, F>, now: Nanos, outcome: CallOutcome) {
        passed.is_settled = true;
        let (breaker, epoch) = (passed.breaker, passed.epoch);
        let is_failure = outcome != CallOutcome::Success;
        let trips = breaker.change(now, |state| {
            let counts = state.epoch == epoch || F::COUNTS_LATE_RESULTS;
            let trips = counts && state.count(now, is_failure, breaker);
            if trips && !F::TRIPS_IN_TWO_STEPS {
                state.trip(now);
            }
            trips
        });
        if trips && F::TRIPS_IN_TWO_STEPS {
            breaker.trip(now);
        }
    }

    fn trip(&self, now: Nanos) {
        if F::WRITES_THE_DOOR_EARLY {
            let mut state = *self.state.lock();
            state.trip(now);
            self.door.store(state.door(), Relaxed);
            let mut current = self.state.lock();
            let from = current.phase;
            current.trip(now);
            drop(current);
            return self.tell(now, (from, Open));
        }
        self.change(now, |state| state.trip(now));
    }

    fn close(&self, now: Nanos) {
        self.change(now, |state| state.close(now));
    }

    fn phase(&self) -> BreakerPhase {
        self.state.lock().phase
    }

    fn trips(&self) -> u32 {
        self.state.lock().trips
    }

    fn told(&self) -> &Told<Self> {
        &self.told
    }
}

impl<F: BreakerFlaws> Drop for CompactPassed<'_, F> {
    fn drop(&mut self) {
        if self.is_settled || F::KEEPS_DROPPED_PROBES {
            return;
        }
        let mut state = self.breaker.state.lock();
        if state.epoch == self.epoch || F::GIVES_PLACES_TO_LATER {
            state.passed = state.passed.saturating_sub(1);
        }
    }
}

impl<F: BreakerFlaws> fmt::Debug for CompactBreaker<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactBreaker").finish_non_exhaustive()
    }
}

impl<F: BreakerFlaws> fmt::Debug for CompactPassed<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactPassed").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}
