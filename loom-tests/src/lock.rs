//! A lock for stores of keys: the model checker's where it runs, and a plain spinning one elsewhere.

use core::sync::atomic::Ordering;
use std::sync::OnceLock;

use crate::shim::{AtomicU64, give_way};

/// A lock of many readers or one writer, on the same atomics as everything that is modelled.
#[derive(Debug)]
pub struct ModelLock {
    /// How many readers there are, or [`WRITER`]. A lock has to be made in a constant, where loom's atomics cannot be; so it
    /// is made at its first use, which a model must let happen before it races.
    state: OnceLock<AtomicU64>,
}

impl ModelLock {
    fn state(&self) -> &AtomicU64 {
        self.state.get_or_init(|| AtomicU64::new(0))
    }

    /// Adds `holder` if there is nobody whom `excluded` finds, or says that it must wait.
    fn enter(&self, holder: u64, excluded: impl Fn(u64) -> bool) -> bool {
        let mut seen = self.state().load(Ordering::Relaxed);
        loop {
            if excluded(seen) {
                return false;
            }
            // Acquire, for what those before did; paired with the release of their leaving.
            match self.state().compare_exchange(seen, seen + holder, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    fn leave(&self, holder: u64) {
        self.state().fetch_sub(holder, Ordering::Release);
    }
}

// SAFETY: a writer enters only where nobody is, and readers only where no writer is.
unsafe impl lock_api::RawRwLock for ModelLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for it")]
    const INIT: Self = Self { state: OnceLock::new() };

    type GuardMarker = lock_api::GuardSend;

    fn lock_shared(&self) {
        let mut attempt = 0;
        while !self.try_lock_shared() {
            give_way(attempt);
            attempt += 1;
        }
    }

    fn try_lock_shared(&self) -> bool {
        self.enter(1, |holders| holders >= WRITER)
    }

    unsafe fn unlock_shared(&self) {
        self.leave(1);
    }

    fn lock_exclusive(&self) {
        let mut attempt = 0;
        while !self.try_lock_exclusive() {
            give_way(attempt);
            attempt += 1;
        }
    }

    fn try_lock_exclusive(&self) -> bool {
        self.enter(WRITER, |holders| holders > 0)
    }

    unsafe fn unlock_exclusive(&self) {
        self.leave(WRITER);
    }
}

/// More than there are readers.
const WRITER: u64 = 1 << 32;
