//! What a call through a flow costs over the same call without one.

use alloc::boxed::Box;
use core::hint::black_box;

use sluicegate_threads::sluicegate_core::{
    AdjustableBucket, BreakerOptions, CircuitBreaker, ConcurrencyLimit, Flow, TokenBucket,
};
use sluicegate_threads::{Limit, TscClock, quota};

use crate::interleaved::{Contestant, Effort, Timing, compare};

/// The call that all of them make.
pub const PLAIN: &str = "the call alone";

/// Nanoseconds that the whole pipeline may cost over the call.
pub const TARGET: f64 = 60.0;

/// The pipeline that the target is for.
pub const WHOLE: &str = "`TokenBucket`, `CircuitBreaker`, `ConcurrencyLimit`";

/// Measures: the first is the call alone.
pub fn measure(effort: Effort) -> Vec<Timing> {
    compare(&mut contestants(), PLAIN, effort)
}

fn contestants() -> Vec<Contestant<'static>> {
    let limit = || Limit::Quota(quota!("1000000000/1s"));
    let bucket = || TokenBucket::with_limit(limit(), ());
    let breaker = || {
        let policy = BreakerOptions::new().consecutive_failures(8).build().expect("a policy");
        CircuitBreaker::<parking_lot::RawMutex, _>::with_clock(policy, ())
    };
    let permits = || ConcurrencyLimit::new(64);
    let clock = TscClock::new;

    let of_bucket = leak(Flow::new(bucket(), clock()));
    let with_breaker = leak(Flow::new(bucket(), clock()).breaker(breaker()));
    let with_permits = leak(Flow::new(bucket(), clock()).concurrency(permits()));
    let whole = leak(Flow::new(bucket(), clock()).breaker(breaker()).concurrency(permits()));
    let observed = leak(Flow::new(bucket(), clock()).breaker(breaker()).concurrency(permits()).observed_by(()));
    let adjustable = AdjustableBucket::with_limit(limit(), ());
    let adjustable = leak(Flow::new(adjustable, clock()).breaker(breaker()).concurrency(permits()));
    vec![
        Contestant::new(PLAIN, || _ = black_box(call())),
        Contestant::new("`TokenBucket` alone", || _ = black_box(of_bucket.call(1, call))),
        Contestant::new("`TokenBucket`, `CircuitBreaker`", || _ = black_box(with_breaker.call(1, call))),
        Contestant::new("`TokenBucket`, `ConcurrencyLimit`", || _ = black_box(with_permits.call(1, call))),
        Contestant::new(WHOLE, || _ = black_box(whole.call(1, call))),
        Contestant::new("the same, with an empty observer", || _ = black_box(observed.call(1, call))),
        Contestant::new("the same, with an `AdjustableBucket`", || _ = black_box(adjustable.call(1, call))),
    ]
}

/// Something that can fail and does not.
#[inline(never)]
fn call() -> Result<u64, u64> {
    black_box(Ok(7))
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_calls() {
        let timings = measure(Effort::TRIAL);
        assert_eq!(timings.len(), 7);
        assert!(timings.iter().any(|timing| timing.name == WHOLE));
    }
}
