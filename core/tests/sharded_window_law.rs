//! The sharded window against the law of exactness: a map from window to what was taken in it.

mod support;

use std::collections::HashMap;

use proptest::prelude::*;
use sluicegate_core::{
    Decision, Denied, Limit, Nanos, QuotaError, Rate, Remaining, WindowLimit, WindowState, WindowStep, quota,
};
use support::{AnyWindow, SHARDS, Wandering, cases, magnitude, period, sharded, window_limit};

#[derive(Clone, Debug)]
enum Move {
    Stall,
    Ahead(u64),
    Back(u64),
    /// So many windows ahead, or back, and to this part of it in 2^16ths.
    Windows(i8, u16),
    /// To the last reading of this window, or the first of the next.
    Boundary(bool),
    To(u64),
}

#[derive(Clone, Debug)]
enum Cost {
    Units(u64),
    /// What is free, and some more or less.
    Free(i8),
    /// What one shard may count, and some more or less.
    Slice(i8),
    /// The limit, and some more or less.
    Limit(i8),
}

#[derive(Clone, Debug)]
enum Operation {
    Acquire(Cost),
    /// Gives back so many 16ths of the admission with this index.
    Refund(prop::sample::Index, u8),
    /// Gives back what was never taken, or not then.
    Stray(u64, Cost),
}

fn moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        8 => Just(Move::Stall),
        2 => (0..1_u64 << 60, 0..60_u32).prop_map(|(span, shift)| Move::Ahead(span >> shift)),
        2 => (0..1_u64 << 60, 0..60_u32).prop_map(|(span, shift)| Move::Back(span >> shift)),
        3 => (-2..=3_i8, any::<u16>()).prop_map(|(windows, part)| Move::Windows(windows, part)),
        2 => any::<bool>().prop_map(Move::Boundary),
        1 => prop::sample::select(vec![0, 946_728_000_000_000_000_u64, u64::MAX])
            .prop_flat_map(|about| (-2..=2_i64).prop_map(move |off| Move::To(about.saturating_add_signed(off)))),
    ]
}

fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        4 => (0..4_u64).prop_map(Cost::Units),
        1 => magnitude().prop_map(Cost::Units),
        3 => (-1..=1_i8).prop_map(Cost::Free),
        3 => (-1..=2_i8).prop_map(Cost::Slice),
        2 => (-1..=1_i8).prop_map(Cost::Limit),
        1 => Just(Cost::Units(u64::MAX)),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => cost().prop_map(Operation::Acquire),
        2 => (any::<prop::sample::Index>(), 1..=17_u8).prop_map(|(which, part)| Operation::Refund(which, part)),
        1 => (0..1_u64 << 60, cost()).prop_map(|(at, cost)| Operation::Stray(at, cost)),
    ]
}

/// A limit and a width that fit into a word together.
fn limits() -> impl Strategy<Value = (u64, u64)> {
    let limit = prop_oneof![3 => 1..=40_u64, 1 => magnitude()];
    (limit, period()).prop_map(|(limit, width)| {
        match WindowStep::new(Rate::new(limit, core::time::Duration::from_nanos(width)).unwrap()) {
            Ok(_) => (limit, width),
            Err(QuotaError::WindowTooShort { shortest, .. }) => (limit, shortest),
            Err(error) => panic!("{error}"),
        }
    })
}

/// What the law says of one limit, whatever the shards.
struct Model {
    limit: u64,
    width: u64,
    /// What is counted in each window.
    taken: HashMap<u64, u64>,
    /// The latest window in which something was taken.
    latest: u64,
}

impl Model {
    fn window(&self, now: Nanos) -> u64 {
        now.min(Nanos::HORIZON).as_u64() / self.width
    }

    /// The window that a caller counts in when its own is spent, and what is free there.
    fn met(&self, now: Nanos) -> (u64, u64) {
        let window = self.window(now).max(self.latest);
        (window, self.limit - self.taken.get(&window).copied().unwrap_or(0))
    }

    fn check(&mut self, now: Nanos, cost: u64, decision: Decision) -> Result<Option<u64>, TestCaseError> {
        let (met, free) = self.met(now);
        match decision {
            Ok(admitted) => {
                let window = self.window(admitted.at);
                if admitted.at != now {
                    prop_assert_eq!(admitted.at.as_u64(), window * self.width, "a later window's start");
                    prop_assert!(window > self.window(now));
                }
                prop_assert!((self.window(now)..=met).contains(&window), "window {} at {}", window, now);
                if cost > 0 {
                    let taken = self.taken.entry(window).or_default();
                    prop_assert!(cost <= self.limit - *taken, "{} of {} in window {}", cost, taken, window);
                    *taken += cost;
                    self.latest = self.latest.max(window);
                }
                Ok(Some(window))
            }
            Err(Denied::CostExceedsLimit { cost: asked, limit }) => {
                prop_assert!((asked, limit) == (cost, self.limit) && cost > limit);
                Ok(None)
            }
            Err(Denied::RateLimited { retry_after }) => {
                prop_assert!(cost <= self.limit);
                prop_assert!(cost > free, "denied {} of {}", cost, free);
                let end = (u128::from(met) + 1) * u128::from(self.width);
                let now = now.min(Nanos::HORIZON).as_u64();
                prop_assert_eq!(retry_after.as_nanos(), end - u128::from(now));
                Ok(None)
            }
            Err(other) => Err(TestCaseError::fail(format!("{other:?}"))),
        }
    }

    /// What is given back where it is still counted; `None` where shards that have moved on may have forgotten it.
    fn give_back(&mut self, window: u64, cost: u64) {
        if let Some(taken) = self.taken.get_mut(&window) {
            // In an earlier window the model then allows a late caller what the shards may not have: never more.
            *taken = taken.saturating_sub(cost);
        }
    }
}

struct Bench {
    window: Box<dyn AnyWindow>,
    model: Model,
    now: Nanos,
    /// Readings and costs of what was admitted and is not given back.
    admitted: Vec<(Nanos, u64)>,
}

impl Bench {
    fn new((limit, width): (u64, u64), shards: usize) -> Self {
        Self {
            window: sharded(window_limit(limit, width), shards, Wandering),
            model: Model { limit, width, taken: HashMap::new(), latest: 0 },
            now: Nanos::ZERO,
            admitted: Vec::new(),
        }
    }

    fn go(&mut self, to: &Move) {
        let (now, width) = (self.now.as_u64(), self.model.width);
        self.now = Nanos::new(match *to {
            Move::Stall => now,
            Move::Ahead(span) => now.saturating_add(span),
            Move::Back(span) => now.saturating_sub(span),
            Move::Windows(windows, part) => (now / width)
                .saturating_add_signed(windows.into())
                .saturating_mul(width)
                .saturating_add(((u128::from(width) * u128::from(part)) >> 16) as u64),
            Move::Boundary(next) => {
                (now / width).saturating_add(1).saturating_mul(width).saturating_sub(u64::from(!next))
            }
            Move::To(reading) => reading,
        });
    }

    fn cost(&self, cost: &Cost) -> u64 {
        match *cost {
            Cost::Units(units) => units,
            Cost::Free(off) => self.model.met(self.now).1.saturating_add_signed(off.into()),
            Cost::Slice(off) => self.window.caps()[0].saturating_add_signed(off.into()),
            Cost::Limit(off) => self.model.limit.saturating_add_signed(off.into()),
        }
    }

    fn run(&mut self, operation: &Operation) -> Result<(), TestCaseError> {
        match operation {
            Operation::Acquire(cost) => {
                let (now, cost) = (self.now, self.cost(cost));
                let peeked = self.window.peek_at(now, cost);
                let decision = self.window.try_acquire_at(now, cost);
                if self.model.window(now) >= self.model.latest {
                    prop_assert_eq!(peeked.is_ok(), decision.is_ok());
                    prop_assert_eq!(peeked.err(), decision.err());
                }
                if let Ok(admitted) = decision {
                    self.check_remaining(admitted.remaining)?;
                    self.admitted.push((admitted.at, cost));
                }
                self.model.check(now, cost, decision)?;
                if let Err(Denied::RateLimited { retry_after }) = decision {
                    let hinted = now.min(Nanos::HORIZON) + retry_after;
                    if hinted <= Nanos::HORIZON {
                        prop_assert!(self.window.peek_at(hinted, cost).is_ok());
                        let early = Nanos::new(hinted.as_u64() - 1);
                        prop_assert!(self.window.peek_at(early, cost).is_err());
                    }
                }
            }
            Operation::Refund(which, sixteenths) if !self.admitted.is_empty() => {
                let (at, cost) = self.admitted.swap_remove(which.index(self.admitted.len()));
                let back = (u128::from(cost) * u128::from(*sixteenths) / 16).min(u128::from(u64::MAX)) as u64;
                self.window.refund(at, back);
                self.model.give_back(self.model.window(at), back);
            }
            Operation::Refund(..) => {}
            Operation::Stray(at, cost) => {
                let (at, cost) = (Nanos::new(*at), self.cost(cost));
                self.window.refund(at, cost);
                self.model.give_back(self.model.window(at), cost);
            }
        }
        let (window, free) = self.model.met(self.now);
        let inspection = self.window.inspect_at(self.now);
        prop_assert_eq!((inspection.level, inspection.capacity), (free, self.model.limit), "in window {}", window);
        Ok(())
    }

    fn check_remaining(&self, remaining: Remaining) -> Result<(), TestCaseError> {
        let free = self.window.inspect_at(self.now).level;
        match remaining {
            Remaining::Exactly(left) => prop_assert!(self.window.shard_count() == 1 && left <= self.model.limit),
            Remaining::AtLeast(left) => prop_assert!(self.window.shard_count() > 1 && left <= self.model.limit),
            Remaining::Unlimited => prop_assert!(false),
        }
        if self.model.window(self.now) >= self.model.latest {
            prop_assert!(remaining.at_least() <= free);
            prop_assert!(remaining.exactly().is_none_or(|left| left == free));
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn admits_and_denies_as_the_map_of_windows(
        limits in limits(),
        shards in SHARDS,
        operations in prop::collection::vec((moves(), 0..20_usize, operation()), 1..60),
    ) {
        let mut bench = Bench::new(limits, shards);
        for (to, shard, operation) in &operations {
            bench.go(to);
            Wandering::go_to(*shard);
            bench.run(operation)?;
        }
        prop_assert_eq!(bench.window.shard_count(), shards);
    }

    #[test]
    fn one_shard_and_the_pure_step_agree(
        limits in limits(),
        operations in prop::collection::vec((moves(), operation()), 1..60),
    ) {
        let mut bench = Bench::new(limits, 1);
        let rate = Rate::new(limits.0, core::time::Duration::from_nanos(limits.1)).unwrap();
        let step = WindowStep::new(rate).unwrap();
        let mut state = WindowState::UNUSED;
        for (to, operation) in &operations {
            bench.go(to);
            let now = bench.now;
            match operation {
                Operation::Acquire(cost) => {
                    let cost = bench.cost(cost);
                    let (next, decision) = step.try_acquire(state, now, cost);
                    prop_assert!(decision.is_ok() || next == state, "a denial writes nothing");
                    prop_assert_eq!(bench.window.peek_at(now, cost), decision);
                    prop_assert_eq!(bench.window.try_acquire_at(now, cost), decision);
                    state = next;
                    if let Ok(admitted) = decision {
                        bench.admitted.push((admitted.at, cost));
                    }
                    bench.model.check(now, cost, decision)?;
                }
                Operation::Refund(which, _) if !bench.admitted.is_empty() => {
                    let (at, cost) = bench.admitted.swap_remove(which.index(bench.admitted.len()));
                    state = step.refund(state, at, cost);
                    bench.window.refund(at, cost);
                    bench.model.give_back(bench.model.window(at), cost);
                }
                Operation::Refund(..) => {}
                Operation::Stray(at, cost) => {
                    let (at, cost) = (Nanos::new(*at), bench.cost(cost));
                    state = step.refund(state, at, cost);
                    bench.window.refund(at, cost);
                    bench.model.give_back(bench.model.window(at), cost);
                }
            }
            let inspection = step.inspect(state, now);
            prop_assert_eq!(bench.window.inspect_at(now), inspection);
            prop_assert_eq!(step.is_unused(state, now), inspection.level == inspection.capacity
                && bench.model.latest <= bench.model.window(now));
        }
    }

    #[test]
    fn caps_share_the_limit_out_evenly(limits in limits(), shards in SHARDS) {
        let window = sharded(window_limit(limits.0, limits.1), shards, Wandering);
        let caps = window.caps();
        prop_assert_eq!(caps.len(), shards);
        prop_assert_eq!(caps.iter().map(|&cap| u128::from(cap)).sum::<u128>(), u128::from(limits.0));
        prop_assert!(caps[0] - caps[shards - 1] <= 1);
        prop_assert!(caps.is_sorted_by(|low, high| low >= high), "the remainder lies on the low shards: {:?}", caps);
    }

    #[test]
    fn one_caller_spends_any_limit(
        limit in 1..200_u64,
        shards in SHARDS,
        shard in 0..40_usize,
        window in 0..1_000_000_u64,
        costs in prop::collection::vec(1..200_u64, 1..300),
    ) {
        let width = 1_000_000;
        let now = Nanos::new(window * width + 17);
        let sluice = sharded(window_limit(limit, width), shards, Wandering);
        Wandering::go_to(shard);
        let mut free = limit;
        for cost in costs {
            let decision = sluice.try_acquire_at(now, cost);
            prop_assert_eq!(decision.is_ok(), cost <= free, "{} of {}", cost, free);
            if decision.is_ok() {
                free -= cost;
            }
        }
        for _ in 0..free {
            prop_assert!(sluice.try_acquire_at(now, 1).is_ok());
        }
        prop_assert!(sluice.try_acquire_at(now, 1).is_err());
        prop_assert_eq!(sluice.inspect_at(now).level, 0);
    }

    #[test]
    fn the_start_of_a_window_is_a_multiple_of_its_width(limits in limits(), reading in any::<u64>()) {
        let step = WindowStep::new(Rate::new(limits.0, core::time::Duration::from_nanos(limits.1)).unwrap()).unwrap();
        let (now, width) = (Nanos::new(reading).min(Nanos::HORIZON), limits.1);
        let start = step.start_of(Nanos::new(reading));
        prop_assert_eq!(start.as_u64() % width, 0);
        prop_assert!(start <= now && now.as_u64() - start.as_u64() < width);
    }

    #[test]
    fn any_word_is_a_state(limits in limits(), bits in any::<u64>(), reading in any::<u64>(), cost in magnitude()) {
        let step = WindowStep::new(Rate::new(limits.0, core::time::Duration::from_nanos(limits.1)).unwrap()).unwrap();
        let (state, now) = (WindowState::from_bits(bits), Nanos::new(reading));
        let (after, decision) = step.try_acquire(state, now, cost);
        prop_assert!(step.inspect(after, now).level <= limits.0);
        prop_assert!(step.inspect(step.refund(after, now, cost), now).level <= limits.0);
        prop_assert!(decision.is_ok() || after == state);
        prop_assert_eq!(after.to_bits(), WindowState::from_bits(after.to_bits()).to_bits());
    }
}

#[test]
fn what_is_given_back_to_a_window_that_has_passed_is_gone() {
    for shards in SHARDS {
        let window = sharded(window_limit(10, 1_000), shards, Wandering);
        let old = window.try_acquire_at(Nanos::new(999), 10).unwrap();
        assert!(window.try_acquire_at(Nanos::new(1_000), 7).is_ok());
        window.refund(old.at, 10);
        assert_eq!(window.inspect_at(Nanos::new(1_000)).level, 3);
        assert!(window.try_acquire_at(Nanos::new(1_999), 4).is_err());
        assert!(window.try_acquire_at(Nanos::new(1_999), 3).is_ok());
    }
}

#[test]
fn a_late_admission_is_given_back_where_it_was_counted() {
    for shards in SHARDS {
        let window = sharded(window_limit(10, 1_000), shards, Wandering);
        assert!(window.try_acquire_at(Nanos::new(1_500), 10).is_ok());
        window.refund(Nanos::new(1_500), 4);
        // Every shard is in window 1, so a reading of window 0 counts there too.
        let late = window.try_acquire_at(Nanos::new(500), 4).unwrap();
        assert_eq!(late.at, Nanos::new(1_000));
        window.refund(late.at, 4);
        assert_eq!(window.inspect_at(Nanos::new(1_500)).level, 4);
    }
}

#[test]
fn off_and_deny_need_no_shards() {
    let off = sharded(WindowLimit::new(Limit::Unlimited).unwrap(), 3, Wandering);
    let admitted = off.try_acquire(u64::MAX).unwrap();
    assert_eq!((admitted.remaining, admitted.at), (Remaining::Unlimited, Nanos::ZERO));
    off.refund(admitted.at, u64::MAX);
    assert_eq!(off.inspect_at(Nanos::MAX).level, u64::MAX);
    assert_eq!(off.caps(), []);

    let deny = sharded(WindowLimit::new(Limit::DenyAll).unwrap(), 3, Wandering);
    for cost in [0, 1, u64::MAX] {
        assert_eq!(deny.try_acquire(cost), Err(Denied::Closed));
        assert_eq!(deny.peek_at(Nanos::ZERO, cost), Err(Denied::Closed));
    }
    deny.refund(Nanos::ZERO, 5);
    assert_eq!(deny.inspect_at(Nanos::ZERO).level, 0);
}

#[test]
fn a_window_takes_no_burst_of_its_own() {
    assert_eq!(WindowLimit::try_from(quota!("10/1m burst 20")), Err(QuotaError::BurstOnWindow { burst: 20 }));
    assert_eq!(WindowLimit::try_from(quota!("10/1m burst 10")), Ok(window_limit(10, 60_000_000_000)));
    assert_eq!(window_limit(10, 60_000_000_000).to_string(), "10/1m");
}
