//! Hierarchies that are held, let go and kept, levels that are shared, and clocks that are lent.

#![cfg(feature = "alloc")]

extern crate alloc;

mod support;

use alloc::sync::Arc;
use core::time::Duration;

use proptest::prelude::*;
use sluicegate_core::{
    AdjustableBucket, Admitted, Clock, Denied, DeniedBy, DuplicateLevel, FixedShard, Hierarchy, Holding, Inheritance,
    Level, Limit, ManualClock, Nanos, OwnedHierarchy, Reservation, Shard, ShardedWindow, SlidingCounter, quota,
};
use support::{cases, window_limit};

type Any = Arc<Level<dyn Holding + Send + Sync>>;

/// A level of each kind that core has without a lock.
fn levels() -> OwnedHierarchy<3> {
    let limit = window_limit(8, 1_000_000_000);
    let window = ShardedWindow::<[Shard; 2], _, _>::with_array(limit, (), FixedShard(0));
    let levels: [Any; 3] = [
        Arc::new(Level::new("bucket", AdjustableBucket::with_limit(quota!("8/1s").into(), ()))),
        Arc::new(Level::new("window", window)),
        Arc::new(Level::new("counter", SlidingCounter::with_limit(limit, ()).unwrap())),
    ];
    OwnedHierarchy::new(levels).unwrap()
}

fn bucket(name: &'static str) -> Level<AdjustableBucket<()>> {
    Level::new(name, AdjustableBucket::with_limit(quota!("10/1s").into(), ()))
}

#[derive(Clone, Debug)]
enum Step {
    Take([u64; 3]),
    /// Whether it is kept in the end, and how many steps later that is.
    Hold([u64; 3], bool, usize),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let costs = || prop::array::uniform3(0_u64..5);
    prop_oneof![
        2 => costs().prop_map(Step::Take),
        3 => (costs(), any::<bool>(), 0_usize..6).prop_map(|(costs, is_kept, after)| Step::Hold(costs, is_kept, after)),
        2 => (0_u64..900).prop_map(Step::Pass),
    ]
}

/// When a hold ends, what it holds, and what it holds at the other hierarchy, if it is there too.
type Held = (usize, [u64; 3], [Admitted; 3], Option<[Admitted; 3]>);

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn c09_a_hold_that_is_let_go_leaves_every_level_as_if_it_had_never_been(steps in prop::collection::vec(step(), 1..40)) {
        let (all, kept_only) = (levels(), levels());
        let (all, kept_only) = (all.hierarchy(), kept_only.hierarchy());
        let mut now = Nanos::ZERO;
        let mut held: Vec<Held> = Vec::new();
        for (number, step) in steps.iter().enumerate().chain((0..7).map(|after| (steps.len() + after, &Step::Pass(1)))) {
            match *step {
                Step::Take(costs) => {
                    if all.try_acquire_at(now, costs).is_ok() {
                        prop_assert!(kept_only.try_acquire_at(now, costs).is_ok(), "a hold gave more than there is");
                    }
                }
                Step::Hold(costs, is_kept, after) => {
                    let looked = all.peek_hold_at(now, costs);
                    let decision = all.hold_at(now, costs);
                    prop_assert_eq!(looked.is_ok(), decision.is_ok());
                    if let Ok(answer) = decision {
                        let other = is_kept.then(|| kept_only.hold_at(now, costs).expect("more is there"));
                        held.push((number + after, costs, answer, other));
                    }
                }
                Step::Pass(millis) => now = now + Duration::from_millis(millis),
            }
            held.retain(|(end, costs, answer, other)| {
                if *end > number {
                    return true;
                }
                match other {
                    Some(other) => {
                        all.keep(*costs, answer);
                        kept_only.keep(*costs, other);
                    }
                    None => all.let_go(*costs, answer),
                }
                false
            });
        }
        prop_assert!(held.is_empty());
        for _ in 0..25 {
            prop_assert_eq!(all.inspect_at(now), kept_only.inspect_at(now));
            now = now + Duration::from_millis(100);
        }
    }
}

#[test]
fn c09_a_hold_that_one_level_refuses_holds_nothing_at_the_others() {
    let (outer, inner) = (bucket("outer"), bucket("inner"));
    let hierarchy = Hierarchy::of([&outer, &inner]).unwrap();
    let now = Nanos::ZERO;
    let held = hierarchy.hold_at(now, [7, 1]).unwrap();
    let denied = hierarchy.hold_at(now, [4, 9]).unwrap_err();
    assert_eq!((denied.level, denied.name, denied.denied), (0, "outer", Denied::ConcurrencyLimited));
    assert_eq!(hierarchy.peek_hold_at(now, [4, 9]), Err(denied));
    let never = DeniedBy::new(1, "inner", Denied::CostExceedsLimit { cost: 11, limit: 10 });
    assert_eq!(hierarchy.hold_at(now, [4, 11]), Err(never));
    assert_eq!(Denied::from(never), never.denied);
    assert_eq!(hierarchy.inspect_at(now).map(|level| level.level), [3, 9]);
    hierarchy.keep([7, 1], &held);
    assert_eq!((outer.limiter().held(), inner.limiter().held()), (0, 0));
    // Given back, it is there again at both.
    hierarchy.give_back([7, 1], &held);
    assert_eq!(hierarchy.inspect_at(now).map(|level| level.level), [10, 10]);
}

#[test]
fn c09_a_hierarchy_foretells_by_its_last_level() {
    let (outer, inner) = (bucket("outer"), bucket("inner"));
    let hierarchy = Hierarchy::of([&outer, &inner]).unwrap();
    let now = Nanos::ZERO;
    hierarchy.try_acquire_at(now, [10, 5]).unwrap();
    assert_eq!(hierarchy.earliest_at(now, [0, 5]), Some(now));
    assert_eq!(hierarchy.latest_at(now, [3, 5]), Some((0, Nanos::from_millis(300))));
    assert_eq!(hierarchy.latest_at(now, [3, 9]), Some((1, Nanos::from_millis(400))));
    inner.limiter().adjust_at(now, Limit::DenyAll, Inheritance::Level);
    assert_eq!(hierarchy.earliest_at(now, [3, 9]), None);
}

#[test]
fn a_hierarchy_that_owns_its_levels_has_each_once() {
    let [outer, inner] = ["outer", "inner"].map(|name| Arc::new(bucket(name)));
    let twice = OwnedHierarchy::of([outer.clone(), inner.clone(), outer.clone()]).unwrap_err();
    assert_eq!(twice, DuplicateLevel { first: 0, second: 2, name: "outer" });
    let owned = OwnedHierarchy::of([outer.clone(), inner]).unwrap().clone();
    assert!(owned.hierarchy().try_acquire_at(Nanos::ZERO, [3, 4]).is_ok());
    assert_eq!(outer.limiter().inspect_at(Nanos::ZERO).level, 7);
    assert_eq!(format!("{owned:?}"), r#"["outer", "inner"]"#);
}

#[test]
fn d02_a_reservation_of_what_was_held_ends_as_any_other() {
    let now = Nanos::from_secs(1);
    for spent in [0, 3, 6, 9, 30] {
        let (held_first, reserved) = (bucket("held").into_inner(), bucket("reserved").into_inner());
        let held = held_first.hold_at(now, 6).unwrap();
        let debit = Reservation::of_held(&held_first, 6, &held).settle_at(now, spent);
        assert_eq!(debit, reserved.reserve_at(now, 6).unwrap().settle_at(now, spent));
        let later = now + Duration::from_millis(150);
        assert_eq!(held_first.inspect_at(later), reserved.inspect_at(later));
    }
    let off = AdjustableBucket::with_limit(Limit::Unlimited, ());
    let held = off.hold_at(now, 6).unwrap();
    off.adjust_at(now, quota!("10/1s").into(), Inheritance::Level);
    drop(Reservation::of_held(&off, 6, &held));
    assert_eq!((off.held(), off.inspect_at(now).level), (0, 10));
}

#[test]
fn c08_a_lent_clock_is_read_for_settling_and_for_a_change() {
    let clock = ManualClock::new();
    let bucket = bucket("lent").into_inner();
    let reservation = bucket.reserve_at(clock.now(), 10).unwrap();
    clock.advance(Duration::from_secs(5));
    assert_eq!(reservation.settle_by(&clock, 10).charged, 10);
    assert_eq!(bucket.inspect_at(Nanos::from_secs(5)).level, 0, "it was consumed now, not when it was made");
    clock.advance(Duration::from_millis(500));
    bucket.adjust_by(&clock, quota!("20/1s"), Inheritance::Level);
    assert_eq!(bucket.inspect_at(Nanos::from_millis(5_500)).level, 5, "it refilled at the old rate until now");
    assert_eq!(bucket.inspect_at(Nanos::from_millis(5_750)).level, 10);
}
