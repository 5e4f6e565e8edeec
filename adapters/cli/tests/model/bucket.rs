//! A token bucket in rationals: its level is a whole number of parts, of which a token has as many as the period has nanoseconds.

use super::Time;

#[derive(Clone, Copy, Debug)]
pub(super) enum Bucket {
    Off,
    Deny,
    Quota { tokens: u128, period: u128, capacity: u128, level: u128, at: Time },
}

impl Bucket {
    pub(super) fn full(tokens: u64, period: u64, capacity: u64) -> Self {
        let (tokens, period, capacity) = (tokens.into(), u128::from(period), u128::from(capacity));
        Self::Quota { tokens, period, capacity, level: capacity * period, at: 0 }
    }

    /// What has come by `now`, in parts, and no more than there is room for.
    fn level_at(&self, now: Time) -> u128 {
        match *self {
            Self::Off => u128::MAX,
            Self::Deny => 0,
            Self::Quota { tokens, period, capacity, level, at } => {
                (level + tokens * u128::from(now - at)).min(capacity * period)
            }
        }
    }

    fn parts(&self, cost: u64) -> u128 {
        match self {
            Self::Quota { period, .. } => u128::from(cost) * period,
            _ => u128::from(cost),
        }
    }

    pub(super) fn has(&self, now: Time, cost: u64) -> bool {
        self.level_at(now) >= self.parts(cost)
    }

    pub(super) fn take(&mut self, now: Time, cost: u64) {
        let left = self.level_at(now) - self.parts(cost);
        if let Self::Quota { level, at, .. } = self {
            (*level, *at) = (left, now);
        }
    }

    /// The first nanosecond from `now` on at which so many tokens have come, though there may be no room for them at once; `None` for never.
    pub(super) fn when(&self, now: Time, cost: u64) -> Option<Time> {
        match self {
            Self::Off => Some(now),
            Self::Deny => None,
            Self::Quota { tokens, .. } => {
                let lacking = self.parts(cost).saturating_sub(self.level_at(now));
                Some(now + lacking.div_ceil(*tokens) as u64)
            }
        }
    }
}
