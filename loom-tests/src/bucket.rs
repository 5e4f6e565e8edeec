//! Bodies of the bucket's models. Bounds and costs are beside the tests that run them.

use core::time::Duration;
use std::sync::Arc;

use sluicegate_core::{Nanos, Quota, Remaining, quota};

use crate::{Bucket, promise, race2, race3};

/// Two callers, one token: one is admitted and left nothing; the other is told when the next token comes.
pub fn last_token_of_two<B: Bucket>() {
    let bucket = two_tokens::<B>();
    take(&*bucket, 1);
    let answers = race2(&bucket, |bucket| bucket.try_acquire(NOW, 1), |bucket| bucket.try_acquire(NOW, 1));
    let (taken, wait) = match answers {
        (Ok(taken), Err(wait)) | (Err(wait), Ok(taken)) => (taken, wait),
        answers => return promise!(false, "exactly one of two gets the last token: {answers:?}"),
    };
    promise!(taken.remaining == Remaining::Exactly(0) && taken.at == NOW, "the last token leaves none: {taken:?}");
    promise!(wait == HALF_A_SECOND, "the next token comes in half a second: {wait:?}");
    promise!(bucket.level(NOW) == 0, "nothing is left");
}

/// Three callers, two tokens: two are admitted, and what each was left is what was left then.
pub fn last_tokens_of_three<B: Bucket>() {
    let bucket = two_tokens::<B>();
    let take_one = |bucket: &B| bucket.try_acquire(NOW, 1).ok().and_then(|taken| taken.remaining.exactly());
    let (a, b, c) = race3(&bucket, take_one, take_one, take_one);
    let mut left: Vec<u64> = [a, b, c].into_iter().flatten().collect();
    left.sort_unstable();
    promise!(left == [0, 1], "exactly two of three get the last two tokens, one after the other: left {left:?}");
}

/// Costs of 2, 2 and 1 on three tokens: whatever the order, all three tokens are used and no more.
pub fn costs_above_one<B: Bucket>() {
    let bucket = Arc::new(B::new(quota!("2/1s burst 3")));
    let (a, b, c) = race3(
        &bucket,
        |bucket| bucket.try_acquire(NOW, 2).is_ok(),
        |bucket| bucket.try_acquire(NOW, 2).is_ok(),
        |bucket| bucket.try_acquire(NOW, 1).is_ok(),
    );
    promise!(a != b && c, "one pair and the single token fit: {:?}", (a, b, c));
    promise!(bucket.level(NOW) == 0, "nothing is left");
}

/// A cost of 2 on one token is denied whatever happens, and its denial takes nothing, not even for an instant.
pub fn denial_takes_nothing<B: Bucket>() {
    let bucket = two_tokens::<B>();
    take(&*bucket, 1);
    let (large, small) =
        race2(&bucket, |bucket| bucket.try_acquire(NOW, 2).is_ok(), |bucket| bucket.try_acquire(NOW, 1).is_ok());
    promise!(!large, "two tokens were never there");
    promise!(small, "a token was there all the time");
    promise!(bucket.level(NOW) == 0, "nothing is left");
}

/// A refund against an acquire of what it gives back: tokens are neither lost nor made.
pub fn refund_against_acquire<B: Bucket>() {
    let bucket = two_tokens::<B>();
    take(&*bucket, 2);
    let (admitted, ()) = race2(&bucket, |bucket| bucket.try_acquire(NOW, 1).is_ok(), |bucket| bucket.refund(1));
    let level = bucket.level(NOW);
    promise!(level + u64::from(admitted) == 1, "one token came back: {admitted}, {level} left");
}

/// One token at least is there at every instant, so nobody may be denied.
pub fn token_always_there<B: Bucket>() {
    let bucket = two_tokens::<B>();
    take(&*bucket, 1);
    let refund_and_take = |bucket: &B| {
        bucket.refund(1);
        bucket.try_acquire(NOW, 1).is_ok()
    };
    let (a, b) = race2(&bucket, refund_and_take, |bucket| bucket.try_acquire(NOW, 1).is_ok());
    promise!(a && b, "a token was there at every instant: {:?}", (a, b));
    promise!(bucket.level(NOW) == 0, "nothing is left");
}

/// Two refunds, more than was taken, against an acquire: the bucket never holds more than its capacity.
pub fn refund_never_above_capacity<B: Bucket>() {
    let bucket = two_tokens::<B>();
    take(&*bucket, 1);
    let (admitted, (), ()) = race3(
        &bucket,
        |bucket| bucket.try_acquire(NOW, 1).is_ok(),
        |bucket| bucket.refund(1),
        |bucket| bucket.refund(2),
    );
    promise!(admitted, "a token was there all the time");
    let level = bucket.level(NOW);
    promise!(level == 1 || level == 2, "at least one came back, and no more than two fit: {level}");
    let more = (0..3).filter(|_| bucket.try_acquire(NOW, 1).is_ok()).count() as u64;
    promise!(more == level, "what is shown can be taken, and no more: {more} of {level}");
}

/// A late reading against a newer one that takes all: it finds what there was before, or nothing; it earns no refill
/// and undoes none.
pub fn late_reading<B: Bucket>() {
    let bucket = two_tokens::<B>();
    let (late, new) = race2(&bucket, |bucket| bucket.try_acquire(BEFORE, 1), |bucket| bucket.try_acquire(NOW, 2));
    promise!(new.is_ok(), "a full second refilled whatever the late one took: {new:?}");
    if let Err(wait) = late {
        promise!(wait == Duration::from_millis(1_500), "the next token comes half a second after the newer reading");
    }
    promise!(bucket.level(NOW) == 0, "the newer reading took all");
    let wait = bucket.try_acquire(NOW, 1).err();
    promise!(wait == Some(HALF_A_SECOND), "the next token comes half a second after the newer reading: {wait:?}");
}

/// Who is denied and comes back when told is admitted, and a nanosecond earlier is not.
pub fn denial_then_hint<B: Bucket>() {
    fn insist<B: Bucket>(bucket: &B) -> bool {
        let Err(wait) = bucket.try_acquire(NOW, 1) else { return false };
        let early = bucket.try_acquire(NOW + wait - Duration::from_nanos(1), 1);
        promise!(early == Err(Duration::from_nanos(1)), "a nanosecond early is too early: {early:?}");
        let then = bucket.try_acquire(NOW + wait, 1);
        promise!(then.is_ok(), "the hint was to come back in {wait:?}: {then:?}");
        true
    }
    let bucket = Arc::new(B::new(quota!("2/1s burst 1")));
    let (a, b) = race2(&bucket, insist, insist);
    promise!(a != b, "exactly one had to come back: {:?}", (a, b));
}

/// Looking takes nothing and never sees time run back: once the token was seen gone, it stays gone.
pub fn looking_takes_nothing<B: Bucket>() {
    let bucket = two_tokens::<B>();
    take(&*bucket, 1);
    let look = |bucket: &B| [u64::from(bucket.peek(NOW, 1).is_ok()), bucket.level(NOW), bucket.level(NOW)];
    let (seen, admitted) = race2(&bucket, look, |bucket| bucket.try_acquire(NOW, 1).is_ok());
    promise!(admitted, "looking took the token");
    promise!(seen.is_sorted_by(|before, after| before >= after), "the token came back by itself: {seen:?}");
    promise!(bucket.level(NOW) == 0, "nothing is left");
}

fn two_tokens<B: Bucket>() -> Arc<B> {
    Arc::new(B::new(TWO_A_SECOND))
}

fn take<B: Bucket>(bucket: &B, cost: u64) {
    promise!(bucket.try_acquire(NOW, cost).is_ok(), "nobody races yet");
}

const TWO_A_SECOND: Quota = quota!("2/1s");
/// Far from the origin, so that an unused state lies behind it.
const NOW: Nanos = Nanos::from_secs(100);
const BEFORE: Nanos = Nanos::from_secs(99);
const HALF_A_SECOND: Duration = Duration::from_millis(500);
