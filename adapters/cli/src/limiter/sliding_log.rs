//! Sliding logs, over all times without an origin that moves.

use std::collections::VecDeque;

use sluicegate_core::{Nanos, Rate, Run, SlidingLog};

use super::Memory;
use crate::time::LogTime;

pub(crate) type Records = SlidingLog<VecDeque<Run>>;

#[derive(Debug)]
pub(crate) struct Log {
    pub(super) rate: Rate,
}

impl Log {
    pub(super) fn admits(&self, memory: &mut Memory, time: LogTime, cost: u64) -> bool {
        let now = reading(time);
        if let Memory::Log(records) = memory {
            let decision = records.try_acquire_at(now, cost);
            if let (true, Some(once)) = (decision.is_ok(), self.once(records, now)) {
                *memory = once;
            }
            return decision.is_ok();
        }
        let mut records = SlidingLog::new(self.rate);
        if let Memory::Once { at, cost } = *memory {
            // It was admitted where nothing else counted, and is again.
            let _ = records.try_acquire_at(at, cost);
        }
        let decision = records.try_acquire_at(now, cost);
        if decision.is_ok() && cost > 0 {
            *memory = self.once(&records, now).unwrap_or_else(|| Memory::Log(Box::new(records)));
        }
        decision.is_ok()
    }

    /// Forgets what has aged out for all requests that are no earlier than `time`.
    pub(super) fn forget(memory: &mut Memory, time: LogTime) {
        if matches!(memory, Memory::Log(records) if records.is_unused(reading(time))) {
            *memory = Memory::Unused;
        }
    }

    /// One record without an allocation, as most keys of most logs have.
    fn once(&self, records: &Records, now: Nanos) -> Option<Memory> {
        if records.records() != 1 {
            return None;
        }
        let at = records.peek_at(now, 0).ok()?.at;
        Some(Memory::Once { at, cost: self.rate.tokens() - records.inspect_at(at).level })
    }
}

/// Core's log tells all readings of 64 bits apart, so that all times have one: counted from the earliest.
fn reading(time: LogTime) -> Nanos {
    Nanos::new(time.nanos().abs_diff(i64::MIN))
}
