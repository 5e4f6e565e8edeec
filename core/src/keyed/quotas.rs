//! Which quota a key has.

use alloc::boxed::Box;
use core::fmt;
use core::hash::Hash;

use crate::{BucketStep, Nanos, Quota};

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

    /// The reading up to which keys of `tier` may have been settled under another quota.
    #[doc(hidden)]
    fn changed(&self, tier: Self::Tier) -> Nanos;

    /// Puts `step` in the place of `tier`, as changed at `changed`.
    #[doc(hidden)]
    fn replace(&mut self, tier: Self::Tier, step: BucketStep, changed: Nanos);

    /// The bytes that it allocates.
    #[doc(hidden)]
    fn allocated(&self) -> usize;
}

/// One quota for all keys. Takes no memory in a key.
#[derive(Clone, Debug)]
pub struct OneQuota(Dated);

impl OneQuota {
    pub(super) const fn new(quota: Quota) -> Self {
        Self(Dated::new(quota))
    }
}

impl Quotas for OneQuota {
    type Tier = ();

    #[inline(always)]
    fn step(&self, (): ()) -> &BucketStep {
        &self.0.step
    }

    fn has(&self, (): ()) -> bool {
        true
    }

    fn changed(&self, (): ()) -> Nanos {
        self.0.changed
    }

    fn replace(&mut self, (): (), step: BucketStep, changed: Nanos) {
        self.0 = Dated { step, changed };
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
    default: Dated,
    /// Those of `Tier(1)` and on.
    others: Box<[Dated]>,
}

impl Tiers {
    /// `default` for `Tier(0)`, and `others` from `Tier(1)` on.
    pub(super) fn new(default: Quota, others: &[Quota]) -> Self {
        Self { default: Dated::new(default), others: others.iter().copied().map(Dated::new).collect() }
    }

    #[inline]
    fn dated(&self, tier: Tier) -> &Dated {
        let other = usize::from(tier.0).checked_sub(1).and_then(|index| self.others.get(index));
        other.unwrap_or(&self.default)
    }
}

impl Quotas for Tiers {
    type Tier = Tier;

    #[inline]
    fn step(&self, tier: Tier) -> &BucketStep {
        &self.dated(tier).step
    }

    fn has(&self, tier: Tier) -> bool {
        usize::from(tier.0) <= self.others.len()
    }

    fn changed(&self, tier: Tier) -> Nanos {
        self.dated(tier).changed
    }

    fn replace(&mut self, tier: Tier, step: BucketStep, changed: Nanos) {
        match usize::from(tier.0).checked_sub(1) {
            None => self.default = Dated { step, changed },
            Some(index) => {
                if let Some(other) = self.others.get_mut(index) {
                    *other = Dated { step, changed };
                }
            }
        }
    }

    fn allocated(&self) -> usize {
        size_of_val(&*self.others)
    }
}

/// A quota, and since when keys have it.
#[derive(Clone, Debug)]
struct Dated {
    step: BucketStep,
    changed: Nanos,
}

impl Dated {
    const fn new(quota: Quota) -> Self {
        Self { step: BucketStep::new(quota), changed: Nanos::ZERO }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::OneQuota {}
    impl Sealed for super::Tiers {}
}
