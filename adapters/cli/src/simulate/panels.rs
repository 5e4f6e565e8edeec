//! What a picture shows: curves from what was recorded.

use plotters::style::{BLACK, RGBColor};

use super::axis::Axis;
use super::check::Plan;
use super::totals::{Counts, Part, Record};
use crate::picture;

/// Which of the counts.
type Count = fn(&Counts) -> u64;

/// Curves over one axis.
pub(super) struct Panel {
    /// What the axis counts, with its unit.
    pub(super) name: &'static str,
    pub(super) axis: Axis,
    pub(super) series: Vec<Series>,
    /// Pixels.
    pub(super) height: u32,
}

pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) colour: RGBColor,
    /// Pixels.
    pub(super) stroke: u32,
    /// Where nothing is known the curve is broken.
    pub(super) segments: Vec<Vec<(u64, u64)>>,
}

/// From top to bottom, without those that would be empty.
pub(super) fn panels(plan: &Plan, record: &Record) -> Vec<Panel> {
    let mut panels = vec![requests(plan, record)];
    panels.extend(refusals(record));
    panels.push(latency(record));
    if plan.flow.queues() {
        panels.push(waiting(record));
    }
    if plan.flow.in_flight.is_some() {
        panels.push(in_flight(record));
    }
    panels.extend(quota_left(plan, record));
    panels
}

fn requests(plan: &Plan, record: &Record) -> Panel {
    let rate = |count: Count| move |part: &Part, length| Some(per_second(count(&part.counts), length));
    let mut series = vec![
        curve(record, "offered", OFFERED, 2, rate(|counts| counts.offered)),
        curve(record, "admitted", ADMITTED, 4, rate(|counts| counts.admitted)),
        curve(record, "succeeded", SUCCEEDED, 2, rate(|counts| counts.succeeded)),
    ];
    // A limit far above all that is offered is not worth flattening that.
    let most = highest(&series);
    if record.parts.iter().any(|part| part.gauges.limit.is_some()) {
        let mut costs = Costs::new(plan);
        series.push(stairs(record, "limit in force", LIMIT, |part, from| {
            part.gauges.limit.map(|limit| limit / costs.at(from))
        }));
    }
    let most = highest(&series).min(most.saturating_mul(3));
    Panel { name: "requests per second", axis: Axis::counting(most, 1_000), series, height: 250 }
}

fn refusals(record: &Record) -> Option<Panel> {
    let curves: [(_, _, Count); 6] = [
        ("refused by the limiter", LIMITER, |counts| counts.refused_by_limiter),
        ("refused by the breaker", BREAKER, |counts| counts.refused_by_breaker),
        ("refused in flight", CONCURRENCY, |counts| counts.refused_by_concurrency),
        ("failed", FAILED, |counts| counts.failed),
        ("answered 429", TOO_MANY, |counts| counts.too_many),
        ("timed out", TIMED_OUT, |counts| counts.timed_out),
    ];
    let series: Vec<_> = curves
        .into_iter()
        .filter(|(_, _, count)| count(&record.counts) > 0)
        .map(|(name, colour, count)| {
            curve(record, name, colour, 2, |part, length| Some(per_second(count(&part.counts), length)))
        })
        .collect();
    let axis = Axis::counting(highest(&series), 1_000);
    (!series.is_empty()).then_some(Panel { name: "not served, per second", axis, series, height: 200 })
}

fn latency(record: &Record) -> Panel {
    let quantile = |thousandths| move |part: &Part, _| part.latencies.quantile(thousandths);
    let series = vec![
        curve(record, "99 in 100 within", TIMED_OUT, 2, quantile(990)),
        curve(record, "half of them within", ADMITTED, 2, quantile(500)),
    ];
    let most = highest(&series);
    let (unit, name) = match most {
        0..=9_999 => (1, "latency (ns)"),
        10_000..=9_999_999 => (1_000, "latency (us)"),
        10_000_000..=9_999_999_999 => (1_000_000, "latency (ms)"),
        _ => (1_000_000_000, "latency (s)"),
    };
    Panel { name, axis: Axis::counting(most, unit), series, height: 170 }
}

fn waiting(record: &Record) -> Panel {
    let series = vec![curve(record, "most at once", WAITING, 2, |part, _| Some(part.gauges.waiting))];
    let axis = Axis::counting(highest(&series), 1);
    Panel { name: "callers waiting", axis, series, height: 150 }
}

fn in_flight(record: &Record) -> Panel {
    let series = vec![
        curve(record, "most at once", ADMITTED, 2, |part, _| Some(part.gauges.in_flight)),
        stairs(record, "limit in flight", LIMIT, |part, _| part.gauges.in_flight_limit.map(u64::from)),
    ];
    let used = highest(&series[..1]).max(1);
    let axis = Axis::counting(highest(&series).min(used.saturating_mul(3)), 1);
    Panel { name: "calls in flight", axis, series, height: 170 }
}

fn quota_left(plan: &Plan, record: &Record) -> Option<Panel> {
    let rate = plan.adaptive.as_ref()?.pace.as_ref()?.rate;
    let period = rate.period_nanos();
    let spread = |_: &Part, from: u64| {
        let left = u128::from(period - from % period) * u128::from(rate.tokens()) / u128::from(period);
        u64::try_from(left).ok()
    };
    let series = vec![
        stairs(record, "spent evenly", OFFERED, spread),
        curve(record, "left", ADMITTED, 3, |part, _| part.gauges.quota_left),
    ];
    Some(Panel { name: "tokens left", axis: Axis::counting(rate.tokens(), 1), series, height: 170 })
}

/// A value for the middle of each part, from the part and its length.
fn curve(
    record: &Record,
    name: &'static str,
    colour: RGBColor,
    stroke: u32,
    value: impl Fn(&Part, u64) -> Option<u64>,
) -> Series {
    let points = spans(record).map(|(part, from, to)| {
        let value = value(part, to - from)?;
        Some(vec![(from + (to - from) / 2, value)])
    });
    Series { name, colour, stroke, segments: segments(points) }
}

/// A value for all of each part, from the part and its beginning.
fn stairs(
    record: &Record,
    name: &'static str,
    colour: RGBColor,
    mut value: impl FnMut(&Part, u64) -> Option<u64>,
) -> Series {
    let points = spans(record).map(|(part, from, to)| {
        let value = value(part, from)?;
        Some(vec![(from, value), (to, value)])
    });
    Series { name, colour, stroke: 1, segments: segments(points) }
}

fn spans(record: &Record) -> impl Iterator<Item = (&Part, u64, u64)> {
    record.parts.iter().zip(0_u64..).map(|(part, index)| {
        let from = index * record.width;
        (part, from, from.saturating_add(record.width).min(record.duration))
    })
}

fn segments(points: impl Iterator<Item = Option<Vec<(u64, u64)>>>) -> Vec<Vec<(u64, u64)>> {
    let mut segments = vec![Vec::new()];
    for points in points {
        match (points, segments.last_mut()) {
            (Some(points), Some(segment)) => segment.extend(points),
            (Some(points), None) => segments.push(points),
            (None, _) => segments.push(Vec::new()),
        }
    }
    segments.retain(|segment| !segment.is_empty());
    segments
}

fn highest(series: &[Series]) -> u64 {
    series.iter().flat_map(|series| series.segments.iter().flatten()).map(|(_, value)| *value).max().unwrap_or(0)
}

/// In thousandths.
fn per_second(count: u64, nanos: u64) -> u64 {
    let rate = u128::from(count) * 1_000_000_000_000 / u128::from(nanos.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// What a request costs at a time; times are asked for in order.
struct Costs<'p> {
    pieces: std::iter::Peekable<std::slice::Iter<'p, super::load::Piece>>,
    cost: u64,
}

impl<'p> Costs<'p> {
    fn new(plan: &'p Plan) -> Self {
        Self { pieces: plan.load.iter().peekable(), cost: 1 }
    }

    fn at(&mut self, time: u64) -> u64 {
        while let Some(piece) = self.pieces.next_if(|piece| piece.from <= time) {
            self.cost = piece.cost;
        }
        self.cost.max(1)
    }
}

const OFFERED: RGBColor = picture::LIGHT_GREY;
const ADMITTED: RGBColor = picture::BLUE;
const SUCCEEDED: RGBColor = picture::GREEN;
const LIMIT: RGBColor = BLACK;
const WAITING: RGBColor = picture::ORANGE;
const LIMITER: RGBColor = picture::ORANGE;
const BREAKER: RGBColor = picture::VERMILION;
const CONCURRENCY: RGBColor = picture::PINK;
const FAILED: RGBColor = picture::DARK_GREY;
const TOO_MANY: RGBColor = picture::SKY_BLUE;
const TIMED_OUT: RGBColor = picture::VIOLET;
