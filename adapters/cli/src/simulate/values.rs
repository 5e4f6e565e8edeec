//! Single values of a scenario. What cannot be is refused while it is read, so that the message points at it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use sluicegate_runtime::{Limit, Nanos, ParseError, QuotaError, Rate, Share};

/// Nanoseconds, from 0 to 30 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) u64);

/// Nanoseconds, from 1 to 30 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(pub(crate) u64);

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole<const LEAST: u64, const MOST: u64>(pub(crate) u64);

/// So many requests per so many nanoseconds, from none to one a nanosecond: a rate in core's text, or the word `none`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestRate {
    pub(crate) requests: u64,
    /// From 1 ns to 30 years.
    pub(crate) period: u64,
}

/// Millionths, from 0 to all of them, written as a percentage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u32);

/// A share that is more than nothing, written as a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part(pub(crate) Share);

/// A [`Part`], or the word `none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartOrNone(pub(crate) Option<Share>);

/// A limit in core's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitText(pub(crate) Limit);

/// A rate in core's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateText(pub(crate) Rate);

/// A rate in core's text, or the word `provider`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaceText {
    Own(Rate),
    Provider,
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text { expected: DURATION, parse: time }).map(Self)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let parse = |text: &str| match time(text)? {
            0 => Err(format!("\"{text}\" is no time at all: it has to be longer")),
            nanos => Ok(nanos),
        };
        deserializer.deserialize_any(Text { expected: DURATION, parse }).map(Self)
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeNumber::<LEAST, MOST>).map(Self)
    }
}

impl<'de> Deserialize<'de> for RequestRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "requests per period, such as \"80/1s\", or \"none\"";
        deserializer.deserialize_any(Text { expected, parse: request_rate })
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number { expected: "a percentage, a number from 0 to 100", most: 100.0, is_none: false };
        deserializer.deserialize_any(number).map(|number| Self(millionths(number.unwrap_or(0.0))))
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number { expected: PART, most: 100.0, is_none: false };
        let number = deserializer.deserialize_any(number)?.unwrap_or(0.0);
        part(number).map(Self)
    }
}

impl<'de> Deserialize<'de> for PartOrNone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number { expected: "a percentage above 0 and up to 100, or \"none\"", most: 100.0, is_none: true };
        deserializer.deserialize_any(number)?.map(part).transpose().map(Self)
    }
}

impl<'de> Deserialize<'de> for LimitText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "a limit such as \"100/1s burst 200\", \"off\" or \"deny\"";
        let parse = |text: &str| text.parse().map_err(|error| format!("{error}"));
        deserializer.deserialize_any(Text { expected, parse }).map(Self)
    }
}

impl<'de> Deserialize<'de> for RateText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "tokens per period, such as \"1000000/24h\"";
        let parse = |text: &str| text.parse().map_err(|error| format!("{error}"));
        deserializer.deserialize_any(Text { expected, parse }).map(Self)
    }
}

impl<'de> Deserialize<'de> for PaceText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected = "tokens per period, such as \"1000000/24h\", or \"provider\"";
        let parse = |text: &str| match text.trim() {
            "provider" => Ok(Self::Provider),
            text => text.parse().map(Self::Own).map_err(|error| format!("{error}, or \"provider\"")),
        };
        deserializer.deserialize_any(Text { expected, parse })
    }
}

/// The units are those of core's limits, and so it reads them.
fn time(text: &str) -> Result<u64, String> {
    if let Some(unit) = text.strip_prefix('0').map(|rest| rest.trim_start_matches('0')) {
        if UNITS.contains(&unit) {
            return Ok(0);
        }
    }
    let rate: Option<Rate> = Some(text)
        .filter(|text| text.starts_with(|first: char| first.is_ascii_digit()))
        .and_then(|text| format!("1/{text}").parse().ok());
    // One that is too long to be read is too long as well.
    let is_written_right = UNITS.iter().any(|unit| {
        let number = text.strip_suffix(unit).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    match rate.map(Rate::period_nanos) {
        Some(nanos) if nanos <= Nanos::HORIZON.as_u64() => Ok(nanos),
        Some(_) => Err(format!("\"{text}\" is longer than 30 years")),
        None if is_written_right => Err(format!("\"{text}\" is longer than 30 years")),
        None => {
            Err(format!("\"{text}\" is no duration: write a whole number and one of ns us ms s m h d, as in 250ms"))
        }
    }
}

/// The limit of one a nanosecond is that of the clock.
fn request_rate(text: &str) -> Result<RequestRate, String> {
    if text.trim() == "none" {
        return Ok(RequestRate { requests: 0, period: 1 });
    }
    let rate: Rate = text.parse().map_err(|error: ParseError| match error.quota_error() {
        Some(QuotaError::ZeroTokens) => format!("\"{text}\": write \"none\" where no requests arrive"),
        _ => format!("{error}, or \"none\""),
    })?;
    let (requests, period) = (rate.tokens(), rate.period_nanos());
    if period > Nanos::HORIZON.as_u64() {
        return Err(format!("\"{text}\": its period is longer than 30 years"));
    }
    if requests > period {
        return Err(format!("\"{text}\" is more than 1000000000/1s, a request each nanosecond"));
    }
    Ok(RequestRate { requests, period })
}

/// Of a number from 0 to 100.
fn millionths(percent: f64) -> u32 {
    (percent * 1e4).round() as u32
}

fn part<E: Error>(percent: f64) -> Result<Share, E> {
    let share = Share::parts_per_million(millionths(percent));
    share.map_err(|_| E::invalid_value(Unexpected::Float(percent), &PART))
}

struct Text<F> {
    expected: &'static str,
    parse: F,
}

impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(E::custom)
    }
}

struct WholeNumber<const LEAST: u64, const MOST: u64>;

impl<const LEAST: u64, const MOST: u64> Visitor<'_> for WholeNumber<LEAST, MOST> {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a whole number from {LEAST} to {MOST}")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        if (LEAST..=MOST).contains(&number) {
            Ok(number)
        } else {
            Err(E::invalid_value(Unexpected::Unsigned(number), &self))
        }
    }
}

/// A number from 0 to `most`; `None` for the word `none`, where that may be.
struct Number {
    expected: &'static str,
    most: f64,
    is_none: bool,
}

impl Visitor<'_> for Number {
    type Value = Option<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Option<f64>, E> {
        let float = number as f64;
        if (0.0..=self.most).contains(&float) {
            Ok(Some(float))
        } else {
            Err(E::invalid_value(Unexpected::Signed(number), &self))
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Option<f64>, E> {
        // NaN is in no range.
        if (0.0..=self.most).contains(&number) {
            Ok(Some(number))
        } else {
            Err(E::invalid_value(Unexpected::Float(number), &self))
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<f64>, E> {
        match text {
            "none" if self.is_none => Ok(None),
            _ => Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
    }
}

const UNITS: [&str; 7] = ["ns", "us", "ms", "s", "m", "h", "d"];
const DURATION: &str = "a duration such as \"250ms\", \"5s\" or \"2h\"";
const PART: &str = "a percentage above 0 and up to 100";
