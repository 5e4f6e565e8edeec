//! What is counted: over all of the time, and over each of its parts.

use sluicegate_runtime::{BreakerPhase, FlowPath, FlowStage};

use super::latencies::Latencies;
use super::provider::ProviderTotals;

/// How a call that was admitted ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Succeeded,
    Failed,
    TooMany,
    TimedOut,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Counts {
    pub(super) offered: u64,
    pub(super) admitted: u64,
    /// Of them, those that had waited.
    pub(super) queued: u64,
    pub(super) refused_by_limiter: u64,
    pub(super) refused_by_breaker: u64,
    pub(super) refused_by_concurrency: u64,
    /// Of those refused, whose place something else has taken.
    pub(super) degraded: u64,
    pub(super) succeeded: u64,
    pub(super) failed: u64,
    pub(super) too_many: u64,
    pub(super) timed_out: u64,
}

/// What is in force, and in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gauges {
    /// Thousandths of tokens a second; none if there is no quota.
    pub(super) limit: Option<u64>,
    pub(super) in_flight: u64,
    /// Callers who wait to enter.
    pub(super) waiting: u64,
    pub(super) in_flight_limit: Option<u32>,
    /// Tokens left of the quota that the pace goes by.
    pub(super) quota_left: Option<u64>,
}

impl Gauges {
    /// These, with the most of what was in use before.
    fn after(self, before: Self) -> Self {
        Self { in_flight: self.in_flight.max(before.in_flight), waiting: self.waiting.max(before.waiting), ..self }
    }
}

/// A part of the time.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) counts: Counts,
    pub(super) latencies: Latencies,
    /// As they were at its end; of calls in flight, and of callers who wait, the most that there were.
    pub(super) gauges: Gauges,
    /// Nanoseconds in which the breaker was closed, half-open, open.
    pub(super) phases: [u64; 3],
}

#[derive(Debug)]
pub(super) struct Record {
    pub(super) duration: u64,
    /// Nanoseconds of a part; the last may be shorter.
    pub(super) width: u64,
    pub(super) parts: Vec<Part>,
    pub(super) counts: Counts,
    pub(super) latencies: Latencies,
    /// How long those waited who entered after that.
    pub(super) waits: Latencies,
    pub(super) in_flight_at_end: u64,
    pub(super) most_in_flight: u64,
    pub(super) waiting_at_end: u64,
    pub(super) most_waiting: u64,
    pub(super) phases: [u64; 3],
    pub(super) trips: u64,
    pub(super) first_trip: Option<u64>,
    pub(super) last_closed: Option<u64>,
    pub(super) phase: BreakerPhase,
    pub(super) adjustments: u64,
    /// Millionths of the base, from one adjustment to the next.
    pub(super) largest_fall: u32,
    pub(super) largest_rise: u32,
    /// Millionths of the base.
    pub(super) lowest_share: u32,
    pub(super) share: u32,
    /// When nothing was left of the quota that the pace goes by.
    pub(super) quota_ran_out: Option<u64>,
    pub(super) provider: ProviderTotals,
    gauges: Gauges,
    now: u64,
}

impl Record {
    pub(super) fn new(duration: u64, gauges: Gauges) -> Self {
        let width = duration.div_ceil(PARTS).max(1);
        let parts = duration.div_ceil(width).max(1);
        Self {
            duration,
            width,
            parts: vec![Part::default(); parts as usize],
            counts: Counts::default(),
            latencies: Latencies::default(),
            waits: Latencies::default(),
            in_flight_at_end: 0,
            most_in_flight: 0,
            waiting_at_end: 0,
            most_waiting: 0,
            phases: [0; 3],
            trips: 0,
            first_trip: None,
            last_closed: None,
            phase: BreakerPhase::Closed,
            adjustments: 0,
            largest_fall: 0,
            largest_rise: 0,
            lowest_share: ALL,
            share: ALL,
            quota_ran_out: None,
            provider: ProviderTotals::default(),
            gauges,
            now: 0,
        }
    }

    /// Time goes on to `now`, and all stays as it is until then.
    pub(super) fn move_to(&mut self, now: u64) {
        while self.now < now {
            let end = (self.now / self.width + 1).saturating_mul(self.width).min(now);
            let (passed, phase, gauges) = (end - self.now, index_of(self.phase), self.gauges);
            self.phases[phase] += passed;
            let part = self.part();
            part.phases[phase] += passed;
            part.gauges = gauges.after(part.gauges);
            self.now = end;
        }
    }

    pub(super) fn offered(&mut self) {
        self.count(|counts| counts.offered += 1);
    }

    pub(super) fn admitted(&mut self, path: FlowPath) {
        self.count(|counts| counts.admitted += 1);
        if let FlowPath::Queued { waited } = path {
            self.count(|counts| counts.queued += 1);
            self.waits.add(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// Refused by that part; `is_degraded` if something else took its place.
    pub(super) fn refused(&mut self, stage: FlowStage, is_degraded: bool) {
        self.count(|counts| {
            match stage {
                FlowStage::Breaker => counts.refused_by_breaker += 1,
                FlowStage::Concurrency => counts.refused_by_concurrency += 1,
                _ => counts.refused_by_limiter += 1,
            }
            counts.degraded += u64::from(is_degraded);
        });
    }

    /// A call ended after `took`.
    pub(super) fn ended(&mut self, ended: Ended, took: u64) {
        self.count(|counts| match ended {
            Ended::Succeeded => counts.succeeded += 1,
            Ended::Failed => counts.failed += 1,
            Ended::TooMany => counts.too_many += 1,
            Ended::TimedOut => counts.timed_out += 1,
        });
        // A refusal of the service says nothing of how long its work takes.
        if ended != Ended::TooMany {
            self.latencies.add(took);
            self.part().latencies.add(took);
        }
    }

    /// What is in force from now on.
    pub(super) fn gauge(&mut self, gauges: Gauges) {
        self.gauges = gauges;
        self.most_in_flight = self.most_in_flight.max(gauges.in_flight);
        self.most_waiting = self.most_waiting.max(gauges.waiting);
        let most = self.part();
        most.gauges.in_flight = most.gauges.in_flight.max(gauges.in_flight);
        most.gauges.waiting = most.gauges.waiting.max(gauges.waiting);
    }

    /// The breaker's phase from now on.
    pub(super) fn phase(&mut self, phase: BreakerPhase) {
        if phase == self.phase {
            return;
        }
        self.phase = phase;
        match phase {
            BreakerPhase::Open => {
                self.trips += 1;
                self.first_trip.get_or_insert(self.now);
            }
            BreakerPhase::Closed => self.last_closed = Some(self.now),
            BreakerPhase::HalfOpen => {}
        }
    }

    pub(super) fn share(&mut self, share: u32) {
        self.adjustments += 1;
        self.largest_fall = self.largest_fall.max(self.share.saturating_sub(share));
        self.largest_rise = self.largest_rise.max(share.saturating_sub(self.share));
        self.share = share;
        self.lowest_share = self.lowest_share.min(share);
    }

    fn count(&mut self, count: impl Fn(&mut Counts)) {
        count(&mut self.counts);
        count(&mut self.part().counts);
    }

    /// The one that is now.
    fn part(&mut self) -> &mut Part {
        let index = (self.now / self.width) as usize;
        let last = self.parts.len() - 1;
        &mut self.parts[index.min(last)]
    }
}

fn index_of(phase: BreakerPhase) -> usize {
    match phase {
        BreakerPhase::Closed => 0,
        BreakerPhase::HalfOpen => 1,
        BreakerPhase::Open => 2,
    }
}

/// Enough for a curve, and few enough for one rectangle each.
const PARTS: u64 = 240;
const ALL: u32 = 1_000_000;
