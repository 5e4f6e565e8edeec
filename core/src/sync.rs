//! The only file that names atomics.
//!
//! With `--cfg sluicegate_loom` and the feature `loom` together, every atomic becomes loom's and a model can explore
//! each interleaving. In every other build they are portable-atomic's, which are the native ones where the target has
//! them and an emulation where it does not.

#[cfg(all(sluicegate_loom, feature = "loom"))]
mod imp {
    use core::sync::atomic::Ordering;

    use loom::sync::atomic;
    pub(crate) use loom::sync::atomic::AtomicUsize;

    /// loom's atomic, with every access in the race.
    ///
    /// loom 0.7.3 remembers only the last access to an atomic. A thread that loads and then swaps, as every limiter does,
    /// hides behind its own load that another thread's load races with its swap, and loom never tries the other order.
    /// So each access first touches a second atomic in a way that loom takes to race with every other touch. The touch
    /// is relaxed: it orders nothing, and loads may still return every stale value that their own order allows.
    #[derive(Debug, Default)]
    pub struct AtomicU64 {
        value: atomic::AtomicU64,
        turn: AtomicUsize,
    }

    #[allow(missing_docs, clippy::missing_errors_doc, reason = "each is what it is on an atomic of the language")]
    impl AtomicU64 {
        pub fn new(value: u64) -> Self {
            Self { value: atomic::AtomicU64::new(value), turn: AtomicUsize::new(0) }
        }

        pub fn load(&self, order: Ordering) -> u64 {
            self.touch();
            self.value.load(order)
        }

        pub fn store(&self, value: u64, order: Ordering) {
            self.touch();
            self.value.store(value, order);
        }

        pub fn swap(&self, value: u64, order: Ordering) -> u64 {
            self.touch();
            self.value.swap(value, order)
        }

        pub fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            self.touch();
            self.value.fetch_add(value, order)
        }

        pub fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
            self.touch();
            self.value.fetch_sub(value, order)
        }

        pub fn compare_exchange(&self, current: u64, new: u64, set: Ordering, fetch: Ordering) -> Result<u64, u64> {
            self.touch();
            self.value.compare_exchange(current, new, set, fetch)
        }

        /// Never fails for no reason, as loom's own does not.
        pub fn compare_exchange_weak(
            &self,
            current: u64,
            new: u64,
            set: Ordering,
            fetch: Ordering,
        ) -> Result<u64, u64> {
            self.compare_exchange(current, new, set, fetch)
        }

        pub fn fetch_update(
            &self,
            set: Ordering,
            fetch: Ordering,
            mut change: impl FnMut(u64) -> Option<u64>,
        ) -> Result<u64, u64> {
            let mut current = self.load(fetch);
            while let Some(next) = change(current) {
                match self.compare_exchange(current, next, set, fetch) {
                    Ok(previous) => return Ok(previous),
                    Err(seen) => current = seen,
                }
            }
            Err(current)
        }

        fn touch(&self) {
            self.turn.fetch_add(0, Ordering::Relaxed);
        }
    }

    /// A 128-bit atomic, which loom has not. Behind a lock its accesses are seen in one order by all; so a model of it does
    /// not tell whether the memory orders given here suffice.
    #[derive(Debug, Default)]
    pub(crate) struct AtomicU128 {
        value: loom::sync::Mutex<u128>,
        turn: AtomicUsize,
    }

    impl AtomicU128 {
        pub(crate) fn new(value: u128) -> Self {
            Self { value: loom::sync::Mutex::new(value), turn: AtomicUsize::new(0) }
        }

        pub(crate) fn load(&self, _order: Ordering) -> u128 {
            self.turn.fetch_add(0, Ordering::Relaxed);
            self.value.lock().map_or(0, |value| *value)
        }

        pub(crate) fn compare_exchange_weak(
            &self,
            current: u128,
            new: u128,
            _set: Ordering,
            _fetch: Ordering,
        ) -> Result<u128, u128> {
            self.turn.fetch_add(0, Ordering::Relaxed);
            let Ok(mut value) = self.value.lock() else { return Err(0) };
            if *value != current {
                return Err(*value);
            }
            Ok(core::mem::replace(&mut *value, new))
        }
    }

    /// Tells the model that this thread cannot go on until another one has moved.
    #[inline]
    pub(crate) fn spin_loop() {
        loom::thread::yield_now();
    }
}

#[cfg(not(all(sluicegate_loom, feature = "loom")))]
mod imp {
    pub(crate) use portable_atomic::{AtomicU64, AtomicU128, AtomicUsize};

    /// Tells the processor that this is a short wait for another core.
    #[inline]
    pub(crate) fn spin_loop() {
        core::hint::spin_loop();
    }
}

/// A number that tells apart what is made at run time: no two of 2^32 - 1 calls in a row get the same.
///
/// It is the language's atomic under loom too, whose own cannot be static; nothing but that the numbers differ is relied on.
#[cfg(any(feature = "alloc", feature = "heapless"))]
pub(crate) fn next_identity() -> core::num::NonZeroU32 {
    static NEXT: portable_atomic::AtomicU32 = portable_atomic::AtomicU32::new(1);
    loop {
        // Relaxed: each addition sees another value whatever it is ordered with, and publishes nothing.
        if let Some(identity) = core::num::NonZeroU32::new(NEXT.fetch_add(1, Ordering::Relaxed)) {
            return identity;
        }
    }
}

pub(crate) use core::sync::atomic::Ordering;
#[cfg(all(sluicegate_loom, feature = "loom"))]
pub use imp::AtomicU64 as ModelAtomicU64;
pub(crate) use imp::{AtomicU64, AtomicU128, AtomicUsize, spin_loop};

/// Declares functions that are `const`, except under loom, whose atomics cannot be made at compile time.
macro_rules! const_unless_loom {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident ( $($args:tt)* ) -> $ret:ty $body:block)+) => {$(
        #[cfg(not(all(sluicegate_loom, feature = "loom")))]
        $(#[$meta])* $vis const fn $name ( $($args)* ) -> $ret $body
        #[cfg(all(sluicegate_loom, feature = "loom"))]
        $(#[$meta])* $vis fn $name ( $($args)* ) -> $ret $body
    )+};
}
pub(crate) use const_unless_loom;

/// `N` values of a constant function's result, or under loom of the function's.
macro_rules! array_of {
    ($make:expr) => {{
        #[cfg(not(all(sluicegate_loom, feature = "loom")))]
        let array = [const { $make }; N];
        #[cfg(all(sluicegate_loom, feature = "loom"))]
        let array = core::array::from_fn(|_| $make);
        array
    }};
}
pub(crate) use array_of;
