//! Where a sharded window keeps its words.

use core::fmt;

use crate::shard::CachePadded;
use crate::sync::{AtomicU64, const_unless_loom};

/// One shard of a [`ShardedWindow`](super::ShardedWindow): a window number and a count, on cache lines of its own.
#[derive(Default)]
pub struct Shard {
    pub(super) word: CachePadded<AtomicU64>,
}

impl Shard {
    const_unless_loom! {
        /// A shard in which nothing was taken.
        pub fn new() -> Self {
            Self { word: CachePadded::new(AtomicU64::new(0)) }
        }
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard").finish_non_exhaustive()
    }
}

/// Storage whose number of shards never changes: an array, or with the feature `alloc` a boxed slice.
pub trait Shards: sealed::Sealed {
    /// All shards.
    fn shards(&self) -> &[Shard];
}

impl<const N: usize> Shards for [Shard; N] {
    #[inline]
    fn shards(&self) -> &[Shard] {
        self
    }
}

#[cfg(feature = "alloc")]
impl Shards for alloc::boxed::Box<[Shard]> {
    #[inline]
    fn shards(&self) -> &[Shard] {
        self
    }
}

mod sealed {
    pub trait Sealed {}
    impl<const N: usize> Sealed for [super::Shard; N] {}
    #[cfg(feature = "alloc")]
    impl Sealed for alloc::boxed::Box<[super::Shard]> {}
}
