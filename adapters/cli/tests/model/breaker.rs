//! The circuit breaker, which keeps every result since it last changed, and looks at all of them each time.

use super::Time;
use super::scenario::BreakerOptions;

#[derive(Clone, Debug)]
pub(super) struct Breaker {
    options: BreakerOptions,
    pub(super) phase: Phase,
    /// How often it has changed: what was begun before says nothing.
    changes: u64,
    results: Vec<Result>,
    trips: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Closed,
    Open { until: Time },
    HalfOpen { probes: u32, succeeded: u32, waiting_since: Time },
}

#[derive(Clone, Copy, Debug)]
struct Result {
    at: Time,
    is_failure: bool,
    is_slow: bool,
}

/// A call that passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    change: u64,
    at: Time,
}

impl Breaker {
    pub(super) fn new(options: BreakerOptions) -> Self {
        Self { options, phase: Phase::Closed, changes: 0, results: Vec::new(), trips: 0 }
    }

    pub(super) fn lets_pass(&self, now: Time) -> bool {
        match self.phase {
            Phase::Closed => true,
            Phase::Open { until } => now >= until,
            Phase::HalfOpen { probes, .. } => probes < self.options.probes || self.gives_up(now),
        }
    }

    /// Whether probes are out that have had all of the patience.
    fn gives_up(&self, now: Time) -> bool {
        matches!(self.phase, Phase::HalfOpen { probes, succeeded, waiting_since }
            if succeeded < probes && now - waiting_since >= self.options.patience)
    }

    /// A call passes, which it may.
    pub(super) fn pass(&mut self, now: Time) -> Passed {
        if self.gives_up(now) || matches!(self.phase, Phase::Open { .. }) {
            self.change(Phase::HalfOpen { probes: 0, succeeded: 0, waiting_since: now });
        }
        if let Phase::HalfOpen { probes, succeeded, waiting_since } = &mut self.phase {
            if probes == succeeded {
                *waiting_since = now;
            }
            *probes += 1;
        }
        Passed { change: self.changes, at: now }
    }

    pub(super) fn ended(&mut self, now: Time, call: Passed, is_failure: bool) {
        if call.change != self.changes {
            return;
        }
        let is_slow = self.options.slow_from.is_some_and(|from| now - call.at >= from);
        if let Phase::HalfOpen { succeeded, waiting_since, .. } = &mut self.phase {
            if is_failure || is_slow {
                self.trip(now);
            } else {
                *waiting_since = now;
                *succeeded += 1;
                if *succeeded == self.options.probes {
                    self.trips = 0;
                    self.change(Phase::Closed);
                }
            }
            return;
        }
        self.results.push(Result { at: now, is_failure, is_slow });
        if self.is_too_much(now) {
            self.trip(now);
        }
    }

    fn is_too_much(&self, now: Time) -> bool {
        // The window moves on by sixteenths.
        let part = self.options.window / 16;
        let counted: Vec<_> = self.results.iter().filter(|result| now / part - result.at / part < 16).collect();
        let failures = counted.iter().filter(|result| result.is_failure).count();
        let slow = counted.iter().filter(|result| result.is_slow).count();
        let mut in_a_row = 0;
        let mut last = None;
        for result in self.results.iter().rev().take_while(|result| result.is_failure) {
            if last.is_some_and(|last| last - result.at >= self.options.window) {
                break;
            }
            last = Some(result.at);
            in_a_row += 1;
        }
        let is_share = |part: usize, percent: Option<u64>| {
            percent.is_some_and(|percent| {
                part > 0
                    && counted.len() >= self.options.minimum_calls
                    && part as u64 * 100 >= percent * counted.len() as u64
            })
        };
        is_share(failures, Some(self.options.failure_percent))
            || is_share(slow, self.options.slow_from.map(|_| self.options.slow_percent))
            || self.options.consecutive_failures.is_some_and(|most| in_a_row >= most)
    }

    fn trip(&mut self, now: Time) {
        let mut cool_down = self.options.cool_down;
        for _ in 0..self.trips {
            cool_down = (2 * cool_down).min(self.options.longest_cool_down);
        }
        self.trips += 1;
        self.change(Phase::Open { until: now + cool_down });
    }

    fn change(&mut self, phase: Phase) {
        self.phase = phase;
        self.changes += 1;
        self.results.clear();
    }
}
