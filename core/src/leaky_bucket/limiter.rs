//! The leaky bucket that most programs use: a pacing, its state, a clock and an observer.

use core::fmt;
use core::time::Duration;

use super::{Departure, LeakyBucketState, LeakyBucketStep, Pacing};
use crate::decision::{Admitted, Denied, Inspection, Remaining};
use crate::observer::Observer;
use crate::sync::{AtomicU64, Ordering, const_unless_loom};
use crate::{Clock, Nanos};

/// A leaky bucket: whatever comes in, what goes out is spaced by the rate.
///
/// An item is told at once when it departs. The bucket keeps the place of the next free slot and no items: who waits does so
/// with a timer of its own, in the order that the departures give.
///
/// # Guarantees
///
/// For N tokens per P ns, a queue of Q and a slack of S tokens, any number of racing callers and any costs:
///
/// - *Pace*: between two departures lies at least the cost of the earlier item and of all between them at the rate, so with
///   costs of 1 the k-th after one is k·P/N ns later or more. Departures are whole nanoseconds: each is its ideal instant
///   rounded up, so a span can be up to, not including, 1 ns shorter than the ideal one, and never by more however many items
///   it spans. While items are waiting the ideal instants are exactly k·P/N apart. With a slack, all this holds for S tokens
///   less.
/// - *Promptness*: an item departs at the first reading that this allows in the order of admission, and never before it came.
/// - *Queue*: an item is refused if and only if the slots ahead of it have more than Q tokens still to go, where a slot that is
///   under way counts for its rest. Nobody waits longer than Q·P/N ns, rounded up.
/// - *Hint*: refused with `retry_after = r`, the same item alone is accepted r later and refused 1 ns before.
/// - Calls are lock-free and allocate nothing.
///
/// A cost of 0 needs no slot: it departs at once and counts in none of this.
///
/// Where the rate has no exact grid, instants are right to within one unit of refill, 0.1 to 0.2 ns, for ever: pace is kept to
/// the letter, promptness and the queue's bound to within that unit.
///
/// # A clock that misbehaves
///
/// A reading earlier than the latest one acted on finds the slots as they are: order and pace of departures stay. Readings
/// past [`Nanos::HORIZON`] count as the horizon, and departures past it are told to within 2 ns. Nothing panics or wraps.
///
/// # Trade-off
///
/// Bursts wait, even where the rate on average would allow them: a [`TokenBucket`](crate::TokenBucket) lets them through. All
/// callers share one word. An item that will not depart after all gives its slot back only while it is the newest; see
/// [`cancel`](Self::cancel).
///
/// # Example
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{LeakyBucket, ManualClock, PER_SECOND, Pacing, Rate};
///
/// let pacing = Pacing::new(Rate::new(100, PER_SECOND)?, 2)?;
/// let bucket = LeakyBucket::with_clock(pacing, ManualClock::new());
/// let delays: Vec<Duration> = (0..3).map_while(|_| bucket.try_acquire(1).ok()).map(|departure| departure.delay).collect();
/// assert_eq!(delays, [0, 10, 20].map(Duration::from_millis));
/// assert_eq!(bucket.try_acquire(1).unwrap_err().retry_after(), Some(Duration::from_millis(10)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LeakyBucket<C, O = ()> {
    step: LeakyBucketStep,
    // The word is the whole state, and all read-modify-writes of one word are in one total order, in which each decision is
    // right. What takes is a release and what is read before a clock an acquire, for the readings alone: so whoever meets a
    // slot that was taken reads a clock no earlier than its taker did. Everything else is relaxed.
    state: AtomicU64,
    clock: C,
    observer: O,
}

impl<C: Clock + Default> LeakyBucket<C> {
    /// An idle bucket on the default clock.
    pub fn new(pacing: Pacing) -> Self {
        Self::with_clock(pacing, C::default())
    }
}

impl<C> LeakyBucket<C> {
    const_unless_loom! {
        /// An idle bucket on `clock`, in a constant too.
        pub fn with_clock(pacing: Pacing, clock: C) -> Self {
            let state = AtomicU64::new(LeakyBucketState::IDLE.to_bits());
            Self { step: LeakyBucketStep::new(pacing), state, clock, observer: () }
        }
    }

    /// The same bucket, which from now on tells `observer` of every decision.
    ///
    /// An admission's `remaining` is what [`inspect`](Self::inspect) would tell, and its `at` the reading of the departure.
    pub fn observed_by<O: Observer>(self, observer: O) -> LeakyBucket<C, O> {
        LeakyBucket { step: self.step, state: self.state, clock: self.clock, observer }
    }
}

impl<C, O> LeakyBucket<C, O> {
    /// The pacing.
    pub const fn pacing(&self) -> Pacing {
        self.step.pacing()
    }

    /// The clock.
    #[inline]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// The observer.
    #[inline]
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// The state, to be kept across a restart of a process whose clock keeps its origin.
    #[inline]
    pub fn state(&self) -> LeakyBucketState {
        LeakyBucketState::from_bits(self.state.load(Ordering::Relaxed))
    }

    /// How long an item of `cost` that arrives at `now` would wait; takes nothing and tells nobody.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    #[inline]
    pub fn peek_at(&self, now: Nanos, cost: u64) -> Result<Duration, Denied> {
        self.step.try_acquire(self.state(), now, cost).1.map(|departure| departure.delay)
    }

    /// How many items of one token would be accepted at `now`, of as many as an idle bucket accepts at once. Changes nothing.
    #[inline]
    pub fn inspect_at(&self, now: Nanos) -> Inspection {
        self.step.inspect(self.state(), now)
    }
}

impl<C, O: Observer> LeakyBucket<C, O> {
    /// Gives an item of `cost` tokens that arrives at `now` its departure, or refuses it.
    ///
    /// # Errors
    /// [`Denied::RateLimited`] when the queue is full, [`Denied::CostExceedsLimit`] when it costs more than any item may. A
    /// refusal takes nothing.
    #[inline]
    pub fn try_acquire_at(&self, now: Nanos, cost: u64) -> Result<Departure, Denied> {
        self.try_acquire_within_at(now, cost, Duration::MAX)
    }

    /// As [`try_acquire_at`](Self::try_acquire_at), but refuses an item that would wait longer than `longest_wait`.
    ///
    /// ```
    /// use core::time::Duration;
    /// use sluicegate_core::{Denied, LeakyBucket, Nanos, PER_SECOND, Pacing, Rate};
    ///
    /// let bucket = LeakyBucket::with_clock(Pacing::new(Rate::new(10, PER_SECOND)?, 100)?, ());
    /// let wait = Duration::from_millis(150);
    /// assert!(bucket.try_acquire_within_at(Nanos::ZERO, 2, wait).is_ok());
    /// // The next slot departs in 200 ms: 50 ms later it is near enough.
    /// let retry_after = Duration::from_millis(50);
    /// let denied = bucket.try_acquire_within_at(Nanos::ZERO, 1, wait);
    /// assert_eq!(denied, Err(Denied::RateLimited { retry_after }));
    /// assert!(bucket.try_acquire_within_at(Nanos::ZERO + retry_after, 1, wait).is_ok());
    /// # Ok::<(), sluicegate_core::QuotaError>(())
    /// ```
    ///
    /// # Errors
    /// As `try_acquire_at`; and [`Denied::RateLimited`] for an item that would wait longer, with the time after which its wait would be
    /// `longest_wait` if nobody else came. A refusal takes nothing.
    #[inline]
    pub fn try_acquire_within_at(&self, now: Nanos, cost: u64, longest_wait: Duration) -> Result<Departure, Denied> {
        let (decision, _) = self.take_from(self.state.load(Ordering::Relaxed), now, cost, longest_wait);
        self.report(now, cost, decision)
    }

    /// Gives the slot of `departure` up: for an item that will not depart.
    ///
    /// While it is the newest, its slot becomes free, and the bucket is exactly as if the item had never come. Once a later
    /// item has a slot, that one has been told its departure, so this slot stays used, and the departure is given back:
    /// cancelling the later one first makes it the newest again.
    ///
    /// Whether it has departed already is not checked, as little as for a refund: an item that departed and is cancelled lets the
    /// next one follow too early. Cancel at the bucket that gave it: another one's state can be the same.
    ///
    /// # Errors
    /// The departure, when it is not the newest.
    #[inline]
    pub fn cancel(&self, departure: Departure) -> Result<(), Departure> {
        let Some((from, to)) = departure.swap() else { return Ok(()) };
        // Not the weak form: it fails only if the state is another one, and then no repetition would help.
        match self.state.compare_exchange(from.to_bits(), to.to_bits(), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                self.observer.refunded(departure.cost);
                Ok(())
            }
            Err(_) => Err(departure),
        }
    }

    /// Takes a slot after `current` or after what has replaced it; also tells what was decided on.
    #[inline(always)]
    fn take_from(&self, mut current: u64, now: Nanos, cost: u64, longest_wait: Duration) -> (Slot, u64) {
        loop {
            let (next, decision) =
                self.step.try_acquire_within(LeakyBucketState::from_bits(current), now, cost, longest_wait);
            let departure = match decision {
                Ok(departure) => departure,
                Err(denied) => return (Err(denied), current),
            };
            if cost == 0 {
                return (Ok((departure, next)), current);
            }
            match self.state.compare_exchange_weak(current, next.to_bits(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return (Ok((departure, next)), current),
                Err(seen) => current = seen,
            }
        }
    }

    #[inline(always)]
    fn report(&self, now: Nanos, cost: u64, decision: Slot) -> Result<Departure, Denied> {
        match &decision {
            Ok((departure, after)) => {
                let left = Remaining::Exactly(self.step.inspect(*after, now).level);
                self.observer.admitted(now, cost, &Admitted::new(left, departure.at));
            }
            Err(denied) => self.observer.denied(now, cost, denied),
        }
        decision.map(|(departure, _)| departure)
    }
}

impl<C: Clock, O: Observer> LeakyBucket<C, O> {
    /// Gives an item of `cost` tokens that arrives now its departure, or refuses it.
    ///
    /// A refusal is right at an instant within the call, however long the caller was suspended in it: who is overtaken between
    /// reading the clock and deciding reads it again before it is refused.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    #[inline(always)]
    pub fn try_acquire(&self, cost: u64) -> Result<Departure, Denied> {
        // Read before the clock: what is refused by this word found the queue full when it was read. What is refused by
        // another one is refused at a reading from before others took their slots, so the clock is read again.
        let seen = self.state.load(Ordering::Acquire);
        let now = self.clock.now();
        match self.take_from(seen, now, cost, Duration::MAX) {
            (Err(Denied::RateLimited { .. }), decided_on) if decided_on != seen => self.overtaken(cost),
            (decision, _) => self.report(now, cost, decision),
        }
    }

    /// Begins anew.
    #[cold]
    fn overtaken(&self, cost: u64) -> Result<Departure, Denied> {
        loop {
            let seen = self.state.load(Ordering::Acquire);
            let now = self.clock.now();
            match self.take_from(seen, now, cost, Duration::MAX) {
                // Another caller has changed the word meanwhile: as a whole, calls make progress.
                (Err(Denied::RateLimited { .. }), decided_on) if decided_on != seen => {}
                (decision, _) => return self.report(now, cost, decision),
            }
        }
    }

    /// How long an item of `cost` would wait now; takes nothing and tells nobody.
    ///
    /// # Errors
    /// As [`try_acquire_at`](Self::try_acquire_at).
    #[inline]
    pub fn peek(&self, cost: u64) -> Result<Duration, Denied> {
        self.peek_at(self.clock.now(), cost)
    }

    /// How many items of one token would be accepted now, of as many as an idle bucket accepts at once. Changes nothing.
    #[inline]
    pub fn inspect(&self) -> Inspection {
        self.inspect_at(self.clock.now())
    }
}

/// A departure and the state after it.
type Slot = Result<(Departure, LeakyBucketState), Denied>;

impl<C, O> fmt::Debug for LeakyBucket<C, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeakyBucket")
            .field("pacing", &self.pacing())
            .field("state", &self.state().to_bits())
            .finish_non_exhaustive()
    }
}
