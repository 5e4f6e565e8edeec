//! The parts of a flow: what a scenario says about each, as core's options.

use std::time::Duration;

use sluicegate_runtime::{
    AdaptiveOptions, AdaptiveOptionsError, AimdOptions, BreakerOptions, BreakerOptionsError, BreakerPolicy, ErrorRule,
    GradientOptions, InFlightLaw, Limit, LoadRule, Nanos, PaceRule, QuotaAccount, Share, WhenEmpty,
};
use toml::Spanned;

use super::check::{AdaptivePlan, PacePlan, Problem, at};
use super::flow::{FlowPlan, InFlightPlan};
use super::scenario::{self, LawName, Scenario, WhenEmptyName};
use super::values::{PaceText, Part, Whole};

pub(super) fn flow(given: &scenario::Flow, limit: Limit) -> Result<FlowPlan, Problem> {
    Ok(FlowPlan {
        limit,
        when_empty: when_empty(given)?,
        most_waiting: given.most_waiting.as_ref().map(|most| count(*most.get_ref()) as usize),
        breaker: given.breaker.as_ref().map(breaker).transpose()?,
        in_flight: given.in_flight.as_ref().map(in_flight).transpose()?,
    })
}

fn when_empty(given: &scenario::Flow) -> Result<WhenEmpty, Problem> {
    if let WhenEmptyName::Queue = given.when_empty {
        let longest = given.longest_wait.as_ref().map(|longest| nanos(longest.get_ref().0));
        return Ok(longest.map_or(WhenEmpty::Queue, WhenEmpty::QueueFor));
    }
    let spans = [given.longest_wait.as_ref().map(Spanned::span), given.most_waiting.as_ref().map(Spanned::span)];
    if let Some(at) = spans.into_iter().flatten().next() {
        return Err(Problem { at, reason: "nobody waits unless when_empty is \"queue\"".to_owned() });
    }
    Ok(match given.when_empty {
        WhenEmptyName::Degrade => WhenEmpty::Degrade,
        _ => WhenEmpty::Reject,
    })
}

fn in_flight(given: &Spanned<scenario::InFlight>) -> Result<InFlightPlan, Problem> {
    let law = match given.get_ref() {
        scenario::InFlight::Fixed(limit) => return Ok(InFlightPlan::Fixed(*limit)),
        scenario::InFlight::Law(law) => law,
    };
    let limit = |number: Option<scenario::InFlightCount>, default| number.map_or(default, count);
    let (least, initial, most) = (limit(law.least, LEAST), limit(law.initial, INITIAL), limit(law.most, MOST));
    let built = match law.law {
        LawName::Aimd => AimdOptions::new().limits(least, initial, most).build().map(InFlightLaw::Aimd),
        LawName::Gradient => GradientOptions::new().limits(least, initial, most).build().map(InFlightLaw::Gradient),
    };
    built.map(InFlightPlan::Law).map_err(|error| at(given, error.to_string()))
}

fn breaker(breaker: &Spanned<scenario::Breaker>) -> Result<BreakerPolicy, Problem> {
    let given = breaker.get_ref();
    let (first, longest) = (&given.cool_down, &given.longest_cool_down);
    let options = BreakerOptions::new().cool_down(
        first.as_ref().map_or(Duration::from_secs(5), |first| nanos(first.get_ref().0)),
        longest.as_ref().map_or(Duration::from_secs(60), |longest| nanos(longest.get_ref().0)),
    );
    let options = with(options, given.window.as_ref(), |all, window| all.window(nanos(window.get_ref().0)));
    let options = with(options, given.minimum_calls, |all, calls| all.minimum_calls(count(calls)));
    let options = with(options, given.failure_share.as_ref(), |all, share| match share.get_ref().0 {
        Some(share) => all.failure_share(share),
        None => all.any_failure_share(),
    });
    let options =
        with(options, given.slow_calls.as_ref(), |all, slow| all.slow_calls(nanos(slow.from.0), slow.share.0));
    let options = with(options, given.consecutive_failures, |all, failures| all.consecutive_failures(count(failures)));
    let options = with(options, given.probes, |all, probes| all.probes(count(probes)));
    let options = with(options, given.probe_patience, |all, patience| all.probe_patience(nanos(patience.0)));
    options.build().map_err(|error| {
        let place = match error {
            BreakerOptionsError::Window { .. } => given.window.as_ref().map(Spanned::span),
            BreakerOptionsError::NothingTrips => given.failure_share.as_ref().map(Spanned::span),
            BreakerOptionsError::CoolDown { .. } => first.as_ref().or(longest.as_ref()).map(Spanned::span),
            _ => None,
        };
        Problem { at: place.unwrap_or(breaker.span()), reason: error.to_string() }
    })
}

pub(super) fn adaptive(
    given: &Spanned<scenario::Adaptive>,
    scenario: &Scenario,
    limit: Limit,
) -> Result<AdaptivePlan, Problem> {
    let Limit::Quota(base) = limit else {
        return Err(at(given, "what adapts is the quota, and [flow] has none: give it one, such as \"100/1s\""));
    };
    let adaptive = given.get_ref();
    let every = adaptive.every.as_ref().map_or(DEFAULT_EVERY, |every| every.get_ref().0);
    if scenario.duration.get_ref().0 / every > MOST_EVALUATIONS {
        return Err(Problem {
            at: adaptive.every.as_ref().map_or(given.span(), Spanned::span),
            reason: format!("with this there are more than {MOST_EVALUATIONS} evaluations: put them farther apart"),
        });
    }
    if let Some(rule) = &adaptive.load {
        check_load_rule(rule, scenario)?;
    }
    let options = AdaptiveOptions::new(base).every(nanos(every));
    let options = with(options, adaptive.load.as_ref(), |all, rule| all.cpu(load_rule(rule.get_ref())));
    let options = with(options, adaptive.errors.as_ref(), |all, rule| all.errors(error_rule(rule)));
    let options = with(options, adaptive.pace.as_ref(), |all, _| all.pace(PaceRule::new()));
    let options = with(options, adaptive.floor, |all, share| all.floor(share.0));
    let options = with(options, adaptive.most_fall, |all, share| all.most_fall(share.0));
    let options = with(options, adaptive.most_rise, |all, share| all.most_rise(share.0));
    let options = with(options, adaptive.least_change, |all, share| all.least_change(share.0));
    let policy = options.build().map_err(|error| match error {
        AdaptiveOptionsError::NoRule => at(given, "no rule to adapt by: give at least one of load, errors and pace"),
        error => at(given, error.to_string()),
    })?;
    let pace = adaptive.pace.as_ref().map(|given| pace(given, scenario)).transpose()?;
    Ok(AdaptivePlan { policy, every, goes_by_load: adaptive.load.is_some(), pace })
}

fn pace(given: &Spanned<PaceText>, scenario: &Scenario) -> Result<PacePlan, Problem> {
    match *given.get_ref() {
        PaceText::Own(rate) => {
            let account = QuotaAccount::every(nanos(rate.period_nanos()), rate.tokens(), Nanos::ZERO);
            Ok(PacePlan { rate, account, goes_by_answers: false })
        }
        PaceText::Provider => {
            let Some(quota) = scenario.service.get_ref().iter().find_map(|phase| phase.provider_quota) else {
                return Err(at(given, "no [[service]] has a provider_quota for answers to tell of"));
            };
            Ok(PacePlan { rate: quota.0, account: QuotaAccount::unknown(), goes_by_answers: true })
        }
    }
}

/// What core would take for something else than was written.
fn check_load_rule(rule: &Spanned<scenario::LoadRule>, scenario: &Scenario) -> Result<(), Problem> {
    if scenario.service.get_ref().iter().any(|phase| phase.capacity.is_none()) {
        let reason = "the load is how much of the service's capacity is busy: give every [[service]] a capacity";
        return Err(at(rule, reason));
    }
    let given = rule.get_ref();
    let is_in_order = |less: Option<Share>, default: u32, more: Option<Share>, default_more: u32| {
        let parts = |share: Option<Share>, default: u32| share.map_or(default, Share::as_parts_per_million);
        parts(less, default) < parts(more, default_more)
    };
    let share = |part: &Option<Spanned<Part>>| part.as_ref().map(|part| part.get_ref().0);
    let place = |first: &Option<Spanned<Part>>, second: &Option<Spanned<Part>>| {
        first.as_ref().or(second.as_ref()).map_or(rule.span(), Spanned::span)
    };
    if !is_in_order(share(&given.low), LOW, share(&given.high), HIGH) {
        return Err(Problem {
            at: place(&given.high, &given.low),
            reason: "high has to be above low; unless they are given they are 80 and 50".to_owned(),
        });
    }
    if is_in_order(share(&given.most_cut), MOST_CUT, share(&given.least_cut), LEAST_CUT) {
        return Err(Problem {
            at: place(&given.least_cut, &given.most_cut),
            reason: "least_cut has to be no more than most_cut; unless they are given they are 25 and 50".to_owned(),
        });
    }
    Ok(())
}

fn load_rule(given: &scenario::LoadRule) -> LoadRule {
    let share = |part: &Option<Spanned<Part>>| part.as_ref().map(|part| part.get_ref().0);
    let cut = |part: &Option<Spanned<Part>>, default: u32| {
        share(part).or(Share::parts_per_million(default).ok()).unwrap_or(Share::HALF)
    };
    let rule = LoadRule::new().cut(cut(&given.least_cut, LEAST_CUT), cut(&given.most_cut, MOST_CUT));
    let rule = with(rule, share(&given.high), LoadRule::high);
    let rule = with(rule, share(&given.low), LoadRule::low);
    let rule = with(rule, given.recovery, |rule, share| rule.recovery(share.0));
    with(rule, given.weight, |rule, share| rule.weight(share.0))
}

fn error_rule(given: &scenario::ErrorRule) -> ErrorRule {
    let rule = ErrorRule::new();
    let rule = with(rule, given.cuts, |rule, cuts| rule.cuts(cuts.map(|cut| cut.0)));
    let rule = with(rule, given.least_errors, |rule, errors| rule.least_errors(errors.0));
    let rule = with(rule, given.cool_down, |rule, time| rule.cool_down(nanos(time.0)));
    with(rule, given.recovery, |rule, share| rule.recovery(share.0))
}

/// `options` with what is given; without it, they keep core's default.
fn with<T, V>(options: T, given: Option<V>, set: impl FnOnce(T, V) -> T) -> T {
    match given {
        Some(given) => set(options, given),
        None => options,
    }
}

fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

fn count<const LEAST: u64, const MOST: u64>(number: Whole<LEAST, MOST>) -> u32 {
    u32::try_from(number.0).unwrap_or(u32::MAX)
}

const MOST_EVALUATIONS: u64 = 10_000_000;
/// Core's own, for what is given or checked together.
const LEAST: u32 = 1;
const INITIAL: u32 = 10;
const MOST: u32 = 1_000;
const DEFAULT_EVERY: u64 = 5_000_000_000;
const HIGH: u32 = 800_000;
const LOW: u32 = 500_000;
const LEAST_CUT: u32 = 250_000;
const MOST_CUT: u32 = 500_000;
