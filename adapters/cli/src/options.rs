//! What a run needs, checked: nothing after this asks again whether options go together.

use std::fmt;
use std::path::{Path, PathBuf};

use sluicegate_core::{Limit, Rate, SlidingCounterStep, WindowLimit};

use crate::args::{Algorithm, By, Cost, FormatName, ReplayArgs};
use crate::error::Error;
use crate::escape::escaped;
use crate::format::{Format, Pattern, Selection};
use crate::input::Source;
use crate::limiter::Limiter;
use crate::output::Target;
use crate::time::TimeFormat;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) sources: Vec<Source>,
    pub(crate) format: Format,
    /// The limit in its canonical form.
    pub(crate) limit: String,
    pub(crate) algorithm: Algorithm,
    pub(crate) limiter: Limiter,
    /// What the report calls the keys.
    pub(crate) by: &'static str,
    /// Whether requests take more or less than 1 each.
    pub(crate) is_weighted: bool,
    pub(crate) is_stream: bool,
    pub(crate) is_strict: bool,
    pub(crate) top: usize,
    pub(crate) json: bool,
    pub(crate) plot: Option<Target>,
}

impl Options {
    /// Checks everything that can be checked before a log is read: options, files, and where the plot will go.
    pub(crate) fn new(args: ReplayArgs) -> Result<Self, Error> {
        let (limit, limiter) = match args.algorithm {
            Algorithm::TokenBucket => bucket(&args.limit, args.burst)?,
            algorithm => {
                without_burst(algorithm, args.burst)?;
                match algorithm {
                    Algorithm::SlidingLog => log(&args.limit)?,
                    Algorithm::SlidingCounter => counter(&args.limit)?,
                    _ => window(&args.limit)?,
                }
            }
        };
        let time = time_format(args.time_format.as_deref())?;
        let format = format(args.format, args.pattern.as_deref(), args.by, args.cost, time)?;
        let sources = sources(&args.files)?;
        let plot = args.plot.map(|path| Target::new(path, &sources)).transpose()?;
        let by = match (&format, args.by) {
            (_, Some(by)) => by.name(),
            (Format::Regex(_), None) => "key",
            (_, None) => By::Ip.name(),
        };
        let is_weighted = match &format {
            Format::Regex(pattern) => pattern.has_cost(),
            _ => args.cost == Some(Cost::Bytes),
        };
        Ok(Self {
            sources,
            format,
            limit,
            algorithm: args.algorithm,
            limiter,
            by,
            is_weighted,
            is_stream: args.stream,
            is_strict: args.strict,
            top: args.top,
            json: args.json,
            plot,
        })
    }
}

fn bucket(text: &str, burst: Option<u64>) -> Result<(String, Limiter), Error> {
    let mut limit = text.parse().map_err(|error| invalid_limit(text, &error))?;
    if let Some(burst) = burst {
        limit = match limit {
            Limit::Quota(quota) => quota
                .burst(burst)
                .map(Limit::Quota)
                .map_err(|error| usage(format!("invalid value '{burst}' for '--burst <N>': {error}")))?,
            Limit::Unlimited | Limit::DenyAll => {
                return Err(usage(format!(
                    "'--burst {burst}' does not go with '--limit {limit}': only a limit of TOKENS/PERIOD, such as 10/1m, has a burst"
                )));
            }
        };
    }
    Ok((limit.to_string(), Limiter::bucket(limit)))
}

fn without_burst(algorithm: Algorithm, burst: Option<u64>) -> Result<(), Error> {
    match burst {
        Some(burst) => Err(usage(format!(
            "'--burst {burst}' does not go with '--algorithm {}': it admits its limit and has no other burst",
            algorithm.name()
        ))),
        None => Ok(()),
    }
}

fn window(text: &str) -> Result<(String, Limiter), Error> {
    let limit: WindowLimit = text.parse().map_err(|error| invalid_limit(text, &error))?;
    Ok((limit.to_string(), Limiter::window(limit)))
}

fn log(text: &str) -> Result<(String, Limiter), Error> {
    // A log keeps every rate there is; other limits are those of a window.
    let limit: Result<Rate, _> = text.parse();
    match limit {
        Ok(rate) => Ok((rate.to_string(), Limiter::log(rate))),
        Err(_) => {
            let limit: WindowLimit = text.parse().map_err(|error| invalid_limit(text, &error))?;
            let limiter = limit.step().map_or_else(|| Limiter::window(limit), |step| Limiter::log(step.rate()));
            Ok((limit.to_string(), limiter))
        }
    }
}

fn counter(text: &str) -> Result<(String, Limiter), Error> {
    let limit: WindowLimit = text.parse().map_err(|error| invalid_limit(text, &error))?;
    let Some(step) = limit.step() else {
        return Ok((limit.to_string(), Limiter::window(limit)));
    };
    let step = SlidingCounterStep::new(step.rate()).map_err(|error| invalid_limit(text, &error))?;
    let limiter = Limiter::counter(step)
        .ok_or_else(|| invalid_limit(text, &"the longest window of a sliding counter is 15 years (5478d)"))?;
    Ok((limit.to_string(), limiter))
}

fn invalid_limit(text: &str, error: &dyn fmt::Display) -> Error {
    usage(format!("invalid value '{}' for '--limit <LIMIT>': {error}", escaped(text)))
}

fn time_format(text: Option<&str>) -> Result<TimeFormat, Error> {
    let Some(text) = text else {
        return Ok(TimeFormat::Known);
    };
    TimeFormat::strptime(text)
        .map_err(|error| usage(format!("invalid value '{}' for '--time-format <FORMAT>': {error}", escaped(text))))
}

fn format(
    name: Option<FormatName>,
    pattern: Option<&str>,
    by: Option<By>,
    cost: Option<Cost>,
    time: TimeFormat,
) -> Result<Format, Error> {
    let selection = Selection { by: by.unwrap_or(By::Ip), cost: cost.unwrap_or(Cost::One), time };
    let invalid = |pattern: &str, reason: String| {
        usage(format!("invalid value '{}' for '--pattern <RE>': {reason}", escaped(pattern)))
    };
    match (name, pattern) {
        (None | Some(FormatName::Regex), Some(pattern)) => {
            let regex =
                Pattern::new(pattern, selection, cost == Some(Cost::One)).map_err(|reason| invalid(pattern, reason))?;
            Ok(Format::Regex(Box::new(regex)))
        }
        (Some(FormatName::Regex), None) => {
            Err(usage("'--format regex' needs '--pattern <RE>' with the named groups `time` and `key`".to_owned()))
        }
        (Some(_), Some(pattern)) => {
            Err(invalid(pattern, "it goes only with '--format regex', which may be left out".to_owned()))
        }
        (None | Some(FormatName::Auto), None) => Ok(Format::Auto(selection)),
        (Some(FormatName::Common), None) => Ok(Format::Common(selection)),
        (Some(FormatName::Combined), None) => Ok(Format::Combined(selection)),
        (Some(FormatName::JsonLines), None) => Ok(Format::JsonLines(selection)),
    }
}

fn sources(files: &[PathBuf]) -> Result<Vec<Source>, Error> {
    if files.iter().filter(|path| path.as_path() == Path::new("-")).count() > 1 {
        return Err(usage("'-' is named twice: standard input can be read once".to_owned()));
    }
    files.iter().map(|path| Source::new(path)).collect()
}

fn usage(message: String) -> Error {
    Error::Usage(message)
}
