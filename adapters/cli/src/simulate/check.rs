//! What a run needs, checked: from a scenario's text to a plan, or to a place in the text and what is wrong there.

use std::ops::Range;

use sluicegate_runtime::{AdaptivePolicy, Limit, QuotaAccount, Rate};
use toml::Spanned;

use super::flow::FlowPlan;
use super::load::{self, Piece};
use super::parts;
use super::scenario::{self, Scenario, ServicePhase};

/// A scenario that can be run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) title: String,
    pub(super) text: String,
    /// Nanoseconds.
    pub(super) duration: u64,
    pub(super) seed: u64,
    pub(super) load: Vec<Piece>,
    pub(super) service: Vec<ServicePlan>,
    pub(super) flow: FlowPlan,
    /// Nanoseconds.
    pub(super) timeout: Option<u64>,
    pub(super) adaptive: Option<AdaptivePlan>,
}

/// How the service is from a time on. Times are in nanoseconds, shares in millionths.
#[derive(Clone, Debug)]
pub(super) struct ServicePlan {
    pub(super) from: u64,
    pub(super) latency: u64,
    pub(super) jitter: u64,
    pub(super) capacity: Option<u64>,
    pub(super) queue: u64,
    pub(super) failures: u32,
    pub(super) overloaded: u32,
    pub(super) provider: Limit,
    pub(super) provider_quota: Option<Rate>,
    pub(super) refuses_in: u64,
}

#[derive(Debug)]
pub(super) struct AdaptivePlan {
    pub(super) policy: AdaptivePolicy,
    /// Nanoseconds.
    pub(super) every: u64,
    pub(super) goes_by_load: bool,
    pub(super) pace: Option<PacePlan>,
}

/// What the pace goes by.
#[derive(Debug)]
pub(super) struct PacePlan {
    pub(super) rate: Rate,
    pub(super) account: QuotaAccount,
    /// Whether answers say what is left.
    pub(super) goes_by_answers: bool,
}

/// Where in the text something is wrong, in bytes, and what.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) at: Range<usize>,
    pub(super) reason: String,
}

impl Plan {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let scenario: Scenario = toml::from_str(text).map_err(|error| Problem {
            at: error.span().unwrap_or(0..0),
            reason: error.message().trim().replace('\n', ", "),
        })?;
        Self::new(scenario)
    }

    fn new(scenario: Scenario) -> Result<Self, Problem> {
        let duration = scenario.duration.get_ref().0;
        check_times("load", &scenario.load, |phase| &phase.from, duration)?;
        check_times("service", &scenario.service, |phase| &phase.from, duration)?;
        if let Some(first) = scenario.service.get_ref().first().filter(|first| first.from.get_ref().0 != 0) {
            return Err(at(&first.from, "the first [[service]] has to be from 0s on"));
        }
        let limit = scenario.flow.quota.as_ref().map_or(Limit::Unlimited, |quota| quota.get_ref().0);
        check_costs(&scenario, limit)?;
        let load = load::pieces(scenario.load.get_ref(), duration);
        check_size(&scenario.load, &load)?;
        let service = scenario.service.get_ref().iter().map(service_plan).collect::<Result<_, _>>()?;
        let flow = parts::flow(&scenario.flow, limit)?;
        let adaptive = scenario.flow.adaptive.as_ref();
        let adaptive = adaptive.map(|options| parts::adaptive(options, &scenario, limit)).transpose()?;
        Ok(Self {
            title: printable(&scenario.title, "title")?,
            text: scenario.text.as_ref().map_or(Ok(String::new()), |text| printable(text, "text"))?,
            duration,
            seed: scenario.seed.map_or(0, |seed| seed.0),
            load,
            service,
            flow,
            timeout: scenario.flow.timeout.map(|timeout| timeout.0),
            adaptive,
        })
    }
}

impl Plan {
    /// Whether the service has limits of its own.
    pub(super) fn has_provider(&self) -> bool {
        self.has_provider_quota() || self.service.iter().any(|phase| phase.provider != Limit::Unlimited)
    }

    pub(super) fn has_provider_quota(&self) -> bool {
        self.service.iter().any(|phase| phase.provider_quota.is_some())
    }
}

/// What is wrong with `value`.
pub(super) fn at<T>(value: &Spanned<T>, reason: impl Into<String>) -> Problem {
    Problem { at: value.span(), reason: reason.into() }
}

/// In one line: a picture has no room for another. Other control characters are no XML.
fn printable(text: &Spanned<String>, name: &str) -> Result<String, Problem> {
    let line = text.get_ref().split_whitespace().collect::<Vec<_>>().join(" ");
    let limit = if name == "title" { LONGEST_TITLE } else { LONGEST_TEXT };
    if line.is_empty() && name == "title" {
        return Err(at(text, "an empty title"));
    }
    if line.chars().any(|character| character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}')) {
        return Err(at(text, format!("the {name} has control characters, which a picture cannot show")));
    }
    if line.chars().count() > limit {
        return Err(at(text, format!("the {name} is longer than {limit} characters, which a picture has no room for")));
    }
    Ok(line)
}

fn check_times<T>(
    name: &str,
    phases: &Spanned<Vec<T>>,
    from: impl Fn(&T) -> &Spanned<super::values::Time>,
    duration: u64,
) -> Result<(), Problem> {
    if phases.get_ref().is_empty() {
        return Err(at(phases, format!("there is no [[{name}]]: give at least one")));
    }
    if phases.get_ref().len() > MOST_PHASES {
        return Err(at(phases, format!("more than {MOST_PHASES} of [[{name}]]")));
    }
    let mut before = None;
    for from in phases.get_ref().iter().map(from) {
        let time = from.get_ref().0;
        if before.is_some_and(|before| time <= before) {
            return Err(at(from, format!("this [[{name}]] does not begin after the one before it: put them in order")));
        }
        if time >= duration {
            return Err(at(from, format!("this [[{name}]] begins when the scenario is over, or later")));
        }
        before = Some(time);
    }
    Ok(())
}

fn check_costs(scenario: &Scenario, limit: Limit) -> Result<(), Problem> {
    let Limit::Quota(quota) = limit else { return Ok(()) };
    for cost in scenario.load.get_ref().iter().filter_map(|phase| phase.cost.as_ref()) {
        if cost.get_ref().0 > quota.capacity() {
            let cost_of_one = cost.get_ref().0;
            return Err(at(
                cost,
                format!(
                    "a cost of {cost_of_one} is above the burst of the quota, {}: none of these would ever be admitted",
                    quota.capacity()
                ),
            ));
        }
    }
    Ok(())
}

fn check_size(phases: &Spanned<Vec<scenario::LoadPhase>>, pieces: &[Piece]) -> Result<(), Problem> {
    let mut arrivals = 0_u128;
    for piece in pieces {
        arrivals = arrivals.saturating_add(piece.arrivals());
        if arrivals > MOST_ARRIVALS {
            let phase = phases.get_ref().get(piece.phase);
            return Err(Problem {
                at: phase.map_or(phases.span(), |phase| phase.rate.span()),
                reason: format!(
                    "with this there are more than {MOST_ARRIVALS} arrivals: simulate less time, or lower rates"
                ),
            });
        }
    }
    Ok(())
}

fn service_plan(phase: &ServicePhase) -> Result<ServicePlan, Problem> {
    if let (Some(queue), None) = (&phase.queue, &phase.capacity) {
        return Err(at(queue, "a queue without a capacity: nothing would ever wait in it"));
    }
    Ok(ServicePlan {
        from: phase.from.get_ref().0,
        latency: phase.latency.0,
        jitter: phase.jitter.map_or(0, |jitter| jitter.0),
        capacity: phase.capacity.map(|capacity| capacity.0),
        queue: phase.queue.as_ref().map_or(DEFAULT_QUEUE, |queue| queue.get_ref().0),
        failures: phase.failures.0,
        overloaded: phase.overloaded.0,
        provider_quota: phase.provider_quota.map(|quota| quota.0),
        provider: phase.provider.map_or(Limit::Unlimited, |limit| limit.0),
        refuses_in: phase.refuses_in.map_or(DEFAULT_REFUSES_IN, |time| time.0),
    })
}

const MOST_ARRIVALS: u128 = 50_000_000;
/// Each may be a ramp, of a thousand pieces.
const MOST_PHASES: usize = 1_000;
const LONGEST_TITLE: usize = 100;
const LONGEST_TEXT: usize = 600;
const DEFAULT_QUEUE: u64 = 1_000;
const DEFAULT_REFUSES_IN: u64 = 1_000_000;
