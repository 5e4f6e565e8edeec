//! What the wait queue promises, example by example.
#![cfg(feature = "alloc")]

mod support;

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;

use sluicegate_core::{
    AdjustableBucket, Admitted, ConcurrencyLimit, Decision, Denied, FixedShard, Inheritance, Inspection, Limit,
    Limiter, ManualClock, Nanos, Observer, Quota, Served, Shard, ShardedWindow, TokenBucket, Verdict, WaitQueue,
    WindowLimit, quota,
};

fn bucket(quota: Quota) -> TokenBucket<ManualClock> {
    TokenBucket::with_clock(quota, ManualClock::new())
}

fn spent(quota: Quota) -> TokenBucket<ManualClock> {
    let bucket = bucket(quota);
    bucket.try_acquire_at(Nanos::ZERO, quota.capacity()).unwrap();
    bucket
}

fn granted<T, A>(served: Option<Served<T, A>>) -> Option<T> {
    served.filter(|served| served.verdict.is_granted()).map(|served| served.payload)
}

#[test]
fn b05_who_waits_goes_as_soon_as_all_of_its_cost_is_there() {
    let bucket = spent(quota!("10/1s"));
    let mut queue = WaitQueue::new(10);
    queue.push(4, None, ()).unwrap();
    let wake = queue.next_wake_at(Nanos::ZERO, &bucket);
    assert_eq!(wake, Some(Nanos::from_millis(400)));
    assert!(queue.grant_next_at(Nanos::new(399_999_999), &bucket).is_none());
    assert_eq!(bucket.inspect_at(Nanos::new(399_999_999)).level, 3, "nothing is taken bit by bit");
    assert_eq!(granted(queue.grant_next_at(Nanos::from_millis(400), &bucket)), Some(()));
    assert_eq!(bucket.inspect_at(Nanos::from_millis(400)).level, 0);
}

#[test]
fn b05_a_deadline_of_now_is_met_only_if_it_can_go_now() {
    let (bucket, now) = (bucket(quota!("10/1s")), Nanos::ZERO);
    let mut queue = WaitQueue::new(10);
    queue.push(7, Some(now), 1).unwrap();
    queue.push(7, Some(now), 2).unwrap();
    assert_eq!(granted(queue.grant_next_at(now, &bucket)), Some(1));
    assert_eq!(queue.grant_next_at(now, &bucket).map(|served| served.verdict), Some(Verdict::Expired));
    assert_eq!(bucket.inspect_at(now).level, 3);
}

#[test]
fn b07_a_large_head_is_not_overtaken() {
    let bucket = spent(quota!("10/1s"));
    let mut queue = WaitQueue::new(10);
    queue.push(8, None, 8).unwrap();
    (0..3).for_each(|_| {
        queue.push(1, None, 1).unwrap();
    });
    assert_eq!(queue.grant_at(Nanos::from_millis(799), &bucket, |_| {}), 0);
    let mut order = Vec::new();
    assert_eq!(queue.grant_at(Nanos::from_millis(1_000), &bucket, |served| order.push(served.payload)), 3);
    assert_eq!(order, [8, 1, 1], "as many as can go at once");
    assert_eq!(queue.next_wake_at(Nanos::from_millis(1_000), &bucket), Some(Nanos::from_millis(1_100)));
}

#[test]
fn b07_newest_first_sheds_the_oldest() {
    let bucket = spent(quota!("10/1s"));
    let mut queue = WaitQueue::new(3).newest_first();
    for number in 0..5 {
        let (_, evicted) = queue.push_evicting(1, None, number).unwrap();
        assert_eq!(evicted.map(|(_, number)| number), (number >= 3).then(|| number - 3));
    }
    let mut order = Vec::new();
    queue.grant_at(Nanos::from_secs(1), &bucket, |served| order.push(served.payload));
    assert_eq!(order, [4, 3, 2]);
}

#[test]
fn b05_newest_first_who_can_go_at_its_deadline_goes() {
    let (bucket, now) = (spent(quota!("10/1s")), Nanos::from_millis(300));
    let mut queue = WaitQueue::new(10).newest_first();
    let order = [(1, Some(now)), (3, Some(now)), (4, Some(now)), (5, Some(now))];
    for (cost, deadline) in order {
        queue.push(cost, deadline, cost).unwrap();
    }
    let mut ends = Vec::new();
    queue.grant_at(now, &bucket, |served| ends.push((served.payload, served.verdict.is_granted())));
    // Neither of the newer two can go. Their ends let the older ones have their turns, as far as the three tokens go.
    assert_eq!(ends, [(5, false), (4, false), (3, true), (1, false)]);
    // Who waits longer keeps its turn, and nobody behind it goes.
    for (cost, deadline) in [(1, Some(now)), (10, None)] {
        queue.push(cost, deadline, cost).unwrap();
    }
    ends.clear();
    queue.grant_at(now, &self::bucket(quota!("10/1s")), |served| {
        ends.push((served.payload, served.verdict.is_granted()))
    });
    assert_eq!(ends, [(10, true), (1, false)]);
}

#[test]
fn c08_who_can_never_go_under_a_lowered_limit_is_told_at_once() {
    let bucket = AdjustableBucket::with_clock(quota!("10/1s"), ManualClock::new()).observed_by(Denials::default());
    bucket.try_acquire_at(Nanos::ZERO, 10).unwrap();
    let mut queue = WaitQueue::new(10);
    for cost in [3, 9, 4, 6, 5] {
        queue.push(cost, None, cost).unwrap();
    }
    assert_eq!(queue.refuse_at(Nanos::ZERO, &bucket, |_| {}), 0);
    bucket.adjust_at(Nanos::ZERO, Limit::Quota(quota!("5/1s")), Inheritance::Level);
    let mut refused = Vec::new();
    let count = queue.refuse_at(Nanos::ZERO, &bucket, |served| refused.push((served.payload, served.verdict)));
    let verdict = |cost| Verdict::Refused(Denied::CostExceedsLimit { cost, limit: 5 });
    assert_eq!((count, refused), (2, vec![(9, verdict(9)), (6, verdict(6))]));
    assert_eq!((queue.waiting_cost(), bucket.observer().0.get()), (12, 2), "the others wait on");
    // A caller that panics loses one, and the rest is told later.
    bucket.adjust_at(Nanos::ZERO, Limit::DenyAll, Inheritance::Level);
    let panicked = catch_unwind(AssertUnwindSafe(|| queue.refuse_at(Nanos::ZERO, &bucket, |_| panic!("its own"))));
    assert!(panicked.is_err() && queue.len() == 2);
    let mut closed = Vec::new();
    queue.refuse_at(Nanos::ZERO, &bucket, |served| closed.push((served.payload, served.verdict)));
    assert_eq!(closed, [4, 5].map(|cost| (cost, Verdict::Refused(Denied::Closed))));
}

#[test]
fn b03_who_can_never_go_is_told_and_blocks_nobody() {
    let bucket = bucket(quota!("10/1s"));
    let mut queue = WaitQueue::new(10);
    queue.push(11, None, 11).unwrap();
    queue.push(2, None, 2).unwrap();
    assert_eq!(queue.next_wake_at(Nanos::ZERO, &bucket), Some(Nanos::ZERO));
    let served = queue.grant_next_at(Nanos::ZERO, &bucket).unwrap();
    let denied = Denied::CostExceedsLimit { cost: 11, limit: 10 };
    assert_eq!((served.payload, served.verdict), (11, Verdict::Refused(denied)));
    assert_eq!(queue.earliest_for_new_at(Nanos::ZERO, &bucket, 11), Err(denied));
    assert_eq!(granted(queue.grant_next_at(Nanos::ZERO, &bucket)), Some(2));
}

#[test]
fn c17_permits_are_waited_for_and_only_a_release_wakes() {
    let limit = ConcurrencyLimit::new(2);
    let mut queue = WaitQueue::new(10);
    (0..3).for_each(|number| {
        queue.push(1, None, number).unwrap();
    });
    let mut permits = Vec::new();
    let count = queue.grant_with(
        Nanos::ZERO,
        |cost| limit.try_acquire(cost),
        |served| match served.verdict {
            Verdict::Granted(permit) => permits.push(permit),
            verdict => panic!("{verdict:?}"),
        },
    );
    assert_eq!((count, limit.in_use()), (2, 2));
    assert_eq!(queue.next_wake_with(Nanos::ZERO, |cost| limit.peek(cost)), None);
    permits.pop().unwrap().success();
    assert_eq!(queue.next_wake_with(Nanos::ZERO, |cost| limit.peek(cost)), Some(Nanos::ZERO));
    let served = queue.grant_next_with(Nanos::ZERO, |cost| limit.try_acquire(cost)).unwrap();
    assert_eq!(served.payload, 2);
    limit.set_limit(0);
    queue.push(1, None, 3).unwrap();
    let refused = queue.grant_next_with(Nanos::ZERO, |cost| limit.try_acquire(cost)).unwrap();
    assert!(matches!(refused.verdict, Verdict::Refused(Denied::Closed)));
}

#[test]
fn any_limiter_is_waited_for() {
    let limit = WindowLimit::from_rate("2/1s".parse().unwrap()).unwrap();
    let window = ShardedWindow::<[Shard; 2], _, _>::with_array(limit, ManualClock::new(), FixedShard(0));
    let limiters: [&dyn Limiter; 2] = [&window, &spent(quota!("2/1s"))];
    for limiter in limiters {
        while limiter.try_acquire_at(Nanos::ZERO, 1).is_ok() {}
        let mut queue = WaitQueue::new(5);
        queue.push(2, None, ()).unwrap();
        assert_eq!(queue.next_wake_at(Nanos::ZERO, limiter), Some(Nanos::from_secs(1)));
        assert_eq!(queue.grant_at(Nanos::from_secs(1), limiter, |_| {}), 1);
    }
}

#[test]
fn who_waits_is_no_denial_to_an_observer() {
    let bucket = bucket(quota!("10/1s")).observed_by(Denials::default());
    let mut queue = WaitQueue::new(10);
    queue.push(10, None, ()).unwrap();
    queue.push(1, None, ()).unwrap();
    assert_eq!(queue.grant_at(Nanos::ZERO, &bucket, |_| {}), 1);
    (0..50).for_each(|index| assert_eq!(queue.grant_at(Nanos::from_millis(index), &bucket, |_| {}), 0));
    assert_eq!(bucket.observer().0.get(), 0);
}

#[test]
fn who_waits_is_no_denial_to_an_observer_also_where_others_take_in_between() {
    /// Somebody takes everything right after each look.
    struct Contended(TokenBucket<ManualClock, Denials>, Cell<u32>);
    impl Limiter for Contended {
        fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
            self.0.try_acquire_at(now, cost)
        }
        fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
            let decision = self.0.peek_at(now, cost);
            let _ = self.take_at(now, self.0.inspect_at(now).level);
            decision
        }
        fn inspect_at(&self, now: Nanos) -> Inspection {
            self.0.inspect_at(now)
        }
        fn take_at(&self, now: Nanos, cost: u64) -> Decision {
            self.1.set(self.1.get() + 1);
            self.0.take_at(now, cost)
        }
        fn tell(&self, now: Nanos, cost: u64, decision: &Decision) {
            self.0.tell(now, cost, decision);
        }
    }
    let limiter = Contended(spent(quota!("10/1s")).observed_by(Denials::default()), Cell::new(0));
    let mut queue = WaitQueue::new(10);
    queue.push(4, None, ()).unwrap();
    queue.push(11, None, ()).unwrap();
    for index in 0..50 {
        let _ = limiter.peek_at(Nanos::from_millis(index * 100), 1);
        assert_eq!(queue.grant_at(Nanos::from_millis(index * 100), &limiter, |_| {}), 0);
    }
    assert_eq!((limiter.0.observer().0.get(), limiter.1.get()), (0, 100));
    // Who goes is an admission, and who never can is a denial.
    assert_eq!(queue.grant_at(Nanos::from_secs(10), &limiter, |_| {}), 2);
    assert_eq!((limiter.0.observer().0.get(), limiter.0.observer().1.get()), (1, 1));
}

#[derive(Default)]
struct Denials(Cell<u32>, Cell<u32>);

impl Observer for Denials {
    fn denied(&self, _now: Nanos, _cost: u64, _denied: &Denied) {
        self.0.set(self.0.get() + 1);
    }

    fn admitted(&self, _now: Nanos, _cost: u64, _admitted: &Admitted) {
        self.1.set(self.1.get() + 1);
    }
}

#[test]
fn readings_without_any_sense_do_no_harm() {
    let bucket = spent(quota!("10/1s"));
    let mut queue = WaitQueue::new(50);
    for now in [0, u64::MAX, 1, Nanos::HORIZON.as_u64(), u64::MAX - 1, 0].map(Nanos::new) {
        for cost in [0, 1, 10, 11, u64::MAX] {
            for deadline in [None, Some(Nanos::ZERO), Some(now), Some(Nanos::MAX)] {
                let _ = queue.push(cost, deadline, ());
            }
            assert!(queue.next_wake_at(now, &bucket).is_some_and(|wake| wake >= now));
            let _ = queue.earliest_for_new_at(now, &bucket, cost);
        }
        queue.grant_at(now, &bucket, |_| {});
    }
    while queue.pop().is_some() {}
    assert_eq!((queue.len(), queue.waiting_cost(), queue.next_deadline()), (0, 0, None));
}

#[test]
fn c05_when_empty_a_request_is_rejected_queued_or_degraded_and_the_outcome_says_which() {
    #[derive(Clone, Copy)]
    enum WhenEmpty {
        Reject,
        Queue,
        Degrade,
    }
    #[derive(Debug, PartialEq)]
    enum Outcome {
        Admitted,
        Rejected(Denied),
        Queued,
        Degraded,
    }
    let bucket = TokenBucket::with_clock(quota!("1/1s"), ManualClock::new());
    let mut queue = WaitQueue::new(1);
    let mut request = |when_empty, now| match (bucket.try_acquire_at(now, 1), when_empty) {
        (Ok(_), _) => Outcome::Admitted,
        (Err(denied), WhenEmpty::Reject) => Outcome::Rejected(denied),
        (Err(_), WhenEmpty::Degrade) => Outcome::Degraded,
        (Err(denied), WhenEmpty::Queue) => match queue.push(1, None, ()) {
            Ok(_) => Outcome::Queued,
            Err(_) => Outcome::Rejected(denied),
        },
    };
    let in_a_second = Denied::RateLimited { retry_after: Duration::from_secs(1) };
    assert_eq!(request(WhenEmpty::Reject, Nanos::ZERO), Outcome::Admitted);
    assert_eq!(request(WhenEmpty::Reject, Nanos::ZERO), Outcome::Rejected(in_a_second));
    assert_eq!(request(WhenEmpty::Degrade, Nanos::ZERO), Outcome::Degraded);
    assert_eq!(request(WhenEmpty::Queue, Nanos::ZERO), Outcome::Queued);
    assert_eq!(request(WhenEmpty::Queue, Nanos::ZERO), Outcome::Rejected(in_a_second), "the queue is full");
    // None of them took anything: who waits gets the next token.
    let served = queue.grant_next_at(Nanos::from_secs(1), &bucket).unwrap();
    assert!(matches!(served.verdict, Verdict::Granted(_)));
}

#[test]
fn an_observer_that_panics_makes_nobody_pay_twice() {
    struct Once(Cell<bool>);
    impl Observer for &Once {
        fn admitted(&self, _: Nanos, _: u64, _: &Admitted) {
            assert!(self.0.replace(true), "the observer panics");
        }
    }
    let once = Once(Cell::new(false));
    let bucket = TokenBucket::with_clock(quota!("10/1h"), ManualClock::new()).observed_by(&once);
    let mut queue = WaitQueue::new(2);
    queue.push(4, None, ()).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| queue.grant_at(Nanos::ZERO, &bucket, |_| {}))).is_err());
    queue.grant_at(Nanos::ZERO, &bucket, |_| {});
    assert_eq!((queue.len(), bucket.inspect_at(Nanos::ZERO).level), (0, 6));
}
