//! Bodies of the leaky bucket's models. Bounds and costs are beside the tests that run them.
//!
//! One token goes out a second.

use std::sync::Arc;

use sluicegate_core::Nanos;

use crate::{Pacer, promise, race2, race3};

/// Two items at an idle bucket: one departs at once, the other a second later.
pub fn slots_of_two<P: Pacer>() {
    let pacer = Arc::new(P::new(5));
    let (a, b) = race2(&pacer, arrives(NOW, 1), arrives(NOW, 1));
    promise!(sorted([a, b]) == [Some(0), Some(1)], "a slot each: {a:?}, {b:?}");
}

/// Three items, a queue of one: one departs at once, one a second later, one is refused.
pub fn last_place_in_the_queue<P: Pacer>() {
    let pacer = Arc::new(P::new(1));
    let (a, b, c) = race3(&pacer, arrives(NOW, 1), arrives(NOW, 1), arrives(NOW, 1));
    promise!(sorted([a, b, c]) == [None, Some(0), Some(1)], "two slots and no more: {a:?}, {b:?}, {c:?}");
}

/// Costs of 2 and 1: whoever comes second departs when the cost of the first has gone.
pub fn costs_above_one<P: Pacer>() {
    let pacer = Arc::new(P::new(5));
    let (two, one) = race2(&pacer, arrives(NOW, 2), arrives(NOW, 1));
    let is_one_of_the_orders = (two, one) == (Some(0), Some(2)) || (two, one) == (Some(1), Some(0));
    promise!(is_one_of_the_orders, "no order of the two: {two:?}, {one:?}");
    promise!(arrive(&*pacer, NOW, 1) == Some(3), "three slots are used");
}

/// A refusal takes nothing, not even for an instant.
pub fn refusal_takes_nothing<P: Pacer>() {
    let pacer = Arc::new(P::new(1));
    promise!(arrive(&*pacer, NOW, 1) == Some(0) && arrive(&*pacer, NOW, 1) == Some(1), "nobody races yet");
    // Behind two tokens at NOW, and behind one a second later.
    let (refused, accepted) = race2(&pacer, arrives(NOW, 2), arrives(NOW + SECOND, 1));
    promise!(accepted == Some(2), "there was a place all the time: {accepted:?}");
    promise!(refused.is_none(), "there was no place at any time: {refused:?}");
}

/// A late reading against a newer one: a slot each, a second apart, whoever comes first.
pub fn late_reading<P: Pacer>() {
    let pacer = Arc::new(P::new(5));
    let (late, new) = race2(&pacer, arrives(NOW, 1), arrives(NOW + SECOND, 1));
    let is_one_of_the_orders = (late, new) == (Some(0), Some(1)) || (late, new) == (Some(2), Some(1));
    promise!(is_one_of_the_orders, "no order of the two: {late:?}, {new:?}");
    let next = arrive(&*pacer, NOW, 1);
    promise!(next == late.max(new).map(|at| at + 1), "a slot was used twice: {late:?}, {new:?}, then {next:?}");
}

/// Giving the newest slot up against an arrival: it goes to the item that comes, or stays used behind it.
pub fn cancel_against_arrival<P: Pacer>() {
    let pacer = Arc::new(P::new(5));
    promise!(arrive(&*pacer, NOW, 1) == Some(0), "nobody races yet");
    let second = pacer.try_acquire(NOW, 1).expect("nobody races yet");
    let (came, cancelled) = race2(&pacer, arrives(NOW, 1), |pacer| pacer.cancel(second).is_ok());
    let expected = if cancelled { 1 } else { 2 };
    promise!(came == Some(expected), "given up: {cancelled}, and the next departs at {came:?}");
    let next = arrive(&*pacer, NOW, 1);
    promise!(next == Some(expected + 1), "a slot was lost or made: {next:?} after {came:?}");
}

/// Both of two slots given up at once: the newer one always is; the older one only if the newer one was before.
pub fn cancel_against_cancel<P: Pacer>() {
    let pacer = Arc::new(P::new(5));
    let first = pacer.try_acquire(NOW, 1).expect("nobody races yet");
    let second = pacer.try_acquire(NOW, 1).expect("nobody races yet");
    let cancel_first = |pacer: &P| pacer.cancel(first).is_ok();
    let (older, newer) = race2(&pacer, cancel_first, |pacer| pacer.cancel(second).is_ok());
    promise!(newer, "the newest can always be given up");
    let next = arrive(&*pacer, NOW, 1);
    promise!(next == Some(u64::from(!older)), "the older was given up: {older}, and the next departs at {next:?}");
}

/// Two cancel while a third arrives: no slot is lost or made.
pub fn cancel_against_cancel_and_arrival<P: Pacer>() {
    let pacer = Arc::new(P::new(5));
    let first = pacer.try_acquire(NOW, 1).expect("nobody races yet");
    let second = pacer.try_acquire(NOW, 1).expect("nobody races yet");
    let cancel_first = |pacer: &P| pacer.cancel(first).is_ok();
    let cancel_second = |pacer: &P| pacer.cancel(second).is_ok();
    let (older, newer, came) = race3(&pacer, cancel_first, cancel_second, arrives(NOW, 1));
    let at = came.unwrap_or(u64::MAX);
    let next = arrive(&*pacer, NOW, 1);
    promise!(next == Some(at + 1), "the arrival is the newest: {at}, then {next:?}");
    promise!(at >= 2 - u64::from(newer) - u64::from(older), "a slot was made: {at} after {older}, {newer}");
    promise!(newer || at == 2, "a slot was lost: {at} after {older}, {newer}");
}

fn arrives<P: Pacer>(now: Nanos, cost: u64) -> impl Fn(&P) -> Option<u64> + Copy + Send + 'static {
    move |pacer| arrive(pacer, now, cost)
}

/// The seconds after NOW at which an item departs that keeps its slot, or nothing if it is refused.
fn arrive<P: Pacer>(pacer: &P, now: Nanos, cost: u64) -> Option<u64> {
    let departure = pacer.try_acquire(now, cost)?;
    let at = P::at(&departure);
    promise!(at >= now, "departed before it came: {at} at {now}");
    Some(at.saturating_duration_since(NOW).as_secs())
}

fn sorted<const N: usize>(mut departures: [Option<u64>; N]) -> [Option<u64>; N] {
    departures.sort_unstable();
    departures
}

const NOW: Nanos = Nanos::from_secs(100);
const SECOND: core::time::Duration = core::time::Duration::from_secs(1);
