//! What one request holds until all levels have what it asks for.

use super::level::{Holding, Level};
use crate::Nanos;
use crate::decision::{Admitted, Denied, Remaining};

/// What is held so far, from the innermost level out. Dropped, also by a panic, it lets go of all.
pub(super) struct Held<'h, 'a, const N: usize, L: Holding + ?Sized> {
    levels: &'h [&'a Level<L>; N],
    costs: &'h [u64; N],
    answers: [Option<Admitted>; N],
}

/// A hold that was announced. Dropped, also by a panic, it tells that it ended.
struct Announced<'l, L: ?Sized>(&'l Level<L>, u64);

impl<L: ?Sized> Drop for Announced<'_, L> {
    fn drop(&mut self) {
        self.0.end(self.1);
    }
}

impl<'h, 'a, const N: usize, L: Holding + ?Sized> Held<'h, 'a, N, L> {
    pub(super) fn new(levels: &'h [&'a Level<L>; N], costs: &'h [u64; N]) -> Self {
        Self { levels, costs, answers: [None; N] }
    }

    /// Holds at one level; or tells why not, and whether that is a right denial.
    pub(super) fn hold(&mut self, index: usize, now: Nanos) -> Result<(), (Denied, bool)> {
        let (level, cost) = (self.levels[index], self.costs[index]);
        let watch = level.watch();
        level.begin(cost);
        let announced = Announced(level, cost);
        match level.limiter().hold_at(now, cost) {
            Ok(answer) => {
                self.answers[index] = Some(answer);
                core::mem::forget(announced);
                Ok(())
            }
            Err(denied) => Err((denied, denied.is_final() || watch.in_flight_but_for(cost) == 0)),
        }
    }

    /// All that is held counts as taken.
    pub(super) fn keep(self) -> [Admitted; N] {
        self.end(|level, cost, answer| level.keep(cost, answer))
    }

    /// All that is held stays held, and is no longer in flight: it may be held for long, and nobody waits for that to end.
    pub(super) fn hold_on(self) -> [Admitted; N] {
        self.end(|_, _, _| {})
    }

    fn end(mut self, end: impl Fn(&L, u64, &Admitted)) -> [Admitted; N] {
        let mut admitted = [Admitted::new(Remaining::Unlimited, Nanos::ZERO); N];
        for index in (0..N).rev() {
            if let Some(answer) = self.answers[index].take() {
                admitted[index] = answer;
                let _announced = Announced(self.levels[index], self.costs[index]);
                end(self.levels[index].limiter(), self.costs[index], &answer);
            }
        }
        admitted
    }
}

impl<const N: usize, L: Holding + ?Sized> Drop for Held<'_, '_, N, L> {
    fn drop(&mut self) {
        for index in 0..N {
            if let Some(answer) = self.answers[index].take() {
                let _announced = Announced(self.levels[index], self.costs[index]);
                self.levels[index].limiter().let_go(self.costs[index], &answer);
            }
        }
    }
}
