//! What becomes of new keys when there is no place for them.

use crate::{Decision, Denied, Limit, Quota};

/// What becomes of a key that is not in the store while the store holds as many keys as it may.
///
/// A key that is in the store keeps its place, and what it has spent, until it is full again and thus equals one that was
/// never seen. Whoever floods a store with new keys can therefore not make it forget a spent one, and places of keys that
/// have become full go to new keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// All such keys share one limiter of this limit. [`Limit::Unlimited`] lets all of them pass. What it can never admit is
    /// denied with [`Denied::TooManyKeys`], for there may be a place for the key later.
    Shared(Limit),
    /// All such keys are denied with [`Denied::TooManyKeys`].
    Deny,
}

impl From<Quota> for Overflow {
    fn from(quota: Quota) -> Self {
        Self::Shared(Limit::Quota(quota))
    }
}

/// The answer of the shared limiter, for a key that may have a bucket of its own later: no refusal is for ever.
#[inline]
pub(super) fn not_final(decision: Decision) -> Decision {
    match decision {
        Err(denied) if denied.is_final() => Err(Denied::TooManyKeys),
        _ => decision,
    }
}
