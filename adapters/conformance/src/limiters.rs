//! Limiters that the cases wait for.

use alloc::sync::Arc;
use core::num::NonZeroUsize;

use sluicegate_runtime::{
    AdjustableBucket, Admitted, Denied, Nanos, Queued, Quota, Shard, ShardedWindow, TokenBucket, WaitOptions,
};
use sluicegate_threads::ThreadShard;

use crate::executor::Executor;

pub(crate) type Waited<E, L> = Arc<Queued<L, <E as Executor>::Runtime, <E as Executor>::Lock, <E as Executor>::Room>>;
pub(crate) type Bucket<E> = Waited<E, TokenBucket<()>>;
pub(crate) type Adjustable<E> = Waited<E, AdjustableBucket<()>>;
pub(crate) type Window<E> = Waited<E, ShardedWindow<Box<[Shard]>, (), ThreadShard>>;

pub(crate) fn bucket<E: Executor>(runtime: &E::Runtime, quota: Quota) -> Bucket<E> {
    bucket_with::<E>(runtime, quota, WaitOptions::new())
}

/// One that was full, and has just been emptied.
pub(crate) fn empty<E: Executor>(runtime: &E::Runtime, quota: Quota) -> Bucket<E> {
    empty_with::<E>(runtime, quota, WaitOptions::new())
}

pub(crate) fn empty_with<E: Executor>(runtime: &E::Runtime, quota: Quota, options: WaitOptions) -> Bucket<E> {
    let bucket = bucket_with::<E>(runtime, quota, options);
    assert!(bucket.try_acquire(quota.capacity()).is_ok());
    bucket
}

pub(crate) fn bucket_with<E: Executor>(runtime: &E::Runtime, quota: Quota, options: WaitOptions) -> Bucket<E> {
    Arc::new(Queued::new(TokenBucket::with_limit(quota.into(), ()), runtime.clone(), options))
}

pub(crate) fn adjustable<E: Executor>(runtime: &E::Runtime, quota: Quota) -> Adjustable<E> {
    Arc::new(Queued::new(AdjustableBucket::with_limit(quota.into(), ()), runtime.clone(), WaitOptions::new()))
}

pub(crate) fn window<E: Executor>(runtime: &E::Runtime, quota: Quota, shards: usize) -> Window<E> {
    let limit = quota.try_into().expect("a quota without a burst");
    let shards = NonZeroUsize::new(shards).expect("some shards");
    let window = ShardedWindow::with_shards(limit, shards, (), ThreadShard);
    Arc::new(Queued::new(window, runtime.clone(), WaitOptions::new()))
}

pub(crate) fn level<E: Executor>(bucket: &Bucket<E>, now: Nanos) -> u64 {
    bucket.limiter().inspect_at(now).level
}

pub(crate) fn is_granted(decision: Option<Result<Admitted, Denied>>) -> bool {
    matches!(decision, Some(Ok(_)))
}

pub(crate) fn is_rate_limited(decision: Option<Result<Admitted, Denied>>) -> bool {
    matches!(decision, Some(Err(Denied::RateLimited { .. })))
}
