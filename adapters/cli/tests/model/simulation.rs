//! One event after the other.

use super::breaker::{Breaker, Passed};
use super::bucket::Bucket;
use super::law::Places;
use super::load::arrivals;
use super::record::{Now, Part, Record, phase_index};
use super::scenario::{Limit, Scenario, WhenEmpty};
use super::service::Service;
use super::{End, Refuser, Time};

/// The parts, and how many calls the provider's own limits refused.
pub(crate) fn simulate(scenario: &Scenario) -> (Vec<Part>, u64) {
    let limit = match scenario.limit {
        Limit::Off => Bucket::Off,
        Limit::Deny => Bucket::Deny,
        Limit::Quota { tokens, period, capacity } => Bucket::full(tokens, period, capacity),
    };
    let mut simulation = Simulation {
        scenario,
        limit,
        places: scenario.in_flight.map(Places::new),
        breaker: scenario.breaker.map(Breaker::new),
        service: Service::new(scenario),
        record: Record::new(scenario.duration, Now::default()),
        for_places: Vec::new(),
        for_tokens: Vec::new(),
        calls: Vec::new(),
        made: 0,
    };
    simulation.write_down();
    let mut arrivals = arrivals(scenario);
    arrivals.reverse();
    loop {
        let next = [
            simulation.service.next_phase(),
            simulation.service.next_answer(),
            simulation.calls.first().zip(scenario.timeout).map(|(call, timeout)| call.since + timeout),
            simulation.next_turn(),
            arrivals.last().map(|(time, _)| *time),
        ];
        let next = next.into_iter().enumerate().filter_map(|(event, time)| Some((time?, event))).min();
        let Some((now, event)) = next.filter(|(now, _)| *now < scenario.duration) else { break };
        simulation.record.pass(now);
        match event {
            0 => simulation.service.enter_next_phase(now),
            1 => {
                let (number, end) = simulation.service.answer(now);
                simulation.end(now, number, end);
            }
            2 => simulation.end(now, simulation.calls[0].number, End::TimedOut),
            3 => {}
            _ => {
                let (_, cost) = arrivals.pop().unwrap();
                simulation.arrive(now, cost);
            }
        }
        simulation.serve_those_who_wait(now);
        simulation.write_down();
    }
    simulation.record.pass(scenario.duration);
    (simulation.record.parts, simulation.service.refused)
}

struct Simulation<'s> {
    scenario: &'s Scenario,
    limit: Bucket,
    places: Option<Places>,
    breaker: Option<Breaker>,
    service: Service,
    record: Record,
    for_places: Vec<Caller>,
    for_tokens: Vec<Caller>,
    /// Whose callers are there, in the order in which they were made.
    calls: Vec<Call>,
    made: u64,
}

#[derive(Clone, Copy)]
struct Caller {
    cost: u64,
    came: Time,
}

struct Call {
    number: u64,
    since: Time,
    passed: Option<Passed>,
}

impl Simulation<'_> {
    fn arrive(&mut self, now: Time, cost: u64) {
        self.record.part().offered += 1;
        let caller = Caller { cost, came: now };
        let is_closed = self.breaker.as_ref().is_none_or(|breaker| breaker.lets_pass(now));
        let has_room = self.places.as_ref().is_none_or(Places::has_room);
        if self.scenario.when_empty != WhenEmpty::Queue {
            // The first that refuses is named, and nothing is taken then.
            let refuser = [
                (!self.limit.has(now, cost), Refuser::Limiter),
                (!is_closed, Refuser::Breaker),
                (!has_room, Refuser::Concurrency),
            ];
            match refuser.into_iter().find(|(refuses, _)| *refuses) {
                Some((_, refuser)) => {
                    self.record.refused(refuser, self.scenario.when_empty == WhenEmpty::Degrade);
                }
                None => {
                    if let Some(places) = &mut self.places {
                        places.in_use += 1;
                    }
                    self.enter(now, caller);
                }
            }
        } else if !is_closed {
            self.record.refused(Refuser::Breaker, false);
        } else if self.for_places.is_empty() && has_room {
            self.take_place(now, caller);
        } else if self.scenario.most_waiting.is_some_and(|most| self.for_places.len() >= most) {
            self.record.refused(Refuser::Concurrency, false);
        } else {
            self.for_places.push(caller);
        }
    }

    /// With a place, a caller goes on to the line for tokens.
    fn take_place(&mut self, now: Time, caller: Caller) {
        if let Some(places) = &mut self.places {
            places.in_use += 1;
        }
        let turn = self.earliest(now, caller.cost);
        let is_never = turn.is_none_or(|turn| self.deadline(&caller).is_some_and(|deadline| turn > deadline));
        if self.for_tokens.is_empty() && self.limit.has(now, caller.cost) {
            self.enter(now, caller);
        } else if is_never || self.scenario.most_waiting.is_some_and(|most| self.for_tokens.len() >= most) {
            self.give_place_back();
            self.record.refused(Refuser::Limiter, false);
        } else {
            self.for_tokens.push(caller);
        }
    }

    /// When the next one has waited for long enough: for its tokens, or for a place.
    fn next_turn(&self) -> Option<Time> {
        let tokens = self.for_tokens.first().and_then(|head| self.limit.when(self.record.now(), head.cost));
        let waiting = self.for_places.iter().chain(&self.for_tokens);
        let given_up = waiting.filter_map(|caller| self.deadline(caller)).min();
        [tokens, given_up].into_iter().flatten().min()
    }

    /// Before which tokens for one who comes now are certainly not there: behind all who wait, or, since all of them may have gone by then, once the first
    /// of them has given up.
    fn earliest(&self, now: Time, cost: u64) -> Option<Time> {
        let ahead = self.for_tokens.iter().map(|caller| caller.cost).sum::<u64>();
        let behind_all = self.limit.when(now, ahead + cost)?;
        let first = self.for_tokens.iter().filter_map(|caller| self.deadline(caller)).min();
        match first.filter(|first| *first < behind_all) {
            Some(first) => Some(first.max(self.limit.when(now, cost)?)),
            None => Some(behind_all),
        }
    }

    /// The first in the line who has waited for long enough.
    fn given_up(&self, now: Time, line: &[Caller]) -> Option<usize> {
        line.iter().position(|caller| self.deadline(caller).is_some_and(|deadline| deadline <= now))
    }

    fn deadline(&self, caller: &Caller) -> Option<Time> {
        self.scenario.longest_wait.map(|longest| caller.came + longest)
    }

    fn serve_those_who_wait(&mut self, now: Time) {
        loop {
            if self.for_tokens.first().is_some_and(|head| self.limit.has(now, head.cost)) {
                let head = self.for_tokens.remove(0);
                self.enter(now, head);
            } else if !self.for_places.is_empty() && self.places.as_ref().is_none_or(Places::has_room) {
                let head = self.for_places.remove(0);
                self.take_place(now, head);
            } else if let Some(index) = self.given_up(now, &self.for_tokens) {
                self.for_tokens.remove(index);
                self.give_place_back();
                self.record.refused(Refuser::Limiter, false);
            } else if let Some(index) = self.given_up(now, &self.for_places) {
                self.for_places.remove(index);
                self.record.refused(Refuser::Concurrency, false);
            } else {
                return;
            }
        }
    }

    /// What has a place and tokens is called, unless the breaker has opened meanwhile.
    fn enter(&mut self, now: Time, caller: Caller) {
        if self.breaker.as_ref().is_some_and(|breaker| !breaker.lets_pass(now)) {
            self.give_place_back();
            self.record.refused(Refuser::Breaker, false);
            return;
        }
        let passed = self.breaker.as_mut().map(|breaker| breaker.pass(now));
        self.limit.take(now, caller.cost);
        let part = self.record.part();
        part.admitted += 1;
        part.queued += u64::from(caller.came < now);
        let number = self.made;
        self.made += 1;
        self.calls.push(Call { number, since: now, passed });
        self.service.call(self.scenario, now, number, caller.cost);
    }

    fn end(&mut self, now: Time, number: u64, end: End) {
        let Some(index) = self.calls.iter().position(|call| call.number == number) else { return };
        let called = self.calls.len() as u32;
        let call = self.calls.remove(index);
        self.record.ended(end, now - call.since);
        if let (Some(breaker), Some(passed)) = (&mut self.breaker, call.passed) {
            breaker.ended(now, passed, end != End::Succeeded);
        }
        let is_dropped = match end {
            End::Succeeded => Some(false),
            End::TooMany | End::TimedOut => Some(true),
            End::Failed => None,
        };
        // Who has a place and waits for tokens calls nothing.
        if let Some(places) = &mut self.places {
            places.end(now, call.since, is_dropped, called);
        }
    }

    fn give_place_back(&mut self) {
        if let Some(places) = &mut self.places {
            places.give_back();
        }
    }

    fn write_down(&mut self) {
        self.record.set(Now {
            in_flight: self.calls.len() as u64,
            waiting: (self.for_places.len() + self.for_tokens.len()) as u64,
            in_flight_limit: self.places.as_ref().map(|places| places.limit.into()),
            phase: phase_index(self.breaker.as_ref().map(|breaker| breaker.phase)),
        });
    }
}
