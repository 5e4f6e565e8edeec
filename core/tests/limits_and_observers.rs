//! Limits that are not quotas, and being told of decisions.

use core::cell::RefCell;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use sluicegate_core::{
    Admitted, Clock, Denied, FixedShard, Limit, ManualClock, Nanos, Observer, Remaining, Shard, ShardedWindow,
    TokenBucket, WindowLimit, quota,
};

/// A clock that nobody may read.
struct Untouchable;

impl Clock for Untouchable {
    fn now(&self) -> Nanos {
        panic!("the clock was read");
    }
}

#[derive(Default)]
struct Log(RefCell<Vec<String>>);

impl Observer for Log {
    fn admitted(&self, now: Nanos, cost: u64, admitted: &Admitted) {
        self.0.borrow_mut().push(format!("{now}: {cost} admitted, {}", admitted.remaining));
    }

    fn denied(&self, now: Nanos, cost: u64, denied: &Denied) {
        self.0.borrow_mut().push(format!("{now}: {cost} denied, {denied}"));
    }

    fn refunded(&self, cost: u64) {
        self.0.borrow_mut().push(format!("{cost} refunded"));
    }
}

fn window<C, O: Observer>(limit: Limit, clock: C, observer: O) -> ShardedWindow<[Shard; 2], C, FixedShard, O> {
    ShardedWindow::with_array(WindowLimit::new(limit).unwrap(), clock, FixedShard(0)).observed_by(observer)
}

#[test]
fn without_a_limit_no_clock_is_read_and_nobody_is_told() {
    let bucket = TokenBucket::with_clock(Limit::Unlimited, Untouchable).observed_by(Log::default());
    let window = window(Limit::Unlimited, Untouchable, Log::default());
    for cost in [0, 1, u64::MAX] {
        for decision in [bucket.try_acquire(cost), bucket.peek(cost), window.try_acquire(cost), window.peek(cost)] {
            assert_eq!(decision.unwrap().remaining, Remaining::Unlimited);
        }
    }
    bucket.refund(1);
    window.refund(Nanos::ZERO, 1);
    assert_eq!(bucket.limit(), Limit::Unlimited);
    assert_eq!(window.limit().to_string(), "off");
    assert_eq!(window.caps().count(), 0);
    assert!(bucket.observer().0.borrow().is_empty());
    assert!(window.observer().0.borrow().is_empty());
    assert_eq!(bucket.inspect_at(Nanos::ZERO).level, u64::MAX);
    assert_eq!(window.inspect_at(Nanos::ZERO).level, u64::MAX);
}

#[test]
fn deny_all_is_closed_for_every_cost() {
    let bucket = TokenBucket::with_clock(Limit::DenyAll, ManualClock::new()).observed_by(Log::default());
    let window = window(Limit::DenyAll, ManualClock::new(), Log::default());
    for cost in [0, 1, u64::MAX] {
        for decision in [bucket.try_acquire(cost), bucket.peek(cost), window.try_acquire(cost), window.peek(cost)] {
            assert_eq!(decision, Err(Denied::Closed));
        }
    }
    assert_eq!(Denied::Closed.retry_after(), None);
    assert_eq!((bucket.inspect().level, bucket.inspect().capacity, bucket.inspect().fill_percent()), (0, 0, 0));
    assert_eq!((window.inspect().level, window.inspect().capacity), (0, 0));
    // Refusals are counted also where nothing can pass; a peek is not a refusal.
    assert_eq!(bucket.observer().0.borrow().len(), 3);
    assert_eq!(window.observer().0.borrow().len(), 3);
}

#[test]
fn observers_are_told_once_of_each_decision_and_of_no_peek() {
    let bucket = TokenBucket::with_clock(quota!("3/1s"), ManualClock::at(Nanos::new(7))).observed_by(Log::default());
    let _ = (bucket.peek(1), bucket.inspect());
    let _ = (bucket.try_acquire(2), bucket.try_acquire(2), bucket.try_acquire(4));
    bucket.refund(1);
    assert_eq!(
        *bucket.observer().0.borrow(),
        [
            "7 ns: 2 admitted, 1",
            "7 ns: 2 denied, rate limited, retry after 333.333334ms",
            "7 ns: 4 denied, cost 4 exceeds the limit of 3, so this request can never be admitted",
            "1 refunded",
        ]
    );

    let window = window(quota!("3/1s").into(), ManualClock::at(Nanos::from_millis(400)), Log::default());
    let _ = (window.peek(1), window.inspect());
    let _ = (window.try_acquire(3), window.try_acquire(1), window.try_acquire(4));
    window.refund(Nanos::from_millis(400), 1);
    assert_eq!(
        *window.observer().0.borrow(),
        [
            "400000000 ns: 3 admitted, at least 0",
            "400000000 ns: 1 denied, rate limited, retry after 600ms",
            "400000000 ns: 4 denied, cost 4 exceeds the limit of 3, so this request can never be admitted",
            "1 refunded",
        ]
    );
}

#[test]
fn a_panic_in_an_observer_leaves_the_decision_standing() {
    struct Fragile;
    impl Observer for Fragile {
        fn admitted(&self, _: Nanos, _: u64, _: &Admitted) {
            panic!("not my day");
        }
    }
    let bucket = TokenBucket::with_clock(quota!("2/1s"), ManualClock::new()).observed_by(Fragile);
    let window = window(quota!("2/1s").into(), ManualClock::new(), Fragile);
    // Two units from two shards: the flag for such costs must not stay behind.
    assert!(catch_unwind(AssertUnwindSafe(|| bucket.try_acquire(2))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| window.try_acquire(2))).is_err());
    assert_eq!(bucket.inspect().level, 0);
    assert_eq!(window.inspect().level, 0);
    assert!(bucket.try_acquire(1).is_err());
    assert!(window.try_acquire(1).is_err());
    window.refund(Nanos::ZERO, 2);
    assert_eq!(window.inspect().level, 2);
}

#[test]
fn everything_can_be_made_in_a_static() {
    static BUCKET: TokenBucket<ManualClock> = TokenBucket::with_limit(Limit::Quota(quota!("2/1s")), ManualClock::new());
    const LIMIT: WindowLimit = match WindowLimit::new(Limit::Quota(quota!("2/1s"))) {
        Ok(limit) => limit,
        Err(_) => panic!("a window cannot enforce this"),
    };
    static WINDOW: ShardedWindow<[Shard; 4], ManualClock, FixedShard> =
        ShardedWindow::with_array(LIMIT, ManualClock::new(), FixedShard(0));
    assert!(BUCKET.try_acquire(2).is_ok() && BUCKET.try_acquire(1).is_err());
    assert!(WINDOW.try_acquire(2).is_ok() && WINDOW.try_acquire(1).is_err());
    assert_eq!(WINDOW.caps().collect::<Vec<_>>(), [1, 1, 0, 0]);
}

#[test]
fn a03_a_refusal_is_told_once_by_the_door_that_refused() {
    use core::cell::Cell;
    use sluicegate_core::{AdjustableBucket, Limiter, SlidingCounter, WindowLimit};

    /// Refusals, apart from the limits.
    #[derive(Default)]
    struct Blocked(Cell<u32>);

    impl Observer for Blocked {
        fn denied(&self, _now: Nanos, _cost: u64, _denied: &Denied) {
            self.0.set(self.0.get() + 1);
        }
    }

    let blocked: [Blocked; 4] = Default::default();
    let [at_bucket, at_window, at_counter, at_adjustable] = &blocked;
    let limit = Limit::Quota(quota!("2/1s"));
    let bucket = TokenBucket::with_clock(limit, ManualClock::new()).observed_by(at_bucket);
    let window = window(limit, ManualClock::new(), at_window);
    let counter = SlidingCounter::with_clock(WindowLimit::new(limit).unwrap(), ManualClock::new());
    let counter = counter.unwrap().observed_by(at_counter);
    let adjustable = AdjustableBucket::with_clock(limit, ManualClock::new()).observed_by(at_adjustable);
    let doors: [&dyn Limiter; 4] = [&bucket, &window, &counter, &adjustable];
    for (refusals, door) in doors.into_iter().enumerate() {
        // Looking counts nothing; so many refusals at this door, and none at the others.
        assert!((0..2).all(|_| door.try_acquire_at(Nanos::ZERO, 1).is_ok()));
        for _ in 0..refusals {
            assert!(door.peek_at(Nanos::ZERO, 1).is_err());
            assert!(door.try_acquire_at(Nanos::ZERO, 1).is_err());
        }
    }
    assert_eq!(blocked.map(|blocked| blocked.0.get()), [0, 1, 2, 3]);
}
