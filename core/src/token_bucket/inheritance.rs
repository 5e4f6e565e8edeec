//! What a bucket keeps when its quota changes.

use super::{BucketState, BucketStep};
use crate::Nanos;

/// What a bucket keeps when its quota changes: first it is settled under the old quota, up to the reading of the change,
/// and then the new quota goes on from there.
///
/// | | raising a capacity from 10 to 20, with 4 left | lowering it from 20 to 10, with 14 left |
/// |---|--:|--:|
/// | `Level` | 4 | 10 |
/// | `Spent` | 14 | 4 |
/// | `Fraction` | 8 | 7 |
/// | `Full` | 20 | 10 |
/// | `Empty` | 0 | 0 |
///
/// What is owed stays owed, also where the new quota allows less debt; but `Full` forgives it, and under `Spent` a larger
/// capacity pays it off as far as it reaches.
///
/// A debt counts up to 2^64 units of the new quota; what is above that is forgiven. No quota generates half as many in 30 years, so
/// under the new quota it makes no difference. It does if yet another change follows: of a debt that goes through a quota so slow
/// that it could not pay it off in 30 years, what 30 years of that quota could is sure to be left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Inheritance {
    /// As many tokens as it holds, or the new capacity if that is less. No change makes a token, and none takes one that the
    /// new capacity has room for.
    #[default]
    Level,
    /// As many tokens spent as there are. A larger capacity is there at once, a smaller one takes from what is left, but
    /// never below empty.
    Spent,
    /// As full as it is, in proportion.
    Fraction,
    /// A full bucket, whatever was spent.
    Full,
    /// An empty one.
    Empty,
}

impl BucketStep {
    /// The state to go on with under this step, for a bucket that has had `state` under the step `old` up to `now`.
    ///
    /// Both are given readings of one clock. What is kept is rounded down by less than one unit of the new step, and never
    /// up; but where the new step has no exact grid, `now` itself is rounded down to a unit, which what flows in afterwards may
    /// gain. A unit is the refill of 1 ns or less, and more only where the capacity takes decades to refill. Takes a 128-bit
    /// division.
    ///
    /// ```
    /// use sluicegate_core::{BucketState, BucketStep, Inheritance, Nanos, quota};
    ///
    /// let (old, new) = (BucketStep::new(quota!("10/1s")), BucketStep::new(quota!("20/1s")));
    /// let (state, _) = old.try_acquire(BucketState::FULL, Nanos::ZERO, 6);
    ///
    /// let kept = new.inherit(&old, state, Nanos::ZERO, Inheritance::Level);
    /// assert_eq!(new.inspect(kept, Nanos::ZERO).level, 4);
    /// let kept = new.inherit(&old, state, Nanos::ZERO, Inheritance::Spent);
    /// assert_eq!(new.inspect(kept, Nanos::ZERO).level, 14);
    /// ```
    pub const fn inherit(&self, old: &Self, state: BucketState, now: Nanos, inheritance: Inheritance) -> BucketState {
        let accrued = old.accrued(now);
        let consumed = if state.to_bits() > accrued { state.to_bits() } else { accrued };
        let (from, to) = (&old.grid, &self.grid);
        let (old_capacity, new_capacity) = (from.capacity_units as i128, to.capacity_units as i128);
        // All below 2^64, and products of two of them below 2^127. Rounding is towards owing more.
        let level = accrued as i128 + old_capacity - consumed as i128;
        let same = (level * to.units_per_token as i128).div_euclid(from.units_per_token as i128);
        let below_empty = if same < 0 { same } else { 0 };
        let kept = match inheritance {
            Inheritance::Level => same,
            Inheritance::Spent => {
                let spent =
                    ((level - old_capacity) * to.units_per_token as i128).div_euclid(from.units_per_token as i128);
                let left = new_capacity + spent;
                if left < below_empty { below_empty } else { left }
            }
            Inheritance::Fraction if level > 0 => level * new_capacity / old_capacity,
            Inheritance::Fraction => same,
            Inheritance::Full => new_capacity,
            Inheritance::Empty => below_empty,
        };
        let kept = if kept < new_capacity { kept } else { new_capacity };
        let next = self.accrued(now) as i128 + new_capacity - kept;
        BucketState::from_bits(if next > u64::MAX as i128 { u64::MAX } else { next as u64 })
    }
}
