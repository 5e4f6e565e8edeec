//! Bodies of the hierarchy's models. Bounds and costs are beside the tests that run them.

use std::sync::Arc;

use crate::{Tree, promise, race2, race3};

/// Two requests through levels of their own to the last unit of a common one: one is admitted, and the other leaves its own
/// level as it was.
pub fn last_unit_of_the_root<T: Tree>() {
    let tree = Arc::new(T::new([1, 1, 1]));
    let (a, b) = race2(&tree, |tree| tree.try_acquire([0, 1]), |tree| tree.try_acquire([0, 2]));
    promise!(a.is_ok() != b.is_ok(), "exactly one gets the last unit: {:?}", (a, b));
    promise!(a.err().or(b.err()) == Some(0), "the common level refused: {:?}", (a, b));
    let free = [tree.free(0), tree.free(1), tree.free(2)];
    promise!(
        free == [0, u64::from(a.is_err()), u64::from(b.is_err())],
        "one path is used, the other untouched: {free:?}"
    );
}

/// A request over two levels, against a single at each: each level's unit goes to the request or to the single. What the
/// request holds for a while and lets go denies nobody.
pub fn path_against_singles<T: Tree>() {
    let tree = Arc::new(T::new([1, 1, 0]));
    let (path, outer, inner) = race3(
        &tree,
        |tree| tree.try_acquire([0, 1]).is_ok(),
        |tree| tree.try_acquire_alone(0),
        |tree| tree.try_acquire_alone(1),
    );
    promise!(outer != path && inner != path, "both units to one, or one to each: {:?}", (path, outer, inner));
    promise!(tree.free(0) == 0 && tree.free(1) == 0, "nothing is left");
}

/// Two requests with an inner level in common that has one unit, and a single at the outer level of one of them: if that
/// request loses to the single, the other one is admitted, also if it came to hold while the loser still did.
pub fn path_against_path_and_single<T: Tree>() {
    let tree = Arc::new(T::new([1, 1, 1]));
    let (a, b, single) = race3(
        &tree,
        |tree| tree.try_acquire([0, 1]).is_ok(),
        |tree| tree.try_acquire([2, 1]).is_ok(),
        |tree| tree.try_acquire_alone(0),
    );
    promise!(a != b && a != single, "each common unit goes to one of two: {:?}", (a, b, single));
    promise!(tree.free(1) == 0 && tree.free(0) == 0, "nothing is left of them");
}

/// A request over two levels that must fail at the outer one, against a single at the inner one: it never holds
/// anything, so the single is admitted.
pub fn hopeless_request_holds_nothing<T: Tree>() {
    let tree = Arc::new(T::new([0, 1, 0]));
    let (path, inner) = race2(&tree, |tree| tree.try_acquire([0, 1]), |tree| tree.try_acquire_alone(1));
    promise!(path.is_err(), "the outer level never had a unit: {path:?}");
    promise!(inner, "a unit was there all the time");
    promise!(tree.free(1) == 0, "nothing is left");
}

/// Two requests over the same two levels in opposite orders: one is admitted, and neither waits for the other for ever.
pub fn opposite_orders<T: Tree>() {
    let tree = Arc::new(T::new([1, 1, 0]));
    let (a, b) = race2(&tree, |tree| tree.try_acquire([0, 1]).is_ok(), |tree| tree.try_acquire([1, 0]).is_ok());
    promise!(a != b, "exactly one gets both units: {:?}", (a, b));
    promise!(tree.free(0) == 0 && tree.free(1) == 0, "nothing is left");
}

/// Two requests to a common level with a unit for each, one of them through a level that has none: the other is admitted,
/// and one unit of the common level stays.
pub fn refused_inside_costs_nothing_outside<T: Tree>() {
    let tree = Arc::new(T::new([1, 0, 1]));
    let (refused, admitted) = race2(&tree, |tree| tree.try_acquire([0, 1]), |tree| tree.try_acquire([0, 2]));
    promise!(refused == Err(1), "the inner level had none: {refused:?}");
    promise!(admitted.is_ok(), "a unit was there all the time: {admitted:?}");
    promise!(tree.free(0) == 0 && tree.free(2) == 0, "both are used");
}
