//! What is in use, and one decision on it, as a pure function.

use crate::Denied;
use crate::decision::Inspection;

/// What a [`ConcurrencyLimit`](super::ConcurrencyLimit) has given out, and its limit, at one instant.
///
/// `in_use` is above `limit` only while a limit that was lowered drains.
///
/// ```
/// use sluicegate_core::ConcurrencyLimit;
///
/// let limit = ConcurrencyLimit::new(3);
/// let permit = limit.try_acquire(2)?;
/// assert_eq!((limit.usage().in_use, limit.usage().limit, limit.usage().free()), (2, 3, 1));
/// limit.set_limit(1);
/// assert_eq!(limit.usage().free(), 0);
/// # drop(permit);
/// # Ok::<(), sluicegate_core::Denied>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Usage {
    /// The cost of all permits that are out.
    pub in_use: u32,
    /// The limit.
    pub limit: u32,
}

impl Usage {
    #[inline]
    pub(super) const fn unused(limit: u32) -> Self {
        Self { in_use: 0, limit }
    }

    /// The cost that could be taken: 0 while what is out exceeds the limit.
    #[inline]
    pub const fn free(self) -> u32 {
        self.limit.saturating_sub(self.in_use)
    }

    #[inline]
    pub(super) const fn inspection(self) -> Inspection {
        Inspection::new(self.free() as u64, self.limit as u64)
    }

    /// The usage once `cost` more is out, and `cost` itself, which then fits into 32 bits.
    #[inline]
    pub(super) const fn take(self, cost: u64) -> Result<(Self, u32), Denied> {
        if self.limit == 0 {
            return Err(Denied::Closed);
        }
        if cost > self.limit as u64 {
            return Err(Denied::CostExceedsLimit { cost, limit: self.limit as u64 });
        }
        // A cost of 0 passes even while a lowered limit drains: it uses nothing.
        let cost = cost as u32;
        if cost > self.free() {
            return Err(Denied::ConcurrencyLimited);
        }
        // At most the limit, or no more than before.
        Ok((Self { in_use: self.in_use + cost, ..self }, cost))
    }

    #[inline]
    pub(super) const fn from_word(word: u64) -> Self {
        Self { in_use: word as u32, limit: (word >> u32::BITS) as u32 }
    }

    /// The limit above, what is in use below: a release subtracts its cost from the word and touches nothing else.
    #[inline]
    pub(super) const fn to_word(self) -> u64 {
        (self.limit as u64) << u32::BITS | self.in_use as u64
    }
}
