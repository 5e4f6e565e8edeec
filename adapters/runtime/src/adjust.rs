//! Changing a limit that others wait for.

#[cfg(feature = "keyed")]
use core::hash::{BuildHasher, Hash};

use lock_api::RawMutex;
#[cfg(feature = "keyed")]
use lock_api::RawRwLock;
use sluicegate_core::{AdjustableBucket, Inheritance, Limit, Observer};
#[cfg(feature = "keyed")]
use sluicegate_core::{KeyedTokenBucket, Quotas, SetTierError};

use crate::finally::Finally;
#[cfg(feature = "keyed")]
use crate::keyed::QueuedKeyed;
use crate::queued::Queued;
use crate::room::Room;
use crate::runtime::Runtime;

impl<C, O: Observer, R: Runtime, M: RawMutex, S: Room> Queued<AdjustableBucket<C, O>, R, M, S> {
    /// Changes the limit now, by the executor's clock, and ends the waits that this ends: before it returns, all are woken who can go
    /// under the new limit, and all who never will, wherever in the line they are. Those are told
    /// [`Denied::CostExceedsLimit`](sluicegate_core::Denied::CostExceedsLimit) or, under [`Limit::DenyAll`],
    /// [`Denied::Closed`](sluicegate_core::Denied::Closed). Everybody else keeps its place, and waits for what the new rate brings.
    ///
    /// What is left of the tokens is for `inheritance` to say; what reservations hold stays held. See [`AdjustableBucket::adjust_at`].
    ///
    /// `limit` is a [`Quota`](sluicegate_core::Quota), a [`Rate`](sluicegate_core::Rate) or a [`Limit`]. O(n) of those who wait, if any
    /// of them can never go, and otherwise as [`recheck`](Self::recheck).
    ///
    /// ```
    /// # #[cfg(feature = "alloc")] {
    /// # use core::{future::Future, pin::pin, task::{Context, Poll, Waker}};
    /// use sluicegate_runtime::{
    ///     AdjustableBucket, Denied, Growing, Inheritance, Limit, ManualRuntime, Queued, WaitOptions, quota,
    /// };
    ///
    /// type Lock = parking_lot::RawMutex;
    ///
    /// let bucket = AdjustableBucket::with_limit(quota!("1/1h burst 10").into(), ());
    /// let bucket = Queued::<_, _, Lock, Growing>::new(bucket, ManualRuntime::<Lock>::new(), WaitOptions::new());
    /// bucket.try_acquire(10)?;
    /// let (mut small, mut large) = (pin!(bucket.acquire(2)), pin!(bucket.acquire(10)));
    /// # let mut context = Context::from_waker(Waker::noop());
    /// assert!(small.as_mut().poll(&mut context).is_pending());
    /// assert!(large.as_mut().poll(&mut context).is_pending());
    ///
    /// bucket.adjust(quota!("1/1s burst 5"), Inheritance::Level);
    /// let never = Denied::CostExceedsLimit { cost: 10, limit: 5 };
    /// assert_eq!(large.as_mut().poll(&mut context), Poll::Ready(Err(never)));
    /// bucket.adjust(Limit::Unlimited, Inheritance::Level);
    /// assert!(small.as_mut().poll(&mut context).is_ready());
    /// # }
    /// # Ok::<(), sluicegate_core::Denied>(())
    /// ```
    pub fn adjust(&self, limit: impl Into<Limit>, inheritance: Inheritance) {
        let _next = Finally(|| self.recheck());
        self.limiter.adjust_by(&self.runtime, limit, inheritance);
    }
}

#[cfg(feature = "keyed")]
impl<K, L, S, C, O, Q, R, M> QueuedKeyed<KeyedTokenBucket<K, L, S, C, O, Q>, R, M>
where
    K: Hash + Eq + Clone,
    L: RawRwLock,
    S: BuildHasher,
    O: Observer,
    Q: Quotas,
    R: Runtime + Clone,
    M: RawMutex,
{
    /// Changes the quota of a tier now, by the executor's clock; see
    /// [`KeyedTokenBucket::set_quota_at`](sluicegate_core::KeyedTokenBucket::set_quota_at). Before it returns, all are woken who can go
    /// under it, and all who never will, wherever in their lines they are.
    ///
    /// O(n) of the keys that are waited for, besides what the change takes.
    ///
    /// # Errors
    /// As the store's; then nothing has changed.
    pub fn set_quota(
        &self,
        tier: Q::Tier,
        quota: sluicegate_core::Quota,
        inheritance: Inheritance,
    ) -> Result<(), SetTierError> {
        self.store().set_quota_by(self.runtime(), tier, quota, inheritance)?;
        self.recheck_all();
        Ok(())
    }

    /// Gives `key` another tier now, by the executor's clock; see
    /// [`KeyedTokenBucket::set_tier_at`](sluicegate_core::KeyedTokenBucket::set_tier_at). Those who wait for it are woken as by
    /// [`set_quota`](Self::set_quota).
    ///
    /// # Errors
    /// As the store's; then nothing has changed.
    pub fn set_tier(&self, key: &K, tier: Q::Tier, inheritance: Inheritance) -> Result<(), SetTierError> {
        self.store().set_tier_by(self.runtime(), key, tier, inheritance)?;
        self.recheck(key);
        Ok(())
    }
}
