//! What limiters, breakers and flows do.

extern crate alloc;

use alloc::borrow::Cow;
use core::time::Duration;

use sluicegate_core::{
    Admitted, AlertChange, BreakerObserver, BreakerPhase, CallOutcome, Debit, Denied, FlowObserver, FlowRefusal, Limit,
    Nanos, Observer, Remaining,
};
use tracing::{debug, info, trace, warn};

use super::{TARGET, tell_alert};
use crate::fill::Capacity;
use crate::names::{of_outcome, of_stage};

/// Tells of what a limiter, a breaker or a flow does as events of the target `sluicegate`, with its name in the field `limiter`, `breaker` or `flow`.
///
/// In an `Arc` it is a `FlowEvents` of sluicegate-runtime, so a `QueuedFlow` or a `FlowRegistry` can tell it of all that happens in a flow: then one name is
/// in all three.
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
/// | `call refused` | debug | `now`, `cost`, `stage`: `limiter`, `breaker` or `concurrency`; `reason`, `retry_after` |
/// | `call ended` | trace, or debug where it failed or was too much | `now`, `took`, `outcome`: `success`, `failure`, `overloaded` or `ignored` |
/// | `alert raised`, `alert cleared` | warn, info | `alert`, `value`, `threshold` |
///
/// `now` is the limiter's own reading in nanoseconds, `retry_after` and `took` are in seconds, and `fill` is 0 to 1. Fields that are not known are
/// left out.
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
    /// For the limiter, or the flow, of this name, which begins with `limit`. Adjustments are followed.
    pub fn new(name: impl Into<Cow<'static, str>>, limit: impl Into<Limit>) -> Self {
        Self { name: name.into(), capacity: Capacity::of(limit.into()) }
    }

    /// For the store of keys, or the breaker, of this name: there is no fill to tell of.
    pub fn without_fill(name: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), capacity: Capacity::unwanted() }
    }

    /// Tells of an alert that was raised or cleared.
    pub fn show(&self, change: &AlertChange) {
        tell_alert(&self.name, None, change);
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

impl FlowObserver for TracingObserver {
    #[inline]
    fn call_refused(&self, now: Nanos, cost: u64, refusal: &FlowRefusal) {
        let FlowRefusal { stage, denied } = refusal;
        debug!(
            target: TARGET, flow = &*self.name, now = now.as_u64(), cost, stage = of_stage(*stage), reason = %denied,
            retry_after = seconds(denied), "call refused"
        );
    }

    #[inline]
    fn call_ended(&self, now: Nanos, took: Duration, outcome: CallOutcome) {
        let (flow, now, took) = (&*self.name, now.as_u64(), took.as_secs_f64());
        let name = of_outcome(outcome);
        match outcome {
            CallOutcome::Success | CallOutcome::Ignored => {
                trace!(target: TARGET, flow, now, took, outcome = name, "call ended");
            }
            CallOutcome::Failure | CallOutcome::Overloaded => {
                debug!(target: TARGET, flow, now, took, outcome = name, "call ended");
            }
        }
    }
}

fn seconds(denied: &Denied) -> Option<f64> {
    denied.retry_after().map(|wait| wait.as_secs_f64())
}
