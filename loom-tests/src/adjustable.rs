//! Bodies of the models of buckets that are reserved from and changed. Bounds and costs are beside the tests that run them.

use std::sync::Arc;

use sluicegate_core::{Nanos, Quota, quota};

use crate::{Adjustable, promise, race2, race3};

/// Two callers, one token: one takes it, and nothing is left.
pub fn last_token_of_two<A: Adjustable>() {
    let bucket = full::<A>(quota!("1/1s"));
    let (a, b) = race2(&bucket, |bucket| bucket.try_acquire(NOW, 1), |bucket| bucket.try_acquire(NOW, 1));
    promise!(a != b, "exactly one of two gets the last token: {:?}", (a, b));
    promise!(bucket.level(NOW) == 0, "nothing is left");
}

/// A reservation of the last token that is cancelled, against an acquire: at most one has the token at a time, and in the
/// end it is there or taken.
pub fn cancel_against_acquire<A: Adjustable>() {
    let bucket = full::<A>(quota!("1/1s"));
    let reserve_and_cancel = |bucket: &A| bucket.reserve(NOW, 1).map(|held| held.cancel()).is_some();
    let (reserved, acquired) = race2(&bucket, reserve_and_cancel, |bucket| bucket.try_acquire(NOW, 1));
    promise!(reserved || acquired, "somebody gets the only token");
    promise!(bucket.level(NOW) + u64::from(acquired) == 1, "the token is there or taken: {:?}", (reserved, acquired));
}

/// Two reservations of the last token, both cancelled: the token is back, once.
pub fn cancel_against_cancel<A: Adjustable>() {
    let bucket = full::<A>(quota!("2/1s"));
    let reserve_and_cancel = |bucket: &A| bucket.reserve(NOW, 1).map(|held| held.cancel()).is_some();
    let (a, b) = race2(&bucket, reserve_and_cancel, reserve_and_cancel);
    promise!(a && b, "each has a token of its own: {:?}", (a, b));
    promise!(bucket.level(NOW) == 2, "both are back");
}

/// A reservation that is settled for less, against an acquire: what it let go of can be taken, what it spent cannot.
pub fn settle_against_acquire<A: Adjustable>() {
    let bucket = full::<A>(quota!("2/1s"));
    let reserve_and_settle = |bucket: &A| bucket.reserve(NOW, 2).map(|held| held.settle(NOW, 1));
    let (spent, acquired) = race2(&bucket, reserve_and_settle, |bucket| bucket.try_acquire(NOW, 1));
    promise!(spent.unwrap_or(1) == 1, "what was held can be spent, whoever races: {spent:?}");
    let gone = spent.unwrap_or(0) + u64::from(acquired);
    promise!(bucket.level(NOW) + gone == 2, "two tokens, neither lost nor made: {:?}", (spent, acquired));
}

/// A reservation of the last token that is settled, against an acquire: what is held is there to be spent, whoever races.
pub fn held_is_there_to_settle<A: Adjustable>() {
    let bucket = full::<A>(quota!("1/1s"));
    let reserve_and_settle = |bucket: &A| bucket.reserve(NOW, 1).map(|held| held.settle(NOW, 1));
    let (spent, acquired) = race2(&bucket, reserve_and_settle, |bucket| bucket.try_acquire(NOW, 1));
    promise!(spent == if acquired { None } else { Some(1) }, "one of them has the token: {:?}", (spent, acquired));
    promise!(bucket.level(NOW) == 0, "nothing is left");
}

/// A reservation that is held while the bucket would have refilled, against an acquire at the later reading: the bucket
/// never hands out more than its capacity, because what is held is not refilled.
pub fn hold_outlives_refill<A: Adjustable>() {
    let bucket = full::<A>(quota!("1/1s"));
    let reserve_and_cancel = |bucket: &A| bucket.reserve(NOW, 1).map(|held| held.cancel()).is_some();
    let (_, acquired) = race2(&bucket, reserve_and_cancel, |bucket| bucket.try_acquire(LATER, 1));
    promise!(bucket.level(LATER) + u64::from(acquired) == 1, "one token at the later reading: {acquired}");
}

/// A change to a smaller capacity against an acquire that only the old one allows. Who has seen the new quota will not
/// see the old one take effect.
pub fn nothing_old_lands_after_a_change<A: Adjustable>() {
    let bucket = full::<A>(quota!("2/1s"));
    let change_and_look = |bucket: &A| {
        bucket.adjust(NOW, quota!("1/1s"));
        bucket.level(NOW)
    };
    let (seen, pair) = race2(&bucket, change_and_look, |bucket| bucket.try_acquire(NOW, 2));
    promise!(pair == (seen == 0), "a pair was taken before the change or not at all: {:?}", (seen, pair));
    promise!(bucket.level(NOW) == seen, "nothing lands later: {seen} then {}", bucket.level(NOW));
}

/// A change against an acquire, and a third caller: no token is lost or made by the change.
pub fn change_keeps_the_level<A: Adjustable>() {
    let bucket = full::<A>(quota!("2/1s"));
    let (a, b, ()) = race3(
        &bucket,
        |bucket| bucket.try_acquire(NOW, 1),
        |bucket| bucket.try_acquire(NOW, 1),
        |bucket| bucket.adjust(NOW, quota!("5/1s")),
    );
    promise!(a && b, "two tokens were there under either quota: {:?}", (a, b));
    promise!(bucket.level(NOW) == 0, "a change makes no token: {}", bucket.level(NOW));
}

/// Two changes while a caller decides: one token at least is there under every quota, so it is not denied. The
/// bucket was used before, so that a rule put together of two would see it as deep in debt.
pub fn two_changes_within_a_decision<A: Adjustable>() {
    let bucket = full::<A>(quota!("3/1s burst 4"));
    promise!(bucket.try_acquire(NOW, 1), "nobody races yet");
    let change_twice = |bucket: &A| {
        bucket.adjust(NOW, quota!("2/1s burst 3"));
        bucket.adjust(NOW, quota!("1/1s burst 2"));
    };
    let (acquired, ()) = race2(&bucket, |bucket| bucket.try_acquire(NOW, 1), change_twice);
    promise!(acquired, "a token was there at every instant");
    // Three were left; under the last quota there is room for two, less the one if it was taken after that.
    let level = bucket.level(NOW);
    promise!(level == 1 || level == 2, "what is left fits the last quota: {level}");
}

/// Two changes at once: both are made, one after the other, and the last one stays.
pub fn change_against_change<A: Adjustable>() {
    let bucket = full::<A>(quota!("4/1s"));
    race2(&bucket, |bucket| bucket.adjust(NOW, quota!("2/1s")), |bucket| bucket.adjust(NOW, quota!("3/1s")));
    // Two at most were kept in the first case; in the other three, and then two.
    promise!(bucket.level(NOW) == 2, "whichever was last, no more than two were kept: {}", bucket.level(NOW));
}

/// A change while tokens are held, which are then settled: they are consumed once, under the quota in force.
pub fn change_under_a_reservation<A: Adjustable>() {
    let bucket = full::<A>(quota!("4/1s"));
    let reserve_and_settle = |bucket: &A| bucket.reserve(NOW, 2).map(|held| held.settle(NOW, 2));
    let (spent, ()) = race2(&bucket, reserve_and_settle, |bucket| bucket.adjust(NOW, quota!("3/1s")));
    promise!(spent == Some(2), "two were there under either quota: {spent:?}");
    // Spent before the change two are left; spent after it one of three.
    let level = bucket.level(NOW);
    promise!(level == 1 || level == 2, "two of four or of three were spent: {level}");
}

fn full<A: Adjustable>(quota: Quota) -> Arc<A> {
    Arc::new(A::new(quota))
}

/// Far from the origin, so that an unused state lies behind it.
const NOW: Nanos = Nanos::from_secs(100);
/// Any bucket here is full again.
const LATER: Nanos = Nanos::from_secs(200);
