//! What ends up in tracing: every event, its level and its fields.
#![allow(clippy::std_instead_of_alloc, reason = "tests run on a host")]

use core::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use sluicegate_telemetry::{
    AdjustableBucket, AlertPolicy, Alerts, BreakerPolicy, CircuitBreaker, CounterSnapshot, Inheritance, Inspection,
    ManualClock, Nanos, Quota, TracingObserver, quota,
};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Writes down every event down to a level.
#[derive(Clone)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    level: Level,
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        self.lines.lock().unwrap().push(line.0);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {field}={value:?}");
    }
}

/// All that `run` tells, down to `level`.
fn told(level: Level, run: impl FnOnce()) -> Vec<String> {
    let log = Log { lines: Arc::default(), level };
    tracing::subscriber::with_default(log.clone(), run);
    let lines = log.lines.lock().unwrap();
    lines.clone()
}

const LIMIT: Quota = quota!("10/1s");

fn use_a_bucket() {
    let clock = ManualClock::at(Nanos::new(7));
    let bucket = AdjustableBucket::with_clock(LIMIT, clock).observed_by(TracingObserver::new("api", LIMIT));
    bucket.try_acquire(4).unwrap();
    bucket.try_acquire(7).unwrap_err();
    bucket.try_acquire(11).unwrap_err();
    bucket.refund(1);
    let _ = bucket.debit_at(Nanos::new(7), 2);
    let _ = bucket.debit_at(Nanos::new(7), 20);
    bucket.adjust(quota!("20/1s"), Inheritance::Full);
    let _ = bucket.reserve(5).unwrap().settle(3);
}

#[test]
fn c16_every_event_is_told_with_its_name_reading_cost_and_what_is_left() {
    let all = told(Level::TRACE, use_a_bucket);
    let expected = [
        "TRACE sluicegate message=admitted limiter=\"api\" now=7 cost=4 remaining=6 fill=0.6",
        "DEBUG sluicegate message=denied limiter=\"api\" now=7 cost=7 reason=rate limited, retry after 100ms retry_after=0.1",
        "DEBUG sluicegate message=denied limiter=\"api\" now=7 cost=11 \
         reason=cost 11 exceeds the limit of 10, so this request can never be admitted",
        "TRACE sluicegate message=refunded limiter=\"api\" cost=1",
        "TRACE sluicegate message=debited limiter=\"api\" now=7 charged=2 unpaid=0",
        "DEBUG sluicegate message=debited limiter=\"api\" now=7 charged=5 unpaid=15",
        "INFO sluicegate message=adjusted limiter=\"api\" now=7 from=10/1s to=20/1s",
        "TRACE sluicegate message=admitted limiter=\"api\" now=7 cost=5 remaining=15 fill=0.75",
        "TRACE sluicegate message=settled limiter=\"api\" now=7 held=5 charged=3 unpaid=0",
    ];
    assert_eq!(all, expected);
    let important: Vec<_> = expected.into_iter().filter(|line| !line.starts_with("TRACE")).collect();
    assert_eq!(told(Level::DEBUG, use_a_bucket), important);
}

#[test]
fn c16_where_there_is_no_one_capacity_no_fill_is_told() {
    let all = told(Level::TRACE, || {
        let bucket = AdjustableBucket::with_clock(LIMIT, ManualClock::new());
        let bucket = bucket.observed_by(TracingObserver::without_fill("logins"));
        bucket.adjust(quota!("20/1s"), Inheritance::Full);
        bucket.try_acquire(1).unwrap();
    });
    assert_eq!(all[1], "TRACE sluicegate message=admitted limiter=\"logins\" now=0 cost=1 remaining=19");
}

#[test]
fn c16_breakers_and_alerts_warn() {
    let all = told(Level::TRACE, || {
        let breaker: CircuitBreaker<parking_lot::RawMutex, _> =
            CircuitBreaker::with_clock(BreakerPolicy::default(), ManualClock::new());
        let breaker = breaker.observed_by(TracingObserver::without_fill("db"));
        breaker.trip_at(Nanos::ZERO);
        assert!(breaker.try_call().is_err());
        breaker.close_at(Nanos::new(9));

        let observer = TracingObserver::new("api", LIMIT);
        let mut alerts = Alerts::new(AlertPolicy::default());
        for level in [9, 20] {
            let changes = alerts.evaluate(Nanos::ZERO, &CounterSnapshot::default(), Inspection::new(level, 100));
            changes.for_each(|change| observer.show(&change));
        }
    });
    let expected = [
        "WARN sluicegate message=breaker changed breaker=\"db\" now=0 from=Closed to=Open",
        "DEBUG sluicegate message=breaker refused breaker=\"db\" now=0 retry_after=5.0",
        "INFO sluicegate message=breaker changed breaker=\"db\" now=9 from=Open to=Closed",
        "WARN sluicegate message=alert raised limiter=\"api\" alert=low_fill value=9 % threshold=10 %",
        "INFO sluicegate message=alert cleared limiter=\"api\" alert=low_fill value=20 % threshold=10 %",
    ];
    assert_eq!(all, expected);
}
