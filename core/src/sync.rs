//! The only file that names atomics.
//!
//! With `--cfg sluicegate_loom` and the feature `loom` together, every atomic becomes loom's and a model can explore
//! each interleaving. In every other build they are portable-atomic's, which are the native ones where the target has
//! them and an emulation where it does not.

#[cfg(all(sluicegate_loom, feature = "loom"))]
mod imp {
    pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize};

    /// Tells the model that this thread cannot go on until another one has moved.
    #[inline]
    pub(crate) fn spin_loop() {
        loom::thread::yield_now();
    }
}

#[cfg(not(all(sluicegate_loom, feature = "loom")))]
mod imp {
    pub(crate) use portable_atomic::{AtomicU64, AtomicUsize};

    /// Tells the processor that this is a short wait for another core.
    #[inline]
    pub(crate) fn spin_loop() {
        core::hint::spin_loop();
    }
}

pub(crate) use core::sync::atomic::Ordering;
pub(crate) use imp::{AtomicU64, AtomicUsize, spin_loop};

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
