//! Fixed windows, numbered from the Unix epoch.

use sluicegate_core::{Nanos, WindowState, WindowStep};

use super::{Level, Memory, SLACK};
use crate::time::LogTime;

#[derive(Debug)]
pub(crate) struct Window {
    pub(super) step: WindowStep,
}

impl Window {
    pub(super) fn admits(&self, memory: &mut Memory, time: LogTime, cost: u64) -> bool {
        let Level { origin, bits } = match memory.level() {
            None => self.unused(time),
            Some(level) => self.moved(level, time),
        };
        let now = self.reading(origin, time);
        let (next, decision) = self.step.try_acquire(WindowState::from_bits(bits), now, cost);
        if decision.is_ok() && cost > 0 {
            *memory = Memory::Word(Level { origin, bits: next.to_bits() });
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
