//! Flows whose tasks are threads, in real time: that they run, outlive a panic, and end.
#![cfg(feature = "wait")]

use core::time::Duration;
use std::sync::mpsc::channel;

use sluicegate_threads::{
    AdaptiveOptions, ErrorRule, FlowError, FlowOptions, FlowPath, FlowPlan, FlowStage, Signals, Wait, WaitingFlow,
    WaitingFlowRegistry, WhenEmpty, quota,
};

#[test]
fn c15_a_thread_that_panics_is_followed_by_another_and_all_end_with_the_registry() {
    let flows = WaitingFlowRegistry::<()>::default();
    let options = AdaptiveOptions::new(quota!("100/1s")).errors(ErrorRule::new()).every(Duration::from_millis(2));
    let (sender, measured) = channel();
    let mut turn = 0;
    let measure = move |_now| {
        turn += 1;
        sender.send((turn, std::thread::current().id())).unwrap();
        assert!(turn != 2, "as it was told to");
        Signals::default()
    };
    let plan = FlowPlan::new(FlowOptions::new(quota!("100/1s"))).adaptive(options.build().unwrap());
    let flow = flows.add("provider", plan, measure).unwrap();
    let threads: Vec<_> = (1..=4).map(|turn| (turn, measured.recv().unwrap())).collect();
    assert!(threads.iter().all(|(expected, (turn, _))| expected == turn));
    let ids: Vec<_> = threads.iter().map(|(_, (_, id))| *id).collect();
    assert!(ids[0] == ids[1] && ids[1] != ids[2] && ids[2] == ids[3], "another thread after the panic");
    assert_eq!(flow.call(1, || async { Ok::<_, ()>(5) }).wait().map(|answer| answer.value), Ok(5));
    drop(flows);
    // The thread has ended once what it measured by is gone.
    while measured.recv().is_ok() {}
    assert!(flow.call(1, || async { Ok::<_, ()>(5) }).wait().is_err());
}

#[test]
fn c05_a_thread_waits_for_its_turn_in_a_flow() {
    let options = FlowOptions::new(quota!("1000/1s burst 1")).when_empty(WhenEmpty::Queue).in_flight(1);
    let flow = WaitingFlow::of(options).unwrap();
    let paths: Vec<_> =
        (0..3).map(|number| flow.call(1, || async move { Ok::<_, ()>(number) }).wait().unwrap().path).collect();
    assert_eq!(paths[0], FlowPath::Direct);
    assert!(paths[1..].iter().any(|path| matches!(path, FlowPath::Queued { .. })));
    let never = flow.call(2, || async { Ok::<_, ()>(0) }).wait();
    assert!(matches!(never, Err(FlowError::Refused(refusal)) if refusal.stage == FlowStage::Limiter));
}
