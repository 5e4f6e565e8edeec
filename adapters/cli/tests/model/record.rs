//! What is written down, for each 240th part of the time.

use super::breaker::Phase;
use super::{End, Refuser, Time};

/// By the names that the command's JSON gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) offered: u64,
    pub(crate) admitted: u64,
    pub(crate) queued: u64,
    pub(crate) refused_by_limiter: u64,
    pub(crate) refused_by_breaker: u64,
    pub(crate) refused_by_concurrency: u64,
    pub(crate) degraded: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) too_many: u64,
    pub(crate) timed_out: u64,
    pub(crate) most_in_flight: u64,
    pub(crate) most_waiting: u64,
    pub(crate) in_flight_limit: Option<u64>,
    /// Nanoseconds of closed, half-open, open.
    pub(crate) phases: [u64; 3],
    /// How long calls took that were not answered 429.
    pub(crate) took: Vec<Time>,
}

pub(crate) const PHASES: [&str; 3] = ["closed_ns", "half_open_ns", "open_ns"];

/// What is so from a moment on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Now {
    pub(super) in_flight: u64,
    pub(super) waiting: u64,
    pub(super) in_flight_limit: Option<u64>,
    /// An index of [`PHASES`].
    pub(super) phase: usize,
}

pub(super) struct Record {
    pub(super) parts: Vec<Part>,
    duration: Time,
    width: Time,
    now: Time,
    is_so: Now,
}

impl Record {
    pub(super) fn new(duration: Time, is_so: Now) -> Self {
        let width = duration.div_ceil(240);
        let parts = vec![Part::default(); duration.div_ceil(width) as usize];
        let mut record = Self { parts, duration, width, now: 0, is_so };
        record.set(is_so);
        record
    }

    /// All stays as it is until `to`: part by part.
    pub(super) fn pass(&mut self, to: Time) {
        for (index, part) in self.parts.iter_mut().enumerate() {
            let begin = index as u64 * self.width;
            let end = (begin + self.width).min(self.duration);
            let (from, to) = (self.now.max(begin), to.min(end));
            if from < to {
                part.phases[self.is_so.phase] += to - from;
                part.in_flight_limit = self.is_so.in_flight_limit;
                part.most_in_flight = part.most_in_flight.max(self.is_so.in_flight);
                part.most_waiting = part.most_waiting.max(self.is_so.waiting);
            }
        }
        self.now = to;
    }

    pub(super) fn set(&mut self, is_so: Now) {
        self.is_so = is_so;
        let part = self.part();
        part.most_in_flight = part.most_in_flight.max(is_so.in_flight);
        part.most_waiting = part.most_waiting.max(is_so.waiting);
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    pub(super) fn part(&mut self) -> &mut Part {
        &mut self.parts[(self.now / self.width) as usize]
    }

    pub(super) fn refused(&mut self, refuser: Refuser, is_degraded: bool) {
        let part = self.part();
        part.degraded += u64::from(is_degraded);
        *match refuser {
            Refuser::Limiter => &mut part.refused_by_limiter,
            Refuser::Breaker => &mut part.refused_by_breaker,
            Refuser::Concurrency => &mut part.refused_by_concurrency,
        } += 1;
    }

    pub(super) fn ended(&mut self, end: End, took: Time) {
        let part = self.part();
        *match end {
            End::Succeeded => &mut part.succeeded,
            End::Failed => &mut part.failed,
            End::TooMany => &mut part.too_many,
            End::TimedOut => &mut part.timed_out,
        } += 1;
        if end != End::TooMany {
            part.took.push(took);
        }
    }
}

pub(super) fn phase_index(phase: Option<Phase>) -> usize {
    match phase {
        None | Some(Phase::Closed) => 0,
        Some(Phase::HalfOpen { .. }) => 1,
        Some(Phase::Open { .. }) => 2,
    }
}
