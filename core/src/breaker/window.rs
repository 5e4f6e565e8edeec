//! Results of the last while, counted by parts of it.

use super::policy::PARTS;
use crate::Nanos;

/// What came back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) slow: u64,
}

/// The results of the newest part and the 15 before it.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// By the number of their part, modulo `PARTS`.
    parts: [Counts; PARTS],
    /// The number of the newest part, and the reading that it begins at.
    newest: u64,
    begin: u64,
    sum: Counts,
}

impl Window {
    pub(super) const fn new() -> Self {
        const NONE: Counts = Counts { calls: 0, failures: 0, slow: 0 };
        Self { parts: [NONE; PARTS], newest: 0, begin: 0, sum: NONE }
    }

    /// Counts one result at `now`, and tells what counts then. A reading a little behind the newest counts as that; one behind all that
    /// counts begins anew, because it is the clock that went back.
    #[inline]
    pub(super) fn add(&mut self, part: u64, now: Nanos, is_failure: bool, is_slow: bool) -> Counts {
        self.advance(part, now);
        for counts in [&mut self.parts[index(self.newest)], &mut self.sum] {
            // Nothing can be counted 2^64 times.
            counts.calls += 1;
            if is_failure {
                counts.failures += 1;
            }
            if is_slow {
                counts.slow += 1;
            }
        }
        self.sum
    }

    #[inline]
    fn advance(&mut self, part: u64, now: Nanos) {
        // Mostly it is in the newest part, and then nothing is divided.
        if now.as_u64().wrapping_sub(self.begin) >= part {
            self.move_to(part, now);
        }
    }

    #[cold]
    fn move_to(&mut self, part: u64, now: Nanos) {
        let number = now.as_u64() / part;
        if number > self.newest {
            if number - self.newest >= PARTS as u64 {
                *self = Self::new();
            } else {
                for gone in self.newest + 1..=number {
                    let gone = core::mem::take(&mut self.parts[index(gone)]);
                    self.sum.calls -= gone.calls;
                    self.sum.failures -= gone.failures;
                    self.sum.slow -= gone.slow;
                }
            }
            self.newest = number;
        } else if self.newest - number >= PARTS as u64 {
            *self = Self::new();
            self.newest = number;
        }
        self.begin = self.newest * part;
    }
}

const fn index(number: u64) -> usize {
    (number % PARTS as u64) as usize
}
