//! A picture: what came, what went, and what was in force, over time, as SVG.

use plotters::prelude::*;

use super::axis::Axis;
use super::check::Plan;
use super::panels::{self, Panel, Series};
use super::totals::Record;
use crate::picture::{self, Area, Failure, document, font, grid};

/// An SVG document.
pub(super) fn render(plan: &Plan, record: &Record) -> String {
    let text = wrapped(&plan.text);
    let panels = panels::panels(plan, record);
    let band = if plan.flow.breaker.is_some() { BAND } else { 0 };
    let head = TITLE + LINE * text.len() as u32 + GAP;
    let charts = panels.iter().map(|panel| panel.height).sum::<u32>();
    document((WIDTH, head + charts + band + FOOT), |area| draw(area, plan, record, &text, &panels, head))
}

fn draw(
    area: &Area<'_>,
    plan: &Plan,
    record: &Record,
    text: &[String],
    panels: &[Panel],
    head: u32,
) -> Result<(), Failure> {
    let (top, mut rest) = area.split_vertically(head);
    top.draw_text(&plan.title, &font(24).into_text_style(&top), (LEFT, 14))?;
    for (line, y) in text.iter().zip((TITLE as i32..).step_by(LINE as usize)) {
        top.draw_text(line, &font(16).into_text_style(&top).color(&picture::DARK_GREY), (LEFT, y))?;
    }
    for panel in panels {
        let (here, below) = rest.split_vertically(panel.height);
        draw_panel(&here, panel, record)?;
        rest = below;
    }
    if plan.flow.breaker.is_some() {
        let (here, below) = rest.split_vertically(BAND);
        draw_band(&here, record)?;
        rest = below;
    }
    let (_, unit) = Axis::time(record.duration);
    let style = font(16).into_text_style(&rest);
    rest.draw_text(&format!("time from the beginning ({unit})"), &style, (WIDTH as i32 / 2 - 150, 2))
}

fn draw_panel(area: &Area<'_>, panel: &Panel, record: &Record) -> Result<(), Failure> {
    let (left, right) = area.split_horizontally(WIDTH - LEGEND);
    let mut chart = chart(&left, record, panel.axis, panel.name, true)?;
    for series in &panel.series {
        for segment in &series.segments {
            let inside = segment.iter().map(|(time, value)| (*time, (*value).min(panel.axis.end)));
            if let (1, Some(alone)) = (segment.len(), inside.clone().next()) {
                chart.draw_series([Circle::new(alone, 2, series.colour.filled())])?;
            }
            chart.draw_series(LineSeries::new(inside, series.colour.stroke_width(series.stroke)))?;
        }
    }
    legend(&right, panel.series.iter().map(|series: &Series| (series.name, series.colour)))
}

/// How long the breaker was in each phase, in each part of the time: from the bottom closed, half-open and open.
fn draw_band(area: &Area<'_>, record: &Record) -> Result<(), Failure> {
    let (left, right) = area.split_horizontally(WIDTH - LEGEND);
    let mut chart = chart(&left, record, Axis::counting(ALL, ALL / 100), "breaker (% of time)", false)?;
    for (part, index) in record.parts.iter().zip(0_u64..) {
        let from = index * record.width;
        let to = from.saturating_add(record.width).min(record.duration);
        let share = |nanos: u64| (u128::from(nanos) * u128::from(ALL) / u128::from((to - from).max(1))) as u64;
        let mut below = 0;
        for (nanos, (_, colour)) in part.phases.iter().zip(PHASES) {
            let above = below + nanos;
            if *nanos > 0 {
                let corners = [(from, share(below)), (to, share(above))];
                chart.draw_series([Rectangle::new(corners, colour.filled())])?;
            }
            below = above;
        }
    }
    legend(&right, PHASES)
}

type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;

/// Over the time of the simulation, with its axes drawn, and all charts' time at the same place.
fn chart<'a>(
    area: &Area<'a>,
    record: &Record,
    axis: Axis,
    name: &'static str,
    has_grid: bool,
) -> Result<Chart<'a>, Failure> {
    let (time, _) = Axis::time(record.duration);
    let mut chart = ChartBuilder::on(area)
        .margin_top(12)
        .margin_left(MARGIN)
        .margin_right(MARGIN)
        .x_label_area_size(26)
        .y_label_area_size(LABELS)
        .build_cartesian_2d(time, axis)?;
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(grid())
        .y_desc(name)
        .label_style(font(14))
        .axis_desc_style(font(14));
    if !has_grid {
        mesh.disable_mesh();
    }
    mesh.draw()?;
    Ok(chart)
}

/// Beside the chart, where it hides no line.
fn legend(area: &Area<'_>, entries: impl IntoIterator<Item = (&'static str, RGBColor)>) -> Result<(), Failure> {
    let style = font(15).into_text_style(area);
    for ((name, colour), y) in entries.into_iter().zip((14..).step_by(20)) {
        area.draw(&Rectangle::new([(0, y), (16, y + 10)], colour.filled()))?;
        area.draw_text(name, &style, (24, y - 2))?;
    }
    Ok(())
}

/// Lines that fit the picture.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

const WIDTH: u32 = 1_200;
const LEGEND: u32 = 210;
const LEFT: i32 = 24;
const LABELS: u32 = 88;
const MARGIN: u32 = 24;
/// Heights of what stands above and below the panels.
const TITLE: u32 = 48;
const LINE: u32 = 20;
const GAP: u32 = 8;
const BAND: u32 = 110;
const FOOT: u32 = 32;
/// Characters of the text in a line.
const COLUMNS: usize = 150;
/// All of a part's time, in millionths.
const ALL: u64 = 1_000_000;
const PHASES: [(&str, RGBColor); 3] =
    [("closed", picture::LIGHT_GREEN), ("half-open", picture::YELLOW), ("open", picture::VERMILION)];
