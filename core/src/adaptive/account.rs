//! What is left of a large quota, between what is said of it.

use core::time::Duration;

use super::QuotaLeft;
use crate::Nanos;

/// Counts what is left of a quota of a day or a month, so that a [`PaceRule`](super::PaceRule) can spread it.
///
/// There are two kinds. A quota of one's own has all its tokens again every period. Of a provider's quota nothing is known until an answer says so
/// ([`report`](Self::report)), and nothing once its time is over; in between, what is spent counts down from what was said last. Months are no fixed span:
/// report each anew when it begins.
///
/// # A clock that misbehaves
///
/// A leap over several periods begins the one that it leads into. A reading that is late, by less than a period before the one under way or than what was said before it was
/// said, counts as of its begin: callers who race at the turn of a period have one of them, not two. One that is earlier still means that the clock went back: the period that
/// it is in ends when it would have anyway, with what is left now, and what was said of a provider's quota lasts for as long as was said, from then on.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{Nanos, QuotaAccount, QuotaLeft};
///
/// let day = Duration::from_secs(86_400);
/// let mut own = QuotaAccount::every(day, 10_000, Nanos::ZERO);
/// own.spend(Nanos::from_secs(3_600), 4_000);
/// assert_eq!(own.left(Nanos::from_secs(3_600)), Some(QuotaLeft::new(6_000, Duration::from_secs(82_800))));
/// assert_eq!(own.left(Nanos::from_secs(90_000)), Some(QuotaLeft::new(10_000, Duration::from_secs(82_800))));
///
/// let mut providers = QuotaAccount::unknown();
/// assert_eq!(providers.left(Nanos::ZERO), None);
/// providers.report(Nanos::ZERO, QuotaLeft::new(50, Duration::from_secs(30)));
/// providers.spend(Nanos::from_secs(10), 20);
/// assert_eq!(providers.left(Nanos::from_secs(10)), Some(QuotaLeft::new(30, Duration::from_secs(20))));
/// assert_eq!(providers.left(Nanos::from_secs(30)), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaAccount {
    /// Of the period that is under way.
    tokens: u64,
    /// When it is over, and how long it may be at most from any reading within it.
    until: Option<(Nanos, Duration)>,
    /// How often there are how many again.
    renewal: Option<(Duration, u64)>,
}

impl QuotaAccount {
    /// A provider's quota, of which nothing is known yet.
    pub const fn unknown() -> Self {
        Self { tokens: 0, until: None, renewal: None }
    }

    /// `tokens` every `period`, the first of which begins at `begin`: give the reading that belongs to midnight, say. A period of 0 counts as 1 ns.
    pub const fn every(period: Duration, tokens: u64, begin: Nanos) -> Self {
        let period = if period.is_zero() { Duration::from_nanos(1) } else { period };
        Self { tokens, until: Some((begin.saturating_add(period), period)), renewal: Some((period, tokens)) }
    }

    /// What was said of it at `now`; replaces what was counted.
    pub fn report(&mut self, now: Nanos, left: QuotaLeft) {
        self.tokens = left.tokens;
        self.until = Some((now.saturating_add(left.until_reset), left.until_reset));
    }

    /// Counts `cost` as spent at `now`; more than there is leaves nothing.
    pub fn spend(&mut self, now: Nanos, cost: u64) {
        self.follow(now);
        self.tokens = self.tokens.saturating_sub(cost);
    }

    /// What is left at `now`, if that is known.
    pub fn left(&mut self, now: Nanos) -> Option<QuotaLeft> {
        self.follow(now);
        let (until, longest) = self.until?;
        Some(QuotaLeft::new(self.tokens, until.saturating_duration_since(now).min(longest)))
    }

    /// Goes to the period that `now` is in, and begins it where that is a later one.
    fn follow(&mut self, now: Nanos) {
        let Some((until, longest)) = self.until else { return };
        let left = until.saturating_duration_since(now);
        if !left.is_zero() && left <= longest.saturating_mul(2) {
            return;
        }
        self.until = match self.renewal {
            Some((period, tokens)) => {
                if left.is_zero() {
                    self.tokens = tokens;
                }
                Some((end_of_period(period, until, now), period))
            }
            None if left.is_zero() => None,
            // The clock went back.
            None => Some((now.saturating_add(longest), longest)),
        };
    }
}

/// The end of the period that `now` is in, where one ends at `until`.
fn end_of_period(period: Duration, until: Nanos, now: Nanos) -> Nanos {
    // A period beyond 584 years never ends.
    let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    let left = match until.as_u64().checked_sub(now.as_u64()) {
        // Of the ends before `until`, or that one, the first after `now`.
        Some(until) if until > 0 => (until - 1) % nanos + 1,
        _ => nanos - (now.as_u64() - until.as_u64()) % nanos,
    };
    Nanos::new(now.as_u64().saturating_add(left))
}
