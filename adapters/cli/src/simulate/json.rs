//! The report for programs.

use serde::Serialize;
use sluicegate_runtime::BreakerPhase;

use super::check::Plan;
use super::totals::{Counts, Part, Record};

/// One JSON object in one line.
pub(super) fn render(plan: &Plan, record: &Record) -> String {
    let report = Report {
        title: &plan.title,
        duration_ns: record.duration,
        seed: plan.seed,
        totals: record.counts,
        in_flight_at_end: record.in_flight_at_end,
        most_in_flight: record.most_in_flight,
        waiting_at_end: record.waiting_at_end,
        most_waiting: record.most_waiting,
        waited_median_ns: record.waits.quantile(500),
        waited_p99_ns: record.waits.quantile(990),
        latency_median_ns: record.latencies.quantile(500),
        latency_p99_ns: record.latencies.quantile(990),
        breaker: plan.flow.breaker.map(|_| Breaker {
            trips: record.trips,
            first_trip_ns: record.first_trip,
            last_closed_ns: record.last_closed,
            phase_at_end: name(record.phase),
            closed_ns: record.phases[0],
            half_open_ns: record.phases[1],
            open_ns: record.phases[2],
        }),
        adaptive: plan.adaptive.as_ref().map(|_| Adaptive {
            adjustments: record.adjustments,
            largest_fall: record.largest_fall,
            largest_rise: record.largest_rise,
            lowest_share: record.lowest_share,
            share_at_end: record.share,
        }),
        quota: plan.adaptive.as_ref().and_then(|adaptive| adaptive.pace.as_ref()).map(|pace| Quota {
            tokens: pace.rate.tokens(),
            period_ns: pace.rate.period_nanos(),
            left_at_end: record.parts.last().and_then(|part| part.gauges.quota_left),
            ran_out_ns: record.quota_ran_out,
        }),
        provider: plan.has_provider().then_some(Provider {
            refused: record.provider.refused,
            longest_retry_after_ns: record.provider.longest_retry_after,
            most_in_a_period: plan.has_provider_quota().then_some(record.provider.most_in_a_period),
        }),
        over_time: record.parts.iter().zip(0..).map(|(part, index)| row(part, index * record.width)).collect(),
    };
    // Strings and numbers always have a JSON text.
    let mut text = serde_json::to_string(&report).unwrap_or_default();
    text.push('\n');
    text
}

fn row(part: &Part, from_ns: u64) -> Row {
    Row {
        from_ns,
        counts: part.counts,
        latency_median_ns: part.latencies.quantile(500),
        latency_p99_ns: part.latencies.quantile(990),
        limit_per_1000_s: part.gauges.limit,
        most_in_flight: part.gauges.in_flight,
        in_flight_limit: part.gauges.in_flight_limit,
        most_waiting: part.gauges.waiting,
        quota_left: part.gauges.quota_left,
        closed_ns: part.phases[0],
        half_open_ns: part.phases[1],
        open_ns: part.phases[2],
    }
}

/// As in `--help`'s words.
pub(super) fn name(phase: BreakerPhase) -> &'static str {
    match phase {
        BreakerPhase::Closed => "closed",
        BreakerPhase::HalfOpen => "half-open",
        BreakerPhase::Open => "open",
    }
}

#[derive(Serialize)]
struct Report<'a> {
    title: &'a str,
    duration_ns: u64,
    seed: u64,
    #[serde(flatten)]
    totals: Counts,
    in_flight_at_end: u64,
    most_in_flight: u64,
    waiting_at_end: u64,
    most_waiting: u64,
    waited_median_ns: Option<u64>,
    waited_p99_ns: Option<u64>,
    latency_median_ns: Option<u64>,
    latency_p99_ns: Option<u64>,
    breaker: Option<Breaker>,
    adaptive: Option<Adaptive>,
    quota: Option<Quota>,
    provider: Option<Provider>,
    over_time: Vec<Row>,
}

#[derive(Serialize)]
struct Breaker {
    trips: u64,
    first_trip_ns: Option<u64>,
    last_closed_ns: Option<u64>,
    phase_at_end: &'static str,
    closed_ns: u64,
    half_open_ns: u64,
    open_ns: u64,
}

#[derive(Serialize)]
struct Adaptive {
    adjustments: u64,
    largest_fall: u32,
    largest_rise: u32,
    lowest_share: u32,
    share_at_end: u32,
}

#[derive(Serialize)]
struct Quota {
    tokens: u64,
    period_ns: u64,
    left_at_end: Option<u64>,
    ran_out_ns: Option<u64>,
}

#[derive(Serialize)]
struct Provider {
    refused: u64,
    longest_retry_after_ns: Option<u64>,
    most_in_a_period: Option<u64>,
}

#[derive(Serialize)]
struct Row {
    from_ns: u64,
    #[serde(flatten)]
    counts: Counts,
    latency_median_ns: Option<u64>,
    latency_p99_ns: Option<u64>,
    limit_per_1000_s: Option<u64>,
    most_in_flight: u64,
    in_flight_limit: Option<u32>,
    most_waiting: u64,
    quota_left: Option<u64>,
    closed_ns: u64,
    half_open_ns: u64,
    open_ns: u64,
}
