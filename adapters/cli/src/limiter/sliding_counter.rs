//! Sliding counters, whose windows are numbered from the Unix epoch.

use sluicegate_core::{Nanos, SlidingCounterState, SlidingCounterStep};

use super::{Level, Memory, SLACK};
use crate::time::LogTime;

#[derive(Debug)]
pub(crate) struct Counter {
    step: SlidingCounterStep,
    /// The window's length in nanoseconds; at most [`SLACK`].
    period: i64,
}

impl Counter {
    /// Windows of up to 15 years: a window, the one before and the one after are then told apart from some origin.
    pub(super) fn new(step: SlidingCounterStep) -> Option<Self> {
        let period = step.rate().period_nanos();
        (period <= SLACK).then_some(Self { step, period: period as i64 })
    }

    pub(super) fn admits(&self, memory: &mut Memory, time: LogTime, cost: u64) -> bool {
        let number = time.nanos().div_euclid(self.period);
        let Level { origin, bits } = match memory.level() {
            None => Level { origin: self.origin(number), bits: SlidingCounterState::UNUSED.to_bits() },
            Some(level) => self.moved(level, number),
        };
        // A time before the origin is in a window before the one that the state counts, and so is the origin: both are taken
        // at the start of that one.
        let now = i128::from(time.nanos()) - i128::from(origin) * i128::from(self.period);
        let now = Nanos::new(u64::try_from(now.max(0)).unwrap_or(u64::MAX));
        let (next, decision) = self.step.try_acquire(SlidingCounterState::from_bits(bits), now, cost);
        if decision.is_ok() && cost > 0 {
            *memory = Memory::Word(Level { origin, bits: next.to_bits() });
        }
        decision.is_ok()
    }

    /// An origin [`SLACK`] or a little less before window `number`, and at least one window.
    fn origin(&self, number: i64) -> i64 {
        number - SLACK as i64 / self.period
    }

    /// `level` under an origin from which all of window `number` can be told apart from later times.
    fn moved(&self, level: Level, number: i64) -> Level {
        let windows = i128::from(number) - i128::from(level.origin);
        let horizon = i128::from(Nanos::HORIZON.as_u64());
        if (windows + 1) * i128::from(self.period) <= horizon {
            return level;
        }
        // The window that the state counts ended before the horizon, so it is before `number`, and counts only if it is the
        // one before: then at the beginning of `number`, in full.
        let begins = windows * i128::from(self.period);
        let previous = if begins > horizon {
            0
        } else {
            let begins = Nanos::new(u64::try_from(begins).unwrap_or(u64::MAX));
            let inspection = self.step.inspect(SlidingCounterState::from_bits(level.bits), begins);
            inspection.capacity - inspection.level
        };
        let origin = self.origin(number);
        let before = Nanos::new((number - 1 - origin).unsigned_abs() * self.period.unsigned_abs());
        let (state, _) = self.step.try_acquire(SlidingCounterState::UNUSED, before, previous);
        Level { origin, bits: state.to_bits() }
    }
}
