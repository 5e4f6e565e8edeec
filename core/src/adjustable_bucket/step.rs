//! Decisions of a bucket beside tokens that are held, as pure functions.

use core::time::Duration;

use crate::Nanos;
use crate::decision::{Denied, Inspection};
use crate::token_bucket::{BucketState, BucketStep, Debit};

/// A bucket's state and the tokens that reservations hold.
///
/// What is held is not consumed: it makes the bucket smaller for as long as it is held. So a hold that is given up leaves
/// the state that there would be without it, in whatever order holds end and whatever was refilled meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) state: BucketState,
    pub(super) held: u64,
}

impl Account {
    pub(super) const UNUSED: Self = Self { state: BucketState::FULL, held: 0 };

    /// Whether `cost` is there at `accrued`, beside what is held: then the units left.
    #[inline(always)]
    fn left(self, step: &BucketStep, accrued: u64, cost: u64) -> Option<u64> {
        let (state, bound) = (self.state.to_bits(), step.quota().capacity());
        let consumed = if state > accrued { state } else { accrued };
        // What is held counts as asked for too.
        let most = match self.held.checked_add(cost) {
            Some(beside) if beside <= bound => accrued + step.units(bound) - step.units(beside),
            _ => return if cost == 0 { Some(0) } else { None },
        };
        if consumed > most {
            return if cost == 0 { Some(0) } else { None };
        }
        Some(most - consumed)
    }

    /// After taking `cost`, with the units left.
    #[inline(always)]
    pub(super) fn take(self, step: &BucketStep, accrued: u64, cost: u64) -> Option<(Self, u64)> {
        let left = self.left(step, accrued, cost)?;
        if cost == 0 {
            return Some((self, left));
        }
        let consumed = self.state.to_bits().max(accrued);
        let state = BucketState::from_bits(consumed + step.units(cost));
        Some((Self { state, ..self }, left))
    }

    /// After holding `cost`, with the units left.
    #[inline(always)]
    pub(super) fn hold(self, step: &BucketStep, accrued: u64, cost: u64) -> Option<(Self, u64)> {
        if cost > HELD_MAX - self.held {
            return None;
        }
        let left = self.left(step, accrued, cost)?;
        Some((Self { held: self.held + cost, ..self }, left))
    }

    /// Why `cost` cannot be held.
    pub(super) fn hold_denial(self, step: &BucketStep, accrued: u64, now: Nanos, cost: u64) -> Denied {
        let limit = step.quota().capacity().min(HELD_MAX);
        if cost > limit {
            return Denied::CostExceedsLimit { cost, limit };
        }
        if cost > HELD_MAX - self.held {
            return Denied::ConcurrencyLimited;
        }
        self.denial(step, accrued, now, cost)
    }

    /// Why `cost` cannot be taken, and when it can be if what is held stays held.
    #[inline(always)]
    pub(super) fn denial(self, step: &BucketStep, accrued: u64, now: Nanos, cost: u64) -> Denied {
        let limit = step.quota().capacity();
        if cost > limit {
            return Denied::CostExceedsLimit { cost, limit };
        }
        if self.held > limit - cost {
            return Denied::ConcurrencyLimited;
        }
        let consumed = self.state.to_bits().max(accrued);
        let target = consumed.saturating_add(step.units(self.held + cost)) - step.units(limit);
        let reading = step.first_reading_of(target);
        Denied::RateLimited { retry_after: Duration::from_nanos(reading - now.within_horizon()) }
    }

    /// After `held` is held no longer and `spent` is consumed for it, whatever was held; what exceeds `held` is taken only as
    /// far as the rest of the bucket and its debt reach.
    pub(super) fn settle(self, step: &BucketStep, now: Nanos, held: u64, spent: u64) -> (Self, Debit) {
        let released = Self { held: self.held.saturating_sub(held), ..self };
        let covered = spent.min(held);
        let state = match covered {
            0 => self.state,
            // More than 2^64 only where the quota was made smaller meanwhile, and then this is far ahead anyway.
            _ => BucketState::from_bits(
                self.state.to_bits().max(step.accrued(now)).saturating_add(units_or_most(step, covered)),
            ),
        };
        let (settled, extra) = Self { state, ..released }.debit(step, now, spent - covered);
        (settled, Debit { charged: covered + extra.charged, unpaid: extra.unpaid })
    }

    /// After `cost` more is consumed, as far as the bucket beside what is held and its debt reach.
    pub(super) fn debit(self, step: &BucketStep, now: Nanos, cost: u64) -> (Self, Debit) {
        let accrued = step.accrued(now);
        let consumed = self.state.to_bits().max(accrued);
        let ceiling = accrued + step.units(step.quota().capacity());
        let charged = step.overdraw(consumed, ceiling, units_or_most(step, self.held), cost);
        let state = match charged {
            0 => self.state,
            _ => BucketState::from_bits(consumed + step.units(charged)),
        };
        (Self { state, ..self }, Debit { charged, unpaid: cost - charged })
    }

    /// What could be taken.
    pub(super) fn inspect(self, step: &BucketStep, now: Nanos) -> Inspection {
        let mut inspection = step.inspect(self.state, now);
        inspection.level = inspection.level.saturating_sub(self.held);
        inspection
    }
}

/// The units of `tokens`, which may be more than the quota has room for.
fn units_or_most(step: &BucketStep, tokens: u64) -> u64 {
    tokens.saturating_mul(step.units(1))
}

/// The most tokens that can be held at once: what fits beside the state and the version in the bucket's word.
pub(super) const HELD_MAX: u64 = (1 << 40) - 1;
