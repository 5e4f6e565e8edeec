//! Which shard a caller starts at, and the padding that keeps shards apart.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Deref;

use crate::sync::{self, AtomicUsize, Ordering, const_unless_loom};

/// A number that tends to differ between callers that race.
///
/// # Contract
///
/// - `shard` MAY return any number at all; limiters reduce it by their own shard count. A poor choice costs speed, never
///   exactness: a caller whose shard is spent goes on to the others.
/// - It SHOULD be cheap (it runs on every call), spread evenly, and stay the same for one thread or core, so that the
///   shard's cache line stays where it is used.
/// - It MUST NOT call a limiter that uses it.
///
/// ```
/// use sluicegate_core::ShardId;
///
/// /// One shard for each of a runtime's workers.
/// struct Worker(usize);
///
/// impl ShardId for Worker {
///     fn shard(&self) -> usize {
///         self.0
///     }
/// }
/// assert_eq!(Worker(3).shard(), 3);
/// ```
pub trait ShardId {
    /// The calling context's number.
    fn shard(&self) -> usize;

    /// Lets another caller run, who holds a limiter for some tens of instructions.
    ///
    /// `attempt` counts the calls within one wait, from 0. The default only hints the processor. Where an operating
    /// system may have suspended the holder, yield to it after a few attempts; `sluicegate-threads` does.
    #[inline]
    fn give_way(&self, attempt: u32) {
        let _ = attempt;
        sync::spin_loop();
    }
}

impl<I: ShardId + ?Sized> ShardId for &I {
    #[inline]
    fn shard(&self) -> usize {
        (**self).shard()
    }

    #[inline]
    fn give_way(&self, attempt: u32) {
        (**self).give_way(attempt);
    }
}

/// Always the same number: for one core, one thread, or a limiter with one shard.
///
/// ```
/// use sluicegate_core::{FixedShard, ShardId};
/// assert_eq!(FixedShard(2).shard(), 2);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedShard(pub usize);

impl ShardId for FixedShard {
    #[inline]
    fn shard(&self) -> usize {
        self.0
    }
}

/// A number mixed from any hashable identity: a task, a connection, a peripheral.
///
/// The mixing is fixed and not meant to resist an adversary: who can choose identities can make callers meet in one shard,
/// which slows them down and changes no decision. The number may differ between targets.
///
/// ```
/// use sluicegate_core::{HashedShard, ShardId};
/// assert_eq!(HashedShard::of("worker-7").shard(), HashedShard::of("worker-7").shard());
/// assert_ne!(HashedShard::of(&1_u32).shard() % 64, HashedShard::of(&2_u32).shard() % 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashedShard(usize);

impl HashedShard {
    /// The number that belongs to `identity`.
    pub fn of<T: Hash + ?Sized>(identity: &T) -> Self {
        let mut hasher = Mixer(0);
        identity.hash(&mut hasher);
        Self(hasher.finish() as usize)
    }
}

impl ShardId for HashedShard {
    #[inline]
    fn shard(&self) -> usize {
        self.0
    }
}

/// A hasher for spreading, not for defence: one multiply and shift round for each word.
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = mix(self.0 ^ u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
        }
    }

    fn finish(&self) -> u64 {
        // Fold the high half in: on 32-bit targets only the low half survives the cast to usize.
        self.0 ^ (self.0 >> 32)
    }
}

/// Steele, Lea and Flood's SplitMix64 output function: every input bit reaches every output bit.
const fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Counts calls, so that successive calls start at successive shards: for callers that have no identity.
///
/// The counter itself is shared by all callers, so it spreads load evenly but costs what sharding saves. Prefer a
/// number that belongs to the thread or core.
///
/// ```
/// use sluicegate_core::{CounterShard, ShardId};
/// let shards = CounterShard::new();
/// assert_eq!((shards.shard(), shards.shard(), shards.shard()), (0, 1, 2));
/// ```
#[derive(Default)]
pub struct CounterShard {
    next: AtomicUsize,
}

impl CounterShard {
    const_unless_loom! {
        /// A counter that starts at 0.
        pub fn new() -> Self {
            Self { next: AtomicUsize::new(0) }
        }
    }
}

impl ShardId for CounterShard {
    #[inline]
    fn shard(&self) -> usize {
        // Relaxed: the number only spreads callers and orders nothing. It wraps, which is as good a number as any.
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for CounterShard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CounterShard").finish_non_exhaustive()
    }
}

/// Keeps its content on cache lines of its own, so that two cores that write neighbouring values do not slow each
/// other down.
///
/// The alignment is 128 bytes where the processor fetches lines in pairs or has lines that long (x86-64, aarch64,
/// powerpc64), 4 bytes on single-core microcontrollers (Cortex-M, 32-bit RISC-V without an operating system), where
/// padding would only waste memory, and 64 bytes elsewhere.
///
/// ```
/// use sluicegate_core::CachePadded;
/// let padded = CachePadded::new(7_u64);
/// assert_eq!(*padded, 7);
/// ```
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "powerpc64"), repr(align(128)))]
#[cfg_attr(all(target_os = "none", any(target_arch = "arm", target_arch = "riscv32")), repr(align(4)))]
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "powerpc64",
        all(target_os = "none", any(target_arch = "arm", target_arch = "riscv32"))
    )),
    repr(align(64))
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CachePadded<T> {
    value: T,
}

impl<T> CachePadded<T> {
    /// Pads `value`.
    pub const fn new(value: T) -> Self {
        Self { value }
    }

    /// Gives the content back.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}
