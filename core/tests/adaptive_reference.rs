//! What adapts, point by point beside a slow model in exact fractions, which is written from what the rules promise.

mod support;

use core::time::Duration;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use proptest::prelude::*;
use sluicegate_core::{
    AdaptiveOptions, ErrorRule, Load, LoadRule, Nanos, PaceRule, Quota, QuotaLeft, Share, Signals, quota,
};
use support::cases;

const ALL: u32 = 1_000_000;

fn fraction(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> BigRational {
    BigRational::new(numerator.into(), denominator.into())
}

fn percent(percent: u32) -> BigRational {
    fraction(percent, 100)
}

/// The load of one resource: cut by 25 to 50 % from 80 % on, held between, given back by 5 % up to 50 %, of an average whose weight is 40 %.
struct LoadModel {
    average: Option<BigRational>,
    allowed: BigRational,
}

impl LoadModel {
    fn new() -> Self {
        Self { average: None, allowed: percent(100) }
    }

    /// Tells what is allowed, and whether the average is too close to a threshold to say.
    fn step(&mut self, measured: Option<u32>) -> (BigRational, bool) {
        let Some(measured) = measured else { return (self.allowed.clone(), false) };
        let measured = fraction(measured, ALL);
        let average = match self.average.take() {
            None => measured,
            Some(average) => &average * percent(60) + measured * percent(40),
        };
        let is_close = [50, 80].iter().any(|threshold| is_close(&average, &percent(*threshold)));
        if average <= percent(50) {
            self.allowed = (&self.allowed + percent(5)).min(percent(100));
        } else if average >= percent(80) {
            let cut = percent(25) + percent(25) * (&average - percent(80)) / percent(20);
            self.allowed = (percent(100) - cut).min(self.allowed.clone());
        }
        // Digits without end would take the test's time, and change nothing at these distances.
        self.average = Some(fraction((average * fraction(1_u64 << 60, 1)).to_integer(), 1_u64 << 60));
        (self.allowed.clone(), is_close)
    }
}

/// Errors: down to 50, 25 and 10 %, up by 10 % at a time once there were none for 30 s.
struct ErrorModel {
    allowed: BigRational,
    last: Option<u64>,
}

impl ErrorModel {
    fn step(&mut self, now: u64, errors: u64) -> BigRational {
        if errors > 0 {
            self.last = Some(now);
            if let Some(step) = [50, 25, 10].iter().map(|step| percent(*step)).find(|step| *step < self.allowed) {
                self.allowed = step;
            }
        } else if self.last.is_some_and(|last| now - last >= 30_000_000_000) {
            self.allowed = (&self.allowed + percent(10)).min(percent(100));
        }
        self.allowed.clone()
    }
}

/// What is left, spread over what is left of its period.
fn pace(base: Quota, left: Option<(u64, u64)>) -> BigRational {
    match left {
        None | Some((_, 0)) => percent(100),
        Some((tokens, nanos)) => {
            let of_base = fraction(base.rate().tokens(), base.rate().period_nanos());
            (fraction(tokens, nanos) / of_base).min(percent(100))
        }
    }
}

/// Closer than the millionths in which shares are counted can tell.
fn is_close(a: &BigRational, b: &BigRational) -> bool {
    let difference = (a - b) * fraction(ALL, 1);
    difference.to_f64().is_none_or(|difference| difference.abs() < 3.0)
}

#[derive(Clone, Debug)]
struct Point {
    nanos: u64,
    cpu: Option<u32>,
    memory: Option<u32>,
    errors: u64,
    left: Option<(u64, u64)>,
}

/// Loads that stay for a while, and errors that come in runs, so that every rule has its turn.
fn points() -> impl Strategy<Value = Vec<Point>> {
    let load = prop::option::weighted(0.9, prop_oneof![0..=ALL, 750_000..=ALL, 0..=500_000_u32]);
    let errors = prop_oneof![8 => Just(0_u64), 1 => 1..5_u64];
    let left = prop::option::weighted(0.3, (0..2_000_u64, 0..60_000_000_000_u64));
    let phase = (load.clone(), load, errors, left, 1..8_usize, 1_000_000_000..9_000_000_000_u64);
    prop::collection::vec(phase, 1..25).prop_map(|phases| {
        let points = phases.into_iter().flat_map(|(cpu, memory, errors, left, turns, nanos)| {
            core::iter::repeat_n(Point { nanos, cpu, memory, errors, left }, turns)
        });
        points.collect()
    })
}

proptest! {
    #![proptest_config(cases(80))]

    #[test]
    fn c13_every_share_is_that_of_a_slow_model(
        points in points(),
        floor in 1..=20_u32,
        fall in 5..=100_u32,
        rise in 1..=60_u32,
        least_change in 1..=6_u32,
        base in prop::sample::select(vec![quota!("100/1s"), quota!("7/3s burst 20"), quota!("999999937/1s"), quota!("5/1m")]),
    ) {
        let share = |percent| Share::percent(percent).unwrap();
        let options = AdaptiveOptions::new(base).cpu(LoadRule::new()).memory(LoadRule::new()).errors(ErrorRule::new());
        let options = options.pace(PaceRule::new()).floor(share(floor)).most_fall(share(fall)).most_rise(share(rise));
        let mut policy = options.least_change(share(least_change)).build().unwrap();
        let (mut cpu, mut memory) = (LoadModel::new(), LoadModel::new());
        let mut errors = ErrorModel { allowed: percent(100), last: None };
        let (mut now, mut expected) = (0, percent(100));
        for point in points {
            now += point.nanos;
            let signals = Signals::default().with_errors(point.errors);
            let signals = point.cpu.map_or(signals, |load| signals.with_cpu(Load::parts_per_million(load)));
            let signals = point.memory.map_or(signals, |load| signals.with_memory(Load::parts_per_million(load)));
            let left = |(tokens, nanos)| QuotaLeft::new(tokens, Duration::from_nanos(nanos));
            let signals = point.left.map_or(signals, |given| signals.with_quota_left(left(given)));
            let _ = policy.evaluate(Nanos::new(now), &signals);
            let found = policy.allowed();

            let (by_cpu, close_cpu) = cpu.step(point.cpu);
            let (by_memory, close_memory) = memory.step(point.memory);
            let rules = [by_cpu, by_memory, errors.step(now, point.errors), pace(base, point.left)];
            let [by_cpu, by_memory, by_errors, by_pace] = &rules;
            let asked = by_cpu.min(by_memory).min(by_errors).clone().max(percent(floor));
            let target = asked.min(by_pace.clone()).max(fraction(1, ALL));
            let change = if target > expected { &target - &expected } else { &expected - &target };
            let least = percent(least_change).min(&expected / fraction(16, 1));
            let is_change = target == percent(100) || change >= least;
            let close = close_cpu || close_memory || is_close(&change, &least);
            if is_change {
                let (down, up) = (&expected - percent(fall), &expected + percent(rise));
                expected = target.max(down).min(up);
            }
            if close {
                // Either is right: go on from what was decided.
                cpu.allowed = if close_cpu { fraction(found.cpu, ALL) } else { cpu.allowed };
                memory.allowed = if close_memory { fraction(found.memory, ALL) } else { memory.allowed };
                expected = fraction(found.share, ALL);
            }
            let distance = |found: u32, expected: &BigRational| {
                (fraction(found, 1) - expected * fraction(ALL, 1)).to_f64().unwrap().abs()
            };
            for (found, expected) in [found.cpu, found.memory, found.errors, found.pace].into_iter().zip(&rules) {
                prop_assert!(close || distance(found, expected) <= 2.0, "{found} and not {expected}");
            }
            prop_assert!(distance(found.share, &expected) <= 3.0, "{} and not {expected}", found.share);
            // What the model rounds less is not to add up.
            expected = fraction(found.share, ALL);
        }
    }
}
