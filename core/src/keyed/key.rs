//! One key of a store, as a limiter.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use lock_api::RawRwLock;

use super::decided::DecidedBy;
use super::lookup::Lookup;
use super::overflow::Overflow;
use super::quotas::{OneQuota, Quotas};
use super::store::KeyedTokenBucket;
use crate::decision::{Admitted, Decision, Denied, Inspection, Remaining};
use crate::observer::{Observer, report};
use crate::{Limit, Limiter, Nanos};

/// A key of a [`KeyedTokenBucket`] where a [`Limiter`] is asked for: as the last limiter of a
/// [`Hierarchy`](crate::Hierarchy), or by a wait queue. It borrows both, keeps nothing, and is made anew where it is needed.
///
/// It decides as the store does, with one look-up a call. The key is added by the first take that is admitted; a look and a
/// refusal add nothing, and where the key is not in the store [`inspect_at`](Limiter::inspect_at) shows what a new key has.
///
/// A look at a new key for which there is no place looks for one as its first use would, under the shard's lock for writing:
/// what only looks until it may take would otherwise never find one. It drops nothing but keys that are full at its reading, and so
/// changes no answer at that reading or later.
///
/// A call takes a shard's lock, which others hold for a look-up, or for a pass over that shard. [`Denied::TooManyKeys`] carries no
/// hint: who waits for a place has to ask again. Where new keys share a limiter, the hint is that limiter's; a place that another
/// key leaves may let this one go before.
///
/// ```
/// use std::hash::RandomState;
/// use sluicegate_core::{
///     AdjustableBucket, Hierarchy, KeyedTokenBucket, Level, ManualClock, Nanos, quota,
/// };
///
/// let global = Level::new("global", AdjustableBucket::with_clock(quota!("100/1m"), ManualClock::new()));
/// let clients: KeyedTokenBucket<String, parking_lot::RawRwLock, RandomState, ManualClock> =
///     KeyedTokenBucket::new(quota!("2/1m"));
///
/// let levels = Hierarchy::new([&global])?;
/// let now = Nanos::ZERO;
/// levels.try_acquire_with_at(now, [1], &clients.key("ada"), 2)?;
/// let denied = levels.try_acquire_with_at(now, [1], &clients.key("ada"), 1).unwrap_err();
/// assert_eq!(denied.level, 1);
/// assert!(levels.try_acquire_with_at(now, [1], &clients.key("grace"), 1).is_ok());
/// assert_eq!(global.limiter().inspect_at(now).level, 98);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct KeyLimiter<'a, B: ?Sized, K, R, S, C, O = (), Q: Quotas = OneQuota> {
    store: &'a KeyedTokenBucket<K, R, S, C, O, Q>,
    key: &'a B,
}

impl<K, R, S, C, O, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// `key` as a [`Limiter`].
    pub const fn key<'a, B: ?Sized>(&'a self, key: &'a B) -> KeyLimiter<'a, B, K, R, S, C, O, Q> {
        KeyLimiter { store: self, key }
    }
}

impl<B, K, R, S, C, O, Q> Limiter for KeyLimiter<'_, B, K, R, S, C, O, Q>
where
    B: Lookup<K> + ?Sized,
    K: Hash,
    R: RawRwLock,
    S: BuildHasher,
    O: Observer,
    Q: Quotas,
{
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        self.store.try_acquire_at(self.key, now, cost)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        let foreseen = self.store.foresee_at(self.key, now, cost);
        if let DecidedBy::Overflow = foreseen.by {
            if self.store.make_place(self.key, now) {
                return self.store.peek_at(self.key, now, cost);
            }
        }
        foreseen.decision
    }

    fn inspect_at(&self, now: Nanos) -> Inspection {
        let of_quota = self.store.with_state(self.key, |step, state, _| step.inspect(state, now));
        of_quota.unwrap_or(match self.store.limit {
            Limit::Unlimited => Inspection::new(u64::MAX, u64::MAX),
            Limit::DenyAll | Limit::Quota(_) => Inspection::new(0, 0),
        })
    }

    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        match self.store.limit {
            Limit::Quota(_) => self.store.take_silently(self.key, now, cost),
            Limit::Unlimited => Ok(Admitted::new(Remaining::Unlimited, now)),
            Limit::DenyAll => Err(Denied::Closed),
        }
    }

    fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
        if !matches!(self.store.limit, Limit::Unlimited) {
            let _ = report(&self.store.observer, now, cost, *decision);
        }
    }

    /// As a `TokenBucket`'s. For a new key that shares a limiter while there is no place, nothing is known and it is `now`.
    fn earliest_at(&self, now: Nanos, total: u128) -> Option<Nanos> {
        let own =
            self.store.with_state(self.key, |step, state, is_present| (step.earliest(state, now, total), is_present));
        match (own, self.store.limit) {
            (Some((_, false)), _) if self.store.is_full() && self.store.overflow != Some(Overflow::Deny) => Some(now),
            (Some((reading, _)), _) => Some(reading),
            (None, Limit::Unlimited) => Some(now),
            (None, _) => None,
        }
    }
}

impl<B: ?Sized, K, R, S, C, O, Q: Quotas> Clone for KeyLimiter<'_, B, K, R, S, C, O, Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: ?Sized, K, R, S, C, O, Q: Quotas> Copy for KeyLimiter<'_, B, K, R, S, C, O, Q> {}

impl<B: fmt::Debug + ?Sized, K, R, S, C, O, Q: Quotas> fmt::Debug for KeyLimiter<'_, B, K, R, S, C, O, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLimiter").field("key", &self.key).field("store", self.store).finish()
    }
}
