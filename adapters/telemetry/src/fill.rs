//! How full a limiter is, as a number for people.

use portable_atomic::{AtomicU64, Ordering};
use sluicegate_core::{Admitted, Limit};

/// The capacity in force, if fill is wanted and there is one.
#[derive(Debug)]
pub(crate) struct Capacity {
    /// 0 where there is none. Relaxed: a fact of its own.
    tokens: AtomicU64,
    is_wanted: bool,
}

impl Capacity {
    pub(crate) fn of(limit: Limit) -> Self {
        Self { tokens: AtomicU64::new(tokens(limit)), is_wanted: true }
    }

    pub(crate) fn unwanted() -> Self {
        Self { tokens: AtomicU64::new(0), is_wanted: false }
    }

    pub(crate) fn adjust(&self, to: Limit) {
        if self.is_wanted {
            self.tokens.store(tokens(to), Ordering::Relaxed);
        }
    }

    /// What an admission left, as a part of the capacity: 0 to 1.
    #[inline]
    pub(crate) fn left_by(&self, admitted: &Admitted) -> Option<f64> {
        let capacity = self.tokens.load(Ordering::Relaxed);
        let left = admitted.remaining.exactly()?;
        // Decided under another limit, around an adjustment, it may be more.
        (capacity != 0).then(|| left.min(capacity) as f64 / capacity as f64)
    }
}

fn tokens(limit: Limit) -> u64 {
    limit.quota().map_or(0, |quota| quota.capacity())
}
