//! What limiters decide, and how full they are.

use core::fmt;

use metrics::{Counter, Gauge, SharedString, counter, gauge};
use sluicegate_core::{Admitted, Debit, Denied, Inspection, Limit, Nanos, Observer};

use super::describe::{ADJUSTMENTS, COST, FILL, LIMIT_RATE, LIMIT_TOKENS, LIMITER, OUTCOME, REQUESTS};
use crate::fill::Capacity;

/// Counts what a limiter decides, and shows its limit and how full it is: `sluicegate_requests_total` and the others of the
/// [table](crate).
///
/// # Guarantees
///
/// - The metrics are looked up once, when it is made. An event then writes to those that it concerns, and nothing else: no lock, no
///   allocation and no formatting by this type.
/// - It can be told from any thread.
/// - Of requests that ask for more than the limiter ever holds only the number counts, not their cost, because one of them could drown all
///   others.
///
/// # Trade-offs
///
/// - It writes to the recorder that is installed when it is made, and to none if there was none. Make it inside
///   [`metrics::with_local_recorder`] for another one.
/// - Metrics show the fill that the last admission left. A bucket refills without one; so [show](Self::show) what an inspection finds from time to
///   time, where alerts are evaluated. Before either it is not a number.
///
/// ```
/// use sluicegate_telemetry::{ManualClock, MetricsObserver, TokenBucket, quota};
///
/// const LIMIT: sluicegate_telemetry::Quota = quota!("10/1s");
/// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
/// let observer = metrics::with_local_recorder(&recorder, || MetricsObserver::new("api", LIMIT));
/// let bucket = TokenBucket::with_clock(LIMIT, ManualClock::new()).observed_by(observer);
/// bucket.try_acquire(4)?;
/// let text = recorder.handle().render();
/// assert!(text.contains("sluicegate_requests_total{limiter=\"api\",outcome=\"admitted\"} 1"));
/// assert!(text.contains("sluicegate_fill_ratio{limiter=\"api\"} 0.6"));
/// # Ok::<(), sluicegate_telemetry::Denied>(())
/// ```
pub struct MetricsObserver {
    admitted: Counter,
    admitted_cost: Counter,
    denied: Counter,
    denied_cost: Counter,
    refunded_cost: Counter,
    debited_cost: Counter,
    adjustments: Counter,
    capacity: Capacity,
    gauges: Option<Gauges>,
}

/// What says how full one limiter is.
struct Gauges {
    fill_ratio: Gauge,
    tokens: Gauge,
    rate: Gauge,
}

impl MetricsObserver {
    /// For the limiter of this name, which begins with `limit`. Adjustments are followed.
    pub fn new(name: impl Into<SharedString>, limit: impl Into<Limit>) -> Self {
        let (name, limit) = (name.into(), limit.into());
        let gauges = Gauges {
            fill_ratio: gauge!(FILL, LIMITER => name.clone()),
            tokens: gauge!(LIMIT_TOKENS, LIMITER => name.clone()),
            rate: gauge!(LIMIT_RATE, LIMITER => name.clone()),
        };
        gauges.show_limit(limit);
        Self { capacity: Capacity::of(limit), gauges: Some(gauges), ..Self::without_fill(name) }
    }

    /// For the store of keys, or the limiters, of this name: neither their limits nor how full they are is shown, because they have no one
    /// number.
    pub fn without_fill(name: impl Into<SharedString>) -> Self {
        let name = name.into();
        let cost = |outcome| counter!(COST, LIMITER => name.clone(), OUTCOME => outcome);
        Self {
            admitted: counter!(REQUESTS, LIMITER => name.clone(), OUTCOME => "admitted"),
            admitted_cost: cost("admitted"),
            denied: counter!(REQUESTS, LIMITER => name.clone(), OUTCOME => "denied"),
            denied_cost: cost("denied"),
            refunded_cost: cost("refunded"),
            debited_cost: cost("debited"),
            adjustments: counter!(ADJUSTMENTS, LIMITER => name.clone()),
            capacity: Capacity::unwanted(),
            gauges: None,
        }
    }

    /// Shows how full the limiter was found to be.
    pub fn show(&self, holds: &Inspection) {
        if let Some(gauges) = &self.gauges {
            gauges.fill_ratio.set(match holds.capacity {
                0 => f64::NAN,
                capacity => holds.level as f64 / capacity as f64,
            });
        }
    }
}

impl Gauges {
    /// A new limit, under which nothing has been seen yet.
    fn show_limit(&self, limit: Limit) {
        let (tokens, rate) = match limit {
            Limit::Quota(quota) => {
                let rate = quota.rate();
                (quota.capacity() as f64, rate.tokens() as f64 / rate.period().as_secs_f64())
            }
            Limit::DenyAll => (0.0, 0.0),
            Limit::Unlimited => (f64::INFINITY, f64::INFINITY),
        };
        self.tokens.set(tokens);
        self.rate.set(rate);
        self.fill_ratio.set(f64::NAN);
    }
}

impl Observer for MetricsObserver {
    #[inline]
    fn admitted(&self, _now: Nanos, cost: u64, admitted: &Admitted) {
        self.admitted.increment(1);
        self.admitted_cost.increment(cost);
        if let (Some(gauges), Some(fill)) = (&self.gauges, self.capacity.left_by(admitted)) {
            gauges.fill_ratio.set(fill);
        }
    }

    #[inline]
    fn denied(&self, _now: Nanos, cost: u64, denied: &Denied) {
        self.denied.increment(1);
        if !matches!(denied, Denied::CostExceedsLimit { .. }) {
            self.denied_cost.increment(cost);
        }
    }

    #[inline]
    fn refunded(&self, cost: u64) {
        self.refunded_cost.increment(cost);
    }

    #[inline]
    fn debited(&self, _now: Nanos, debit: &Debit) {
        self.debited_cost.increment(debit.charged);
    }

    #[inline]
    fn settled(&self, _now: Nanos, held: u64, debit: &Debit) {
        // What was held counts as admitted already.
        self.debited_cost.increment(debit.charged.saturating_sub(held));
        self.refunded_cost.increment(held.saturating_sub(debit.charged));
    }

    fn adjusted(&self, _now: Nanos, _from: Limit, to: Limit) {
        self.adjustments.increment(1);
        self.capacity.adjust(to);
        if let Some(gauges) = &self.gauges {
            gauges.show_limit(to);
        }
    }
}

impl fmt::Debug for MetricsObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsObserver").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}
