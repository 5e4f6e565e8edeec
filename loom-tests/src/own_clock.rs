//! Bodies of the models of calls that read a clock. Bounds and costs are beside the tests that run them.
//!
//! A caller is suspended between its reading and its decision, while the clock moves on and others take.

use std::sync::Arc;

use crate::{Clocked, promise, race2, race3};

/// One unit is there now, and one more later, when another caller takes one: whoever comes first, at every instant there is
/// one for each.
pub fn overtaken_at_a_later_reading<C: Clocked>() {
    let limiter = Arc::new(C::new());
    let (suspended, other) = race2(&limiter, C::try_acquire, |limiter| {
        limiter.go_on();
        limiter.try_acquire()
    });
    promise!(other, "one for each");
    promise!(suspended, "a unit was there at every instant");
}

/// A window with one unit left ends, and then a late caller takes that unit: who is overtaken by both finds the next window.
pub fn overtaken_by_the_end_of_the_window<C: Clocked>() {
    let limiter = Arc::new(C::new());
    let (suspended, late) = race2(&limiter, C::try_acquire, |limiter| {
        limiter.go_on();
        limiter.try_acquire_late()
    });
    promise!(suspended, "the last unit was taken after the window's end: {late}");
}

/// The same with another caller beside the first: if the late one takes the last unit, the next window has one for each.
pub fn two_overtaken_by_the_end_of_the_window<C: Clocked>() {
    let limiter = Arc::new(C::new());
    let (a, b, late) = race3(&limiter, C::try_acquire, C::try_acquire, |limiter| {
        limiter.go_on();
        limiter.try_acquire_late()
    });
    promise!(a || b, "there was a unit for one at the least");
    promise!((a && b) || !late, "the last unit was taken after the window's end: {:?}", (a, b));
}
