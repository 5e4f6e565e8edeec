//! What is asked for: one cost, or one for each level.

use core::fmt;

/// What a request costs: a `u64`, or `[u64; N]` where each of N levels has its own.
///
/// This trait is sealed: these two are all there are.
pub trait Costs: Copy + fmt::Debug + sealed::Sealed {
    /// The sum of many: a `u128`, or `[u128; N]`.
    type Total: Copy + fmt::Debug;
    /// Nothing.
    #[doc(hidden)]
    const NOTHING: Self;
    /// The sum of none.
    #[doc(hidden)]
    const OF_NONE: Self::Total;
    /// The larger of both at each level.
    #[doc(hidden)]
    fn or_more(self, other: Self) -> Self;
    #[doc(hidden)]
    fn add_to(self, total: &mut Self::Total);
    /// It is part of `total`.
    #[doc(hidden)]
    fn take_from(self, total: &mut Self::Total);
}

impl Costs for u64 {
    type Total = u128;
    const NOTHING: Self = 0;
    const OF_NONE: u128 = 0;

    #[inline]
    fn or_more(self, other: Self) -> Self {
        self.max(other)
    }

    #[inline]
    fn add_to(self, total: &mut u128) {
        // Up to 2^32 of 64 bits each.
        *total += u128::from(self);
    }

    #[inline]
    fn take_from(self, total: &mut u128) {
        *total -= u128::from(self);
    }
}

impl<const N: usize> Costs for [u64; N] {
    type Total = [u128; N];
    const NOTHING: Self = [0; N];
    const OF_NONE: [u128; N] = [0; N];

    fn or_more(self, other: Self) -> Self {
        core::array::from_fn(|level| self[level].max(other[level]))
    }

    fn add_to(self, total: &mut [u128; N]) {
        self.into_iter().zip(total).for_each(|(cost, total)| cost.add_to(total));
    }

    fn take_from(self, total: &mut [u128; N]) {
        self.into_iter().zip(total).for_each(|(cost, total)| cost.take_from(total));
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl<const N: usize> Sealed for [u64; N] {}
}
