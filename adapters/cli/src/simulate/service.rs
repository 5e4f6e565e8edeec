//! The service that is called: so many calls at once, a queue, and what goes wrong.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sluicegate_runtime::Load;

use super::check::ServicePlan;
use super::provider::{Provider, ProviderTotals, Said};
use super::random::Random;
use super::run::Overfull;
use super::scenario::MOST_CALLS;

/// How the service answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Answer {
    Success,
    Failure,
    /// 429: by the provider's limits, by chance, or because the queue is full.
    TooMany,
}

pub(super) struct Service<'p> {
    phase: &'p ServicePlan,
    later: std::slice::Iter<'p, ServicePlan>,
    provider: Provider,
    random: Random,
    /// Calls that take a place of the capacity.
    busy: u64,
    waiting: VecDeque<Waiting>,
    answers: BinaryHeap<Reverse<Coming>>,
    /// Since the load was last asked for: nanoseconds times busy places, and times places.
    busy_time: u128,
    capacity_time: u128,
    counted_to: u64,
}

struct Waiting {
    number: u64,
    answer: Answer,
    said: Option<Said>,
}

/// An answer to come. In the order of times, and of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Coming {
    time: u64,
    number: u64,
    answer: Answer,
    said: Option<Said>,
    /// Whether it takes a place until then.
    is_busy: bool,
}

impl<'p> Service<'p> {
    /// In its first phase; there has to be one.
    pub(super) fn new(phases: &'p [ServicePlan], random: Random) -> Option<Self> {
        let mut later = phases.iter();
        let phase = later.next()?;
        Some(Self {
            phase,
            later,
            provider: Provider::new(phase.provider, phase.provider_quota),
            random,
            busy: 0,
            waiting: VecDeque::new(),
            answers: BinaryHeap::new(),
            busy_time: 0,
            capacity_time: 0,
            counted_to: 0,
        })
    }

    /// When the next phase begins.
    pub(super) fn next_phase(&self) -> Option<u64> {
        self.later.as_slice().first().map(|phase| phase.from)
    }

    pub(super) fn enter_next_phase(&mut self, now: u64) {
        self.count_to(now);
        if let Some(phase) = self.later.next() {
            self.phase = phase;
            self.provider.change(now, phase.provider, phase.provider_quota);
            self.serve_waiting(now);
        }
    }

    /// A call arrives. Its answer comes later, whether or not its caller still waits for it.
    pub(super) fn call(&mut self, now: u64, number: u64, cost: u64) -> Result<(), Overfull> {
        if self.answers.len() + self.waiting.len() >= MOST_CALLS as usize {
            return Err(Overfull::Service);
        }
        self.count_to(now);
        let is_chance = self.random.happens(self.phase.overloaded);
        let fails = self.random.happens(self.phase.failures);
        let answer = if fails { Answer::Failure } else { Answer::Success };
        let is_full = self
            .phase
            .capacity
            .is_some_and(|capacity| self.busy >= capacity && self.waiting.len() as u64 >= self.phase.queue);
        // What is refused for another reason takes nothing from the provider's limits.
        let asked = if is_chance || is_full { Err(None) } else { self.provider.ask(now, cost) };
        match asked {
            Ok(said) => {
                self.waiting.push_back(Waiting { number, answer, said });
                self.serve_waiting(now);
            }
            Err(said) => {
                let time = now.saturating_add(self.phase.refuses_in);
                self.answers.push(Reverse(Coming { time, number, answer: Answer::TooMany, said, is_busy: false }));
            }
        }
        Ok(())
    }

    /// When the next answer comes.
    pub(super) fn next_answer(&self) -> Option<u64> {
        self.answers.peek().map(|Reverse(coming)| coming.time)
    }

    /// The next answer, to the call of this number, with what it says of the provider's limits.
    pub(super) fn answer(&mut self, now: u64) -> Option<(u64, Answer, Option<Said>)> {
        self.count_to(now);
        let Reverse(coming) = self.answers.pop()?;
        if coming.is_busy {
            self.busy -= 1;
            self.serve_waiting(now);
        }
        Some((coming.number, coming.answer, coming.said))
    }

    /// What its own limits have done.
    pub(super) fn provider_totals(&self) -> ProviderTotals {
        self.provider.totals
    }

    /// The share of the capacity that was busy since this was last asked.
    pub(super) fn take_load(&mut self, now: u64) -> Option<Load> {
        self.count_to(now);
        let (busy, all) = (std::mem::take(&mut self.busy_time), std::mem::take(&mut self.capacity_time));
        // A capacity that was lowered may be exceeded for a while; more than all is all.
        let parts = busy.saturating_mul(1_000_000).checked_div(all)?;
        Some(Load::parts_per_million(u32::try_from(parts).unwrap_or(u32::MAX)))
    }

    fn serve_waiting(&mut self, now: u64) {
        while self.phase.capacity.is_none_or(|capacity| self.busy < capacity) {
            let Some(Waiting { number, answer, said }) = self.waiting.pop_front() else { return };
            let jitter = self.random.below(self.phase.jitter.saturating_add(1));
            let time = now.saturating_add(self.phase.latency).saturating_add(jitter);
            self.busy += 1;
            self.answers.push(Reverse(Coming { time, number, answer, said, is_busy: true }));
        }
    }

    fn count_to(&mut self, now: u64) {
        let passed = u128::from(now - self.counted_to);
        self.counted_to = now;
        // Below 2^60 each, times a million places.
        self.busy_time += passed * u128::from(self.busy);
        self.capacity_time += passed * u128::from(self.phase.capacity.unwrap_or(0));
    }
}
