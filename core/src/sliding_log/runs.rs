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

/// A double-ended queue of runs, oldest first: `VecDeque`.
pub trait Runs: sealed::Sealed {
    /// The runs in two pieces, oldest first.
    fn pieces(&self) -> (&[Run], &[Run]);
    /// The runs in two pieces, to be changed in place.
    fn pieces_mut(&mut self) -> (&mut [Run], &mut [Run]);
    /// Adds the newest run. The caller makes sure that there is room.
    fn push_back(&mut self, run: Run);
    /// Drops the oldest run.
    fn pop_front(&mut self);
    /// Drops the newest run.
    fn pop_back(&mut self);
    /// Gives memory back that no longer is in use.
    fn shrink(&mut self);
}

impl Runs for alloc::collections::VecDeque<Run> {
    #[inline]
    fn pieces(&self) -> (&[Run], &[Run]) {
        self.as_slices()
    }

    fn pieces_mut(&mut self) -> (&mut [Run], &mut [Run]) {
        self.as_mut_slices()
    }

    #[inline]
    fn push_back(&mut self, run: Run) {
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

mod sealed {
    pub trait Sealed {}
    impl Sealed for alloc::collections::VecDeque<super::Run> {}
}
