//! What can be represented, to the last token: every bound that an error names is the true one.

mod support;

use core::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{
    BucketState, BucketStep, Nanos, PER_DAY, PER_HOUR, PER_MINUTE, PER_SECOND, Quota, QuotaError, Rate, Remaining,
    WindowLimit, WindowState, WindowStep,
};
use support::{cases, magnitude, period};

fn rate(tokens: u64, period: u64) -> Rate {
    Rate::new(tokens, Duration::from_nanos(period)).unwrap()
}

/// Tokens that 30 years of a rate bring, rounded up.
fn generated(tokens: u64, period: u64) -> u128 {
    (u128::from(Nanos::HORIZON.as_u64()) * u128::from(tokens)).div_ceil(u128::from(period))
}

/// The whole life of a bucket at its bounds: emptied at the end of time.
fn works_at_both_ends(quota: Quota) {
    let step = BucketStep::new(quota);
    let mut state = BucketState::FULL;
    for now in [Nanos::ZERO, Nanos::HORIZON, Nanos::MAX] {
        let level = step.inspect(state, now).level;
        assert!(level <= quota.capacity());
        let (next, decision) = step.try_acquire(state, now, level);
        assert_eq!(decision.map(|admitted| admitted.remaining), Ok(Remaining::Exactly(0)), "{quota} at {now}");
        state = step.refund(next, u64::MAX);
        let (next, decision) = step.try_acquire(state, now, quota.capacity());
        assert!(decision.is_ok(), "{quota} at {now}");
        assert!(step.try_acquire(next, now, 1).1.is_err(), "{quota} at {now}");
        state = next;
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn the_largest_burst_is_the_largest(tokens in magnitude(), period in period()) {
        let rate = rate(tokens, period);
        match Quota::with_burst(rate, u64::MAX) {
            Err(QuotaError::BurstTooLarge { burst, largest }) => {
                prop_assert_eq!(burst, u64::MAX);
                // 30 years and the burst share 63 bits.
                prop_assert_eq!(u128::from(largest) + generated(tokens, period), (1 << 63) - 1);
                prop_assert!(largest > 0);
                works_at_both_ends(Quota::with_burst(rate, largest).unwrap());
                let burst = largest + 1;
                prop_assert_eq!(Quota::with_burst(rate, burst), Err(QuotaError::BurstTooLarge { burst, largest }));
            }
            Err(QuotaError::RateTooHigh { rate: named }) => {
                prop_assert_eq!(named, rate);
                prop_assert_eq!(Quota::with_burst(rate, 1), Err(QuotaError::RateTooHigh { rate }));
                prop_assert!(generated(tokens, period) >= (1 << 63) - 1);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn the_largest_debt_is_the_largest(tokens in magnitude(), period in period(), burst in magnitude()) {
        let rate = rate(tokens, period);
        let quota = match Quota::with_burst(rate, burst) {
            Ok(quota) => quota,
            Err(QuotaError::BurstTooLarge { largest, .. }) => Quota::with_burst(rate, largest).unwrap(),
            Err(_) => return Ok(()),
        };
        match quota.with_debt(u64::MAX) {
            Err(QuotaError::DebtTooLarge { debt, largest }) => {
                prop_assert_eq!(debt, u64::MAX);
                // 30 years, the burst and the debt share 63 bits.
                let room = u128::from(largest) + u128::from(quota.capacity()) + generated(tokens, period);
                prop_assert_eq!(room, (1 << 63) - 1);
                let most = quota.with_debt(largest).unwrap();
                prop_assert_eq!((most.debt(), most.capacity(), most.rate()), (largest, quota.capacity(), rate));
                works_at_both_ends(most);
                prop_assert_eq!(most.to_string().parse(), Ok(most));
                if let Some(debt) = largest.checked_add(1) {
                    prop_assert_eq!(quota.with_debt(debt), Err(QuotaError::DebtTooLarge { debt, largest }));
                }
                // A burst that leaves no room for the debt.
                if quota.capacity() > 1 {
                    prop_assert!(most.burst(quota.capacity() - 1).is_ok());
                }
                let burst = quota.capacity() + 1;
                prop_assert_eq!(most.burst(burst).is_ok(), false);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn every_quota_below_its_bounds_works_at_both_ends(quota in support::quota()) {
        works_at_both_ends(quota);
    }

    #[test]
    fn the_shortest_window_is_the_shortest(limit in magnitude(), short in 1..1_000_000_u64) {
        match WindowStep::new(rate(limit, short)) {
            Ok(_) => {}
            Err(QuotaError::WindowTooShort { rate: named, shortest }) => {
                prop_assert_eq!(named, rate(limit, short));
                prop_assert!(shortest > short);
                check_window(WindowStep::new(rate(limit, shortest)).unwrap(), limit)?;
                let refused = rate(limit, shortest - 1);
                let error = QuotaError::WindowTooShort { rate: refused, shortest };
                prop_assert_eq!(WindowStep::new(refused), Err(error));
                prop_assert_eq!(WindowLimit::from_rate(refused), Err(error));
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

/// The first and the last window hold exactly the limit, and no count spills into a number.
fn check_window(step: WindowStep, limit: u64) -> Result<(), TestCaseError> {
    let mut state = WindowState::UNUSED;
    for now in [Nanos::ZERO, Nanos::HORIZON] {
        if step.start_of(now) == Nanos::ZERO && now != Nanos::ZERO {
            continue;
        }
        let (next, decision) = step.try_acquire(state, now, limit);
        prop_assert_eq!(decision.map(|admitted| admitted.remaining), Ok(Remaining::Exactly(0)));
        let (next, decision) = step.try_acquire(next, now, 1);
        prop_assert!(decision.is_err());
        prop_assert_eq!(step.inspect(step.refund(next, now, limit), now).level, limit);
        state = next;
    }
    Ok(())
}

#[test]
fn a_debt_beyond_every_bound_is_an_error_in_every_build() {
    // Burst, debt and period together exceed 128 bits.
    for period in [u64::MAX, u64::MAX - 1, 1 << 63] {
        let quota = Quota::with_burst(rate(1, period), (1 << 63) - 2).unwrap();
        assert_eq!(quota.with_debt(u64::MAX), Err(QuotaError::DebtTooLarge { debt: u64::MAX, largest: 0 }));
        assert_eq!(quota.with_debt(0), Ok(quota));
    }
}

#[test]
fn the_highest_rate_is_just_below_what_fills_63_bits_in_30_years() {
    // Per second, by bisection.
    let (mut possible, mut impossible) = (1_u64, u64::MAX);
    while impossible - possible > 1 {
        let middle = possible + (impossible - possible) / 2;
        if Quota::with_burst(rate(middle, 1_000_000_000), 1).is_ok() { possible = middle } else { impossible = middle }
    }
    assert!(generated(possible, 1_000_000_000) < (1 << 63) - 1);
    assert!(generated(impossible, 1_000_000_000) >= (1 << 63) - 1);
    assert!(possible > 9_700_000_000 && possible < 9_750_000_000, "{possible}, as the message says");
    works_at_both_ends(Quota::with_burst(rate(possible, 1_000_000_000), 1).unwrap());
}

#[test]
fn a_rate_that_leaves_no_room_for_a_single_token_is_too_high() {
    // 30 years of it are exactly 2^63 - 1 tokens.
    let full = rate((1 << 63) - 1, Nanos::HORIZON.as_u64());
    assert_eq!(Quota::with_burst(full, 1), Err(QuotaError::RateTooHigh { rate: full }));
    let less = rate((1 << 63) - 2, Nanos::HORIZON.as_u64());
    works_at_both_ends(Quota::with_burst(less, 1).unwrap());
    assert_eq!(Quota::with_burst(less, 2), Err(QuotaError::BurstTooLarge { burst: 2, largest: 1 }));
}

#[test]
fn rates_have_no_zeros_and_584_years_at_most() {
    assert_eq!(Rate::new(0, PER_SECOND), Err(QuotaError::ZeroTokens));
    assert_eq!(Rate::new(1, Duration::ZERO), Err(QuotaError::ZeroPeriod));
    let longest = Duration::from_nanos(u64::MAX);
    works_at_both_ends(Quota::new(Rate::new(1, longest).unwrap()).unwrap());
    for period in [longest + Duration::from_nanos(1), Duration::MAX] {
        assert_eq!(Rate::new(1, period), Err(QuotaError::PeriodTooLong { period }));
    }
    assert_eq!(Quota::with_burst(rate(1, 1_000), 0), Err(QuotaError::ZeroBurst));
}

#[test]
fn the_shorthands_name_their_periods() {
    for (quota, period) in [
        (Quota::per_second(7), PER_SECOND),
        (Quota::per_minute(7), PER_MINUTE),
        (Quota::per_hour(7), PER_HOUR),
        (Quota::per_day(7), PER_DAY),
    ] {
        let quota = quota.unwrap();
        assert_eq!((quota.rate().tokens(), quota.rate().period(), quota.capacity()), (7, period, 7));
        assert_eq!(quota.burst(9).unwrap(), Quota::with_burst(quota.rate(), 9).unwrap());
        assert_eq!(Quota::per_second(0), Err(QuotaError::ZeroTokens));
    }
}

#[test]
fn windows_at_the_edge_of_a_word() {
    // A count of 64 bits leaves no number: one window for all time.
    for limit in [1 << 63, u64::MAX] {
        let whole_life = Nanos::HORIZON.as_u64() + 1;
        let step = WindowStep::new(rate(limit, whole_life)).unwrap();
        check_window(step, limit).unwrap();
        let shortest = whole_life;
        assert!(matches!(
            WindowStep::new(rate(limit, whole_life - 1)),
            Err(QuotaError::WindowTooShort { shortest: named, .. }) if named == shortest
        ));
    }
    // A nanosecond leaves 4 bits for the count.
    check_window(WindowStep::new(rate(15, 1)).unwrap(), 15).unwrap();
    assert!(matches!(WindowStep::new(rate(16, 1)), Err(QuotaError::WindowTooShort { shortest: 2, .. })));
}

#[test]
fn every_error_says_what_was_asked_for_and_what_is_possible() {
    let messages = [
        (
            QuotaError::ZeroTokens,
            "0 tokens per period: the least is 1; use `deny` to admit nothing, `off` for no limit",
        ),
        (QuotaError::ZeroPeriod, "a period of 0: the least is 1ns"),
        (
            QuotaError::PeriodTooLong { period: Duration::from_secs(20_000_000_000) },
            "a period of 20000000000 s: the longest is 18446744073709551615 ns, about 584 years",
        ),
        (QuotaError::ZeroBurst, "a burst of 0: the least is 1; use `deny` to admit nothing, `off` for no limit"),
        (
            QuotaError::RateTooHigh { rate: rate(10, 1) },
            "a rate of 10/1ns: the highest is about 9.7 tokens per ns (9700000000/1s)",
        ),
        (QuotaError::BurstTooLarge { burst: 9, largest: 8 }, "a burst of 9: the largest at this rate is 8"),
        (
            QuotaError::WindowTooShort { rate: rate(16, 1), shortest: 2 },
            "a window of 16/1ns: the shortest window with a limit of 16 is 2ns",
        ),
        (QuotaError::DebtTooLarge { debt: 9, largest: 8 }, "a debt of 9: the largest at this rate and burst is 8"),
        (
            QuotaError::DebtOnWindow { debt: 9 },
            "a debt of 9 on a window: a window has no debt, only a token bucket may",
        ),
        (
            QuotaError::BurstOnWindow { burst: 9 },
            "a burst of 9 on a window: a window admits its limit and has no other burst",
        ),
    ];
    for (error, message) in messages {
        assert_eq!(error.to_string(), message);
    }
}
