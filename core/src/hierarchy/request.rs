//! One request over all levels.

use core::fmt;

use super::held::Held;
use super::level::{Holding, Level};
use crate::decision::{Admitted, Denied, Inspection, Remaining};
use crate::{Limiter, Nanos};

/// Several levels of limits that a request has to pass: every one of them, or none.
///
/// Levels may be of different kinds, and each may be shared with other hierarchies: one `global`, one for each tenant, one
/// for each client. A hierarchy only refers to them, so it is made anew for each request, from the outermost level inwards.
/// Nothing is allocated. With the feature `alloc`, `OwnedHierarchy` keeps shares of its levels.
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
    /// The level's place, 0 being the outermost; the number of levels for what is no level: a last limiter, or a queue before the
    /// levels that is full or closed.
    pub level: usize,
    /// Its name; empty for what is no level.
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
        Ok(Self::distinct(levels))
    }

    /// `levels`, no two of which are the same.
    pub(super) const fn distinct(levels: [&'a Level<L>; N]) -> Self {
        Self { levels }
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
        self.acquire(now, costs, Last::Outermost).map(|(admitted, _)| admitted)
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
        self.acquire(now, costs, Last::Limiter(last, cost))
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn peek_at(&self, now: Nanos, costs: [u64; N]) -> Result<[Admitted; N], DeniedBy> {
        self.look(now, &costs, Last::Outermost).map(|(admitted, _)| admitted)
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
        let decided = self.decide(now, &costs, last);
        match (last, &decided) {
            (Last::Limiter(last, cost), Ok((_, at_last))) => last.tell(now, cost, &Ok(*at_last)),
            (Last::Limiter(last, cost), Err(refused)) if refused.level >= N => {
                last.tell(now, cost, &Err(refused.denied));
            }
            _ => {}
        }
        self.tell(now, costs, decided.as_ref().map(|(admitted, _)| admitted).map_err(|refused| *refused));
        decided
    }

    /// Decides, and tells no observer.
    pub(super) fn decide(
        &self,
        now: Nanos,
        costs: &[u64; N],
        last: Last<'_>,
    ) -> Result<([Admitted; N], Admitted), DeniedBy> {
        let mut attempt = 0;
        loop {
            self.look(now, costs, last)?;
            match self.take(now, costs, last) {
                Taken::All(admitted, at_last) => return Ok((admitted, at_last)),
                Taken::None(refused) => return Err(refused),
                Taken::LostTo(level) => level.give_way(attempt),
            }
            attempt = attempt.saturating_add(1);
        }
    }

    /// What every level would answer, from the innermost out. Takes nothing.
    pub(super) fn look(
        &self,
        now: Nanos,
        costs: &[u64; N],
        last: Last<'_>,
    ) -> Result<([Admitted; N], Admitted), DeniedBy> {
        let mut admitted = [Admitted::new(Remaining::Unlimited, now); N];
        let mut at_last = Admitted::new(Remaining::Unlimited, now);
        let mut refused: Option<DeniedBy> = None;
        if let Last::Limiter(last, cost) = last {
            match last.peek_at(now, cost) {
                Ok(answer) => at_last = answer,
                Err(denied) => refused = Some(DeniedBy { level: N, name: "", denied }),
            }
        }
        for (index, level) in self.levels.iter().enumerate().rev() {
            let answer = match index < last.outermost_held() {
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
        for (index, level) in self.levels.iter().enumerate().skip(last.outermost_held()).rev() {
            if let Err((denied, is_right)) = held.hold(index, now) {
                drop(held);
                let refused = DeniedBy { level: index, name: level.name(), denied };
                return if is_right { Taken::None(refused) } else { Taken::LostTo(level) };
            }
        }
        match last {
            Last::Nobody => {
                let admitted = held.hold_on();
                Taken::All(admitted, admitted[0])
            }
            Last::Limiter(last, cost) => match last.take_at(now, cost) {
                Ok(answer) => Taken::All(held.keep(), answer),
                Err(denied) => Taken::None(DeniedBy { level: N, name: "", denied }),
            },
            Last::Outermost => {
                let watch = self.levels[0].watch();
                match self.levels[0].limiter().take_at(now, costs[0]) {
                    Ok(answer) => {
                        let mut admitted = held.keep();
                        admitted[0] = answer;
                        Taken::All(admitted, answer)
                    }
                    Err(denied) => {
                        let is_right = denied.is_final() || watch.in_flight() == 0;
                        drop(held);
                        let refused = DeniedBy { level: 0, name: self.levels[0].name(), denied };
                        if is_right { Taken::None(refused) } else { Taken::LostTo(self.levels[0]) }
                    }
                }
            }
        }
    }
}

impl DeniedBy {
    /// The denial of a queue or limiter of your own that stands before the levels, or of one of them.
    #[inline]
    pub const fn new(level: usize, name: &'static str, denied: Denied) -> Self {
        Self { level, name, denied }
    }

    /// Whether this refusal outlasts `other`: for ever, for a time that no clock knows, for longer.
    fn lasts_longer_than(&self, other: &Self) -> bool {
        let rank = |denied: &Denied| (denied.is_final(), denied.retry_after().is_none(), denied.retry_after());
        rank(&self.denied) > rank(&other.denied)
    }
}

/// What is asked last, when all that are to hold do: that it admits is what admits the request.
#[derive(Clone, Copy)]
pub(super) enum Last<'a> {
    /// The outermost level, which takes and so need not hold.
    Outermost,
    /// Another limiter, and the cost there.
    Limiter(&'a dyn Limiter, u64),
    /// Nobody: that all hold is what admits it, and they go on holding.
    Nobody,
}

impl Last<'_> {
    /// The outermost level that has to hold.
    fn outermost_held(self) -> usize {
        usize::from(matches!(self, Self::Outermost))
    }
}

enum Taken<'a, const N: usize, L: ?Sized> {
    All([Admitted; N], Admitted),
    None(DeniedBy),
    /// A hold that may come to nothing was in the way.
    LostTo(&'a Level<L>),
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

impl From<DeniedBy> for Denied {
    fn from(by: DeniedBy) -> Self {
        by.denied
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
