//! What came of a log's requests.

use crate::error::Error;
use crate::keys::Keys;
use crate::limiter::{Limiter, Memory};
use crate::time::LogTime;
use crate::timeline::Timeline;

/// Decides and counts.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    limiter: &'a Limiter,
    /// Whether requests come in the order of their times.
    is_in_order: bool,
    /// The key whose memory is looked at next, to be given back if it can be: one for each request.
    next: usize,
    pub(crate) keys: Keys,
    of_key: Vec<OfKey>,
    pub(crate) requests: u64,
    pub(crate) denied: u64,
    /// The first and the last time.
    pub(crate) span: Option<(LogTime, LogTime)>,
    pub(crate) timeline: Timeline,
}

#[derive(Clone, Debug, Default)]
struct OfKey {
    memory: Memory,
    requests: u64,
    denied: u64,
    first_denied_at: Option<LogTime>,
}

/// A key that was refused.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) key: String,
    pub(crate) requests: u64,
    pub(crate) denied: u64,
    pub(crate) first_denied_at: LogTime,
}

impl<'a> Tally<'a> {
    pub(crate) fn new(limiter: &'a Limiter, is_in_order: bool) -> Self {
        Self {
            limiter,
            is_in_order,
            next: 0,
            keys: Keys::default(),
            of_key: Vec::new(),
            requests: 0,
            denied: 0,
            span: None,
            timeline: Timeline::default(),
        }
    }

    /// Decides on one request. `None` is a log that spans too much for the limit.
    pub(crate) fn decide(&mut self, time: LogTime, key: u32, cost: u64) -> Option<()> {
        let index = key as usize;
        if index >= self.of_key.len() {
            self.of_key.resize(self.keys.len().max(index + 1), OfKey::default());
        }
        let of_key = &mut self.of_key[index];
        let is_admitted = self.limiter.admits(&mut of_key.memory, time, cost).ok()?;
        of_key.requests += 1;
        if self.is_in_order {
            self.limiter.forget(&mut self.of_key[self.next].memory, time);
            self.next = (self.next + 1) % self.of_key.len();
        }
        let of_key = &mut self.of_key[index];
        self.requests += 1;
        if !is_admitted {
            of_key.denied += 1;
            of_key.first_denied_at.get_or_insert(time);
            self.denied += 1;
        }
        self.span = match self.span {
            None => Some((time, time)),
            Some((first, last)) => Some((first.min(time), last.max(time))),
        };
        self.timeline.count(time, is_admitted);
        Some(())
    }

    /// Keys that were refused at least once.
    pub(crate) fn denied_keys(&self) -> usize {
        self.of_key.iter().filter(|of_key| of_key.denied > 0).count()
    }

    /// The `count` keys that were refused most, the most refused first, equals in the order of their bytes.
    pub(crate) fn most_refused(&self, count: usize) -> Vec<Refused> {
        let mut refused: Vec<_> = (0_u32..)
            .zip(&self.of_key)
            .filter_map(|(number, of_key)| of_key.first_denied_at.map(|time| (number, of_key, time)))
            .collect();
        refused.sort_unstable_by(|(a_number, a, _), (b_number, b, _)| {
            b.denied.cmp(&a.denied).then_with(|| self.keys.bytes_of(*a_number).cmp(self.keys.bytes_of(*b_number)))
        });
        refused.truncate(count);
        refused
            .into_iter()
            .map(|(number, of_key, first_denied_at)| Refused {
                key: self.keys.text_of(number).into_owned(),
                requests: of_key.requests,
                denied: of_key.denied,
                first_denied_at,
            })
            .collect()
    }

    pub(crate) fn span_error(&self, limit: String, key: u32) -> Error {
        Error::Span { limit, key: self.keys.text_of(key).into_owned() }
    }
}
