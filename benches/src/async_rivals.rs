//! Limiters that tasks wait for, ours and rivals, behind one signature.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::convert::Infallible;
use core::future::{Future, Ready};
use core::pin::Pin;
use core::time::Duration;

use governor::{Quota, RateLimiter};
use parking_lot::RawMutex;
use sluicegate_smol::SmolRuntime;
use sluicegate_tokio::sluicegate_core::TokenBucket as CoreBucket;
use sluicegate_tokio::{Growing, PER_SECOND, Queued, Rate, TokioRuntime, WaitOptions};
use tokio::sync::Semaphore;
use tower::limit::RateLimit;
use tower::{Service, ServiceExt};

use crate::rival;

/// Rate and burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Tokens that come each millisecond.
    pub per_millisecond: u32,
    /// The most tokens at once.
    pub burst: u32,
}

impl Supply {
    /// The time of a token. A millisecond is a whole number of them.
    pub fn each(self) -> Duration {
        Duration::from_millis(1) / self.per_millisecond
    }
}

/// Takes so many tokens, whenever they come.
pub type Take = Arc<dyn Fn(u32) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A limiter that tasks wait for.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    /// What it is.
    pub name: &'static str,
    /// One without a token, made within a tokio runtime.
    pub make: fn(Supply) -> Take,
    /// Whether one can ask for several tokens.
    pub has_costs: bool,
}

/// Who is measured. The first is the baseline.
pub const WAITED: [Waited; 7] = [
    Waited { name: "leaky-bucket, fair", make: |supply| leaky(supply, true), has_costs: true },
    Waited { name: "leaky-bucket, unfair", make: |supply| leaky(supply, false), has_costs: true },
    Waited { name: "governor `until_n_ready`", make: governed, has_costs: true },
    Waited { name: "tower `RateLimit` behind its `Buffer`", make: buffered, has_costs: false },
    Waited { name: "semaphore refilled by a task", make: refilled, has_costs: true },
    Waited { name: "`acquire`, smol's clock and timer", make: |supply| ours(supply, SmolRuntime), has_costs: true },
    Waited { name: "`acquire`, tokio's clock", make: |supply| ours(supply, TokioRuntime), has_costs: true },
];

/// On any runtime's timer; the executor is tokio's.
fn ours<R>(supply: Supply, runtime: R) -> Take
where
    R: sluicegate_tokio::Runtime + Send + Sync + 'static,
    R::Sleep: Send,
{
    let rate = Rate::new(u64::from(supply.per_millisecond) * 1_000, PER_SECOND).expect("a rate above 0");
    let quota = sluicegate_tokio::Quota::with_burst(rate, supply.burst.into()).expect("a quota within range");
    let limiter = Queued::new(CoreBucket::with_limit(quota.into(), ()), runtime, WaitOptions::new());
    let limiter: Arc<Queued<_, _, RawMutex, Growing>> = Arc::new(limiter);
    let _ = limiter.try_acquire(supply.burst.into());
    Arc::new(move |cost| {
        let limiter = Arc::clone(&limiter);
        Box::pin(async move {
            let _ = limiter.acquire(cost.into()).await;
        })
    })
}

fn leaky(supply: Supply, is_fair: bool) -> Take {
    let limiter = leaky_bucket::RateLimiter::builder()
        .max(supply.burst as usize)
        .initial(0)
        .refill(supply.per_millisecond as usize)
        .interval(Duration::from_millis(1))
        .fair(is_fair)
        .build();
    let limiter = Arc::new(limiter);
    Arc::new(move |cost| {
        let limiter = Arc::clone(&limiter);
        Box::pin(async move { limiter.acquire(cost as usize).await })
    })
}

fn governed(supply: Supply) -> Take {
    let quota = Quota::with_period(supply.each()).expect("not 0").allow_burst(rival::count(supply.burst));
    let limiter = Arc::new(RateLimiter::direct(quota));
    let _ = limiter.check_n(rival::count(supply.burst));
    Arc::new(move |cost| {
        let limiter = Arc::clone(&limiter);
        Box::pin(async move {
            let _ = limiter.until_n_ready(rival::count(cost)).await;
        })
    })
}

/// Its limiter is not shared, so that what many tasks use is a buffer in front of it.
fn buffered(supply: Supply) -> Take {
    let rate = tower::limit::rate::Rate::new(supply.burst.into(), supply.each() * supply.burst);
    let nothing: fn(()) -> Ready<Result<(), Infallible>> = |()| core::future::ready(Ok(()));
    let service = RateLimit::new(tower::service_fn(nothing), rate);
    let service = tower::buffer::Buffer::new(service, 1_024);
    Arc::new(move |_| {
        let mut service = service.clone();
        Box::pin(async move {
            if let Ok(ready) = service.ready().await {
                let _ = ready.call(()).await;
            }
        })
    })
}

/// As it is often written: permits that are forgotten, and a task that adds what has come, up to the burst.
///
/// tokio's timer ticks in milliseconds, so that is the interval.
fn refilled(supply: Supply) -> Take {
    let Supply { per_millisecond, burst } = supply;
    let semaphore = Arc::new(Semaphore::new(0));
    let refilled = Arc::downgrade(&semaphore);
    tokio::spawn(async move {
        let mut interval = tokio::time::interval(Duration::from_millis(1));
        interval.tick().await;
        loop {
            interval.tick().await;
            let Some(semaphore) = refilled.upgrade() else { return };
            let missing = (burst as usize).saturating_sub(semaphore.available_permits());
            semaphore.add_permits(missing.min(per_millisecond as usize));
        }
    });
    Arc::new(move |cost| {
        let semaphore = Arc::clone(&semaphore);
        Box::pin(async move {
            if let Ok(permit) = semaphore.acquire_many(cost).await {
                permit.forget();
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hands_out_tokens() {
        for waited in WAITED {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a timer");
            runtime.block_on(async {
                let take = (waited.make)(Supply { per_millisecond: 100, burst: 1_000 });
                take(1).await;
                take(if waited.has_costs { 100 } else { 1 }).await;
            });
        }
    }
}
