//! A hierarchy that shares its levels.

use alloc::sync::Arc;
use core::fmt;

use super::level::{Holding, Level};
use super::request::{DuplicateLevel, Hierarchy};

/// A hierarchy that owns a share of each of its levels, for what outlives a borrow of them: a task, a limiter that is kept in a
/// map, a queue. Needs the feature `alloc`.
///
/// [`hierarchy`](Self::hierarchy) is what decides.
///
/// ```
/// use std::sync::Arc;
/// use sluicegate_core::{AdjustableBucket, Level, ManualClock, Nanos, OwnedHierarchy, quota};
///
/// let bucket = |limit| AdjustableBucket::with_clock(limit, ManualClock::new());
/// let global = Arc::new(Level::new("global", bucket(quota!("1000/1s"))));
///
/// // A tenant's own level, behind the one that all tenants share.
/// let tenant = |limit| OwnedHierarchy::new([global.clone(), Arc::new(Level::new("tenant", bucket(limit)))]);
/// let (ada, grace) = (tenant(quota!("5/1s"))?, tenant(quota!("10/1s"))?);
/// ada.hierarchy().try_acquire_at(Nanos::ZERO, [1, 1])?;
/// let [at_global, at_grace] = grace.hierarchy().try_acquire_at(Nanos::ZERO, [1, 1])?;
/// assert_eq!((at_global.remaining.exactly(), at_grace.remaining.exactly()), (Some(998), Some(9)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OwnedHierarchy<const N: usize, L: Holding + ?Sized = dyn Holding + Send + Sync> {
    levels: [Arc<Level<L>>; N],
}

impl<const N: usize> OwnedHierarchy<N> {
    /// `levels` from the outermost inwards, which may be of different kinds: as [`Hierarchy::new`].
    ///
    /// # Errors
    /// [`DuplicateLevel`].
    pub fn new(levels: [Arc<Level<dyn Holding + Send + Sync>>; N]) -> Result<Self, DuplicateLevel> {
        Self::of(levels)
    }
}

impl<const N: usize, L: Holding + ?Sized> OwnedHierarchy<N, L> {
    /// The same for levels of one type: as [`Hierarchy::of`].
    ///
    /// # Errors
    /// [`DuplicateLevel`].
    pub fn of(levels: [Arc<Level<L>>; N]) -> Result<Self, DuplicateLevel> {
        Hierarchy::of(levels.each_ref().map(|level| &**level))?;
        Ok(Self { levels })
    }

    /// The levels, from the outermost inwards.
    pub const fn levels(&self) -> &[Arc<Level<L>>; N] {
        &self.levels
    }

    /// One that refers to the levels, and decides.
    #[inline]
    pub fn hierarchy(&self) -> Hierarchy<'_, N, L> {
        Hierarchy::distinct(self.levels.each_ref().map(|level| &**level))
    }
}

// Written out, because a derive would ask it of the levels.
impl<const N: usize, L: Holding + ?Sized> Clone for OwnedHierarchy<N, L> {
    fn clone(&self) -> Self {
        Self { levels: self.levels.clone() }
    }
}

impl<const N: usize, L: Holding + ?Sized> fmt::Debug for OwnedHierarchy<N, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hierarchy().fmt(f)
    }
}
