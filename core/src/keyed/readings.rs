//! Where the readings of decisions on keys come from: the caller, or the store's clock.

use crate::decision::Decision;
use crate::{AdjustableBucket, BucketCell, BucketStep, Clock, Debit, Nanos};

/// Where a decision's readings come from.
pub(super) trait Readings {
    fn now(&self) -> Nanos;
    /// What stands for a reading where no clock is read.
    fn without_clock(&self) -> Nanos;
    /// Decides again, under the lock, what was denied at a reading from before it: the caller may have been suspended since, while
    /// others took at later readings what refill has brought. There is nothing to decide where the reading is the caller's.
    fn again(&self, cell: &BucketCell, step: &BucketStep, cost: u64) -> Option<(Nanos, Decision)>;
    /// Takes from the limiter that keys without a place share.
    fn take_shared(&self, shared: &AdjustableBucket<()>, cost: u64) -> (Nanos, Decision);
    /// Charges a key.
    fn debit(&self, cell: &BucketCell, step: &BucketStep, cost: u64) -> (Nanos, Debit);
    /// Charges the limiter that keys without a place share.
    fn debit_shared(&self, shared: &AdjustableBucket<()>, cost: u64) -> (Nanos, Debit);
}

/// One that the caller has.
pub(super) struct Given(Nanos);

impl Given {
    #[inline(always)]
    pub(super) const fn new(now: Nanos) -> Self {
        Self(now)
    }
}

impl Readings for Given {
    #[inline(always)]
    fn now(&self) -> Nanos {
        self.0
    }

    #[inline(always)]
    fn without_clock(&self) -> Nanos {
        self.0
    }

    #[inline(always)]
    fn again(&self, _: &BucketCell, _: &BucketStep, _: u64) -> Option<(Nanos, Decision)> {
        None
    }

    fn take_shared(&self, shared: &AdjustableBucket<()>, cost: u64) -> (Nanos, Decision) {
        (self.0, shared.try_acquire_at(self.0, cost))
    }

    fn debit(&self, cell: &BucketCell, step: &BucketStep, cost: u64) -> (Nanos, Debit) {
        (self.0, cell.debit(step, self.0, cost))
    }

    fn debit_shared(&self, shared: &AdjustableBucket<()>, cost: u64) -> (Nanos, Debit) {
        (self.0, shared.debit_at(self.0, cost))
    }
}

/// Those of the store's clock.
pub(super) struct Own<'c, C>(&'c C);

impl<'c, C> Own<'c, C> {
    #[inline(always)]
    pub(super) const fn new(clock: &'c C) -> Self {
        Self(clock)
    }
}

impl<C: Clock> Readings for Own<'_, C> {
    #[inline(always)]
    fn now(&self) -> Nanos {
        self.0.now()
    }

    #[inline(always)]
    fn without_clock(&self) -> Nanos {
        Nanos::ZERO
    }

    // Inlined, so that a caller who asks only whether it may pass does not pay for a hint.
    #[inline(always)]
    fn again(&self, cell: &BucketCell, step: &BucketStep, cost: u64) -> Option<(Nanos, Decision)> {
        Some(cell.try_acquire_by(step, self.0, cost))
    }

    fn take_shared(&self, shared: &AdjustableBucket<()>, cost: u64) -> (Nanos, Decision) {
        shared.try_acquire_by(self.0, cost)
    }

    fn debit(&self, cell: &BucketCell, step: &BucketStep, cost: u64) -> (Nanos, Debit) {
        cell.debit_by(step, self.0, cost)
    }

    fn debit_shared(&self, shared: &AdjustableBucket<()>, cost: u64) -> (Nanos, Debit) {
        shared.debit_by(self.0, cost)
    }
}
