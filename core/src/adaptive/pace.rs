//! How much is allowed so that a quota lasts.

use core::time::Duration;

use super::ALL;
#[cfg(doc)]
use super::AdaptiveOptions;
use crate::Quota;

/// What is left of a quota of a day or a month, or of a provider's: as it was counted, or as its answers say (`RateLimit`, `Retry-After`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotaLeft {
    /// Tokens.
    pub tokens: u64,
    /// Until there are all of them again.
    pub until_reset: Duration,
}

impl QuotaLeft {
    /// So many tokens until then.
    pub const fn new(tokens: u64, until_reset: Duration) -> Self {
        Self { tokens, until_reset }
    }
}

/// Spreads what is left of a quota over what is left of its period, aimed anew at each evaluation.
///
/// Where more is left than the base would use, the base is allowed, and no more.
///
/// # How well it lasts
///
/// The [floor](AdaptiveOptions::floor) of a policy does not lift what this rule allows: where nothing is left, nothing is allowed, of which a policy makes a millionth of the base. Three
/// things are not spread: what passes before the first evaluations, because a policy falls by [`most_fall`](AdaptiveOptions::most_fall) at a time; up to a burst of the limit in
/// force, because what a bucket holds still counts as left; and a [least change](AdaptiveOptions::least_change) that is let be. So at full demand a quota may be used up
/// somewhat before its time is over. Where not one token may be too many, make the quota itself a level of a [`Hierarchy`](crate::Hierarchy); this rule is for spreading it.
///
/// ```
/// use core::time::Duration;
/// use sluicegate_core::{PaceRule, QuotaLeft, quota};
///
/// // 100 a second would use up 86 400 in a quarter of an hour.
/// let allowed = PaceRule::new().evaluate(quota!("100/1s"), Some(QuotaLeft::new(86_400, Duration::from_secs(86_400))));
/// assert_eq!(allowed, 10_000);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PaceRule(());

impl PaceRule {
    /// Spreads all of what is left.
    pub const fn new() -> Self {
        Self(())
    }

    /// Tells how many millionths of `base` are allowed, rounded down. Where nothing is known of the quota that is all of it.
    pub fn evaluate(&self, base: Quota, left: Option<QuotaLeft>) -> u32 {
        let Some(QuotaLeft { tokens, until_reset }) = left else { return ALL };
        let (rate, all) = (base.rate(), u128::from(ALL));
        let until_reset = until_reset.as_nanos();
        if until_reset == 0 {
            return ALL;
        }
        // left / until_reset, of tokens / period, in millionths. A time is less than 2^94 ns, so only the whole part can be too much, and is far beyond all then.
        let in_a_period = u128::from(tokens) * u128::from(rate.period_nanos());
        let (whole, rest) = (in_a_period / until_reset, in_a_period % until_reset);
        let share = whole.saturating_mul(all).saturating_add(rest * all / until_reset) / u128::from(rate.tokens());
        share.min(all) as u32
    }
}
