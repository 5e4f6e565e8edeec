//! What an action costs that has no limit: a limiter that is asked, and admits whatever comes.

use alloc::boxed::Box;
use core::hint::black_box;

use parking_lot::RawRwLock;
use sluicegate_threads::sluicegate_core::{
    AdjustableBucket, KeyedTokenBucket, ShardedWindow, TokenBucket, WindowLimit,
};
use sluicegate_threads::{FixedShard, Limit, SeededState, Shard, TscClock};

use crate::interleaved::{Contestant, Effort, Timing, compare};

/// The loop with nothing in it.
const NOTHING: &str = "nothing";

/// Nanoseconds that an action that is off may cost.
pub const TARGET: f64 = 1.0;

/// Measures: the first is the loop with nothing in it, which every other figure includes.
pub fn measure(effort: Effort) -> Vec<Timing> {
    compare(&mut contestants(), NOTHING, effort)
}

fn contestants() -> Vec<Contestant<'static>> {
    // Off is what the limiter finds out, not the compiler.
    let off = || black_box(Limit::Unlimited);
    let bucket = TokenBucket::with_clock(off(), TscClock::new());
    let adjustable = AdjustableBucket::with_clock(off(), TscClock::new());
    let limit = WindowLimit::new(off()).expect("a limit");
    let window: ShardedWindow<[Shard; 4], _, _> = ShardedWindow::with_array(limit, TscClock::new(), FixedShard(0));
    let store = KeyedTokenBucket::<u64, RawRwLock, SeededState, _>::with_clock(off(), TscClock::new());
    vec![
        admitting(NOTHING, &(), |()| true),
        // Leaked, so that the loop cannot keep what the limiter reads in registers.
        admitting("`TokenBucket`", leak(bucket), |bucket| bucket.try_acquire(1).is_ok()),
        admitting("`AdjustableBucket`", leak(adjustable), |bucket| bucket.try_acquire(1).is_ok()),
        admitting("`ShardedWindow`", leak(window), |window| window.try_acquire(1).is_ok()),
        admitting("`KeyedTokenBucket`", leak(store), |store| store.try_acquire(&7, 1).is_ok()),
    ]
}

fn admitting<L>(name: &'static str, limiter: &'static L, ask: impl Fn(&L) -> bool + 'static) -> Contestant<'static> {
    assert!(ask(limiter), "{name} is not off");
    Contestant::new(name, move || _ = black_box(ask(black_box(limiter))))
}

fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_off() {
        assert_eq!(measure(Effort::TRIAL).len(), 5);
    }
}
