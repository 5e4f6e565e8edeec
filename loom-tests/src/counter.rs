//! Bodies of the sliding counter's models. Bounds and costs are beside the tests that run them.
//!
//! The window is a second; `NOW` begins one, `LATER` the next, and `HALF` lies in the middle of that.

use core::time::Duration;
use std::sync::Arc;

use sluicegate_core::{Nanos, Remaining};

use crate::{Counter, promise, race2, race3};

/// Two callers, one unit: one is admitted and left nothing; the other is told when all there is counts less.
pub fn last_unit_of_two<C: Counter>() {
    let counter = units::<C>(2);
    take(&*counter, NOW, 1);
    let answers = race2(&counter, |counter| counter.try_acquire(NOW, 1), |counter| counter.try_acquire(NOW, 1));
    let (taken, wait) = match answers {
        (Ok(taken), Err(wait)) | (Err(wait), Ok(taken)) => (taken, wait),
        answers => return promise!(false, "exactly one of two gets the last unit: {answers:?}"),
    };
    promise!(taken.remaining == Remaining::Exactly(0) && taken.at == NOW, "the last unit leaves none: {taken:?}");
    promise!(wait == Duration::from_millis(1_500), "half of the two is let go in the middle of the next: {wait:?}");
    promise!(counter.free(NOW) == 0, "nothing is left");
}

/// Three callers, two units: two are admitted, and what each was left is what was left then.
pub fn last_units_of_three<C: Counter>() {
    let counter = units::<C>(2);
    let take_one = |counter: &C| counter.try_acquire(NOW, 1).ok().and_then(|taken| taken.remaining.exactly());
    let (a, b, c) = race3(&counter, take_one, take_one, take_one);
    let mut left: Vec<u64> = [a, b, c].into_iter().flatten().collect();
    left.sort_unstable();
    promise!(left == [0, 1], "exactly two of three get the last two units, one after the other: left {left:?}");
}

/// A cost of 2 on one unit is denied whatever happens, and its denial takes nothing, not even for an instant.
pub fn denial_takes_nothing<C: Counter>() {
    let counter = units::<C>(2);
    take(&*counter, NOW, 1);
    let (large, small) =
        race2(&counter, |counter| counter.try_acquire(NOW, 2).is_ok(), |counter| counter.try_acquire(NOW, 1).is_ok());
    promise!(!large, "two units were never there");
    promise!(small, "a unit was there all the time");
    promise!(counter.free(NOW) == 0, "nothing is left");
}

/// Two callers that both open the next window, in which half of the limit has been let go: what the window before took is
/// carried over once, and so is what the first of them took.
pub fn rollover_against_rollover<C: Counter>() {
    let counter = units::<C>(4);
    take(&*counter, NOW, 4);
    let (a, b) =
        race2(&counter, |counter| counter.try_acquire(HALF, 2).is_ok(), |counter| counter.try_acquire(HALF, 1).is_ok());
    promise!(a != b, "two units are free in the middle of the next window, and three were asked for: {:?}", (a, b));
    promise!(counter.free(HALF) == if a { 0 } else { 1 }, "what was admitted counts");
    let end = counter.free(AFTER);
    promise!(end == if a { 2 } else { 3 }, "the window after next counts what this one took, and nothing else: {end}");
}

/// A caller that opens the next window against a late one: the late one is counted before it or after it, and neither reopens
/// the old window nor resets the new one.
pub fn rollover_against_late_reading<C: Counter>() {
    let counter = units::<C>(4);
    take(&*counter, NOW, 2);
    let (late, new) =
        race2(&counter, |counter| counter.try_acquire(NOW, 1), |counter| counter.try_acquire(HALF, 2).is_ok());
    promise!(new, "at most three of the four were taken, and half of them have been let go");
    let first = match late {
        // Two before, and two in the new window, fill its start.
        Err(wait) => {
            promise!(wait == Duration::from_millis(1_500), "half of two has to go: {wait:?}");
            false
        }
        Ok(taken) => {
            promise!(taken.at == NOW, "only before the new window was opened: {taken:?}");
            true
        }
    };
    let free = counter.free(LATER);
    promise!(free == 0, "nothing is free at the start of the new window: {free}");
    let end = counter.free(AFTER);
    promise!(end == 2, "the new window took two, late or not: {end} after {first}");
}

/// A refund against an acquire of what it gives back: units are neither lost nor made.
pub fn refund_against_acquire<C: Counter>() {
    let counter = units::<C>(2);
    take(&*counter, NOW, 2);
    let (admitted, ()) =
        race2(&counter, |counter| counter.try_acquire(NOW, 1).is_ok(), |counter| counter.refund(NOW, 1));
    let free = counter.free(NOW);
    promise!(free + u64::from(admitted) == 1, "one unit came back: {admitted}, {free} left");
}

/// A refund of the old window against a caller that opens the next: it comes back to the old one, wherever that is counted.
pub fn refund_against_rollover<C: Counter>() {
    let counter = units::<C>(4);
    take(&*counter, NOW, 4);
    let (admitted, ()) =
        race2(&counter, |counter| counter.try_acquire(HALF, 1).is_ok(), |counter| counter.refund(NOW, 2));
    promise!(admitted, "half of the old window has been let go, whatever came back");
    let free = counter.free(LATER);
    promise!(free == 1, "two of the old window and one of the new count at its start: {free}");
    let free = counter.free(AFTER);
    promise!(free == 3, "nothing was given back to the new window: {free}");
}

/// Two refunds, more than was taken: the counter never has more than its limit free.
pub fn refund_against_refund<C: Counter>() {
    let counter = units::<C>(3);
    take(&*counter, NOW, 2);
    let ((), ()) = race2(&counter, |counter| counter.refund(NOW, 2), |counter| counter.refund(NOW, 1));
    promise!(counter.free(NOW) == 3, "all of the limit is free");
    let more = (0..4).filter(|_| counter.try_acquire(NOW, 1).is_ok()).count();
    promise!(more == 3, "the limit can be taken, and no more: {more}");
}

/// One unit at least is free at every instant, so nobody may be denied.
pub fn unit_always_free<C: Counter>() {
    let counter = units::<C>(2);
    take(&*counter, NOW, 1);
    let refund_and_take = |counter: &C| {
        counter.refund(NOW, 1);
        counter.try_acquire(NOW, 1).is_ok()
    };
    let (a, b) = race2(&counter, refund_and_take, |counter| counter.try_acquire(NOW, 1).is_ok());
    promise!(a && b, "a unit was free at every instant: {:?}", (a, b));
    promise!(counter.free(NOW) == 0, "nothing is left");
}

/// Looking takes nothing and never sees time run back: once the unit was seen gone, it stays gone.
pub fn looking_takes_nothing<C: Counter>() {
    let counter = units::<C>(2);
    take(&*counter, NOW, 1);
    let look = |counter: &C| [u64::from(counter.peek(NOW, 1).is_ok()), counter.free(NOW), counter.free(NOW)];
    let (seen, admitted) = race2(&counter, look, |counter| counter.try_acquire(NOW, 1).is_ok());
    promise!(admitted, "looking took the unit");
    promise!(seen.is_sorted_by(|before, after| before >= after), "the unit came back by itself: {seen:?}");
    promise!(counter.free(NOW) == 0, "nothing is left");
}

fn units<C: Counter>(limit: u64) -> Arc<C> {
    Arc::new(C::new(limit))
}

fn take<C: Counter>(counter: &C, now: Nanos, cost: u64) {
    promise!(counter.try_acquire(now, cost).is_ok(), "nobody races yet");
}

/// Far from the origin, so that an unused state is of an older window.
const NOW: Nanos = Nanos::from_secs(100);
const LATER: Nanos = Nanos::from_secs(101);
const HALF: Nanos = Nanos::from_millis(101_500);
const AFTER: Nanos = Nanos::from_secs(102);
