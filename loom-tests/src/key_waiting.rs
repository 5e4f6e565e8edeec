//! Bodies of the models of waiting for a key, whose queue comes with the first who waits and goes with the last. Bounds and costs
//! are beside the tests that run them.

use std::sync::Arc;

use sluicegate_core::Denied;

use crate::{KeyQueue, Waiter, promise, race2};

/// The last one leaves while another begins to wait: what comes back then reaches that one.
pub fn last_leaves_against_joining<K: KeyQueue>() {
    let keys = empty::<K>();
    let last = begin(&*keys);
    let ((), mut next) = race2(&keys, |_| drop(last), begin);
    promise!(next.answer().is_none() && keys.queues() == 1, "one waits: {next:?}, {} queues", keys.queues());
    keys.give_back();
    next.run();
    promise!(next.is_granted(), "what came back did not reach it");
    nothing_is_left(&*keys, 0);
}

/// The only two leave at once: one of them is the last, and takes the queue away.
pub fn two_leave_at_once<K: KeyQueue>() {
    let keys = empty::<K>();
    let (a, b) = (begin(&*keys), begin(&*keys));
    race2(&keys, |_| drop(a), |_| drop(b));
    nothing_is_left(&*keys, 0);
}

/// Somebody tries while the last one leaves: whichever of them has the queue last takes it away.
pub fn look_against_the_last_who_leaves<K: KeyQueue>() {
    let keys = empty::<K>();
    let last = begin(&*keys);
    let (is_taken, ()) = race2(&keys, K::try_acquire, |_| drop(last));
    promise!(!is_taken, "there is nothing");
    nothing_is_left(&*keys, 0);
}

/// One comes back while somebody begins to wait for it: it is not left there unseen.
pub fn give_back_against_joining<K: KeyQueue>() {
    let keys = empty::<K>();
    let (mut waiter, ()) = race2(&keys, begin, K::give_back);
    waiter.run();
    promise!(waiter.is_granted(), "it is there, and who waits for it was not told: {waiter:?}");
    nothing_is_left(&*keys, 0);
}

/// One comes back while the first of two leaves: granted to the first or not, the second one gets it.
pub fn give_back_against_leaving<K: KeyQueue>() {
    let keys = empty::<K>();
    let (first, mut second) = (begin(&*keys), begin(&*keys));
    race2(&keys, |_| drop(first), K::give_back);
    second.run();
    promise!(second.is_granted(), "the first one left, and what came back is lost: {second:?}");
    nothing_is_left(&*keys, 0);
}

/// The store is closed while somebody begins to wait: it does not wait for ever.
pub fn close_against_joining<K: KeyQueue>() {
    let keys = empty::<K>();
    let (mut waiter, ()) = race2(&keys, begin, K::close);
    waiter.run();
    promise!(waiter.answer() == Some(Err(Denied::Closed)), "it waits for a store that is closed: {waiter:?}");
    nothing_is_left(&*keys, 0);
}

/// The key has one, which was taken.
fn empty<K: KeyQueue>() -> Arc<K> {
    let keys = Arc::new(K::new(1));
    promise!(keys.try_acquire(), "nobody races yet");
    keys
}

fn begin<K: KeyQueue>(keys: &K) -> Waiter<()> {
    Waiter::begin(keys.acquire())
}

fn nothing_is_left<K: KeyQueue>(keys: &K, free: u64) {
    promise!(keys.queues() == 0, "nobody waits, and there is a queue");
    promise!(keys.free() == free, "{} is free", keys.free());
}
