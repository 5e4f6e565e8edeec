//! The limits of a service's own: what it lets in, and what its answers say about that.

use std::time::Duration;

use sluicegate_runtime::{AdjustableBucket, Inheritance, Limit, Nanos, QuotaLeft, Rate};

/// A bucket for each moment, and a quota for a long period, of which each call has to be let in by both.
#[derive(Debug)]
pub(super) struct Provider {
    bucket: AdjustableBucket<()>,
    quota: Option<Quota>,
    pub(super) totals: ProviderTotals,
}

/// So many tokens, all of them again with each new period; the first begins with the simulation. It is a window, as providers count by: twice as
/// many may go from one midnight's eve to its morrow.
#[derive(Clone, Copy, Debug)]
struct Quota {
    rate: Rate,
    /// Which period it is, and what was taken in it.
    period: u64,
    used: u64,
}

/// What an answer says in its headers: `RateLimit`, or `Retry-After` with nothing left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Said {
    left: u64,
    /// When there are all of them again.
    until: u64,
}

impl Said {
    /// As it is understood at `now`; nothing once its time is over.
    pub(super) fn at(self, now: u64) -> Option<QuotaLeft> {
        let until = self.until.checked_sub(now).filter(|until| *until > 0)?;
        Some(QuotaLeft::new(self.left, Duration::from_nanos(until)))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProviderTotals {
    /// Calls that its limits did not let in.
    pub(super) refused: u64,
    /// Tokens of the quota.
    pub(super) most_in_a_period: u64,
    /// Nanoseconds; `None` if no answer said when to come again.
    pub(super) longest_retry_after: Option<u64>,
}

impl Provider {
    pub(super) fn new(limit: Limit, quota: Option<Rate>) -> Self {
        let quota = quota.map(|rate| Quota { rate, period: 0, used: 0 });
        Self { bucket: AdjustableBucket::with_limit(limit, ()), quota, totals: ProviderTotals::default() }
    }

    /// Other limits from `now` on. What was taken of a quota stays taken, unless it is counted over another period.
    pub(super) fn change(&mut self, now: u64, limit: Limit, quota: Option<Rate>) {
        self.bucket.adjust_at(Nanos::new(now), limit, Inheritance::Level);
        self.quota = quota.map(|rate| match self.quota {
            Some(before) if before.rate.period_nanos() == rate.period_nanos() => Quota { rate, ..before },
            _ => Quota { rate, period: 0, used: 0 },
        });
    }

    /// Lets a call in, or not, and says what is left.
    ///
    /// # Errors
    /// The same, where it is not let in.
    pub(super) fn ask(&mut self, now: u64, cost: u64) -> Result<Option<Said>, Option<Said>> {
        let left = self.quota.as_mut().map(|quota| quota.left(now));
        if let (Some(left), Some(quota)) = (left, self.quota.filter(|_| left.is_some_and(|left| left.left < cost))) {
            // What is more than all of it does not get in later either.
            return Err(self.refuse(now, Some(left.until).filter(|_| cost <= quota.rate.tokens())));
        }
        if let Err(denied) = self.bucket.try_acquire_at(Nanos::new(now), cost) {
            let retry_after = denied.retry_after().map(|wait| u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
            return Err(self.refuse(now, retry_after.map(|wait| now.saturating_add(wait))));
        }
        if let Some(quota) = &mut self.quota {
            quota.used += cost;
            self.totals.most_in_a_period = self.totals.most_in_a_period.max(quota.used);
        }
        Ok(self.quota.as_mut().map(|quota| quota.left(now)))
    }

    fn refuse(&mut self, now: u64, until: Option<u64>) -> Option<Said> {
        self.totals.refused += 1;
        let until = until?;
        self.totals.longest_retry_after = self.totals.longest_retry_after.max(Some(until - now));
        Some(Said { left: 0, until })
    }
}

impl Quota {
    fn left(&mut self, now: u64) -> Said {
        let length = self.rate.period_nanos();
        let period = now / length;
        if period != self.period {
            (self.period, self.used) = (period, 0);
        }
        // Fewer tokens than before may already have been taken.
        let left = self.rate.tokens().saturating_sub(self.used);
        Said { left, until: (period + 1).saturating_mul(length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000_000_000;

    fn quota(text: &str) -> Option<Rate> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_large_quota_is_counted_to_the_token() {
        let mut provider = Provider::new(Limit::Unlimited, quota("500000/1d"));
        for call in 1..=250_000 {
            assert_eq!(provider.ask(call, 2), Ok(Some(Said { left: 500_000 - 2 * call, until: DAY })));
        }
        assert_eq!(provider.ask(DAY - 7, 1), Err(Some(Said { left: 0, until: DAY })));
        assert_eq!(provider.ask(DAY, 1), Ok(Some(Said { left: 499_999, until: 2 * DAY })));
        let totals = ProviderTotals { refused: 1, most_in_a_period: 500_000, longest_retry_after: Some(7) };
        assert_eq!(provider.totals, totals);
    }

    #[test]
    fn who_is_refused_by_one_takes_nothing_from_the_other() {
        let mut provider = Provider::new("1/1s".parse().unwrap(), quota("2/1h"));
        let hour = 3_600_000_000_000;
        assert_eq!(provider.ask(0, 1), Ok(Some(Said { left: 1, until: hour })));
        assert_eq!(provider.ask(250_000_000, 1), Err(Some(Said { left: 0, until: 1_000_000_000 })));
        assert_eq!(provider.ask(1_000_000_000, 1), Ok(Some(Said { left: 0, until: hour })));
        assert_eq!(provider.ask(hour - 1, 1), Err(Some(Said { left: 0, until: hour })));
        assert_eq!(provider.ask(hour - 1, 3), Err(None));
        // The bucket is full.
        assert!(provider.ask(hour, 1).is_ok());
    }

    #[test]
    fn a_change_keeps_what_was_taken() {
        let mut provider = Provider::new(Limit::Unlimited, quota("10/1h"));
        assert!(provider.ask(5, 6).is_ok());
        provider.change(6, Limit::Unlimited, quota("8/1h"));
        assert_eq!(provider.ask(7, 1), Ok(Some(Said { left: 1, until: 3_600_000_000_000 })));
        provider.change(8, Limit::Unlimited, quota("3/1h"));
        assert!(provider.ask(9, 1).is_err());
        provider.change(10, Limit::DenyAll, None);
        assert_eq!(provider.ask(11, 1), Err(None));
    }

    #[test]
    fn what_an_answer_said_is_over_with_its_period() {
        let said = Said { left: 5, until: 100 };
        assert_eq!(said.at(40), Some(QuotaLeft::new(5, Duration::from_nanos(60))));
        assert_eq!((said.at(100), said.at(101)), (None, None));
    }
}
