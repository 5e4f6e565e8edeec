//! Which quota a key has.

use alloc::boxed::Box;
use core::fmt;
use core::hash::Hash;

use crate::{BucketStep, Quota};

/// Which quota a key has: the same for all, [`OneQuota`], or one of a table, [`Tiers`].
///
/// This trait is sealed: these two are all there are.
pub trait Quotas: Clone + fmt::Debug + sealed::Sealed {
    /// What is kept with each key. The default is what a key has that was never set up.
    type Tier: Copy + Default + Eq + Hash + fmt::Debug;

    /// The quota of `tier`, made ready. One that the table does not have counts as the default.
    #[doc(hidden)]
    fn step(&self, tier: Self::Tier) -> &BucketStep;

    /// Whether the table has `tier`.
    #[doc(hidden)]
    fn has(&self, tier: Self::Tier) -> bool;

    /// Puts `step` in the place of `tier`.
    #[doc(hidden)]
    fn replace(&mut self, tier: Self::Tier, step: BucketStep);

    /// The bytes that it allocates.
    #[doc(hidden)]
    fn allocated(&self) -> usize;
}

/// One quota for all keys. Takes no memory in a key.
#[derive(Clone, Debug)]
pub struct OneQuota(BucketStep);

impl OneQuota {
    pub(super) const fn new(quota: Quota) -> Self {
        Self(BucketStep::new(quota))
    }
}

impl Quotas for OneQuota {
    type Tier = ();

    #[inline(always)]
    fn step(&self, (): ()) -> &BucketStep {
        &self.0
    }

    fn has(&self, (): ()) -> bool {
        true
    }

    fn replace(&mut self, (): (), step: BucketStep) {
        self.0 = step;
    }

    fn allocated(&self) -> usize {
        0
    }
}

/// The place of a quota in a table: what a client has paid for, say. A key has `Tier(0)` until it is given another one.
///
/// ```
/// use sluicegate_core::Tier;
/// assert_eq!(Tier::default(), Tier(0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tier(pub u8);

/// A table of quotas, of which each key has one. Takes one byte in a key, and what aligning it takes.
#[derive(Clone, Debug)]
pub struct Tiers {
    default: BucketStep,
    /// Those of `Tier(1)` and on.
    others: Box<[BucketStep]>,
}

impl Tiers {
    /// `default` for `Tier(0)`, and `others` from `Tier(1)` on.
    pub(super) fn new(default: Quota, others: &[Quota]) -> Self {
        Self { default: BucketStep::new(default), others: others.iter().copied().map(BucketStep::new).collect() }
    }
}

impl Quotas for Tiers {
    type Tier = Tier;

    #[inline]
    fn step(&self, tier: Tier) -> &BucketStep {
        let other = usize::from(tier.0).checked_sub(1).and_then(|index| self.others.get(index));
        other.unwrap_or(&self.default)
    }

    fn has(&self, tier: Tier) -> bool {
        usize::from(tier.0) <= self.others.len()
    }

    fn replace(&mut self, tier: Tier, step: BucketStep) {
        match usize::from(tier.0).checked_sub(1) {
            None => self.default = step,
            Some(index) => {
                if let Some(other) = self.others.get_mut(index) {
                    *other = step;
                }
            }
        }
    }

    fn allocated(&self) -> usize {
        size_of_val(&*self.others)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::OneQuota {}
    impl Sealed for super::Tiers {}
}
