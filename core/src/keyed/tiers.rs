//! Keys with quotas of their own, and quotas that change while they are used.

use core::fmt;
use core::hash::{BuildHasher, Hash};

use lock_api::RawRwLock;

use super::lookup::Lookup;
use super::options::KeyedOptions;
use super::quotas::{Quotas, Tiers};
use super::store::KeyedTokenBucket;
use crate::{BucketStep, Clock, Inheritance, Limit, Nanos, Observer, Quota};

impl<K, R: RawRwLock, S, C: Clock> KeyedTokenBucket<K, R, S, C, (), Tiers> {
    /// No keys yet. Keys have the options' limit as `Tier(0)`, and `others` are the quotas from `Tier(1)` on, up to 255.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use sluicegate_core::{Inheritance, KeyedTokenBucket, ManualClock, Nanos, Tier, Tiers, quota};
    ///
    /// type Store = KeyedTokenBucket<String, parking_lot::RawRwLock, RandomState, ManualClock, (), Tiers>;
    /// const PAID: Tier = Tier(1);
    ///
    /// let store = Store::with_tiers(quota!("10/1m"), &[quota!("100/1m")], RandomState::new(), ManualClock::new());
    /// store.set_tier_at("ada", PAID, Nanos::ZERO, Inheritance::Full)?;
    /// assert!(store.try_acquire("ada", 100).is_ok());
    /// assert!(store.try_acquire("grace", 11).is_err());
    /// # Ok::<(), sluicegate_core::SetTierError>(())
    /// ```
    pub fn with_tiers(options: impl Into<KeyedOptions>, others: &[Quota], hasher: S, clock: C) -> Self {
        Self::with_quotas(options.into(), hasher, clock, |default| Tiers::new(default, others))
    }
}

impl<K: Hash, R: RawRwLock, S: BuildHasher, C, O: Observer, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// The tier of `key`: the default where it is not in the store.
    pub fn tier<B: Lookup<K> + ?Sized>(&self, key: &B) -> Q::Tier {
        if self.limit.quota().is_none() {
            return Q::Tier::default();
        }
        let hash = self.hasher.hash_one(key);
        let shard = self.shards[self.index(hash)].read();
        shard.find(hash, key).map(|entry| entry.tier).unwrap_or_default()
    }

    /// The quota that keys of `tier` have now; none where there is no such tier, or no quota at all.
    ///
    /// While it is being changed, that of one of the shards.
    pub fn quota_of(&self, tier: Q::Tier) -> Option<Quota> {
        let shard = self.shards.first()?.read();
        shard.quotas().has(tier).then(|| shard.step(tier).quota())
    }

    /// Gives `key` another tier. What it has spent is settled at `now` under its old quota, and `inheritance` says what it
    /// keeps of that; see [`BucketStep::inherit`]. Where both quotas are the same, only [`Inheritance::Full`] and
    /// [`Inheritance::Empty`] change anything.
    ///
    /// It is one step against racing requests: each is decided wholly before or wholly after. A key that has another tier
    /// than the default, or less than a new key has, is added. With another tier it stays until it is given the default again
    /// or removed, also when it has spent nothing. The observer is told which quota the key had and has.
    ///
    /// A reading before the last change of the old tier's quota counts as that change's, and so does one before the last at
    /// which another key of this shard was given that tier; `Inheritance::Full` begins anew at its own. So no span of time
    /// refills a key twice. A reading far ahead empties the key until then; and as long as its shard remembers that reading, it does
    /// so to keys that leave the new tier afterwards, and a change of that tier's quota counts as made then, for all keys of the
    /// tier there and for new ones. A change of the quota with `Full`, also to the same one, heals it.
    ///
    /// # Errors
    /// [`SetTierError::UnknownTier`] and [`SetTierError::TooManyKeys`]. Then nothing has changed.
    pub fn set_tier_at<B: Lookup<K> + ?Sized>(
        &self,
        key: &B,
        tier: Q::Tier,
        now: Nanos,
        inheritance: Inheritance,
    ) -> Result<(), SetTierError> {
        self.move_key(key, tier, || now, inheritance)
    }

    /// Gives `key` another tier now, by a clock that the caller lends: it must have the origin of the readings that the store is
    /// asked at. See [`set_tier_at`](Self::set_tier_at).
    ///
    /// # Errors
    /// As `set_tier_at`.
    pub fn set_tier_by<B: Lookup<K> + ?Sized>(
        &self,
        clock: &impl Clock,
        key: &B,
        tier: Q::Tier,
        inheritance: Inheritance,
    ) -> Result<(), SetTierError> {
        self.move_key(key, tier, || clock.now(), inheritance)
    }

    /// `now` is asked once the key's shard is locked, so that no request that came before has a later reading.
    fn move_key<B: Lookup<K> + ?Sized>(
        &self,
        key: &B,
        tier: Q::Tier,
        now: impl FnOnce() -> Nanos,
        inheritance: Inheritance,
    ) -> Result<(), SetTierError> {
        let Some((hash, index, mut open)) = self.open_for(key) else { return Err(SetTierError::UnknownTier) };
        if !open.shard.quotas().has(tier) {
            return Err(SetTierError::UnknownTier);
        }
        open.shard.take_back(hash, key);
        let now = now();
        let default = Q::Tier::default();
        let (old, at) = match open.shard.set_tier(hash, key, tier, now, inheritance) {
            Some(moved) => moved,
            None => {
                let state = open.shard.absent_moved(tier, now, inheritance);
                if tier == default && open.shard.equals_absent(state, now) {
                    return Ok(());
                }
                if !self.add(&mut open, (hash, index), key, state, tier, now) {
                    return Err(SetTierError::TooManyKeys);
                }
                (default, open.shard.note_move(default, tier, now, inheritance))
            }
        };
        let (from, to) = (open.shard.step(old).quota(), open.shard.step(tier).quota());
        drop(open);
        self.observer.adjusted(at, Limit::Quota(from), Limit::Quota(to));
        Ok(())
    }

    /// Changes the quota of a tier, for all keys that have it; of a store without tiers, whose only tier is `()`, for all. What each has spent is settled at `now` under the old quota,
    /// and `inheritance` says what it keeps of that; see [`BucketStep::inherit`]. The same quota goes on as it is, unless it is
    /// [`Inheritance::Full`] or [`Inheritance::Empty`] that is asked for. The observer is told once.
    ///
    /// It is one step for each key against racing requests, and for all keys of a shard. Shards are changed one at a time, each
    /// locked for some nanoseconds a key, so for that long one key may still have the old quota where another already has the
    /// new one. Keys that are not in the store are new keys of the default tier, and keep what any full bucket keeps: with
    /// [`Inheritance::Level`] a larger capacity is theirs only once it has been refilled.
    ///
    /// Where the options left [`Overflow`](crate::Overflow) open, the limiter that keys beyond the cap share follows the
    /// default tier in the same way; one that they gave stays as it is.
    ///
    /// Changes follow one another, and a second one waits for the first. A reading before that of the tier's last change
    /// counts as that one's, so that no span of time refills a key twice; but `Inheritance::Full` begins anew at its own. Tokens
    /// taken at readings later than `now` count as owed at `now`; [`set_quota`](Self::set_quota) reads the clock late enough. A
    /// change at a reading far ahead empties the tier's keys until then, or until a change with `Full`. Should the clock panic in
    /// between, the shards before have the new quota and the others the old one, until the next change.
    ///
    /// # Errors
    /// [`SetTierError::UnknownTier`], and then nothing has changed. So it is where the store was made with no quota.
    pub fn set_quota_at(
        &self,
        tier: Q::Tier,
        quota: Quota,
        now: Nanos,
        inheritance: Inheritance,
    ) -> Result<(), SetTierError> {
        self.change_quota(tier, quota, || now, inheritance)
    }

    /// Changes the quota of a tier now, by a clock that the caller lends: it must have the origin of the readings that the store is
    /// asked at. See [`set_quota_at`](Self::set_quota_at).
    ///
    /// # Errors
    /// As `set_quota_at`.
    pub fn set_quota_by(
        &self,
        clock: &impl Clock,
        tier: Q::Tier,
        quota: Quota,
        inheritance: Inheritance,
    ) -> Result<(), SetTierError> {
        self.change_quota(tier, quota, || clock.now(), inheritance)
    }

    /// `now` is asked anew once each shard is locked, as in `move_key`.
    fn change_quota(
        &self,
        tier: Q::Tier,
        quota: Quota,
        now: impl Fn() -> Nanos,
        inheritance: Inheritance,
    ) -> Result<(), SetTierError> {
        let step = BucketStep::new(quota);
        let changing = self.changes.write();
        let from = self.quota_of(tier).ok_or(SetTierError::UnknownTier)?;
        let mut at = Nanos::ZERO;
        for index in 0..self.shards.len() {
            let mut open = self.open(index);
            at = open.shard.set_quota(tier, &step, &now, inheritance).max(at);
        }
        if self.overflow.is_none() && tier == Q::Tier::default() {
            // Nobody else changes it, so this never comes round.
            while self.shared.change(&now, Limit::Quota(quota), inheritance).is_err() {}
        }
        drop(changing);
        self.observer.adjusted(at, Limit::Quota(from), Limit::Quota(quota));
        Ok(())
    }
}

impl<K: Hash, R: RawRwLock, S: BuildHasher, C: Clock, O: Observer, Q: Quotas> KeyedTokenBucket<K, R, S, C, O, Q> {
    /// Gives `key` another tier now; see [`set_tier_at`](Self::set_tier_at).
    ///
    /// # Errors
    /// As `set_tier_at`.
    pub fn set_tier<B: Lookup<K> + ?Sized>(
        &self,
        key: &B,
        tier: Q::Tier,
        inheritance: Inheritance,
    ) -> Result<(), SetTierError> {
        self.move_key(key, tier, || self.reading(), inheritance)
    }

    /// Changes the quota of a tier now; see [`set_quota_at`](Self::set_quota_at).
    ///
    /// # Errors
    /// As `set_quota_at`.
    pub fn set_quota(&self, tier: Q::Tier, quota: Quota, inheritance: Inheritance) -> Result<(), SetTierError> {
        self.change_quota(tier, quota, || self.reading(), inheritance)
    }
}

/// Why a tier was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SetTierError {
    /// The store has no such tier; it is the caller's mistake.
    UnknownTier,
    /// The key is new, and there are as many keys as there may be. Come back once some have become full again.
    TooManyKeys,
}

impl fmt::Display for SetTierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownTier => "the store has no such tier, or no quota at all",
            Self::TooManyKeys => "too many keys, retry once some have become full again",
        })
    }
}

impl core::error::Error for SetTierError {}
