//! The sliding log against its law, computed from a plain list of everything that was ever admitted.
#![cfg(feature = "alloc")]

use core::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{Denied, Nanos, Rate, Remaining, SlidingLog};

/// Every admission, and nothing clever.
struct Oracle {
    limit: u64,
    window: u64,
    admitted: Vec<(u64, u64)>,
    latest: u64,
}

impl Oracle {
    fn used(&self, now: u64) -> u64 {
        self.admitted.iter().filter(|(at, _)| at + self.window > now).map(|(_, cost)| cost).sum()
    }

    fn wait(&self, now: u64, cost: u64) -> u64 {
        let latest = self.latest.max(now);
        // Only an instant at which something ages out can change the answer.
        let mut instants: Vec<u64> =
            self.admitted.iter().map(|(at, _)| at + self.window).filter(|&at| at > latest).collect();
        instants.sort_unstable();
        instants.into_iter().find(|&at| self.used(at) + cost <= self.limit).expect("the cost fits an empty log") - now
    }

    fn longest_interval(&self) -> u64 {
        let held = |start: u64| -> u64 {
            let inside = |at: &u64| *at >= start && *at - start < self.window;
            self.admitted.iter().filter(|(at, _)| inside(at)).map(|(_, cost)| cost).sum()
        };
        self.admitted.iter().map(|&(at, _)| held(at)).max().unwrap_or(0)
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Acquire { cost: u64 },
    Advance(u64),
    StepBack(u64),
    Refund { which: usize, cost: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (0..8_u64).prop_map(|cost| Operation::Acquire { cost }),
        3 => (0..12_u64).prop_map(Operation::Advance),
        1 => (0..30_u64).prop_map(Operation::StepBack),
        1 => (any::<usize>(), 0..8_u64).prop_map(|(which, cost)| Operation::Refund { which, cost }),
    ]
}

proptest! {
    #[test]
    fn b02_no_interval_holds_more_and_nothing_is_denied_early(
        limit in 1..12_u64,
        window in 1..20_u64,
        operations in proptest::collection::vec(operation(), 1..80),
    ) {
        let mut log = SlidingLog::new(Rate::new(limit, Duration::from_nanos(window)).unwrap());
        let mut oracle = Oracle { limit, window, admitted: Vec::new(), latest: 0 };
        let mut now = 100_u64;
        for operation in operations {
            match operation {
                Operation::Advance(by) => now += by,
                Operation::StepBack(by) => now = now.saturating_sub(by),
                Operation::Refund { which, cost } if !oracle.admitted.is_empty() => {
                    let which = which % oracle.admitted.len();
                    let at = oracle.admitted[which].0;
                    log.refund(Nanos::new(at), cost);
                    // What has aged out is gone; giving it back would change nothing that counts.
                    if at + window > oracle.latest {
                        let mut owed = cost;
                        for (other, held) in &mut oracle.admitted {
                            if *other == at {
                                let returned = owed.min(*held);
                                *held -= returned;
                                owed -= returned;
                            }
                        }
                    }
                }
                Operation::Refund { .. } => {}
                Operation::Acquire { cost } => {
                    let peeked = log.peek_at(Nanos::new(now), cost);
                    let inspected = log.inspect_at(Nanos::new(now)).level;
                    let decision = log.try_acquire_at(Nanos::new(now), cost);
                    prop_assert_eq!(peeked, decision);
                    if cost > limit {
                        prop_assert_eq!(decision, Err(Denied::CostExceedsLimit { cost, limit }));
                        continue;
                    }
                    let latest = oracle.latest.max(now);
                    let used = oracle.used(latest);
                    prop_assert_eq!(inspected, limit - used);
                    if used + cost <= limit {
                        let admitted = decision.unwrap();
                        prop_assert_eq!(admitted.remaining, Remaining::Exactly(limit - used - cost));
                        prop_assert_eq!(admitted.at, Nanos::new(latest));
                        oracle.admitted.push((latest, cost));
                    } else {
                        let retry_after = Duration::from_nanos(oracle.wait(now, cost));
                        prop_assert_eq!(decision, Err(Denied::RateLimited { retry_after }));
                        // B4: exact when nobody else consumes.
                        let then = Nanos::new(now) + retry_after;
                        prop_assert!(log.peek_at(then, cost).is_ok());
                        prop_assert!(log.peek_at(then - Duration::from_nanos(1), cost).is_err());
                    }
                    oracle.latest = latest;
                    prop_assert!(log.records() as u64 <= limit);
                }
            }
        }
        prop_assert!(oracle.longest_interval() <= limit);
    }
}

#[test]
fn b03_a_cost_above_the_limit_creates_no_state() {
    let mut log = SlidingLog::new("3/1s".parse().unwrap());
    assert_eq!(log.try_acquire_at(Nanos::MAX, 4), Err(Denied::CostExceedsLimit { cost: 4, limit: 3 }));
    assert_eq!(log.records(), 0);
    // Not even the reading was acted on.
    assert_eq!(log.try_acquire_at(Nanos::ZERO, 3).unwrap().at, Nanos::ZERO);
    assert_eq!(log.records(), 1);
}

#[test]
fn b08_looking_creates_and_consumes_nothing() {
    let mut log = SlidingLog::new("3/1s".parse().unwrap());
    log.try_acquire_at(Nanos::ZERO, 2).unwrap();
    for _ in 0..3 {
        assert_eq!(log.inspect_at(Nanos::from_secs(9)).level, 3);
        assert!(log.peek_at(Nanos::from_secs(9), 3).is_ok());
        assert!(log.is_unused(Nanos::from_secs(9)));
    }
    assert_eq!(log.inspect_at(Nanos::ZERO).level, 1);
    assert_eq!(log.records(), 1);
}

#[test]
fn equal_readings_share_a_record() {
    let mut log = SlidingLog::new("1000000/1s".parse().unwrap());
    for _ in 0..1000 {
        log.try_acquire_at(Nanos::from_secs(1), 7).unwrap();
    }
    assert_eq!(log.records(), 1);
    assert_eq!(log.inspect_at(Nanos::from_secs(1)).level, 993_000);
}

#[test]
fn does_not_panic_on_absurd_readings_and_costs() {
    for tokens in [1, 2, u64::MAX] {
        let mut log = SlidingLog::new(Rate::new(tokens, Duration::from_nanos(u64::MAX)).unwrap());
        for now in [Nanos::MAX, Nanos::ZERO, Nanos::new(1), Nanos::MAX, Nanos::HORIZON] {
            for cost in [0, 1, tokens, u64::MAX] {
                let _ = (log.peek_at(now, cost), log.try_acquire_at(now, cost), log.inspect_at(now));
                log.refund(now, cost);
            }
        }
    }
}
