//! A rate as so many tokens in so many whole seconds.

use sluicegate_core::Rate;

/// Tokens and seconds, each from 1 to [`MOST`], whose ratio is that of `rate`, or else less by at most a millionth of it.
///
/// - A period of whole seconds is said as it was configured: 300 in 60 s, not 5 in 1 s.
/// - Of any other, and of numbers that are too large, it is the smallest pair with the same ratio: 150 in 1.5 s are 100 in 1 s.
/// - Where that is beyond [`MOST`], it is the least number of whole seconds that is no less than the period, or, if so many tokens
///   cannot be written, the greatest for which they can; the tokens are rounded down.
///
/// The last takes more than a million tokens, or a period of more than 11 days. Rounding down loses less than one token of those, and
/// a period that is rounded up by less than a second is longer by less than a millionth.
pub(crate) fn in_whole_seconds(rate: Rate) -> (u64, u64) {
    let (tokens, period) = (u128::from(rate.tokens()), u128::from(rate.period_nanos()));
    if period % NANOS_A_SECOND == 0 {
        if let Some(configured) = written(tokens, period / NANOS_A_SECOND) {
            return configured;
        }
    }
    // Tokens in so many seconds as the period has nanoseconds, which is exact: 94 bits at most.
    let in_as_many_seconds = tokens * NANOS_A_SECOND;
    let common = greatest_common_divisor(in_as_many_seconds, period);
    if let Some(smallest) = written(in_as_many_seconds / common, period / common) {
        return smallest;
    }
    // A quota has at most 9.7 tokens a nanosecond, so what can be written lasts for a day at least.
    let longest = u128::from(MOST) * period / in_as_many_seconds;
    let seconds = period.div_ceil(NANOS_A_SECOND).min(longest).max(1);
    // No more than MOST * period, by the choice of seconds: 114 bits.
    let rounded = in_as_many_seconds.saturating_mul(seconds) / period;
    (u64::try_from(rounded).unwrap_or(MOST).min(MOST), u64::try_from(seconds).unwrap_or(MOST))
}

/// The pair, if structured fields have such numbers.
fn written(tokens: u128, seconds: u128) -> Option<(u64, u64)> {
    let number = |number| u64::try_from(number).ok().filter(|number| *number <= MOST);
    Some((number(tokens)?, number(seconds)?))
}

/// Euclid's, in at most 184 steps. Neither may be 0 here, and then neither is the divisor.
fn greatest_common_divisor(mut one: u128, mut other: u128) -> u128 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Integers of structured fields have up to 15 digits (RFC 9651, section 3.3.1).
pub(crate) const MOST: u64 = 999_999_999_999_999;

pub(crate) const NANOS_A_SECOND: u128 = 1_000_000_000;
