//! A picture: admitted and denied requests over time, as SVG.

use std::ops::Range;

use jiff::tz::Offset;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::options::Options;
use crate::picture::{self, Area, Failure, document, font, grid};
use crate::replay::Replayed;
use crate::timeline::{DAY, HOUR, MINUTE, MS, SECOND};

/// An SVG document.
pub(crate) fn render(options: &Options, replayed: &Replayed<'_>) -> String {
    document(SIZE, |area| draw(area, options, replayed))
}

fn draw(area: &Area<'_>, options: &Options, replayed: &Replayed<'_>) -> Result<(), Failure> {
    let tally = &replayed.tally;
    let intervals = tally.timeline.covering(BARS);
    let width = intervals.width;
    let first = intervals.counts.first().map_or(0, |(number, _)| number * width);
    let end = intervals.counts.last().map_or(width, |(number, _)| (number + 1).saturating_mul(width));
    let tallest = intervals.counts.iter().map(|(_, counts)| counts.total()).max().unwrap_or(0).max(1);

    let title = format!(
        "{} ({}) by {}: {} admitted, {} denied",
        options.limit,
        options.algorithm.name(),
        options.by,
        tally.requests - tally.denied,
        tally.denied
    );
    let mut chart = ChartBuilder::on(area)
        .margin(16)
        .margin_right(48)
        .caption(title, font(20))
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(Times(first..end), 0..tallest + tallest.div_ceil(4))?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(grid())
        .x_desc(tally.span.map_or("time (UTC)".to_owned(), |(first, _)| {
            format!("time (UTC), from {}", Offset::UTC.to_datetime(first.timestamp()).strftime("%Y-%m-%d %H:%M"))
        }))
        .y_desc(format!("requests per {}", width_name(width)))
        .x_labels(LABELS)
        .label_style(font(14))
        .axis_desc_style(font(15))
        .draw()?;

    let bars = |is_denied: bool| {
        let style = if is_denied { DENIED } else { ADMITTED }.filled();
        intervals.counts.iter().filter_map(move |(number, counts)| {
            let (bottom, top) = if is_denied { (counts.admitted, counts.total()) } else { (0, counts.admitted) };
            let (left, right) = (number * width, (number + 1).saturating_mul(width));
            (bottom < top).then(|| Rectangle::new([(left, bottom), (right, top)], style))
        })
    };
    for (name, is_denied) in [("admitted", false), ("denied", true)] {
        let colour = if is_denied { DENIED } else { ADMITTED };
        chart
            .draw_series(bars(is_denied))?
            .label(name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 6), (x + 16, y + 6)], colour.filled()));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(font(15))
        .draw()
}

/// An axis of nanoseconds since the Unix epoch, with its marks where people expect them.
struct Times(Range<i64>);

impl Times {
    fn length(&self) -> i128 {
        (i128::from(self.0.end) - i128::from(self.0.start)).max(1)
    }
}

impl Ranged for Times {
    type FormatOption = NoDefaultFormatting;
    type ValueType = i64;

    fn map(&self, value: &i64, (low, high): (i32, i32)) -> i32 {
        let offset = i128::from(*value) - i128::from(self.0.start);
        let pixels = offset * i128::from(high - low) / self.length();
        low.saturating_add(i32::try_from(pixels).unwrap_or(i32::MAX))
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<i64> {
        let most = hint.max_num_points().clamp(2, LABELS) as i128;
        let width = STEPS.into_iter().find(|width| self.length() / i128::from(*width) < most);
        let width = width.unwrap_or(STEPS[STEPS.len() - 1]);
        let first = self.0.start.div_euclid(width) + i64::from(self.0.start.rem_euclid(width) != 0);
        (first..).map_while(|number| number.checked_mul(width)).take_while(|time| *time <= self.0.end).collect()
    }

    fn range(&self) -> Range<i64> {
        self.0.clone()
    }
}

impl ValueFormatter<i64> for Times {
    fn format_ext(&self, value: &i64) -> String {
        let Ok(timestamp) = jiff::Timestamp::from_nanosecond(i128::from(*value)) else {
            return String::new();
        };
        let format = match self.length() / i128::from(SECOND) {
            0..=9 => "%H:%M:%S%.3f",
            10..=599 => "%H:%M:%S",
            600..=43_199 => "%H:%M",
            43_200..=1_209_599 => "%m-%d %H:%M",
            _ => "%Y-%m-%d",
        };
        Offset::UTC.to_datetime(timestamp).strftime(format).to_string()
    }
}

fn width_name(width: i64) -> String {
    match [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")].into_iter().find(|(unit, _)| width % unit == 0) {
        Some((unit, name)) if width == unit => name.to_owned(),
        Some((unit, name)) => format!("{} {name}", width / unit),
        None => format!("{} ms", width / MS),
    }
}

const SIZE: (u32, u32) = (1_080, 480);
const BARS: usize = 180;
const LABELS: usize = 9;
/// From one mark on the axis to the next, in nanoseconds.
const STEPS: [i64; 36] = [
    MS,
    2 * MS,
    5 * MS,
    10 * MS,
    20 * MS,
    50 * MS,
    100 * MS,
    200 * MS,
    500 * MS,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
    28 * DAY,
    91 * DAY,
    182 * DAY,
    365 * DAY,
    3_650 * DAY,
    36_500 * DAY,
];
const ADMITTED: RGBColor = picture::LIGHT_BLUE;
const DENIED: RGBColor = picture::VERMILION;
