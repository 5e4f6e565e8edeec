//! The concurrency limit against a counter, and what becomes of permits in every way that they can end.
#![cfg(feature = "alloc")]

mod support;

extern crate alloc;

use alloc::sync::Arc;
use core::cell::{Cell, RefCell};
use core::mem::size_of;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;

use proptest::prelude::*;
use sluicegate_core::{
    ConcurrencyLimit, Denied, Inspection, ManualClock, Outcome, Permit, PermitObserver, TokenBucket, Usage, quota,
};
use support::{Numbers, cases, race};

/// Writes down what it is told, marking permits with numbers.
#[derive(Default)]
struct Journal {
    next: Cell<u64>,
    entries: RefCell<Vec<Entry>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Acquired { mark: u64, cost: u64, usage: (u32, u32) },
    Denied { cost: u64, denied: Denied },
    Released { mark: u64, cost: u64, outcome: Outcome, usage: (u32, u32) },
    LimitSet { usage: (u32, u32) },
    Paused { mark: u64, cost: u64 },
    Resumed { mark: u64, cost: u64 },
}

impl PermitObserver for Journal {
    type Mark = u64;

    fn acquired(&self, cost: u64, usage: Usage) -> u64 {
        let mark = self.next.replace(self.next.get() + 1);
        self.entries.borrow_mut().push(Entry::Acquired { mark, cost, usage: pair(usage) });
        mark
    }

    fn denied(&self, cost: u64, denied: &Denied) {
        self.entries.borrow_mut().push(Entry::Denied { cost, denied: *denied });
    }

    fn released(&self, mark: &u64, cost: u64, outcome: Outcome, usage: Usage) {
        self.entries.borrow_mut().push(Entry::Released { mark: *mark, cost, outcome, usage: pair(usage) });
    }

    fn limit_set(&self, usage: Usage) {
        self.entries.borrow_mut().push(Entry::LimitSet { usage: pair(usage) });
    }

    fn paused(&self, mark: &mut u64, cost: u64) {
        self.entries.borrow_mut().push(Entry::Paused { mark: *mark, cost });
    }

    fn resumed(&self, mark: &mut u64, cost: u64) {
        self.entries.borrow_mut().push(Entry::Resumed { mark: *mark, cost });
    }
}

fn pair(usage: Usage) -> (u32, u32) {
    (usage.in_use, usage.limit)
}

#[derive(Clone, Debug)]
enum Operation {
    Acquire { cost: u64 },
    Release { which: usize, outcome: Option<Outcome> },
    SetLimit(u32),
    Split { which: usize, cost: u64 },
    Merge { into: usize, which: usize },
}

fn operation() -> impl Strategy<Value = Operation> {
    let cost = prop_oneof![
        8 => 0..6_u64,
        1 => prop::sample::select(vec![u64::MAX, 1 << 32, (1 << 32) - 1, (1 << 31) + 1]),
    ];
    let limit = prop_oneof![6 => 0..12_u32, 1 => prop::sample::select(vec![u32::MAX, 1 << 31])];
    let outcome = prop::sample::select(vec![None, Some(Outcome::Success), Some(Outcome::Ignored)]);
    prop_oneof![
        4 => cost.clone().prop_map(|cost| Operation::Acquire { cost }),
        3 => (any::<usize>(), outcome).prop_map(|(which, outcome)| Operation::Release { which, outcome }),
        1 => limit.prop_map(Operation::SetLimit),
        1 => (any::<usize>(), cost).prop_map(|(which, cost)| Operation::Split { which, cost }),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(into, which)| Operation::Merge { into, which }),
    ]
}

/// What the law says, from a plain sum.
fn expected(in_use: u64, limit: u64, cost: u64) -> Result<u64, Denied> {
    match cost {
        _ if limit == 0 => Err(Denied::Closed),
        _ if cost > limit => Err(Denied::CostExceedsLimit { cost, limit }),
        0 => Ok(in_use),
        _ if in_use + cost > limit => Err(Denied::ConcurrencyLimited),
        _ => Ok(in_use + cost),
    }
}

/// Paused twice is paused once. Whatever ends in a pause is ignored, parts of what is paused are paused, and what is merged is not.
#[test]
fn c17_pauses_are_told_once_and_nothing_that_ends_in_one_counts() {
    let limit = ConcurrencyLimit::new(9).observed_by(Journal::default());
    let told = || limit.observer().entries.take();
    let mut permit = limit.try_acquire(5).unwrap();
    told();
    permit.resume();
    permit.pause();
    permit.pause();
    assert_eq!(told(), [Entry::Paused { mark: 0, cost: 5 }]);
    permit.split(2).unwrap().success();
    assert_eq!(told(), [Entry::Released { mark: 0, cost: 2, outcome: Outcome::Ignored, usage: (3, 9) }]);
    permit.resume();
    permit.resume();
    assert_eq!(told(), [Entry::Resumed { mark: 0, cost: 3 }]);
    let mut other = limit.try_acquire(1).unwrap();
    other.pause();
    told();
    permit.merge(other).unwrap();
    assert_eq!(told(), [Entry::Resumed { mark: 1, cost: 1 }]);
    permit.pause();
    drop(permit);
    assert_eq!(
        told(),
        [
            Entry::Paused { mark: 0, cost: 4 },
            Entry::Released { mark: 0, cost: 4, outcome: Outcome::Ignored, usage: (0, 9) },
        ]
    );
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn permits_of_every_history_add_up(
        first_limit in 0..12_u32,
        operations in prop::collection::vec(operation(), 1..60),
    ) {
        let limiter = ConcurrencyLimit::new(first_limit).observed_by(Journal::default());
        let mut limit = u64::from(first_limit);
        // The permits that are out, and the mark and cost that each should have.
        let mut out: Vec<(Permit<&ConcurrencyLimit<Journal>>, u64, u64)> = Vec::new();
        let mut told: Vec<Entry> = Vec::new();
        for operation in operations {
            let in_use: u64 = out.iter().map(|(_, _, cost)| cost).sum();
            match operation {
                Operation::Acquire { cost } => {
                    let expected = expected(in_use, limit, cost);
                    prop_assert_eq!(limiter.peek(cost).map(|usage| u64::from(usage.in_use)), expected);
                    match limiter.try_acquire(cost) {
                        Ok(permit) => {
                            let in_use = expected.map_err(|denied| TestCaseError::fail(denied.to_string()))?;
                            let mark = limiter.observer().next.get() - 1;
                            told.push(Entry::Acquired { mark, cost, usage: (in_use as u32, limit as u32) });
                            out.push((permit, mark, cost));
                        }
                        Err(denied) => {
                            prop_assert_eq!(Err(denied), expected);
                            told.push(Entry::Denied { cost, denied });
                        }
                    }
                }
                Operation::Release { which, outcome } if !out.is_empty() => {
                    let (permit, mark, cost) = out.swap_remove(which % out.len());
                    match outcome {
                        None => drop(permit),
                        Some(Outcome::Success) => permit.success(),
                        Some(Outcome::Ignored) => permit.ignore(),
                        Some(other) => permit.release(other),
                    }
                    let outcome = outcome.unwrap_or(Outcome::Dropped);
                    told.push(Entry::Released { mark, cost, outcome, usage: ((in_use - cost) as u32, limit as u32) });
                }
                Operation::SetLimit(new) => {
                    limit = new.into();
                    prop_assert_eq!(pair(limiter.set_limit(new)), (in_use as u32, new));
                    told.push(Entry::LimitSet { usage: (in_use as u32, new) });
                }
                Operation::Split { which, cost } if !out.is_empty() => {
                    let which = which % out.len();
                    let (permit, mark, held) = &mut out[which];
                    let part = permit.split(cost);
                    prop_assert_eq!(part.is_some(), cost <= *held);
                    if let Some(part) = part {
                        *held -= cost;
                        let mark = *mark;
                        out.push((part, mark, cost));
                    }
                }
                Operation::Merge { into, which } if out.len() > 1 => {
                    let (other, _, cost) = out.swap_remove(which % out.len());
                    let into = into % out.len();
                    let (permit, _, held) = &mut out[into];
                    prop_assert!(permit.merge(other).is_ok());
                    *held += cost;
                }
                Operation::Release { .. } | Operation::Split { .. } | Operation::Merge { .. } => {}
            }
            let in_use: u64 = out.iter().map(|(_, _, cost)| cost).sum();
            prop_assert_eq!(pair(limiter.usage()), (in_use as u32, limit as u32));
            prop_assert_eq!((limiter.in_use(), limiter.limit()), (in_use as u32, limit as u32));
            let inspection: Inspection = limiter.inspect();
            prop_assert_eq!((inspection.level, inspection.capacity), (limit.saturating_sub(in_use), limit));
            for (permit, _, cost) in &out {
                prop_assert_eq!(permit.cost(), *cost);
            }
            prop_assert_eq!(&*limiter.observer().entries.borrow(), &told);
        }
        out.clear();
        prop_assert_eq!(limiter.in_use(), 0);
    }
}

#[test]
fn c17_two_in_flight_compose_with_a_bucket() {
    let in_flight = ConcurrencyLimit::new(2);
    let bucket = TokenBucket::with_clock(quota!("3/1s"), ManualClock::new());
    let enter = || -> Result<_, Denied> {
        let permit = in_flight.try_acquire(1)?;
        match bucket.try_acquire(1) {
            Ok(_) => Ok(permit),
            Err(denied) => {
                permit.ignore();
                Err(denied)
            }
        }
    };
    let (first, second) = (enter().unwrap(), enter().unwrap());
    // Refused by the permit: the bucket is not touched.
    let state = bucket.state();
    assert_eq!(enter().unwrap_err(), Denied::ConcurrencyLimited);
    assert_eq!((bucket.state(), bucket.inspect().level), (state, 1));
    first.success();
    drop(second);
    let third = enter().unwrap();
    // Refused by the bucket: the permit is as it was.
    let retry_after = Duration::from_nanos(333_333_334);
    assert_eq!(enter().unwrap_err(), Denied::RateLimited { retry_after });
    assert_eq!(in_flight.in_use(), 1);
    bucket.clock().advance(retry_after);
    let fourth = enter().unwrap();
    assert_eq!(in_flight.in_use(), 2);
    drop((third, fourth));
    assert_eq!(in_flight.in_use(), 0);
}

#[test]
fn c17_three_at_a_time_drain_a_queue_of_ten() {
    let limiter = ConcurrencyLimit::new(3);
    let (mut waiting, mut running, mut most) = (10, Vec::new(), 0);
    while waiting > 0 || !running.is_empty() {
        while waiting > 0 {
            let Ok(permit) = limiter.try_acquire(1) else { break };
            running.push(permit);
            waiting -= 1;
        }
        most = most.max(running.len());
        running.remove(0).success();
    }
    assert_eq!((most, limiter.in_use()), (3, 0));
}

#[test]
fn a_lowered_limit_drains_exactly() {
    let limiter = ConcurrencyLimit::new(5);
    let mut out: Vec<_> = (0..5).map(|_| limiter.try_acquire(1).unwrap()).collect();
    limiter.set_limit(3);
    assert_eq!(limiter.usage().free(), 0);
    // 5, 4 and 3 in use of 3: nothing passes. 2 in use: one does.
    for in_use in [5, 4, 3] {
        assert_eq!(limiter.in_use(), in_use);
        assert_eq!(limiter.try_acquire(1).unwrap_err(), Denied::ConcurrencyLimited);
        assert_eq!(limiter.try_acquire(4).unwrap_err(), Denied::CostExceedsLimit { cost: 4, limit: 3 });
        out.pop();
    }
    assert_eq!(limiter.try_acquire(2).unwrap_err(), Denied::ConcurrencyLimited);
    let last = limiter.try_acquire(1).unwrap();
    limiter.set_limit(0);
    assert_eq!(limiter.try_acquire(0).unwrap_err(), Denied::Closed);
    drop((out, last));
    assert_eq!((limiter.in_use(), limiter.inspect().level), (0, 0));
    limiter.set_limit(u32::MAX);
    let all = limiter.try_acquire(u32::MAX.into()).unwrap();
    assert_eq!(limiter.try_acquire(1).unwrap_err(), Denied::ConcurrencyLimited);
    assert_eq!(limiter.limit(), u32::MAX, "nothing was carried over");
    drop(all);
    assert_eq!(pair(limiter.usage()), (0, u32::MAX), "nothing was borrowed");
}

#[test]
fn a_panic_under_a_permit_gives_it_back() {
    let limiter = Arc::new(ConcurrencyLimit::new(4));
    let panicked = catch_unwind(|| {
        let _held = limiter.try_acquire(1).unwrap();
        let mut owned = limiter.try_acquire_owned(3).unwrap();
        let _part = owned.split(2).unwrap();
        panic!("the caller's own");
    });
    assert!(panicked.is_err());
    assert_eq!(limiter.in_use(), 0);
}

#[test]
fn a_panic_in_an_observer_loses_no_permit() {
    struct Panics;
    impl PermitObserver for Panics {
        type Mark = ();
        fn acquired(&self, _cost: u64, _usage: Usage) {
            panic!("the observer's own");
        }
        fn released(&self, (): &(), _cost: u64, _outcome: Outcome, _usage: Usage) {
            panic!("there is no permit");
        }
    }
    let limiter = ConcurrencyLimit::new(4).observed_by(Panics);
    assert!(catch_unwind(AssertUnwindSafe(|| limiter.try_acquire(3).map(drop))).is_err());
    assert_eq!(limiter.in_use(), 0);
}

#[test]
fn a_panic_in_a_clone_splits_nothing() {
    #[derive(Debug)]
    struct Mark;
    impl Clone for Mark {
        fn clone(&self) -> Self {
            panic!("the mark's own");
        }
    }
    struct Marks;
    impl PermitObserver for Marks {
        type Mark = Mark;
        fn acquired(&self, _cost: u64, _usage: Usage) -> Mark {
            Mark
        }
        fn released(&self, _mark: &Mark, _cost: u64, _outcome: Outcome, _usage: Usage) {}
    }
    let limiter = ConcurrencyLimit::new(4).observed_by(Marks);
    let mut permit = limiter.try_acquire(3).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| permit.split(1).map(drop))).is_err());
    assert_eq!((permit.cost(), limiter.in_use()), (3, 3));
}

#[test]
fn a_permit_that_is_leaked_stays_in_use_and_raising_the_limit_makes_up_for_it() {
    let limiter = ConcurrencyLimit::new(1);
    core::mem::forget(limiter.try_acquire(1).unwrap());
    assert_eq!(limiter.try_acquire(1).unwrap_err(), Denied::ConcurrencyLimited);
    limiter.set_limit(2);
    assert!(limiter.try_acquire(1).is_ok());
}

#[test]
fn permits_of_two_limits_do_not_merge() {
    let (one, other) = (ConcurrencyLimit::new(2), ConcurrencyLimit::new(2));
    let (mut permit, foreign) = (one.try_acquire(1).unwrap(), other.try_acquire(2).unwrap());
    let foreign = permit.merge(foreign).unwrap_err();
    assert_eq!((permit.cost(), foreign.cost()), (1, 2));
    drop((permit, foreign));
    assert_eq!((one.in_use(), other.in_use()), (0, 0));
}

#[test]
fn a_permit_outlives_the_last_handle_of_its_limit() {
    let limiter = Arc::new(ConcurrencyLimit::new(2));
    let permit = limiter.try_acquire_owned(2).unwrap();
    let weak = Arc::downgrade(&limiter);
    drop(limiter);
    assert_eq!(permit.limit().in_use(), 2);
    drop(permit);
    assert!(weak.upgrade().is_none(), "a permit keeps nothing alive after its end");
}

#[test]
fn a_limit_is_small_and_constant() {
    static LIMIT: ConcurrencyLimit = ConcurrencyLimit::new(1);
    let permit = LIMIT.try_acquire(1).unwrap();
    assert!(LIMIT.try_acquire(1).is_err());
    permit.success();
    assert_eq!(size_of::<ConcurrencyLimit>(), 8);
    assert!(size_of::<Permit<&ConcurrencyLimit>>() <= 16);
}

#[test]
fn racing_threads_are_never_more_than_the_limit() {
    let limiter = Arc::new(ConcurrencyLimit::new(3));
    let inside = AtomicU32::new(0);
    let admitted: u64 = race(8, |index| {
        let mut numbers = Numbers(index as u64);
        let mut admitted = 0;
        for _ in 0..20_000 {
            let cost = 1 + numbers.below(3);
            let Ok(mut permit) = limiter.try_acquire_owned(cost) else { continue };
            let now_inside = inside.fetch_add(cost as u32, Ordering::SeqCst) + cost as u32;
            assert!(now_inside <= 3, "{now_inside} of 3");
            admitted += 1;
            if numbers.below(4) == 0 {
                std::thread::yield_now();
            }
            let part = permit.split(1).unwrap();
            inside.fetch_sub(cost as u32, Ordering::SeqCst);
            drop((part, permit));
        }
        admitted
    })
    .into_iter()
    .sum();
    assert!(admitted > 8);
    assert_eq!(pair(limiter.usage()), (0, 3));
}

#[test]
fn racing_threads_keep_to_a_limit_that_moves() {
    let limiter = ConcurrencyLimit::new(6);
    race(6, |index| {
        let mut numbers = Numbers(index as u64);
        for round in 0..20_000 {
            if index == 0 {
                let usage = limiter.set_limit(1 + numbers.below(6) as u32);
                assert!(usage.in_use <= 6, "{usage:?}");
            } else if let Ok(permit) = limiter.try_acquire(1 + numbers.below(2)) {
                assert!(limiter.in_use() >= permit.cost() as u32);
                if round % 3 == 0 { permit.success() } else { permit.ignore() }
            }
        }
    });
    assert_eq!(limiter.in_use(), 0);
    limiter.set_limit(2);
    assert!(limiter.try_acquire(2).is_ok(), "no permit was lost");
}

#[test]
fn no_release_is_lost_and_nothing_is_denied_while_it_is_free() {
    // Nothing between the calls, so that they meet as often as they can; each of four always has its unit.
    let limiter = ConcurrencyLimit::new(5);
    race(5, |index| {
        for round in 0..200_000 {
            if index == 4 {
                let usage = limiter.set_limit(4 + round % 2);
                assert!(usage.in_use <= 4, "{usage:?}");
            } else {
                limiter.try_acquire(1).unwrap_or_else(|denied| panic!("round {round}: {denied}")).success();
            }
        }
    });
    assert_eq!(limiter.in_use(), 0);
}
