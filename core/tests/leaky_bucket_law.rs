//! The leaky bucket against its law, computed in rationals of any size from the instants themselves.

mod support;

use core::time::Duration;

use num_traits::{Signed, ToPrimitive, Zero};
use proptest::prelude::*;
use sluicegate_core::{
    Denied, LeakyBucket, LeakyBucketState, LeakyBucketStep, ManualClock, Nanos, Pacing, Quota, QuotaError, Rate,
};
use support::ideal::{Tokens, slack, whole};
use support::{cases, magnitude, period};

/// The law: slots on the real line of time. Nothing is counted in units, and nothing is rounded.
struct Ideal {
    /// Tokens per nanosecond.
    rate: Tokens,
    pacing: Pacing,
    /// When the next free slot begins; long ago at first.
    next: Tokens,
    /// A unit of refill in nanoseconds; 0 where the rate has an exact grid.
    unit: Tokens,
}

impl Ideal {
    fn idle(pacing: Pacing) -> Self {
        let rate = Tokens::new(pacing.rate().tokens().into(), pacing.rate().period_nanos().into());
        let room = pacing.queue() + pacing.slack() + pacing.largest_cost();
        let unit = slack(Quota::with_burst(pacing.rate(), room).unwrap()) / &rate;
        let next = -whole(u64::MAX) - whole(pacing.slack()) / &rate;
        Self { rate, pacing, next, unit }
    }

    fn span(&self, tokens: u64) -> Tokens {
        whole(tokens) / &self.rate
    }

    /// The slot of an item that arrives at `now`: lost time is made up for as far as the slack goes.
    fn slot(&self, now: u64) -> Tokens {
        let earliest = whole(now) - self.span(self.pacing.slack());
        if self.next > earliest { self.next.clone() } else { earliest }
    }

    /// The whole nanosecond at which that slot departs.
    fn departure(&self, now: u64) -> Tokens {
        self.slot(now).ceil().max(whole(now))
    }

    /// How much longer than the queue allows the item would wait, in nanoseconds; it is refused if that is above 0.
    fn excess(&self, now: u64) -> Tokens {
        self.slot(now) - whole(now) - self.span(self.pacing.queue())
    }

    fn take(&mut self, now: u64, cost: u64) {
        self.next = self.slot(now) + self.span(cost);
    }
}

fn pacings() -> impl Strategy<Value = Pacing> {
    let tokens = || prop_oneof![2 => Just(0), 3 => 1..30_u64, 1 => magnitude()];
    (magnitude(), period(), tokens(), tokens(), magnitude()).prop_map(|(tokens, period, queue, slack, largest)| {
        let (mut tokens, mut parts) = (tokens, [queue, slack, largest]);
        loop {
            let rate = Rate::new(tokens, Duration::from_nanos(period)).unwrap();
            let [queue, slack, largest] = parts;
            let pacing = Pacing::new(rate, queue)
                .and_then(|pacing| pacing.with_slack(slack))
                .and_then(|pacing| pacing.with_largest_cost(largest.max(1)));
            match pacing {
                Ok(pacing) => return pacing,
                Err(QuotaError::PacingTooLarge { .. }) => parts = parts.map(|part| part / 16),
                Err(QuotaError::RateTooHigh { .. }) => tokens /= 2,
                Err(error) => panic!("{error}"),
            }
        }
    })
}

#[derive(Clone, Debug)]
enum Operation {
    Arrive(u64),
    ArriveLargest(i8),
    /// As many of 1 at once as are accepted, but no more than this.
    Burst(u8),
    CancelNewest,
    CancelOlder,
    Ahead(u64),
    Back(u64),
    Tokens(u64),
    /// To the reading that the latest refusal named, or a nanosecond beside it.
    Hint(i8),
}

fn operation() -> impl Strategy<Value = Operation> {
    let span = || (0..1_u64 << 58, 0..58_u32).prop_map(|(span, shift)| span >> shift);
    prop_oneof![
        4 => (0..4_u64).prop_map(Operation::Arrive),
        1 => magnitude().prop_map(Operation::Arrive),
        1 => (-1..=1_i8).prop_map(Operation::ArriveLargest),
        3 => (1..12_u8).prop_map(Operation::Burst),
        1 => Just(Operation::CancelNewest),
        1 => Just(Operation::CancelOlder),
        2 => span().prop_map(Operation::Ahead),
        1 => span().prop_map(Operation::Back),
        3 => (0..12_u64).prop_map(Operation::Tokens),
        3 => (-1..=1_i8).prop_map(Operation::Hint),
    ]
}

/// The crate's two forms of one bucket, and the ideal one.
struct Bench {
    pacing: Pacing,
    step: LeakyBucketStep,
    state: LeakyBucketState,
    bucket: LeakyBucket<ManualClock>,
    ideal: Ideal,
    now: u64,
    hinted: u64,
    /// Departures and costs in the order of admission.
    departed: Vec<(u64, u64)>,
}

impl Bench {
    fn new(pacing: Pacing) -> Self {
        Self {
            pacing,
            step: LeakyBucketStep::new(pacing),
            state: LeakyBucketState::IDLE,
            bucket: LeakyBucket::with_clock(pacing, ManualClock::new()),
            ideal: Ideal::idle(pacing),
            now: 0,
            hinted: 0,
            departed: Vec::new(),
        }
    }

    fn run(&mut self, operation: &Operation) -> Result<(), TestCaseError> {
        match *operation {
            Operation::Arrive(cost) => self.arrive(cost).map(drop)?,
            Operation::ArriveLargest(off) => {
                self.arrive(self.pacing.largest_cost().saturating_add_signed(off.into())).map(drop)?;
            }
            Operation::Burst(count) => {
                let level = self.bucket.inspect().level;
                for index in 0..u64::from(count) {
                    let accepted = self.arrive(1)?;
                    prop_assert_eq!(accepted, index < level, "{} of {}", index, level);
                    if !accepted {
                        break;
                    }
                }
            }
            Operation::CancelNewest => {
                let before = (self.bucket.state(), self.bucket.inspect());
                if let Ok(departure) = self.bucket.try_acquire(1) {
                    prop_assert!(self.bucket.cancel(departure).is_ok());
                }
                prop_assert_eq!((self.bucket.state(), self.bucket.inspect()), before, "as if it had never come");
            }
            Operation::CancelOlder => {
                let before = self.bucket.state();
                let Ok(older) = self.bucket.try_acquire(1) else { return Ok(()) };
                let Ok(newer) = self.bucket.try_acquire(1) else {
                    prop_assert!(self.bucket.cancel(older).is_ok());
                    return Ok(());
                };
                let (both, at) = (self.bucket.state(), newer.at);
                let Err(older) = self.bucket.cancel(older) else {
                    return Err(TestCaseError::fail("a slot before another was given up"));
                };
                prop_assert_eq!(self.bucket.state(), both);
                prop_assert!(at >= older.at);
                prop_assert!(self.bucket.cancel(newer).is_ok());
                prop_assert!(self.bucket.cancel(older).is_ok());
                prop_assert_eq!(self.bucket.state(), before, "as if neither had come");
            }
            Operation::Ahead(span) => self.go(self.now.saturating_add(span)),
            Operation::Back(span) => self.go(self.now.saturating_sub(span)),
            Operation::Hint(off) => self.go(self.hinted.saturating_add_signed(off.into())),
            Operation::Tokens(tokens) => {
                self.go(self.now.saturating_add(self.ideal.span(tokens).to_u64().unwrap_or(0)));
            }
        }
        Ok(())
    }

    /// Readings stay clear of the horizon, where time stands still: other tests go there.
    fn go(&mut self, to: u64) {
        self.now = to.min(900_000_000_000_000_000);
        self.bucket.clock().set(Nanos::new(self.now));
    }

    fn arrive(&mut self, cost: u64) -> Result<bool, TestCaseError> {
        let now = Nanos::new(self.now);
        let peeked = self.bucket.peek(cost);
        let before = self.state;
        let (after, decision) = self.step.try_acquire(before, now, cost);
        let shared = self.bucket.try_acquire(cost);
        prop_assert_eq!(&shared, &decision);
        prop_assert_eq!(peeked, decision.as_ref().map(|departure| departure.delay).map_err(|denied| *denied));
        prop_assert_eq!(self.bucket.state(), after);
        self.state = after;
        match decision {
            Ok(departure) => {
                prop_assert!(cost <= self.pacing.largest_cost());
                prop_assert_eq!((departure.at, departure.cost()), (now + departure.delay, cost));
                prop_assert_eq!(departure.is_immediate(), departure.at == now);
                if cost == 0 {
                    prop_assert!(departure.is_immediate() && before == after);
                    return Ok(true);
                }
                prop_assert!(self.ideal.excess(self.now) <= self.ideal.unit, "behind too much");
                self.check_departure(departure.at.as_u64())?;
                self.ideal.take(self.now, cost);
                self.departed.push((departure.at.as_u64(), cost));
                Ok(true)
            }
            Err(denied) => {
                prop_assert_eq!(before, after, "a refusal writes nothing");
                match denied {
                    Denied::CostExceedsLimit { cost: asked, limit } => {
                        prop_assert_eq!((asked, limit), (cost, self.pacing.largest_cost()));
                        prop_assert!(cost > limit);
                    }
                    Denied::RateLimited { retry_after } => {
                        prop_assert!(cost <= self.pacing.largest_cost() && cost > 0);
                        prop_assert!(self.ideal.excess(self.now) > -self.ideal.unit.clone(), "refused early");
                        prop_assert!(!self.ideal.unit.is_zero() || self.ideal.excess(self.now).is_positive());
                        self.check_hint(now, cost, retry_after)?;
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
                Ok(false)
            }
        }
    }

    fn check_departure(&self, at: u64) -> Result<(), TestCaseError> {
        let ideal = self.ideal.departure(self.now);
        if at > Nanos::HORIZON.as_u64() {
            // Time stands still there: the departure is about when it would be.
            prop_assert!(whole(at) >= (&ideal - whole(2)).min(whole(u64::MAX)), "{} before {}", at, ideal);
            return Ok(());
        }
        prop_assert!(whole(at) >= ideal, "{} before {}", at, ideal);
        // A slot begins up to a unit late where the grid is not exact; the last of those that depart at once may notice.
        let latest = (self.ideal.slot(self.now) + &self.ideal.unit).ceil().max(whole(self.now));
        prop_assert!(whole(at) <= latest, "{} after {}", at, latest);
        prop_assert!(!self.ideal.unit.is_zero() || whole(at) == ideal);
        // Nobody waits longer than the queue takes.
        let wait = whole(at - self.now);
        let most = (self.ideal.span(self.pacing.queue()) + &self.ideal.unit).ceil();
        prop_assert!(wait <= most, "{} of {}", wait, most);
        Ok(())
    }

    fn check_hint(&mut self, now: Nanos, cost: u64, retry_after: Duration) -> Result<(), TestCaseError> {
        prop_assert!(!retry_after.is_zero());
        let hinted = now + retry_after;
        if hinted <= Nanos::HORIZON {
            self.hinted = hinted.as_u64();
            prop_assert!(self.step.try_acquire(self.state, hinted, cost).1.is_ok(), "too early");
            let early = Nanos::new(self.hinted - 1);
            prop_assert!(self.step.try_acquire(self.state, early, cost).1.is_err(), "too late");
        }
        Ok(())
    }

    /// Pace, over all pairs of departures: exact on every grid.
    fn check_pace(&self) -> Result<(), TestCaseError> {
        let slack = self.ideal.span(self.pacing.slack());
        for (index, &(first, _)) in self.departed.iter().enumerate() {
            let mut cost = Tokens::zero();
            for pair in self.departed[index..].windows(2) {
                if pair[1].0 > Nanos::HORIZON.as_u64() {
                    break;
                }
                cost += whole(pair[0].1);
                let gap = whole(pair[1].0) - whole(first);
                let least = &cost / &self.ideal.rate;
                let is_kept = gap > &least - whole(1) || gap >= &least - &slack;
                prop_assert!(is_kept, "{} in {}, {}", gap, least, slack);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn c06_departures_are_those_of_the_ideal_bucket(
        pacing in pacings(),
        operations in prop::collection::vec(operation(), 1..40),
    ) {
        let mut bench = Bench::new(pacing);
        for operation in &operations {
            bench.run(operation)?;
            // What was taken to be cancelled is as if it had never come.
            prop_assert_eq!(bench.bucket.state(), bench.state);
        }
        bench.check_pace()?;
    }

    #[test]
    fn c06_nobody_is_given_a_slot_beyond_the_longest_wait(
        pacing in pacings(),
        costs in prop::collection::vec((0_u64..4, magnitude(), magnitude()), 1..40),
    ) {
        let bucket = LeakyBucket::with_clock(pacing, ());
        let mut now = Nanos::ZERO;
        for (cost, ahead, longest) in costs {
            now = now.saturating_add(Duration::from_nanos(ahead % 1_000_000_000));
            let longest = Duration::from_nanos(longest);
            let (state, unbounded) = (bucket.state(), bucket.peek_at(now, cost));
            match bucket.try_acquire_within_at(now, cost, longest) {
                Ok(departure) => {
                    prop_assert_eq!(Ok(departure.delay), unbounded);
                    prop_assert!(departure.delay <= longest);
                }
                Err(Denied::RateLimited { retry_after }) => {
                    prop_assert!(unbounded.is_err() || unbounded.is_ok_and(|delay| delay > longest));
                    prop_assert_eq!(bucket.state(), state);
                    let step = LeakyBucketStep::new(pacing);
                    let again = |after| step.try_acquire_within(state, now.saturating_add(after), cost, longest).1;
                    let at = now.saturating_add(retry_after);
                    if at < Nanos::HORIZON {
                        prop_assert!(again(retry_after).is_ok());
                    }
                    prop_assert!(again(retry_after - Duration::from_nanos(1)).is_err());
                }
                Err(denied) => prop_assert_eq!(unbounded, Err(denied)),
            }
        }
    }

    #[test]
    fn any_word_is_a_state(
        pacing in pacings(),
        bits in any::<u64>(),
        reading in any::<u64>(),
        cost in magnitude(),
    ) {
        let step = LeakyBucketStep::new(pacing);
        let (state, now) = (LeakyBucketState::from_bits(bits), Nanos::new(reading));
        let (after, decision) = step.try_acquire(state, now, cost);
        let inspection = step.inspect(after, now);
        prop_assert!(inspection.level <= inspection.capacity);
        match decision {
            Ok(departure) => {
                prop_assert!(departure.at >= now);
                let later = LeakyBucketState::from_bits(after.to_bits().wrapping_add(1));
                let departure = match step.cancel(later, departure) {
                    Err(departure) => departure,
                    Ok(unchanged) => {
                        prop_assert!(cost == 0 && unchanged == later, "another item came");
                        return Ok(());
                    }
                };
                prop_assert_eq!(step.cancel(after, departure), Ok(state));
            }
            Err(denied) => {
                prop_assert!(after == state);
                prop_assert!(denied.is_final() || !denied.retry_after().unwrap().is_zero());
            }
        }
    }
}

fn pacing(rate: &str, queue: u64) -> Pacing {
    Pacing::new(rate.parse().unwrap(), queue).unwrap()
}

#[test]
fn c06_output_is_strictly_constant_while_items_wait() {
    // All of a year's busy period: no drift on any grid. Every departure is its ideal instant, rounded up.
    for (rate, start) in [
        ("100/1s", 0),
        ("7/3s", 12_345),
        ("11/1s", 5_000_000_000),
        ("999_999_937/1s", 31_557_600_000_000_007),
        ("1_000_003/97s", 977),
        ("3/10ns", 29),
    ] {
        let pacing = pacing(rate, 1_000_000);
        let ideal = Ideal::idle(pacing);
        let step = LeakyBucketStep::new(pacing);
        let (mut state, mut last, mut now) = (LeakyBucketState::IDLE, None, start);
        let constant = [ideal.span(1).floor(), ideal.span(1).ceil()].map(|gap| gap.to_u64().unwrap());
        for index in 0..30_000_u64 {
            let (next, departure) = step.try_acquire(state, Nanos::new(now), 1);
            let at = departure.unwrap().at.as_u64();
            state = next;
            // Ten at a time, at readings that have nothing to do with the rate, but never so late that the bucket idles.
            if index % 10 == 9 {
                now = now.max(at - (at - now) / 3);
            }
            if index % 97 == 0 {
                let exact = whole(start) + whole(index) / &ideal.rate;
                let late = whole(at) - exact.ceil();
                assert!(late.is_zero() || late <= ideal.unit.ceil(), "{rate}: item {index} at {at} is {late} late");
                assert!(!ideal.unit.is_zero() || late.is_zero());
            }
            let gap = at - last.unwrap_or(at);
            assert!(last.is_none() || constant.contains(&gap), "{rate}: {gap}");
            last = Some(at);
        }
    }
}
