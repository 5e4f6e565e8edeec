//! Calls in flight: a number, or one that grows by one and shrinks by a tenth.

use super::Time;
use super::scenario::InFlight;

const LEAST_TIME: Time = 250_000_000;
const LONGEST_TIME: Time = 10_000_000_000;
const SAMPLES: usize = 20;

#[derive(Clone, Debug)]
pub(super) struct Places {
    pub(super) limit: u32,
    pub(super) in_use: u32,
    law: Option<(u32, u32)>,
    /// Of the window: when it ended, whether it was dropped, and what was in use.
    samples: Vec<(Time, bool, u32)>,
    only_from: Option<Time>,
}

impl Places {
    pub(super) fn new(in_flight: InFlight) -> Self {
        let (limit, law) = match in_flight {
            InFlight::Fixed(limit) => (limit, None),
            InFlight::Aimd { least, initial, most } => (initial, Some((least, most))),
        };
        Self { limit, in_use: 0, law, samples: Vec::new(), only_from: None }
    }

    pub(super) fn has_room(&self) -> bool {
        self.in_use < self.limit
    }

    /// A place is given back under which nothing was called.
    pub(super) fn give_back(&mut self) {
        self.in_use -= 1;
    }

    /// One of `called` calls has ended, that was made at `since`; `is_dropped` is `None` where it says nothing about load.
    pub(super) fn end(&mut self, now: Time, since: Time, is_dropped: Option<bool>, called: u32) {
        self.in_use -= 1;
        let (Some((least, most)), Some(is_dropped)) = (self.law, is_dropped) else { return };
        if let Some(from) = self.only_from {
            if now - from >= LONGEST_TIME {
                self.only_from = None;
            } else if since < from {
                return;
            }
        }
        if self.samples.first().is_some_and(|(first, _, _)| now - first > LONGEST_TIME) {
            self.samples.clear();
        }
        self.samples.push((now, is_dropped, called));
        let lasted = now - self.samples[0].0;
        let enough = if lasted >= LONGEST_TIME / 2 { SAMPLES.min(2 * self.limit as usize) } else { SAMPLES };
        if lasted < LEAST_TIME || self.samples.len() < enough {
            return;
        }
        let window = std::mem::take(&mut self.samples);
        let most_in_use = window.iter().map(|(_, _, in_use)| *in_use).max().unwrap_or(0);
        if window.iter().any(|(_, is_dropped, _)| *is_dropped) {
            let lower = (self.limit * 9 / 10).max(least);
            if lower < self.limit {
                self.only_from = Some(now);
            }
            self.limit = lower;
        } else if 2 * most_in_use >= self.limit {
            self.limit = (self.limit + 1).min(most);
        }
    }
}
