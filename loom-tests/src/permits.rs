//! Bodies of the concurrency limit's models. Bounds and costs are beside the tests that run them.

use core::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use crate::shim::AtomicU64;
use crate::{Permits, promise, race2, race3};

/// Two callers, one unit free: exactly one gets a permit, and what is in use is what is held.
pub fn last_unit_of_two<P: Permits>() {
    let limit = Arc::new(P::new(2));
    let _held = take(&*limit, 1);
    let one = |limit: &P| limit.try_acquire(1);
    let (a, b) = race2(&limit, one, one);
    promise!(a.is_some() != b.is_some(), "exactly one of two gets the last unit");
    promise!(limit.usage() == (2, 2), "both are in use: {:?}", limit.usage());
    drop((a, b));
    promise!(limit.usage() == (1, 2), "one came back: {:?}", limit.usage());
}

/// Costs of 2, 2 and 1 of a limit of 3: one pair and the single, whatever the order.
pub fn costs_above_one<P: Permits>() {
    let limit = Arc::new(P::new(3));
    let (a, b, c) = race3(
        &limit,
        |limit: &P| limit.try_acquire(2),
        |limit: &P| limit.try_acquire(2),
        |limit: &P| limit.try_acquire(1),
    );
    promise!(a.is_some() != b.is_some() && c.is_some(), "one pair and the single fit");
    promise!(limit.usage() == (3, 3), "all is in use: {:?}", limit.usage());
    drop((a, b, c));
    promise!(limit.usage() == (0, 3), "all came back: {:?}", limit.usage());
}

/// A cost of 2 with one unit free is denied whatever happens, and takes nothing, not even for an instant.
pub fn denial_takes_nothing<P: Permits>() {
    let limit = Arc::new(P::new(2));
    let _held = take(&*limit, 1);
    let (large, small) = race2(&limit, |limit| limit.try_acquire(2).is_some(), |limit| limit.try_acquire(1));
    promise!(!large, "two units were never free");
    promise!(small.is_some(), "a unit was free all the time");
}

/// Two releases at once: both come back, and no more.
pub fn release_against_release<P: Permits>() {
    let limit = Arc::new(P::new(3));
    let (one, two) = (take(&*limit, 1), take(&*limit, 2));
    race2(&limit, |_| drop(one), |_| drop(two));
    promise!(limit.usage() == (0, 3), "both came back: {:?}", limit.usage());
}

/// A release against an acquire of what it frees: units are neither lost nor made.
pub fn release_against_acquire<P: Permits>() {
    let limit = Arc::new(P::new(1));
    let held = take(&*limit, 1);
    let (got, ()) = race2(&limit, |limit| limit.try_acquire(1), |_| drop(held));
    promise!(limit.usage() == (u64::from(got.is_some()), 1), "{:?} of {}", limit.usage(), got.is_some());
    drop(got);
    promise!(limit.usage() == (0, 1), "all came back: {:?}", limit.usage());
}

/// One unit at least is free at every instant, so nobody may be denied.
pub fn unit_always_free<P: Permits>() {
    let limit = Arc::new(P::new(2));
    let held = take(&*limit, 1);
    let move_it = |limit: &P| {
        drop(held);
        limit.try_acquire(1)
    };
    let (moved, got) = race2(&limit, move_it, |limit| limit.try_acquire(1));
    promise!(moved.is_some() && got.is_some(), "a unit was free at every instant");
    promise!(limit.usage() == (2, 2), "both are in use: {:?}", limit.usage());
}

/// A limit that is lowered against an acquire: afterwards the limit is the new one and what is held is counted, and
/// nothing passes that does not fit into it.
pub fn shrink_against_acquire<P: Permits>() {
    let limit = Arc::new(P::new(3));
    let held = take(&*limit, 1);
    let (got, ()) = race2(&limit, |limit| limit.try_acquire(1), |limit| limit.set_limit(1));
    let in_use = 1 + u64::from(got.is_some());
    promise!(limit.usage() == (in_use, 1), "a change was lost: {:?}, {in_use} held", limit.usage());
    promise!(limit.try_acquire(1).is_none(), "nothing fits while {in_use} of 1 are out");
    drop(got);
    promise!(limit.try_acquire(1).is_none(), "nothing fits while 1 of 1 is out");
    drop(held);
    promise!(limit.usage() == (0, 1), "all came back: {:?}", limit.usage());
    promise!(limit.try_acquire(1).is_some(), "one fits once nothing is out");
}

/// A caller that lowers the limit to one and then takes it, against another: exactly one of them gets a permit, because
/// nothing decided under the old limit may land after something decided under the new.
pub fn shrink_then_acquire_against_acquire<P: Permits>() {
    let limit = Arc::new(P::new(2));
    let shrink_and_take = |limit: &P| {
        limit.set_limit(1);
        limit.try_acquire(1)
    };
    let (a, b) = race2(&limit, shrink_and_take, |limit| limit.try_acquire(1));
    promise!(a.is_some() != b.is_some(), "exactly one fits: {}, {}", a.is_some(), b.is_some());
    promise!(limit.usage() == (1, 1), "one is in use: {:?}", limit.usage());
}

/// A limit that is lowered against a release and an acquire: nothing is lost, whoever comes first.
pub fn shrink_against_release_and_acquire<P: Permits>() {
    let limit = Arc::new(P::new(2));
    let held = take(&*limit, 2);
    let (got, (), ()) = race3(&limit, |limit| limit.try_acquire(1), |limit| limit.set_limit(1), |_| drop(held));
    promise!(limit.usage() == (u64::from(got.is_some()), 1), "a change was lost: {:?}", limit.usage());
    promise!(limit.try_acquire(1).is_some() != got.is_some(), "exactly one fits");
}

/// Two set the limit at once: it is one of the two, and what is in use is as before.
pub fn limit_against_limit<P: Permits>() {
    let limit = Arc::new(P::new(2));
    let _held = take(&*limit, 1);
    race2(&limit, |limit| limit.set_limit(3), |limit| limit.set_limit(1));
    let usage = limit.usage();
    promise!(usage == (1, 3) || usage == (1, 1), "neither of the two limits: {usage:?}");
}

/// Who gets a permit because another was released sees what its holder did before, also when the limit is set in between.
pub fn release_is_seen<P: Permits>() {
    let shared = Arc::new((P::new(1), AtomicU64::new(0)));
    let held = take(&shared.0, 1);
    let work = |shared: &(P, AtomicU64)| {
        shared.1.store(1, Relaxed);
        drop(held);
    };
    let follow = |shared: &(P, AtomicU64)| shared.0.try_acquire(1).map(|_| shared.1.load(Relaxed));
    let ((), (), seen) = race3(&shared, work, |shared| shared.0.set_limit(1), follow);
    promise!(seen != Some(0), "let in by the release, and blind to what was before it");
}

fn take<P: Permits>(limit: &P, cost: u64) -> P::Permit {
    limit.try_acquire(cost).expect("nobody races yet")
}
