//! Holding all levels for a request of which it is not known yet whether it wants what it asked for.

use super::level::Holding;
use super::request::{DeniedBy, Hierarchy, Last};
use crate::Nanos;
use crate::decision::Admitted;

/// For queues of requests, which let one go that may have left by then. Each of these asks every level, and tells no observer but
/// where it says so.
impl<const N: usize, L: Holding + ?Sized> Hierarchy<'_, N, L> {
    /// Holds `costs[i]` at each level i, the outermost too, all at the reading `now`; or nothing at any.
    ///
    /// Each hold that is `Ok` is followed by exactly one of [`keep`](Self::keep) and [`let_go`](Self::let_go), with the same costs and
    /// its answer, however much later and in whatever order. One that is forgotten holds for as long as the levels live.
    ///
    /// Once all levels hold, the request counts as admitted: it is no hold in flight, which denials of others wait for, because its end
    /// may be far away. What it holds is denied to others as what is taken is, and comes back if it is let go.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at). An [`AdjustableBucket`](crate::AdjustableBucket) of which others hold so much that
    /// only the end of a hold can help says [`Denied::ConcurrencyLimited`](crate::Denied::ConcurrencyLimited).
    ///
    /// ```
    /// use sluicegate_core::{AdjustableBucket, Hierarchy, Level, ManualClock, Nanos, quota};
    ///
    /// let [outer, inner] =
    ///     ["outer", "inner"].map(|name| Level::new(name, AdjustableBucket::with_clock(quota!("5/1s"), ManualClock::new())));
    /// let hierarchy = Hierarchy::new([&outer, &inner])?;
    /// let now = Nanos::ZERO;
    /// let level = || hierarchy.inspect_at(now).map(|inspection| inspection.level);
    ///
    /// let held = hierarchy.hold_at(now, [1, 3])?;
    /// assert_eq!(level(), [4, 2]);
    /// hierarchy.let_go([1, 3], &held);
    /// assert_eq!(level(), [5, 5]);
    ///
    /// let held = hierarchy.hold_at(now, [1, 3])?;
    /// hierarchy.keep([1, 3], &held);
    /// assert_eq!(level(), [4, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hold_at(&self, now: Nanos, costs: [u64; N]) -> Result<[Admitted; N], DeniedBy> {
        self.decide(now, &costs, Last::Nobody).map(|(held, _)| held)
    }

    /// What [`hold_at`](Self::hold_at) would answer, holding nothing.
    ///
    /// # Errors
    /// As `hold_at`.
    pub fn peek_hold_at(&self, now: Nanos, costs: [u64; N]) -> Result<[Admitted; N], DeniedBy> {
        self.look(now, &costs, Last::Nobody).map(|(held, _)| held)
    }

    /// What is held counts as taken.
    pub fn keep(&self, costs: [u64; N], held: &[Admitted; N]) {
        for ((level, cost), held) in self.levels().iter().zip(costs).zip(held).rev() {
            level.limiter().keep(cost, held);
        }
    }

    /// What is held is let go: every level is as if it had never been held.
    pub fn let_go(&self, costs: [u64; N], held: &[Admitted; N]) {
        for ((level, cost), held) in self.levels().iter().zip(costs).zip(held) {
            level.limiter().let_go(cost, held);
        }
    }

    /// As [`try_acquire_at`](Self::try_acquire_at), telling nobody: [`tell`](Self::tell) does, once the decision stands.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn take_at(&self, now: Nanos, costs: [u64; N]) -> Result<[Admitted; N], DeniedBy> {
        self.decide(now, &costs, Last::Outermost).map(|(admitted, _)| admitted)
    }

    /// Tells the observers of a decision that stands: of an admission at every level, of a denial at the one that refused.
    pub fn tell(&self, now: Nanos, costs: [u64; N], decision: Result<&[Admitted; N], DeniedBy>) {
        match decision {
            Ok(admitted) => {
                for ((level, cost), admitted) in self.levels().iter().zip(costs).zip(admitted) {
                    level.limiter().tell(now, cost, &Ok(*admitted));
                }
            }
            Err(refused) => {
                if let (Some(level), Some(cost)) = (self.levels().get(refused.level), costs.get(refused.level)) {
                    level.limiter().tell(now, *cost, &Err(refused.denied));
                }
            }
        }
    }

    /// Gives back what was admitted, or held and kept, and was not used: at each level as its limiter's refund, whose observer is
    /// told of that.
    ///
    /// Levels get it one after another, from the innermost out. If an observer panics, those further out get nothing.
    pub fn give_back(&self, costs: [u64; N], admitted: &[Admitted; N]) {
        for ((level, cost), admitted) in self.levels().iter().zip(costs).zip(admitted).rev() {
            level.limiter().give_back(cost, admitted);
        }
    }

    /// A reading before which `totals[i]` cannot have been taken from each level i, from `now` on, in however many requests that fit
    /// one by one: the latest of the levels'. `None` where only a release or a change of a limit could tell. See
    /// [`Limiter::earliest_at`](crate::Limiter::earliest_at).
    pub fn earliest_at(&self, now: Nanos, totals: [u128; N]) -> Option<Nanos> {
        self.latest_at(now, totals).map(|(_, reading)| reading)
    }

    /// The level that is the last of which `totals[i]` can have been taken, and [`earliest_at`](Self::earliest_at); the outermost of
    /// several.
    pub fn latest_at(&self, now: Nanos, totals: [u128; N]) -> Option<(usize, Nanos)> {
        let mut latest = (0, now);
        for (index, (level, total)) in self.levels().iter().zip(totals).enumerate() {
            let reading = level.limiter().earliest_at(now, total)?;
            if reading > latest.1 {
                latest = (index, reading);
            }
        }
        Some(latest)
    }
}
