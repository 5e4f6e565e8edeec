//! Stores of keys on this crate's clocks, with locks and a hasher chosen.

use core::hash::BuildHasher;

use parking_lot::RawRwLock;
use sluicegate_core::Tiers;

use crate::{CoarseClock, OsClock};

/// A token bucket for each key, on the operating system's clock. Needs the feature `keyed`.
///
/// It is core's [`KeyedTokenBucket`](sluicegate_core::KeyedTokenBucket) with lock, hasher and clock chosen, and all its methods
/// are there. Waiting for a lock yields to the operating system.
///
/// ```
/// use sluicegate_threads::{DecidedBy, KeyedOptions, KeyedTokenBucket, Overflow, quota};
///
/// let options = KeyedOptions::new(quota!("10/1m")).cap(50_000).overflow(Overflow::Shared(quota!("500/1m").into()));
/// let logins: KeyedTokenBucket<String> = KeyedTokenBucket::new(options);
/// let decided = logins.decide("ada", 1);
/// assert!(decided.decision.is_ok());
/// assert_eq!(decided.by, DecidedBy::Key);
/// ```
pub type KeyedTokenBucket<K, S = SeededState> = sluicegate_core::KeyedTokenBucket<K, RawRwLock, S, OsClock>;

/// A token bucket for each key, on the processor's time-stamp counter. Needs the features `keyed` and `tsc`.
///
/// ```
/// use sluicegate_threads::{TscKeyedTokenBucket, quota};
///
/// let logins: TscKeyedTokenBucket<u64> = TscKeyedTokenBucket::new(quota!("10/1m"));
/// assert!(logins.try_acquire(&7, 1).is_ok());
/// ```
#[cfg(feature = "tsc")]
pub type TscKeyedTokenBucket<K, S = SeededState> = sluicegate_core::KeyedTokenBucket<K, RawRwLock, S, crate::TscClock>;

/// A token bucket for each key, on a [`CoarseClock`], which is given to `with_clock`. Needs the feature `keyed`.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_threads::{CoarseClock, CoarseKeyedTokenBucket, quota};
///
/// let clock = CoarseClock::new(Duration::from_millis(1))?;
/// let logins: CoarseKeyedTokenBucket<u64> = CoarseKeyedTokenBucket::with_clock(quota!("10/1m"), clock);
/// assert!(logins.try_acquire(&7, 1).is_ok());
/// # Ok::<(), sluicegate_threads::CoarseClockError>(())
/// ```
pub type CoarseKeyedTokenBucket<K, S = SeededState> = sluicegate_core::KeyedTokenBucket<K, RawRwLock, S, CoarseClock>;

/// A token bucket for each key, with one of several quotas each, on the operating system's clock. Needs the feature `keyed`.
///
/// ```
/// use sluicegate_threads::{Inheritance, OsClock, SeededState, Tier, TieredTokenBucket, quota};
///
/// const PAID: Tier = Tier(1);
/// let calls: TieredTokenBucket<String> =
///     TieredTokenBucket::with_tiers(quota!("10/1m"), &[quota!("1000/1m")], SeededState::new(), OsClock);
/// calls.set_tier("ada", PAID, Inheritance::Full)?;
/// assert!(calls.try_acquire("ada", 500).is_ok());
/// # Ok::<(), sluicegate_threads::SetTierError>(())
/// ```
pub type TieredTokenBucket<K, S = SeededState> = sluicegate_core::KeyedTokenBucket<K, RawRwLock, S, OsClock, (), Tiers>;

/// A token bucket for each key, with one of several quotas each, on the processor's time-stamp counter. Needs the features
/// `keyed` and `tsc`.
#[cfg(feature = "tsc")]
pub type TscTieredTokenBucket<K, S = SeededState> =
    sluicegate_core::KeyedTokenBucket<K, RawRwLock, S, crate::TscClock, (), Tiers>;

/// The hasher of this crate's stores: fast, and seeded so that clients who choose their keys cannot make them collide.
///
/// Needs the feature `keyed`. It is ahash, seeded by the operating system once a process, and otherwise for
/// each store. Its makers
/// say that collisions cannot be found without the seeds; they do not say that it is a secret function, and nobody should
/// be shown its output. A store shows none, but for the order in which it shows keys to its own program.
///
/// Where that is not enough, [`std::hash::RandomState`] is SipHash, which keeps its seeds also from those who see its
/// output, for some 10 ns a decision.
///
/// ```
/// use core::hash::BuildHasher;
/// use sluicegate_threads::SeededState;
///
/// let hasher = SeededState::new();
/// assert_eq!(hasher.hash_one("ada"), hasher.hash_one("ada"));
/// assert_ne!(hasher.hash_one("ada"), SeededState::new().hash_one("ada"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SeededState(ahash::RandomState);

impl SeededState {
    /// New seeds.
    ///
    /// # Panics
    /// When the operating system has no random numbers to give to the process's first one.
    pub fn new() -> Self {
        Self::default()
    }
}

impl BuildHasher for SeededState {
    type Hasher = ahash::AHasher;

    #[inline]
    fn build_hasher(&self) -> ahash::AHasher {
        self.0.build_hasher()
    }
}
