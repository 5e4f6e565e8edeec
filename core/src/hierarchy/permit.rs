//! A request over all levels that also takes a permit.

use core::cell::Cell;

use super::level::Holding;
use super::request::{DeniedBy, Hierarchy, Last};
use crate::concurrency::{Holder, Permit, Taken};
use crate::decision::{Admitted, Decision, Inspection, Remaining};
use crate::{Limiter, Nanos};

impl<const N: usize, L: Holding + ?Sized> Hierarchy<'_, N, L> {
    /// Takes `costs[i]` at each level i, all at the reading `now`, and a permit of `cost` from `in_flight`; or nothing anywhere.
    ///
    /// `in_flight` is a reference to a [`ConcurrencyLimit`](crate::ConcurrencyLimit) or, for a permit that can go to another thread or
    /// task, an `Arc` of one. It is asked last, and that it has room is what admits the request: so a permit never was out for a
    /// request that is denied, and nobody else is refused because of one. The permit is the only thing to be given back; it is
    /// when it is dropped.
    ///
    /// Its observer is told after those of the levels. A panic there, or in theirs, reaches the caller: the levels' decisions
    /// stand, and the permit is free again.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at); the level is N if it was `in_flight` that refused.
    ///
    /// ```
    /// use sluicegate_core::{AdjustableBucket, ConcurrencyLimit, Denied, Hierarchy, Level, ManualClock, Nanos, quota};
    ///
    /// let calls = Level::new("calls", AdjustableBucket::with_clock(quota!("100/1s"), ManualClock::new()));
    /// let in_flight = ConcurrencyLimit::new(1);
    /// let hierarchy = Hierarchy::new([&calls])?;
    ///
    /// let (_, permit) = hierarchy.try_acquire_permit_at(Nanos::ZERO, [1], &in_flight, 1)?;
    /// let refused = hierarchy.try_acquire_permit_at(Nanos::ZERO, [1], &in_flight, 1).unwrap_err();
    /// assert_eq!((refused.level, refused.denied), (1, Denied::ConcurrencyLimited));
    /// assert_eq!(calls.limiter().inspect_at(Nanos::ZERO).level, 99);
    /// permit.success();
    /// assert_eq!(in_flight.in_use(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_acquire_permit_at<H: Holder>(
        &self,
        now: Nanos,
        costs: [u64; N],
        in_flight: H,
        cost: u64,
    ) -> Result<([Admitted; N], Permit<H>), DeniedBy> {
        let (admitted, (cost, mark)) = {
            let last = InFlight { holder: &in_flight, taken: Cell::new(None) };
            let (admitted, _) = self.acquire(now, costs, Last::Limiter(&last, cost))?;
            // Whoever is admitted was admitted by it.
            let Some(taken) = last.taken.take() else { unreachable!() };
            (admitted, taken.report())
        };
        Ok((admitted, Permit::new(in_flight, cost, mark)))
    }
}

/// The limit of what is in flight, as the last limiter of one request; it keeps what it gave until the request is through, and
/// gives it back if it does not get there.
struct InFlight<'p, H: Holder> {
    holder: &'p H,
    taken: Cell<Option<Taken<'p, H::Observer>>>,
}

impl<H: Holder> Limiter for InFlight<'_, H> {
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        let taken = self.holder.limit().take_silently(cost)?;
        let answer = Admitted::new(Remaining::Exactly(taken.usage().free().into()), now);
        self.taken.set(Some(taken));
        Ok(answer)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        let usage = self.holder.limit().peek(cost)?;
        Ok(Admitted::new(Remaining::Exactly(usage.free().into()), now))
    }

    fn inspect_at(&self, _now: Nanos) -> Inspection {
        self.holder.limit().inspect()
    }

    /// An admission is told when there is a permit to carry the observer's mark.
    fn tell(&self, _now: Nanos, cost: u64, decision: &Decision) {
        if let Err(denied) = decision {
            self.holder.limit().tell_denied(cost, denied);
        }
    }
}
