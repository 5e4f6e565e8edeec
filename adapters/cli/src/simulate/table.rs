//! The report for people.

use std::fmt::Write;

use comfy_table::{Cell, Row, Table};

use super::check::Plan;
use super::json::name;
use super::totals::Record;
use crate::table::{grouped, percent, right, table};

/// The whole report, ending with a line's end.
pub(super) fn render(plan: &Plan, record: &Record) -> String {
    let mut text = format!("{}, {} simulated, seed {}\n", plan.title, time(record.duration), plan.seed);
    let mut section = |table: Table| {
        let _ = writeln!(text, "\n{}", table.trim_fmt());
    };
    section(requests(plan, record));
    section(ends(record));
    if plan.has_provider() {
        section(provider(plan, record));
    }
    if plan.flow.breaker.is_some() {
        section(breaker(record));
    }
    if plan.adaptive.is_some() {
        section(adaptive(plan, record));
    }
    text
}

fn requests(plan: &Plan, record: &Record) -> Table {
    let counts = &record.counts;
    let mut table = table();
    let share = |part| share_of(part, counts.offered);
    line(&mut table, "offered", grouped(counts.offered), String::new());
    line(&mut table, "admitted", grouped(counts.admitted), share(counts.admitted));
    if plan.flow.queues() {
        line(&mut table, "of them after waiting", grouped(counts.queued), share(counts.queued));
    }
    line(&mut table, "refused by the limiter", grouped(counts.refused_by_limiter), share(counts.refused_by_limiter));
    if plan.flow.breaker.is_some() {
        line(
            &mut table,
            "refused by the breaker",
            grouped(counts.refused_by_breaker),
            share(counts.refused_by_breaker),
        );
    }
    if plan.flow.in_flight.is_some() {
        let refused = counts.refused_by_concurrency;
        line(&mut table, "refused in flight", grouped(refused), share(refused));
    }
    if plan.flow.degrades() {
        line(&mut table, "degraded in their place", grouped(counts.degraded), share(counts.degraded));
    }
    if plan.flow.queues() {
        line(&mut table, "waiting at the end", grouped(record.waiting_at_end), share(record.waiting_at_end));
        line(&mut table, "most waiting", grouped(record.most_waiting), String::new());
        let waited = |thousandths| record.waits.quantile(thousandths).map_or("-".to_owned(), time);
        line(&mut table, "waited, median", waited(500), String::new());
        line(&mut table, "waited, p99", waited(990), String::new());
    }
    table
}

fn ends(record: &Record) -> Table {
    let counts = &record.counts;
    let mut table = table();
    for (name, count) in [
        ("succeeded", counts.succeeded),
        ("failed", counts.failed),
        ("answered 429", counts.too_many),
        ("timed out", counts.timed_out),
        ("in flight at the end", record.in_flight_at_end),
    ] {
        line(&mut table, name, grouped(count), share_of(count, counts.admitted));
    }
    line(&mut table, "most in flight", grouped(record.most_in_flight), String::new());
    let latency = |thousandths| record.latencies.quantile(thousandths).map_or("-".to_owned(), time);
    line(&mut table, "latency, median", latency(500), String::new());
    line(&mut table, "latency, p99", latency(990), String::new());
    table
}

fn provider(plan: &Plan, record: &Record) -> Table {
    let mut table = table();
    let provider = record.provider;
    line(&mut table, "beyond the provider's limits", grouped(provider.refused), String::new());
    let retry_after = provider.longest_retry_after.map_or("-".to_owned(), time);
    line(&mut table, "longest Retry-After", retry_after, String::new());
    if plan.has_provider_quota() {
        line(&mut table, "most in a period of its quota", grouped(provider.most_in_a_period), String::new());
    }
    table
}

fn breaker(record: &Record) -> Table {
    let mut table = table();
    let note = record.first_trip.map_or(String::new(), |trip| format!("first after {}", time(trip)));
    line(&mut table, "breaker tripped", grouped(record.trips), note);
    for (name, nanos) in ["closed", "half-open", "open"].into_iter().zip(record.phases) {
        line(&mut table, name, time(nanos), share_of(nanos, record.duration));
    }
    line(&mut table, "at the end", name(record.phase).to_owned(), String::new());
    table
}

fn adaptive(plan: &Plan, record: &Record) -> Table {
    let mut table = table();
    let of_base = |millionths: u32| share_of(millionths.into(), 1_000_000);
    line(&mut table, "quota adjusted", grouped(record.adjustments), "times".to_owned());
    line(&mut table, "lowest share of it", of_base(record.lowest_share), String::new());
    line(&mut table, "share at the end", of_base(record.share), String::new());
    if let Some(pace) = plan.adaptive.as_ref().and_then(|adaptive| adaptive.pace.as_ref()) {
        let left = record.parts.last().and_then(|part| part.gauges.quota_left).unwrap_or(0);
        line(&mut table, "left of the pace's quota", grouped(left), share_of(left, pace.rate.tokens()));
        if let Some(ran_out) = record.quota_ran_out {
            line(&mut table, "it ran out after", time(ran_out), String::new());
        }
    }
    table
}

fn line(table: &mut Table, name: &str, value: String, note: String) {
    table.add_row(Row::from(vec![Cell::new(name), right(value), Cell::new(note)]));
}

fn share_of(part: u64, whole: u64) -> String {
    if whole == 0 { String::new() } else { percent(part, whole) }
}

/// In a unit of which there is at least one, with up to two decimals, rounded down.
fn time(nanos: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (86_400_000_000_000, "d"),
        (3_600_000_000_000, "h"),
        (60_000_000_000, "min"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
    ];
    let Some((unit, name)) = UNITS.into_iter().find(|(unit, _)| nanos >= *unit) else {
        return format!("{nanos} ns");
    };
    let hundredths = u128::from(nanos % unit) * 100 / u128::from(unit);
    let fraction = format!(".{hundredths:02}");
    format!("{}{} {name}", nanos / unit, fraction.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_read_at_a_glance() {
        let times = [0, 999, 1_500, 50_000_000, 180_000_000_000, 90_000_000_000, 86_400_000_000_000];
        assert_eq!(times.map(time), ["0 ns", "999 ns", "1.5 us", "50 ms", "3 min", "1.5 min", "1 d"]);
    }
}
