//! The simulation: events in virtual time, one after the other, through the flow that a server runs.

use std::collections::BTreeMap;

use sluicegate_runtime::{
    CallOutcome, ConcurrencyLimit, Inheritance, Limit, Nanos, PER_SECOND, QueuedPermits, Signals,
};

use super::check::{AdaptivePlan, PacePlan, Plan};
use super::flow::{SimulatedFlow, SimulatedPermit, Time};
use super::load::ArrivalTimes;
use super::provider::Said;
use super::random::Random;
use super::scenario::{MOST_CALLS, MOST_WAITING};
use super::service::{Answer, Service};
use super::totals::{Ended, Gauges, Record};
use super::waiting::{Entry, Waiting};

/// Runs it to its end, or to where more calls are in the service, or more callers wait, than are kept.
pub(super) fn run(plan: &mut Plan) -> Result<Record, String> {
    let time = Time::new();
    let flow = plan.flow.build(&time)?;
    let Some(service) = Service::new(&plan.service, Random::new(plan.seed, SERVICE)) else {
        return Err("there is no [[service]]".to_owned());
    };
    let mut arrivals = ArrivalTimes::new(&plan.load, Random::new(plan.seed, ARRIVALS));
    let next_evaluation = plan.adaptive.as_ref().map(|adaptive| adaptive.every);
    let mut simulation = Simulation {
        flow: &flow,
        time: &time,
        next_arrival: arrivals.next(),
        arrivals,
        degrades: plan.flow.degrades(),
        waiting: Waiting::new(&flow),
        service,
        timeout: plan.timeout,
        in_flight: BTreeMap::new(),
        calls: 0,
        next_evaluation,
        adaptive: plan.adaptive.as_mut(),
        record: Record::new(plan.duration, Gauges::default()),
    };
    simulation.gauge(0);
    while let Some((now, event)) = simulation.next_event().filter(|(now, _)| *now < plan.duration) {
        time.set(Nanos::new(now));
        simulation.record.move_to(now);
        simulation.step(now, event).map_err(|overfull| overfull.after(now))?;
        simulation.gauge(now);
    }
    Ok(simulation.finish(plan.duration))
}

/// More than is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Overfull {
    Service,
    Waiting,
}

impl Overfull {
    fn after(self, now: u64) -> String {
        let seconds = now / 1_000_000_000;
        match self {
            Self::Service => format!(
                "after {seconds} s more than {MOST_CALLS} calls are in the service at once: give the flow a quota or a limit in flight, or the service a \
                 capacity"
            ),
            Self::Waiting => format!(
                "after {seconds} s more than {MOST_WAITING} callers wait at once: give the flow most_waiting or a longest_wait"
            ),
        }
    }
}

struct Simulation<'f, 'p> {
    flow: &'f SimulatedFlow,
    time: &'f Time,
    arrivals: ArrivalTimes<'p>,
    /// Its time, and its cost.
    next_arrival: Option<(u64, u64)>,
    /// Whether something else takes the place of what is refused.
    degrades: bool,
    waiting: Waiting<'f>,
    service: Service<'p>,
    timeout: Option<u64>,
    /// Whose callers wait for the answer, by number: in the order in which they entered, and so in that of their deadlines.
    in_flight: BTreeMap<u64, SimulatedPermit<'f>>,
    calls: u64,
    next_evaluation: Option<u64>,
    adaptive: Option<&'p mut AdaptivePlan>,
    record: Record,
}

/// What happens. Of what happens at the same time, in this order: an answer that comes just in time is in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    ServicePhase,
    Answer,
    Deadline,
    Evaluation,
    /// Somebody who waits has to look again.
    Turn,
    Arrival,
}

impl<'f> Simulation<'f, '_> {
    fn next_event(&self) -> Option<(u64, Event)> {
        let deadline = self.timeout.and_then(|timeout| {
            let (_, first) = self.in_flight.first_key_value()?;
            Some(first.since().as_u64().saturating_add(timeout))
        });
        [
            (self.service.next_phase(), Event::ServicePhase),
            (self.service.next_answer(), Event::Answer),
            (deadline, Event::Deadline),
            (self.next_evaluation, Event::Evaluation),
            (self.time.next_wake().map(Nanos::as_u64), Event::Turn),
            (self.next_arrival.map(|(time, _)| time), Event::Arrival),
        ]
        .into_iter()
        .filter_map(|(time, event)| Some((time?, event)))
        .min()
    }

    fn step(&mut self, now: u64, event: Event) -> Result<(), Overfull> {
        match event {
            Event::ServicePhase => self.service.enter_next_phase(now),
            Event::Answer => {
                if let Some((number, answer, said)) = self.service.answer(now) {
                    if self.end(now, number, answer.into()) {
                        self.hear(now, said);
                    }
                }
            }
            Event::Deadline => {
                if let Some((&number, _)) = self.in_flight.first_key_value() {
                    let _ = self.end(now, number, Ended::TimedOut);
                }
            }
            Event::Evaluation => self.evaluate(now),
            // Time has woken them.
            Event::Turn => {}
            Event::Arrival => self.arrive(now)?,
        }
        while let Some((cost, entry)) = self.waiting.next_done() {
            self.enter(now, cost, entry)?;
        }
        Ok(())
    }

    fn arrive(&mut self, now: u64) -> Result<(), Overfull> {
        let Some((_, cost)) = self.next_arrival else { return Ok(()) };
        self.next_arrival = self.arrivals.next();
        self.record.offered();
        match self.waiting.enter(cost) {
            Some(entry) => self.enter(now, cost, entry),
            None if self.waiting.len() as u64 > MOST_WAITING => Err(Overfull::Waiting),
            None => Ok(()),
        }
    }

    /// A caller is told whether its call may be made, and if so makes it.
    fn enter(&mut self, now: u64, cost: u64, entry: Entry<'f>) -> Result<(), Overfull> {
        match entry {
            Ok((permit, path)) => {
                self.record.admitted(path);
                let number = self.calls;
                self.calls += 1;
                self.in_flight.insert(number, permit);
                self.spend(now, cost);
                self.service.call(now, number, cost)
            }
            Err(refusal) => {
                self.record.refused(refusal.stage, self.degrades);
                Ok(())
            }
        }
    }

    /// A call ends, and whether somebody was still there to hear of it.
    fn end(&mut self, now: u64, number: u64, ended: Ended) -> bool {
        let Some(permit) = self.in_flight.remove(&number) else { return false };
        self.record.ended(ended, now - permit.since().as_u64());
        permit.finish_at(Nanos::new(now), ended.into());
        true
    }

    /// An answer says what is left.
    fn hear(&mut self, now: u64, said: Option<Said>) {
        let Some(pace) = self.pace().filter(|pace| pace.goes_by_answers) else { return };
        if let Some(left) = said.and_then(|said| said.at(now)) {
            pace.account.report(Nanos::new(now), left);
            self.look_at_quota(now);
        }
    }

    fn pace(&mut self) -> Option<&mut PacePlan> {
        self.adaptive.as_mut()?.pace.as_mut()
    }

    fn evaluate(&mut self, now: u64) {
        let Some(adaptive) = self.adaptive.as_mut() else { return };
        self.next_evaluation = Some(now.saturating_add(adaptive.every));
        let mut signals = Signals::default().with_errors(self.flow.take_overloaded());
        if let Some(load) = self.service.take_load(now).filter(|_| adaptive.goes_by_load) {
            signals = signals.with_cpu(load);
        }
        if let Some(left) = adaptive.pace.as_mut().and_then(|pace| pace.account.left(Nanos::new(now))) {
            signals = signals.with_quota_left(left);
        }
        if let Some(quota) = adaptive.policy.evaluate(Nanos::new(now), &signals) {
            self.flow.adjust(quota, Inheritance::Level);
            self.record.share(adaptive.policy.allowed().share);
        }
    }

    fn spend(&mut self, now: u64, cost: u64) {
        if let Some(pace) = self.pace() {
            pace.account.spend(Nanos::new(now), cost);
            self.look_at_quota(now);
        }
    }

    fn look_at_quota(&mut self, now: u64) {
        let left = self.pace().and_then(|pace| pace.account.left(Nanos::new(now)));
        if left.is_some_and(|left| left.tokens == 0) {
            self.record.quota_ran_out.get_or_insert(now);
        }
    }

    /// Tells the record what is so from now on.
    fn gauge(&mut self, now: u64) {
        let left = self.pace().and_then(|pace| pace.account.left(Nanos::new(now)));
        self.record.gauge(Gauges {
            limit: in_thousandths_a_second(self.flow.limit()),
            in_flight: self.in_flight.len() as u64,
            in_flight_limit: self.flow.in_flight().map(QueuedPermits::limit).map(ConcurrencyLimit::limit),
            waiting: self.waiting.len() as u64,
            quota_left: left.map(|left| left.tokens),
        });
        if let Some(breaker) = self.flow.breaker() {
            self.record.phase(breaker.phase());
        }
    }

    fn finish(mut self, end: u64) -> Record {
        self.time.set(Nanos::new(end));
        self.record.move_to(end);
        self.record.in_flight_at_end = self.in_flight.len() as u64;
        self.record.provider = self.service.provider_totals();
        self.record.waiting_at_end = self.waiting.len() as u64;
        self.record
    }
}

impl From<Answer> for Ended {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Success => Self::Succeeded,
            Answer::Failure => Self::Failed,
            Answer::TooMany => Self::TooMany,
        }
    }
}

impl From<Ended> for CallOutcome {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Succeeded => Self::Success,
            Ended::Failed => Self::Failure,
            Ended::TooMany | Ended::TimedOut => Self::Overloaded,
        }
    }
}

/// Rounded down; for display alone.
fn in_thousandths_a_second(limit: Limit) -> Option<u64> {
    let rate = limit.quota()?.rate();
    let tokens = u128::from(rate.tokens()) * 1_000 * PER_SECOND.as_nanos() / u128::from(rate.period_nanos());
    Some(u64::try_from(tokens).unwrap_or(u64::MAX))
}

/// Which random numbers are whose.
const ARRIVALS: u64 = 1;
const SERVICE: u64 = 2;
