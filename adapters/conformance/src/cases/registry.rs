//! Flows that are made and removed at run time, and outlive what breaks.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use parking_lot::Mutex;
use sluicegate_runtime::{
    Adapted, AdaptiveOptions, AdaptivePolicy, AddFlowError, AlertChange, AlertPolicy, BreakerObserver, CallOutcome,
    Clock, Denied, ErrorRule, FlowError, FlowObserver, FlowOptions, FlowPlan, FlowRefusal, FlowRegistry, FlowStage,
    Inheritance, Limit, Load, LoadRule, Nanos, Observer, OnRestart, Quota, RegisteredFlow, RegistryObserver, Signals,
    UnknownFlow, WhenEmpty, quota,
};

use crate::executor::{AS_TOLD, Executor};
use crate::tasks::{pass, settle, start};

type Registry<E, O = ()> = FlowRegistry<<E as Executor>::Runtime, <E as Executor>::Lock, (), O>;

fn adapting(base: Quota) -> AdaptivePolicy {
    let options = AdaptiveOptions::new(base).cpu(LoadRule::new()).errors(ErrorRule::new());
    options.build().expect("a policy")
}

fn nothing(_now: Nanos) -> Signals {
    Signals::default()
}

/// What a registry tells.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<String>>);

impl RegistryObserver for Told {
    fn added(&self, id: &str) {
        self.0.lock().push(format!("added {id}"));
    }

    fn removed(&self, id: &str) {
        self.0.lock().push(format!("removed {id}"));
    }

    fn adapted(&self, id: &str, _now: Nanos, _adapted: &Adapted, quota: Quota) {
        self.0.lock().push(format!("adapted {id} to {quota}"));
    }

    fn alerted(&self, id: &str, _now: Nanos, change: &AlertChange) {
        self.0.lock().push(format!("{id}: {change}"));
    }

    fn restarted(&self, id: &str, _now: Nanos, how: OnRestart) {
        self.0.lock().push(format!("restarted {id} {how:?}"));
    }
}

/// Found by name, refused where there is one, not found where there is none; who waits for one that is removed learns of it.
pub async fn c15_flows_are_made_and_removed_at_run_time<E: Executor>(runtime: E::Runtime) {
    let told = Arc::new(Told::default());
    let registry: Registry<E, _> = FlowRegistry::observed_by(runtime.clone(), Arc::clone(&told));
    let plan = || FlowPlan::new(FlowOptions::new(quota!("1/1h")).when_empty(WhenEmpty::Queue));
    let made = registry.add("search", plan(), nothing).expect("the first of its name");
    assert!(registry.add("mail", plan().adaptive(adapting(quota!("5/1s"))), nothing).is_ok());
    let again = registry.add("search", plan(), nothing).map(drop);
    assert_eq!(again, Err(AddFlowError::AlreadyThere { id: "search".into() }));
    let bad = FlowPlan::new(FlowOptions::new(quota!("1/1h")).in_flight(0));
    assert!(matches!(registry.add("bad", bad, nothing), Err(AddFlowError::Options(_))));
    assert_eq!(registry.ids().iter().map(|id| &**id).collect::<Vec<_>>(), ["mail", "search"]);
    assert!(Arc::ptr_eq(&made, &registry.find("search").expect("it is there")));
    assert!(registry.adapted("search").is_ok_and(|adapted| adapted.is_none()));
    assert!(registry.adapted("mail").is_ok_and(|adapted| adapted.is_some()));

    assert!(made.call(1, || async { Ok::<_, ()>(()) }).await.is_ok());
    let waits = {
        let made = Arc::clone(&made);
        start::<E, _>(&runtime, async move { made.call(1, || async { Ok::<_, ()>(()) }).await }).await
    };
    assert!(registry.remove("search").is_ok());
    let closed = Err(FlowError::Refused(FlowRefusal { stage: FlowStage::Limiter, denied: Denied::Closed }));
    assert_eq!(waits.await.with, closed);
    let unknown = UnknownFlow { id: "search".into() };
    assert_eq!(registry.remove("search").map(drop), Err(unknown.clone()));
    assert_eq!(registry.find("search").map(drop), Err(unknown.clone()));
    assert_eq!(registry.configure("search", quota!("1/1s"), Inheritance::Level), Err(unknown));
    assert!(registry.add("search", plan(), nothing).is_ok(), "its name is free again");
    drop(registry);
    let expected = ["added search", "added mail", "removed search", "added search", "removed mail", "removed search"];
    assert_eq!(*told.0.lock(), expected);
}

/// Every 5 s, by what was measured and by what the flow has counted itself; and back to exactly the base.
pub async fn c13_a_flow_is_evaluated_every_5_s_and_returns_to_its_base<E: Executor>(runtime: E::Runtime) {
    let registry: Registry<E> = FlowRegistry::new(runtime.clone());
    let base = quota!("100/1s");
    let (asked, load) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicU64::new(0)));
    let measure = {
        let (asked, load) = (Arc::clone(&asked), Arc::clone(&load));
        move |now| {
            asked.lock().push(now);
            Signals::default().with_cpu(Load::percent(load.load(Ordering::SeqCst) as u32))
        }
    };
    let begin = runtime.now();
    let plan = FlowPlan::new(FlowOptions::new(quota!("1/1h"))).adaptive(adapting(base));
    let flow = registry.add("provider", plan, measure).expect("a flow");
    assert_eq!(flow.limit(), Limit::Quota(base), "the policy's base is its limit");
    let too_much = |_: &Result<(), ()>| CallOutcome::Overloaded;
    assert_eq!(flow.call_judged(1, too_much, || async { Err::<(), _>(()) }).await, Err(FlowError::Failed(())));
    pass::<E>(&runtime, Duration::from_secs(6)).await;
    assert_eq!(flow.limit(), Limit::Quota(quota!("50/1s")), "one answer said that it is too much");
    registry.configure("provider", quota!("200/1s"), Inheritance::Level).expect("it is there");
    assert_eq!(flow.limit(), Limit::Quota(quota!("100/1s")), "half of the new base");
    load.store(100, Ordering::SeqCst);
    pass::<E>(&runtime, Duration::from_secs(60)).await;
    let Limit::Quota(limit) = flow.limit() else { panic!("it has a quota") };
    let tokens = limit.rate().tokens() as f64 * 1e9 / limit.rate().period_nanos() as f64;
    assert!((100.0..104.0).contains(&tokens), "the errors are over, and the load is not: {limit}");
    load.store(10, Ordering::SeqCst);
    pass::<E>(&runtime, Duration::from_secs(120)).await;
    assert_eq!(flow.limit(), Limit::Quota(quota!("200/1s")));
    let asked = asked.lock();
    for (at, turn) in asked.iter().zip(1_u32..) {
        let due = begin + Duration::from_secs(5) * turn;
        assert!(due <= *at && *at <= due + E::GRAIN * turn, "at {at:?}, due at {due:?}");
    }
    assert!(asked.len() >= 36, "{} evaluations", asked.len());
}

/// Its task panics while it measures: it alone begins again, as it was configured last; calls go on, and others are untouched.
pub async fn c15_a_crashed_one_restarts_alone_with_its_last_configuration<E: Executor>(runtime: E::Runtime) {
    for how in [OnRestart::Full, OnRestart::Empty, OnRestart::Restore] {
        let told = Arc::new(Told::default());
        let registry: Registry<E, _> = FlowRegistry::observed_by(runtime.clone(), Arc::clone(&told));
        let breaks = Arc::new(AtomicBool::new(false));
        let measure = {
            let breaks = Arc::clone(&breaks);
            move |_now| {
                if breaks.swap(false, Ordering::SeqCst) {
                    std::panic::panic_any(AS_TOLD);
                }
                Signals::default()
            }
        };
        let plan = |base| FlowPlan::new(FlowOptions::new(base)).adaptive(adapting(base)).on_restart(how);
        let flow = registry.add("breaks", plan(quota!("60/1h")), measure).expect("a flow");
        let other = registry.add("other", plan(quota!("60/1h")), nothing).expect("a flow");
        registry.configure("breaks", quota!("80/1h"), Inheritance::Level).expect("it is there");
        let level =
            |flow: &RegisteredFlow<E::Runtime, E::Lock>| flow.bucket().limiter().inspect_at(flow.runtime().now()).level;
        let judge = |_: &Result<(), ()>| CallOutcome::Overloaded;
        for flow in [&flow, &other] {
            assert!(flow.call_judged(30, judge, || async { Ok::<_, ()>(()) }).await.is_ok());
        }
        pass::<E>(&runtime, Duration::from_secs(7)).await;
        assert_eq!((flow.limit(), other.limit()), (Limit::Quota(quota!("40/1h")), Limit::Quota(quota!("30/1h"))));
        let before = (level(&flow), level(&other));
        breaks.store(true, Ordering::SeqCst);
        pass::<E>(&runtime, Duration::from_secs(5)).await;
        assert!(!breaks.load(Ordering::SeqCst), "it has panicked");
        let (limit, left) = match how {
            OnRestart::Full => (quota!("80/1h"), 80),
            OnRestart::Empty => (quota!("80/1h"), 0),
            OnRestart::Restore => (quota!("40/1h"), before.0),
        };
        assert_eq!((flow.limit(), level(&flow)), (Limit::Quota(limit), left), "{how:?}");
        assert_eq!((other.limit(), level(&other)), (Limit::Quota(quota!("30/1h")), before.1));
        let restarts = |told: &Told| told.0.lock().iter().filter(|line| line.starts_with("restarted")).count();
        assert_eq!(restarts(&told), 1);
        assert!(told.0.lock().contains(&format!("restarted breaks {how:?}")));
        // It goes on adapting, and breaks again.
        flow.adjust(quota!("80/1h"), Inheritance::Full);
        assert!(flow.call_judged(1, judge, || async { Ok::<_, ()>(()) }).await.is_ok());
        pass::<E>(&runtime, Duration::from_secs(6)).await;
        let next = if how == OnRestart::Restore { quota!("20/1h") } else { quota!("40/1h") };
        assert_eq!(flow.limit(), Limit::Quota(next), "{how:?}");
        breaks.store(true, Ordering::SeqCst);
        pass::<E>(&runtime, Duration::from_secs(6)).await;
        assert_eq!(restarts(&told), 2);
    }
}

/// Raised by what its bucket has counted, and cleared once that is over; a restart in between forgets neither.
pub async fn c16_alerts_of_a_flow_are_raised_and_cleared<E: Executor>(runtime: E::Runtime) {
    let told = Arc::new(Told::default());
    let registry: Registry<E, _> = FlowRegistry::observed_by(runtime.clone(), Arc::clone(&told));
    let turns = Arc::new(AtomicU64::new(0));
    let measure = {
        let turns = Arc::clone(&turns);
        move |_now| {
            if turns.fetch_add(1, Ordering::SeqCst) == 2 {
                std::panic::panic_any(AS_TOLD);
            }
            Signals::default()
        }
    };
    let plan = FlowPlan::new(FlowOptions::new(quota!("1/1s burst 20"))).alerts(AlertPolicy::default());
    let plan = plan.on_restart(OnRestart::Restore);
    let flow = registry.add("search", plan, measure).expect("a flow");
    assert!(registry.counted("search").is_ok_and(|counted| counted.is_some_and(|counted| counted.requests() == 0)));
    pass::<E>(&runtime, Duration::from_secs(6)).await;
    for _ in 0..30 {
        let _ = flow.call(1, || async { Ok::<_, ()>(()) }).await;
    }
    pass::<E>(&runtime, Duration::from_secs(120)).await;
    let counted = registry.counted("search").expect("it is there").expect("it counts");
    assert_eq!((counted.admitted, counted.denied), (20, 10));
    let told: Vec<_> = told.0.lock().iter().filter(|line| line.starts_with("search:")).cloned().collect();
    let raised = ["search: rejections raised: 33.3333 %, limit 5 %"];
    assert_eq!(told[..1], raised);
    let cleared = |alert: &str| told.iter().any(|line| line.starts_with(&format!("search: {alert} cleared")));
    assert!(cleared("rejections"), "{told:?}");
    assert_eq!(told.iter().filter(|line| line.contains("raised")).count(), told.len() / 2, "{told:?}");
}

/// Where putting the configuration in force panics, which tells the flow's own observer, it is tried again at the time of the next evaluation; and who panics when told of
/// a restart is not told again, and everything goes on.
pub async fn c15_a_restart_that_panics_is_tried_again_in_time<E: Executor>(runtime: E::Runtime) {
    #[derive(Default)]
    struct Breaks(AtomicU64);
    impl Observer for Breaks {
        fn adjusted(&self, _now: Nanos, _from: Limit, _to: Limit) {
            if self.0.fetch_add(1, Ordering::SeqCst) < 3 {
                std::panic::panic_any(AS_TOLD);
            }
        }
    }
    impl BreakerObserver for Breaks {}
    impl FlowObserver for Breaks {}
    impl RegistryObserver for Breaks {
        fn restarted(&self, _id: &str, _now: Nanos, _how: OnRestart) {
            self.0.fetch_add(1, Ordering::SeqCst);
            std::panic::panic_any(AS_TOLD);
        }
    }
    let (restarts, changes) = (Arc::new(Breaks::default()), Arc::new(Breaks::default()));
    let registry: FlowRegistry<E::Runtime, E::Lock, Arc<Breaks>, _> =
        FlowRegistry::observed_by(runtime.clone(), Arc::clone(&restarts));
    let measured = Arc::new(AtomicU64::new(0));
    let measure = {
        let measured = Arc::clone(&measured);
        move |_now| {
            if measured.fetch_add(1, Ordering::SeqCst) == 0 {
                std::panic::panic_any(AS_TOLD);
            }
            Signals::default()
        }
    };
    let plan = FlowPlan::new(FlowOptions::new(quota!("1/1s"))).adaptive(adapting(quota!("1/1s")));
    assert!(registry.add_observed("breaks", plan, measure, Arc::clone(&changes)).is_ok());
    let count = |of: &Breaks| of.0.load(Ordering::SeqCst);
    for (adjusted, restarted, evaluated) in [(1, 0, 1), (2, 0, 1), (3, 0, 1), (4, 1, 1), (4, 1, 2), (4, 1, 3)] {
        pass::<E>(&runtime, Duration::from_millis(5_200)).await;
        let found = (count(&changes), count(&restarts), measured.load(Ordering::SeqCst));
        assert_eq!(found, (adjusted, restarted, evaluated));
    }
}

/// Tasks end, at once, and nothing of the registry is left.
pub async fn c15_dropping_the_registry_ends_everything_it_started<E: Executor>(runtime: E::Runtime) {
    let registry: Registry<E> = FlowRegistry::new(runtime.clone());
    let alive = Arc::new(());
    for number in 0..10 {
        let alive = Arc::clone(&alive);
        let measure = move |_now| {
            let _ = &alive;
            Signals::default()
        };
        let plan = FlowPlan::new(FlowOptions::new(quota!("1/1s"))).adaptive(adapting(quota!("1/1s")));
        assert!(registry.add(&number.to_string(), plan, measure).is_ok());
    }
    settle::<E>(&runtime).await;
    assert_eq!(Arc::strong_count(&alive), 11);
    assert!(registry.remove("3").is_ok());
    settle::<E>(&runtime).await;
    assert_eq!(Arc::strong_count(&alive), 10);
    drop(registry);
    settle::<E>(&runtime).await;
    assert_eq!(Arc::strong_count(&alive), 1);
}
