//! The limit, asked about one request at a log's time.
//!
//! Every decision is core's: [`BucketStep`] or [`WindowStep`], one word of state a key. What is done here is to turn a
//! log's time, which is a date, into a reading of a clock. Core tells readings apart for 30 years from the clock's
//! origin; a log may span more, if only because of one line with a wrong date. So every key has an origin of its own,
//! and when a reading would pass the horizon the origin moves up, and the state with it:
//!
//! - A bucket moves by whole periods, in which a whole number of tokens is generated: the state, which counts consumed
//!   units, moves by exactly as many.
//! - A window's origin is a multiple of its period from the Unix epoch, and what was taken in the current window is
//!   counted again in the same window under its new number.
//!
//! Readings start [`SLACK`], 15 years, after the origin, so that lines that are late by less have readings of their own.
//! Later ones read as the origin, which changes no decision: see `reading`.

use sluicegate_core::{BucketState, BucketStep, Limit, Nanos, WindowLimit, WindowState, WindowStep};

use crate::time::LogTime;

/// A limit, made ready.
#[derive(Debug)]
pub(crate) enum Limiter {
    Unlimited,
    DenyAll,
    Bucket(Bucket),
    Window(Window),
}

/// What a limiter remembers of a key: nothing until something was taken.
pub(crate) type Memory = Option<Level>;

/// One word, and the origin it was written under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// Nanoseconds since the Unix epoch for a bucket, periods since then for a window.
    origin: i64,
    bits: u64,
}

/// The log spans more than can be followed exactly for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanError;

impl Limiter {
    /// Prepares `limit` for buckets.
    pub(crate) fn bucket(limit: Limit) -> Self {
        match limit {
            Limit::Unlimited => Self::Unlimited,
            Limit::DenyAll => Self::DenyAll,
            Limit::Quota(quota) => Self::Bucket(Bucket::new(BucketStep::new(quota))),
        }
    }

    /// Prepares `limit` for windows.
    pub(crate) fn window(limit: WindowLimit) -> Self {
        match limit.step() {
            Some(step) => Self::Window(Window { step }),
            None if limit.denies_all() => Self::DenyAll,
            None => Self::Unlimited,
        }
    }

    /// Whether a request of `cost` passes at `time`. A refusal changes nothing.
    pub(crate) fn admits(&self, memory: &mut Memory, time: LogTime, cost: u64) -> Result<bool, SpanError> {
        match self {
            Self::Unlimited => Ok(true),
            Self::DenyAll => Ok(false),
            Self::Bucket(bucket) => bucket.admits(memory, time, cost),
            Self::Window(window) => Ok(window.admits(memory, time, cost)),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Bucket {
    step: BucketStep,
    /// The shortest span, in nanoseconds, in which a whole number of tokens is generated.
    period: u64,
    /// What core's word moves by in that span. More than 128 bits cannot be: units a nanosecond are below 16.
    units: u128,
    /// Whether an empty bucket is full again within [`SLACK`].
    refills_soon: bool,
}

impl Bucket {
    fn new(step: BucketStep) -> Self {
        let (quota, rate) = (step.quota(), step.quota().rate());
        let common = greatest_common_divisor(rate.tokens(), rate.period_nanos());
        let (tokens, period) = (rate.tokens() / common, rate.period_nanos() / common);
        // One token taken from a full bucket at the origin, where nothing was generated yet, is what the word then holds.
        let units_per_token = step.try_acquire(BucketState::FULL, Nanos::ZERO, 1).0.to_bits();
        let refill = (u128::from(quota.capacity()) * u128::from(period)).div_ceil(u128::from(tokens));
        Self {
            step,
            period,
            units: u128::from(tokens) * u128::from(units_per_token),
            refills_soon: refill <= u128::from(SLACK),
        }
    }

    fn admits(&self, memory: &mut Memory, time: LogTime, cost: u64) -> Result<bool, SpanError> {
        let Level { origin, bits } = match *memory {
            None => self.unused(time),
            Some(level) => self.moved(level, time)?,
        };
        let now = self.reading(origin, time)?;
        let (next, decision) = self.step.try_acquire(BucketState::from_bits(bits), now, cost);
        // An origin moves only together with what is taken, so that whatever is kept was taken SLACK or more after it.
        if decision.is_ok() && cost > 0 {
            *memory = Some(Level { origin, bits: next.to_bits() });
        }
        Ok(decision.is_ok())
    }

    /// A full bucket whose clock reads at least SLACK at `time`, from a multiple of the period since the Unix epoch: then
    /// the instants at which a rate's periods begin have readings at which its tokens are whole.
    fn unused(&self, time: LogTime) -> Level {
        let latest = time.nanos() - SLACK as i64;
        let origin = match i64::try_from(self.period) {
            Ok(period) if self.period <= SLACK => latest.div_euclid(period) * period,
            _ => latest,
        };
        Level { origin, bits: BucketState::FULL.to_bits() }
    }

    /// `level` under an origin from which `time` can be told apart from later times.
    fn moved(&self, level: Level, time: LogTime) -> Result<Level, SpanError> {
        let elapsed = since(level.origin, time);
        if elapsed <= i128::from(Nanos::HORIZON.as_u64()) {
            return Ok(level);
        }
        if self.step.is_full(BucketState::from_bits(level.bits), Nanos::HORIZON) {
            return Ok(self.unused(time));
        }
        // Then the reading is between SLACK and SLACK plus a period.
        let periods = (elapsed - i128::from(SLACK)) / i128::from(self.period);
        let moved = periods * i128::from(self.period);
        if elapsed - moved > i128::from(Nanos::HORIZON.as_u64()) {
            return Err(SpanError);
        }
        // A state from before the new origin is full there, and so is 0.
        let units = self.units.saturating_mul(periods.unsigned_abs());
        let bits = u64::try_from(units).map_or(0, |units| level.bits.saturating_sub(units));
        let origin = i64::try_from(i128::from(level.origin) + moved).map_err(|_| SpanError)?;
        Ok(Level { origin, bits })
    }

    /// A time before the origin is at least SLACK late: what was taken since is not refilled, at this time or at the
    /// origin, if it takes less than SLACK to refill all. Both deny every cost, except 0, which both admit.
    fn reading(&self, origin: i64, time: LogTime) -> Result<Nanos, SpanError> {
        match u64::try_from(since(origin, time)) {
            Ok(reading) => Ok(Nanos::new(reading)),
            Err(_) if self.refills_soon => Ok(Nanos::ZERO),
            Err(_) => Err(SpanError),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Window {
    step: WindowStep,
}

impl Window {
    fn admits(&self, memory: &mut Memory, time: LogTime, cost: u64) -> bool {
        let Level { origin, bits } = match *memory {
            None => self.unused(time),
            Some(level) => self.moved(level, time),
        };
        let now = self.reading(origin, time);
        let (next, decision) = self.step.try_acquire(WindowState::from_bits(bits), now, cost);
        if decision.is_ok() && cost > 0 {
            *memory = Some(Level { origin, bits: next.to_bits() });
        }
        decision.is_ok()
    }

    fn unused(&self, time: LogTime) -> Level {
        let origin = self.number(time) - (SLACK / self.period()) as i64;
        Level { origin, bits: WindowState::UNUSED.to_bits() }
    }

    fn moved(&self, level: Level, time: LogTime) -> Level {
        let horizon = Nanos::HORIZON;
        // A window longer than the horizon may reach beyond it; all of it reads as the same window.
        if self.elapsed(level.origin, time) <= i128::from(horizon.as_u64()) || self.number(time) <= level.origin {
            return level;
        }
        let unused = self.unused(time);
        // Something was taken in this window only if it began before the horizon.
        let begins = (i128::from(self.number(time)) - i128::from(level.origin)) * i128::from(self.period());
        if begins > i128::from(horizon.as_u64()) {
            return unused;
        }
        let inspection = self.step.inspect(WindowState::from_bits(level.bits), horizon);
        let taken = inspection.capacity - inspection.level;
        let now = self.reading(unused.origin, time);
        let (state, _) = self.step.try_acquire(WindowState::UNUSED, now, taken);
        Level { bits: state.to_bits(), ..unused }
    }

    /// A time before the origin is in a window before the one that the state counts, and is taken into that one; so is the
    /// origin, if it is not in that one itself.
    fn reading(&self, origin: i64, time: LogTime) -> Nanos {
        Nanos::new(u64::try_from(self.elapsed(origin, time).max(0)).unwrap_or(u64::MAX))
    }

    fn elapsed(&self, origin: i64, time: LogTime) -> i128 {
        i128::from(time.nanos()) - i128::from(origin) * i128::from(self.period())
    }

    /// The number of the window that `time` lies in, counted from the Unix epoch.
    fn number(&self, time: LogTime) -> i64 {
        match i64::try_from(self.period()) {
            Ok(period) => time.nanos().div_euclid(period),
            // Longer than all times on either side of the epoch.
            Err(_) => -i64::from(time.nanos() < 0),
        }
    }

    fn period(&self) -> u64 {
        self.step.rate().period_nanos()
    }
}

fn since(origin: i64, time: LogTime) -> i128 {
    i128::from(time.nanos()) - i128::from(origin)
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// Half of what core tells apart: as much room for late lines as for later ones.
const SLACK: u64 = Nanos::HORIZON.as_u64() / 2;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definitions, with dates, in 128 bits and without an origin.
    #[derive(Default)]
    struct Model {
        /// Bucket: the date, in units of 1/tokens ns, at which it is full. Window: number and count.
        full_at: Option<i128>,
        window: Option<(i128, u128)>,
    }

    impl Model {
        fn bucket(&mut self, (tokens, period, burst): (u64, u64, u64), time: i64, cost: u64) -> bool {
            let (tokens, period) = (i128::from(tokens), i128::from(period));
            let now = i128::from(time) * tokens;
            let full_at = self.full_at.map_or(now, |full_at| full_at.max(now)) + i128::from(cost) * period;
            let admits = cost == 0 || full_at <= now + i128::from(burst) * period;
            if admits && cost > 0 {
                self.full_at = Some(full_at);
            }
            admits
        }

        fn window(&mut self, (limit, period): (u64, u64), time: i64, cost: u64) -> bool {
            let number = i128::from(time).div_euclid(i128::from(period));
            let (number, count) = match self.window {
                Some((known, count)) if known >= number => (known, count),
                _ => (number, 0),
            };
            let admits = count + u128::from(cost) <= u128::from(limit);
            if admits && cost > 0 {
                self.window = Some((number, count + u128::from(cost)));
            }
            admits
        }
    }

    const DAY: i64 = 86_400_000_000_000;

    /// Times in bunches, years apart, backwards too.
    fn requests() -> impl Strategy<Value = Vec<(i64, u64)>> {
        let jump = prop_oneof![
            8 => Just(0_i64),
            4 => 0..DAY,
            2 => 0..400 * DAY,
            2 => -20 * DAY..0,
            1 => 0..12_000 * DAY,
            1 => -6_000 * DAY..0,
        ];
        (-40_000 * DAY..50_000 * DAY, prop::collection::vec((jump, 0..7_u64), 1..80)).prop_map(|(mut time, steps)| {
            let second = 1_000_000_000;
            steps
                .into_iter()
                .map(|(jump, cost)| {
                    time = time.saturating_add(jump).clamp(-60_000 * DAY, 100_000 * DAY) / second * second;
                    (time, cost)
                })
                .collect()
        })
    }

    /// Whole seconds and these rates have exact grids; refills take from a second to nearly 15 years.
    const RATES: [(u64, u64); 7] =
        [(10, 60), (7, 3), (1, 1), (3, 86_400), (1, 30 * 86_400), (1, 1_000 * 86_400), (5, 7 * 86_400)];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_bucket_over_centuries_is_the_model_in_dates(
            (tokens, seconds) in prop::sample::select(&RATES[..]),
            burst in 1..=5_u64,
            requests in requests(),
        ) {
            let period = seconds * 1_000_000_000;
            let limit = format!("{tokens}/{seconds}s burst {burst}").parse().unwrap();
            let limiter = Limiter::bucket(limit);
            let (mut memory, mut model) = (None, Model::default());
            for (time, cost) in requests {
                let admits = limiter.admits(&mut memory, LogTime::new(time.into()).unwrap(), cost).unwrap();
                prop_assert_eq!(admits, model.bucket((tokens, period, burst), time, cost), "{} {}", time, cost);
            }
        }

        #[test]
        fn a_window_over_centuries_is_the_model_in_dates(
            limit in 1..=9_u64,
            days in prop_oneof![1..40_u64, 1..40_000_u64, Just(200_000_u64)],
            requests in requests(),
        ) {
            let limiter = Limiter::window(format!("{limit}/{days}d").parse().unwrap());
            let (mut memory, mut model) = (None, Model::default());
            for (time, cost) in requests {
                let admits = limiter.admits(&mut memory, LogTime::new(time.into()).unwrap(), cost).unwrap();
                prop_assert_eq!(admits, model.window((limit, days * DAY as u64), time, cost), "{} {}", time, cost);
            }
        }
    }

    #[test]
    fn a_bucket_that_is_never_full_is_carried_past_the_horizon() {
        // A token a day, kept within one token of empty for 90 years.
        let limiter = Limiter::bucket("1/1d burst 3".parse().unwrap());
        let mut memory = None;
        let mut model = Model::default();
        let mut admitted = 0;
        for half_day in 0..90 * 365 * 2_i64 {
            let time = half_day * (DAY / 2);
            let admits = limiter.admits(&mut memory, LogTime::new(time.into()).unwrap(), 1).unwrap();
            assert_eq!(admits, model.bucket((1, DAY as u64, 3), time, 1), "{half_day}");
            admitted += u64::from(admits);
        }
        assert_eq!(admitted, 3 + 90 * 365 - 1);
        assert!(memory.unwrap().origin > 0, "the origin has moved");
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        let limiter = Limiter::bucket("1/7300d burst 9".parse().unwrap());
        let at = |years: i64| LogTime::new(i128::from(years * 365 * DAY)).unwrap();
        let mut memory = None;
        assert_eq!(limiter.admits(&mut memory, at(50), 9), Ok(true));
        assert_eq!(limiter.admits(&mut memory, at(60), 1), Ok(false));
        assert_eq!(limiter.admits(&mut memory, at(20), 1), Err(SpanError), "too late to tell");
        assert_eq!(limiter.admits(&mut memory, at(140), 1), Ok(true), "moved by whole periods");
    }
}
