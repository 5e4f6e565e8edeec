//! How much is allowed while the other side says that it is too much.

use core::time::Duration;

use super::{ALL, recovered};
use crate::{Nanos, Share};

/// Cuts what is allowed, step by step, while answers say that it is too much (429, 503), and gives it back once there were none for a while.
///
/// At each evaluation with such answers the next step below what is allowed is taken: to 50 %, 25 % and then 10 % of the base. Once there were
/// none for [`cool_down`](Self::cool_down), 10 % of the base come back at each evaluation. Errors on the way back cut to the next step below where it had got to.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{ErrorRule, Nanos};
///
/// let mut rule = ErrorRule::new().cool_down(Duration::from_secs(10));
/// assert_eq!(rule.evaluate(Nanos::from_secs(0), 3), 500_000);
/// assert_eq!(rule.evaluate(Nanos::from_secs(5), 1), 250_000);
/// assert_eq!(rule.evaluate(Nanos::from_secs(10), 0), 250_000);
/// assert_eq!(rule.evaluate(Nanos::from_secs(15), 0), 350_000);
/// assert_eq!(rule.evaluate(Nanos::from_secs(20), 1), 250_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorRule {
    /// How much of the base is cut, in the order of the steps.
    cuts: [Share; 3],
    least_errors: u64,
    cool_down: Duration,
    recovery: Share,
    /// The reading of the last evaluation that saw errors.
    last_errors: Option<Nanos>,
    allowed: u32,
}

impl ErrorRule {
    /// The defaults: 50, 75 and 90 % are cut, at one error or more, for 30 s, and 10 % of the base come back at a time.
    pub const fn new() -> Self {
        Self {
            cuts: [Share::known_percent(50), Share::known_percent(75), Share::known_percent(90)],
            least_errors: 1,
            cool_down: Duration::from_secs(30),
            recovery: Share::known_percent(10),
            last_errors: None,
            allowed: ALL,
        }
    }

    /// How much of the base is cut at each step. Steps that cut no more than the one before are never taken.
    pub const fn cuts(self, cuts: [Share; 3]) -> Self {
        Self { cuts, ..self }
    }

    /// How many errors between two evaluations are a reason to cut; 0 counts as 1.
    pub const fn least_errors(self, errors: u64) -> Self {
        Self { least_errors: if errors == 0 { 1 } else { errors }, ..self }
    }

    /// How long there have to be none until something comes back.
    pub const fn cool_down(self, cool_down: Duration) -> Self {
        Self { cool_down, ..self }
    }

    /// How much of the base comes back at each evaluation.
    pub const fn recovery(self, recovery: Share) -> Self {
        Self { recovery, ..self }
    }

    /// Goes by the errors since the last evaluation, at `now`, and tells how many millionths of the base are allowed.
    pub fn evaluate(&mut self, now: Nanos, errors: u64) -> u32 {
        if errors >= self.least_errors {
            self.last_errors = Some(now);
            let steps = self.cuts.iter().map(|cut| ALL - cut.as_parts_per_million());
            self.allowed = steps.into_iter().find(|step| *step < self.allowed).unwrap_or(self.allowed);
            return self.allowed;
        }
        // Where the clock went back, the wait begins anew.
        if let Some(last) = &mut self.last_errors {
            *last = now.min(*last);
            if now.saturating_duration_since(*last) >= self.cool_down {
                self.allowed = recovered(self.allowed, self.recovery);
            }
        }
        self.allowed
    }
}

impl Default for ErrorRule {
    fn default() -> Self {
        Self::new()
    }
}
