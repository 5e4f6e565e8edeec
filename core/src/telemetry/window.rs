//! How much was counted in the last while, from totals that only grow.

use core::time::Duration;

use crate::nanos::duration_to_nanos;

/// Totals of a minute or an hour ago and since, one for each part of it.
///
/// What happened between two evaluations is known, and not when: so a window reaches back to the oldest evaluation within it that was kept,
/// the first in its part, and never further.
#[derive(Clone, Debug)]
pub(super) struct Window<const COUNTS: usize> {
    span: u128,
    /// By the number of their part, modulo `PLACES`: the first evaluation in it.
    kept: [Option<Totals<COUNTS>>; PLACES],
    last: Option<Totals<COUNTS>>,
}

#[derive(Clone, Copy, Debug)]
struct Totals<const COUNTS: usize> {
    at: u128,
    counts: [u64; COUNTS],
}

impl<const COUNTS: usize> Window<COUNTS> {
    pub(super) const fn new(span: Duration) -> Self {
        Self { span: duration_to_nanos(span) as u128, kept: [None; PLACES], last: None }
    }

    /// How much of each was counted in the window that ends at `now`, which never goes back, given all that was counted so far.
    pub(super) fn count(&mut self, now: u128, counts: [u64; COUNTS]) -> [u64; COUNTS] {
        // Less than before: somebody counts anew.
        if self.last.is_some_and(|last| last.counts.iter().zip(counts).any(|(last, count)| count < *last)) {
            (self.kept, self.last) = ([None; PLACES], None);
        }
        let begin = now.saturating_sub(self.span);
        let oldest = self.kept.iter().flatten().filter(|totals| totals.at >= begin).min_by_key(|totals| totals.at);
        let base = oldest.copied().or(self.last);
        let latest = Totals { at: now, counts };
        let part = self.span / PARTS;
        let place = &mut self.kept[(now / part % PLACES as u128) as usize];
        if place.is_none_or(|totals| totals.at / part != now / part) {
            *place = Some(latest);
        }
        self.last = Some(latest);
        let Some(base) = base else { return [0; COUNTS] };
        let elapsed = now - base.at;
        core::array::from_fn(|which| {
            let counted = counts[which] - base.counts[which];
            if elapsed <= self.span {
                return counted;
            }
            // Nobody looked for longer than the window: as much as fell into it if it came evenly. It is less than `counted`.
            (u128::from(counted) * self.span / elapsed) as u64
        })
    }
}

/// Into so many parts a window is divided: of a minute, a part has 5 s.
const PARTS: u128 = 12;
/// The part that the window begins in is not over.
const PLACES: usize = PARTS as usize + 1;
