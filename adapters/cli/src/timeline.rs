//! Requests over time, in a bounded number of intervals.

use std::collections::BTreeMap;

use crate::time::LogTime;

/// Counts of admitted and denied requests in intervals that grow as the log does.
///
/// Intervals begin at multiples of their width from the Unix epoch. Only those with requests are kept, so one line with a
/// date far off does not blur all others.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// An index into [`WIDTHS`].
    width: usize,
    intervals: BTreeMap<i64, Counts>,
    /// The interval that requests come in, not yet among the others.
    current: Option<(i64, Counts)>,
    /// Most logs know no fractions of a second; then intervals have none.
    is_whole_seconds: bool,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { width: 0, intervals: BTreeMap::new(), current: None, is_whole_seconds: true }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
}

impl Counts {
    pub(crate) fn total(self) -> u64 {
        self.admitted + self.denied
    }

    fn add(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.denied += other.denied;
    }
}

impl Timeline {
    pub(crate) fn count(&mut self, time: LogTime, is_admitted: bool) {
        let index = time.nanos().div_euclid(WIDTHS[self.width]);
        self.is_whole_seconds &= time.nanos() % SECOND == 0;
        let one = Counts { admitted: u64::from(is_admitted), denied: u64::from(!is_admitted) };
        match &mut self.current {
            Some((current, counts)) if *current == index => counts.add(one),
            _ => {
                self.settle();
                self.current = Some((index, one));
                if self.intervals.len() > MOST {
                    self.settle();
                    self.widen();
                }
            }
        }
    }

    /// At most `most` intervals that show something: all from the first request to the last, or, where few of those would
    /// hold any, the finest of which `most` do.
    pub(crate) fn telling(&self, most: usize) -> Intervals {
        let covering = self.covering(most);
        if covering.counts.len() > FEW { covering } else { self.at_most(most) }
    }

    /// The finest intervals of which at most `most` hold requests.
    fn at_most(&self, most: usize) -> Intervals {
        self.until(|timeline| timeline.intervals.len() <= most)
    }

    /// The finest intervals of which at most `most` cover everything from the first request to the last.
    pub(crate) fn covering(&self, most: usize) -> Intervals {
        self.until(|timeline| match (timeline.intervals.first_key_value(), timeline.intervals.last_key_value()) {
            (Some((first, _)), Some((last, _))) => last.abs_diff(*first) < most as u64,
            _ => true,
        })
    }

    fn until(&self, is_enough: impl Fn(&Self) -> bool) -> Intervals {
        let mut timeline = self.clone();
        timeline.settle();
        while timeline.is_whole_seconds && WIDTHS[timeline.width] < SECOND {
            timeline.widen();
        }
        while !is_enough(&timeline) && timeline.width + 1 < WIDTHS.len() {
            timeline.widen();
        }
        let width = WIDTHS[timeline.width];
        Intervals { width, counts: timeline.intervals.into_iter().collect() }
    }

    fn settle(&mut self) {
        if let Some((index, counts)) = self.current.take() {
            self.intervals.entry(index).or_default().add(counts);
        }
    }

    fn widen(&mut self) {
        if self.width + 1 == WIDTHS.len() {
            return;
        }
        let factor = WIDTHS[self.width + 1] / WIDTHS[self.width];
        self.width += 1;
        for (index, counts) in std::mem::take(&mut self.intervals) {
            self.intervals.entry(index.div_euclid(factor)).or_default().add(counts);
        }
    }
}

/// Intervals of one width, those with requests, in order.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    /// In nanoseconds.
    pub(crate) width: i64,
    /// Each begins at its number times the width after the Unix epoch.
    pub(crate) counts: Vec<(i64, Counts)>,
}

pub(crate) const MS: i64 = 1_000_000;
pub(crate) const SECOND: i64 = 1_000 * MS;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// Widths that people count in, in nanoseconds; each divides the next.
const WIDTHS: [i64; 23] = [
    MS,
    5 * MS,
    10 * MS,
    50 * MS,
    100 * MS,
    500 * MS,
    SECOND,
    5 * SECOND,
    10 * SECOND,
    30 * SECOND,
    MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    30 * MINUTE,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    7 * DAY,
    28 * DAY,
    364 * DAY,
    3640 * DAY,
];

/// A log of so few intervals has long pauses.
const FEW: usize = 3;

/// More than anybody looks at, and little to keep.
const MOST: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_divides_the_next() {
        for pair in WIDTHS.windows(2) {
            assert_eq!(pair[1] % pair[0], 0, "{pair:?}");
        }
    }

    #[test]
    fn no_request_is_lost_however_coarse_the_intervals() {
        let mut timeline = Timeline::default();
        let time = |second: i64| LogTime::new(i128::from(second) * 1_000_000_000).unwrap();
        timeline.count(time(-3_000_000_000), false);
        for second in 0..100_000 {
            timeline.count(time(second * 7), second % 5 != 0);
        }
        timeline.count(time(8_000_000_000), true);
        for intervals in [timeline.at_most(24), timeline.at_most(3), timeline.covering(100), timeline.at_most(9999)] {
            let mut sum = Counts::default();
            intervals.counts.iter().for_each(|(_, counts)| sum.add(*counts));
            assert_eq!(sum, Counts { admitted: 80_001, denied: 20_001 });
        }
        let covering = timeline.covering(100).counts;
        assert!(covering[covering.len() - 1].0 - covering[0].0 < 100);
        assert!(timeline.at_most(24).counts.len() <= 24);
        // Years away from everything else, the first and the last leave the others apart from each other.
        assert_eq!(covering.len(), 3);
        assert!(timeline.telling(24).counts.len() > 10);
    }

    #[test]
    fn intervals_are_as_fine_as_the_times() {
        let mut timeline = Timeline::default();
        timeline.count(LogTime::new(7_000_000_000).unwrap(), true);
        assert_eq!(timeline.telling(24).width, SECOND);
        timeline.count(LogTime::new(7_003_000_000).unwrap(), true);
        assert_eq!(timeline.telling(24).width, MS);
    }
}
