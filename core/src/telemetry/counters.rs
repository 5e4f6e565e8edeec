//! Counts of what one limiter did.

use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Admitted, Debit, Denied, Inspection, Limit, Nanos, Observer, Share};

/// Counts what a limiter decides, and how full it was seen to be: an observer of some words, which any number of callers share.
///
/// # What is counted
///
/// - Requests and costs, admitted and denied; what was given back, and what was charged afterwards; adjustments. All of these only grow.
/// - *Bursts*: one each time the limiter goes from half full or more to less than a tenth. It has to be seen at half or more again
///   before the next one counts.
/// - How often it was *emptied*, to less than a hundredth, and half full again after that.
/// - The least of its *fill*, what is left as a share of the capacity in force, since it was last [asked](Self::take_lowest_fill).
///
/// Fill is seen at admissions that say exactly what is left: what is left, and what there was before. So a
/// [`ShardedWindow`](crate::ShardedWindow), which says only what one of its shards has left, shows none and counts no bursts; nor does a
/// store of keys, where the fill of one key says nothing about the next: count it [`without_fill`](Self::without_fill). A limit of 1 or 2 at
/// once goes from half full to empty by a single request, so that each counts as a burst.
///
/// # Guarantees
///
/// - Each event counts once, whoever races. Events that race may be seen in another order than they took effect, and bursts and fill go
///   by that order.
/// - No count wraps. Costs stop at `u64::MAX`.
/// - Of requests that ask for more than the limiter ever holds ([`Denied::CostExceedsLimit`]) only the number counts, not their cost, because
///   one of them could drown all others.
///
/// # Trade-offs
///
/// All callers write the same words: an admission adds to two of them, and looks at four. That is some nanoseconds by itself, and
/// limits how far a sharded limiter scales. Nothing is allocated, and nobody waits. On targets without 64-bit atomics they are emulated.
///
/// ```
/// use sluicegate_core::{Counters, ManualClock, TokenBucket, quota};
///
/// const LIMIT: sluicegate_core::Quota = quota!("10/1s");
/// let bucket = TokenBucket::with_clock(LIMIT, ManualClock::new()).observed_by(Counters::new(LIMIT));
/// bucket.try_acquire(4)?;
/// bucket.try_acquire(6)?;
/// assert!(bucket.try_acquire(2).is_err());
///
/// let counted = bucket.observer().snapshot();
/// assert_eq!((counted.admitted, counted.admitted_cost), (2, 10));
/// assert_eq!((counted.denied, counted.denied_cost), (1, 2));
/// assert_eq!((counted.bursts, counted.emptied, counted.recovered), (1, 1, 0));
/// assert_eq!(bucket.observer().take_lowest_fill(), Some(0));
/// # Ok::<(), sluicegate_core::Denied>(())
/// ```
#[derive(Debug)]
pub struct Counters {
    // Relaxed throughout: each word is a fact of its own, and orders nothing.
    admitted: AtomicU64,
    admitted_cost: AtomicU64,
    denied: AtomicU64,
    denied_cost: AtomicU64,
    refunded_cost: AtomicU64,
    debited_cost: AtomicU64,
    adjustments: AtomicU64,
    /// Turns between half full and less than a tenth: odd once it is half full, and even after a burst.
    bursts: AtomicU64,
    /// Turns between less than a hundredth and half full: odd once it is empty, and even once it is half full again.
    recoveries: AtomicU64,
    /// In millionths; `NOT_SEEN` where none was.
    lowest_fill: AtomicU64,
    /// Of the limit in force; 0 where there is no fill to be seen.
    capacity: AtomicU64,
    sees_fill: bool,
}

impl Counters {
    /// Counts from zero, for a limiter that begins with `limit`. Adjustments are followed.
    pub fn new(limit: impl Into<Limit>) -> Self {
        Self::with_limit(limit.into())
    }

    const_unless_loom! {
        /// Counts from zero, for a limiter that begins with `limit`, in a constant too. Adjustments are followed.
        pub fn with_limit(limit: Limit) -> Self {
            Self::of(capacity_of(limit), true)
        }

        /// Counts from zero, and neither fill nor bursts: for a store of keys.
        pub fn without_fill() -> Self {
            Self::of(0, false)
        }

        fn of(capacity: u64, sees_fill: bool) -> Self {
            Self {
                admitted: AtomicU64::new(0),
                admitted_cost: AtomicU64::new(0),
                denied: AtomicU64::new(0),
                denied_cost: AtomicU64::new(0),
                refunded_cost: AtomicU64::new(0),
                debited_cost: AtomicU64::new(0),
                adjustments: AtomicU64::new(0),
                bursts: AtomicU64::new(0),
                recoveries: AtomicU64::new(0),
                lowest_fill: AtomicU64::new(NOT_SEEN),
                capacity: AtomicU64::new(capacity),
                sees_fill,
            }
        }
    }

    /// What was counted so far. Each number is right by itself; events that race the call may be in some and not in others.
    pub fn snapshot(&self) -> CounterSnapshot {
        let count = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let recoveries = count(&self.recoveries);
        CounterSnapshot {
            admitted: count(&self.admitted),
            admitted_cost: count(&self.admitted_cost),
            denied: count(&self.denied),
            denied_cost: count(&self.denied_cost),
            refunded_cost: count(&self.refunded_cost),
            debited_cost: count(&self.debited_cost),
            adjustments: count(&self.adjustments),
            bursts: count(&self.bursts) / 2,
            emptied: recoveries.div_ceil(2),
            recovered: recoveries / 2,
        }
    }

    /// The least that was seen left since this was last asked, in millionths of the capacity; `None` where nothing was seen. It begins anew
    /// for everybody, so that one should ask.
    pub fn take_lowest_fill(&self) -> Option<u32> {
        let lowest = self.lowest_fill.swap(NOT_SEEN, Ordering::Relaxed);
        (lowest != NOT_SEEN).then_some(lowest as u32)
    }

    /// What is left, and what there was before `cost` went.
    #[inline]
    fn see_fill(&self, left: u64, cost: u64) {
        let capacity = self.capacity.load(Ordering::Relaxed);
        if capacity == 0 {
            return;
        }
        // Decided under another limit, around an adjustment, it may be more.
        let (left, before) = (left.min(capacity), left.saturating_add(cost).min(capacity));
        if Share::HALF.is_reached(before, capacity) {
            turn(&self.bursts, 0);
            turn(&self.recoveries, 1);
        }
        if !TENTH.is_reached(left, capacity) {
            turn(&self.bursts, 1);
        }
        if !HUNDREDTH.is_reached(left, capacity) {
            turn(&self.recoveries, 0);
        }
        // Divides only where it is lower than before: a share rounded down is below a whole number exactly where the share is.
        let lowest = u128::from(self.lowest_fill.load(Ordering::Relaxed));
        if u128::from(left) * MILLION < lowest * u128::from(capacity) {
            let fill = Inspection::new(left, capacity).fill_parts_per_million();
            change(&self.lowest_fill, |lowest| lowest.min(fill.into()));
        }
    }
}

impl Default for Counters {
    /// [`without_fill`](Self::without_fill).
    fn default() -> Self {
        Self::without_fill()
    }
}

impl Observer for Counters {
    #[inline]
    fn admitted(&self, _now: Nanos, cost: u64, admitted: &Admitted) {
        count(&self.admitted);
        add(&self.admitted_cost, cost);
        if self.sees_fill {
            if let Some(left) = admitted.remaining.exactly() {
                self.see_fill(left, cost);
            }
        }
    }

    #[inline]
    fn denied(&self, _now: Nanos, cost: u64, denied: &Denied) {
        count(&self.denied);
        if !matches!(denied, Denied::CostExceedsLimit { .. }) {
            add(&self.denied_cost, cost);
        }
    }

    #[inline]
    fn refunded(&self, cost: u64) {
        add(&self.refunded_cost, cost);
    }

    #[inline]
    fn debited(&self, _now: Nanos, debit: &Debit) {
        add(&self.debited_cost, debit.charged);
    }

    #[inline]
    fn settled(&self, _now: Nanos, held: u64, debit: &Debit) {
        // What was held counts as admitted already.
        add(&self.debited_cost, debit.charged.saturating_sub(held));
        add(&self.refunded_cost, held.saturating_sub(debit.charged));
    }

    fn adjusted(&self, _now: Nanos, _from: Limit, to: Limit) {
        count(&self.adjustments);
        self.capacity.store(capacity_of(to), Ordering::Relaxed);
    }
}

/// What [`Counters`] had counted at one time.
///
/// ```
/// use sluicegate_core::{Counters, quota};
/// let counted = Counters::new(quota!("10/1s")).snapshot();
/// assert_eq!((counted.requests(), counted.consumed()), (0, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CounterSnapshot {
    /// Requests that were admitted.
    pub admitted: u64,
    /// What they took, in tokens. A reservation counts as what it holds.
    pub admitted_cost: u64,
    /// Requests that were denied, whyever.
    pub denied: u64,
    /// What they asked for, in tokens, but for those that asked for more than the limiter ever holds.
    pub denied_cost: u64,
    /// Tokens that came back: refunds, and what reservations had too much.
    pub refunded_cost: u64,
    /// Tokens that were charged afterwards: debits, and what reservations had too little.
    pub debited_cost: u64,
    /// How often the limit was changed.
    pub adjustments: u64,
    /// How often it went from half full or more to less than a tenth.
    pub bursts: u64,
    /// How often it went to less than a hundredth, for the first time or from half full or more.
    pub emptied: u64,
    /// How often it was half full again after that: as often, or once less while it is not.
    pub recovered: u64,
}

impl CounterSnapshot {
    /// Requests that were decided on.
    pub const fn requests(&self) -> u64 {
        self.admitted.saturating_add(self.denied)
    }

    /// Tokens that were taken and did not come back.
    pub const fn consumed(&self) -> u64 {
        self.admitted_cost.saturating_add(self.debited_cost).saturating_sub(self.refunded_cost)
    }
}

/// One more. Nothing happens 2^64 times.
#[inline]
fn count(word: &AtomicU64) {
    word.fetch_add(1, Ordering::Relaxed);
}

/// `cost` more, as far as there is room.
#[inline]
fn add(word: &AtomicU64, cost: u64) {
    if cost > 0 {
        change(word, |sum| sum.saturating_add(cost));
    }
}

#[inline]
fn change(word: &AtomicU64, mut to: impl FnMut(u64) -> u64) {
    let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |value| Some(to(value)));
}

/// What a limit holds at most, where that is a number of which something may be left.
const fn capacity_of(limit: Limit) -> u64 {
    match limit {
        Limit::Quota(quota) => quota.capacity(),
        Limit::Unlimited | Limit::DenyAll => 0,
    }
}

/// One turn more, if the number of turns is even or odd as given. Of several that race, one makes it.
#[inline]
fn turn(word: &AtomicU64, parity: u64) {
    let turns = word.load(Ordering::Relaxed);
    if turns % 2 == parity {
        let _ = word.compare_exchange(turns, turns + 1, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// A burst ends below.
const TENTH: Share = Share::known_percent(10);
/// Empty is less.
pub(super) const HUNDREDTH: Share = Share::known_percent(1);

const MILLION: u128 = Share::ALL.as_parts_per_million() as u128;
/// More than any fill.
const NOT_SEEN: u64 = MILLION as u64 + 1;
