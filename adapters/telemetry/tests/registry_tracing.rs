//! What tracing is told of the flows of a registry.
#![allow(clippy::std_instead_of_alloc, reason = "tests run on a host")]

#[path = "support/adapted.rs"]
mod adapted;
#[path = "support/log.rs"]
mod log;
#[path = "support/tasks.rs"]
mod tasks;

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::Arc;

use log::told;
use parking_lot::RawMutex;
use sluicegate_runtime::{
    AdaptiveOptions, AlertPolicy, Clock, FlowOptions, FlowPlan, FlowRegistry, Load, LoadRule, Nanos, OnRestart, Quota,
    RegistryObserver, Signals, quota,
};
use sluicegate_telemetry::{TracingObserver, TracingRegistryObserver};
use tasks::Tasks;
use tracing::Level;

const LIMIT: Quota = quota!("100/1h");

#[test]
fn c16_what_becomes_of_flows_is_told_with_their_names() {
    let all = told(Level::DEBUG, || {
        let time = Tasks::new();
        let registry: FlowRegistry<Tasks, RawMutex, Arc<TracingObserver>, _> =
            FlowRegistry::observed_by(time.clone(), TracingRegistryObserver::new());
        // At 101 % measuring panics.
        let load = Arc::new(AtomicU32::new(0));
        let measure = {
            let load = load.clone();
            move |_now| match load.load(Ordering::Relaxed) {
                101 => panic!("it cannot be measured"),
                cpu => Signals::default().with_cpu(Load::percent(cpu)),
            }
        };
        let adaptive = AdaptiveOptions::new(LIMIT).cpu(LoadRule::new()).build().unwrap();
        let plan = FlowPlan::new(FlowOptions::new(LIMIT)).adaptive(adaptive).alerts(AlertPolicy::default());
        let plan = plan.on_restart(OnRestart::Full);
        let events = Arc::new(TracingObserver::new("mail", LIMIT));
        let flow = registry.add_observed("mail", plan, measure, events).unwrap();
        let _ = flow.bucket().limiter().try_acquire_at(time.now(), 98).unwrap();
        for cpu in [100, 101, 0] {
            load.store(cpu, Ordering::Relaxed);
            time.pass(Duration::from_secs(5));
        }
        registry.remove("mail").unwrap();
    });
    let expected = [
        "INFO sluicegate message=flow added flow=\"mail\"",
        "WARN sluicegate message=alert raised limiter=\"mail\" now=5000000000 alert=low_fill value=2 % threshold=10 %",
        "INFO sluicegate message=adjusted limiter=\"mail\" now=5000000000 from=100/1h to=50/1h",
        "INFO sluicegate message=flow adapted flow=\"mail\" now=5000000000 quota=50/1h \
         share=0.5 cpu=0.5 memory=1.0 errors=1.0 pace=1.0",
        "INFO sluicegate message=adjusted limiter=\"mail\" now=10000000000 from=50/1h to=100/1h",
        "INFO sluicegate message=flow adapted flow=\"mail\" now=10000000000 quota=100/1h \
         share=1.0 cpu=1.0 memory=1.0 errors=1.0 pace=1.0",
        "WARN sluicegate message=flow restarted flow=\"mail\" now=10000000000 how=Full",
        "INFO sluicegate message=alert cleared limiter=\"mail\" now=15000000000 alert=low_fill \
         value=100 % threshold=10 %",
        "INFO sluicegate message=flow removed flow=\"mail\"",
    ];
    assert_eq!(all, expected);
}

#[test]
fn c13_c16_what_each_rule_allows_is_told_apart() {
    let all = told(Level::INFO, || {
        let (adapted, quota) = adapted::by_every_rule();
        TracingRegistryObserver::new().adapted("mail", Nanos::new(7), &adapted, quota);
    });
    let expected = "INFO sluicegate message=flow adapted flow=\"mail\" now=7 quota=90/1h \
                    share=0.9 cpu=0.5 memory=0.7 errors=0.8 pace=0.6";
    assert_eq!(all, [expected]);
}
