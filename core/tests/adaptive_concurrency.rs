//! Laws of concurrency limits: each fault that such laws are known for, and slow models in exact fractions.

mod support;

use core::time::Duration;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive};
use proptest::prelude::*;
use sluicegate_core::{
    AimdOptions, ClosedWindow, ConcurrencyController, ConcurrencyLaw, GradientLaw, GradientOptions, Nanos, Outcome,
    SampleOptions, Share,
};
use support::{cases, magnitude};

const MILLI: u64 = 1_000_000;

/// `successes` that took `latency` nanoseconds each, and so many drops.
fn window(successes: u64, latency: u64, dropped: u64, most_in_use: u32) -> ClosedWindow {
    let mut window = ClosedWindow::default();
    window.successes = successes;
    window.latency_sum = u128::from(successes) * u128::from(latency);
    window.least_latency = Duration::from_nanos(latency);
    (window.dropped, window.most_in_use) = (dropped, most_in_use);
    window
}

/// Feeds `law` with windows of 20 successes, all of the limit in use.
fn busy(law: &mut GradientLaw, latency: u64) -> u32 {
    let in_use = law.limit();
    law.update(&window(20, latency, 0, in_use))
}

fn gradient(least: u32, initial: u32, most: u32) -> GradientOptions {
    GradientOptions::new().limits(least, initial, most)
}

fn percent(percent: u32) -> Share {
    Share::percent(percent).unwrap()
}

// The faults.

#[test]
fn what_is_less_than_half_used_does_not_grow() {
    let mut aimd = AimdOptions::new().limits(1, 21, 100).build().unwrap();
    let mut gradient = gradient(1, 21, 100).smoothing(Share::ALL).build().unwrap();
    for _ in 0..100 {
        assert_eq!(aimd.update(&window(50, MILLI, 0, 10)), 21);
        assert_eq!(gradient.update(&window(50, MILLI, 0, 10)), 21);
    }
    assert_eq!(aimd.update(&window(50, MILLI, 0, 11)), 22);
    assert_eq!(gradient.update(&window(50, MILLI, 0, 11)), 25);
}

#[test]
fn modest_overload_never_lets_the_limit_grow() {
    // A gradient of 0.8 for as long as it lasts: with room for a queue on top, a limit stops falling somewhere, or even rises.
    let mut law = gradient(2, 400, 1_000).build().unwrap();
    busy(&mut law, 80 * MILLI);
    let mut before = law.limit();
    for _ in 0..1_000 {
        let now = busy(&mut law, 150 * MILLI);
        assert!(now <= before, "{before} grew to {now}");
        before = now;
        if now == 2 {
            return;
        }
    }
    panic!("it stays at {before}");
}

#[test]
fn latency_under_load_does_not_become_the_baseline() {
    // Just within tolerance, and just above it, for a long time: a long average would end up there.
    let mut law = gradient(1, 50, 10_000).build().unwrap();
    busy(&mut law, 10 * MILLI);
    for _ in 0..10_000 {
        busy(&mut law, 15 * MILLI);
        assert_eq!(law.baseline(), Some(Duration::from_millis(10)));
    }
    assert_eq!(law.limit(), 10_000);
    for _ in 0..2_000 {
        if busy(&mut law, 16 * MILLI) == 1 {
            return;
        }
        assert_eq!(law.baseline(), Some(Duration::from_millis(10)));
    }
    panic!("it stays at {}", law.limit());
}

#[test]
fn a_stable_timeout_brings_the_limit_to_its_least_and_keeps_it_there() {
    // All calls are given up after the same time.
    let mut laws = (AimdOptions::new().limits(3, 50, 200).build().unwrap(), gradient(3, 50, 200).build().unwrap());
    for turn in 0..1_000 {
        let (aimd, gradient) = (&mut laws.0, &mut laws.1);
        let most_in_use = aimd.limit().max(gradient.limit());
        let (aimd, gradient) =
            (aimd.update(&window(0, 0, 20, most_in_use)), gradient.update(&window(0, 0, 20, most_in_use)));
        assert!(turn < 40 || (aimd, gradient) == (3, 3), "{aimd} and {gradient} after {turn} windows");
    }
    assert_eq!(laws.1.baseline(), None, "what was dropped tells no latency");

    // All calls are answered after the same time, as if they had succeeded: a baseline that is bounded is not taken in.
    let bounded = gradient(3, 50, 200).baseline(Duration::from_micros(1), Duration::from_millis(100));
    let mut law = bounded.build().unwrap();
    for turn in 0..2_000 {
        let limit = busy(&mut law, 5_000 * MILLI);
        assert!(turn < 40 || limit == 3, "{limit} after {turn} windows");
    }
}

#[test]
fn small_steps_of_a_small_limit_add_up() {
    for (parts, windows) in [(200_000, 5), (10_000, 100), (10, 100_000)] {
        let smoothing = Share::parts_per_million(parts).unwrap();
        let mut law = gradient(1, 1, 10).smoothing(smoothing).build().unwrap();
        (0..windows + windows / 10).for_each(|_| _ = busy(&mut law, MILLI));
        assert!(law.limit() >= 2, "steps of {parts} millionths are lost");
    }
    // Of the smallest ones, each is one.
    let mut law = gradient(1, 1, 10).smoothing(Share::parts_per_million(1).unwrap()).build().unwrap();
    let before = law;
    busy(&mut law, MILLI);
    let first = law;
    busy(&mut law, MILLI);
    assert!(law != first && first != before);
}

#[test]
fn latency_within_tolerance_and_successes_lower_nothing() {
    let mut law = gradient(1, 10, 10).build().unwrap();
    busy(&mut law, 10 * MILLI);
    for latency in [10, 12, 15, 11, 15, 10] {
        assert_eq!(busy(&mut law, latency * MILLI), 10);
    }
    let mut law = AimdOptions::new().limits(1, 10, 10).build().unwrap();
    for latency in [1, 1_000, 1_000_000] {
        assert_eq!(law.update(&window(20, latency * MILLI, 0, 10)), 10);
    }
}

#[test]
fn both_laws_recover_from_the_least() {
    let mut aimd = AimdOptions::new().limits(1, 10, 100).build().unwrap();
    (0..40).for_each(|_| _ = aimd.update(&window(0, 0, 20, 10)));
    assert_eq!(aimd.limit(), 1);
    (0..99).for_each(|_| _ = aimd.update(&window(20, MILLI, 0, aimd.limit())));
    assert_eq!(aimd.limit(), 100);

    // It has become ten times as slow for good.
    let mut law = gradient(1, 10, 100).build().unwrap();
    busy(&mut law, 10 * MILLI);
    (0..100).for_each(|_| _ = busy(&mut law, 100 * MILLI));
    assert_eq!(law.baseline(), Some(Duration::from_millis(100)));
    (0..100).for_each(|_| _ = busy(&mut law, 100 * MILLI));
    assert_eq!(law.limit(), 100);
    // And quick again: that is known at once.
    (0..8).for_each(|_| _ = busy(&mut law, 10 * MILLI));
    assert!(law.baseline() < Some(Duration::from_millis(11)));
    assert_eq!(law.limit(), 100);
}

#[test]
fn little_load_lets_the_baseline_rise_and_much_load_does_not() {
    let mut law = gradient(1, 100, 100).build().unwrap();
    busy(&mut law, 10 * MILLI);
    (0..200).for_each(|_| _ = law.update(&window(20, 14 * MILLI, 0, 49)));
    assert!(law.baseline() >= Some(Duration::from_micros(13_999)));
    assert_eq!(law.limit(), 100);
    (0..10).for_each(|_| _ = law.update(&window(20, 30 * MILLI, 0, 49)));
    assert!(law.baseline() <= Some(Duration::from_millis(14)), "beyond tolerance it is load");
}

#[test]
fn a_drop_costs_the_backoff_and_tells_nothing_of_the_baseline() {
    let mut law = gradient(1, 100, 200).build().unwrap();
    busy(&mut law, 10 * MILLI);
    // Those that are left over have been quick.
    let limit = law.limit();
    assert_eq!(law.update(&window(20, MILLI, 1, 100)), limit * 9 / 10);
    assert_eq!(law.baseline(), Some(Duration::from_millis(10)));
    // Latency may say that it is too much by more than that.
    let mut quick = gradient(1, 100, 200).smoothing(Share::ALL).build().unwrap();
    busy(&mut quick, 10 * MILLI);
    let limit = quick.limit();
    assert_eq!(quick.update(&window(20, 1_000 * MILLI, 1, 100)), limit / 2);
}

#[test]
fn zero_latency_is_no_overload() {
    let mut law = gradient(1, 10, 100).build().unwrap();
    (0..100).for_each(|_| _ = busy(&mut law, 0));
    assert_eq!(law.limit(), 100);
    assert_eq!(law.baseline(), Some(Duration::from_micros(1)));
    assert_eq!(busy(&mut law, 1_500), 100);
}

// Beside slow models.

fn fraction(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> BigRational {
    BigRational::new(numerator.into(), denominator.into())
}

fn share(share: Share) -> BigRational {
    fraction(share.as_parts_per_million(), 1_000_000)
}

/// The gradient law as its documentation says it.
struct ExactGradient {
    least: u32,
    most: u32,
    tolerance: BigRational,
    smoothing: BigRational,
    backoff: BigRational,
    rise: BigRational,
    limit: BigRational,
    baseline: Option<BigRational>,
}

impl ExactGradient {
    /// Which limit was in force is given: whether all of 1.9999999 is 1 or 2 is not what is compared.
    fn update(&mut self, window: &ClosedWindow, in_force: u32) {
        let is_half_used = u64::from(window.most_in_use) * 2 >= u64::from(in_force);
        let mean = (window.successes > 0).then(|| fraction(window.latency_sum, window.successes));
        if let (Some(mean), 0) = (&mean, window.dropped) {
            let next = match &self.baseline {
                None => mean.clone(),
                Some(_) if in_force == self.least => mean.clone(),
                Some(baseline) if mean < baseline => (baseline + mean) / fraction(2, 1),
                Some(baseline) if !is_half_used && *mean <= baseline * &self.tolerance => {
                    baseline + (mean - baseline) * &self.rise
                }
                Some(baseline) => baseline.clone(),
            };
            self.baseline = Some(next.max(fraction(1_000, 1)));
        }
        let gradient = match (&mean, &self.baseline) {
            (Some(mean), Some(baseline)) if mean.is_positive() => {
                (baseline * &self.tolerance / mean).clamp(fraction(1, 2), BigRational::one())
            }
            _ => BigRational::one(),
        };
        let target = if !gradient.is_one() {
            &self.limit * gradient
        } else if window.dropped == 0 && mean.is_some() && is_half_used {
            // Its root, to 2^-64.
            let scaled = (&self.limit * fraction(BigInt::one() << 128_u32, 1)).to_integer();
            &self.limit + fraction(scaled.sqrt(), BigInt::one() << 64_u32)
        } else {
            self.limit.clone()
        };
        let mut limit = &self.limit + (target - &self.limit) * &self.smoothing;
        if window.dropped > 0 {
            limit = limit.min(&self.limit * &self.backoff);
        }
        self.limit = limit.clamp(fraction(self.least, 1), fraction(self.most, 1));
    }
}

/// Least, initial and most.
fn limits(largest: u32) -> impl Strategy<Value = (u32, u32, u32)> {
    let one = (1..=largest, 0..20_u32).prop_map(|(limit, shift)| (limit >> shift).max(1));
    [one.clone(), one.clone(), one].prop_map(|mut limits| {
        limits.sort_unstable();
        (limits[0], limits[1], limits[2])
    })
}

/// Latency in nanoseconds, drops, and how much is in use in parts of a thousand of the limit.
fn windows() -> impl Strategy<Value = Vec<(u64, u128, u64, u32)>> {
    let latency = prop_oneof![4 => 1_000_000..4_000_000_u128, 1 => 0..20_000_000_u128, 1 => Just(0_u128)];
    let dropped = prop_oneof![6 => Just(0_u64), 1 => 1..5_u64];
    let calls = prop_oneof![9 => 1..200_u64, 1 => Just(0_u64)];
    let one = (calls, latency, dropped, 0..1_200_u32).prop_map(|(calls, latency, dropped, in_use)| {
        (calls, latency * u128::from(calls) + u128::from(calls / 3), dropped, in_use)
    });
    prop::collection::vec(one, 1..60)
}

fn of_limit(limit: u32, thousandths: u32) -> u32 {
    (u64::from(limit) * u64::from(thousandths)).div_ceil(1_000) as u32
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn aimd_is_that_of_exact_fractions(
        (least, initial, most) in limits(u32::MAX),
        increase in 1..1_000_u32,
        left in 1..=99_u32,
        windows in windows(),
    ) {
        let options = AimdOptions::new().limits(least, initial, most).increase(increase).backoff(percent(left));
        let mut law = options.build().unwrap();
        let mut exact = fraction(initial, 1);
        for (calls, latency_sum, dropped, in_use) in windows {
            let mut closed = window(calls, 0, dropped, of_limit(law.limit(), in_use));
            closed.latency_sum = latency_sum;
            if dropped > 0 {
                let lowered = (&exact * fraction(left, 100)).floor().min(&exact - fraction(1, 1));
                exact = lowered.max(fraction(least, 1));
            } else if fraction(closed.most_in_use, 1) * fraction(2, 1) >= exact {
                exact = (exact + fraction(increase, 1)).min(fraction(most, 1));
            }
            prop_assert_eq!(fraction(law.update(&closed), 1), exact.clone());
        }
    }

    #[test]
    fn the_gradient_law_is_that_of_exact_fractions(
        (least, initial, most) in limits(100_000),
        tolerance in 100..=300_u32,
        smoothing in 1..=100_u32,
        left in 1..=99_u32,
        rise in 1..=100_u32,
        windows in windows(),
    ) {
        let options = gradient(least, initial, most).tolerance(tolerance).smoothing(percent(smoothing));
        let mut law = options.backoff(percent(left)).baseline_rise(percent(rise)).build().unwrap();
        let mut exact = ExactGradient {
            least,
            most,
            tolerance: fraction(tolerance, 100),
            smoothing: share(percent(smoothing)),
            backoff: share(percent(left)),
            rise: share(percent(rise)),
            limit: fraction(initial, 1),
            baseline: None,
        };
        for (calls, latency_sum, dropped, in_use) in windows {
            let in_force = law.limit();
            let mut closed = window(calls, 0, dropped, of_limit(in_force, in_use));
            closed.latency_sum = latency_sum;
            exact.update(&closed, in_force);
            let found = law.update(&closed);
            let apart = (fraction(found, 1) - exact.limit.floor()).abs();
            prop_assert!(apart <= BigRational::one(), "{found} and not {}", exact.limit.to_f64().unwrap());
            match (law.baseline(), &exact.baseline) {
                (None, None) => {}
                (Some(found), Some(exact)) => {
                    let apart = (fraction(found.as_nanos(), 1) - exact).abs();
                    prop_assert!(apart <= BigRational::one(), "{found:?} and not {}", exact.to_f64().unwrap());
                }
                (found, _) => prop_assert!(false, "{found:?}"),
            }
        }
    }

    // Whatever is measured, the limit stays within its bounds and moves by no more than it may.
    #[test]
    fn no_step_is_larger_than_its_bound(
        (least, initial, most) in limits(u32::MAX),
        smoothing in 1..=100_u32,
        left in 1..=99_u32,
        trace in prop::collection::vec((0..=u64::MAX, 0..=u128::MAX, prop_oneof![Just(0), 0..=u64::MAX], any::<u32>(), 0..128_u32), 1..100),
    ) {
        let mut aimd = AimdOptions::new().limits(least, initial, most).backoff(percent(left)).build().unwrap();
        let options = gradient(least, initial, most).smoothing(percent(smoothing)).backoff(percent(left));
        let mut gradient = options.build().unwrap();
        for (successes, latency_sum, dropped, most_in_use, shift) in trace {
            let mut closed = window(0, 0, dropped >> (shift / 2), most_in_use);
            (closed.successes, closed.latency_sum) = (successes >> (shift / 2), latency_sum >> shift);
            let before = aimd.limit();
            let after = aimd.update(&closed);
            prop_assert!((least..=most).contains(&after) && after <= before.saturating_add(1));
            prop_assert!(after >= before || closed.dropped > 0);
            prop_assert!(u64::from(after) + 1 >= u64::from(before) * u64::from(left) / 100);

            let (before, baseline) = (f64::from(gradient.limit()), gradient.baseline());
            let after = f64::from(gradient.update(&closed));
            let share = f64::from(smoothing) / 100.0;
            let rise = share * (before + 1.0).sqrt() + 1.0;
            let fall = (share / 2.0).max(if closed.dropped > 0 { 1.0 - f64::from(left) / 100.0 } else { 0.0 });
            prop_assert!((f64::from(least)..=f64::from(most)).contains(&after));
            prop_assert!(after <= before + rise && after >= before - fall * (before + 1.0) - 1.0, "{before} to {after}");
            prop_assert!(after <= before || (closed.dropped == 0 && closed.is_half_used(before as u32)));
            prop_assert!(closed.dropped == 0 || baseline == gradient.baseline());
        }
    }

    // A clock that does anything, from anywhere: nothing panics, and the limit stays where it may be.
    #[test]
    fn hostile_clocks_leave_the_limit_within_its_bounds(
        (least, initial, most) in limits(1_000),
        trace in prop::collection::vec((support::moves(), magnitude(), 0..3_u8, any::<u32>(), any::<bool>()), 1..300),
        samples in 1..5_u32,
    ) {
        let quota = sluicegate_core::quota!("1/1s");
        let lasting = (Duration::from_millis(1), Duration::from_secs(60));
        let window = SampleOptions::new().lasting(lasting.0, lasting.1).samples(samples).build().unwrap();
        let mut aimd = ConcurrencyController::new(window.clone(), AimdOptions::new().limits(least, initial, most).build().unwrap());
        let mut gradient = ConcurrencyController::new(window, gradient(least, initial, most).build().unwrap());
        let mut now = Nanos::ZERO;
        for (step, latency, outcome, in_use, is_late) in trace {
            now = step.after(now, now, quota);
            let started = Nanos::new(if is_late { now.as_u64().saturating_add(latency) } else { now.as_u64().saturating_sub(latency) });
            let outcome = [Outcome::Success, Outcome::Ignored, Outcome::Dropped][usize::from(outcome)];
            for limit in [aimd.add(started, now, outcome, in_use), gradient.add(started, now, outcome, in_use)].into_iter().flatten() {
                prop_assert!((least..=most).contains(&limit));
            }
            prop_assert!((least..=most).contains(&aimd.limit()) && (least..=most).contains(&gradient.limit()));
        }
    }
}
