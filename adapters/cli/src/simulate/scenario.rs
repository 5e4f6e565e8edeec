//! A scenario as it is written; `check` makes a plan of it.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use toml::Spanned;

use super::values::{Length, LimitText, PaceText, Part, PartOrNone, Percent, RateText, RequestRate, Time, Whole};

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) title: Spanned<String>,
    pub(super) text: Option<Spanned<String>>,
    pub(super) duration: Spanned<Length>,
    pub(super) seed: Option<Whole<0, { i64::MAX as u64 }>>,
    pub(super) load: Spanned<Vec<LoadPhase>>,
    pub(super) service: Spanned<Vec<ServicePhase>>,
    #[serde(default)]
    pub(super) flow: Flow,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadPhase {
    pub(super) from: Spanned<Time>,
    pub(super) rate: Spanned<RequestRate>,
    pub(super) to_rate: Option<RequestRate>,
    #[serde(default)]
    pub(super) arrivals: Arrivals,
    pub(super) cost: Option<Spanned<Whole<1, { u32::MAX as u64 }>>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Arrivals {
    #[default]
    Even,
    Random,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServicePhase {
    pub(super) from: Spanned<Time>,
    pub(super) latency: Time,
    pub(super) jitter: Option<Time>,
    pub(super) capacity: Option<Whole<1, MOST_PLACES>>,
    pub(super) queue: Option<Spanned<Whole<0, MOST_PLACES>>>,
    #[serde(default)]
    pub(super) failures: Percent,
    #[serde(default)]
    pub(super) overloaded: Percent,
    pub(super) provider: Option<LimitText>,
    pub(super) provider_quota: Option<RateText>,
    pub(super) refuses_in: Option<Time>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flow {
    pub(super) quota: Option<Spanned<LimitText>>,
    #[serde(default)]
    pub(super) when_empty: WhenEmptyName,
    pub(super) longest_wait: Option<Spanned<Length>>,
    pub(super) most_waiting: Option<Spanned<Whole<0, MOST_WAITING>>>,
    pub(super) timeout: Option<Length>,
    pub(super) in_flight: Option<Spanned<InFlight>>,
    pub(super) breaker: Option<Spanned<Breaker>>,
    pub(super) adaptive: Option<Spanned<Adaptive>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WhenEmptyName {
    #[default]
    Reject,
    Queue,
    Degrade,
}

#[derive(Debug)]
pub(super) enum InFlight {
    Fixed(u32),
    Law(InFlightLaw),
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InFlightLaw {
    pub(super) law: LawName,
    pub(super) least: Option<InFlightCount>,
    pub(super) initial: Option<InFlightCount>,
    pub(super) most: Option<InFlightCount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum LawName {
    Aimd,
    Gradient,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Breaker {
    pub(super) window: Option<Spanned<Length>>,
    pub(super) minimum_calls: Option<Whole<1, MOST_COUNT>>,
    pub(super) failure_share: Option<Spanned<PartOrNone>>,
    pub(super) slow_calls: Option<SlowCalls>,
    pub(super) consecutive_failures: Option<Whole<1, MOST_COUNT>>,
    pub(super) cool_down: Option<Spanned<Length>>,
    pub(super) longest_cool_down: Option<Spanned<Length>>,
    pub(super) probes: Option<Whole<1, MOST_COUNT>>,
    pub(super) probe_patience: Option<Length>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SlowCalls {
    pub(super) from: Length,
    pub(super) share: Part,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Adaptive {
    pub(super) load: Option<Spanned<LoadRule>>,
    pub(super) errors: Option<ErrorRule>,
    pub(super) pace: Option<Spanned<PaceText>>,
    pub(super) every: Option<Spanned<Length>>,
    pub(super) floor: Option<Part>,
    pub(super) most_fall: Option<Part>,
    pub(super) most_rise: Option<Part>,
    pub(super) least_change: Option<Part>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadRule {
    pub(super) high: Option<Spanned<Part>>,
    pub(super) low: Option<Spanned<Part>>,
    pub(super) least_cut: Option<Spanned<Part>>,
    pub(super) most_cut: Option<Spanned<Part>>,
    pub(super) recovery: Option<Part>,
    pub(super) weight: Option<Part>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorRule {
    pub(super) cuts: Option<[Part; 3]>,
    pub(super) least_errors: Option<Whole<1, MOST_COUNT>>,
    pub(super) cool_down: Option<Time>,
    pub(super) recovery: Option<Part>,
}

/// A number alone is a fixed limit.
impl<'de> Deserialize<'de> for InFlight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InFlightVisitor)
    }
}

struct InFlightVisitor;

impl<'de> Visitor<'de> for InFlightVisitor {
    type Value = InFlight;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from 1 to {MOST_PLACES}, or a table with a law")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<InFlight, E> {
        match u32::try_from(number) {
            Ok(limit) if (1..=MOST_PLACES).contains(&u64::from(limit)) => Ok(InFlight::Fixed(limit)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<InFlight, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map)).map(InFlight::Law)
    }
}

pub(super) type InFlightCount = Whole<1, MOST_PLACES>;

/// Calls that are kept at once: so that a scenario cannot take all memory.
pub(super) const MOST_CALLS: u64 = 1_000_000;
/// Callers who wait at once: each is a future of about a kilobyte.
pub(super) const MOST_WAITING: u64 = 100_000;
/// Of a capacity, of a queue and in flight: a capacity and a queue together are kept.
const MOST_PLACES: u64 = 400_000;
const MOST_COUNT: u64 = u32::MAX as u64;
