//! What circuit breakers do.

use core::fmt;

use metrics::{Counter, Gauge, SharedString, counter, gauge};
use sluicegate_core::{BreakerObserver, BreakerPhase, Denied, Nanos};

use super::describe::{BREAKER, BREAKER_REFUSALS, BREAKER_STATE, BREAKER_TRANSITIONS};

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
