//! Several limits over one request: every one of them, or none.

mod support;

use core::cell::{Cell, RefCell};
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;

use proptest::prelude::*;
use sluicegate_core::{
    AdjustableBucket, Admitted, Decision, Denied, DeniedBy, DuplicateLevel, FixedShard, Hierarchy, Holding,
    Inheritance, Inspection, Level, Limit, Limiter, ManualClock, Nanos, Observer, Quota, Remaining, Shard,
    ShardedWindow, TokenBucket, WindowLimit, quota,
};
use support::{cases, window_limit};

type Bucket<O = ()> = AdjustableBucket<ManualClock, O>;
type Window = ShardedWindow<[Shard; 3], ManualClock, FixedShard>;

fn level(name: &'static str, limit: impl Into<Limit>) -> Level<Bucket> {
    Level::new(name, AdjustableBucket::with_clock(limit, ManualClock::new()))
}

fn window(name: &'static str, limit: u64, width: u64) -> Level<Window> {
    Level::new(name, ShardedWindow::with_array(window_limit(limit, width), ManualClock::new(), FixedShard(1)))
}

/// A limiter of a user's own: so many at once until they are given back, which counts what is written to it and panics on
/// demand.
#[derive(Default)]
struct Counting {
    most: u64,
    taken: Cell<u64>,
    held: Cell<u64>,
    writes: Cell<u64>,
    told: RefCell<Vec<bool>>,
    panic_at: Cell<&'static str>,
}

impl Counting {
    fn of(most: u64) -> Self {
        Self { most, ..Self::default() }
    }

    fn reached(&self, call: &'static str) {
        if self.panic_at.get() == call {
            self.panic_at.set("");
            std::panic::resume_unwind(Box::new(call));
        }
    }

    fn free(&self) -> u64 {
        self.most - self.taken.get() - self.held.get()
    }

    fn decide(&self, now: Nanos, cost: u64) -> Decision {
        if cost > self.most {
            return Err(Denied::CostExceedsLimit { cost, limit: self.most });
        }
        if cost > self.free() {
            return Err(Denied::ConcurrencyLimited);
        }
        Ok(Admitted::new(Remaining::Exactly(self.free() - cost), now))
    }
}

impl Limiter for Counting {
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        self.take_at(now, cost)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.reached("peek");
        self.decide(now, cost)
    }

    fn inspect_at(&self, _now: Nanos) -> Inspection {
        Inspection::new(self.free(), self.most)
    }

    fn take_at(&self, now: Nanos, cost: u64) -> Decision {
        self.reached("take");
        let decision = self.decide(now, cost)?;
        self.writes.set(self.writes.get() + 1);
        self.taken.set(self.taken.get() + cost);
        Ok(decision)
    }

    fn tell(&self, _now: Nanos, _cost: u64, decision: &Decision) {
        self.told.borrow_mut().push(decision.is_ok());
        self.reached("tell");
    }
}

impl Holding for Counting {
    fn hold_at(&self, now: Nanos, cost: u64) -> Decision {
        self.reached("hold");
        let decision = self.decide(now, cost)?;
        self.writes.set(self.writes.get() + 1);
        self.held.set(self.held.get() + cost);
        Ok(decision)
    }

    fn keep(&self, cost: u64, _held: &Admitted) {
        self.writes.set(self.writes.get() + 1);
        self.held.set(self.held.get() - cost);
        self.taken.set(self.taken.get() + cost);
        self.reached("keep");
    }

    fn let_go(&self, cost: u64, _held: &Admitted) {
        self.writes.set(self.writes.get() + 1);
        self.held.set(self.held.get() - cost);
    }

    fn give_back(&self, cost: u64, _taken: &Admitted) {
        self.writes.set(self.writes.get() + 1);
        self.taken.set(self.taken.get() - cost);
    }
}

/// C9's four levels.
fn four() -> (Level<Bucket>, Level<Bucket>, Level<Bucket>, Level<Bucket>) {
    (
        level("global", quota!("1000/1s burst 10000")),
        level("application", quota!("500/1s burst 2000")),
        level("feature", quota!("100/1s burst 300")),
        level("client", quota!("10/1s burst 40")),
    )
}

#[test]
fn c09_four_levels_admit_all_or_nothing_and_tell_every_remaining() {
    let (global, application, feature, client) = four();
    let hierarchy = Hierarchy::new([&global, &application, &feature, &client]).unwrap();
    let now = Nanos::from_secs(1);
    let remaining = |admitted: [Admitted; 4]| admitted.map(|admitted| admitted.remaining.exactly().unwrap());
    assert_eq!(hierarchy.try_acquire_at(now, [1, 2, 3, 4]).map(remaining), Ok([9_999, 1_998, 297, 36]));
    assert_eq!(hierarchy.peek_at(now, [1; 4]).map(remaining), Ok([9_998, 1_997, 296, 35]));
    let denied = hierarchy.try_acquire_at(now, [1, 1, 1, 37]).unwrap_err();
    assert_eq!((denied.level, denied.name), (3, "client"));
    assert_eq!(denied.denied.retry_after(), Some(Duration::from_millis(100)));
    assert_eq!(denied.to_string(), "client: rate limited, retry after 100ms");
    assert_eq!(hierarchy.inspect_at(now).map(|inspection| inspection.level), [9_999, 1_998, 297, 36]);
    assert_eq!(hierarchy.inspect_at(now).map(|inspection| inspection.capacity), [10_000, 2_000, 300, 40]);
    assert_eq!(hierarchy.levels().map(Level::name), ["global", "application", "feature", "client"]);
    assert_eq!(format!("{hierarchy:?}"), r#"["global", "application", "feature", "client"]"#);
}

#[test]
fn c09_the_longest_wait_is_named_and_what_never_helps_before_it() {
    let (a, b, c) = (level("a", quota!("1/1s")), level("b", quota!("1/1m")), level("c", quota!("1/10s")));
    let held = level("held", quota!("5/1s"));
    let _all = held.limiter().reserve(5).unwrap();
    let deny = level("deny", Limit::DenyAll);
    let now = Nanos::ZERO;
    for only in [&a, &b, &c] {
        assert!(only.try_acquire_at(now, 1).is_ok());
    }
    let denied = Hierarchy::new([&a, &b, &c]).unwrap().try_acquire_at(now, [1; 3]).unwrap_err();
    assert_eq!((denied.name, denied.denied.retry_after()), ("b", Some(Duration::from_secs(60))));
    let denied = Hierarchy::new([&b, &a, &held]).unwrap().try_acquire_at(now, [1; 3]).unwrap_err();
    assert_eq!((denied.name, denied.denied), ("held", Denied::ConcurrencyLimited));
    let denied = Hierarchy::new([&b, &held, &deny, &a]).unwrap().try_acquire_at(now, [1; 4]).unwrap_err();
    assert_eq!((denied.name, denied.denied), ("deny", Denied::Closed));
    let denied = Hierarchy::new([&b, &held, &a]).unwrap().try_acquire_at(now, [1, 1, 2]).unwrap_err();
    assert_eq!((denied.name, denied.denied), ("a", Denied::CostExceedsLimit { cost: 2, limit: 1 }));
    // Of two that wait equally long it is the innermost.
    let twin = level("twin", quota!("1/1m"));
    assert!(twin.try_acquire_at(now, 1).is_ok());
    assert_eq!(Hierarchy::new([&b, &twin]).unwrap().peek_at(now, [1; 2]).unwrap_err().name, "twin");
}

#[test]
fn c09_costs_of_nothing_and_levels_without_a_limit_are_no_hindrance() {
    let (off, empty) = (level("off", Limit::Unlimited), level("empty", quota!("1/1h")));
    assert!(empty.try_acquire_at(Nanos::ZERO, 1).is_ok());
    for levels in [[&off, &empty], [&empty, &off]] {
        let hierarchy = Hierarchy::of(levels.map(|level| level as &Level<dyn Holding>)).unwrap();
        let costs = if levels[0].name() == "off" { [u64::MAX, 0] } else { [0, u64::MAX] };
        let admitted = hierarchy.try_acquire_at(Nanos::ZERO, costs).unwrap();
        assert!(admitted.iter().any(|admitted| admitted.remaining == Remaining::Unlimited));
        assert!(admitted.iter().any(|admitted| admitted.remaining == Remaining::Exactly(0)));
        assert_eq!(off.limiter().held() + empty.limiter().held(), 0);
    }
}

#[test]
fn c09_a_tenant_at_its_limit_writes_nothing_above_it() {
    let above = Level::new("above", Counting::of(100));
    let between = Level::new("between", Counting::of(100));
    let bucket = level("bucket", quota!("100/1s"));
    let tenant = level("tenant", quota!("1/1h"));
    let hierarchy = Hierarchy::of([&above as &Level<dyn Holding>, &between, &bucket, &tenant]).unwrap();
    assert!(hierarchy.try_acquire_at(Nanos::ZERO, [1; 4]).is_ok());
    let before = (above.limiter().writes.get(), between.limiter().writes.get(), format!("{bucket:?}"));
    assert_eq!((before.0, before.1), (1, 2), "taken at the outermost, held and kept at the others");
    for _ in 0..100 {
        assert_eq!(hierarchy.try_acquire_at(Nanos::ZERO, [1; 4]).unwrap_err().name, "tenant");
    }
    let after = (above.limiter().writes.get(), between.limiter().writes.get(), format!("{bucket:?}"));
    assert_eq!(after, before);
    assert_eq!(*above.limiter().told.borrow(), [true], "nor is it told");
}

#[test]
fn c09_any_number_of_levels() {
    fn check<const N: usize>() {
        let levels: [Level<Bucket>; N] = core::array::from_fn(|index| {
            level(["0", "1", "2", "3", "4", "5", "6", "7"][index], Quota::per_minute(10 + index as u64).unwrap())
        });
        let hierarchy = Hierarchy::of(levels.each_ref().map(|level| level as &Level<dyn Holding>)).unwrap();
        for round in 1..=10 {
            let admitted = hierarchy.try_acquire_at(Nanos::ZERO, [1; N]).unwrap();
            for (index, admitted) in admitted.iter().enumerate() {
                assert_eq!(admitted.remaining, Remaining::Exactly(10 + index as u64 - round));
                assert_eq!(admitted.at, Nanos::ZERO);
            }
        }
        let denied = hierarchy.try_acquire_at(Nanos::ZERO, [1; N]).unwrap_err();
        assert_eq!((denied.level, denied.name), (0, "0"));
        assert!(levels.iter().all(|level| level.limiter().held() == 0));
    }
    check::<1>();
    check::<2>();
    check::<3>();
    check::<4>();
    check::<5>();
    check::<6>();
    check::<7>();
    check::<8>();
}

#[test]
fn c09_the_same_level_twice_is_an_error() {
    let (a, b) = (level("a", quota!("1/1s")), level("b", quota!("1/1s")));
    let error = Hierarchy::new([&a, &b, &a]).unwrap_err();
    assert_eq!(error, DuplicateLevel { first: 0, second: 2, name: "a" });
    assert_eq!(error.to_string(), "level 2 (a) is level 0 again: a request can hold each level once");
    assert_eq!(Hierarchy::new([&b, &a, &a]).unwrap_err().first, 1);
    // Equal names and equal limits are levels of their own.
    assert!(Hierarchy::new([&a, &level("a", quota!("1/1s"))]).is_ok());
}

#[test]
fn a25_levels_of_different_kinds_are_all_or_nothing() {
    let global = level("global", quota!("100/1h"));
    let window = window("window", 10, 1_000);
    let own = Level::new("own", Counting::of(7));
    let hierarchy = Hierarchy::of([&global as &Level<dyn Holding>, &window, &own]).unwrap();
    let now = Nanos::new(2_500);
    let [at_global, at_window, at_own] = hierarchy.try_acquire_at(now, [10, 3, 2]).unwrap();
    assert_eq!((at_global.remaining, at_own.remaining.at_least()), (Remaining::Exactly(90), 5));
    assert!(at_window.remaining.at_least() <= 7);
    let left = |hierarchy: &Hierarchy<'_, 3, dyn Holding>| hierarchy.inspect_at(now).map(|inspection| inspection.level);
    assert_eq!(left(&hierarchy), [90, 7, 5]);
    for (costs, name, wait) in [
        ([91, 1, 1], "global", Some(Duration::from_secs(36) - Duration::from_nanos(2_500))),
        ([1, 8, 1], "window", Some(Duration::from_nanos(500))),
        ([1, 1, 6], "own", None),
        ([1, 11, 1], "window", None),
    ] {
        let denied = hierarchy.try_acquire_at(now, costs).unwrap_err();
        assert_eq!(denied.name, name);
        if denied.name != "global" {
            assert_eq!(denied.denied.retry_after(), wait);
        }
        assert_eq!(left(&hierarchy), [90, 7, 5], "{name} left a trace");
    }
    // In every order.
    let hierarchy = Hierarchy::of([&own as &Level<dyn Holding>, &global, &window]).unwrap();
    assert!(hierarchy.try_acquire_at(now, [5, 90, 7]).is_ok());
    assert_eq!(left(&hierarchy), [0, 0, 0]);
}

#[test]
fn a25_a_plain_bucket_may_be_the_last() {
    let (global, tenant) = (level("global", quota!("10/1h")), level("tenant", quota!("10/1h")));
    let client = TokenBucket::with_clock(quota!("3/1h"), ManualClock::new());
    let hierarchy = Hierarchy::new([&global, &tenant]).unwrap();
    let now = Nanos::ZERO;
    let ([at_global, at_tenant], at_client) = hierarchy.try_acquire_with_at(now, [1, 2], &client, 2).unwrap();
    let left = [at_global, at_tenant, at_client].map(|admitted| admitted.remaining.at_least());
    assert_eq!(left, [9, 8, 1]);
    let denied = hierarchy.try_acquire_with_at(now, [1, 2], &client, 2).unwrap_err();
    assert_eq!((denied.level, denied.name), (2, ""));
    assert_eq!(denied.denied.retry_after(), Some(Duration::from_secs(1_200)));
    assert_eq!(denied.to_string(), format!("level 2: {}", denied.denied));
    // The longer wait is named wherever it is.
    let denied = hierarchy.try_acquire_with_at(now, [1, 9], &client, 2).unwrap_err();
    assert_eq!((denied.level, denied.denied.retry_after()), (2, Some(Duration::from_secs(1_200))));
    let denied = hierarchy.try_acquire_with_at(now, [1, 10], &client, 1).unwrap_err();
    assert_eq!((denied.level, denied.denied.retry_after()), (1, Some(Duration::from_secs(720))));
    assert_eq!(hierarchy.inspect_at(now).map(|inspection| inspection.level), [9, 8]);
    assert_eq!(client.inspect().level, 1);
}

/// A last limiter that had it when it was looked at and has it no more when its turn comes; or panics then.
struct Fickle {
    panics: bool,
}

impl Limiter for Fickle {
    fn try_acquire_at(&self, _: Nanos, _: u64) -> Decision {
        if self.panics {
            std::panic::resume_unwind(Box::new("taken"));
        }
        Err(Denied::ConcurrencyLimited)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        TokenBucket::with_clock(Limit::Unlimited, ManualClock::new()).peek_at(now, cost)
    }

    fn inspect_at(&self, now: Nanos) -> Inspection {
        TokenBucket::with_clock(Limit::Unlimited, ManualClock::new()).inspect_at(now)
    }
}

#[test]
fn a25_what_fails_at_the_last_leaves_no_trace() {
    let (global, window, own) =
        (level("global", quota!("10/1h burst 3")), window("window", 10, 1_000), Level::new("own", Counting::of(5)));
    let hierarchy = Hierarchy::of([&global as &Level<dyn Holding>, &window, &own]).unwrap();
    // Late, so that a refund instead of letting go would leave a token too many.
    let now = Nanos::from_secs(1_000);
    assert!(global.try_acquire_at(Nanos::ZERO, 1).is_ok());
    let before = (format!("{global:?}"), window.limiter().inspect_at(now), own.limiter().free());
    for panics in [false, true] {
        let fickle = Fickle { panics };
        let result = catch_unwind(AssertUnwindSafe(|| hierarchy.try_acquire_with_at(now, [2, 3, 4], &fickle, 1)));
        assert_eq!(result.is_err(), panics);
        if let Ok(decision) = result {
            assert_eq!(decision.unwrap_err().level, 3);
        }
        let after = (format!("{global:?}"), window.limiter().inspect_at(now), own.limiter().free());
        assert_eq!(after, before);
        assert!(own.limiter().told.borrow().is_empty());
    }
    // And nobody waits for a hold that is gone.
    assert!(hierarchy.try_acquire_at(now, [2, 10, 5]).is_ok());
    assert!(own.try_acquire_at(now, 1).is_err());
}

#[test]
fn c09_a_panic_at_any_level_leaves_no_trace_at_the_others() {
    for place in 0..4 {
        for call in ["peek", "hold", "take"] {
            let levels: [_; 4] = core::array::from_fn(|_| Level::new("own", Counting::of(9)));
            let bucket = level("bucket", quota!("9/1h"));
            let hierarchy =
                Hierarchy::of([&levels[0] as &Level<dyn Holding>, &levels[1], &levels[2], &levels[3], &bucket])
                    .unwrap();
            let reached = if place == 0 { "take" } else { "hold" };
            levels[place].limiter().panic_at.set(call);
            let result = catch_unwind(AssertUnwindSafe(|| hierarchy.try_acquire_at(Nanos::ZERO, [1, 2, 3, 4, 5])));
            assert_eq!(result.is_err(), call == "peek" || call == reached);
            if result.is_err() {
                assert!(levels.iter().all(|level| level.limiter().free() == 9), "{call} at {place}");
                assert_eq!((bucket.limiter().held(), bucket.limiter().inspect_at(Nanos::ZERO).level), (0, 9));
            }
            // No level believes in a hold that is gone: its denials do not wait for it.
            for level in &levels {
                level.limiter().panic_at.set("");
                assert!(level.try_acquire_at(Nanos::ZERO, 10).is_err());
                let _ = level.try_acquire_at(Nanos::ZERO, 9);
                assert!(level.try_acquire_at(Nanos::ZERO, 9).is_err());
            }
        }
    }
}

#[test]
fn c09_a_limiter_that_breaks_its_contract_by_panicking_hangs_nobody() {
    let (outer, own, inner) =
        (level("outer", quota!("9/1h")), Level::new("own", Counting::of(9)), level("inner", quota!("9/1h")));
    let hierarchy = Hierarchy::of([&outer as &Level<dyn Holding>, &own, &inner]).unwrap();
    own.limiter().panic_at.set("keep");
    assert!(catch_unwind(AssertUnwindSafe(|| hierarchy.try_acquire_at(Nanos::ZERO, [1; 3]))).is_err());
    for _ in 0..8 {
        assert!(own.try_acquire_at(Nanos::ZERO, 1).is_ok());
    }
    assert!(own.try_acquire_at(Nanos::ZERO, 1).is_err(), "and does not wait");
    assert_eq!(inner.limiter().held(), 0);
}

#[test]
fn c09_a_panic_of_an_observer_leaves_the_decision_standing_at_every_level() {
    let (outer, inner) = (Level::new("outer", Counting::of(9)), level("inner", quota!("9/1h")));
    let hierarchy = Hierarchy::of([&outer as &Level<dyn Holding>, &inner]).unwrap();
    outer.limiter().panic_at.set("tell");
    assert!(catch_unwind(AssertUnwindSafe(|| hierarchy.try_acquire_at(Nanos::ZERO, [1, 2]))).is_err());
    assert_eq!(hierarchy.inspect_at(Nanos::ZERO).map(|inspection| inspection.level), [8, 7]);
    assert_eq!(inner.limiter().held(), 0);
}

#[test]
fn c09_observers_are_told_only_of_decisions_that_stand() {
    #[derive(Default)]
    struct Log(RefCell<Vec<(u64, bool)>>);
    impl Observer for Log {
        fn admitted(&self, _: Nanos, cost: u64, _: &Admitted) {
            self.0.borrow_mut().push((cost, true));
        }
        fn denied(&self, _: Nanos, cost: u64, _: &Denied) {
            self.0.borrow_mut().push((cost, false));
        }
        fn refunded(&self, cost: u64) {
            panic!("{cost} was given back");
        }
    }
    let bucket = |quota| AdjustableBucket::with_clock(quota, ManualClock::new()).observed_by(Log::default());
    let (outer, inner) = (Level::new("outer", bucket(quota!("9/1h"))), Level::new("inner", bucket(quota!("4/1h"))));
    let hierarchy = Hierarchy::of([&outer as &Level<dyn Holding>, &inner]).unwrap();
    let now = Nanos::ZERO;
    assert!(hierarchy.try_acquire_at(now, [1, 2]).is_ok());
    assert!(hierarchy.try_acquire_at(now, [3, 4]).is_err());
    assert!(hierarchy.try_acquire_with_at(now, [1, 1], &Fickle { panics: false }, 1).is_err());
    assert!(hierarchy.peek_at(now, [9, 9]).is_err());
    assert!(inner.try_acquire_at(now, 2).is_ok());
    assert_eq!(*outer.limiter().observer().0.borrow(), [(1, true)]);
    assert_eq!(*inner.limiter().observer().0.borrow(), [(2, true), (4, false), (2, true)]);
}

#[test]
fn c09_what_a_level_holds_when_its_quota_changes_is_still_let_go() {
    // The change comes between the hold and its end.
    struct Changing<'a>(&'a Level<Bucket>);
    impl Limiter for Changing<'_> {
        fn try_acquire_at(&self, now: Nanos, _: u64) -> Decision {
            assert_eq!(self.0.limiter().held(), 5);
            self.0.limiter().adjust_at(now, quota!("2/1h").into(), Inheritance::Level);
            Err(Denied::ConcurrencyLimited)
        }
        fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
            Fickle { panics: false }.peek_at(now, cost)
        }
        fn inspect_at(&self, now: Nanos) -> Inspection {
            Fickle { panics: false }.inspect_at(now)
        }
    }
    let level = level("changing", quota!("10/1h"));
    let hierarchy = Hierarchy::new([&level]).unwrap();
    assert!(hierarchy.try_acquire_with_at(Nanos::ZERO, [5], &Changing(&level), 1).is_err());
    assert_eq!((level.limiter().held(), level.limiter().inspect_at(Nanos::ZERO).level), (0, 2));
}

#[test]
fn levels_can_be_statics_and_shared_by_many_hierarchies() {
    static GLOBAL: Level<Bucket> =
        Level::new("global", AdjustableBucket::with_limit(Limit::Quota(quota!("5/1h")), ManualClock::new()));
    const PAGES_LIMIT: WindowLimit = match WindowLimit::parse("100/1s") {
        Ok(limit) => limit,
        Err(_) => unreachable!(),
    };
    static PAGES: Level<Window> = Level::with_give_way(
        "pages",
        ShardedWindow::with_array(PAGES_LIMIT, ManualClock::new(), FixedShard(0)),
        |_| std::thread::yield_now(),
    );
    std::thread::scope(|scope| {
        for tenant in ["a", "b"] {
            scope.spawn(move || {
                let tenant = level(tenant, quota!("2/1h"));
                // Made anew for each request; borrowed from anywhere.
                let boxed: Box<Level<dyn Holding + Send + Sync>> = Box::new(level("boxed", quota!("9/1h")));
                for _ in 0..2 {
                    let hierarchy = Hierarchy::new([&GLOBAL, &PAGES, &*boxed, &tenant]).unwrap();
                    assert!(hierarchy.try_acquire_at(Nanos::ZERO, [1; 4]).is_ok());
                }
            });
        }
    });
    assert_eq!(GLOBAL.limiter().inspect_at(Nanos::ZERO).level, 1);
    assert_eq!(level("into", quota!("2/1h")).into_inner().limit().to_string(), "2/1h");
}

/// A last limiter in whose turn, while everything before it is held, `meanwhile` happens; and which then denies.
struct Meanwhile<F>(F);

impl<F: Fn()> Limiter for Meanwhile<F> {
    fn try_acquire_at(&self, _: Nanos, _: u64) -> Decision {
        (self.0)();
        Err(Denied::ConcurrencyLimited)
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        Fickle { panics: false }.peek_at(now, cost)
    }

    fn inspect_at(&self, now: Nanos) -> Inspection {
        Fickle { panics: false }.inspect_at(now)
    }
}

#[test]
fn c09_who_lacks_what_a_hold_in_flight_hides_looks_again_until_it_ends() {
    static LOOKED_AGAIN: AtomicUsize = AtomicUsize::new(0);
    fn give_way(_: u32) {
        LOOKED_AGAIN.fetch_add(1, Ordering::Relaxed);
        std::thread::yield_now();
    }
    let bucket =
        Level::with_give_way("bucket", AdjustableBucket::with_clock(quota!("10/1h"), ManualClock::new()), give_way);
    assert!(bucket.try_acquire_at(Nanos::ZERO, 3).is_ok());
    // Alone, through a hierarchy where it is held and through one where it is taken, and when only asked.
    for how in 0..4 {
        let answered = AtomicBool::new(false);
        LOOKED_AGAIN.store(0, Ordering::Relaxed);
        std::thread::scope(|scope| {
            let hold = Hierarchy::new([&bucket]).unwrap();
            // 5 of 7 are held; 2 are left for the one who asks for 6.
            let denied = hold.try_acquire_with_at(
                Nanos::ZERO,
                [5],
                &Meanwhile(|| {
                    let (bucket, answered) = (&bucket, &answered);
                    scope.spawn(move || {
                        let off = level("off", Limit::Unlimited);
                        let decision = match how {
                            0 => bucket.try_acquire_at(Nanos::ZERO, 6).is_ok(),
                            1 => Hierarchy::new([&off, bucket]).unwrap().try_acquire_at(Nanos::ZERO, [1, 6]).is_ok(),
                            2 => Hierarchy::new([bucket, &off]).unwrap().try_acquire_at(Nanos::ZERO, [6, 1]).is_ok(),
                            _ => bucket.peek_at(Nanos::ZERO, 6).is_ok(),
                        };
                        answered.store(true, Ordering::Relaxed);
                        assert!(decision, "denied by a hold that came to nothing");
                    });
                    while LOOKED_AGAIN.load(Ordering::Relaxed) < 3 && !answered.load(Ordering::Relaxed) {
                        std::thread::yield_now();
                    }
                    assert!(!answered.load(Ordering::Relaxed), "answered while nobody could know");
                }),
                1,
            );
            assert!(denied.is_err());
        });
        if how < 3 {
            bucket.limiter().refund(6);
        }
        assert_eq!((bucket.limiter().held(), bucket.limiter().inspect_at(Nanos::ZERO).level), (0, 7));
    }
}

#[test]
fn c09_who_lacks_more_than_all_holds_in_flight_is_denied_at_once() {
    let (bucket, window) = (level("bucket", quota!("10/1h")), window("window", 10, 1_000));
    let now = Nanos::ZERO;
    assert!(bucket.try_acquire_at(now, 4).is_ok() && window.try_acquire_at(now, 4).is_ok());
    let hierarchy = Hierarchy::of([&bucket as &Level<dyn Holding>, &window]).unwrap();
    // 1 is held of 6, so at most 6 will be there; and on this thread nobody ends the hold before the answer.
    let asked = Cell::new(0);
    let meanwhile = Meanwhile(|| {
        let retry_after = Duration::from_secs(360);
        assert_eq!(bucket.peek_at(now, 7), Err(Denied::RateLimited { retry_after }), "as if the hold were let go");
        assert!(bucket.try_acquire_at(now, 7).is_err() && window.try_acquire_at(now, 7).is_err());
        assert_eq!(hierarchy.try_acquire_at(now, [1, 7]).unwrap_err().name, "window");
        assert_eq!(hierarchy.try_acquire_at(now, [7, 1]).unwrap_err().name, "bucket");
        assert!(bucket.try_acquire_at(now, 11).is_err());
        // What is there beside the hold is given at once, too.
        assert!(bucket.try_acquire_at(now, 5).is_ok());
        bucket.limiter().refund(5);
        asked.set(asked.get() + 1);
    });
    assert!(hierarchy.try_acquire_with_at(now, [1, 1], &meanwhile, 1).is_err());
    assert_eq!(asked.get(), 1);
    assert_eq!(hierarchy.inspect_at(now).map(|inspection| inspection.level), [6, 6]);
}

/// A level as a naive model has it: a number at one reading.
fn naive(levels: &mut [u64; 4], capacities: [u64; 4], costs: [u64; 4]) -> bool {
    if levels.iter().zip(costs).any(|(level, cost)| cost > *level) || costs.iter().zip(capacities).any(|(a, b)| *a > b)
    {
        return false;
    }
    levels.iter_mut().zip(costs).for_each(|(level, cost)| *level -= cost);
    true
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn c09_every_level_or_none_as_a_naive_model_says(
        capacities in prop::array::uniform4(1..200_u64),
        periods in prop::array::uniform4(1..100_000_u64),
        requests in prop::collection::vec((prop::array::uniform4(0..40_u64), 0..50_000_u64, 0..4_u64), 1..40),
        debts in prop::array::uniform4(0..5_u64),
    ) {
        // A token each so many nanoseconds, so that the model counts in nanoseconds.
        let quotas: [Quota; 4] = core::array::from_fn(|index| {
            let rate = sluicegate_core::Rate::new(1, Duration::from_nanos(periods[index])).unwrap();
            Quota::with_burst(rate, capacities[index]).unwrap().with_debt(debts[index]).unwrap()
        });
        let names = ["0", "1", "2", "3"];
        let levels: [_; 4] = core::array::from_fn(|index| level(names[index], quotas[index]));
        let hierarchy = Hierarchy::of(levels.each_ref().map(|level| level as &Level<dyn Holding>)).unwrap();
        // What each level holds, in nanoseconds of refill.
        let mut model: [u64; 4] = core::array::from_fn(|index| capacities[index] * periods[index]);
        let mut now = Nanos::ZERO;
        for (costs, span, scale) in requests {
            now = now + Duration::from_nanos(span);
            for index in 0..4 {
                model[index] = (model[index] + span).min(capacities[index] * periods[index]);
            }
            let costs = costs.map(|cost| cost * scale / 2);
            let mut whole: [u64; 4] = core::array::from_fn(|index| model[index] / periods[index]);
            let admits = naive(&mut whole, capacities, costs);
            let peeked = hierarchy.peek_at(now, costs);
            match hierarchy.try_acquire_at(now, costs) {
                Ok(admitted) => {
                    prop_assert!(admits);
                    for index in 0..4 {
                        model[index] -= costs[index] * periods[index];
                        let left = Remaining::Exactly(whole[index]);
                        prop_assert_eq!((admitted[index].remaining, admitted[index].at), (left, now));
                    }
                    prop_assert_eq!(peeked, Ok(admitted));
                }
                Err(denied) => {
                    prop_assert!(!admits);
                    prop_assert_eq!(peeked, Err(denied));
                    let DeniedBy { level, name, denied: why, .. } = denied;
                    prop_assert_eq!(name, names[level]);
                    let never = costs.iter().zip(capacities).any(|(cost, capacity)| *cost > capacity);
                    prop_assert_eq!(why.is_final(), never);
                    if let Some(retry_after) = why.retry_after() {
                        let longest = (0..4).map(|index| (costs[index] * periods[index]).saturating_sub(model[index]));
                        prop_assert_eq!(retry_after.as_nanos(), u128::from(longest.max().unwrap()));
                        prop_assert!(hierarchy.peek_at(now + retry_after, costs).is_ok());
                        let early = Nanos::new((now + retry_after).as_u64() - 1);
                        prop_assert!(hierarchy.peek_at(early, costs).is_err());
                    }
                }
            }
            for index in 0..4 {
                let inspection = levels[index].limiter().inspect_at(now);
                prop_assert_eq!((inspection.level, levels[index].limiter().held()), (model[index] / periods[index], 0));
            }
        }
    }
}

#[test]
fn an_adjustable_bucket_tells_a_queue_as_early_as_a_plain_one() {
    use sluicegate_core::Limiter;
    let plain = sluicegate_core::TokenBucket::with_clock(quota!("10/1s"), ManualClock::new());
    let adjustable = AdjustableBucket::with_clock(quota!("10/1s"), ManualClock::new());
    for bucket in [&plain as &dyn Limiter, &adjustable] {
        assert!(bucket.try_acquire_at(Nanos::ZERO, 7).is_ok());
        assert_eq!(bucket.earliest_at(Nanos::ZERO, 3), Some(Nanos::ZERO));
        assert_eq!(bucket.earliest_at(Nanos::ZERO, 53), Some(Nanos::from_secs(5)));
    }
    // What is held may be let go at any time.
    let held = adjustable.reserve_at(Nanos::ZERO, 3).unwrap();
    assert_eq!(adjustable.earliest_at(Nanos::ZERO, 53), Some(Nanos::from_secs(5)));
    held.cancel();
}

#[test]
fn c09_the_last_limiter_is_told_what_stands_and_only_then() {
    #[derive(Default)]
    struct Count(Cell<(u64, u64)>);
    impl Observer for Count {
        fn admitted(&self, _now: Nanos, _cost: u64, _admitted: &Admitted) {
            let (admitted, denied) = self.0.get();
            self.0.set((admitted + 1, denied));
        }
        fn denied(&self, _now: Nanos, _cost: u64, _denied: &Denied) {
            let (admitted, denied) = self.0.get();
            self.0.set((admitted, denied + 1));
        }
    }
    let outer = Level::new("outer", Bucket::with_clock(quota!("10/1s"), ManualClock::new()));
    let last =
        sluicegate_core::TokenBucket::with_clock(quota!("2/1s"), ManualClock::new()).observed_by(Count::default());
    let hierarchy = Hierarchy::new([&outer]).unwrap();
    for _ in 0..5 {
        let _ = hierarchy.try_acquire_with_at(Nanos::ZERO, [1], &last, 1);
    }
    assert_eq!(last.observer().0.get(), (2, 3));
    assert_eq!(outer.limiter().inspect().level, 8);
}

#[cfg(feature = "lock_api")]
mod shared_log {
    use super::*;
    use parking_lot::RawMutex;
    use sluicegate_core::{Rate, SharedSlidingLog, SlidingLog};

    #[test]
    fn c09_a_shared_log_is_a_level_and_what_is_refused_elsewhere_comes_back() {
        let log = SlidingLog::new("3/1s".parse::<Rate>().unwrap());
        let log = Level::new("log", SharedSlidingLog::<RawMutex, _>::new(log));
        let outer = Level::new("outer", AdjustableBucket::with_clock(quota!("2/1s"), ManualClock::new()));
        let hierarchy = Hierarchy::new([&outer, &log]).unwrap();
        for _ in 0..2 {
            assert!(hierarchy.try_acquire_at(Nanos::ZERO, [1, 1]).is_ok());
        }
        for _ in 0..5 {
            assert_eq!(hierarchy.try_acquire_at(Nanos::ZERO, [1, 1]).unwrap_err().name, "outer");
        }
        assert_eq!(log.limiter().inspect_at(Nanos::ZERO).level, 1);
        assert!(log.try_acquire_at(Nanos::ZERO, 1).is_ok());
        assert!(log.try_acquire_at(Nanos::ZERO, 1).is_err());
        log.limiter().refund(Nanos::ZERO, 1);
        assert!(log.try_acquire_at(Nanos::ZERO, 1).is_ok());
    }

    #[test]
    fn c09_racing_paths_share_a_log_exactly() {
        let log = SlidingLog::new("500/1s".parse::<Rate>().unwrap());
        let log = Level::new("log", SharedSlidingLog::<RawMutex, _>::new(log));
        let outer = Level::new("outer", AdjustableBucket::with_clock(quota!("300/1s"), ManualClock::new()));
        let admitted: usize = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let hierarchy = Hierarchy::new([&outer, &log]).unwrap();
                        (0..100).filter(|_| hierarchy.try_acquire_at(Nanos::ZERO, [1, 1]).is_ok()).count()
                    })
                })
                .collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).sum()
        });
        assert_eq!(admitted, 300);
        assert_eq!(log.limiter().inspect_at(Nanos::ZERO).level, 200);
    }
}
