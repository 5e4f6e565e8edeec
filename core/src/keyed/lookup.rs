//! Finding a key by something else than the key.

#[cfg(feature = "alloc")]
use alloc::borrow::ToOwned;
#[cfg(feature = "alloc")]
use core::borrow::Borrow;
use core::hash::Hash;

/// What a key of type `K` can be found by: the key itself, or a borrowed form of it that becomes one when it is first used.
///
/// A key that is present is never cloned to be found. Every `K: Clone` is a `Lookup` of itself, and with the feature `alloc`
/// everything is that a `HashMap` looks up by and that can be made into a key: `str` for `String`, `[u8]` for `Vec<u8>`.
///
/// # Contract
///
/// As for a `HashMap`: what is equivalent to a key MUST hash as the key does, and neither may change while the key is kept.
/// None of these may call the store that calls them: it may hold a lock meanwhile. If one panics, the store stays usable and
/// its counts right, but it may have forgotten keys.
///
/// # Example
///
/// Keys of two parts, found without making an owned one:
///
/// ```
/// use core::hash::BuildHasherDefault;
/// use std::hash::DefaultHasher;
/// use sluicegate_core::{FixedKeyedTokenBucket, Limit, Lookup, ManualClock, Overflow, quota};
///
/// #[derive(Hash)]
/// struct UserAction<'a>(&'a str, u8);
///
/// impl Lookup<(String, u8)> for UserAction<'_> {
///     fn is(&self, key: &(String, u8)) -> bool {
///         key.0 == self.0 && key.1 == self.1
///     }
///
///     fn to_key(&self) -> (String, u8) {
///         (self.0.to_owned(), self.1)
///     }
/// }
///
/// let mut store: FixedKeyedTokenBucket<(String, u8), BuildHasherDefault<DefaultHasher>, ManualClock, 16> =
///     FixedKeyedTokenBucket::new(Limit::Quota(quota!("1/1m")), Overflow::Deny);
/// assert!(store.try_acquire(&UserAction("ada", 1), 1).is_ok());
/// assert!(store.try_acquire(&UserAction("ada", 1), 1).is_err());
/// assert!(store.try_acquire(&UserAction("ada", 2), 1).is_ok());
/// ```
pub trait Lookup<K>: Hash {
    /// Whether this finds `key`.
    fn is(&self, key: &K) -> bool;

    /// The key that this finds.
    fn to_key(&self) -> K;
}

#[cfg(not(feature = "alloc"))]
impl<K: Hash + Eq + Clone> Lookup<K> for K {
    #[inline]
    fn is(&self, key: &K) -> bool {
        key == self
    }

    #[inline]
    fn to_key(&self) -> K {
        self.clone()
    }
}

#[cfg(feature = "alloc")]
impl<K, B> Lookup<K> for B
where
    K: Borrow<B>,
    B: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    #[inline]
    fn is(&self, key: &K) -> bool {
        key.borrow() == self
    }

    #[inline]
    fn to_key(&self) -> K {
        self.to_owned()
    }
}
