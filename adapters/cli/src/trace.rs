//! All requests of a log in little memory, to be put in order.

use crate::time::LogTime;

/// Requests as 16 bytes each, whatever their lines were.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    entries: Vec<Entry>,
    /// Costs that do not fit into an entry, which then holds an index into this.
    large: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    time: LogTime,
    key: u32,
    cost: u32,
}

impl Trace {
    pub(crate) fn push(&mut self, time: LogTime, key: u32, cost: u64) {
        let cost = match u32::try_from(cost) {
            Ok(cost) if cost < LARGE => cost,
            // 2^31 of them would be a log of more than 20 GB of such lines alone; beyond, the last index repeats.
            _ => {
                self.large.push(cost);
                LARGE | u32::try_from(self.large.len() - 1).unwrap_or(u32::MAX).min(LARGE - 1)
            }
        };
        self.entries.push(Entry { time, key, cost });
    }

    /// The order of times; requests at one time stay in the order they came.
    pub(crate) fn sort(&mut self) {
        self.entries.sort_by_key(|entry| entry.time);
    }

    /// Time, key and cost of each request.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (LogTime, u32, u64)> {
        self.entries.iter().map(|entry| {
            let cost = if entry.cost < LARGE {
                u64::from(entry.cost)
            } else {
                self.large[(entry.cost & (LARGE - 1)) as usize]
            };
            (entry.time, entry.key, cost)
        })
    }
}

/// The bit that says that a cost is an index.
const LARGE: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_every_size_come_back_and_equal_times_keep_their_order() {
        let costs = [0, 1, u64::from(LARGE) - 1, u64::from(LARGE), u64::from(u32::MAX), u64::MAX];
        let mut trace = Trace::default();
        let time = |nanoseconds| LogTime::new(nanoseconds).unwrap();
        for round in 0..50 {
            for (key, cost) in (0..).zip(costs) {
                trace.push(time(i128::from(round % 3)), round * 10 + key, cost);
            }
        }
        trace.sort();
        let all: Vec<_> = trace.iter().collect();
        for pair in all.windows(2) {
            assert!((pair[0].0, pair[0].1) < (pair[1].0, pair[1].1), "{pair:?}");
        }
        assert!(all.iter().all(|(_, key, cost)| *cost == costs[*key as usize % 10]));
    }
}
