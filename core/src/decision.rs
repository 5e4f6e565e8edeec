//! What a limiter answers.

use core::fmt;
use core::time::Duration;

use crate::Nanos;

/// The answer of every limiter: one level deep, so that `?` and `match` read naturally.
pub type Decision = Result<Admitted, Denied>;

/// The request may pass, and its cost has been taken.
///
/// ```
/// use sluicegate_core::{ManualClock, Quota, Remaining, TokenBucket};
///
/// let bucket = TokenBucket::with_clock(Quota::per_second(10)?, ManualClock::new());
/// let admitted = bucket.try_acquire(3)?;
/// assert_eq!(admitted.remaining, Remaining::Exactly(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Admitted {
    /// What was left right after this request.
    pub remaining: Remaining,
    /// The reading that the decision counts under. It is the reading that was given, or, for a window that another
    /// caller had already opened with a later reading, that window's start.
    pub at: Nanos,
}

impl Admitted {
    /// The answer of a limiter of your own.
    #[inline]
    pub const fn new(remaining: Remaining, at: Nanos) -> Self {
        Self { remaining, at }
    }
}

/// What a limiter had left, and how well it knows.
///
/// ```
/// use sluicegate_core::Remaining;
/// assert_eq!(Remaining::Exactly(5).at_least(), 5);
/// assert_eq!(Remaining::AtLeast(5).exactly(), None);
/// assert_eq!(Remaining::Unlimited.at_least(), u64::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remaining {
    /// Exactly this many whole tokens.
    Exactly(u64),
    /// This many in the shard that served the request, and perhaps more in others. Ask
    /// [`ShardedWindow::inspect`](crate::ShardedWindow::inspect) for the sum; a decision does not touch the other shards
    /// for it, because that would cost what sharding saves.
    AtLeast(u64),
    /// There is no limit.
    Unlimited,
}

impl Remaining {
    /// A number of tokens that was certainly left: `u64::MAX` without a limit.
    #[inline]
    pub const fn at_least(self) -> u64 {
        match self {
            Self::Exactly(tokens) | Self::AtLeast(tokens) => tokens,
            Self::Unlimited => u64::MAX,
        }
    }

    /// The exact number of tokens left, where it is known and finite.
    #[inline]
    pub const fn exactly(self) -> Option<u64> {
        match self {
            Self::Exactly(tokens) => Some(tokens),
            Self::AtLeast(_) | Self::Unlimited => None,
        }
    }
}

impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(tokens) => write!(f, "{tokens}"),
            Self::AtLeast(tokens) => write!(f, "at least {tokens}"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// The request must not pass now. Nothing was taken.
///
/// Every variant says whether to come back, so nobody has to guess.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Denied, ManualClock, Quota, TokenBucket};
///
/// let bucket = TokenBucket::with_clock(Quota::per_second(10)?, ManualClock::new());
/// bucket.try_acquire(10)?;
/// match bucket.try_acquire(1) {
///     Err(Denied::RateLimited { retry_after }) => assert_eq!(retry_after, Duration::from_millis(100)),
///     other => panic!("{other:?}"),
/// }
/// assert_eq!(bucket.try_acquire(11), Err(Denied::CostExceedsLimit { cost: 11, limit: 10 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Denied {
    /// Too little is left at this reading. Come back after `retry_after`.
    RateLimited {
        /// If nobody else takes anything meanwhile, the same request succeeds this long after the reading of this
        /// decision, and fails one nanosecond earlier. Never zero. Past [`Nanos::HORIZON`], where the limiter's time
        /// stands still, it is how long the wait would be if time went on.
        retry_after: Duration,
    },
    /// The cost is more than the limiter ever holds: this request can never succeed. It is the caller's mistake, or the
    /// limit is too small for this kind of request.
    CostExceedsLimit {
        /// What was asked for.
        cost: u64,
        /// The most that one request may ask for.
        limit: u64,
    },
    /// Too much is in use. Come back once some of it was given back; no clock knows when that is.
    ConcurrencyLimited,
    /// The store of keys holds as many as it may, and this one is new. Come back once keys have become full again and made
    /// place; no clock knows when that is.
    TooManyKeys,
    /// As many wait already as may, or this one had to make room for one who came later. Come back when fewer want to.
    QueueFull,
    /// A circuit breaker lets nothing pass, because what is behind it fails. Come back after `retry_after`; or once its probes have come
    /// back, and no clock knows when that is.
    CircuitOpen {
        /// When it lets a call pass to see whether what is behind it works again, if that is known. Never zero.
        retry_after: Option<Duration>,
    },
    /// The limiter admits nothing: its limit is [`Limit::DenyAll`](crate::Limit::DenyAll), or it was closed. Waiting does not help.
    Closed,
}

impl Denied {
    /// How long to wait before the same request can succeed, or `None` when no time is long enough or none is known: see
    /// [`is_final`](Self::is_final).
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after } => Some(*retry_after),
            Self::CircuitOpen { retry_after } => *retry_after,
            Self::ConcurrencyLimited
            | Self::TooManyKeys
            | Self::QueueFull
            | Self::CostExceedsLimit { .. }
            | Self::Closed => None,
        }
    }

    /// Whether the same request can never succeed, for as long as the limit stays as it is.
    #[inline]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::CostExceedsLimit { .. } | Self::Closed => true,
            Self::RateLimited { .. }
            | Self::ConcurrencyLimited
            | Self::TooManyKeys
            | Self::QueueFull
            | Self::CircuitOpen { .. } => false,
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateLimited { retry_after } => write!(f, "rate limited, retry after {retry_after:?}"),
            Self::CostExceedsLimit { cost, limit } => {
                write!(f, "cost {cost} exceeds the limit of {limit}, so this request can never be admitted")
            }
            Self::ConcurrencyLimited => f.write_str("too much is in use, retry once some was given back"),
            Self::TooManyKeys => f.write_str("too many keys, retry once some have become full again"),
            Self::QueueFull => f.write_str("too many wait already, retry when fewer do"),
            Self::CircuitOpen { retry_after: Some(wait) } => write!(f, "circuit open, retry after {wait:?}"),
            Self::CircuitOpen { retry_after: None } => {
                f.write_str("circuit half-open, retry once its probes have come back")
            }
            Self::Closed => f.write_str("closed: the limit denies every request"),
        }
    }
}

impl core::error::Error for Denied {}

/// What a limiter holds at one reading. Looking changes nothing.
///
/// ```
/// use sluicegate_core::{ManualClock, Quota, TokenBucket};
///
/// let bucket = TokenBucket::with_clock(Quota::per_second(8)?, ManualClock::new());
/// bucket.try_acquire(2)?;
/// let inspection = bucket.inspect();
/// assert_eq!((inspection.level, inspection.capacity), (6, 8));
/// assert_eq!(inspection.fill_percent(), 75);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Inspection {
    /// Whole tokens that could be taken; `u64::MAX` without a limit, 0 when everything is denied.
    pub level: u64,
    /// The most that `level` can be.
    pub capacity: u64,
    /// Tokens that a bucket whose quota allows a debt owes, a begun one counted whole; mostly 0. Refill pays them off before
    /// the level rises. At a reading earlier than the latest one acted on, what flows in until then counts as owed too, and
    /// after a quota was lowered it may be more than the debt.
    pub owed: u64,
}

impl Inspection {
    /// The answer of a limiter of your own, which owes nothing.
    #[inline]
    pub const fn new(level: u64, capacity: u64) -> Self {
        Self { level, capacity, owed: 0 }
    }

    /// `level` in parts per million of `capacity`, rounded down: 0 to 1 000 000, and 0 when the capacity is 0.
    #[inline]
    pub const fn fill_parts_per_million(&self) -> u32 {
        if self.capacity == 0 {
            return 0;
        }
        (self.level as u128 * 1_000_000 / self.capacity as u128) as u32
    }

    /// `level` in percent of `capacity`, rounded down: 0 to 100, and 0 when the capacity is 0.
    #[inline]
    pub const fn fill_percent(&self) -> u8 {
        (self.fill_parts_per_million() / 10_000) as u8
    }
}
