//! The report for people.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Row, Table, presets};
use jiff::tz::Offset;

use crate::escape::escaped;
use crate::options::Options;
use crate::replay::Replayed;
use crate::tally::Tally;
use crate::time::LogTime;
use crate::timeline::{Counts, DAY, HOUR, MINUTE, MS, SECOND};

/// The whole report, ending with a line's end.
pub(crate) fn render(options: &Options, replayed: &Replayed<'_>) -> String {
    let tally = &replayed.tally;
    let mut text = String::new();
    summary(&mut text, options, replayed);
    if tally.denied > 0 && options.top > 0 {
        most_refused(&mut text, options, tally);
    }
    if tally.requests > 0 {
        timeline(&mut text, tally);
    }
    text
}

fn summary(text: &mut String, options: &Options, replayed: &Replayed<'_>) {
    let tally = &replayed.tally;
    let mut table = table();
    let mut line = |name: &str, number: u64, note: String| {
        table.add_row(Row::from(vec![Cell::new(name), right(grouped(number)), Cell::new(note)]));
    };
    let share = |part: u64, whole: u64| if part == 0 { String::new() } else { percent(part, whole) };
    line("requests", tally.requests, String::new());
    line("admitted", tally.requests - tally.denied, share(tally.requests - tally.denied, tally.requests));
    line("denied", tally.denied, share(tally.denied, tally.requests));
    let (keys, denied_keys) = (tally.keys.len() as u64, tally.denied_keys() as u64);
    line("keys", keys, String::new());
    line("keys ever denied", denied_keys, share(denied_keys, keys));
    if replayed.unparsed > 0 {
        line("unreadable lines", replayed.unparsed, "not among the requests".to_owned());
    }
    if replayed.out_of_order > 0 {
        let note =
            if options.is_stream { "decided at their own, late times" } else { "put in the order of their times" };
        line("lines out of order", replayed.out_of_order, note.to_owned());
    }

    let _ = write!(text, "{} ({}) by {}", options.limit, options.algorithm.name(), options.by);
    if options.is_weighted {
        text.push_str(", each request at its own cost");
    }
    if let Some((first, last)) = tally.span {
        let _ = write!(text, ", {} to {}", date_and_time(first), date_and_time(last));
    }
    let _ = writeln!(text, "\n\n{}", table.trim_fmt());
}

fn most_refused(text: &mut String, options: &Options, tally: &Tally<'_>) {
    let refused = tally.most_refused(options.top);
    let mut table = table();
    table.set_header(Row::from(vec![
        Cell::new(options.by),
        right("requests".to_owned()),
        right("denied".to_owned()),
        right(String::new()),
        Cell::new("first denied (UTC)"),
    ]));
    let count = refused.len() as u64;
    for refused in refused {
        table.add_row(Row::from(vec![
            Cell::new(shortened(&escaped(&refused.key).to_string())),
            right(grouped(refused.requests)),
            right(grouped(refused.denied)),
            right(percent(refused.denied, refused.requests)),
            Cell::new(date_and_time(refused.first_denied_at)),
        ]));
    }
    let all = tally.denied_keys() as u64;
    let of =
        if count < all { format!("{} of {}", grouped(count), grouped(all)) } else { format!("all {}", grouped(all)) };
    let _ = writeln!(text, "\nMost refused ({of})\n\n{}", table.trim_fmt());
}

fn timeline(text: &mut String, tally: &Tally<'_>) {
    let intervals = tally.timeline.telling(ROWS);
    let largest = intervals.counts.iter().map(|(_, counts)| counts.total()).max().unwrap_or(1);
    let _ = writeln!(
        text,
        "\nOver time (UTC), {} a row: {ADMITTED} admitted {DENIED} denied\n",
        span_name(intervals.width)
    );
    let width = grouped(largest).len();
    let mut next = None;
    for (number, counts) in &intervals.counts {
        let gap = next.map_or(0, |next: i64| number - next);
        if gap > SHOWN_GAP {
            let _ = writeln!(text, "{:>16}  ({} without requests)", "...", count_of_spans(gap, intervals.width));
        } else {
            for empty in number - gap..*number {
                let _ = writeln!(text, "{}", start_of(empty, intervals.width));
            }
        }
        next = Some(number + 1);
        let denied = if counts.denied > 0 { format!(", {} denied", grouped(counts.denied)) } else { String::new() };
        let _ = writeln!(
            text,
            "{}  {:>width$}  {}{denied}",
            start_of(*number, intervals.width),
            grouped(counts.total()),
            bar(*counts, largest)
        );
    }
}

/// A bar of at most [`BAR`] characters. Whatever is not zero shows.
fn bar(counts: Counts, largest: u64) -> String {
    let scaled = |count: u64| {
        let exact = u128::from(count) * u128::from(BAR) / u128::from(largest.max(1));
        exact.max(u128::from(count > 0)) as usize
    };
    let denied = scaled(counts.denied);
    let admitted = scaled(counts.total()).saturating_sub(denied).max(usize::from(counts.admitted > 0));
    format!("{}{}", ADMITTED.repeat(admitted), DENIED.repeat(denied))
}

pub(crate) fn table() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table
}

pub(crate) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Digits in threes: 1 234 567 is read at a glance.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// With one decimal, rounded to the nearest, but nothing that is not zero prints as zero, nor a part as the whole.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let tenths = (u128::from(part) * 2_000 + u128::from(whole)) / (u128::from(whole) * 2).max(1);
    match tenths {
        0 if part > 0 => "<0.1 %".to_owned(),
        1_000.. if part < whole => ">99.9 %".to_owned(),
        _ => format!("{}.{} %", tenths / 10, tenths % 10),
    }
}

fn shortened(key: &str) -> String {
    if key.chars().count() <= LONGEST_KEY {
        return key.to_owned();
    }
    let mut text: String = key.chars().take(LONGEST_KEY - 3).collect();
    text.push_str("...");
    text
}

/// `2015-05-17 10:05:03`, with a fraction only where there is one.
fn date_and_time(time: LogTime) -> String {
    let text = time.to_string();
    text.trim_end_matches('Z').replacen('T', " ", 1)
}

/// When an interval begins, as precisely as its width asks for.
fn start_of(number: i64, width: i64) -> String {
    let nanoseconds = i128::from(number) * i128::from(width);
    let Ok(timestamp) = jiff::Timestamp::from_nanosecond(nanoseconds) else {
        return String::new();
    };
    let format = match width {
        DAY.. => "%Y-%m-%d      ",
        MINUTE.. => "%Y-%m-%d %H:%M",
        SECOND.. => "%Y-%m-%d %H:%M:%S",
        _ => "%Y-%m-%d %H:%M:%S.%3f",
    };
    Offset::UTC.to_datetime(timestamp).strftime(format).to_string()
}

fn span_name(width: i64) -> String {
    for (unit, name) in UNITS {
        if width % unit == 0 {
            return format!("{} {name}", width / unit);
        }
    }
    format!("{width} ns")
}

/// A long time in the largest unit of which it is at least two.
fn count_of_spans(count: i64, width: i64) -> String {
    let length = i128::from(count) * i128::from(width);
    let units = [(365 * DAY, "years")].into_iter().chain(UNITS);
    let (unit, name) = units.into_iter().find(|(unit, _)| length >= 2 * i128::from(*unit)).unwrap_or((MS, "ms"));
    format!("{} {name}", length / i128::from(unit))
}

const UNITS: [(i64, &str); 5] = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (MS, "ms")];

/// Rows of the timeline that hold requests: it then fits a screen with everything else.
const ROWS: usize = 24;
/// Empty rows in a row; more are summed up in one.
const SHOWN_GAP: i64 = 2;
const BAR: u32 = 50;
const ADMITTED: &str = "█";
const DENIED: &str = "░";
const LONGEST_KEY: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_at_a_glance() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
        assert_eq!(percent(1_013, 10_000), "10.1 %");
        assert_eq!(percent(1, 1_000_000), "<0.1 %");
        assert_eq!(percent(999_999, 1_000_000), ">99.9 %");
        assert_eq!((percent(5, 5), percent(0, 5)), ("100.0 %".to_owned(), "0.0 %".to_owned()));
    }

    #[test]
    fn a_bar_shows_whatever_is_not_zero() {
        let bar = |admitted, denied| bar(Counts { admitted, denied }, 1_000_000);
        assert_eq!(bar(1, 1), "█░");
        assert_eq!(bar(0, 1), "░");
        assert_eq!(bar(1_000_000, 0).chars().count(), 50);
        assert_eq!(bar(500_000, 500_000), format!("{}{}", "█".repeat(25), "░".repeat(25)));
    }
}
