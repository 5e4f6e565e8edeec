//! Where the readings of decisions on keys come from: the caller, or the store's clock.

use crate::decision::Decision;
use crate::{AdjustableBucket, BucketCell, BucketStep, Clock, Debit, Nanos};

/// Where a decision's readings come from.
pub(super) trait Readings {
    fn now(&self) -> Nanos;
    /// What stands for a reading where no clock is read.
    fn without_clock(&self) -> Nanos;
    /// Decides on a key, under its shard's lock.
    ///
    /// A clock of the store's is read last of all, after the key's word. So a denial needs no second reading: what was missing by that word
    /// was missing when it was read, and no more was there at the reading. And a processor may begin everything else while it still waits
    /// for what came before, but nothing until it has read a counter.
    fn take(&self, cell: &BucketCell, step: &BucketStep, cost: u64) -> (Nanos, Decision);
    /// Decides again what was denied at the reading that several decisions share: others may have taken since, at later ones, what refill
    /// has brought. There is nothing to decide where the reading is the caller's.
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
    fn take(&self, cell: &BucketCell, step: &BucketStep, cost: u64) -> (Nanos, Decision) {
        (self.0, cell.try_acquire(step, self.0, cost))
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

    #[inline(always)]
    fn take(&self, cell: &BucketCell, step: &BucketStep, cost: u64) -> (Nanos, Decision) {
        cell.try_acquire_by(step, self.0, cost)
    }

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
