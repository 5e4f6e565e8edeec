//! Flows of a registry whose tasks and observers panic, over and over.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use parking_lot::Mutex;
use sluicegate_runtime::{
    Adapted, AdaptiveOptions, Alert, AlertChange, AlertPolicy, BreakerOptions, BreakerPhase, CallOutcome, Clock,
    ErrorRule, FlowError, FlowOptions, FlowPlan, FlowRegistry, Inheritance, Limit, Load, LoadRule, Nanos, OnRestart,
    Quota, RegistryObserver, Runtime, Signals, quota,
};

use crate::executor::{AS_TOLD, Executor};
use crate::tasks::{pass, settle};

type Registry<E, O = ()> = FlowRegistry<<E as Executor>::Runtime, <E as Executor>::Lock, (), O>;

fn by_cpu(base: Quota) -> AdaptiveOptions {
    AdaptiveOptions::new(base).cpu(LoadRule::new())
}

/// A task that panics at every evaluation begins again once; and one that panics at every other one no more often than its bucket fills itself, in an hour.
pub async fn c15_a_task_that_panics_again_and_again_begins_again_no_faster_than_its_quota<E: Executor>(
    runtime: E::Runtime,
) {
    let base = quota!("3600/1h");
    let hows = [OnRestart::Full, OnRestart::Empty, OnRestart::Restore];
    for (how, takes_turns) in hows.into_iter().flat_map(|how| [(how, false), (how, true)]) {
        let registry: Registry<E> = FlowRegistry::new(runtime.clone());
        let turns = AtomicU64::new(0);
        let panics = move |_now| -> Signals {
            if takes_turns && turns.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                return Signals::default();
            }
            std::panic::panic_any(AS_TOLD)
        };
        let breaker = BreakerOptions::new().cool_down(Duration::from_secs(3_000), Duration::from_secs(3_000));
        let options = FlowOptions::new(base).breaker(breaker.build().expect("a policy"));
        let policy = by_cpu(base).errors(ErrorRule::new()).build().expect("a policy");
        let plan = FlowPlan::new(options).adaptive(policy).on_restart(how);
        let flow = registry.add("breaks", plan, panics).expect("a flow");
        let mut admitted = 0_u64;
        let begin = runtime.now();
        let breaker = flow.breaker().expect("one");
        // Three hundredths of a second before each panic, and after it.
        for turn in 1..=600_u32 {
            for offset in [Duration::ZERO, Duration::from_millis(60)] {
                let at = begin + Duration::from_millis(4_970) * turn + offset;
                runtime.sleep_until(at.max(runtime.now())).await;
                while flow.enter(1).await.is_ok() {
                    admitted += 1;
                }
            }
        }
        let ideal = 3_600 + runtime.now().saturating_duration_since(begin).as_secs();
        match how {
            // Full in the beginning, once more, and what its quota has brought meanwhile.
            OnRestart::Full => assert!((ideal + 3_000..=2 * ideal).contains(&admitted), "{admitted} of {ideal}"),
            OnRestart::Empty | OnRestart::Restore => {
                assert!((ideal - 20..=ideal).contains(&admitted), "{admitted} of {ideal}");
            }
        }
        // Nor does it close the breaker each time, or forget the errors that the flow itself has counted.
        breaker.trip_at(runtime.now());
        pass::<E>(&runtime, Duration::from_secs(400)).await;
        assert_eq!(breaker.phase(), BreakerPhase::Open, "{how:?}");
        breaker.close_at(runtime.now());
        let too_much = |_: &Result<(), ()>| CallOutcome::Overloaded;
        assert!(flow.call_judged(1, too_much, || async { Err::<(), _>(()) }).await.is_err());
        pass::<E>(&runtime, Duration::from_secs(6)).await;
        assert_eq!(flow.limit(), Limit::Quota(quota!("1800/1h")), "{how:?}");
    }
}

/// However short the recovery time: a breaker with a cool-down of a minute, calls that always fail, and a task that panics every 5 s.
pub async fn c15_a_task_that_always_panics_closes_no_breaker<E: Executor>(runtime: E::Runtime) {
    let told = Arc::new(Told::default());
    let registry: Registry<E, _> = FlowRegistry::observed_by(runtime.clone(), Arc::clone(&told));
    let base = quota!("1000/1s");
    let breaker = BreakerOptions::new().any_failure_share().consecutive_failures(3).probes(1);
    let breaker = breaker.cool_down(Duration::from_secs(60), Duration::from_secs(600)).build().expect("a policy");
    let plan = FlowPlan::new(FlowOptions::new(base).breaker(breaker)).adaptive(by_cpu(base).build().expect("a policy"));
    let panics = |_now| -> Signals { std::panic::panic_any(AS_TOLD) };
    let flow = registry.add("breaks", plan, panics).expect("a flow");
    let mut called = 0;
    for _ in 0..600 {
        for _ in 0..10 {
            let answer = flow.call(1, || async { Err::<(), _>(()) }).await;
            called += u64::from(answer == Err(FlowError::Failed(())));
        }
        pass::<E>(&runtime, Duration::from_secs(1)).await;
    }
    assert!((6..=10).contains(&called), "{called} calls of a service that is down");
    let told = told.0.lock();
    assert_eq!(told[..3], ["restarted breaks Full", "restarted breaks Restore", "restarted breaks Restore"]);
    assert!(told.len() > 100 && told[1..].iter().all(|line| *line == told[1]), "it has begun again once");
}

/// Given a policy that goes by half of its base, a flow begins with half, and with half after a restart.
pub async fn c15_a_policy_that_has_adapted_goes_on_from_there<E: Executor>(runtime: E::Runtime) {
    let base = quota!("100/1s");
    let mut policy = by_cpu(base).build().expect("a policy");
    let busy = Signals::default().with_cpu(Load::percent(100));
    assert_eq!(policy.evaluate(Nanos::ZERO, &busy), Some(quota!("50/1s")));
    let registry: Registry<E> = FlowRegistry::new(runtime.clone());
    let breaks = Arc::new(AtomicBool::new(false));
    let measure = {
        let breaks = Arc::clone(&breaks);
        move |_now| {
            if breaks.swap(false, Ordering::SeqCst) {
                std::panic::panic_any(AS_TOLD);
            }
            busy
        }
    };
    let flow = registry.add("half", FlowPlan::new(FlowOptions::new(base)).adaptive(policy), measure).expect("a flow");
    assert_eq!(flow.limit(), Limit::Quota(quota!("50/1s")));
    pass::<E>(&runtime, Duration::from_secs(6)).await;
    breaks.store(true, Ordering::SeqCst);
    pass::<E>(&runtime, Duration::from_secs(5)).await;
    assert!(!breaks.load(Ordering::SeqCst));
    assert_eq!(flow.limit(), Limit::Quota(quota!("50/1s")), "as it was configured");
}

#[derive(Debug, Default)]
struct Told(Mutex<Vec<String>>);

impl RegistryObserver for Told {
    fn adapted(&self, id: &str, _now: Nanos, _adapted: &Adapted, quota: Quota) {
        self.0.lock().push(format!("adapted {id} to {quota}"));
    }

    fn restarted(&self, id: &str, _now: Nanos, how: OnRestart) {
        self.0.lock().push(format!("restarted {id} {how:?}"));
    }
}

/// While a flow's limit is off, or denies everything, no rule is evaluated and nobody is told that it adapts; with a quota it goes on.
pub async fn c13_what_is_off_or_denied_adapts_to_nothing<E: Executor>(runtime: E::Runtime) {
    let told = Arc::new(Told::default());
    let registry: Registry<E, _> = FlowRegistry::observed_by(runtime.clone(), Arc::clone(&told));
    let base = quota!("100/1s");
    let load = Arc::new(AtomicU64::new(10));
    let measure = {
        let load = Arc::clone(&load);
        move |_now| Signals::default().with_cpu(Load::percent(load.load(Ordering::SeqCst) as u32))
    };
    let plan = FlowPlan::new(FlowOptions::new(base)).adaptive(by_cpu(base).build().expect("a policy"));
    let flow = registry.add("provider", plan, measure).expect("a flow");
    for limit in [Limit::Unlimited, Limit::DenyAll] {
        registry.configure("provider", limit, Inheritance::Level).expect("it is there");
        load.store(100, Ordering::SeqCst);
        pass::<E>(&runtime, Duration::from_secs(31)).await;
        assert_eq!(flow.limit(), limit);
        assert_eq!(registry.adapted("provider"), Ok(None));
        assert_eq!(*told.0.lock(), [""; 0]);
    }
    registry.configure("provider", base, Inheritance::Level).expect("it is there");
    assert!(registry.adapted("provider").is_ok_and(|adapted| adapted.is_some()));
    pass::<E>(&runtime, Duration::from_secs(6)).await;
    assert_eq!(*told.0.lock(), ["adapted provider to 50/1s"]);
    assert_eq!(flow.limit(), Limit::Quota(quota!("50/1s")));
}

/// Panics where it is told to, and notes what it is told.
#[derive(Debug, Default)]
struct Breaks {
    at: Mutex<&'static str>,
    told: Mutex<Vec<String>>,
}

impl Breaks {
    fn tell(&self, what: &'static str, of: &str) {
        self.told.lock().push(format!("{what} {of}"));
        if *self.at.lock() == what {
            std::panic::panic_any(AS_TOLD);
        }
    }
}

impl RegistryObserver for Breaks {
    fn added(&self, id: &str) {
        self.tell("added", id);
    }

    fn removed(&self, id: &str) {
        self.tell("removed", id);
    }

    fn alerted(&self, _id: &str, _now: Nanos, change: &AlertChange) {
        self.tell("alerted", change.alert.name());
    }
}

/// In `added`: there is no such flow then. In `alerted`: the others are told after the restart. In `removed`, while all end: they end all the same.
pub async fn c15_an_observer_that_panics_leaves_no_flow_and_no_alert_behind<E: Executor>(runtime: E::Runtime) {
    let breaks = Arc::new(Breaks::default());
    let alive = Arc::new(());
    let registry: Registry<E, _> = FlowRegistry::observed_by(runtime.clone(), Arc::clone(&breaks));
    let add = |id: &str| {
        let alive = Arc::clone(&alive);
        let measure = move |_now| {
            let _ = &alive;
            Signals::default()
        };
        let plan = FlowPlan::new(FlowOptions::new(quota!("1/1h burst 20"))).alerts(AlertPolicy::default());
        registry.add(id, plan.on_restart(OnRestart::Restore), measure)
    };
    *breaks.at.lock() = "added";
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| drop(add("search")))).is_err());
    assert!(registry.ids().is_empty(), "it was not made");
    settle::<E>(&runtime).await;
    assert_eq!(Arc::strong_count(&alive), 1, "nor is there a task");
    *breaks.at.lock() = "alerted";
    let flow = add("search").expect("its name is free");
    assert!(add("mail").is_ok());
    breaks.told.lock().clear();
    pass::<E>(&runtime, Duration::from_secs(6)).await;
    for _ in 0..60 {
        let _ = flow.enter(1).await;
    }
    // Two alerts at once, and each of them breaks the task.
    pass::<E>(&runtime, Duration::from_secs(11)).await;
    let told = core::mem::take(&mut *breaks.told.lock());
    let [rejections, fill] = [Alert::Rejections, Alert::LowFill].map(|alert| format!("alerted {}", alert.name()));
    assert_eq!(told[..2], [rejections, fill], "{told:?}");

    *breaks.at.lock() = "removed";
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| drop(registry))).is_err());
    settle::<E>(&runtime).await;
    assert_eq!(Arc::strong_count(&alive), 1, "both tasks are gone");
    assert!(flow.enter(1).await.is_err_and(|refusal| refusal.denied == sluicegate_runtime::Denied::Closed));
}
