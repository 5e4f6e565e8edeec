//! One limit among several.

use core::fmt;

use crate::adjustable_bucket::AdjustableBucket;
use crate::decision::{Admitted, Decision, Denied, Remaining};
use crate::observer::Observer;
use crate::sharded_window::{ShardedWindow, Shards};
use crate::sliding_counter::SlidingCounter;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Limiter, Nanos, ShardId};

/// A limiter that can hold a cost until it is known whether all other levels have theirs.
///
/// # Which limiters can be levels
///
/// | limiter | as a level | why |
/// |---|---|---|
/// | [`AdjustableBucket`] | yes | what is held is not consumed, so letting go leaves no trace |
/// | [`ShardedWindow`], [`SlidingCounter`], `SharedSlidingLog` | yes | what is given back at the reading it was taken at is exact |
/// | [`TokenBucket`](crate::TokenBucket) | only as the last | refill may have replaced what comes back, and there is no place in its word to hold it |
/// | [`ConcurrencyLimit`](crate::ConcurrencyLimit) | only as the last | what is taken needs a [`Permit`](crate::Permit): see [`Hierarchy::try_acquire_permit_at`](super::Hierarchy::try_acquire_permit_at) |
/// | [`LeakyBucket`](crate::LeakyBucket) | no | its answer is a departure, and a slot that others queue behind cannot be given up |
///
/// The last limiter is asked when all levels hold, so it never gives anything back: see
/// [`Hierarchy::try_acquire_with_at`](super::Hierarchy::try_acquire_with_at). A reference to a limiter that can be a level, and with
/// the feature `alloc` an `Arc` of one, can be one too; requests that are to wait for one another's holds have to share the
/// [`Level`], not only the limiter in it.
///
/// # Contract
///
/// - What `hold_at` answered `Ok` for MUST be there when `keep` is called, and nobody else may be given it meanwhile.
/// - `let_go` MUST leave the limiter as if it had never been held, however long it was and whatever else happened
///   meanwhile, but that the reading may count as seen. (A token bucket's refund does not do that, which is why [`TokenBucket`](crate::TokenBucket) is no such
///   limiter: what was taken may have been replaced by refill before it comes back.)
/// - What `hold_at` writes MUST be released, and what `peek_at`, `take_at` and `hold_at` read MUST be acquired.
/// - Each `hold_at` that is `Ok` is followed by exactly one of `keep` and `let_go`, with its answer.
/// - `keep` and `let_go` MUST NOT panic: the request would end as admitted at some levels and as denied at others.
/// - `give_back` follows a `keep`, or a `take_at` that was `Ok`, with its answer, and at most once.
/// - None of them may tell an observer, or anybody else; `tell` does. (But `give_back` tells of the refund.)
pub trait Holding: Limiter {
    /// Holds `cost` at `now`, or nothing.
    ///
    /// # Errors
    /// As [`Limiter::try_acquire_at`].
    fn hold_at(&self, now: Nanos, cost: u64) -> Decision;

    /// What [`hold_at`](Self::hold_at) would answer, holding nothing. For a limiter that can hold whatever it can give, that
    /// is what [`Limiter::peek_at`] answers, as it is written here.
    ///
    /// # Errors
    /// As `hold_at`.
    #[inline]
    fn peek_hold_at(&self, now: Nanos, cost: u64) -> Decision {
        self.peek_at(now, cost)
    }

    /// What is held counts as taken.
    fn keep(&self, cost: u64, held: &Admitted);

    /// What is held is let go.
    fn let_go(&self, cost: u64, held: &Admitted);

    /// What was taken, or held and kept, is given back because it was not used: the limiter's refund.
    fn give_back(&self, cost: u64, taken: &Admitted);
}

/// A limiter as a level of a [`Hierarchy`](super::Hierarchy), with a name that a denial can tell.
///
/// A denial waits for holds in flight, so an interrupt handler must not ask a level that the code it interrupts asks.
///
/// Ask a level, not its limiter, for requests that concern this limit alone: see
/// [`try_acquire_at`](Self::try_acquire_at). What the limiter itself is asked for besides, such as a
/// [`reserve`](AdjustableBucket::reserve) from `limiter()`, is no hold in flight: a level counts it as taken and waits for nothing, because
/// its end, by whatever the caller does meanwhile, is not some tens of instructions away. Nor is what a queue holds at all levels:
/// see [`Hierarchy::hold_at`](super::Hierarchy::hold_at).
///
/// ```
/// use sluicegate_core::{AdjustableBucket, Level, ManualClock, Nanos, quota};
///
/// let global = Level::new("global", AdjustableBucket::with_clock(quota!("1000/1s"), ManualClock::new()));
/// global.try_acquire_at(Nanos::ZERO, 1)?;
/// assert_eq!(global.limiter().inspect_at(Nanos::ZERO).level, 999);
/// # Ok::<(), sluicegate_core::Denied>(())
/// ```
pub struct Level<L: ?Sized> {
    /// What all holds asked for that were begun, and that have ended: each counted up to `UNKNOWN`, modulo 2^64. What is held
    /// at an instant is at most what was begun after it but for what had ended before it.
    begun: AtomicU64,
    ended: AtomicU64,
    name: &'static str,
    give_way: fn(u32),
    limiter: L,
}

impl<L> Level<L> {
    const_unless_loom! {
        /// `limiter` as a level. Who has to look again gives the processor a hint meanwhile.
        pub fn new(name: &'static str, limiter: L) -> Self {
            Self::with_give_way(name, limiter, spin)
        }

        /// The same, where a caller that has to look again calls `give_way` with the number of looks so far: on threads, yield
        /// to the operating system.
        pub fn with_give_way(name: &'static str, limiter: L, give_way: fn(u32)) -> Self {
            Self { begun: AtomicU64::new(0), ended: AtomicU64::new(0), name, give_way, limiter }
        }
    }

    /// Gives the limiter back.
    pub fn into_inner(self) -> L {
        self.limiter
    }
}

impl<L: ?Sized> Level<L> {
    /// The name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The limiter.
    pub const fn limiter(&self) -> &L {
        &self.limiter
    }

    pub(super) fn give_way(&self, attempt: u32) {
        (self.give_way)(attempt);
    }

    /// Begins to watch for holds of other requests.
    #[inline]
    pub(super) fn watch(&self) -> Watch<'_> {
        // Acquire, paired with the release in `end`: who sees that a hold ended sees what it let go.
        Watch { ended: self.ended.load(Ordering::Acquire), begun: &self.begun }
    }

    /// Announces a hold. It comes before the hold itself.
    #[inline]
    pub(super) fn begin(&self, cost: u64) {
        // Relaxed: the hold is written after this and released, so who sees the hold sees this.
        self.begun.fetch_add(cost.min(UNKNOWN), Ordering::Relaxed);
    }

    /// Announces that a hold ended. It comes after that.
    #[inline]
    pub(super) fn end(&self, cost: u64) {
        // Release, as said in `watch`.
        self.ended.fetch_add(cost.min(UNKNOWN), Ordering::Release);
    }
}

impl<L: Holding + ?Sized> Level<L> {
    /// Takes `cost` at `now` from this level alone, or nothing.
    ///
    /// It looks again as long as a request over several levels holds what is missing here and may yet let go of it: so a
    /// denial is right at an instant within this call. Its [`retry_after`](Denied::retry_after) takes what is in flight for let
    /// go: it is right if so, and if some is kept, that is what others took meanwhile. (At a sliding counter or log, whose held
    /// units age away too, it may be early, and the request is then denied once more.)
    ///
    /// # Errors
    /// As the limiter's.
    pub fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        let decision =
            self.settled(cost, |cost| self.limiter.take_at(now, cost), |cost| self.limiter.peek_at(now, cost));
        self.limiter.tell(now, cost, &decision);
        decision
    }

    /// What [`try_acquire_at`](Self::try_acquire_at) would answer, taking nothing and telling nobody.
    ///
    /// # Errors
    /// As `try_acquire_at`.
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        let peek = |cost| self.limiter.peek_at(now, cost);
        self.settled(cost, peek, peek)
    }

    /// The same for a hold.
    pub(super) fn peek_hold_at(&self, now: Nanos, cost: u64) -> Decision {
        let peek = |cost| self.limiter.peek_hold_at(now, cost);
        self.settled(cost, peek, peek)
    }

    fn settled(&self, cost: u64, decide: impl Fn(u64) -> Decision, peek: impl Fn(u64) -> Decision) -> Decision {
        let mut attempt = 0;
        loop {
            let watch = self.watch();
            let denied = match decide(cost) {
                Err(denied) if !denied.is_final() => denied,
                decision => return decision,
            };
            if let Some(denied) = right_denial(cost, denied, &watch, &peek) {
                return Err(denied);
            }
            self.give_way(attempt);
            attempt = attempt.saturating_add(1);
        }
    }
}

/// The denial of `cost` that is right whatever becomes of the holds in flight, if `denied` leads to one.
fn right_denial(cost: u64, denied: Denied, watch: &Watch<'_>, peek: &impl Fn(u64) -> Decision) -> Option<Denied> {
    let in_flight = watch.in_flight();
    if in_flight == 0 {
        return Some(denied);
    }
    if in_flight >= cost || in_flight >= UNKNOWN {
        return None;
    }
    // If all of them were let go there would be so much more. What is denied even so is denied for the same reason, and comes
    // as soon as the rest does.
    let still = peek(cost - in_flight).err()?;
    let is_same = matches!(
        (denied, still),
        (Denied::RateLimited { .. }, Denied::RateLimited { .. })
            | (Denied::ConcurrencyLimited, Denied::ConcurrencyLimited)
    );
    // And no more than that was in flight at that instant, either.
    (is_same && watch.in_flight() <= in_flight).then_some(still)
}

impl<L: fmt::Debug + ?Sized> fmt::Debug for Level<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Level").field("name", &self.name).field("limiter", &&self.limiter).finish_non_exhaustive()
    }
}

/// Watches a level's holds from an instant on.
pub(super) struct Watch<'l> {
    ended: u64,
    begun: &'l AtomicU64,
}

impl Watch<'_> {
    /// The most that requests can have held at any instant since the watch began; `UNKNOWN` or more is no number.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        // Relaxed: who saw a hold, by an acquire, sees that it was begun.
        self.begun.load(Ordering::Relaxed).wrapping_sub(self.ended)
    }

    /// The same, but for a hold of the caller's own of `cost` that it began meanwhile.
    #[inline]
    pub(super) fn in_flight_but_for(&self, cost: u64) -> u64 {
        self.in_flight().wrapping_sub(cost.min(UNKNOWN))
    }
}

impl<C, O: Observer> Holding for AdjustableBucket<C, O> {
    #[inline]
    fn hold_at(&self, now: Nanos, cost: u64) -> Decision {
        self.hold_silently(now, cost)
    }

    #[inline]
    fn peek_hold_at(&self, now: Nanos, cost: u64) -> Decision {
        self.peek_hold(now, cost)
    }

    #[inline]
    fn keep(&self, cost: u64, held: &Admitted) {
        // Without a limit nothing was held.
        if held.remaining != Remaining::Unlimited {
            let _ = self.settle_silently(held.at, cost, cost);
        }
    }

    #[inline]
    fn let_go(&self, cost: u64, held: &Admitted) {
        if held.remaining != Remaining::Unlimited {
            self.let_go_silently(cost);
        }
    }

    fn give_back(&self, cost: u64, taken: &Admitted) {
        if taken.remaining != Remaining::Unlimited {
            self.refund(cost);
        }
    }
}

/// What is taken in a window counts there whether it is taken or held; and giving it back within its window is exact.
impl<S: Shards, C, I: ShardId, O: Observer> Holding for ShardedWindow<S, C, I, O> {
    #[inline]
    fn hold_at(&self, now: Nanos, cost: u64) -> Decision {
        self.take_silently(now, cost)
    }

    #[inline]
    fn keep(&self, _cost: u64, _held: &Admitted) {}

    #[inline]
    fn let_go(&self, cost: u64, held: &Admitted) {
        let _ = self.refund_silently(held.at, cost);
    }

    fn give_back(&self, cost: u64, taken: &Admitted) {
        self.refund(taken.at, cost);
    }
}

/// What is taken counts in its window, and as the one before in the next, whether it is taken or held; and giving it back to
/// that window is exact. What is gone with its window cannot be let go, and need not be.
impl<C, O: Observer> Holding for SlidingCounter<C, O> {
    #[inline]
    fn hold_at(&self, now: Nanos, cost: u64) -> Decision {
        self.take_at(now, cost)
    }

    #[inline]
    fn keep(&self, _cost: u64, _held: &Admitted) {}

    #[inline]
    fn let_go(&self, cost: u64, held: &Admitted) {
        let _ = self.refund_silently(held.at, cost);
    }

    fn give_back(&self, cost: u64, taken: &Admitted) {
        self.refund(taken.at, cost);
    }
}

macro_rules! forward {
    ($limiter:ty) => {
        impl<L: Holding + ?Sized> Holding for $limiter {
            #[inline]
            fn hold_at(&self, now: Nanos, cost: u64) -> Decision {
                (**self).hold_at(now, cost)
            }

            #[inline]
            fn peek_hold_at(&self, now: Nanos, cost: u64) -> Decision {
                (**self).peek_hold_at(now, cost)
            }

            #[inline]
            fn keep(&self, cost: u64, held: &Admitted) {
                (**self).keep(cost, held);
            }

            #[inline]
            fn let_go(&self, cost: u64, held: &Admitted) {
                (**self).let_go(cost, held);
            }

            fn give_back(&self, cost: u64, taken: &Admitted) {
                (**self).give_back(cost, taken);
            }
        }
    };
}

forward!(&L);
#[cfg(all(feature = "alloc", target_has_atomic = "ptr"))]
forward!(alloc::sync::Arc<L>);

fn spin(_attempt: u32) {
    crate::sync::spin_loop();
}

/// So much is counted of a hold at most: the sum of 2^23 of them cannot wrap.
const UNKNOWN: u64 = 1 << 40;
