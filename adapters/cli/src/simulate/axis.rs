//! Axes of whole numbers, so that a picture is the same on every machine.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// From 0 to `end`, with a mark at each `step`, labelled in units of `unit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) end: u64,
    step: u64,
    unit: u64,
}

impl Axis {
    /// Up to `most` or a little more, with marks at 1, 2 or 5 times a power of ten of the unit.
    pub(super) fn counting(most: u64, unit: u64) -> Self {
        let most = most.max(1);
        let step = steps(unit).find(|step| most / step < MARKS).unwrap_or(most);
        Self { end: most.div_ceil(step).saturating_mul(step), step, unit }
    }

    /// Up to `duration` in nanoseconds, and the name of the unit.
    pub(super) fn time(duration: u64) -> (Self, &'static str) {
        let (unit, name) = match duration {
            0..=9_999 => (1, "ns"),
            10_000..=9_999_999 => (1_000, "us"),
            10_000_000..=9_999_999_999 => (1_000_000, "ms"),
            10_000_000_000..=600_000_000_000 => (SECOND, "s"),
            600_000_000_001..=36_000_000_000_000 => (60 * SECOND, "min"),
            36_000_000_000_001..=432_000_000_000_000 => (3_600 * SECOND, "h"),
            _ => (86_400 * SECOND, "d"),
        };
        let clock = [1, 2, 5, 10, 15, 20, 30, 60, 120].into_iter().map(|count| count * unit);
        let clock = clock.filter(|_| (SECOND..86_400 * SECOND).contains(&unit) && unit != 3_600 * SECOND);
        let day = [1, 2, 3, 4, 6, 12, 24].into_iter().map(|count| count * unit).filter(|_| unit == 3_600 * SECOND);
        let is_few = |step: &u64| duration / step < TIME_MARKS;
        let step = clock.chain(day).find(is_few).or_else(|| steps(unit).find(is_few)).unwrap_or(duration);
        (Self { end: duration.max(1), step: step.max(1), unit }, name)
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = u64;

    fn map(&self, value: &u64, (low, high): (i32, i32)) -> i32 {
        let pixels = i128::from(*value) * i128::from(high - low) / i128::from(self.end.max(1));
        low.saturating_add(i32::try_from(pixels).unwrap_or(i32::MAX))
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<u64> {
        (0..=self.end / self.step).map(|number| number * self.step).collect()
    }

    fn range(&self) -> Range<u64> {
        0..self.end
    }
}

impl ValueFormatter<u64> for Axis {
    fn format_ext(&self, value: &u64) -> String {
        let thousandths = u128::from(value % self.unit) * 1_000 / u128::from(self.unit);
        let text = format!("{}.{thousandths:03}", crate::table::grouped(value / self.unit));
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// 1, 2 and 5 times each power of ten, from a thousandth of `unit` on where it is made of as many.
fn steps(unit: u64) -> impl Iterator<Item = u64> {
    let first = if unit >= 1_000 { unit / 1_000 } else { 1 };
    let powers = std::iter::successors(Some(first), |power| power.checked_mul(10));
    powers.flat_map(|power| [1, 2, 5].into_iter().filter_map(move |times| power.checked_mul(times)))
}

const SECOND: u64 = 1_000_000_000;
const MARKS: u64 = 5;
const TIME_MARKS: u64 = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_where_people_expect_them() {
        let marks = |axis: Axis| (axis.end / axis.unit, axis.format_ext(&axis.step), axis.end / axis.step);
        assert_eq!(marks(Axis::counting(83_000, 1_000)), (100, "20".to_owned(), 5));
        assert_eq!(marks(Axis::counting(400, 1_000)), (0, "0.1".to_owned(), 4));
        assert_eq!(marks(Axis::counting(0, 1)), (1, "1".to_owned(), 1));
        assert_eq!(marks(Axis::counting(100_000, 1)), (100_000, "50 000".to_owned(), 2));
        let time = |seconds| {
            let (axis, unit) = Axis::time(seconds * SECOND);
            (axis.format_ext(&axis.step), unit)
        };
        assert_eq!(time(180), ("15".to_owned(), "s"));
        assert_eq!(time(720), ("1".to_owned(), "min"));
        assert_eq!(time(86_400), ("2".to_owned(), "h"));
        assert_eq!(time(7 * 86_400), ("1".to_owned(), "d"));
    }

    #[test]
    fn no_axis_has_many_marks() {
        for bits in 0..64 {
            for value in [1_u64 << bits, (1 << bits) - 1, u64::MAX >> bits] {
                for unit in [1, 1_000, SECOND] {
                    let axis = Axis::counting(value, unit);
                    assert!(axis.end >= value && axis.end / axis.step <= MARKS, "{axis:?}");
                }
                let (axis, _) = Axis::time(value);
                assert!(axis.end / axis.step <= TIME_MARKS, "{axis:?}");
            }
        }
    }
}
