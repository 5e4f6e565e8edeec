//! Whose decision it was.

use crate::Decision;

/// Who answered a request for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// The key's own bucket.
    Key,
    /// The [`Overflow`](crate::Overflow) policy, because the key is new and there are as many keys as there may be.
    Overflow,
}

/// A decision, and who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a decision that nobody looks at limits nothing"]
#[non_exhaustive]
pub struct KeyedDecision {
    /// What `try_acquire` returns.
    pub decision: Decision,
    /// Whose it is; and whose to refund, with `refund` or `refund_overflow`.
    pub by: DecidedBy,
}
