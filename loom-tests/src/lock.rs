//! Locks for stores of keys and for those who wait: the model checker's where it runs, and plain ones elsewhere.

use core::cell::{Cell, UnsafeCell};
use core::fmt;
use core::sync::atomic::Ordering;
use std::sync::OnceLock;

use crate::shim::{AtomicU64, Mutex, MutexGuard, give_way, thread_local};

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

/// A lock of one: the model checker's own, which runs nobody who waits for it, or the standard library's.
#[derive(Default)]
pub struct ModelMutex {
    /// Made at the first use, as in a [`ModelLock`].
    gate: OnceLock<Gate>,
}

#[derive(Default)]
struct Gate {
    /// What whoever has locked it will drop; before `mutex`, which it refers to.
    guard: UnsafeCell<Option<MutexGuard<'static, ()>>>,
    mutex: Box<Mutex<()>>,
}

// SAFETY: only whoever has locked `mutex` touches `guard`, and drops it on its own thread, as `GuardMarker` demands.
unsafe impl Send for ModelMutex {}
// SAFETY: as above.
unsafe impl Sync for ModelMutex {}

impl Gate {
    fn keep(&self, guard: MutexGuard<'_, ()>) {
        // SAFETY: the mutex is boxed, so that it stays where it is, and is dropped after the guard.
        let guard = unsafe { core::mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
        // SAFETY: the caller has just locked the mutex.
        unsafe { *self.guard.get() = Some(guard) };
        HELD.with(|held| held.set(held.get() + 1));
    }
}

// SAFETY: who has locked it has locked the mutex within.
unsafe impl lock_api::RawMutex for ModelMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for it")]
    const INIT: Self = Self { gate: OnceLock::new() };

    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        let gate = self.gate.get_or_init(Gate::default);
        // A broken promise may have unwound past a lock; whoever cleans up may still have it.
        gate.keep(gate.mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }

    fn try_lock(&self) -> bool {
        let gate = self.gate.get_or_init(Gate::default);
        gate.mutex.try_lock().map(|guard| gate.keep(guard)).is_ok()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller has locked it.
        let guard = self.gate.get().and_then(|gate| unsafe { (*gate.guard.get()).take() });
        HELD.with(|held| held.set(held.get() - 1));
        drop(guard);
    }
}

impl fmt::Debug for ModelMutex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelMutex").finish_non_exhaustive()
    }
}

/// The same, but that others may come right after it was opened, before whoever has opened it does anything else: the model checker
/// switches only where something modelled is done, and giving up a reference is not.
#[derive(Debug)]
pub struct SteppedMutex {
    mutex: ModelMutex,
    step: OnceLock<AtomicU64>,
}

// SAFETY: as the mutex.
unsafe impl lock_api::RawMutex for SteppedMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "the trait asks for it")]
    const INIT: Self = Self { mutex: <ModelMutex as lock_api::RawMutex>::INIT, step: OnceLock::new() };

    type GuardMarker = lock_api::GuardNoSend;

    fn lock(&self) {
        self.mutex.lock();
    }

    fn try_lock(&self) -> bool {
        self.mutex.try_lock()
    }

    unsafe fn unlock(&self) {
        // SAFETY: the caller has locked it.
        unsafe { self.mutex.unlock() };
        self.step.get_or_init(|| AtomicU64::new(0)).load(Ordering::Relaxed);
    }
}

/// Whether the calling thread has locked a [`ModelMutex`].
pub(crate) fn holds_a_lock() -> bool {
    HELD.with(Cell::get) > 0
}

thread_local! {
    /// How many the calling thread has locked.
    #[allow(clippy::missing_const_for_thread_local, reason = "loom's macro knows no constants")]
    static HELD: Cell<u32> = Cell::new(0);
}

/// More than there are readers.
const WRITER: u64 = 1 << 32;
