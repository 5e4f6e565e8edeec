//! The sliding counter against its formula in rationals, and against the true sliding log for its error bound.

mod support;

use core::time::Duration;
use std::collections::HashMap;

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;
use sluicegate_core::{
    Denied, Limit, Limiter, ManualClock, Nanos, QuotaError, Rate, Remaining, SlidingCounter, SlidingCounterCell,
    SlidingCounterState, SlidingCounterStep, WindowLimit,
};
use support::{Numbers, cases, period, race};

/// What was taken in each window, for ever; and the estimate as it is written in books.
struct Oracle {
    limit: u64,
    window: u64,
    taken: HashMap<u64, u64>,
    /// The latest window in which something was taken.
    latest: u64,
}

impl Oracle {
    fn new(rate: Rate) -> Self {
        Self { limit: rate.tokens(), window: rate.period_nanos(), taken: HashMap::new(), latest: 0 }
    }

    fn in_window(&self, number: u64) -> u64 {
        self.taken.get(&number).copied().unwrap_or(0)
    }

    /// The window that a reading is taken in, and how far into it.
    fn place(&self, reading: u128) -> (u64, u128) {
        let number = reading / u128::from(self.window);
        if number < self.latest.into() {
            return (self.latest, 0);
        }
        (number.try_into().unwrap(), reading % u128::from(self.window))
    }

    fn estimate(&self, reading: u128) -> BigRational {
        let (number, elapsed) = self.place(reading);
        let previous = number.checked_sub(1).map_or(0, |before| self.in_window(before));
        let (window, elapsed) = (BigInt::from(self.window), BigInt::from(elapsed));
        let share = BigRational::new(&window - elapsed, window);
        share * BigInt::from(previous) + BigInt::from(self.in_window(number))
    }

    fn admits(&self, reading: u128, cost: u64) -> bool {
        cost == 0 || self.estimate(reading) + BigInt::from(cost) <= BigInt::from(self.limit).into()
    }

    /// The first reading from `now` on at which `cost` is admitted, by halving: admission is monotone.
    fn first_admission(&self, now: u128, cost: u64) -> u128 {
        let (mut early, mut late) = (now, (u128::from(self.place(now).0) + 2) * u128::from(self.window));
        assert!(!self.admits(early, cost) && self.admits(late, cost));
        while late - early > 1 {
            let middle = early + (late - early) / 2;
            if self.admits(middle, cost) {
                late = middle;
            } else {
                early = middle;
            }
        }
        late
    }

    fn take(&mut self, reading: u128, cost: u64) {
        let number = self.place(reading).0;
        *self.taken.entry(number).or_default() += cost;
        self.latest = number;
    }

    fn give_back(&mut self, taken_at: u64, cost: u64) {
        if let Some(taken) = self.taken.get_mut(&(taken_at / self.window)) {
            *taken -= cost.min(*taken);
        }
    }
}

#[derive(Clone, Debug)]
enum Operation {
    /// A cost in thousandths of the limit, and as it is.
    AcquireShare(u64),
    Acquire(u64),
    /// By thousandths of a window, and by nanoseconds.
    AdvanceShare(u64),
    Advance(u64),
    StepBack(u64),
    /// To the reading that the latest denial named.
    GoToHint,
    Refund {
        which: usize,
        cost: u64,
    },
    Stray {
        taken_at: u64,
        cost: u64,
    },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (0..1_050_u64).prop_map(Operation::AcquireShare),
        3 => (0..6_u64).prop_map(Operation::Acquire),
        3 => (0..1_000_u64).prop_map(Operation::AdvanceShare),
        1 => (0..3_000_u64).prop_map(Operation::AdvanceShare),
        1 => (0..5_u64).prop_map(Operation::Advance),
        1 => (0..2_500_u64).prop_map(Operation::StepBack),
        2 => Just(Operation::GoToHint),
        1 => (any::<usize>(), 0..9_u64).prop_map(|(which, cost)| Operation::Refund { which, cost }),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(taken_at, cost)| Operation::Stray { taken_at, cost }),
    ]
}

/// Every window, and every limit that goes with it.
fn rate() -> impl Strategy<Value = Rate> {
    (prop_oneof![4 => period(), 1 => 1..40_u64], 0..64_u32, any::<u64>()).prop_map(|(window, shift, tokens)| {
        let tokens = if shift == 63 { u64::MAX } else { (tokens >> shift) % largest(window) };
        Rate::new(tokens.clamp(1, largest(window)), Duration::from_nanos(window)).unwrap()
    })
}

fn largest(window: u64) -> u64 {
    match SlidingCounterStep::new(Rate::new(u64::MAX, Duration::from_nanos(window)).unwrap()) {
        Err(QuotaError::LimitAboveCounter { largest, .. }) => largest,
        other => panic!("no limit is too large: {other:?}"),
    }
}

proptest! {
    #![proptest_config(cases(384))]

    #[test]
    fn every_decision_is_that_of_the_formula_in_rationals(
        rate in rate(),
        start in prop_oneof![Just(0), Just(Nanos::HORIZON.as_u64() - 10), 0..Nanos::HORIZON.as_u64()],
        operations in prop::collection::vec(operation(), 1..50),
    ) {
        let step = SlidingCounterStep::new(rate).unwrap();
        let (limit, window) = (rate.tokens(), rate.period_nanos());
        let cell = SlidingCounterCell::new();
        let mut state = SlidingCounterState::UNUSED;
        let mut oracle = Oracle::new(rate);
        let mut admissions: Vec<(u64, u64)> = Vec::new();
        let (mut now, mut hinted) = (start, start);
        let share = |thousandths: u64| (u128::from(window) * u128::from(thousandths) / 1_000) as u64;
        for operation in operations {
            let cost = match operation {
                Operation::AcquireShare(share) => (u128::from(limit) * u128::from(share) / 1_000) as u64,
                Operation::Acquire(cost) => cost,
                Operation::AdvanceShare(by) => { now = now.saturating_add(share(by)); continue }
                Operation::Advance(by) => { now = now.saturating_add(by); continue }
                Operation::StepBack(by) => { now = now.saturating_sub(share(by)); continue }
                Operation::GoToHint => { now = hinted; continue }
                Operation::Refund { which, cost } => {
                    if !admissions.is_empty() {
                        let at = admissions[which % admissions.len()].0;
                        oracle.give_back(at, cost);
                        state = step.refund(state, Nanos::new(at), cost);
                        cell.refund(&step, Nanos::new(at), cost);
                    }
                    continue;
                }
                Operation::Stray { taken_at, cost } => {
                    oracle.give_back(taken_at.min(Nanos::HORIZON.as_u64()), cost);
                    state = step.refund(state, Nanos::new(taken_at), cost);
                    cell.refund(&step, Nanos::new(taken_at), cost);
                    continue;
                }
            };
            let at = Nanos::new(now);
            let seen = u128::from(now.min(Nanos::HORIZON.as_u64()));
            let before = state;
            let inspected = step.inspect(state, at);
            let (after, decision) = step.try_acquire(state, at, cost);
            prop_assert_eq!(cell.peek(&step, at, cost), decision);
            prop_assert_eq!(cell.try_acquire(&step, at, cost), decision);
            prop_assert_eq!(cell.state(), after);
            state = after;

            let free = BigRational::from(BigInt::from(limit)) - oracle.estimate(seen);
            let free = u64::try_from(free.floor().to_integer().max(BigInt::ZERO)).unwrap();
            prop_assert_eq!((inspected.level, inspected.capacity), (free, limit));
            let counted = oracle.estimate(seen) > BigRational::from(BigInt::ZERO) || oracle.place(seen).0 > (seen / u128::from(window)) as u64;
            prop_assert_eq!(step.is_unused(before, at), !counted);
            match decision {
                Ok(admitted) => {
                    prop_assert!(oracle.admits(seen, cost));
                    prop_assert_eq!(admitted.remaining, Remaining::Exactly(free.saturating_sub(cost)));
                    let (number, _) = oracle.place(seen);
                    let start = number * window;
                    prop_assert_eq!(admitted.at, Nanos::new(now.max(start)));
                    if cost > 0 {
                        oracle.take(seen, cost);
                        admissions.push((admitted.at.min(Nanos::HORIZON).as_u64(), cost));
                    } else {
                        prop_assert_eq!(state, before);
                    }
                }
                Err(denied) => {
                    prop_assert_eq!(state, before, "a denial writes nothing");
                    if cost > limit {
                        prop_assert_eq!(denied, Denied::CostExceedsLimit { cost, limit });
                        continue;
                    }
                    prop_assert!(!oracle.admits(seen, cost));
                    let first = oracle.first_admission(seen, cost);
                    prop_assert_eq!(denied.retry_after().unwrap().as_nanos(), first - seen);
                    if first <= Nanos::HORIZON.as_u64().into() {
                        hinted = first as u64;
                        prop_assert!(step.try_acquire(state, Nanos::new(hinted), cost).1.is_ok());
                        prop_assert!(step.try_acquire(state, Nanos::new(hinted - 1), cost).1.is_err());
                    }
                }
            }
        }
    }

    /// The bound that the documentation proves, both ways, beside a log of what was admitted.
    #[test]
    fn the_estimate_is_off_by_no_more_than_its_bound(
        limit in 1..30_u64,
        window in 1..60_u64,
        start in 0..200_u64,
        requests in prop::collection::vec((0..25_u64, 0..4_u64, prop_oneof![3 => 1..3_u64, 1 => 1..40_u64]), 1..120),
    ) {
        let limit = limit.min(largest(window));
        let step = SlidingCounterStep::new(Rate::new(limit, Duration::from_nanos(window)).unwrap()).unwrap();
        let mut state = SlidingCounterState::UNUSED;
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        let mut now = start;
        for (advance, late, cost) in requests {
            // Mostly in order, sometimes late by up to three windows.
            now += advance;
            let at = if advance == 24 { now.saturating_sub(late * window) } else { now };
            let (next, decision) = step.try_acquire(state, Nanos::new(at), cost);
            state = next;
            match decision {
                Ok(answer) => admitted.push((answer.at.as_u64(), cost)),
                Err(Denied::RateLimited { retry_after }) if at == now => {
                    let sum = |counts: &dyn Fn(u64) -> bool| -> u64 {
                        admitted.iter().filter(|(at, _)| counts(*at)).map(|(_, cost)| cost).sum()
                    };
                    // What the log counts is what was taken less than a window ago.
                    let in_log = sum(&|taken| taken + window > at);
                    let previous = sum(&|taken| taken / window + 1 == at / window);
                    let elapsed = at % window;
                    let unseen = in_log + (previous * (window - elapsed)).div_ceil(window);
                    prop_assert!(unseen + cost > limit, "more than the bound is taken for used");
                    // Never where the limit covers both windows.
                    prop_assert!(previous + sum(&|taken| taken / window == at / window) + cost > limit);
                    // The log has room at last a window after its latest record; the counter one window later at most.
                    let latest = admitted.iter().map(|(at, _)| *at).max().unwrap();
                    prop_assert!(u128::from(at) + retry_after.as_nanos() <= u128::from(latest + 2 * window));
                }
                Err(_) => {}
            }
        }
        let last = admitted.iter().map(|(at, _)| *at).max().unwrap_or(0);
        for from in start.saturating_sub(window)..=last {
            let inside = admitted.iter().filter(|(at, _)| (from..from + window).contains(at));
            let held: u64 = inside.map(|(_, cost)| cost).sum();
            // At most `limit * (1 + p/W)`, and a nanosecond less than p where there is one.
            let phase = from % window;
            prop_assert!(held <= limit + limit * phase.saturating_sub(1) / window, "{held} of {limit} from {from}");
            prop_assert!(held < 2 * limit);
        }
    }
}

#[test]
fn the_bound_is_reached() {
    const WINDOW: u64 = 1_000;
    let step = SlidingCounterStep::new(Rate::new(100, Duration::from_nanos(WINDOW)).unwrap()).unwrap();
    let mut worst = 0;
    for phase in 1..WINDOW {
        // All of the limit at the end of a window, and all that is let go before the interval ends.
        let (state, decision) = step.try_acquire(SlidingCounterState::UNUSED, Nanos::new(WINDOW - 1), 100);
        assert!(decision.is_ok());
        let last = Nanos::new(WINDOW + phase - 1);
        let free = step.inspect(state, last).level;
        assert_eq!(free, 100 * (phase - 1) / WINDOW);
        assert!(step.try_acquire(state, last, free).1.is_ok());
        assert!(last.as_u64() - phase == WINDOW - 1, "within one interval of one window's length");
        worst = worst.max(100 + free);
    }
    assert_eq!(worst, 199, "nearly twice, and never twice");
}

#[test]
fn it_may_deny_what_the_log_would_admit() {
    let step = SlidingCounterStep::new("10/1s".parse().unwrap()).unwrap();
    // All at the start of a window: a log has let all of it go a window later.
    let (state, decision) = step.try_acquire(SlidingCounterState::UNUSED, Nanos::ZERO, 10);
    assert!(decision.is_ok());
    assert_eq!(step.inspect(state, Nanos::from_secs(1)).level, 0);
    assert_eq!(step.inspect(state, Nanos::from_millis(1_750)).level, 7);
    assert_eq!(step.inspect(state, Nanos::new(1_999_999_999)).level, 9);
    assert_eq!(step.inspect(state, Nanos::from_secs(2)).level, 10);
    let (_, denied) = step.try_acquire(state, Nanos::ZERO, 10);
    assert_eq!(denied, Err(Denied::RateLimited { retry_after: Duration::from_secs(2) }));
}

#[test]
fn a_limit_that_does_not_fit_is_an_error_that_names_the_largest() {
    const SECOND: u64 = 1_000_000_000;
    for (window, largest) in [
        (1, 3),
        (1_000, (1 << 7) - 1),
        (SECOND, 131_071),
        (60 * SECOND, 1_048_575),
        (3_600 * SECOND, 4_194_303),
        (86_400 * SECOND, 33_554_431),
        (Nanos::HORIZON.as_u64(), (1 << 31) - 1),
        (Nanos::HORIZON.as_u64() + 1, u64::from(u32::MAX)),
        (u64::MAX, u64::from(u32::MAX)),
    ] {
        let rate = |limit| Rate::new(limit, Duration::from_nanos(window)).unwrap();
        let step = SlidingCounterStep::new(rate(largest)).unwrap();
        assert_eq!(step.rate(), rate(largest));
        for limit in [largest + 1, u64::MAX] {
            let error = SlidingCounterStep::new(rate(limit)).unwrap_err();
            assert_eq!(error, QuotaError::LimitAboveCounter { rate: rate(limit), largest });
            assert!(error.to_string().contains(&largest.to_string()), "{error}");
        }
        // The largest works in the first window, in the last one, and from one to the next.
        let horizon = Nanos::HORIZON.as_u64();
        for now in [0, (horizon / window).saturating_sub(1) * window, horizon] {
            let (state, decision) = step.try_acquire(SlidingCounterState::UNUSED, Nanos::new(now), largest);
            assert_eq!(decision.unwrap().remaining, Remaining::Exactly(0));
            assert!(step.try_acquire(state, Nanos::new(now), 1).1.is_err());
            let next = (now / window + 1).saturating_mul(window);
            if next <= horizon {
                assert!(step.try_acquire(state, Nanos::new(next), 1).1.is_err(), "all of it counts at {next}");
                let (state, decision) = step.try_acquire(state, Nanos::new(next + window / 2), largest / 2);
                assert_eq!(decision.is_ok(), window > 1 && next + window / 2 <= horizon || largest / 2 == 0);
                assert_eq!(step.refund(state, Nanos::new(now), largest), step.refund(state, Nanos::new(now), u64::MAX));
            }
        }
    }
}

#[test]
fn a_late_reading_neither_reopens_nor_resets() {
    let step = SlidingCounterStep::new("10/1s".parse().unwrap()).unwrap();
    let (state, _) = step.try_acquire(SlidingCounterState::UNUSED, Nanos::from_secs(5), 4);
    let (state, _) = step.try_acquire(state, Nanos::from_millis(6_500), 5);
    // 4 * 1/2 + 5 at the latest reading; at the window's start, which is what older readings count as, 4 + 5.
    assert_eq!(step.inspect(state, Nanos::from_millis(6_500)).level, 3);
    for late in [0, 4_999, 5_000, 5_999, 6_000] {
        assert_eq!(step.inspect(state, Nanos::from_millis(late)).level, 1, "{late}");
        let (_, decision) = step.try_acquire(state, Nanos::from_millis(late), 1);
        assert_eq!(decision.unwrap().at, Nanos::from_secs(6), "{late}");
        let retry_after = Duration::from_millis(6_250 - late);
        assert_eq!(step.try_acquire(state, Nanos::from_millis(late), 2).1, Err(Denied::RateLimited { retry_after }));
    }
}

#[test]
fn does_not_panic_on_absurd_states_readings_and_costs() {
    let mut numbers = Numbers(7);
    for text in ["1/1ns", "3/1ns", "131071/1s", "7/1m", "4294967295/18446744073709551615ns", "1/946728000000000000ns"] {
        let step = SlidingCounterStep::new(text.parse().unwrap()).unwrap();
        let limit = step.rate().tokens();
        for round in 0..2_000 {
            let bits = [0, u64::MAX, numbers.below(u64::MAX), numbers.below(1 << 40)][round % 4];
            let state = SlidingCounterState::from_bits(bits);
            let horizon = Nanos::HORIZON.as_u64();
            for now in [0, 1, horizon - 1, horizon, horizon + 1, u64::MAX, numbers.below(horizon)] {
                for cost in [0, 1, limit, limit + 1, u64::MAX] {
                    let (next, decision) = step.try_acquire(state, Nanos::new(now), cost);
                    match decision {
                        Ok(admitted) => assert!(cost <= limit && admitted.remaining.at_least() <= limit),
                        Err(Denied::RateLimited { retry_after }) => assert!(!retry_after.is_zero() && next == state),
                        Err(_) => assert!(cost > limit && next == state),
                    }
                    assert_eq!(cost == 0, cost == 0 && decision.is_ok());
                    let _ = (step.is_unused(state, Nanos::new(now)), step.inspect(state, Nanos::new(now)));
                    let returned = step.refund(state, Nanos::new(now), cost);
                    assert!(returned.to_bits() <= bits);
                }
            }
        }
    }
}

#[test]
fn c07_a_limiter_of_off_and_deny_counts_nothing_and_looking_changes_nothing() {
    let off = SlidingCounter::with_clock("off".parse().unwrap(), ManualClock::new()).unwrap();
    assert_eq!(off.try_acquire(u64::MAX).unwrap().remaining, Remaining::Unlimited);
    assert_eq!((off.inspect().level, off.peek(9).is_ok(), off.step()), (u64::MAX, true, None));
    let deny = SlidingCounter::with_clock(WindowLimit::new(Limit::DenyAll).unwrap(), ManualClock::new()).unwrap();
    assert_eq!(
        (deny.try_acquire(0), deny.peek(0), deny.inspect().capacity),
        (Err(Denied::Closed), Err(Denied::Closed), 0)
    );

    let counter = SlidingCounter::<ManualClock>::new("5/1s".parse().unwrap()).unwrap();
    let before = counter.state();
    for _ in 0..3 {
        assert_eq!((counter.inspect().level, counter.peek(5).is_ok(), counter.peek(6).is_err()), (5, true, true));
    }
    assert_eq!(counter.state(), before);
    let taken_at = counter.try_acquire(5).unwrap().at;
    assert_eq!(format!("{counter:?}"), "SlidingCounter { limit: 5/1s, state: SlidingCounterCell(5), .. }");
    counter.refund(taken_at, 2);
    let limiter: &dyn Limiter = &counter;
    assert_eq!(limiter.inspect_at(Nanos::ZERO).level, 2);
    assert_eq!(limiter.peek_at(Nanos::ZERO, 2), limiter.try_acquire_at(Nanos::ZERO, 2));

    let error = SlidingCounter::<ManualClock>::new("131072/1s".parse().unwrap()).unwrap_err();
    assert!(matches!(error, QuotaError::LimitAboveCounter { largest: 131_071, .. }));
}

#[test]
fn a11_the_last_unit_goes_to_one() {
    let step = SlidingCounterStep::new("3/1s".parse().unwrap()).unwrap();
    for round in 0..300 {
        let cell = SlidingCounterCell::new();
        assert!(cell.try_acquire(&step, Nanos::new(round), 2).is_ok());
        let winners = race(4, |_| cell.try_acquire(&step, Nanos::new(round), 1).is_ok());
        assert_eq!(winners.into_iter().filter(|&won| won).count(), 1);
    }
}

#[test]
fn racing_threads_lose_and_make_nothing() {
    let step = SlidingCounterStep::new("100000/1m".parse().unwrap()).unwrap();
    let cell = SlidingCounterCell::new();
    let held: u64 = race(4, |index| {
        let mut numbers = Numbers(index as u64);
        let mut held = 0;
        for _ in 0..20_000 {
            let cost = 1 + numbers.below(2);
            if cell.try_acquire(&step, Nanos::ZERO, cost).is_ok() {
                held += cost;
                if numbers.below(3) == 0 {
                    cell.refund(&step, Nanos::ZERO, 1);
                    held -= 1;
                }
            }
        }
        held
    })
    .into_iter()
    .sum();
    assert!(held > 0 && cell.inspect(&step, Nanos::ZERO).level == 100_000 - held);
}

#[test]
fn racing_threads_keep_to_the_bound_while_windows_pass() {
    const WINDOW: u64 = 2_000;
    let limit = WindowLimit::from_rate(Rate::new(50, Duration::from_nanos(WINDOW)).unwrap()).unwrap();
    let counter = SlidingCounter::with_clock(limit, ManualClock::new()).unwrap();
    let mut admitted: Vec<(u64, u64)> = race(4, |index| {
        let mut numbers = Numbers(index as u64);
        let mut admitted = Vec::new();
        for _ in 0..5_000 {
            let cost = 1 + numbers.below(5);
            match counter.try_acquire(cost) {
                Ok(got) if numbers.below(10) == 0 => counter.refund(got.at, cost),
                Ok(got) => admitted.push((got.at.as_u64(), cost)),
                Err(_) => {}
            }
            if numbers.below(4) == 0 {
                counter.clock().advance(Duration::from_nanos(numbers.below(300)));
            }
        }
        admitted
    })
    .into_iter()
    .flatten()
    .collect();
    admitted.sort_unstable();
    assert!(admitted.len() > 1_000);
    for (index, &(start, _)) in admitted.iter().enumerate() {
        let inside = admitted[index..].iter().take_while(|(at, _)| *at < start + WINDOW);
        let held: u64 = inside.map(|(_, cost)| cost).sum();
        assert!(held <= 50 + 50 * (start % WINDOW) / WINDOW, "{held} from {start}");
    }
    // What is left of the last window is what the counter counts there.
    let window = counter.clock().now_window(WINDOW);
    let sum =
        |number: u64| -> u64 { admitted.iter().filter(|(at, _)| at / WINDOW == number).map(|(_, cost)| cost).sum() };
    let end = Nanos::new((window + 1) * WINDOW);
    assert_eq!(counter.inspect_at(end).level, 50 - sum(window));
}

trait NowWindow {
    fn now_window(&self, width: u64) -> u64;
}

impl NowWindow for ManualClock {
    fn now_window(&self, width: u64) -> u64 {
        sluicegate_core::Clock::now(self).as_u64() / width
    }
}
