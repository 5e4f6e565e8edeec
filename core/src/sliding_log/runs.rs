//! Where a sliding log keeps what it admitted.

/// What was admitted at one reading: all of it, however many requests it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The reading, in nanoseconds.
    pub(super) at: u64,
    /// The cost admitted before this run since the log began, modulo 2^64. What lies between two runs is the difference,
    /// which never exceeds the limit, so the sum may wrap.
    pub(super) before: u64,
}

/// A double-ended queue of runs, oldest first: `alloc`'s `VecDeque`, or `heapless`'s `Deque` of at least the limit.
pub trait Runs: sealed::Sealed {
    /// The runs in two pieces, oldest first.
    fn pieces(&self) -> (&[Run], &[Run]);
    /// The runs in two pieces, to be changed in place.
    fn pieces_mut(&mut self) -> (&mut [Run], &mut [Run]);
    /// Adds the newest run, where there will never be more than `most`.
    fn push_back(&mut self, run: Run, most: u64);
    /// Drops the oldest run.
    fn pop_front(&mut self);
    /// Drops the newest run.
    fn pop_back(&mut self);
    /// Gives memory back that no longer is in use.
    fn shrink(&mut self);
}

#[cfg(feature = "alloc")]
impl Runs for alloc::collections::VecDeque<Run> {
    #[inline]
    fn pieces(&self) -> (&[Run], &[Run]) {
        self.as_slices()
    }

    fn pieces_mut(&mut self) -> (&mut [Run], &mut [Run]) {
        self.as_mut_slices()
    }

    #[inline]
    fn push_back(&mut self, run: Run, most: u64) {
        if self.len() == self.capacity() {
            // Twice as much, as it would grow by itself, but no more than there will ever be.
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            self.reserve_exact(self.len().max(4).min(most.saturating_sub(self.len())));
        }
        Self::push_back(self, run);
    }

    #[inline]
    fn pop_front(&mut self) {
        Self::pop_front(self);
    }

    fn pop_back(&mut self) {
        Self::pop_back(self);
    }

    fn shrink(&mut self) {
        self.shrink_to_fit();
    }
}

#[cfg(feature = "heapless")]
impl<const N: usize> Runs for heapless::Deque<Run, N> {
    #[inline]
    fn pieces(&self) -> (&[Run], &[Run]) {
        self.as_slices()
    }

    fn pieces_mut(&mut self) -> (&mut [Run], &mut [Run]) {
        self.as_mut_slices()
    }

    #[inline]
    fn push_back(&mut self, run: Run, most: u64) {
        // There is room: a log is only made where `most`, its limit, is at most N.
        let pushed = Self::push_back(self, run);
        debug_assert!(pushed.is_ok() && most <= N as u64);
    }

    #[inline]
    fn pop_front(&mut self) {
        Self::pop_front(self);
    }

    fn pop_back(&mut self) {
        Self::pop_back(self);
    }

    fn shrink(&mut self) {}
}

mod sealed {
    pub trait Sealed {}
    #[cfg(feature = "alloc")]
    impl Sealed for alloc::collections::VecDeque<super::Run> {}
    #[cfg(feature = "heapless")]
    impl<const N: usize> Sealed for heapless::Deque<super::Run, N> {}
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use alloc::collections::VecDeque;

    use super::*;

    #[test]
    fn memory_is_bounded_by_the_limit_while_it_grows_too() {
        for most in [1, 2, 3, 5, 8, 100, 1_025] {
            let mut runs = VecDeque::new();
            for at in 0..most {
                Runs::push_back(&mut runs, Run { at, before: at }, most);
                assert!(runs.capacity() as u64 <= most, "{} for {} of {most}", runs.capacity(), runs.len());
                assert!(runs.capacity() <= (2 * runs.len()).max(4), "{} for {}", runs.capacity(), runs.len());
            }
        }
        assert_eq!(size_of::<Run>(), 16);
    }
}
