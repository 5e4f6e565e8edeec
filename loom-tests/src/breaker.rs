//! Bodies of the circuit breaker's models. Bounds and costs are beside the tests that run them.
//!
//! A call that passes a closed breaker reads the door and takes no lock; everything else is done under it.

use core::mem::forget;
use core::sync::atomic::Ordering::{Acquire, Release};

use sluicegate_core::BreakerPhase::{Closed, HalfOpen, Open};
use sluicegate_core::CallOutcome::{Failure, Success};
use sluicegate_core::Nanos;
use std::sync::Arc;

use crate::circuit::{COOL_DOWN, COOLED, NOW, PATIENCE};
use crate::shim::AtomicU64;
use crate::{Breaker, promise, race2, race3};

/// One failure trips it, and another caller learns of that by a flag or by the phase: whoever begins a call after the trip is refused.
pub fn trip_is_seen<B: Breaker>() {
    let shared = Arc::new((B::new(1, 1), AtomicU64::new(0)));
    let call_if_tripped = |(breaker, tripped): &(Arc<B>, AtomicU64)| match tripped.load(Acquire) {
        0 => false,
        _ => breaker.try_call(NOW).is_some(),
    };
    let call_if_open = |(breaker, _): &(Arc<B>, AtomicU64)| match breaker.phase() {
        Open => breaker.try_call(NOW).is_some(),
        _ => false,
    };
    let trip = |(breaker, tripped): &(Arc<B>, AtomicU64)| {
        call(&**breaker, NOW, Failure);
        let again = breaker.try_call(NOW).is_some();
        tripped.store(1, Release);
        again
    };
    let passed = race3(&shared, call_if_tripped, call_if_open, trip);
    promise!(passed == (false, false, false), "a call passed after the trip: {passed:?}");
}

/// A failure that trips it, against another call that fails: it passes before the trip or not at all, and however late it ends, it
/// trips once.
pub fn trip_against_a_call<B: Breaker>() {
    let breaker = B::new(1, 1);
    let passed = pass(&*breaker, NOW);
    race2(&breaker, |breaker| call(breaker, NOW, Failure), |_| B::settle(passed, NOW, Failure));
    promise!((breaker.phase(), breaker.trips()) == (Open, 1), "{:?}, {}", breaker.phase(), breaker.trips());
    consistent(&*breaker);
}

/// A call from before a trip ends while others trip the breaker and close it again by a probe: it says nothing about the breaker that
/// is closed now.
pub fn late_failure_against_trip_and_probe<B: Breaker>() {
    let breaker = B::new(1, 1);
    let passed = pass(&*breaker, NOW);
    let trip_and_probe = |breaker: &B| {
        breaker.trip(NOW);
        // Two seconds later, in case that was the second trip.
        call(breaker, NOW.saturating_add(COOL_DOWN * 2), Success)
    };
    let (probed, ()) = race2(&breaker, trip_and_probe, |_| B::settle(passed, NOW, Failure));
    promise!(probed, "it had cooled down");
    promise!((breaker.phase(), breaker.trips()) == (Closed, 0), "{:?}, {}", breaker.phase(), breaker.trips());
    consistent(&*breaker);
}

/// The same with a success, where it takes two in a row of the failures that came meanwhile to trip it: it does not come between them.
pub fn late_success_against_failures<B: Breaker>() {
    let breaker = B::new(2, 1);
    let passed = pass(&*breaker, NOW);
    breaker.close(NOW);
    let fail_twice = |breaker: &B| {
        call(breaker, NOW, Failure);
        call(breaker, NOW, Failure);
    };
    race2(&breaker, fail_twice, |_| B::settle(passed, NOW, Success));
    promise!(breaker.phase() == Open, "two failed in a row, and a result of another time came between");
    consistent(&*breaker);
}

/// Three failures, each of which is enough: it trips once, its observer is told once, and it cools down as after the first time.
pub fn racing_trips<B: Breaker>() {
    let breaker = B::new(1, 1);
    let passed = pass(&*breaker, NOW);
    let fail = |breaker: &B| call(breaker, NOW, Failure);
    race3(&breaker, fail, fail, |_| B::settle(passed, NOW, Failure));
    promise!(breaker.trips() == 1, "tripped {} times", breaker.trips());
    promise!(breaker.told().changes() == [(Closed, Open)], "told of {:?}", breaker.told().changes());
    promise!(breaker.try_call(Nanos::new(COOLED.as_u64() - 1)).is_none(), "it cools down for a second");
    promise!(leave_out(&*breaker, COOLED), "it cools down for no longer than a second");
    consistent(&*breaker);
}

/// Two failures in a row are needed, and two fail: the second one trips it, whichever that is.
pub fn failures_in_a_row<B: Breaker>() {
    let breaker = B::new(2, 1);
    let passed = pass(&*breaker, NOW);
    race2(&breaker, |breaker| call(breaker, NOW, Failure), |_| B::settle(passed, NOW, Failure));
    promise!((breaker.phase(), breaker.trips()) == (Open, 1), "{:?}, {}", breaker.phase(), breaker.trips());
    consistent(&*breaker);
}

/// Three callers when it has cooled down, and one probe: exactly one passes.
pub fn one_probe_of_three<B: Breaker>() {
    probes_of_three::<B>(1);
}

/// Three callers when it has cooled down, and two probes: exactly two pass.
pub fn two_probes_of_three<B: Breaker>() {
    probes_of_three::<B>(2);
}

fn probes_of_three<B: Breaker>(probes: u32) {
    let breaker = tripped::<B>(probes);
    let keep = |breaker: &B| leave_out(breaker, COOLED);
    let (a, b, c) = race3(&breaker, keep, keep, keep);
    let passed = [a, b, c].iter().filter(|passed| **passed).count();
    promise!(passed == probes as usize, "{passed} passed, of {probes} probes");
    promise!(breaker.phase() == HalfOpen, "nobody has come back");
    consistent(&*breaker);
}

/// A probe is dropped while two others come: its place goes to exactly one, of them or of those who come later.
pub fn dropped_probe_against_two<B: Breaker>() {
    let breaker = tripped::<B>(1);
    let probe = pass(&*breaker, COOLED);
    let keep = |breaker: &B| leave_out(breaker, COOLED);
    let (a, b, ()) = race3(&breaker, keep, keep, |_| drop(probe));
    let later = leave_out(&*breaker, COOLED);
    let passed = [a, b, later].iter().filter(|passed| **passed).count();
    promise!(passed == 1, "its place went to {passed}");
    promise!(!leave_out(&*breaker, COOLED), "its place went to one more");
    consistent(&*breaker);
}

/// One probe succeeds while the other fails: it is open afterwards, never closed.
pub fn success_against_failure<B: Breaker>() {
    let breaker = tripped::<B>(2);
    let probe = pass(&*breaker, COOLED);
    let (failed, ()) = race2(&breaker, |breaker| call(breaker, COOLED, Failure), |_| B::settle(probe, COOLED, Success));
    promise!(failed, "there was a place for it");
    promise!((breaker.phase(), breaker.trips()) == (Open, 2), "{:?}, {}", breaker.phase(), breaker.trips());
    let all = [(Closed, Open), (Open, HalfOpen), (HalfOpen, Open)];
    promise!(breaker.told().changes() == all, "told of {:?}", breaker.told().changes());
    consistent(&*breaker);
}

/// Both probes succeed while another call fails: it closes, and that call passed after that, as one of the closed breaker, or not at all.
pub fn success_against_success<B: Breaker>() {
    let breaker = tripped::<B>(2);
    let probe = pass(&*breaker, COOLED);
    let second = pass(&*breaker, COOLED);
    let fail = |breaker: &B| call(breaker, COOLED, Failure);
    let (failed, ()) = race2(&breaker, fail, |_| {
        B::settle(probe, COOLED, Success);
        B::settle(second, COOLED, Success);
    });
    let phase = if failed { Open } else { Closed };
    promise!(breaker.phase() == phase, "{:?}, where a call of the closed breaker failed: {failed}", breaker.phase());
    promise!(breaker.trips() == u32::from(failed), "tripped {} times", breaker.trips());
    consistent(&*breaker);
}

/// A probe that was given up fails late, while the next one passes and succeeds: it is closed afterwards.
pub fn late_failure_of_a_probe<B: Breaker>() {
    let breaker = tripped::<B>(1);
    let probe = pass(&*breaker, COOLED);
    let succeed = |breaker: &B| call(breaker, GIVEN_UP, Success);
    // At a reading by which it has cooled down twice when the patience is over, if the late one comes first.
    let (passed, ()) = race2(&breaker, succeed, |_| B::settle(probe, COOLED, Failure));
    promise!(passed, "it had cooled down, or the probe was given up");
    promise!((breaker.phase(), breaker.trips()) == (Closed, 0), "{:?}, {}", breaker.phase(), breaker.trips());
    consistent(&*breaker);
}

/// A probe of two succeeds when patience with it is over, while one of the next two passes. Where it came first it counts, because nobody had given it up, and no place is left; else
/// that one and a second have still to succeed.
pub fn late_success_of_a_probe<B: Breaker>() {
    let breaker = tripped::<B>(2);
    let probe = pass(&*breaker, COOLED);
    let keep = |breaker: &B| leave_out(breaker, GIVEN_UP);
    let (passed, ()) = race2(&breaker, keep, |_| B::settle(probe, GIVEN_UP, Success));
    promise!(passed, "the first was given up, or is not out any more");
    let _second = call(&*breaker, GIVEN_UP, Success);
    promise!(breaker.phase() == HalfOpen, "one of the two is still out");
    promise!(!leave_out(&*breaker, GIVEN_UP), "two have passed");
    consistent(&*breaker);
}

/// A probe that was given up succeeds while two others come: they are calls of a closed breaker, or exactly one of them is a probe.
pub fn patience_against_success<B: Breaker>() {
    let breaker = tripped::<B>(1);
    let probe = pass(&*breaker, COOLED);
    let keep = |breaker: &B| leave_out(breaker, GIVEN_UP);
    let (a, b, ()) = race3(&breaker, keep, keep, |_| B::settle(probe, GIVEN_UP, Success));
    match breaker.phase() {
        Closed => promise!(a && b, "closed by the first probe, before anybody came: {a}, {b}"),
        phase => promise!(phase == HalfOpen && a != b, "one is out, and no more: {a}, {b}"),
    }
    consistent(&*breaker);
}

/// A probe that was given up is dropped while two others come: exactly one of them passes. What was given up has no place to give.
pub fn patience_against_drop<B: Breaker>() {
    let breaker = tripped::<B>(1);
    let probe = pass(&*breaker, COOLED);
    let keep = |breaker: &B| leave_out(breaker, GIVEN_UP);
    let (a, b, ()) = race3(&breaker, keep, keep, |_| drop(probe));
    promise!(a != b, "exactly one is out: {a}, {b}");
    promise!(!leave_out(&*breaker, GIVEN_UP), "a place came back that had been given up");
    consistent(&*breaker);
}

/// It is closed by hand while a probe fails: it is closed afterwards, and the failure is of the past.
pub fn close_against_a_probe<B: Breaker>() {
    let breaker = tripped::<B>(1);
    let probe = pass(&*breaker, COOLED);
    race2(&breaker, |breaker| breaker.close(COOLED), |_| B::settle(probe, COOLED, Failure));
    promise!((breaker.phase(), breaker.trips()) == (Closed, 0), "{:?}, {}", breaker.phase(), breaker.trips());
    consistent(&*breaker);
}

/// It is closed by hand while others trip it: it is one or the other, and its door is as its phase.
pub fn close_against_trip<B: Breaker>() {
    let breaker = B::new(1, 1);
    race2(&breaker, |breaker| breaker.close(NOW), |breaker| breaker.trip(NOW));
    promise!(breaker.phase() != HalfOpen, "nobody has called");
    consistent(&*breaker);
}

/// It is opened by hand while a call passes and fails: it is open afterwards, and who opened it passes no more.
pub fn trip_by_hand_against_a_call<B: Breaker>() {
    let breaker = B::new(1, 1);
    let trip = |breaker: &B| {
        breaker.trip(NOW);
        breaker.try_call(NOW).is_some()
    };
    let (_, passed) = race2(&breaker, |breaker| call(breaker, NOW, Failure), trip);
    promise!(!passed, "a call passed after the trip");
    promise!(breaker.phase() == Open && (1..=2).contains(&breaker.trips()), "tripped {} times", breaker.trips());
    consistent(&*breaker);
}

/// The observer makes a call whenever it is told, while others trip the breaker: it is told outside of the lock, so nobody waits for ever.
pub fn observer_looks<B: Breaker>() {
    let breaker = B::new(1, 1);
    breaker.told().look_at(&breaker);
    let fail = |breaker: &B| call(breaker, NOW, Failure);
    race2(&breaker, fail, |breaker| {
        call(breaker, NOW, Failure);
        breaker.close(NOW);
    });
    consistent(&*breaker);
}

/// What holds once all are done: the changes that were told are those that were made, and the door is shut unless it is closed.
fn consistent<B: Breaker>(breaker: &B) {
    let (changes, phase) = (breaker.told().changes(), breaker.phase());
    // In whatever order they are told, they lead from closed to where it is.
    for of in [Closed, Open, HalfOpen] {
        let left = changes.iter().filter(|(from, _)| *from == of).count() + usize::from(phase == of);
        let reached = changes.iter().filter(|(_, to)| *to == of).count() + usize::from(of == Closed);
        promise!(left == reached, "{changes:?} were told, and it is {phase:?}");
    }
    // Before it has cooled down; and where it is half-open no model leaves a place.
    let passes = breaker.try_call(NOW).is_some();
    promise!(passes == (phase == Closed), "it is {phase:?}, and a call passes: {passes}");
}

/// One that has tripped, and cools down for a second.
fn tripped<B: Breaker>(probes: u32) -> Arc<B> {
    let breaker = B::new(1, probes);
    breaker.trip(NOW);
    breaker
}

fn pass<B: Breaker>(breaker: &B, now: Nanos) -> B::Passed<'_> {
    breaker.try_call(now).expect("nobody races yet")
}

/// A call, if it passes.
fn call<B: Breaker>(breaker: &B, now: Nanos, outcome: sluicegate_core::CallOutcome) -> bool {
    breaker.try_call(now).map(|passed| B::settle(passed, now, outcome)).is_some()
}

/// A call, if it passes, that does not come back.
fn leave_out<B: Breaker>(breaker: &B, now: Nanos) -> bool {
    breaker.try_call(now).map(forget).is_some()
}

/// When probes of then have been given up.
const GIVEN_UP: Nanos = COOLED.saturating_add(PATIENCE);
