//! Limits that adapt, point by point beside slow models in exact fractions, and what holds of every trace.

mod support;

use core::time::Duration;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use proptest::prelude::*;
use sluicegate_core::{
    AdaptiveOptions, AdaptiveOptionsError, AdjustableBucket, ErrorRule, Inheritance, Load, LoadRule, ManualClock,
    Nanos, PaceRule, Quota, QuotaAccount, QuotaLeft, Share, Signals, quota,
};
use support::cases;

const ALL: u32 = 1_000_000;

fn percent(percent: u32) -> Share {
    Share::percent(percent).unwrap()
}

fn at(turn: u64) -> Nanos {
    Nanos::from_secs(5 * turn)
}

#[test]
fn c10_load_above_80_percent_cuts_25_to_50_percent_and_below_50_gives_back() {
    // Unsmoothed, to see what each load does.
    let mut rule = LoadRule::new().weight(Share::ALL);
    let mut after = |load| rule.evaluate(Some(Load::percent(load)));
    assert_eq!(after(79), ALL);
    assert_eq!(after(80), 750_000);
    assert_eq!(after(90), 625_000);
    assert_eq!(after(100), 500_000);
    for between in [90, 80, 79, 51] {
        assert_eq!(after(between), 500_000, "held at {between} %");
    }
    assert_eq!(after(50), 550_000);
    assert_eq!(after(0), 600_000);
    assert_eq!(after(60), 600_000);
    assert_eq!(after(80), 600_000, "cut further already");
    assert_eq!((0..8).map(|_| after(10)).last(), Some(ALL));
    assert_eq!(rule.evaluate(None), ALL);
    assert_eq!(rule.evaluate(Some(Load::percent(95))), 562_500);
    assert_eq!(rule.evaluate(None), 562_500, "nothing measured, nothing changed");
}

#[test]
fn c10_memory_is_a_rule_of_its_own_and_the_strictest_wins() {
    let unsmoothed = LoadRule::new().weight(Share::ALL);
    let options = AdaptiveOptions::new(quota!("1000/1s burst 200")).cpu(unsmoothed).memory(unsmoothed);
    let mut policy = options.build().unwrap();
    let signals = Signals::default().with_cpu(Load::percent(80)).with_memory(Load::percent(100));
    assert_eq!(policy.evaluate(at(0), &signals), Some(quota!("500/1s burst 100")));
    assert_eq!((policy.allowed().cpu, policy.allowed().memory), (750_000, 500_000));
    assert_eq!(
        policy.evaluate(at(1), &Signals::default().with_memory(Load::percent(0))),
        Some(quota!("550/1s burst 110"))
    );
}

#[test]
fn c11_errors_cut_to_50_25_and_10_percent_and_a_cool_down_later_it_comes_back() {
    let base = quota!("100/1s");
    let mut policy = AdaptiveOptions::new(base).errors(ErrorRule::new()).build().unwrap();
    let failing = Signals::default().with_errors(1);
    assert_eq!(policy.evaluate(at(0), &failing), Some(quota!("50/1s")));
    assert_eq!(policy.evaluate(at(1), &failing), Some(quota!("25/1s")));
    assert_eq!(policy.evaluate(at(2), &failing), Some(quota!("10/1s")));
    assert_eq!(policy.evaluate(at(3), &failing), None);
    for turn in 4..9 {
        assert_eq!(policy.evaluate(at(turn), &Signals::default()), None, "30 s without errors are needed");
    }
    let back: Vec<_> = (9..18).map(|turn| policy.evaluate(at(turn), &Signals::default())).collect();
    let expected = [20, 30, 40, 50, 60, 70, 80, 90, 100];
    for (quota, tokens) in back.iter().zip(expected) {
        let quota = quota.unwrap();
        assert_eq!(
            (quota.rate().tokens() * 1_000_000_000 / quota.rate().period_nanos(), quota.capacity()),
            (tokens, tokens)
        );
    }
    assert_eq!(back[8], Some(base));
    assert_eq!(policy.evaluate(at(18), &Signals::default()), None);
}

/// A leap and a step back: nothing comes back before the period's end, and it does come back then.
#[test]
fn c12_an_account_outlives_a_clock_that_leaps_and_steps_back() {
    let day = Duration::from_secs(86_400);
    let hour = |hour: u64| Nanos::from_secs(3_600 * hour);
    let left = |tokens, hours: u64| Some(QuotaLeft::new(tokens, Duration::from_secs(3_600 * hours)));
    let mut own = QuotaAccount::every(day, 100, hour(6));
    own.spend(hour(10), 60);
    // 400 days ahead, where another period is under way, and back.
    own.spend(hour(9_610), 30);
    assert_eq!(own.left(hour(9_610)), left(70, 20));
    assert_eq!(own.left(hour(11)), left(70, 19), "of the day that the reading is in");
    own.spend(hour(29), 10);
    assert_eq!(own.left(hour(29)), left(60, 1));
    assert_eq!(own.left(hour(30)), left(100, 24), "and the next one begins as ever");
    assert_eq!(own.left(hour(5)), left(100, 1));

    // A late reading at the turn of a period begins neither of the two anew.
    let (late, after) = (Nanos::new(hour(30).as_u64() - 1), Nanos::new(hour(30).as_u64() + 1));
    for _ in 0..50 {
        own.spend(after, 1);
        own.spend(late, 1);
    }
    assert_eq!(own.left(after).map(|left| left.tokens), Some(0));
    assert_eq!(own.left(hour(54)), left(100, 24));

    let mut providers = QuotaAccount::unknown();
    providers.report(hour(1_000), QuotaLeft::new(50, Duration::from_secs(7_200)));
    assert_eq!(providers.left(hour(2)), left(50, 2));
    providers.spend(hour(3), 20);
    assert_eq!(providers.left(hour(3)), left(30, 1));
    assert_eq!(providers.left(hour(4)), None);
}

#[test]
fn c12_what_is_left_of_a_day_is_spread_over_what_is_left_of_it() {
    const DAY: u64 = 86_400;
    let base = quota!("10/1s");
    let mut policy = AdaptiveOptions::new(base).pace(PaceRule::new()).most_rise(Share::ALL).build().unwrap();
    // 10 a second would use up this day's in a tenth of it. A client that uses whatever it gets is at 0 when the day is over, and not before.
    let mut left = DAY as f64;
    for turn in 0..DAY / 5 {
        let signals = QuotaLeft::new(left as u64, Duration::from_secs(DAY - turn * 5));
        let _ = policy.evaluate(at(turn), &Signals::default().with_quota_left(signals));
        let rate = policy.quota().rate();
        left -= rate.tokens() as f64 * 5e9 / rate.period_nanos() as f64;
        assert!(left >= -1.0, "used up at {turn}");
    }
    assert!(left < DAY as f64 / 50.0, "{left} were not used");

    let pace = PaceRule::new();
    let second = Duration::from_secs(1);
    assert_eq!(pace.evaluate(base, None), ALL);
    assert_eq!(pace.evaluate(base, Some(QuotaLeft::new(0, second))), 0);
    assert_eq!(pace.evaluate(base, Some(QuotaLeft::new(5, second))), 500_000);
    assert_eq!(pace.evaluate(base, Some(QuotaLeft::new(50, second))), ALL);
    assert_eq!(pace.evaluate(base, Some(QuotaLeft::new(0, Duration::ZERO))), ALL);
    assert_eq!(pace.evaluate(base, Some(QuotaLeft::new(u64::MAX, Duration::from_secs(u64::MAX)))), 1_000_000 / 10);
    let (slowest, absurd) =
        (Quota::new(sluicegate_core::Rate::new(1 << 30, second * 946_080_000).unwrap()), Duration::MAX);
    assert_eq!(pace.evaluate(slowest.unwrap(), Some(QuotaLeft::new(u64::MAX, absurd))), 881_105);
    assert_eq!(pace.evaluate(quota!("1/30d"), Some(QuotaLeft::new(1, second * 86_400 * 60))), 500_000);
}

#[test]
fn c12_what_a_provider_says_paces_downwards_until_its_time_is_over() {
    let base = quota!("10/1s");
    let mut policy = AdaptiveOptions::new(base).pace(PaceRule::new()).most_fall(Share::ALL).build().unwrap();
    let mut account = QuotaAccount::unknown();
    let mut evaluate = |now, account: &mut QuotaAccount| {
        let signals = account.left(now).map_or(Signals::default(), |left| Signals::default().with_quota_left(left));
        policy.evaluate(now, &signals)
    };
    assert_eq!(evaluate(at(0), &mut account), None, "nothing is known");
    // RateLimit: r=60, t=60.
    account.report(at(0), QuotaLeft::new(60, Duration::from_secs(60)));
    assert_eq!(evaluate(at(1), &mut account), Some(policy_share(base, 109_090)));
    account.spend(at(1), 60);
    assert_eq!(
        evaluate(at(2), &mut account),
        Some(policy_share(base, 1)),
        "nothing is left, whatever the floor, and when there is something again is known"
    );
    // Retry-After: 20.
    account.report(at(3), QuotaLeft::new(0, Duration::from_secs(20)));
    assert_eq!(evaluate(at(4), &mut account), None);
    assert_eq!(evaluate(at(7), &mut account), Some(policy_share(base, 100_001)), "its time is over");
    let back: Vec<_> = (8..17).map(|turn| evaluate(at(turn), &mut account)).collect();
    assert_eq!(back[8], Some(base));
}

/// What a policy without any other rule puts in force at that share of the base.
fn policy_share(base: Quota, share: u32) -> Quota {
    let options = AdaptiveOptions::new(base)
        .pace(PaceRule::new())
        .most_fall(Share::ALL)
        .floor(Share::parts_per_million(1).unwrap());
    let mut policy = options.build().unwrap();
    let tokens = base.rate().tokens() * u64::from(share);
    let until_reset = Duration::from_nanos(base.rate().period_nanos()) * ALL;
    policy.evaluate(Nanos::ZERO, &Signals::default().with_quota_left(QuotaLeft::new(tokens, until_reset))).unwrap()
}

#[test]
fn c13_a_spike_is_smoothed_and_every_recovery_ends_at_exactly_the_base() {
    let base = quota!("997/7s burst 1009");
    let mut policy = AdaptiveOptions::new(base).cpu(LoadRule::new()).build().unwrap();
    let evaluate = |policy: &mut sluicegate_core::AdaptivePolicy, turn, load| {
        policy.evaluate(at(turn), &Signals::default().with_cpu(Load::percent(load)))
    };
    (0..10).for_each(|turn| assert_eq!(evaluate(&mut policy, turn, 40), None));
    assert_eq!(evaluate(&mut policy, 10, 100), None, "one spike moves the average to 64 %");
    assert!(evaluate(&mut policy, 11, 100).is_none() && evaluate(&mut policy, 12, 100).is_some(), "three are load");
    (13..80).for_each(|turn| _ = evaluate(&mut policy, turn, 10));
    assert_eq!((policy.quota(), policy.allowed().share), (base, ALL));
}

#[test]
fn c08_what_adapts_is_put_in_force_without_a_token_made_or_lost() {
    let base = quota!("100/1s");
    let bucket = AdjustableBucket::with_clock(base, ManualClock::new());
    let mut policy = AdaptiveOptions::new(base).errors(ErrorRule::new()).build().unwrap();
    assert!(bucket.try_acquire(60).is_ok());
    let lower = policy.evaluate(at(0), &Signals::default().with_errors(9)).unwrap();
    bucket.adjust(lower, Inheritance::Level);
    assert_eq!((bucket.inspect().level, bucket.inspect().capacity), (40, 50));
    bucket.clock().advance(Duration::from_millis(100));
    assert_eq!(bucket.inspect().level, 45);
}

/// An average that comes ever closer to a threshold gets there: at a load of exactly `low` all comes back, and at exactly `high` the least is cut.
#[test]
fn c10_a_load_that_stays_at_a_threshold_reaches_it() {
    let mut rule = LoadRule::new();
    assert_eq!(rule.evaluate(Some(Load::percent(100))), 500_000);
    assert!((0..100).any(|_| rule.evaluate(Some(Load::percent(50))) == ALL), "{:?}", rule.average());
    assert!((0..100).any(|_| rule.evaluate(Some(Load::percent(80))) == 750_000), "{:?}", rule.average());
}

/// With the default options, at full demand, evaluated every 5 s for a day: what passes is what there is, and what no evaluation has seen.
#[test]
fn c12_a_days_quota_lasts_the_day() {
    let (day, tokens) = (Duration::from_secs(86_400), 10_000);
    let base = quota!("100/1s");
    let mut policy = AdaptiveOptions::new(base).pace(PaceRule::new()).build().unwrap();
    let bucket = AdjustableBucket::with_clock(base, ManualClock::new());
    let mut account = QuotaAccount::every(day, tokens, Nanos::ZERO);
    let mut passed = 0;
    for half_second in 0..2 * 86_400 - 1 {
        let now = Nanos::from_millis(500 * half_second);
        bucket.clock().set(now);
        while bucket.try_acquire(1).is_ok() {
            passed += 1;
            account.spend(now, 1);
        }
        if half_second % 10 == 9 {
            let left = account.left(now).unwrap();
            if let Some(quota) = policy.evaluate(now, &Signals::default().with_quota_left(left)) {
                bucket.adjust(quota, Inheritance::Level);
            }
        }
    }
    assert!((9_900..=10_010).contains(&passed), "{passed} of {tokens}");
}

/// Calls of six tokens go on while the rate is cut, where the options say so.
#[test]
fn c11_a_cut_leaves_the_burst_that_the_largest_cost_needs() {
    let base = quota!("100/1s burst 10");
    for (least, expected) in [(0, 1), (1, 1), (6, 6), (10, 10), (99, 10)] {
        let options = AdaptiveOptions::new(base).errors(ErrorRule::new()).most_fall(Share::ALL);
        let mut policy = options.least_burst(least).build().unwrap();
        (0..3).for_each(|turn| _ = policy.evaluate(at(turn), &Signals::default().with_errors(1)));
        assert_eq!(
            policy.quota(),
            Quota::with_burst(sluicegate_core::Rate::new(10, Duration::from_secs(1)).unwrap(), expected).unwrap()
        );
    }
}

#[test]
fn what_cannot_be_a_policy_says_why() {
    let options = AdaptiveOptions::new(quota!("1/1s"));
    assert_eq!(options.build().unwrap_err(), AdaptiveOptionsError::NoRule);
    let all_the_time = options.pace(PaceRule::new()).every(Duration::from_micros(999)).build().unwrap_err();
    assert_eq!(all_the_time.to_string(), "evaluations 999µs apart: it has to be 1 ms or longer");
    assert!(options.pace(PaceRule::new()).every(Duration::from_millis(1)).build().is_ok());
}

fn fraction(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> BigRational {
    BigRational::new(numerator.into(), denominator.into())
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn c10_the_rule_for_load_is_that_of_exact_fractions(
        loads in prop::collection::vec(prop::option::weighted(0.9, 0..=ALL), 1..60),
        weight in 1..=100_u32,
        recovery in 1..=100_u32,
    ) {
        let mut rule = LoadRule::new().weight(percent(weight)).recovery(percent(recovery));
        let (high, low, all) = (fraction(80, 100), fraction(50, 100), fraction(1, 1));
        let (mut average, mut allowed) = (None::<BigRational>, all.clone());
        for load in loads {
            if let Some(load) = load {
                let load = fraction(load, ALL);
                let next = match average {
                    None => load,
                    Some(average) => &average + fraction(weight, 100) * (load - &average),
                };
                if next <= low {
                    allowed = (allowed + fraction(recovery, 100)).min(all.clone());
                } else if next >= high {
                    let cut = fraction(25, 100) + fraction(25, 100) * (&next - &high) / (&all - &high);
                    allowed = allowed.min(&all - cut);
                }
                average = Some(next);
            }
            let expected = (&allowed * fraction(ALL, 1)).to_f64().unwrap();
            let found = f64::from(rule.evaluate(load.map(Load::parts_per_million)));
            prop_assert!((found - expected).abs() <= 1.5, "{found} and not {expected}");
        }
    }

    #[test]
    fn c13_no_step_is_larger_than_its_bound_and_all_end_at_the_base(
        trace in prop::collection::vec((0..=ALL, 0..=ALL, 0..3_u64, 0..200_000_u64), 1..150),
        rise in 1..=50_u32,
        fall in 1..=100_u32,
        least_change in 1..=10_u32,
        floor in 1..=30_u32,
        base in prop::sample::select(vec![quota!("1/30d"), quota!("100/1s burst 500"), quota!("999999937/1s"), quota!("7/3s debt 2")]),
    ) {
        let options = AdaptiveOptions::new(base).cpu(LoadRule::new()).memory(LoadRule::new()).errors(ErrorRule::new());
        let options = options.pace(PaceRule::new()).most_rise(percent(rise)).most_fall(percent(fall));
        let mut policy = options.least_change(percent(least_change)).floor(percent(floor)).build().unwrap();
        let mut before = ALL;
        let mut turn = 0;
        for (cpu, memory, errors, left) in trace {
            turn += 1;
            let signals = Signals::default()
                .with_cpu(Load::parts_per_million(cpu))
                .with_memory(Load::parts_per_million(memory))
                .with_errors(errors)
                .with_quota_left(QuotaLeft::new(left, Duration::from_secs(1 + left)));
            let changed = policy.evaluate(at(turn), &signals);
            let allowed = policy.allowed();
            let share = allowed.share;
            prop_assert!(share <= before + rise * 10_000 && share + fall * 10_000 >= before);
            prop_assert!(share >= (floor * 10_000).min(before).min(allowed.pace.max(1)));
            prop_assert_eq!(changed.is_some(), share != before);
            // It goes towards what the strictest rule says, and not beyond.
            let asked = allowed.cpu.min(allowed.memory).min(allowed.errors).max(floor * 10_000);
            let target = asked.min(allowed.pace).max(1);
            prop_assert!((before.min(target)..=before.max(target)).contains(&share));
            let quota = policy.quota();
            prop_assert!(quota.capacity() >= 1 && quota.capacity() <= base.capacity());
            let tokens = fraction(quota.rate().tokens(), quota.rate().period_nanos());
            let of_base = fraction(base.rate().tokens(), base.rate().period_nanos()) * fraction(share, ALL);
            prop_assert!((tokens / of_base - fraction(1, 1)).to_f64().unwrap().abs() < 1e-9);
            before = share;
        }
        // Nothing is measured that speaks against it any more.
        let idle = Signals::default().with_cpu(Load::percent(0)).with_memory(Load::percent(0));
        let mut shares = Vec::new();
        for _ in 0..200 {
            turn += 1;
            let _ = policy.evaluate(at(turn), &idle);
            shares.push(policy.allowed().share);
        }
        // What the last measurements still ask for may take some steps; from the first one up there is none down.
        let lowest = shares.iter().copied().enumerate().min_by_key(|(turn, share)| (*share, *turn)).unwrap().0;
        prop_assert!(shares[lowest..].is_sorted(), "it goes up and down on the way back");
        prop_assert!(shares[..lowest].is_sorted_by(|a, b| a >= b));
        prop_assert_eq!(policy.quota(), base);
    }

    // Whatever the clock does: never more left than a period has, never a longer time than one, and what was spent within one is gone until it ends.
    #[test]
    fn c12_an_account_begins_each_period_anew(
        period in prop::sample::select(vec![1_u64, 7, 86_400_000_000_000, u64::MAX]),
        tokens in 0..50_u64,
        begin in any::<u64>(),
        steps in prop::collection::vec((any::<u64>(), 0..64_u32, 0..20_u64), 1..60),
    ) {
        let mut account = QuotaAccount::every(Duration::from_nanos(period), tokens, Nanos::new(begin));
        // The end of the period under way, and what was spent of it.
        let (mut end, mut spent) = (u128::from(begin.saturating_add(period)), 0);
        for (reading, shift, cost) in steps {
            let now = reading >> shift;
            if u128::from(now) >= end {
                end += (u128::from(now) - end) / u128::from(period) * u128::from(period) + u128::from(period);
                end = end.min(u64::MAX.into());
                spent = 0;
            }
            // A step back, and not only a late reading: the period that the reading is in, with what was spent.
            if end > u128::from(now) + 2 * u128::from(period) {
                end -= (end - u128::from(now) - 1) / u128::from(period) * u128::from(period);
            }
            account.spend(Nanos::new(now), cost);
            spent += cost;
            let left = account.left(Nanos::new(now)).unwrap();
            let wait = (end.saturating_sub(now.into())).min(period.into());
            prop_assert_eq!(left.until_reset.as_nanos(), wait);
            if u128::from(now) < end {
                prop_assert_eq!(left.tokens, tokens.saturating_sub(spent));
            }
        }
    }

    // Under any load that stays what it is, the share comes to rest, and gets there without turning round.
    #[test]
    fn c13_a_load_that_stays_swings_nothing(loads in prop::collection::vec(0..=ALL, 0..20), stays in 0..=ALL, errors in 0..2_u64) {
        let options = AdaptiveOptions::new(quota!("1000/1s")).cpu(LoadRule::new()).errors(ErrorRule::new());
        let mut policy = options.build().unwrap();
        let mut turn = 0;
        let mut evaluate = |load, errors| {
            turn += 1;
            let _ = policy.evaluate(at(turn), &Signals::default().with_cpu(Load::parts_per_million(load)).with_errors(errors));
            policy.allowed().share
        };
        for load in loads {
            let _ = evaluate(load, 0);
        }
        let shares: Vec<u32> = (0..300).map(|_| evaluate(stays, errors)).collect();
        let turns = shares.windows(2).filter(|pair| pair[0] != pair[1]).map(|pair| pair[0] < pair[1]);
        let turns: Vec<bool> = turns.collect();
        // At most once, from what was before to what is.
        prop_assert!(turns.windows(2).filter(|pair| pair[0] != pair[1]).count() <= 1);
        prop_assert_eq!(shares[298], shares[299]);
    }
}

#[test]
fn a_share_of_a_quota_that_cannot_be_said_exactly_is_close() {
    let base: Quota = "18446744073709551557/18446744073709551615ns burst 3".parse().unwrap();
    let mut policy = AdaptiveOptions::new(base).errors(ErrorRule::new()).build().unwrap();
    let quota = policy.evaluate(at(0), &Signals::default().with_errors(1)).unwrap();
    let rate = quota.rate();
    assert!((rate.tokens() as f64 / rate.period_nanos() as f64 - 0.5).abs() < 1e-9);
    assert_eq!(quota.capacity(), 1);
}
