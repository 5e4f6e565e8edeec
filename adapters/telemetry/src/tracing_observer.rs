//! What limiters and breakers do, by the facade `tracing`.

extern crate alloc;

use alloc::borrow::Cow;

use sluicegate_core::{
    Admitted, AlertChange, BreakerObserver, BreakerPhase, Debit, Denied, Limit, Nanos, Observer, Remaining,
};
use tracing::{debug, info, trace, warn};

use crate::fill::Capacity;

/// Tells of what a limiter or a breaker does as events of the target `sluicegate`, with its name in the field `limiter` or `breaker`.
///
/// | event | level | fields beside the name |
/// |---|---|---|
/// | `admitted` | trace | `now`, `cost`, `remaining`, `fill` |
/// | `denied` | debug | `now`, `cost`, `reason`, `retry_after` |
/// | `refunded` | trace | `cost` |
/// | `debited`, `settled` | trace, or debug where something is unpaid | `now`, `charged`, `unpaid`; `held` |
/// | `adjusted` | info | `now`, `from`, `to` |
/// | `breaker changed` | info, or warn where it opens | `now`, `from`, `to` |
/// | `breaker refused` | debug | `now`, `retry_after` |
/// | `alert raised`, `alert cleared` | warn, info | `alert`, `value`, `threshold` |
///
/// `now` is the limiter's own reading in nanoseconds, `retry_after` is in seconds, and `fill` is 0 to 1. Fields that are not known are left
/// out.
///
/// An event of a level that nobody listens to costs a load and a comparison; what the others cost is the subscriber's. It can be told from any
/// thread.
///
/// ```
/// use sluicegate_telemetry::{ManualClock, TokenBucket, TracingObserver, quota};
///
/// const LIMIT: sluicegate_telemetry::Quota = quota!("10/1s");
/// let bucket = TokenBucket::with_clock(LIMIT, ManualClock::new()).observed_by(TracingObserver::new("api", LIMIT));
/// bucket.try_acquire(4)?;
/// # Ok::<(), sluicegate_telemetry::Denied>(())
/// ```
#[derive(Debug)]
pub struct TracingObserver {
    name: Cow<'static, str>,
    capacity: Capacity,
}

impl TracingObserver {
    /// For the limiter of this name, which begins with `limit`. Adjustments are followed.
    pub fn new(name: impl Into<Cow<'static, str>>, limit: impl Into<Limit>) -> Self {
        Self { name: name.into(), capacity: Capacity::of(limit.into()) }
    }

    /// For the store of keys, or the breaker, of this name: there is no fill to tell of.
    pub fn without_fill(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), capacity: Capacity::unwanted() }
    }

    /// Tells of an alert that was raised or cleared.
    pub fn show(&self, change: &AlertChange) {
        let AlertChange { alert, is_raised, value, threshold, .. } = change;
        let limiter = &*self.name;
        if *is_raised {
            warn!(target: TARGET, limiter, %alert, %value, %threshold, "alert raised");
        } else {
            info!(target: TARGET, limiter, %alert, %value, %threshold, "alert cleared");
        }
    }
}

impl Observer for TracingObserver {
    #[inline]
    fn admitted(&self, now: Nanos, cost: u64, admitted: &Admitted) {
        let remaining = match admitted.remaining {
            Remaining::Exactly(tokens) | Remaining::AtLeast(tokens) => Some(tokens),
            Remaining::Unlimited => None,
        };
        trace!(
            target: TARGET, limiter = &*self.name, now = now.as_u64(), cost, remaining,
            fill = self.capacity.left_by(admitted), "admitted"
        );
    }

    #[inline]
    fn denied(&self, now: Nanos, cost: u64, denied: &Denied) {
        debug!(
            target: TARGET, limiter = &*self.name, now = now.as_u64(), cost, reason = %denied,
            retry_after = seconds(denied), "denied"
        );
    }

    #[inline]
    fn refunded(&self, cost: u64) {
        trace!(target: TARGET, limiter = &*self.name, cost, "refunded");
    }

    #[inline]
    fn debited(&self, now: Nanos, debit: &Debit) {
        let (limiter, now, charged, unpaid) = (&*self.name, now.as_u64(), debit.charged, debit.unpaid);
        match unpaid {
            0 => trace!(target: TARGET, limiter, now, charged, unpaid, "debited"),
            _ => debug!(target: TARGET, limiter, now, charged, unpaid, "debited"),
        }
    }

    #[inline]
    fn settled(&self, now: Nanos, held: u64, debit: &Debit) {
        let (limiter, now, charged, unpaid) = (&*self.name, now.as_u64(), debit.charged, debit.unpaid);
        match unpaid {
            0 => trace!(target: TARGET, limiter, now, held, charged, unpaid, "settled"),
            _ => debug!(target: TARGET, limiter, now, held, charged, unpaid, "settled"),
        }
    }

    fn adjusted(&self, now: Nanos, from: Limit, to: Limit) {
        self.capacity.adjust(to);
        info!(target: TARGET, limiter = &*self.name, now = now.as_u64(), %from, %to, "adjusted");
    }
}

impl BreakerObserver for TracingObserver {
    fn changed(&self, now: Nanos, from: BreakerPhase, to: BreakerPhase) {
        let (breaker, now) = (&*self.name, now.as_u64());
        match to {
            BreakerPhase::Open => warn!(target: TARGET, breaker, now, ?from, ?to, "breaker changed"),
            _ => info!(target: TARGET, breaker, now, ?from, ?to, "breaker changed"),
        }
    }

    #[inline]
    fn refused(&self, now: Nanos, denied: &Denied) {
        debug!(
            target: TARGET, breaker = &*self.name, now = now.as_u64(), retry_after = seconds(denied), "breaker refused"
        );
    }
}

fn seconds(denied: &Denied) -> Option<f64> {
    denied.retry_after().map(|wait| wait.as_secs_f64())
}

const TARGET: &str = "sluicegate";
