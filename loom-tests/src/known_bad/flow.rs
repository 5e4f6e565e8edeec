//! A compact flow, right unless one of its flaws is switched on.

use core::fmt;
use core::marker::PhantomData;
use core::mem::forget;
use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use sluicegate_core::{BreakerPhase, CallOutcome, FlowStage, Nanos};

use super::{CompactBreaker, CompactPassed, Sound};
use crate::shim::AtomicU64;
use crate::{Breaker, Calls};

/// Bugs that a flow may have, one type each.
pub trait FlowFlaws: Send + Sync + 'static {
    /// Takes the token first, and keeps it where another part refuses.
    const KEEPS_THE_TOKEN: bool = false;
    /// Takes the token first, and gives it back where another part refuses.
    const TAKES_THE_TOKEN_FIRST: bool = false;
    /// Keeps the probe's place where there is no token.
    const KEEPS_THE_PROBE: bool = false;
    /// Keeps the place in flight where the breaker refuses.
    const KEEPS_THE_PLACE: bool = false;
    /// Counts a call that had no token as a failure.
    const COUNTS_REFUSALS: bool = false;
    /// Gives no place in flight back when a call is cancelled.
    const KEEPS_CANCELLED: bool = false;
    /// Names the part that it asked last, not the first that refuses.
    const NAMES_WHO_WAS_ASKED: bool = false;
}

/// A count of tokens, a sound breaker, and a count of free places.
pub struct CompactFlow<F> {
    tokens: AtomicU64,
    breaker: Arc<CompactBreaker<Sound>>,
    free: AtomicU64,
    places: u64,
    flaws: PhantomData<F>,
}

/// A call that entered.
pub struct CompactEntered<'f, F: FlowFlaws> {
    flow: &'f CompactFlow<F>,
    passed: Option<CompactPassed<'f, Sound>>,
}

impl<F: FlowFlaws> CompactFlow<F> {
    fn pass(&self, now: Nanos) -> Result<CompactPassed<'_, Sound>, FlowStage> {
        if !take(&self.free) {
            return Err(FlowStage::Concurrency);
        }
        let Some(passed) = self.breaker.try_call(now) else {
            if !F::KEEPS_THE_PLACE {
                give_back(&self.free);
            }
            return Err(FlowStage::Breaker);
        };
        Ok(passed)
    }

    /// The first part that refuses, as far as it matters to the models: the limiter, or the one that was asked.
    fn refuse(&self, stage: FlowStage) -> FlowStage {
        let has_token = F::NAMES_WHO_WAS_ASKED || self.tokens.load(Relaxed) > 0;
        if has_token { stage } else { FlowStage::Limiter }
    }
}

impl<F: FlowFlaws> Calls for CompactFlow<F> {
    type Entered<'f> = CompactEntered<'f, F>;

    fn new(tokens: u64, probes: u32, places: u32) -> Arc<Self> {
        let places = places.into();
        Arc::new(Self {
            tokens: AtomicU64::new(tokens),
            breaker: CompactBreaker::new(1, probes),
            free: AtomicU64::new(places),
            places,
            flaws: PhantomData,
        })
    }

    fn enter(&self, now: Nanos) -> Result<CompactEntered<'_, F>, FlowStage> {
        let takes_first = F::KEEPS_THE_TOKEN || F::TAKES_THE_TOKEN_FIRST;
        if takes_first && !take(&self.tokens) {
            return Err(FlowStage::Limiter);
        }
        let passed = self.pass(now).map_err(|stage| {
            if F::TAKES_THE_TOKEN_FIRST {
                give_back(&self.tokens);
            }
            self.refuse(stage)
        })?;
        if !takes_first && !take(&self.tokens) {
            give_back(&self.free);
            if F::KEEPS_THE_PROBE {
                forget(passed);
            } else if F::COUNTS_REFUSALS {
                CompactBreaker::settle(passed, now, CallOutcome::Failure);
            }
            return Err(FlowStage::Limiter);
        }
        Ok(CompactEntered { flow: self, passed: Some(passed) })
    }

    fn finish(mut entered: CompactEntered<'_, F>, now: Nanos, outcome: CallOutcome) {
        if let Some(passed) = entered.passed.take() {
            give_back(&entered.flow.free);
            CompactBreaker::settle(passed, now, outcome);
        }
    }

    fn trip(&self, now: Nanos) {
        self.breaker.trip(now);
    }

    fn phase(&self) -> BreakerPhase {
        self.breaker.phase()
    }

    fn tokens(&self) -> u64 {
        self.tokens.load(Relaxed)
    }

    fn add_token(&self) {
        give_back(&self.tokens);
    }

    fn in_flight(&self) -> u32 {
        (self.places - self.free.load(Relaxed)) as u32
    }
}

impl<F: FlowFlaws> Drop for CompactEntered<'_, F> {
    fn drop(&mut self) {
        if self.passed.is_some() && !F::KEEPS_CANCELLED {
            give_back(&self.flow.free);
        }
    }
}

impl<F> fmt::Debug for CompactFlow<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactFlow").finish_non_exhaustive()
    }
}

impl<F: FlowFlaws> fmt::Debug for CompactEntered<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactEntered").field("passed", &self.passed).finish_non_exhaustive()
    }
}

/// Takes one, if there is one.
fn take(count: &AtomicU64) -> bool {
    count.fetch_update(Relaxed, Relaxed, |count| count.checked_sub(1)).is_ok()
}

fn give_back(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}
