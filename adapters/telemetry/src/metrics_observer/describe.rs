//! The names of metrics and labels, and what each metric is.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

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
    describe_counter!(CALLS, Unit::Count, "Calls that were made and have ended, by outcome");
    describe_counter!(
        CALLS_REFUSED,
        Unit::Count,
        "Calls that were not made, by the part of the flow that refused them"
    );
    describe_histogram!(CALL_SECONDS, Unit::Seconds, "How long calls took that have ended, whatever their outcome");
    #[cfg(feature = "runtime")]
    describe_flows();
}

#[cfg(feature = "runtime")]
fn describe_flows() {
    describe_gauge!(FLOWS, Unit::Count, "Flows that there are");
    describe_gauge!(FLOW_SHARE, "The share of the base quota that is in force: 0 to 1");
    describe_gauge!(
        FLOW_RULE_SHARE,
        "The share of the base quota that a rule allowed when the quota last changed: 0 to 1"
    );
    describe_counter!(FLOW_RESTARTS, Unit::Count, "Panics of the flow's task after which it has begun again");
}

pub(super) const REQUESTS: &str = "sluicegate_requests_total";
pub(super) const COST: &str = "sluicegate_cost_total";
pub(super) const ADJUSTMENTS: &str = "sluicegate_adjustments_total";
pub(super) const FILL: &str = "sluicegate_fill_ratio";
pub(super) const LIMIT_TOKENS: &str = "sluicegate_limit_tokens";
pub(super) const LIMIT_RATE: &str = "sluicegate_limit_tokens_per_second";
pub(super) const ALERT_ACTIVE: &str = "sluicegate_alert_active";
pub(super) const BREAKER_STATE: &str = "sluicegate_breaker_state";
pub(super) const BREAKER_TRANSITIONS: &str = "sluicegate_breaker_transitions_total";
pub(super) const BREAKER_REFUSALS: &str = "sluicegate_breaker_refusals_total";
pub(super) const CALLS: &str = "sluicegate_calls_total";
pub(super) const CALLS_REFUSED: &str = "sluicegate_calls_refused_total";
pub(super) const CALL_SECONDS: &str = "sluicegate_call_seconds";
#[cfg(feature = "runtime")]
pub(super) const FLOWS: &str = "sluicegate_flows";
#[cfg(feature = "runtime")]
pub(super) const FLOW_SHARE: &str = "sluicegate_flow_share";
#[cfg(feature = "runtime")]
pub(super) const FLOW_RULE_SHARE: &str = "sluicegate_flow_rule_share";
#[cfg(feature = "runtime")]
pub(super) const FLOW_RESTARTS: &str = "sluicegate_flow_restarts_total";

pub(super) const LIMITER: &str = "limiter";
pub(super) const BREAKER: &str = "breaker";
pub(super) const FLOW: &str = "flow";
pub(super) const OUTCOME: &str = "outcome";
