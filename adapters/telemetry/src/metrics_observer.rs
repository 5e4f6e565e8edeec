//! What limiters and breakers do, by the facade `metrics`.

use core::fmt;

use metrics::{Counter, Gauge, SharedString, Unit, counter, describe_counter, describe_gauge, gauge};
use sluicegate_core::{
    Admitted, Alert, AlertChange, BreakerObserver, BreakerPhase, Debit, Denied, Inspection, Limit, Nanos, Observer,
};

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

/// Shows the phase of a circuit breaker, and counts its changes and refusals. The metrics are looked up once, when it is made.
///
/// ```
/// use sluicegate_telemetry::{BreakerPolicy, CircuitBreaker, ManualClock, MetricsBreakerObserver, Nanos};
///
/// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
/// let observer = metrics::with_local_recorder(&recorder, || MetricsBreakerObserver::new("payments"));
/// let breaker: CircuitBreaker<parking_lot::RawMutex, _> =
///     CircuitBreaker::with_clock(BreakerPolicy::default(), ManualClock::new());
/// let breaker = breaker.observed_by(observer);
/// breaker.trip_at(Nanos::ZERO);
/// assert!(recorder.handle().render().contains("sluicegate_breaker_state{breaker=\"payments\"} 2"));
/// ```
pub struct MetricsBreakerObserver {
    state: Gauge,
    /// To closed, half-open and open.
    transitions: [Counter; 3],
    refusals: Counter,
}

impl MetricsBreakerObserver {
    /// For the breaker of this name, which is closed.
    pub fn new(name: impl Into<SharedString>) -> Self {
        let name = name.into();
        let state = gauge!(BREAKER_STATE, BREAKER => name.clone());
        state.set(0.0);
        Self {
            state,
            transitions: ["closed", "half_open", "open"]
                .map(|to| counter!(BREAKER_TRANSITIONS, BREAKER => name.clone(), "to" => to)),
            refusals: counter!(BREAKER_REFUSALS, BREAKER => name),
        }
    }
}

impl BreakerObserver for MetricsBreakerObserver {
    fn changed(&self, _now: Nanos, _from: BreakerPhase, to: BreakerPhase) {
        let number = match to {
            BreakerPhase::Closed => 0,
            BreakerPhase::HalfOpen => 1,
            BreakerPhase::Open => 2,
        };
        self.state.set(number as f64);
        self.transitions[number].increment(1);
    }

    #[inline]
    fn refused(&self, _now: Nanos, _denied: &Denied) {
        self.refusals.increment(1);
    }
}

impl fmt::Debug for MetricsBreakerObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsBreakerObserver").finish_non_exhaustive()
    }
}

/// Shows which alerts of a limiter are raised: 1 for those that are, and 0 for the others. The metrics are looked up once, when it is made.
///
/// ```
/// use sluicegate_telemetry::{AlertPolicy, Alerts, Counters, Inspection, MetricsAlerts, Nanos};
///
/// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
/// let shown = metrics::with_local_recorder(&recorder, || MetricsAlerts::new("api"));
/// let mut alerts = Alerts::new(AlertPolicy::default());
/// let changes = alerts.evaluate(Nanos::ZERO, &Counters::default().snapshot(), Inspection::new(9, 100));
/// changes.for_each(|change| shown.show(&change));
/// let text = recorder.handle().render();
/// assert!(text.contains("sluicegate_alert_active{limiter=\"api\",alert=\"low_fill\"} 1"));
/// assert!(text.contains("sluicegate_alert_active{limiter=\"api\",alert=\"bursts\"} 0"));
/// ```
pub struct MetricsAlerts([Gauge; Alert::ALL.len()]);

impl MetricsAlerts {
    /// For the limiter of this name; none is raised.
    pub fn new(name: impl Into<SharedString>) -> Self {
        let name = name.into();
        Self(Alert::ALL.map(|alert| {
            let gauge = gauge!(ALERT_ACTIVE, LIMITER => name.clone(), "alert" => alert.name());
            gauge.set(0.0);
            gauge
        }))
    }

    /// Shows a change.
    pub fn show(&self, change: &AlertChange) {
        for (alert, gauge) in Alert::ALL.iter().zip(&self.0) {
            if *alert == change.alert {
                gauge.set(if change.is_raised { 1.0 } else { 0.0 });
            }
        }
    }
}

impl fmt::Debug for MetricsAlerts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsAlerts").finish_non_exhaustive()
    }
}

/// Tells the recorder that is installed what each metric is: once, after it was installed.
///
/// ```
/// let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
/// metrics::with_local_recorder(&recorder, || {
///     sluicegate_telemetry::describe();
///     sluicegate_telemetry::MetricsObserver::without_fill("api")
/// });
/// assert!(recorder.handle().render().contains("# HELP sluicegate_requests_total Requests that were decided on"));
/// ```
pub fn describe() {
    describe_counter!(REQUESTS, Unit::Count, "Requests that were decided on, by outcome");
    describe_counter!(
        COST,
        Unit::Count,
        "Tokens that requests took, were denied, gave back and were charged afterwards"
    );
    describe_counter!(ADJUSTMENTS, Unit::Count, "Changes of the limit");
    describe_gauge!(FILL, "What is left, as a part of the capacity: 0 to 1");
    describe_gauge!(LIMIT_TOKENS, Unit::Count, "The capacity: the most tokens that can be taken at once");
    describe_gauge!(LIMIT_RATE, Unit::CountPerSecond, "Tokens per second that flow in");
    describe_gauge!(ALERT_ACTIVE, "1 while the alert is raised, 0 otherwise");
    describe_gauge!(BREAKER_STATE, "0 closed, 1 half-open, 2 open");
    describe_counter!(BREAKER_TRANSITIONS, Unit::Count, "Changes of the phase, by the one it changed to");
    describe_counter!(BREAKER_REFUSALS, Unit::Count, "Calls that the breaker did not let pass");
}

const REQUESTS: &str = "sluicegate_requests_total";
const COST: &str = "sluicegate_cost_total";
const ADJUSTMENTS: &str = "sluicegate_adjustments_total";
const FILL: &str = "sluicegate_fill_ratio";
const LIMIT_TOKENS: &str = "sluicegate_limit_tokens";
const LIMIT_RATE: &str = "sluicegate_limit_tokens_per_second";
const ALERT_ACTIVE: &str = "sluicegate_alert_active";
const BREAKER_STATE: &str = "sluicegate_breaker_state";
const BREAKER_TRANSITIONS: &str = "sluicegate_breaker_transitions_total";
const BREAKER_REFUSALS: &str = "sluicegate_breaker_refusals_total";

const LIMITER: &str = "limiter";
const BREAKER: &str = "breaker";
const OUTCOME: &str = "outcome";
