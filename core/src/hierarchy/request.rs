//! One request over all levels.

use core::fmt;

use super::level::{Holding, Level};
use crate::decision::{Admitted, Denied, Inspection, Remaining};
use crate::{Limiter, Nanos};

/// Several levels of limits that a request has to pass: every one of them, or none.
///
/// Levels may be of different kinds, and each may be shared with other hierarchies: one `global`, one for each tenant, one
/// for each client. A hierarchy only refers to them, so it is made anew for each request, from the outermost level inwards.
/// Nothing is allocated.
///
/// # Guarantees
///
/// - A request takes its cost at every level, or nothing at any, also when the caller's code panics; costs may differ per
///   level. No level ever admits more than its law allows, whoever races.
/// - The refusing level is named. Where several refuse, it is one that never will admit the request, or else the one with the
///   longest wait, so that the hint holds for all levels.
/// - A denial is right: at an instant within the call that level had too little for the request.
/// - What is denied costs the other levels nothing, not even a write. Observers are told only of decisions that stand.
///
/// # What remains possible
///
/// - A request that lacks no more than what others hold at that moment looks again. On threads that may last for a time slice of a
///   holder that was suspended, and longer where many keep holding while refill keeps up with them. An interrupt handler must
///   not ask a level that the code it interrupts asks.
/// - Who asks a level's limiter directly, past the level, does not look again, and may be denied what a hold that comes to nothing
///   hides for some tens of instructions.
///
/// # Complexity
///
/// O(levels) for each look. An admission writes once at the outermost level, and four times at each other.
///
/// # Example
///
/// ```
/// use sluicegate_core::{AdjustableBucket, Hierarchy, Level, ManualClock, Nanos, quota};
///
/// let global = Level::new("global", AdjustableBucket::with_clock(quota!("1000/1s burst 10000"), ManualClock::new()));
/// let tenant = Level::new("tenant", AdjustableBucket::with_clock(quota!("5/1s"), ManualClock::new()));
/// let now = Nanos::ZERO;
///
/// let hierarchy = Hierarchy::new([&global, &tenant])?;
/// let [at_global, at_tenant] = hierarchy.try_acquire_at(now, [1, 5])?;
/// assert_eq!(at_global.remaining.exactly(), Some(9_999));
/// assert_eq!(at_tenant.remaining.exactly(), Some(0));
///
/// let denied = hierarchy.try_acquire_at(now, [1, 1]).unwrap_err();
/// assert_eq!((denied.level, denied.name), (1, "tenant"));
/// assert_eq!(global.limiter().inspect_at(now).level, 9_999);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Hierarchy<'a, const N: usize, L: Holding + ?Sized + 'a = dyn Holding + Send + Sync + 'a> {
    levels: [&'a Level<L>; N],
}

// Written out, because a derive would ask it of the levels.
impl<const N: usize, L: Holding + ?Sized> Clone for Hierarchy<'_, N, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<const N: usize, L: Holding + ?Sized> Copy for Hierarchy<'_, N, L> {}

/// Which level denied a request, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DeniedBy {
    /// The level's place, 0 being the outermost; the number of levels for a last limiter that is none.
    pub level: usize,
    /// Its name; empty for a last limiter that is no level.
    pub name: &'static str,
    /// Why.
    pub denied: Denied,
}

/// The same level was given twice, and would have had to hold against itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DuplicateLevel {
    /// Where it is.
    pub first: usize,
    /// Where it is again.
    pub second: usize,
    /// Its name.
    pub name: &'static str,
}

impl<'a, const N: usize> Hierarchy<'a, N> {
    /// `levels` from the outermost inwards; at least one, which the compiler checks. Two levels must not be the same limiter behind
    /// two pointers, which nobody notices: a request then holds against itself, and is denied what only both together lack.
    ///
    /// They can be of different kinds, and shared by any threads: so the hierarchy can go to another thread, and be held
    /// across an `await` there.
    ///
    /// # Errors
    /// [`DuplicateLevel`].
    pub fn new(levels: [&'a Level<dyn Holding + Send + Sync + 'a>; N]) -> Result<Self, DuplicateLevel> {
        Self::of(levels)
    }
}

impl<'a, const N: usize, L: Holding + ?Sized> Hierarchy<'a, N, L> {
    /// The same for levels of one type. `dyn Holding` is such a type too: for limiters of your own that one thread keeps to
    /// itself, behind a `Cell` perhaps.
    ///
    /// ```
    /// use sluicegate_core::{AdjustableBucket, Hierarchy, Holding, Level, ManualClock, Nanos, quota};
    ///
    /// let [outer, inner] =
    ///     ["outer", "inner"].map(|name| Level::new(name, AdjustableBucket::with_clock(quota!("5/1s"), ManualClock::new())));
    /// assert!(Hierarchy::of([&outer, &inner])?.try_acquire_at(Nanos::ZERO, [1, 1]).is_ok());
    ///
    /// let kept_here: [&Level<dyn Holding>; 2] = [&outer, &inner];
    /// assert!(Hierarchy::of(kept_here)?.try_acquire_at(Nanos::ZERO, [1, 1]).is_ok());
    /// # Ok::<(), sluicegate_core::DuplicateLevel>(())
    /// ```
    ///
    /// # Errors
    /// [`DuplicateLevel`].
    pub fn of(levels: [&'a Level<L>; N]) -> Result<Self, DuplicateLevel> {
        const { assert!(N > 0, "a hierarchy needs at least one level") };
        for (second, level) in levels.iter().enumerate() {
            let is_same = |other: &&Level<L>| core::ptr::addr_eq(*other, *level);
            if let Some(first) = levels[..second].iter().position(is_same) {
                return Err(DuplicateLevel { first, second, name: level.name() });
            }
        }
        Ok(Self { levels })
    }

    /// The levels.
    pub const fn levels(&self) -> &[&'a Level<L>; N] {
        &self.levels
    }

    /// Takes `costs[i]` at each level i, all at the reading `now`; or nothing at any. The answer tells what each level has
    /// left.
    ///
    /// # Errors
    /// [`DeniedBy`] names the level that refused.
    pub fn try_acquire_at(&self, now: Nanos, costs: [u64; N]) -> Result<[Admitted; N], DeniedBy> {
        self.acquire(now, costs, None).map(|(admitted, _)| admitted)
    }

    /// The same, with a last limiter further in that need not be able to hold, such as a
    /// [`TokenBucket`](crate::TokenBucket): it is asked last, and so never has to give anything back.
    /// It must not be one that waits for other callers' holds. (A [`Level`] is no [`Limiter`] for that reason.)
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at); the level is N if it was the last limiter that refused.
    pub fn try_acquire_with_at(
        &self,
        now: Nanos,
        costs: [u64; N],
        last: &dyn Limiter,
        cost: u64,
    ) -> Result<([Admitted; N], Admitted), DeniedBy> {
        self.acquire(now, costs, Some((last, cost)))
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn peek_at(&self, now: Nanos, costs: [u64; N]) -> Result<[Admitted; N], DeniedBy> {
        self.look(now, &costs, None).map(|(admitted, _)| admitted)
    }

    /// What each level holds at `now`.
    pub fn inspect_at(&self, now: Nanos) -> [Inspection; N] {
        self.levels.map(|level| level.limiter().inspect_at(now))
    }

    pub(super) fn acquire(
        &self,
        now: Nanos,
        costs: [u64; N],
        last: Last<'_>,
    ) -> Result<([Admitted; N], Admitted), DeniedBy> {
        let mut attempt = 0;
        let decided = loop {
            if let Err(refused) = self.look(now, &costs, last) {
                break Err(refused);
            }
            match self.take(now, &costs, last) {
                Taken::All(admitted, at_last) => break Ok((admitted, at_last)),
                Taken::None(refused) => break Err(refused),
                Taken::LostTo(level) => level.give_way(attempt),
            }
            attempt = attempt.saturating_add(1);
        };
        match &decided {
            Ok((admitted, at_last)) => {
                if let Some((last, cost)) = last {
                    last.tell(now, cost, &Ok(*at_last));
                }
                for ((level, cost), admitted) in self.levels.iter().zip(costs).zip(admitted) {
                    level.limiter().tell(now, cost, &Ok(*admitted));
                }
            }
            Err(refused) => {
                let decision = Err(refused.denied);
                match (self.levels.get(refused.level), costs.get(refused.level), last) {
                    (Some(level), Some(cost), _) => level.limiter().tell(now, *cost, &decision),
                    (_, _, Some((last, cost))) => last.tell(now, cost, &decision),
                    _ => {}
                }
            }
        }
        decided
    }

    /// What every level would answer, from the innermost out. Takes nothing.
    fn look(&self, now: Nanos, costs: &[u64; N], last: Last<'_>) -> Result<([Admitted; N], Admitted), DeniedBy> {
        let mut admitted = [Admitted::new(Remaining::Unlimited, now); N];
        let mut at_last = Admitted::new(Remaining::Unlimited, now);
        let mut refused: Option<DeniedBy> = None;
        if let Some((last, cost)) = last {
            match last.peek_at(now, cost) {
                Ok(answer) => at_last = answer,
                Err(denied) => refused = Some(DeniedBy { level: N, name: "", denied }),
            }
        }
        for (index, level) in self.levels.iter().enumerate().rev() {
            let answer = match index < outermost_held(last) {
                true => level.peek_at(now, costs[index]),
                false => level.peek_hold_at(now, costs[index]),
            };
            match answer {
                Ok(answer) => admitted[index] = answer,
                Err(denied) => {
                    let by = DeniedBy { level: index, name: level.name(), denied };
                    if refused.is_none_or(|known| by.lasts_longer_than(&known)) {
                        refused = Some(by);
                    }
                }
            }
        }
        match refused {
            Some(refused) => Err(refused),
            None => Ok((admitted, at_last)),
        }
    }

    /// Takes at every level, if none has run short since they were looked at.
    fn take(&self, now: Nanos, costs: &[u64; N], last: Last<'_>) -> Taken<'a, N, L> {
        let mut held = Held::new(&self.levels, costs);
        for (index, level) in self.levels.iter().enumerate().skip(outermost_held(last)).rev() {
            if let Err((denied, is_right)) = held.hold(index, now) {
                drop(held);
                let refused = DeniedBy { level: index, name: level.name(), denied };
                return if is_right { Taken::None(refused) } else { Taken::LostTo(level) };
            }
        }
        let (at_last, is_last_level) = match last {
            Some((last, cost)) => (last.take_at(now, cost), false),
            None => {
                let watch = self.levels[0].watch();
                let decision = self.levels[0].limiter().take_at(now, costs[0]);
                if let Err(denied) = decision {
                    let is_right = denied.is_final() || watch.in_flight() == 0;
                    drop(held);
                    let refused = DeniedBy { level: 0, name: self.levels[0].name(), denied };
                    return if is_right { Taken::None(refused) } else { Taken::LostTo(self.levels[0]) };
                }
                (decision, true)
            }
        };
        match at_last {
            Ok(answer) => {
                let mut admitted = held.keep();
                if is_last_level {
                    admitted[0] = answer;
                }
                Taken::All(admitted, answer)
            }
            Err(denied) => Taken::None(DeniedBy { level: N, name: "", denied }),
        }
    }
}

impl DeniedBy {
    /// Whether this refusal outlasts `other`: for ever, for a time that no clock knows, for longer.
    fn lasts_longer_than(&self, other: &Self) -> bool {
        let rank = |denied: &Denied| (denied.is_final(), denied.retry_after().is_none(), denied.retry_after());
        rank(&self.denied) > rank(&other.denied)
    }
}

/// A limiter that is asked last, and the cost there.
pub(super) type Last<'a> = Option<(&'a dyn Limiter, u64)>;

/// The outermost level that has to hold: what is asked last need not, because that it admits is what admits the request.
fn outermost_held(last: Last<'_>) -> usize {
    if last.is_some() { 0 } else { 1 }
}

enum Taken<'a, const N: usize, L: ?Sized> {
    All([Admitted; N], Admitted),
    None(DeniedBy),
    /// A hold that may come to nothing was in the way.
    LostTo(&'a Level<L>),
}

/// What is held so far, from the innermost level out. Dropped, also by a panic, it lets go of all.
struct Held<'h, 'a, const N: usize, L: Holding + ?Sized> {
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
    fn new(levels: &'h [&'a Level<L>; N], costs: &'h [u64; N]) -> Self {
        Self { levels, costs, answers: [None; N] }
    }

    /// Holds at one level; or tells why not, and whether that is a right denial.
    fn hold(&mut self, index: usize, now: Nanos) -> Result<(), (Denied, bool)> {
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
    fn keep(mut self) -> [Admitted; N] {
        let mut admitted = [Admitted::new(Remaining::Unlimited, Nanos::ZERO); N];
        for index in (0..N).rev() {
            if let Some(answer) = self.answers[index].take() {
                admitted[index] = answer;
                let _announced = Announced(self.levels[index], self.costs[index]);
                self.levels[index].limiter().keep(self.costs[index], &answer);
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

impl<const N: usize, L: Holding + ?Sized> fmt::Debug for Hierarchy<'_, N, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.levels.iter().map(|level| level.name())).finish()
    }
}

impl fmt::Display for DeniedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name {
            "" => write!(f, "level {}: {}", self.level, self.denied),
            name => write!(f, "{name}: {}", self.denied),
        }
    }
}

impl core::error::Error for DeniedBy {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.denied)
    }
}

impl fmt::Display for DuplicateLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "level {} ({}) is level {} again: a request can hold each level once",
            self.second, self.name, self.first
        )
    }
}

impl core::error::Error for DuplicateLevel {}
