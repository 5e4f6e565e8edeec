//! Pictures of tables, as SVG.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::tables::{Table, number};

/// A bar for each row, as long as the number under `head` says; `None` for a table without that column.
pub fn bars(table: &Table, head: &str) -> Option<String> {
    let column = table.column(head)?;
    let rows: Vec<(&str, f64)> =
        table.rows.iter().filter_map(|row| Some((row[0].as_str(), number(&row[column])?))).collect();
    let longest = rows.iter().map(|(_, length)| *length).fold(f64::MIN_POSITIVE, f64::max);
    let mut document = String::new();
    {
        let height = TOP + ROW * rows.len() as i32 + MARGIN;
        let area = SVGBackend::with_string(&mut document, (WIDTH as u32, height as u32)).into_drawing_area();
        // Drawing into a string cannot fail.
        let _ = area.fill(&WHITE);
        let _ = area.draw(&Text::new(format!("{} ({head})", table.title), (MARGIN, MARGIN), ("sans-serif", 18)));
        for (place, (name, length)) in rows.iter().enumerate() {
            let top = TOP + ROW * place as i32;
            let colour = if is_ours(name) { OURS } else { RIVALS };
            let end = NAMES + ((WIDTH - NAMES - VALUES) as f64 * length / longest) as i32;
            let bar = Rectangle::new([(NAMES, top), (end.max(NAMES + 1), top + ROW * 3 / 4)], colour.filled());
            let _ = area.draw(&bar);
            let right = ("sans-serif", 13).into_font().color(&BLACK).pos(Pos::new(HPos::Right, VPos::Center));
            let left = ("sans-serif", 13).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
            let middle = top + ROW * 3 / 8;
            let _ = area.draw(&Text::new(name.replace('`', ""), (NAMES - GAP, middle), right));
            let _ = area.draw(&Text::new(format!("{length:.1}"), (end + GAP, middle), left));
        }
        let _ = area.present();
    }
    Some(document)
}

/// A line for each row over the columns, whose heads are numbers; `None` for any other table.
pub fn lines(table: &Table) -> Option<String> {
    let heads: Vec<&str> = table.heads.iter().skip(1).map(String::as_str).collect();
    if heads.is_empty() || heads.iter().any(|head| head.parse::<u32>().is_err()) {
        return None;
    }
    let rows: Vec<(&str, Vec<f64>)> = table
        .rows
        .iter()
        .map(|row| (row[0].as_str(), row[1..].iter().filter_map(|cell| number(cell)).collect()))
        .collect();
    let highest = rows.iter().flat_map(|(_, values)| values).copied().fold(f64::MIN_POSITIVE, f64::max);
    let mut document = String::new();
    {
        let area = SVGBackend::with_string(&mut document, (WIDTH as u32, LINES_HEIGHT)).into_drawing_area();
        // Drawing into a string cannot fail.
        let _ = draw_lines(&area, table, &heads, &rows, highest);
        let _ = area.present();
    }
    Some(document)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_lines(
    area: &Area<'_>,
    table: &Table,
    heads: &[&str],
    rows: &[(&str, Vec<f64>)],
    highest: f64,
) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>> {
    area.fill(&WHITE)?;
    // The names of the lines are above all of them.
    let headroom = 1.0 / (1.0 - 0.06 * (rows.len() + 1) as f64).max(0.3);
    // Columns are equally far apart, whatever their numbers.
    let mut chart = ChartBuilder::on(area)
        .margin(MARGIN)
        .caption(&table.title, ("sans-serif", 18))
        .x_label_area_size(40)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..(heads.len() - 1).max(1) as f64, 0.0..highest * headroom)?;
    let label = |place: &f64| {
        let is_column = (place - place.round()).abs() < 1e-6;
        heads.get(place.round() as usize).filter(|_| is_column).map_or(String::new(), |head| (*head).into())
    };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(heads.len())
        .x_label_formatter(&label)
        .x_desc(&table.heads[0])
        .y_desc("millions a second")
        .draw()?;
    for (number, (name, values)) in rows.iter().enumerate() {
        let colour = Palette99::pick(number);
        let points = values.iter().enumerate().map(|(place, value)| (place as f64, *value));
        let width = if is_ours(name) { 3 } else { 1 };
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(width)))?
            .label(name.replace('`', ""))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], Palette99::pick(number).stroke_width(width)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()
}

/// Ours have the names of our types, as code; a rival's name begins with its own.
fn is_ours(name: &str) -> bool {
    name.starts_with('`')
}

/// Pixels.
const WIDTH: i32 = 900;
const LINES_HEIGHT: u32 = 420;
const MARGIN: i32 = 14;
const TOP: i32 = 46;
const ROW: i32 = 26;
const GAP: i32 = 6;
/// What the names of rows have.
const NAMES: i32 = 330;
/// What the numbers behind the bars have.
const VALUES: i32 = 70;

const OURS: RGBColor = RGBColor(0x1f, 0x77, 0xb4);
const RIVALS: RGBColor = RGBColor(0x9e, 0x9e, 0x9e);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tables;

    #[test]
    fn only_what_can_be_drawn_is_drawn() {
        let page = "## T\n\n| | ns |\n|---|--:|\n| `ours` | 5.0 |\n| rival | 20.0 |\n| nobody | |\n";
        let table = &tables::of(page)[0];
        let drawn = bars(table, "ns").expect("it has the column");
        assert_eq!(drawn.matches("<rect").count(), 3, "{drawn}");
        assert!(drawn.contains("20.0") && !drawn.contains("nobody"));
        assert!(bars(table, "ms").is_none() && lines(table).is_none());
    }
}
