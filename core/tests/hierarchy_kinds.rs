//! What each kind of limiter does as a level of a hierarchy, and beside one.

extern crate alloc;

mod support;

use core::cell::{Cell, RefCell};
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;

use proptest::prelude::*;
use sluicegate_core::{
    AdjustableBucket, Admitted, ConcurrencyLimit, Decision, Denied, FixedShard, Hierarchy, Holding, Inspection, Level,
    Limit, Limiter, ManualClock, Nanos, Observer, Outcome, PermitObserver, Shard, ShardedWindow, SlidingCounter,
    TokenBucket, Usage, WindowLimit, quota,
};
use support::{cases, window_limit};

type Bucket<O = ()> = AdjustableBucket<ManualClock, O>;

fn bucket(limit: impl Into<Limit>) -> Bucket {
    AdjustableBucket::with_clock(limit, ManualClock::new())
}

fn counter(limit: &str) -> SlidingCounter<ManualClock> {
    SlidingCounter::with_clock(limit.parse::<WindowLimit>().unwrap(), ManualClock::new()).unwrap()
}

/// A last limiter that seems to have it and then has not; in its turn, while all levels hold, `meanwhile` happens.
struct Refusing<F>(F);

impl<F: Fn()> Limiter for Refusing<F> {
    fn try_acquire_at(&self, _: Nanos, _: u64) -> Decision {
        (self.0)();
        Err(Denied::ConcurrencyLimited)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        TokenBucket::with_clock(Limit::Unlimited, ManualClock::new()).peek_at(now, cost)
    }

    fn inspect_at(&self, _: Nanos) -> Inspection {
        Inspection::new(u64::MAX, u64::MAX)
    }
}

#[test]
fn c09_a_look_says_of_what_no_bucket_can_hold_what_a_request_would() {
    const MOST: u64 = (1 << 40) - 1;
    let big = |name| Level::new(name, bucket(quota!("1/1h burst 2_000_000_000_000")));
    let (outer, inner) = (big("outer"), big("inner"));
    let hierarchy = Hierarchy::new([&outer, &inner]).unwrap();
    let now = Nanos::ZERO;
    // The outermost takes and need not hold; the inner one has to.
    let denied = hierarchy.peek_at(now, [1, MOST + 1]).unwrap_err();
    let expected = Denied::CostExceedsLimit { cost: MOST + 1, limit: MOST };
    assert_eq!((denied.name, denied.denied), ("inner", expected));
    assert_eq!(hierarchy.try_acquire_at(now, [1, MOST + 1]), Err(denied));
    assert!(hierarchy.peek_at(now, [MOST + 1, 1]).is_ok());
    assert!(hierarchy.try_acquire_at(now, [MOST + 1, 1]).is_ok());
    // So has the outermost where another limiter is the last.
    let off = TokenBucket::with_clock(Limit::Unlimited, ManualClock::new());
    assert_eq!(hierarchy.try_acquire_with_at(now, [MOST + 1, 1], &off, 1).unwrap_err().denied, expected);
    // Held already, by a reservation: only its end helps.
    let reservation = inner.limiter().reserve_at(now, MOST).unwrap();
    let denied = hierarchy.peek_at(now, [1, 2]).unwrap_err();
    assert_eq!((denied.name, denied.denied), ("inner", Denied::ConcurrencyLimited));
    assert_eq!(hierarchy.try_acquire_at(now, [1, 2]), Err(denied));
    // What is asked of the level alone is taken, which needs no hold.
    assert!(inner.peek_at(now, 2).is_ok() && inner.try_acquire_at(now, 2).is_ok());
    reservation.cancel();
    assert!(hierarchy.peek_at(now, [1, 2]).is_ok() && hierarchy.try_acquire_at(now, [1, 2]).is_ok());
}

#[test]
fn c09_a_hint_takes_what_is_in_flight_for_let_go() {
    let level = Level::new("bucket", bucket(quota!("10/1s")));
    let now = Nanos::ZERO;
    assert!(level.try_acquire_at(now, 4).is_ok());
    let hierarchy = Hierarchy::new([&level]).unwrap();
    let hint = Cell::new(None);
    // 2 of 6 are held while 8 are asked for: 2 short if they are let go, and 4 if not.
    let meanwhile = Refusing(|| hint.set(level.try_acquire_at(now, 8).unwrap_err().retry_after()));
    assert!(hierarchy.try_acquire_with_at(now, [2], &meanwhile, 1).is_err());
    assert_eq!(hint.get(), Some(Duration::from_millis(200)));
    // They were let go, and nobody took anything: right to the nanosecond.
    let at = Nanos::from_millis(200);
    assert!(level.try_acquire_at(Nanos::new(at.as_u64() - 1), 8).is_err());
    assert!(level.try_acquire_at(at, 8).is_ok());
}

#[test]
fn c09_a_reservation_is_no_hold_in_flight() {
    fn give_way(_: u32) {
        panic!("nobody waits for a reservation");
    }
    let level = Level::with_give_way("bucket", bucket(quota!("10/1s")), give_way);
    let reservation = level.limiter().reserve_at(Nanos::ZERO, 8).unwrap();
    assert!(level.try_acquire_at(Nanos::ZERO, 3).is_err());
    assert!(Hierarchy::new([&level]).unwrap().try_acquire_at(Nanos::ZERO, [3]).is_err());
    drop(reservation);
    assert!(level.try_acquire_at(Nanos::ZERO, 10).is_ok());
}

#[test]
fn a25_a_sliding_counter_can_be_a_level_and_be_held() {
    let (outer, inner) = (Level::new("outer", counter("10/1s")), Level::new("inner", counter("4/1s")));
    let hierarchy = Hierarchy::of([&outer, &inner]).unwrap();
    let now = Nanos::from_millis(5_500);
    let remaining = |admitted: [Admitted; 2]| admitted.map(|admitted| admitted.remaining.exactly().unwrap());
    assert_eq!(hierarchy.try_acquire_at(now, [3, 2]).map(remaining), Ok([7, 2]));
    let denied = hierarchy.try_acquire_at(now, [1, 3]).unwrap_err();
    assert_eq!((denied.name, denied.denied.retry_after()), ("inner", Some(Duration::from_secs(1))));
    let before = (outer.limiter().state(), inner.limiter().state());
    assert!(hierarchy.try_acquire_with_at(now, [7, 2], &Refusing(|| {}), 1).is_err());
    assert_eq!((outer.limiter().state(), inner.limiter().state()), before);
}

#[test]
fn c09_what_a_counter_lets_go_in_a_later_window_is_gone_from_the_one_it_was_held_in() {
    for (later, then) in [(5_900, 1), (6_500, 1), (7_500, 1), (8_500, 1), (6_500, 0)] {
        let level = Level::new("counter", counter("10/1s"));
        let untouched = counter("10/1s");
        let now = Nanos::from_millis(5_500);
        for limiter in [level.limiter(), &untouched] {
            assert!(limiter.try_acquire_at(now, 3).is_ok());
        }
        let later = Nanos::from_millis(later);
        let meanwhile = Refusing(|| assert!(level.limiter().try_acquire_at(later, then).is_ok()));
        assert!(Hierarchy::new([&level]).unwrap().try_acquire_with_at(now, [5], &meanwhile, 1).is_err());
        assert!(untouched.try_acquire_at(later, then).is_ok());
        assert_eq!(level.limiter().state(), untouched.state());
    }
}

#[test]
fn a25_references_and_shared_limiters_can_be_levels() {
    fn check<L: Holding>(outer: L, inner: &Bucket) {
        let (outer, inner) = (Level::new("outer", outer), Level::new("inner", inner));
        let hierarchy = Hierarchy::of([&outer as &Level<dyn Holding>, &inner]).unwrap();
        assert!(hierarchy.try_acquire_at(Nanos::ZERO, [1, 1]).is_ok());
        assert!(hierarchy.try_acquire_with_at(Nanos::ZERO, [1, 1], &Refusing(|| {}), 1).is_err());
        assert_eq!(hierarchy.peek_at(Nanos::ZERO, [5, 1]).unwrap_err().name, "outer");
        assert_eq!(hierarchy.inspect_at(Nanos::ZERO).map(|inspection| inspection.level), [4, 8]);
        assert!(outer.limiter().peek_hold_at(Nanos::ZERO, 1 << 40).unwrap_err().is_final());
    }
    let (outer, inner) = (bucket(quota!("5/1h")), bucket(quota!("9/1h")));
    check(&outer, &inner);
    #[cfg(feature = "alloc")]
    check(alloc::sync::Arc::new(bucket(quota!("5/1h"))), &bucket(quota!("9/1h")));
    // Without the limiter's own answer, a forwarded look would say yes.
    let big = bucket(quota!("1/1h burst 2_000_000_000_000"));
    assert!((&&big).peek_hold_at(Nanos::ZERO, 1 << 40).is_err() && (&&big).peek_at(Nanos::ZERO, 1 << 40).is_ok());
    assert_eq!((big.held(), inner.held()), (0, 0));
}

#[test]
fn c09_a_request_that_the_outermost_level_refuses_writes_nothing_inside() {
    /// Counts what is written.
    struct Writes(Bucket, Cell<u32>);
    impl Limiter for Writes {
        fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
            self.1.set(self.1.get() + 1);
            self.0.try_acquire_at(now, cost)
        }
        fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
            self.0.peek_at(now, cost)
        }
        fn inspect_at(&self, now: Nanos) -> Inspection {
            self.0.inspect_at(now)
        }
    }
    impl Holding for Writes {
        fn hold_at(&self, now: Nanos, cost: u64) -> Decision {
            self.1.set(self.1.get() + 1);
            self.0.hold_at(now, cost)
        }
        fn keep(&self, cost: u64, held: &Admitted) {
            self.1.set(self.1.get() + 1);
            self.0.keep(cost, held);
        }
        fn let_go(&self, cost: u64, held: &Admitted) {
            self.1.set(self.1.get() + 1);
            self.0.let_go(cost, held);
        }
        fn give_back(&self, cost: u64, taken: &Admitted) {
            self.1.set(self.1.get() + 1);
            self.0.give_back(cost, taken);
        }
    }
    let levels = ["a", "b", "c"].map(|name| Level::new(name, Writes(bucket(quota!("9/1h")), Cell::new(0))));
    let hierarchy = Hierarchy::of(levels.each_ref()).unwrap();
    let writes = || levels.each_ref().map(|level| level.limiter().1.take());
    assert!(hierarchy.try_acquire_at(Nanos::ZERO, [9, 1, 1]).is_ok());
    assert_eq!(writes(), [1, 2, 2]);
    // Also where a last limiter lacks it.
    let last = TokenBucket::with_clock(Limit::DenyAll, ManualClock::new());
    for _ in 0..10 {
        assert_eq!(hierarchy.try_acquire_at(Nanos::ZERO, [1, 1, 1]).unwrap_err().name, "a");
        assert_eq!(hierarchy.try_acquire_with_at(Nanos::ZERO, [0, 1, 1], &last, 1).unwrap_err().level, 3);
    }
    // Or a limit of what is in flight.
    let full = ConcurrencyLimit::new(1);
    let _out = full.try_acquire(1).unwrap();
    assert_eq!(hierarchy.try_acquire_permit_at(Nanos::ZERO, [0, 1, 1], &full, 1).unwrap_err().level, 3);
    assert_eq!(writes(), [0, 0, 0]);
}

/// What a limit's observer was told; it panics on demand.
#[derive(Default)]
struct Told {
    events: RefCell<Vec<String>>,
    panics: Cell<bool>,
}

impl PermitObserver for Told {
    type Mark = &'static str;

    fn acquired(&self, cost: u64, usage: Usage) -> &'static str {
        self.events.borrow_mut().push(format!("acquired {cost} of {}, {} in use", usage.limit, usage.in_use));
        if self.panics.take() {
            std::panic::resume_unwind(Box::new("acquired"));
        }
        "mark"
    }

    fn denied(&self, cost: u64, denied: &Denied) {
        self.events.borrow_mut().push(format!("denied {cost}: {denied}"));
    }

    fn released(&self, mark: &&'static str, cost: u64, outcome: Outcome, usage: Usage) {
        self.events.borrow_mut().push(format!("released {cost} {mark} {outcome:?}, {} in use", usage.in_use));
    }
}

#[test]
fn c17_a_permit_and_all_levels_or_nothing() {
    let (calls, window) = (
        Level::new("calls", bucket(quota!("10/1h"))),
        Level::new(
            "window",
            ShardedWindow::<[Shard; 2], _, _>::with_array(window_limit(4, 1_000), ManualClock::new(), FixedShard(0)),
        ),
    );
    let in_flight = ConcurrencyLimit::new(3).observed_by(Told::default());
    let hierarchy = Hierarchy::new([&calls, &window]).unwrap();
    let now = Nanos::ZERO;
    let left = || (hierarchy.inspect_at(now).map(|inspection| inspection.level), in_flight.in_use());

    let ([at_calls, _], permit) = hierarchy.try_acquire_permit_at(now, [1, 2], &in_flight, 2).unwrap();
    assert_eq!((at_calls.remaining.exactly(), permit.cost(), left()), (Some(9), 2, ([9, 2], 2)));
    // The limit refuses, and each level.
    let refused = |costs, cost| {
        let denied = hierarchy.try_acquire_permit_at(now, costs, &in_flight, cost).unwrap_err();
        (denied.level, denied.denied.is_final())
    };
    assert_eq!(refused([1, 1], 2), (2, false));
    assert_eq!(refused([1, 1], 4), (2, true));
    assert_eq!(refused([1, 3], 1), (1, false));
    assert_eq!(refused([10, 1], 1), (0, false));
    assert_eq!(left(), ([9, 2], 2));
    permit.success();
    assert_eq!(left(), ([9, 2], 0));
    let (_, permit) = hierarchy.try_acquire_permit_at(now, [1, 1], &in_flight, 0).unwrap();
    permit.ignore();
    assert_eq!(
        *in_flight.observer().events.borrow(),
        [
            "acquired 2 of 3, 2 in use",
            "denied 2: too much is in use, retry once some was given back",
            "denied 4: cost 4 exceeds the limit of 3, so this request can never be admitted",
            "released 2 mark Success, 0 in use",
            "acquired 0 of 3, 0 in use",
            "released 0 mark Ignored, 0 in use",
        ]
    );
}

#[cfg(feature = "alloc")]
#[test]
fn c17_a_permit_that_shares_its_limit_can_leave() {
    let calls = Level::new("calls", bucket(quota!("10/1h")));
    let in_flight = alloc::sync::Arc::new(ConcurrencyLimit::new(1));
    let hierarchy = Hierarchy::new([&calls]).unwrap();
    let shared = alloc::sync::Arc::clone(&in_flight);
    let (_, permit) = hierarchy.try_acquire_permit_at(Nanos::ZERO, [1], shared, 1).unwrap();
    std::thread::spawn(move || permit.success()).join().unwrap();
    assert_eq!(in_flight.in_use(), 0);
}

#[test]
fn c17_a_panic_on_the_way_to_a_permit_leaves_it_free() {
    #[derive(Default)]
    struct Panicking(Cell<bool>);
    impl Observer for Panicking {
        fn admitted(&self, _: Nanos, _: u64, _: &Admitted) {
            if self.0.get() {
                std::panic::resume_unwind(Box::new("admitted"));
            }
        }
    }
    let calls = Level::new("calls", bucket(quota!("10/1h")).observed_by(Panicking::default()));
    let in_flight = ConcurrencyLimit::new(1).observed_by(Told::default());
    let hierarchy = Hierarchy::of([&calls]).unwrap();
    for (in_level, level) in [(true, 9), (false, 8)] {
        calls.limiter().observer().0.set(in_level);
        in_flight.observer().panics.set(!in_level);
        let take = || hierarchy.try_acquire_permit_at(Nanos::ZERO, [1], &in_flight, 1).map(drop);
        assert!(catch_unwind(AssertUnwindSafe(take)).is_err());
        assert_eq!(
            (in_flight.in_use(), calls.limiter().inspect_at(Nanos::ZERO).level),
            (0, level),
            "what was taken stands"
        );
    }
    calls.limiter().observer().0.set(false);
    assert!(hierarchy.try_acquire_permit_at(Nanos::ZERO, [1], &in_flight, 1).is_ok());
}

#[test]
fn what_came_back_is_what_observers_are_told() {
    #[derive(Default)]
    struct Back(RefCell<Vec<u64>>);
    impl Observer for Back {
        fn refunded(&self, cost: u64) {
            self.0.borrow_mut().push(cost);
        }
    }
    let now = Nanos::from_secs(100);

    let bucket = TokenBucket::with_clock(quota!("5/1s debt 2"), ManualClock::new()).observed_by(Back::default());
    assert!(bucket.try_acquire_at(now, 5).is_ok());
    [3, 100, u64::MAX, 0].into_iter().for_each(|cost| bucket.refund(cost));
    assert_eq!(*bucket.observer().0.borrow(), [3, 7, 7, 0], "no more than the capacity and the debt");
    let young = TokenBucket::with_clock(quota!("5/1s"), ManualClock::new()).observed_by(Back::default());
    assert!(young.try_acquire_at(Nanos::ZERO, 2).is_ok());
    [5, 1].into_iter().for_each(|cost| young.refund(cost));
    assert_eq!(*young.observer().0.borrow(), [2, 0], "no more than was taken since the origin");

    let adjustable = AdjustableBucket::with_clock(quota!("5/1s"), ManualClock::new()).observed_by(Back::default());
    assert!(adjustable.try_acquire_at(now, 5).is_ok());
    [3, 100].into_iter().for_each(|cost| adjustable.refund(cost));
    assert_eq!(*adjustable.observer().0.borrow(), [3, 5]);

    let window =
        ShardedWindow::<[Shard; 2], _, _>::with_array(window_limit(5, 1_000), ManualClock::new(), FixedShard(0))
            .observed_by(Back::default());
    assert!(window.try_acquire_at(now, 4).is_ok());
    window.refund(now, 1);
    window.refund(Nanos::ZERO, 1);
    window.refund(now, 9);
    window.refund(now, 9);
    assert_eq!(*window.observer().0.borrow(), [1, 0, 3, 0]);

    let counter = counter("5/1s").observed_by(Back::default());
    assert!(counter.try_acquire_at(Nanos::from_millis(99_900), 2).is_ok() && counter.try_acquire_at(now, 2).is_ok());
    counter.refund(Nanos::from_millis(99_900), 9);
    counter.refund(now, 1);
    counter.refund(now, 2);
    counter.refund(Nanos::ZERO, 2);
    assert_eq!(*counter.observer().0.borrow(), [2, 1, 1, 0]);
}

#[cfg(feature = "lock_api")]
#[test]
fn what_came_back_to_a_log_is_what_its_observer_is_told() {
    use sluicegate_core::{SharedSlidingLog, SlidingLog};

    #[derive(Default)]
    struct Back(RefCell<Vec<u64>>);
    impl Observer for Back {
        fn refunded(&self, cost: u64) {
            self.0.borrow_mut().push(cost);
        }
    }
    let log = SharedSlidingLog::<parking_lot::RawMutex, _>::new(SlidingLog::new("5/1s".parse().unwrap()))
        .observed_by(Back::default());
    assert!(log.try_acquire_at(Nanos::ZERO, 3).is_ok());
    log.refund(Nanos::ZERO, 1);
    log.refund(Nanos::new(1), 1);
    log.refund(Nanos::ZERO, 9);
    assert_eq!(*log.observer().0.borrow(), [1, 0, 2]);
}

proptest! {
    #![proptest_config(cases(300))]

    /// A hold that is let go leaves a counter as if it had never been, whatever was taken, given back and passed meanwhile,
    /// as long as that had room beside it.
    #[test]
    fn c09_a_counters_hold_leaves_no_trace(
        start in 0_u64..5_000,
        before in 0_u64..4,
        held in 0_u64..6,
        meanwhile in proptest::collection::vec((0_u64..1_500, 0_u64..4, any::<bool>()), 0..6),
    ) {
        let (level, untouched) = (Level::new("counter", counter("10/1s")), counter("10/1s"));
        let now = Nanos::from_millis(start);
        for limiter in [level.limiter(), &untouched] {
            let _ = limiter.try_acquire_at(now, before);
        }
        let refused = Refusing(|| {
            let mut at = start;
            for &(wait, cost, is_given_back) in &meanwhile {
                at += wait;
                let at = Nanos::from_millis(at);
                // Only what both admit: a hold makes room scarcer while it lasts.
                if let Ok(admitted) = level.limiter().try_acquire_at(at, cost) {
                    assert!(untouched.try_acquire_at(at, cost).is_ok());
                    if is_given_back {
                        level.limiter().refund(admitted.at, cost);
                        untouched.refund(admitted.at, cost);
                    }
                }
            }
        });
        let _ = Hierarchy::new([&level]).unwrap().try_acquire_with_at(now, [held], &refused, 1);
        let end = Nanos::from_millis(20_000);
        for at in [now, Nanos::from_millis(start + 700), Nanos::from_millis(start + 1_300), end] {
            prop_assert_eq!(level.limiter().inspect_at(at), untouched.inspect_at(at));
        }
    }
}
