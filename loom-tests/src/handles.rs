//! Bodies of the models of handles. Bounds and costs are beside the tests that run them.
//!
//! A handle decides on its key without the lock of the store, which takes the key's state back from it when it must.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use sluicegate_core::{Nanos, Quota, quota};

use crate::keyed::{BEFORE, KEY, NOW, TWO_A_SECOND, store, take};
use crate::shim::AtomicU64;
use crate::{Handle, Handles, Served, promise, race2, race3};

/// A handle and a caller of the store, one token left: one is admitted.
pub fn last_token_of_a_handle_and_the_store<S: Handles>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, NOW, 1);
    let handle = store.handle(KEY);
    let answers = race2(&store, move |_| handle.decide(NOW, 1), |store| store.decide(KEY, NOW, 1));
    let admitted = <[_; 2]>::from(answers).iter().filter(|served| **served == Served::Admitted).count();
    promise!(admitted == 1, "exactly one of two gets the last token: {answers:?}");
    promise!(store.level(KEY, NOW) == Some(0), "it is gone");
}

/// Two handles of a key, one token left: one is admitted.
pub fn last_token_of_two_handles<S: Handles>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, NOW, 1);
    let (one, other) = (store.handle(KEY), store.handle(KEY));
    let answers = race2(&store, move |_| one.decide(NOW, 1), |_| other.decide(NOW, 1));
    let admitted = <[_; 2]>::from(answers).iter().filter(|served| **served == Served::Admitted).count();
    promise!(admitted == 1, "exactly one of two gets the last token: {answers:?}");
    promise!(store.level(KEY, NOW) == Some(0), "it is gone");
}

/// A change of quota that keeps the level, against a handle's request that takes all: it is counted before or after, and
/// once.
pub fn change_of_quota_against_a_handle<S: Handles>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, BEFORE, 1);
    let handle = store.handle(KEY);
    let (served, ()) = race2(&store, move |_| handle.decide(NOW, 2), |store| store.set_quota(FOUR_IN_TWO, NOW));
    promise!(served == Served::Admitted, "two were there before and after: {served:?}");
    all_is_taken(&*store);
}

/// A change of quota that keeps the level, against two handles and one token: one of them is admitted, and the new quota has
/// none left.
pub fn change_of_quota_against_two_handles<S: Handles>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, NOW, 1);
    let (one, other) = (store.handle(KEY), store.handle(KEY));
    let (a, b, ()) = race3(
        &store,
        move |_| one.decide(NOW, 1),
        move |_| other.decide(NOW, 1),
        |store| store.set_quota(FOUR_IN_TWO, NOW),
    );
    let admitted = [a, b].iter().filter(|served| **served == Served::Admitted).count();
    promise!(admitted == 1, "exactly one of two gets the last token: {:?}", (a, b));
    all_is_taken(&*store);
}

/// A change of quota that keeps the level, while a handle looks and takes what is there, one by one: tokens are there before and
/// after, so it is denied none and sees all that it has not taken.
pub fn tokens_are_there_before_and_after<S: Handles>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, BEFORE, 1);
    let handle = store.handle(KEY);
    let look_and_take = move |_: &S| {
        let full = handle.level(NOW);
        let first = handle.decide(NOW, 1);
        let half = handle.level(NOW);
        ([full, half], [first, handle.decide(NOW, 1)])
    };
    let ((levels, served), ()) = race2(&store, look_and_take, |store| store.set_quota(FOUR_IN_TWO, NOW));
    promise!(served == [Served::Admitted; 2], "two were there before and after: {served:?}");
    promise!(levels == [2, 1], "two were there, and then one: {levels:?}");
    all_is_taken(&*store);
}

/// A change by the store's clock to a quota that refills at half the rate, against a handle for which the clock moves on: what
/// flowed in is of the old rate up to the reading of the change, and so is what the handle took of it.
pub fn change_by_clock_against_a_handle<S: Handles>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    store.go_on(BEFORE);
    take(&*store, KEY, BEFORE, 2);
    let handle = store.handle(KEY);
    let wait_and_take = move |store: &S| {
        store.go_on(NOW);
        handle.decide_by_clock(2)
    };
    let (served, ()) = race2(&store, wait_and_take, |store| store.change_by_clock(TWO_IN_TWO));
    // Two of the old rate, if the change came after that second; or one of the new.
    let left = if served == Served::Admitted { 1 } else { 2 };
    let level = store.level(KEY, SECOND_AFTER);
    promise!(level == Some(left), "{served:?}, and a second later {level:?} are left");
}

/// A key is removed while a handle takes all it has, twice: from the old key, from the new one, or from each. Afterwards its handles
/// ask the new one.
pub fn remove_against_a_handle<S: Handles>() {
    let store = store::<S>(TWO_A_SECOND, 9);
    take(&*store, KEY, BEFORE, 1);
    let handle = store.handle(KEY);
    let other = handle.clone();
    let take_all_twice = move |_: &S| (handle.decide(NOW, 2), handle.decide(NOW, 2));
    let ((first, second), removed) = race2(&store, take_all_twice, |store| store.remove(KEY));
    promise!(removed, "the key was there");
    promise!(first == Served::Admitted, "the old key and the new one are full: {first:?}");
    let level = store.level(KEY, NOW);
    match second {
        Served::Admitted => promise!(level == Some(0), "one of them took from the new key: {level:?} left"),
        _ => promise!(level.unwrap_or(0) == 0, "both asked the same key: {level:?} left"),
    }
    promise!(store.keys() == usize::from(level.is_some()), "there is one key, or none");
    promise!(!other.is_current(), "the old key is gone for its handles, too");
    let next = other.decide(NOW, 2);
    promise!((next == Served::Admitted) == level.is_none(), "{next:?}, where {level:?} were left");
    promise!(store.level(KEY, NOW) == Some(0), "the new key is spent");
}

/// Clean-up finds a key full that has a handle, which takes all there is: the key stays, as spent as it is.
pub fn clean_up_against_a_handle<S: Handles>() {
    let (store, turns) = (store::<S>(TWO_A_SECOND, 9), Turns::new());
    take(&*store, KEY, BEFORE, 1);
    let handle = store.handle(KEY);
    let other = handle.clone();
    let (served, ()) = race2(&store, turns.around(move |_| other.decide(NOW, 2)), turns.around(clean_up));
    promise!(served == Served::Admitted, "the key was full: {served:?}");
    promise!(store.level(KEY, NOW) == Some(0) && store.keys() == 1, "what was taken was forgotten");
    promise!(handle.is_current(), "nobody changed anything");
}

/// The last handle takes all there is and is dropped, against clean-up: what it took is not forgotten.
pub fn drop_of_the_last_handle_against_clean_up<S: Handles>() {
    let (store, turns) = (store::<S>(TWO_A_SECOND, 9), Turns::new());
    take(&*store, KEY, BEFORE, 1);
    let handle = store.handle(KEY);
    let all = Arc::clone(&turns);
    let take_and_drop = move |_: &S| {
        let served = handle.decide(NOW, 2);
        all.next();
        promise!(handle.is_current(), "nobody changed anything");
        served
    };
    let (served, ()) = race2(&store, turns.around(take_and_drop), turns.around(clean_up));
    promise!(served == Served::Admitted, "the key was full: {served:?}");
    promise!(store.level(KEY, NOW) == Some(0) && store.keys() == 1, "what was taken was forgotten");
    store.clean_up(NOW);
    promise!(store.decide(KEY, NOW, 1) == Served::Denied, "nothing is left");
}

/// A handle is dropped while its clone takes all there is and is dropped as well, against clean-up: what was taken is not
/// forgotten, whichever was the last.
pub fn drop_of_two_handles_against_clean_up<S: Handles>() {
    let (store, turns) = (store::<S>(TWO_A_SECOND, 9), Turns::new());
    take(&*store, KEY, BEFORE, 1);
    let idle = store.handle(KEY);
    let handle = idle.clone();
    let ((), served, ()) = race3(
        &store,
        turns.around(move |_| drop(idle)),
        turns.around(move |_| handle.decide(NOW, 2)),
        turns.around(clean_up),
    );
    promise!(served == Served::Admitted, "the key was full: {served:?}");
    promise!(store.level(KEY, NOW) == Some(0) && store.keys() == 1, "what was taken was forgotten");
    store.clean_up(NOW);
    promise!(store.decide(KEY, NOW, 1) == Served::Denied, "nothing is left");
}

/// A full key loses its last handle while clean-up comes and a caller of the store takes all it has: afterwards the key is
/// spent, dropped or not.
pub fn drop_of_a_full_keys_handle_against_acquire<S: Handles>() {
    let (store, turns) = (store::<S>(TWO_A_SECOND, 9), Turns::new());
    take(&*store, KEY, BEFORE, 1);
    let handle = store.handle(KEY);
    let ((), served, ()) =
        race3(&store, turns.around(move |_| drop(handle)), |store| store.decide(KEY, NOW, 2), turns.around(clean_up));
    promise!(served == Served::Admitted, "the key was full: {served:?}");
    promise!(store.level(KEY, NOW) == Some(0) && store.keys() == 1, "what was taken was forgotten");
    promise!(store.decide(KEY, NOW, 1) == Served::Denied, "nothing is left");
}

/// All there was is taken, and nothing is owed.
fn all_is_taken<S: Handles>(store: &S) {
    let levels = [store.level(KEY, NOW), store.level(KEY, SECOND_AFTER)];
    promise!(levels == [Some(0), Some(2)], "what was there was taken, once: {levels:?} now and a second later");
}

fn clean_up<S: Handles>(store: &S) {
    store.clean_up(NOW);
}

/// Has the model checker try others before and after what it does not see: it switches only where something modelled is done,
/// and counting a key's handles is not.
struct Turns(AtomicU64);

impl Turns {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(0)))
    }

    fn next(&self) {
        // Relaxed: it orders nothing.
        self.0.load(Ordering::Relaxed);
    }

    fn around<S, R, T: FnOnce(&S) -> R>(self: &Arc<Self>, run: T) -> impl FnOnce(&S) -> R + use<S, R, T> {
        let turns = Arc::clone(self);
        move |shared| {
            turns.next();
            let answer = run(shared);
            turns.next();
            answer
        }
    }
}

/// The same rate, twice the capacity.
const FOUR_IN_TWO: Quota = quota!("4/2s");
/// Half the rate, the same capacity.
const TWO_IN_TWO: Quota = quota!("2/2s");
/// What quotas are changed to.
pub(crate) const CHANGED: [Quota; 2] = [FOUR_IN_TWO, TWO_IN_TWO];
const SECOND_AFTER: Nanos = Nanos::from_secs(101);
