//! Bodies of the keyed store's models. Bounds and costs are beside the tests that run them.

use std::sync::Arc;

use sluicegate_core::{Nanos, Quota, quota};

use crate::{Served, Store, promise, race2, race3};

/// Two first uses of one key with one token: one is admitted, and the key is there once.
pub fn first_use_of_two<S: Store>() {
    let store = store::<S>(quota!("1/1s"), 9);
    let first = |store: &S| store.decide(KEY, NOW, 1);
    let answers = race2(&store, first, first);
    let admitted = <[_; 2]>::from(answers).iter().filter(|served| **served == Served::Admitted).count();
    promise!(admitted == 1, "exactly one of two gets the only token: {answers:?}");
    promise!(store.keys() == 1 && store.level(KEY, NOW) == Some(0), "the key is there once, and spent");
}

/// Three first uses of one key with two tokens: two are admitted.
pub fn first_use_of_three<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    let first = |store: &S| store.decide(KEY, NOW, 1) == Served::Admitted;
    let (a, b, c) = race3(&store, first, first, first);
    let admitted = [a, b, c].into_iter().filter(|admitted| *admitted).count();
    promise!(admitted == 2, "exactly two of three get the two tokens: {admitted}");
    promise!(store.keys() == 1 && store.level(KEY, NOW) == Some(0), "the key is there once, and spent");
}

/// Two callers of a key that is there, one token left: one is admitted.
pub fn last_token_of_a_present_key<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, NOW, 1);
    let take_one = |store: &S| store.decide(KEY, NOW, 1);
    let answers = race2(&store, take_one, take_one);
    let admitted = <[_; 2]>::from(answers).iter().filter(|served| **served == Served::Admitted).count();
    promise!(admitted == 1, "exactly one of two gets the last token: {answers:?}");
}

/// First uses of two keys in two shards, with a place for one: exactly one gets it.
pub fn last_place_of_two<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 2);
    take(&*store, NEIGHBOUR, NOW, 1);
    let (a, b) = race2(&store, |store| store.decide(KEY, NOW, 1), |store| store.decide(OTHER, NOW, 1));
    let served = [a, b];
    promise!(
        served.contains(&Served::Admitted) && served.contains(&Served::TooManyKeys),
        "exactly one of two gets the only place: {served:?}"
    );
    promise!(store.keys() == 2, "there are {} keys, and two places", store.keys());
}

/// A key that has become full makes place for exactly one of two new ones in its shard.
pub fn place_of_a_full_key<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 1);
    take(&*store, KEY, BEFORE, 2);
    let (a, b) = race2(&store, |store| store.decide(NEIGHBOUR, NOW, 1), |store| store.decide(THIRD, NOW, 1));
    let served = [a, b];
    promise!(
        served.contains(&Served::Admitted) && served.contains(&Served::TooManyKeys),
        "exactly one of two gets the place: {served:?}"
    );
    promise!(store.keys() == 1, "there are {} keys, and one place", store.keys());
}

/// Clean-up finds a key full while another caller takes all it has: afterwards the key is spent, dropped or not.
pub fn clean_up_against_acquire<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, BEFORE, 1);
    let ((), served) = race2(&store, |store| store.clean_up(NOW), |store| store.decide(KEY, NOW, 2));
    promise!(served == Served::Admitted, "the key was full: {served:?}");
    promise!(store.level(KEY, NOW) == Some(0) && store.keys() == 1, "what was taken was forgotten");
    promise!(store.decide(KEY, NOW, 1) == Served::Denied, "nothing is left");
}

/// Clean-up at a reading at which a key still lacks something, against a request: nobody gets what was spent before.
pub fn clean_up_of_a_spent_key<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, NOW, 1);
    let ((), served) = race2(&store, |store| store.clean_up(NOW), |store| store.decide(KEY, NOW, 2));
    promise!(served == Served::Denied, "one token is left: {served:?}");
    promise!(store.level(KEY, NOW) == Some(1), "what was taken was forgotten");
}

/// Clean-up at a later reading drops a key that a caller with an earlier one then finds absent: it is as spent as it was.
pub fn clean_up_against_late_reading<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, BEFORE, 2);
    let ((), served) = race2(&store, |store| store.clean_up(NOW), |store| store.decide(KEY, BEFORE, 1));
    promise!(served == Served::Denied, "all was spent at that reading: {served:?}");
    let next = store.decide(KEY, NOW, 2);
    promise!(next == Served::Admitted, "a second later it is full again: {next:?}");
}

/// What is given back may make a key full and let clean-up drop it, while a request takes from it: nothing is lost or made.
pub fn refund_and_clean_up_against_acquire<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, NOW, 2);
    let give_back = |store: &S| {
        promise!(store.refund(KEY, 2), "a spent key is there");
        store.clean_up(NOW);
    };
    let ((), served) = race2(&store, give_back, |store| store.decide(KEY, NOW, 1));
    let taken = u64::from(served == Served::Admitted);
    let level = store.level(KEY, NOW).unwrap_or(2);
    promise!(level + taken == 2, "two came back: {taken} taken, {level} left");
}

/// A change of quota that keeps the level, against a request that takes all: it is counted before or after, and once.
pub fn change_of_quota_against_acquire<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, BEFORE, 1);
    let ((), served) = race2(&store, |store| store.set_quota(quota!("4/2s"), NOW), |store| store.decide(KEY, NOW, 2));
    promise!(served == Served::Admitted, "two were there before and after: {served:?}");
    let level = store.level(KEY, NOW);
    promise!(level == Some(0), "two were there, and were taken: {level:?} left");
}

/// A change of quota that keeps the level, against the first use of a key: a new key has what a full one keeps.
pub fn change_of_quota_against_first_use<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    let ((), served) = race2(&store, |store| store.set_quota(quota!("4/2s"), NOW), |store| store.decide(KEY, NOW, 2));
    promise!(served == Served::Admitted, "two were there before and after: {served:?}");
    let level = store.level(KEY, NOW);
    promise!(level == Some(0), "two were there, and were taken: {level:?} left");
}

/// Two changes of quota at once: afterwards both shards have the same.
pub fn two_changes_of_quota<S: Store>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, BEFORE, 1);
    take(&*store, OTHER, BEFORE, 1);
    let ((), ()) =
        race2(&store, |store| store.set_quota(quota!("4/2s"), NOW), |store| store.set_quota(quota!("6/3s"), NOW));
    let levels = [store.level(KEY, LATER), store.level(OTHER, LATER)];
    promise!(levels == [Some(4); 2] || levels == [Some(6); 2], "keys of two shards have one quota: {levels:?}");
}

pub(crate) fn store<S: Store>(quota: Quota, cap: usize) -> Arc<S> {
    Arc::new(S::new(quota, cap))
}

pub(crate) fn take<S: Store>(store: &S, key: u8, now: Nanos, cost: u64) {
    promise!(store.decide(key, now, cost) == Served::Admitted, "nobody races yet");
}

pub(crate) const TWO_A_SECOND: Quota = quota!("2/1s");
/// Keys of one shard are even.
pub(crate) const KEY: u8 = 2;
const NEIGHBOUR: u8 = 4;
const THIRD: u8 = 6;
/// A key of the other one.
const OTHER: u8 = 1;
/// Far from the origin, so that an unused state lies behind it.
pub(crate) const NOW: Nanos = Nanos::from_secs(100);
pub(crate) const BEFORE: Nanos = Nanos::from_secs(99);
/// When all are full again.
pub(crate) const LATER: Nanos = Nanos::from_secs(200);
