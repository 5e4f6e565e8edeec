//! What ends up in tracing: every event, its level and its fields.
#![allow(clippy::std_instead_of_alloc, reason = "tests run on a host")]

#[path = "support/flow.rs"]
mod flow;
#[path = "support/log.rs"]
mod log;

use std::sync::Arc;

use flow::use_a_flow;
use log::told;
use sluicegate_telemetry::{
    AdjustableBucket, AlertPolicy, Alerts, BreakerPolicy, CircuitBreaker, CounterSnapshot, Inheritance, Inspection,
    ManualClock, Nanos, Quota, TracingObserver, quota,
};
use tracing::Level;

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

#[test]
fn c16_of_a_flow_every_event_of_its_limiter_its_breaker_and_its_calls_is_told() {
    let run = || use_a_flow(Arc::new(TracingObserver::new("mail", flow::LIMIT)));
    let all = told(Level::TRACE, run);
    let expected = [
        "TRACE sluicegate message=admitted limiter=\"mail\" now=0 cost=1 remaining=3 fill=0.75",
        "TRACE sluicegate message=call ended flow=\"mail\" now=7000000 took=0.007 outcome=\"success\"",
        "TRACE sluicegate message=admitted limiter=\"mail\" now=7000000 cost=1 remaining=2 fill=0.5",
        "DEBUG sluicegate message=call refused flow=\"mail\" now=7000000 cost=1 stage=\"concurrency\" \
         reason=too much is in use, retry once some was given back",
        "TRACE sluicegate message=call ended flow=\"mail\" now=7000000 took=0.0 outcome=\"ignored\"",
        "DEBUG sluicegate message=denied limiter=\"mail\" now=7000000 cost=3 \
         reason=rate limited, retry after 243ms retry_after=0.243",
        "DEBUG sluicegate message=call refused flow=\"mail\" now=7000000 cost=3 stage=\"limiter\" \
         reason=rate limited, retry after 243ms retry_after=0.243",
        "TRACE sluicegate message=admitted limiter=\"mail\" now=7000000 cost=1 remaining=1 fill=0.25",
        "DEBUG sluicegate message=call ended flow=\"mail\" now=1007000000 took=1.0 outcome=\"overloaded\"",
        "TRACE sluicegate message=admitted limiter=\"mail\" now=1007000000 cost=1 remaining=3 fill=0.75",
        "WARN sluicegate message=breaker changed breaker=\"mail\" now=1007000000 from=Closed to=Open",
        "DEBUG sluicegate message=call ended flow=\"mail\" now=1007000000 took=0.0 outcome=\"failure\"",
        "DEBUG sluicegate message=breaker refused breaker=\"mail\" now=1007000000 retry_after=5.0",
        "DEBUG sluicegate message=call refused flow=\"mail\" now=1007000000 cost=1 stage=\"breaker\" \
         reason=circuit open, retry after 5s retry_after=5.0",
    ];
    assert_eq!(all, expected);
    let important: Vec<_> = expected.into_iter().filter(|line| !line.starts_with("TRACE")).collect();
    assert_eq!(told(Level::DEBUG, run), important);
}
