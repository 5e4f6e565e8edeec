//! The sliding log against its law, computed from a plain list of everything that was ever admitted; in both forms.
#![cfg(feature = "alloc")]

mod support;

use core::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{Denied, Nanos, Rate, Remaining, Runs, SlidingLog};
#[cfg(feature = "heapless")]
use sluicegate_core::{FixedSlidingLog, QuotaError};

/// Every admission, and nothing clever.
struct Oracle {
    limit: u128,
    window: u128,
    admitted: Vec<(u128, u128)>,
    /// The latest reading that something was taken at.
    latest: u128,
}

impl Oracle {
    fn used(&self, now: u128) -> u128 {
        self.admitted.iter().filter(|(at, _)| at + self.window > now).map(|(_, cost)| cost).sum()
    }

    fn wait(&self, now: u128, cost: u128) -> u128 {
        let latest = self.latest.max(now);
        // Only an instant at which something ages out can change the answer.
        let mut instants: Vec<u128> =
            self.admitted.iter().map(|(at, _)| at + self.window).filter(|&at| at > latest).collect();
        instants.sort_unstable();
        instants.into_iter().find(|&at| self.used(at) + cost <= self.limit).expect("the cost fits an empty log") - now
    }

    fn fullest_interval(&self) -> u128 {
        let held = |start: u128| -> u128 {
            let inside = |at: &u128| *at >= start && *at - start < self.window;
            self.admitted.iter().filter(|(at, _)| inside(at)).map(|(_, cost)| cost).sum()
        };
        self.admitted.iter().map(|&(at, _)| held(at)).max().unwrap_or(0)
    }

    /// Gives back to what was taken at one reading. What has aged out is gone, and would change nothing that counts.
    fn give_back(&mut self, taken_at: u128, mut owed: u128) {
        if taken_at + self.window <= self.latest {
            return;
        }
        for (_, held) in self.admitted.iter_mut().filter(|(at, _)| *at == taken_at) {
            let returned = owed.min(*held);
            *held -= returned;
            owed -= returned;
        }
    }

    /// Readings at which something still counts, each once.
    fn records(&self) -> usize {
        let counts = |(at, cost): &&(u128, u128)| at + self.window > self.latest && *cost > 0;
        let mut readings: Vec<_> = self.admitted.iter().filter(counts).map(|(at, _)| at).collect();
        readings.dedup();
        readings.len()
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Acquire {
        cost: u64,
    },
    Advance(u64),
    StepBack(u64),
    /// So much of an earlier admission, or of another reading at which perhaps nothing was taken.
    Refund {
        which: usize,
        beside: u64,
        cost: u64,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (0..8_u64).prop_map(|cost| Operation::Acquire { cost }),
        3 => (0..12_u64).prop_map(Operation::Advance),
        1 => (0..30_u64).prop_map(Operation::StepBack),
        1 => (any::<usize>(), prop_oneof![4 => Just(0), 1 => 0..3_u64], 0..8_u64)
            .prop_map(|(which, beside, cost)| Operation::Refund { which, beside, cost }),
    ]
}

fn law<R: Runs>(mut log: SlidingLog<R>, unit: u64, start: u64, operations: &[Operation]) -> Result<(), TestCaseError> {
    let (limit, window) = (log.rate().tokens(), log.rate().period_nanos());
    let mut oracle = Oracle { limit: limit.into(), window: window.into(), admitted: Vec::new(), latest: 0 };
    let mut now = start;
    for operation in operations {
        match *operation {
            Operation::Advance(by) => now = now.saturating_add(by),
            Operation::StepBack(by) => now = now.saturating_sub(by),
            Operation::Refund { which, beside, cost } if !oracle.admitted.is_empty() => {
                let at = oracle.admitted[which % oracle.admitted.len()].0 as u64;
                let (at, cost) = (at.saturating_add(beside), cost.saturating_mul(unit));
                log.refund(Nanos::new(at), cost);
                oracle.give_back(at.into(), cost.into());
            }
            Operation::Refund { .. } => {}
            Operation::Acquire { cost } => {
                let cost = cost.saturating_mul(unit);
                let peeked = log.peek_at(Nanos::new(now), cost);
                let inspected = log.inspect_at(Nanos::new(now));
                let records = log.records();
                let decision = log.try_acquire_at(Nanos::new(now), cost);
                prop_assert_eq!(peeked, decision);
                prop_assert_eq!(inspected.capacity, limit);
                if cost > limit {
                    prop_assert_eq!(decision, Err(Denied::CostExceedsLimit { cost, limit }));
                    prop_assert_eq!(log.records(), records);
                    continue;
                }
                let latest = oracle.latest.max(now.into());
                let used = oracle.used(latest);
                prop_assert_eq!(u128::from(inspected.level), oracle.limit - used);
                if used + u128::from(cost) <= oracle.limit {
                    let admitted = decision.unwrap();
                    prop_assert_eq!(admitted.remaining, Remaining::Exactly(limit - used as u64 - cost));
                    prop_assert_eq!(u128::from(admitted.at.as_u64()), latest);
                    if cost > 0 {
                        oracle.admitted.push((latest, cost.into()));
                        oracle.latest = latest;
                        prop_assert_eq!(log.records(), oracle.records());
                    } else {
                        prop_assert_eq!(log.records(), records);
                    }
                } else {
                    let wait = oracle.wait(now.into(), cost.into());
                    let Err(Denied::RateLimited { retry_after }) = decision else { panic!("{decision:?}") };
                    prop_assert_eq!(retry_after.as_nanos(), wait);
                    // B4: exact when nobody else consumes.
                    if let Ok(then) = u64::try_from(u128::from(now) + wait) {
                        prop_assert!(log.peek_at(Nanos::new(then), cost).is_ok());
                        prop_assert!(log.peek_at(Nanos::new(then - 1), cost).is_err());
                    }
                    prop_assert_eq!(log.records(), records);
                }
                prop_assert!(log.records() as u64 <= limit);
                // Forgotten only where every later reading finds all of the limit free, and is taken at itself.
                let is_unused = u128::from(now) >= oracle.latest && oracle.used(now.into()) == 0;
                prop_assert_eq!(log.is_unused(Nanos::new(now)), is_unused);
            }
        }
    }
    prop_assert!(oracle.fullest_interval() <= oracle.limit);
    Ok(())
}

fn rate(limit: u64, window: u64) -> Rate {
    Rate::new(limit, Duration::from_nanos(window)).unwrap()
}

/// Where the sum of costs and readings wrap if they can: near the ends of both.
fn starts() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 100, Nanos::HORIZON.as_u64() - 50, u64::MAX - 200, u64::MAX - 20])
}

proptest! {
    #![proptest_config(support::cases(512))]

    #[test]
    fn b02_no_interval_holds_more_and_nothing_is_denied_early(
        limit in 1..12_u64,
        window in prop_oneof![9 => 1..20_u64, 1 => Just(u64::MAX)],
        start in starts(),
        operations in prop::collection::vec(operation(), 1..80),
    ) {
        law(SlidingLog::new(rate(limit, window)), 1, start, &operations)?;
        #[cfg(feature = "heapless")]
        law(FixedSlidingLog::<11>::with_array(rate(limit, window)).unwrap(), 1, start, &operations)?;
    }

    #[test]
    fn b02_sums_of_costs_may_wrap(
        limit in u64::MAX - 5..=u64::MAX,
        unit in prop::sample::select(vec![u64::MAX / 7, u64::MAX / 3, u64::MAX / 2 + 1, u64::MAX]),
        window in 1..20_u64,
        start in starts(),
        operations in prop::collection::vec(operation(), 1..80),
    ) {
        law(SlidingLog::new(rate(limit, window)), unit, start, &operations)?;
    }
}

#[cfg(feature = "heapless")]
#[test]
fn b02_a_log_in_place_is_as_large_as_its_limit_or_an_error() {
    for limit in 1..=3 {
        let mut log = FixedSlidingLog::<3>::with_array(rate(limit, 10)).unwrap();
        for round in 0..5 {
            // Every unit at a reading of its own, again and again around the queue.
            for unit in 0..limit {
                log.try_acquire_at(Nanos::new(round * 10 + unit), 1).unwrap();
            }
            assert_eq!(log.records() as u64, limit);
            assert!(log.try_acquire_at(Nanos::new(round * 10 + limit), 1).is_err());
        }
    }
    for limit in [4, u64::MAX] {
        let error = FixedSlidingLog::<3>::with_array(rate(limit, 10)).unwrap_err();
        assert_eq!(error, QuotaError::LimitAboveCapacity { limit, capacity: 3 });
        let text = error.to_string();
        assert!(text.contains(&limit.to_string()) && text.contains("the largest is 3"), "{text}");
    }
    const IN_A_CONSTANT: Result<FixedSlidingLog<0>, QuotaError> =
        FixedSlidingLog::with_array(match Rate::parse("1/1s") {
            Ok(rate) => rate,
            Err(_) => unreachable!(),
        });
    assert!(IN_A_CONSTANT.is_err());
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
fn c03_a_denial_and_a_cost_of_0_change_nothing() {
    let mut log = SlidingLog::new("3/1s".parse().unwrap());
    log.try_acquire_at(Nanos::ZERO, 1).unwrap();
    log.try_acquire_at(Nanos::from_millis(900), 2).unwrap();
    // One unit is free here, and two are asked for.
    assert!(log.try_acquire_at(Nanos::from_millis(1_500), 2).is_err());
    assert!(log.try_acquire_at(Nanos::from_secs(99), 0).is_ok());
    assert_eq!(log.records(), 2);
    // Had either been acted on, this would be admitted: at 1500 ms one is free, and at 99 s all.
    let retry_after = Duration::from_millis(50);
    assert_eq!(log.try_acquire_at(Nanos::from_millis(950), 1), Err(Denied::RateLimited { retry_after }));
    assert_eq!(log.try_acquire_at(Nanos::from_secs(1), 1).unwrap().at, Nanos::from_secs(1));
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
fn b09_what_has_aged_out_is_dropped_and_its_memory_given_back() {
    let mut log = SlidingLog::new("1000/1s".parse().unwrap());
    for at in 0..1_000 {
        log.try_acquire_at(Nanos::new(at), 1).unwrap();
    }
    assert_eq!(log.records(), 1_000);
    log.try_acquire_at(Nanos::from_secs(5), 1).unwrap();
    assert_eq!(log.records(), 1);
    log.shrink();
    log.refund(Nanos::from_secs(5), 1);
    assert_eq!(log.records(), 0);
    // Empty, but only readings from then on find it as a new one.
    assert!(!log.is_unused(Nanos::from_secs(4)) && log.is_unused(Nanos::from_secs(5)));
    assert_eq!(log.try_acquire_at(Nanos::from_secs(4), 1).unwrap().at, Nanos::from_secs(5));
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
fn a_clock_that_jumps_ahead_and_back_denies_until_it_has_caught_up_and_no_longer() {
    let mut log = SlidingLog::new("2/1s".parse().unwrap());
    log.try_acquire_at(Nanos::from_secs(3_600), 2).unwrap();
    let denied = log.try_acquire_at(Nanos::ZERO, 1);
    assert_eq!(denied, Err(Denied::RateLimited { retry_after: Duration::from_secs(3_601) }));
    assert!(log.try_acquire_at(Nanos::from_secs(3_601), 2).is_ok());
}

#[test]
fn does_not_panic_on_absurd_readings_and_costs() {
    for tokens in [1, 2, u64::MAX] {
        let mut log = SlidingLog::new(rate(tokens, u64::MAX));
        for now in [Nanos::MAX, Nanos::ZERO, Nanos::new(1), Nanos::MAX, Nanos::HORIZON] {
            for cost in [0, 1, tokens, u64::MAX] {
                let _ = (log.peek_at(now, cost), log.try_acquire_at(now, cost), log.inspect_at(now));
                log.refund(now, cost);
            }
        }
    }
    // A wait that ends after the last reading is told as it is.
    let mut log = SlidingLog::new(rate(1, u64::MAX));
    log.try_acquire_at(Nanos::MAX, 1).unwrap();
    let wait = log.try_acquire_at(Nanos::ZERO, 1).unwrap_err().retry_after().unwrap();
    assert_eq!(wait.as_nanos(), 2 * u128::from(u64::MAX));
}

#[cfg(feature = "alloc")]
#[test]
fn b04_the_hint_is_exact_when_nobody_else_consumes() {
    let mut log = SlidingLog::new("5/1s".parse().unwrap());
    for (at, cost) in [(0, 2), (300, 1), (450, 2)] {
        log.try_acquire_at(Nanos::from_millis(at), cost).unwrap();
    }
    let now = Nanos::from_millis(500);
    for (cost, ages_out_at) in [(1, 1_000), (2, 1_000), (3, 1_300), (4, 1_450), (5, 1_450)] {
        let wait = log.peek_at(now, cost).unwrap_err().retry_after().unwrap();
        assert_eq!(now + wait, Nanos::from_millis(ages_out_at), "{cost}");
        assert!(log.clone().try_acquire_at(now + wait, cost).is_ok());
        assert!(log.clone().try_acquire_at(now + wait - Duration::from_nanos(1), cost).is_err());
    }
}
