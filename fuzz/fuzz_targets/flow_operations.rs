//! Operations on a flow at any readings, beside its parts asked one after the other.
#![no_main]

use core::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sluicegate_core::{
    AdjustableBucket, BreakerOptions, CallOutcome, CircuitBreaker, ConcurrencyLimit, Denied, Flow, FlowRefusal,
    FlowStage, Limit, ManualClock, Nanos, Quota, Rate, Share,
};

#[derive(Arbitrary, Debug)]
struct Input {
    tokens: u64,
    period: u64,
    burst: u64,
    window: u64,
    minimum_calls: u32,
    failure_percent: Option<u8>,
    slow: Option<(u64, u8)>,
    in_a_row: Option<u32>,
    cool_down: (u64, u64),
    probes: u32,
    patience: Option<u64>,
    in_flight: u8,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Advance(u32),
    MoveTo(u64),
    Enter(u8),
    EnterAny(u64),
    Finish(u8, u8),
    Trip,
    Close,
}

type Breaker = CircuitBreaker<parking_lot::RawMutex, ()>;

fuzz_target!(|input: Input| {
    let Ok(rate) = Rate::new(input.tokens, Duration::from_nanos(input.period)) else { return };
    let Ok(quota) = Quota::with_burst(rate, input.burst) else { return };
    let share = |percent: u8| Share::percent(u32::from(percent)).ok();
    let mut options = BreakerOptions::new().any_failure_share().minimum_calls(input.minimum_calls).probes(input.probes);
    options = options.window(Duration::from_nanos(input.window));
    options = options.cool_down(Duration::from_nanos(input.cool_down.0), Duration::from_nanos(input.cool_down.1));
    if let Some(share) = input.failure_percent.and_then(share) {
        options = options.failure_share(share);
    }
    if let Some((from, Some(share))) = input.slow.map(|(from, percent)| (from, share(percent))) {
        options = options.slow_calls(Duration::from_nanos(from), share);
    }
    options = input.in_a_row.map_or(options, |failures| options.consecutive_failures(failures));
    options = input.patience.map_or(options, |patience| options.probe_patience(Duration::from_nanos(patience)));
    let Ok(policy) = options.build() else { return };

    let limit = Limit::Quota(quota);
    let breaker = || Breaker::with_clock(policy, ());
    let flow = Flow::new(AdjustableBucket::with_limit(limit, ()), ManualClock::new())
        .breaker(breaker())
        .concurrency(ConcurrencyLimit::new(input.in_flight.into()));
    let (bucket, reference) = (AdjustableBucket::with_limit(limit, ()), breaker());
    let (mut now, mut out, mut overloaded) = (Nanos::ZERO, Vec::new(), 0);
    for operation in input.operations.iter().take(256) {
        let cost = match *operation {
            Operation::Advance(by) => {
                now = now.saturating_add(Duration::from_nanos(by.into()));
                continue;
            }
            Operation::MoveTo(to) => {
                now = Nanos::new(to);
                continue;
            }
            Operation::Trip => {
                flow.circuit_breaker().trip_at(now);
                reference.trip_at(now);
                continue;
            }
            Operation::Close => {
                flow.circuit_breaker().close_at(now);
                reference.close_at(now);
                continue;
            }
            Operation::Finish(..) if out.is_empty() => continue,
            Operation::Finish(which, outcome) => {
                let (permit, call): (sluicegate_core::FlowPermit<'_, _, _, Breaker, ConcurrencyLimit>, _) =
                    out.swap_remove(usize::from(which) % out.len());
                let outcomes =
                    [CallOutcome::Success, CallOutcome::Failure, CallOutcome::Overloaded, CallOutcome::Ignored];
                let outcome = outcomes[usize::from(outcome % 4)];
                overloaded += u64::from(outcome == CallOutcome::Overloaded);
                permit.finish_at(now, outcome);
                let call: sluicegate_core::BreakerPermit<'_, _, _> = call;
                call.settle_at(now, outcome);
                continue;
            }
            Operation::Enter(cost) => cost.into(),
            Operation::EnterAny(cost) => cost,
        };
        let refused = |stage| move |denied| FlowRefusal { stage, denied };
        let expected = bucket
            .peek_at(now, cost)
            .map_err(refused(FlowStage::Limiter))
            .and_then(|_| reference.peek_at(now).map_err(refused(FlowStage::Breaker)))
            .and_then(|()| match (out.len() as u64, u64::from(input.in_flight)) {
                (_, 0) => Err(refused(FlowStage::Concurrency)(Denied::Closed)),
                (out, limit) if out >= limit => Err(refused(FlowStage::Concurrency)(Denied::ConcurrencyLimited)),
                _ => Ok(()),
            });
        match (flow.enter_at(now, cost), expected) {
            (Ok(permit), Ok(())) => {
                assert!(bucket.try_acquire_at(now, cost).is_ok());
                out.push((permit, reference.try_call_at(now).expect("it was peeked at")));
            }
            (Err(found), Err(expected)) => {
                assert_eq!(found, expected);
                if expected.stage == FlowStage::Breaker && out.len() < usize::from(input.in_flight) {
                    // Who is refused shows it a clock that went back.
                    assert!(reference.try_call_at(now).is_err());
                }
            }
            (found, expected) => panic!("{:?} and not {expected:?}", found.err()),
        }
        assert_eq!(flow.circuit_breaker().phase(), reference.phase());
        assert_eq!(flow.in_flight().in_use() as usize, out.len());
        assert_eq!(flow.limiter().inspect_at(now), bucket.inspect_at(now));
    }
    drop(out);
    assert_eq!(flow.in_flight().in_use(), 0);
    assert_eq!(flow.take_overloaded(), overloaded);
});
