//! The token bucket against the law of exactness: an ideal bucket in rationals of any size.

mod support;

use core::time::Duration;

use num_traits::{Signed, ToPrimitive, Zero};
use proptest::prelude::*;
use sluicegate_core::{
    BucketCell, BucketState, BucketStep, Denied, Limit, ManualClock, Nanos, Quota, Remaining, TokenBucket, quota,
};
use support::ideal::{Ideal, seen, whole};
use support::{cases, magnitude, quota};

#[derive(Clone, Debug)]
enum Move {
    /// The clock's next reading.
    Stall,
    Ahead(u64),
    Back(u64),
    To(u64),
    /// To `now + retry_after` of the latest denial, or a nanosecond before or after.
    Hint(i8),
    /// Until about this many tokens have flowed in.
    Tokens(u64),
}

#[derive(Clone, Debug)]
enum Cost {
    Tokens(u64),
    /// What is there, and some more or less.
    Level(i8),
    /// The capacity, and some more or less.
    Capacity(i8),
}

#[derive(Clone, Debug)]
enum Operation {
    Acquire(Cost),
    Refund(Cost),
}

fn moves() -> impl Strategy<Value = Move> {
    const YEAR: u64 = 31_557_600_000_000_000;
    prop_oneof![
        4 => Just(Move::Stall),
        4 => (0..1_u64 << 60, 0..60_u32).prop_map(|(span, shift)| Move::Ahead(span >> shift)),
        1 => (1..4_u64, 0..1_000_u64).prop_map(|(years, more)| Move::Ahead(years * YEAR + more)),
        2 => (0..1_u64 << 60, 4..60_u32).prop_map(|(span, shift)| Move::Back(span >> shift)),
        1 => (0..30 * YEAR).prop_map(Move::To),
        5 => (-1..=1_i8).prop_map(Move::Hint),
        3 => (0..20_u64).prop_map(Move::Tokens),
    ]
}

/// Also to the end of the limiter's time and far beyond it.
fn wild_moves() -> impl Strategy<Value = Move> {
    prop_oneof![
        9 => moves(),
        1 => prop::sample::select(vec![0, 946_728_000_000_000_000_u64, u64::MAX])
            .prop_flat_map(|about| (-2..=2_i64).prop_map(move |off| Move::To(about.saturating_add_signed(off)))),
    ]
}

fn cost() -> impl Strategy<Value = Cost> {
    prop_oneof![
        2 => (0..5_u64).prop_map(Cost::Tokens),
        2 => magnitude().prop_map(Cost::Tokens),
        4 => (-1..=1_i8).prop_map(Cost::Level),
        2 => (-1..=1_i8).prop_map(Cost::Capacity),
        1 => Just(Cost::Tokens(u64::MAX)),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![4 => cost().prop_map(Operation::Acquire), 1 => cost().prop_map(Operation::Refund)]
}

/// The crate's three forms of one bucket, and the ideal one.
struct Bench {
    quota: Quota,
    step: BucketStep,
    state: BucketState,
    cell: BucketCell,
    bucket: TokenBucket<ManualClock>,
    ideal: Ideal,
    now: Nanos,
    hinted: Nanos,
    /// Readings and costs of what was admitted.
    admitted: Vec<(u64, u64)>,
}

impl Bench {
    fn new(quota: Quota) -> Self {
        Self {
            quota,
            step: BucketStep::new(quota),
            state: BucketState::FULL,
            cell: BucketCell::new(),
            bucket: TokenBucket::with_clock(quota, ManualClock::new()),
            ideal: Ideal::full(quota),
            now: Nanos::ZERO,
            hinted: Nanos::ZERO,
            admitted: Vec::new(),
        }
    }

    fn go(&mut self, to: &Move) {
        let now = self.now.as_u64();
        let next = match *to {
            Move::Stall => now,
            Move::Ahead(span) => now.saturating_add(span),
            Move::Back(span) => now.saturating_sub(span),
            Move::To(reading) => reading,
            Move::Hint(off) => self.hinted.as_u64().saturating_add_signed(off.into()),
            Move::Tokens(tokens) => {
                let rate = self.quota.rate();
                let span = u128::from(tokens) * u128::from(rate.period_nanos()) / u128::from(rate.tokens());
                now.saturating_add(u64::try_from(span).unwrap_or(0))
            }
        };
        self.now = Nanos::new(next);
        self.bucket.clock().set(self.now);
    }

    fn cost(&self, cost: &Cost) -> u64 {
        match *cost {
            Cost::Tokens(tokens) => tokens,
            Cost::Level(off) => self.step.inspect(self.state, self.now).level.saturating_add_signed(off.into()),
            Cost::Capacity(off) => self.quota.capacity().saturating_add_signed(off.into()),
        }
    }

    fn run(&mut self, operation: &Operation) -> Result<(), TestCaseError> {
        match operation {
            Operation::Acquire(cost) => self.acquire(self.cost(cost))?,
            Operation::Refund(cost) => {
                let cost = self.cost(cost);
                self.state = self.step.refund(self.state, cost);
                self.cell.refund(&self.step, cost);
                self.bucket.refund(cost);
                self.ideal.give_back(cost);
            }
        }
        self.look()
    }

    fn acquire(&mut self, cost: u64) -> Result<(), TestCaseError> {
        let now = self.now;
        let peeked = self.bucket.peek(cost);
        let before = self.state;
        let (after, decision) = self.step.try_acquire(before, now, cost);
        prop_assert_eq!(self.cell.peek(&self.step, now, cost), decision);
        prop_assert_eq!(self.cell.try_acquire(&self.step, now, cost), decision);
        prop_assert_eq!(self.bucket.try_acquire(cost), decision);
        prop_assert_eq!(peeked, decision);
        self.state = after;

        let level = self.ideal.level(now);
        let slack = self.ideal.slack.clone();
        match decision {
            Ok(admitted) => {
                prop_assert!(cost <= self.quota.capacity());
                prop_assert_eq!(admitted.at, now);
                // A cost of 0 passes always, also for a late reading that finds less than nothing.
                if cost > 0 {
                    prop_assert!(level > whole(cost) - &slack || level == whole(cost), "{} of {}", cost, level);
                    self.admitted.push((seen(now), cost));
                    self.ideal.take(now, cost);
                } else {
                    prop_assert_eq!(after, before, "a cost of 0 leaves no trace");
                }
                let Remaining::Exactly(left) = admitted.remaining else {
                    return Err(TestCaseError::fail(format!("{admitted:?}")));
                };
                self.check_whole(left)?;
            }
            Err(denied) => {
                prop_assert_eq!(after, before, "a denial writes nothing");
                match denied {
                    Denied::CostExceedsLimit { cost: asked, limit } => {
                        prop_assert_eq!((asked, limit), (cost, self.quota.capacity()));
                        prop_assert!(cost > limit);
                    }
                    Denied::RateLimited { retry_after } => {
                        prop_assert!(cost <= self.quota.capacity());
                        prop_assert!(level < whole(cost) + &slack, "{} of {}", cost, level);
                        prop_assert!(!self.ideal.is_exact() || level < whole(cost));
                        self.check_hint(cost, retry_after)?;
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
        }
        Ok(())
    }

    fn check_hint(&mut self, cost: u64, retry_after: Duration) -> Result<(), TestCaseError> {
        prop_assert!(!retry_after.is_zero());
        let now = Nanos::new(seen(self.now));
        let instant = self.ideal.instant_of(now, cost);
        let hinted = now + retry_after;
        if hinted <= Nanos::HORIZON {
            self.hinted = hinted;
            let (state, decision) = self.step.try_acquire(self.state, hinted, cost);
            prop_assert!(decision.is_ok(), "too early: {:?}", decision);
            prop_assert!(self.step.inspect(state, hinted).level < self.quota.capacity() || cost == 0);
            let early = Nanos::new(hinted.as_u64() - 1);
            prop_assert!(self.step.try_acquire(self.state, early, cost).1.is_err(), "too late");
        }
        // How far one unit may shift the instant; past the horizon another 2 ns.
        let shift = &self.ideal.slack * self.ideal.refill(0, 1).recip();
        let allowed = shift + if hinted > Nanos::HORIZON { whole(2) } else { whole(0) };
        if hinted < Nanos::new(u64::MAX - 8) {
            let distance = (whole(hinted.as_u64()) - instant.ceil()).abs();
            prop_assert!(distance <= allowed.ceil(), "{} for {}", hinted, instant);
        }
        Ok(())
    }

    /// Whether `tokens` are the whole ones of the ideal level now.
    fn check_whole(&self, tokens: u64) -> Result<(), TestCaseError> {
        let level = self.ideal.level(self.now).max(whole(0));
        if self.ideal.is_exact() {
            prop_assert_eq!(whole(tokens), level.floor());
        } else {
            prop_assert!(whole(tokens) < &level + &self.ideal.slack || whole(tokens) == level);
            prop_assert!(whole(tokens) + whole(1) > level - &self.ideal.slack);
        }
        Ok(())
    }

    fn look(&self) -> Result<(), TestCaseError> {
        let inspection = self.step.inspect(self.state, self.now);
        prop_assert_eq!(self.cell.inspect(&self.step, self.now), inspection);
        prop_assert_eq!(self.bucket.inspect(), inspection);
        prop_assert_eq!((self.cell.state(), self.bucket.state()), (self.state, self.state));
        prop_assert_eq!(inspection.capacity, self.quota.capacity());
        prop_assert!(inspection.level <= inspection.capacity);
        self.check_whole(inspection.level)?;

        let missing = whole(self.quota.capacity()) - self.ideal.level(self.now);
        if self.step.is_full(self.state, self.now) {
            prop_assert!(missing.is_zero() || missing < self.ideal.slack);
            prop_assert_eq!(inspection.level, inspection.capacity);
        } else {
            prop_assert!(missing.is_positive() || !self.ideal.is_exact());
        }
        Ok(())
    }

    /// Safety: over all pairs of readings s <= t.
    fn check_pairs(&mut self) -> Result<(), TestCaseError> {
        self.admitted.sort_unstable();
        let slack = self.ideal.slack.clone();
        let capacity = whole(self.quota.capacity());
        for (index, &(start, _)) in self.admitted.iter().enumerate() {
            let mut cost = 0_u128;
            for &(end, more) in &self.admitted[index..] {
                cost += u128::from(more);
                let allowed = &capacity + self.ideal.refill(start, end);
                prop_assert!(whole(cost) <= allowed.clone() + &slack, "{} in {}..={}", cost, start, end);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn decides_as_the_ideal_bucket(
        quota in quota(),
        operations in prop::collection::vec((moves(), operation()), 1..30),
    ) {
        let mut bench = Bench::new(quota);
        for (to, operation) in &operations {
            bench.go(to);
            bench.run(operation)?;
        }
    }

    #[test]
    fn decides_as_the_ideal_bucket_under_any_clock(
        quota in quota(),
        operations in prop::collection::vec((wild_moves(), operation()), 1..30),
    ) {
        let mut bench = Bench::new(quota);
        for (to, operation) in &operations {
            bench.go(to);
            bench.run(operation)?;
        }
    }

    #[test]
    fn never_admits_more_between_any_two_readings(
        quota in quota(),
        operations in prop::collection::vec((wild_moves(), cost()), 1..30),
    ) {
        let mut bench = Bench::new(quota);
        for (to, cost) in operations {
            bench.go(&to);
            bench.run(&Operation::Acquire(cost))?;
        }
        bench.check_pairs()?;
    }

    #[test]
    fn a_refund_is_exact_and_stops_at_the_capacity(
        quota in quota(),
        uptime in 0..900_000_000_000_000_000_u64,
        taken in magnitude(),
        given in prop::collection::vec(magnitude(), 1..5),
    ) {
        let step = BucketStep::new(quota);
        let now = Nanos::new(uptime);
        let taken = taken.min(quota.capacity());
        let (mut state, decision) = step.try_acquire(BucketState::FULL, now, taken);
        prop_assert!(decision.is_ok());
        let mut level = quota.capacity() - taken;
        for cost in given {
            state = step.refund(state, cost);
            level = level.saturating_add(cost).min(quota.capacity());
            prop_assert_eq!(step.inspect(state, now).level, level);
        }
        let (state, decision) = step.try_acquire(state, now, level);
        prop_assert_eq!(decision.map(|admitted| admitted.remaining), Ok(Remaining::Exactly(0)));
        prop_assert!(step.try_acquire(state, now, 1).1.is_err(), "a token too many");
    }

    #[test]
    fn any_word_is_a_state(quota in quota(), bits in any::<u64>(), reading in any::<u64>(), cost in magnitude()) {
        let step = BucketStep::new(quota);
        let (state, now) = (BucketState::from_bits(bits), Nanos::new(reading));
        let (after, decision) = step.try_acquire(state, now, cost);
        prop_assert!(step.inspect(after, now).level <= quota.capacity());
        prop_assert!(step.inspect(step.refund(after, cost), now).level <= quota.capacity());
        prop_assert_eq!(decision.is_err(), decision.is_err() && after == state);
    }
}

/// Takes all there is at each reading. By `now` the total is the capacity and `floor(N now / P)`, for ever: rounding down
/// to a grid and then to tokens is rounding down to tokens.
fn check_closed_form(quota: Quota, gap: u64, steps: u64) {
    let step = BucketStep::new(quota);
    let (rate, mut state, mut total, mut now) = (quota.rate(), BucketState::FULL, 0_u128, 0_u64);
    for index in 0..steps {
        let level = step.inspect(state, Nanos::new(now)).level;
        let (next, decision) = step.try_acquire(state, Nanos::new(now), level);
        assert!(decision.is_ok());
        state = next;
        total += u128::from(level);
        let flowed = u128::from(now) * u128::from(rate.tokens()) / u128::from(rate.period_nanos());
        assert_eq!(total, u128::from(quota.capacity()) + flowed, "{quota} after {now} ns");
        // Uneven, so that readings fall everywhere between two tokens.
        now += gap - gap / 3 + (index * 0x9e37_79b9 % (gap / 2 + 1));
    }
    assert!(now <= Nanos::HORIZON.as_u64());
}

#[test]
fn no_error_accumulates_over_millions_of_readings() {
    const YEAR: u64 = 31_557_600_000_000_000;
    // A capacity that no gap fills, so that nothing is lost to a full bucket.
    for (quota, years) in [
        (quota!("7/3s burst 1_000_000"), 1),
        (quota!("700_000_000/1s burst 1_000_000_000_000_000"), 10),
        (quota!("150_000_000/1s burst 900_000_000_000_000"), 10),
        (quota!("999_999_937/1s burst 1_000_000_000_000_000"), 20),
        (quota!("1_000_003/97s burst 100_000_000"), 20),
        (quota!("1/30d burst 50"), 29),
        (quota!("86_399/1d burst 900_000"), 29),
        (quota!("333_333_333_333/1h burst 1_000_000_000_000_000"), 29),
    ] {
        let steps = 250_000;
        check_closed_form(quota, years * YEAR / steps, steps);
    }
}

#[test]
fn no_error_accumulates_at_nanosecond_readings() {
    for quota in [
        quota!("700_000_000/1s"),
        quota!("999_999_937/1s"),
        quota!("9_700_000_000/1s"),
        quota!("1_000_000_007/1s burst 1_000_000_000_000"),
    ] {
        check_closed_form(quota, 3, 200_000);
    }
}

#[test]
fn a_rate_with_an_exact_grid_is_exact_to_the_nanosecond_for_ever() {
    // On a grid of powers of two these instants, a seventh or a ninth of a nanosecond apart from a whole one, would be
    // off by one now and then.
    for (quota, step_by) in [
        (quota!("7/3s burst 40"), 9_460_730_472_580_801),
        (quota!("9/1s burst 40"), 9_460_730_472_580_803),
        (quota!("100/1s burst 40"), 9_460_730_472_580_807),
        (quota!("300/1m burst 40"), 9_460_730_472_580_809),
        (quota!("8/7us burst 40"), 9_460_730_472_580_811),
    ] {
        assert!(Ideal::full(quota).is_exact(), "{quota}");
        let step = BucketStep::new(quota);
        for index in 0..100 {
            let now = Nanos::new(index * step_by);
            let (state, _) = step.try_acquire(BucketState::FULL, now, 40);
            for cost in 1..=40 {
                let wait = (cost * quota.rate().period_nanos()).div_ceil(quota.rate().tokens());
                let retry_after = Duration::from_nanos(wait);
                let (_, decision) = step.try_acquire(state, now, cost);
                assert_eq!(decision, Err(Denied::RateLimited { retry_after }), "{quota}, {cost} at {now}");
            }
        }
    }
}

#[test]
fn a_key_never_seen_is_full_at_every_reading() {
    for quota in [quota!("7/3s burst 20"), quota!("700_000_000/1s"), quota!("1/30d")] {
        let step = BucketStep::new(quota);
        for reading in [0, 1, 1_000_000_007, Nanos::HORIZON.as_u64(), u64::MAX] {
            let now = Nanos::new(reading);
            assert!(step.is_full(BucketState::FULL, now));
            assert_eq!(step.inspect(BucketState::default(), now).level, quota.capacity());
        }
    }
}

#[test]
fn the_slack_is_within_a_fifth_of_a_nanosecond_at_every_rate_up_to_a_billion_a_second() {
    for tokens in [1, 3, 7, 997, 999_983, 150_000_000, 700_000_000, 999_999_937, 1_000_000_000_u64] {
        for period in [1, 3, 60, 86_400, 2_592_000] {
            let rate = sluicegate_core::Rate::new(tokens * period, Duration::from_secs(period)).unwrap();
            let ideal = Ideal::full(Quota::new(rate).unwrap());
            let shift = (&ideal.slack * ideal.refill(0, 1).recip()).to_f64().unwrap();
            assert!(shift <= 0.22, "{rate}: {shift} ns");
        }
    }
}

#[test]
fn off_and_deny_need_no_state() {
    let off = TokenBucket::with_clock(Limit::Unlimited, ManualClock::new());
    assert_eq!(off.try_acquire(u64::MAX).unwrap().remaining, Remaining::Unlimited);
    assert_eq!(off.peek(u64::MAX).unwrap().remaining, Remaining::Unlimited);
    assert_eq!((off.inspect().level, off.inspect().capacity), (u64::MAX, u64::MAX));
    off.refund(u64::MAX);
    assert_eq!(off.state(), BucketState::FULL);

    let deny = TokenBucket::with_clock(Limit::DenyAll, ManualClock::new());
    deny.refund(1);
    for cost in [0, 1, u64::MAX] {
        assert_eq!(deny.try_acquire(cost), Err(Denied::Closed));
        assert_eq!(deny.peek(cost), Err(Denied::Closed));
    }
    assert_eq!((deny.inspect().level, deny.inspect().fill_percent()), (0, 0));
}
