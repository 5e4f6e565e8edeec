//! The service: so many at once, a queue, chance, and limits of its own.

use super::bucket::Bucket;
use super::random::Random;
use super::scenario::{Scenario, Service as Options};
use super::{End, Time};

pub(super) struct Service {
    phases: Vec<Options>,
    /// The phase that it is in.
    index: usize,
    random: Random,
    provider: Bucket,
    /// What was let in of its quota, and when.
    let_in: Vec<(Time, u64)>,
    pub(super) refused: u64,
    line: Vec<(u64, End)>,
    coming: Vec<Coming>,
}

#[derive(Clone, Copy, Debug)]
struct Coming {
    at: Time,
    number: u64,
    end: End,
    has_place: bool,
}

impl Service {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let provider = scenario.provider.map_or(Bucket::Off, |(tokens, period)| Bucket::full(tokens, period, tokens));
        let phases = scenario.services.clone();
        let random = Random::new(scenario.seed, 2);
        Self {
            phases,
            index: 0,
            random,
            provider,
            let_in: Vec::new(),
            refused: 0,
            line: Vec::new(),
            coming: Vec::new(),
        }
    }

    pub(super) fn next_phase(&self) -> Option<Time> {
        self.phases.get(self.index + 1).map(|phase| phase.from)
    }

    pub(super) fn enter_next_phase(&mut self, now: Time) {
        self.index += 1;
        self.begin_calls(now);
    }

    pub(super) fn call(&mut self, scenario: &Scenario, now: Time, number: u64, cost: u64) {
        let phase = self.phases[self.index].clone();
        let is_chance = self.random.happens_in(phase.overloaded);
        let end = if self.random.happens_in(phase.failures) { End::Failed } else { End::Succeeded };
        let is_full = phase.capacity.is_some_and(|most| self.busy() >= most && self.line.len() >= phase.queue);
        if is_chance || is_full || !self.lets_in(scenario, now, cost) {
            self.coming.push(Coming { at: now + phase.refuses_in, number, end: End::TooMany, has_place: false });
        } else {
            self.line.push((number, end));
            self.begin_calls(now);
        }
    }

    fn lets_in(&mut self, scenario: &Scenario, now: Time, cost: u64) -> bool {
        let is_within = scenario.provider_quota.is_none_or(|(tokens, period)| {
            let of_now = self.let_in.iter().filter(|(at, _)| at / period == now / period);
            of_now.map(|(_, cost)| *cost).sum::<u64>() + cost <= tokens
        });
        let is_in = is_within && self.provider.has(now, cost);
        if is_in {
            self.provider.take(now, cost);
            self.let_in.push((now, cost));
        } else {
            self.refused += 1;
        }
        is_in
    }

    fn busy(&self) -> usize {
        self.coming.iter().filter(|coming| coming.has_place).count()
    }

    fn begin_calls(&mut self, now: Time) {
        let phase = self.phases[self.index].clone();
        while !self.line.is_empty() && phase.capacity.is_none_or(|most| self.busy() < most) {
            let (number, end) = self.line.remove(0);
            let at = now + phase.latency + self.random.below(phase.jitter + 1);
            self.coming.push(Coming { at, number, end, has_place: true });
        }
    }

    pub(super) fn next_answer(&self) -> Option<Time> {
        self.coming.iter().map(|coming| coming.at).min()
    }

    /// The first of those that come now.
    pub(super) fn answer(&mut self, now: Time) -> (u64, End) {
        let first =
            (0..self.coming.len()).min_by_key(|index| (self.coming[*index].at, self.coming[*index].number)).unwrap();
        let coming = self.coming.remove(first);
        self.begin_calls(now);
        (coming.number, coming.end)
    }
}
