//! The limit, asked about one request at a log's time.
//!
//! Every decision is core's. What is done here is to turn a log's time, which is a date, into a reading of a clock. Core's
//! sliding log tells all readings apart, so it takes dates as they are. Its other algorithms keep one word of state a key and
//! tell readings apart for 30 years from the clock's origin; a log may span more, if only because of one line with a wrong
//! date. So every key has an origin of its own there, and when a reading would pass the horizon the origin moves up, and the
//! state with it:
//!
//! - A bucket moves by whole periods, in which a whole number of tokens is generated: the state, which counts consumed
//!   units, moves by exactly as many.
//! - A window's origin is a multiple of its period from the Unix epoch, and what was taken in the current window is
//!   counted again in the same window under its new number. So is what a sliding counter took in the window before.
//!
//! Readings start [`SLACK`], 15 years, after the origin, so that lines that are late by less have readings of their own.
//! Later ones read as the origin, which changes no decision: see `Bucket::reading`.

mod bucket;
mod sliding_counter;
mod sliding_log;
mod window;

use bucket::Bucket;
use sliding_counter::Counter;
use sliding_log::{Log, Records};
use sluicegate_core::{BucketStep, Limit, Nanos, Rate, SlidingCounterStep, WindowLimit};
use window::Window;

use crate::time::LogTime;

/// A limit, made ready.
#[derive(Debug)]
pub(crate) enum Limiter {
    Unlimited,
    DenyAll,
    Bucket(Bucket),
    Window(Window),
    Log(Log),
    Counter(Counter),
}

/// What a limiter remembers of a key: nothing until something was taken.
#[derive(Clone, Debug, Default)]
pub(crate) enum Memory {
    #[default]
    Unused,
    /// Of a limiter that keeps one word.
    Word(Level),
    /// Of a sliding log, while it is one record.
    Once { at: Nanos, cost: u64 },
    /// Of a sliding log.
    Log(Box<Records>),
}

impl Memory {
    fn level(&self) -> Option<Level> {
        match *self {
            Self::Word(level) => Some(level),
            _ => None,
        }
    }
}

/// One word, and the origin it was written under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level {
    /// Nanoseconds since the Unix epoch for a bucket, periods since then for a window or a counter.
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

    /// Prepares `rate` for sliding logs.
    pub(crate) fn log(rate: Rate) -> Self {
        Self::Log(Log { rate })
    }

    /// Prepares `step` for sliding counters. `None` is a window longer than 15 years.
    pub(crate) fn counter(step: SlidingCounterStep) -> Option<Self> {
        Counter::new(step).map(Self::Counter)
    }

    /// Forgets what no request from `time` on can meet. Only where requests are asked about in the order of their times.
    pub(crate) fn forget(&self, memory: &mut Memory, time: LogTime) {
        if let Self::Log(_) = self {
            Log::forget(memory, time);
        }
    }

    /// Whether a request of `cost` passes at `time`. A refusal changes nothing.
    pub(crate) fn admits(&self, memory: &mut Memory, time: LogTime, cost: u64) -> Result<bool, SpanError> {
        match self {
            Self::Unlimited => Ok(true),
            Self::DenyAll => Ok(false),
            Self::Bucket(bucket) => bucket.admits(memory, time, cost),
            Self::Window(window) => Ok(window.admits(memory, time, cost)),
            Self::Log(log) => Ok(log.admits(memory, time, cost)),
            Self::Counter(counter) => Ok(counter.admits(memory, time, cost)),
        }
    }
}

fn since(origin: i64, time: LogTime) -> i128 {
    i128::from(time.nanos()) - i128::from(origin)
}

/// Half of what core tells apart: as much room for late lines as for later ones.
const SLACK: u64 = Nanos::HORIZON.as_u64() / 2;

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    /// The definitions, with dates, in 128 bits and without an origin.
    #[derive(Default)]
    struct Model {
        /// Bucket: the date, in units of 1/tokens ns, at which it is full. Window: number and count.
        full_at: Option<i128>,
        window: Option<(i128, u128)>,
        /// Log: what was admitted when, and the latest of it.
        log: Vec<(i128, u128)>,
        latest: Option<i128>,
        /// Counter: what was taken in each window.
        counts: BTreeMap<i128, i128>,
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

    impl Model {
        fn log(&mut self, (limit, period): (u64, u64), time: i64, cost: u64) -> bool {
            let now = self.latest.map_or(i128::from(time), |latest| latest.max(i128::from(time)));
            let recent = self.log.iter().filter(|(at, _)| at + i128::from(period) > now);
            let used: u128 = recent.map(|(_, cost)| cost).sum();
            let admits = used + u128::from(cost) <= u128::from(limit);
            if admits && cost > 0 {
                self.log.push((now, u128::from(cost)));
                self.latest = Some(now);
            }
            admits
        }

        fn counter(&mut self, (limit, period): (u64, u64), time: i64, cost: u64) -> bool {
            let (limit, period, cost) = (i128::from(limit), i128::from(period), i128::from(cost));
            let (own, elapsed) = (i128::from(time).div_euclid(period), i128::from(time).rem_euclid(period));
            let (number, elapsed) = match self.counts.last_key_value() {
                Some((&latest, _)) if latest > own => (latest, 0),
                _ => (own, elapsed),
            };
            let taken = |number: i128| self.counts.get(&number).copied().unwrap_or(0);
            let (previous, current) = (taken(number - 1), taken(number));
            let admits = cost == 0 || previous * (period - elapsed) <= (limit - current - cost) * period;
            if admits && cost > 0 {
                *self.counts.entry(number).or_default() += cost;
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
            let (mut memory, mut model) = (Memory::default(), Model::default());
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
            let (mut memory, mut model) = (Memory::default(), Model::default());
            for (time, cost) in requests {
                let admits = limiter.admits(&mut memory, LogTime::new(time.into()).unwrap(), cost).unwrap();
                prop_assert_eq!(admits, model.window((limit, days * DAY as u64), time, cost), "{} {}", time, cost);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_sliding_log_over_centuries_is_the_model_in_dates(
            limit in 1..=9_u64,
            days in prop_oneof![1..40_u64, 1..40_000_u64, Just(200_000_u64)],
            requests in requests(),
        ) {
            let period = days * DAY as u64;
            let limiter = Limiter::log(Rate::new(limit, Duration::from_nanos(period)).unwrap());
            let (mut memory, mut model) = (Memory::default(), Model::default());
            // In order, and forgotten between requests whenever it can be.
            let mut in_order = requests.clone();
            in_order.sort_by_key(|(time, _)| *time);
            let (mut forgetful, mut ordered) = (Memory::default(), Model::default());
            for ((time, cost), (later, cost_then)) in requests.into_iter().zip(in_order) {
                let admits = limiter.admits(&mut memory, LogTime::new(time.into()).unwrap(), cost).unwrap();
                prop_assert_eq!(admits, model.log((limit, period), time, cost), "{} {}", time, cost);
                let at = LogTime::new(later.into()).unwrap();
                limiter.forget(&mut forgetful, at);
                let admits = limiter.admits(&mut forgetful, at, cost_then).unwrap();
                prop_assert_eq!(admits, ordered.log((limit, period), later, cost_then), "{} {}", later, cost_then);
            }
        }

        #[test]
        fn a_sliding_counter_over_centuries_is_the_model_in_dates(
            limit in 1..=9_u64,
            days in prop_oneof![1..40_u64, 1..=5_478_u64],
            requests in requests(),
        ) {
            let period = days * DAY as u64;
            let rate = Rate::new(limit, Duration::from_nanos(period)).unwrap();
            let limiter = Limiter::counter(SlidingCounterStep::new(rate).unwrap()).unwrap();
            let (mut memory, mut model) = (Memory::default(), Model::default());
            for (time, cost) in requests {
                let admits = limiter.admits(&mut memory, LogTime::new(time.into()).unwrap(), cost).unwrap();
                prop_assert_eq!(admits, model.counter((limit, period), time, cost), "{} {}", time, cost);
            }
        }
    }

    #[test]
    fn a_counter_that_is_never_idle_is_carried_past_the_horizon() {
        // Windows of a day and of 15 years, asked for 120 years every 8 hours and every 100 days.
        for (days, hours) in [(1, 8), (5_478, 2_400)] {
            let period = days * DAY as u64;
            let rate = Rate::new(5, Duration::from_nanos(period)).unwrap();
            let limiter = Limiter::counter(SlidingCounterStep::new(rate).unwrap()).unwrap();
            let (mut memory, mut model) = (Memory::default(), Model::default());
            let mut origins = Vec::new();
            for round in 0..120 * 365 * 24 / hours {
                let time = round * hours * (DAY / 24);
                let cost = 1 + (round % 3).unsigned_abs();
                let admits = limiter.admits(&mut memory, LogTime::new(time.into()).unwrap(), cost).unwrap();
                assert_eq!(admits, model.counter((5, period), time, cost), "{round}");
                origins.extend(memory.level().map(|level| level.origin));
            }
            origins.dedup();
            assert!(origins.len() >= 3, "the origin has moved: {origins:?}");
        }
    }

    #[test]
    fn a_sliding_log_keeps_one_record_in_place_and_forgets_only_what_has_aged() {
        let limiter = Limiter::log("3/1s".parse().unwrap());
        let at = |milliseconds: i128| LogTime::new(milliseconds * 1_000_000).unwrap();
        let mut memory = Memory::default();
        for _ in 0..2 {
            assert_eq!(limiter.admits(&mut memory, at(0), 1), Ok(true));
        }
        assert!(matches!(memory, Memory::Once { cost: 2, .. }), "{memory:?}");
        assert_eq!(limiter.admits(&mut memory, at(500), 2), Ok(false));
        assert_eq!(limiter.admits(&mut memory, at(500), 1), Ok(true));
        assert!(matches!(memory, Memory::Log(_)), "{memory:?}");
        limiter.forget(&mut memory, at(1_499));
        assert!(matches!(memory, Memory::Log(_)), "{memory:?}");
        let mut kept = memory.clone();
        limiter.forget(&mut memory, at(1_500));
        assert!(matches!(memory, Memory::Unused), "{memory:?}");
        assert_eq!(limiter.admits(&mut kept, at(9_000), 3), Ok(true));
        assert!(matches!(kept, Memory::Once { cost: 3, .. }), "{kept:?}");
        assert!(size_of::<Memory>() <= 24);
    }

    #[test]
    fn a_bucket_that_is_never_full_is_carried_past_the_horizon() {
        // A token a day, kept within one token of empty for 90 years.
        let limiter = Limiter::bucket("1/1d burst 3".parse().unwrap());
        let mut memory = Memory::default();
        let mut model = Model::default();
        let mut admitted = 0;
        for half_day in 0..90 * 365 * 2_i64 {
            let time = half_day * (DAY / 2);
            let admits = limiter.admits(&mut memory, LogTime::new(time.into()).unwrap(), 1).unwrap();
            assert_eq!(admits, model.bucket((1, DAY as u64, 3), time, 1), "{half_day}");
            admitted += u64::from(admits);
        }
        assert_eq!(admitted, 3 + 90 * 365 - 1);
        assert!(memory.level().unwrap().origin > 0, "the origin has moved");
    }

    #[test]
    fn what_cannot_be_followed_is_refused() {
        let limiter = Limiter::bucket("1/7300d burst 9".parse().unwrap());
        let at = |years: i64| LogTime::new(i128::from(years * 365 * DAY)).unwrap();
        let mut memory = Memory::default();
        assert_eq!(limiter.admits(&mut memory, at(50), 9), Ok(true));
        assert_eq!(limiter.admits(&mut memory, at(60), 1), Ok(false));
        assert_eq!(limiter.admits(&mut memory, at(20), 1), Err(SpanError), "too late to tell");
        assert_eq!(limiter.admits(&mut memory, at(140), 1), Ok(true), "moved by whole periods");
    }
}
