//! What the wait queue promises, example by example.
#![cfg(feature = "alloc")]

mod support;

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::cell::Cell;
use core::mem::size_of;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::catch_unwind;

use sluicegate_core::{
    ConcurrencyLimit, Denied, FixedShard, Limiter, ManualClock, Nanos, Quota, Served, Shard, ShardedWindow, Ticket,
    TokenBucket, Verdict, WaitQueue, Waiting, WindowLimit, quota,
};
use support::Numbers;

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
fn b06_who_gives_up_or_is_too_late_consumes_nothing_and_those_behind_move_up() {
    let bucket = spent(quota!("10/1s"));
    let mut queue = WaitQueue::new(10);
    let large = queue.push(9, None, "large").unwrap();
    queue.push(5, Some(Nanos::from_millis(100)), "late").unwrap();
    queue.push(1, None, "small").unwrap();
    let now = Nanos::from_millis(150);
    assert_eq!(queue.next_wake_at(now, &bucket), Some(now), "a deadline has passed");
    let served = queue.grant_next_at(now, &bucket).unwrap();
    assert_eq!((served.payload, served.verdict), ("late", Verdict::Expired));
    assert!(queue.grant_next_at(now, &bucket).is_none());
    assert_eq!(queue.cancel(large), Some("large"));
    assert_eq!(granted(queue.grant_next_at(now, &bucket)), Some("small"));
    assert_eq!((bucket.inspect_at(now).level, queue.len()), (0, 0), "one of one and a half tokens");
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
fn b09_an_empty_queue_wakes_nobody_and_keeps_nothing() {
    let bucket = spent(quota!("10/1s"));
    let mut queue = WaitQueue::new(usize::MAX);
    let payload = Arc::new(());
    let tickets: Vec<Ticket> =
        (0..1_000).map(|index| queue.push(1, Some(Nanos::from_secs(index)), Arc::clone(&payload)).unwrap()).collect();
    assert_eq!(Arc::strong_count(&payload), 1_001);
    assert!(tickets.iter().rev().all(|&ticket| queue.cancel(ticket).is_some()));
    assert_eq!(Arc::strong_count(&payload), 1, "no payload outlives its wait");
    assert_eq!((queue.next_wake_at(Nanos::ZERO, &bucket), queue.next_deadline()), (None, None));
    assert_eq!((queue.len(), queue.waiting_cost(), queue.head()), (0, 0, None));
    queue.shrink();
    // A ticket of before the memory was given back names nobody, also once its slot is there again.
    queue.push(1, None, payload).unwrap();
    assert!(tickets.iter().all(|&ticket| queue.cancel(ticket).is_none()));
    assert_eq!(queue.len(), 1);
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
fn a_limiter_that_panics_leaves_the_queue_as_it_was() {
    let bucket = bucket(quota!("10/1s"));
    let mut queue = WaitQueue::new(10);
    (0..4).for_each(|number| {
        queue.push(1, Some(Nanos::from_secs(number)), number).unwrap();
    });
    let mut calls = 0;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let take = |_| {
            calls += 1;
            if calls == 2 { panic!("the limiter's own") } else { Ok::<(), Denied>(()) }
        };
        queue.grant_with(Nanos::ZERO, take, |_| {})
    }));
    assert!(panicked.is_err());
    // And one in the caller's own: that waiter is gone, and no other.
    let panicked =
        catch_unwind(AssertUnwindSafe(|| queue.grant_at(Nanos::ZERO, &bucket, |_| panic!("the caller's own"))));
    assert!(panicked.is_err());
    let mut order = Vec::new();
    queue.grant_at(Nanos::ZERO, &bucket, |served| order.push(served.payload));
    assert_eq!((order, queue.next_deadline(), queue.waiting_cost()), (vec![2, 3], None, 0));
}

#[test]
fn who_waits_is_no_denial_to_an_observer() {
    #[derive(Default)]
    struct Denials(Cell<u32>);
    impl sluicegate_core::Observer for Denials {
        fn denied(&self, _now: Nanos, _cost: u64, _denied: &Denied) {
            self.0.set(self.0.get() + 1);
        }
    }
    let bucket = bucket(quota!("10/1s")).observed_by(Denials::default());
    let mut queue = WaitQueue::new(10);
    queue.push(10, None, ()).unwrap();
    queue.push(1, None, ()).unwrap();
    assert_eq!(queue.grant_at(Nanos::ZERO, &bucket, |_| {}), 1);
    (0..50).for_each(|index| assert_eq!(queue.grant_at(Nanos::from_millis(index), &bucket, |_| {}), 0));
    assert_eq!(bucket.observer().0.get(), 0);
}

#[test]
fn b06_deadlines_come_in_their_order_whoever_leaves() {
    let mut numbers = Numbers(21);
    // Few different deadlines, so that many are equal, and then many.
    for readings in [4, 1_000] {
        let mut queue = WaitQueue::new(300);
        let mut waiting: BTreeMap<(u64, u64), Ticket> = BTreeMap::new();
        for number in 0..6_000 {
            if queue.len() < 300 && numbers.below(100) < 52 {
                let deadline = numbers.below(readings);
                let ticket = queue.push(1, Some(Nanos::new(deadline)), (deadline, number)).unwrap();
                waiting.insert((deadline, number), ticket);
            } else if !waiting.is_empty() {
                let which = numbers.below(waiting.len() as u64) as usize;
                let key = *waiting.keys().nth(which).unwrap();
                assert_eq!(queue.cancel(waiting.remove(&key).unwrap()), Some(key));
            }
            let earliest = waiting.first_key_value().map(|(&(deadline, _), _)| Nanos::new(deadline));
            assert_eq!(queue.next_deadline(), earliest);
        }
        assert!(waiting.len() > 100);
        // Of equal ones, who came first.
        let order: Vec<(u64, u64)> =
            core::iter::from_fn(|| queue.expire_next_at(Nanos::MAX)).map(|(_, payload)| payload).collect();
        assert_eq!(order, waiting.into_keys().collect::<Vec<_>>());
    }
}

#[test]
fn a_hundred_thousand_wait_and_ten_thousand_leave() {
    const WAITERS: u64 = 100_000;
    let bucket = spent(quota!("1000/1s"));
    let mut numbers = Numbers(8);
    let mut queue = WaitQueue::new(WAITERS as usize);
    let tickets: Vec<Ticket> = (0..WAITERS)
        .map(|number| {
            // Everyone would go by 100 s if nobody left; a third wait until a deadline far behind that.
            let deadline = (numbers.below(3) == 0).then(|| Nanos::from_secs(200 + numbers.below(1_000)));
            queue.push(1, deadline, number).unwrap()
        })
        .collect();
    assert!(queue.push(1, None, WAITERS).is_err());
    let mut left = vec![false; WAITERS as usize];
    for _ in 0..10_000 {
        let number = numbers.below(WAITERS) as usize;
        assert_eq!(queue.cancel(tickets[number]).is_some(), !left[number]);
        left[number] = true;
    }
    let staying = left.iter().filter(|&&left| !left).count();
    assert_eq!(queue.len(), staying);
    let (mut order, mut now, mut wakes) = (Vec::new(), Nanos::ZERO, 0);
    while let Some(wake) = queue.next_wake_at(now, &bucket) {
        now = wake;
        wakes += 1;
        queue.grant_at(now, &bucket, |served| {
            assert!(served.verdict.is_granted());
            order.push(served.payload);
        });
    }
    // Each at its own millisecond, in the order they came.
    assert_eq!((order.len(), wakes, now), (staying, staying, Nanos::from_millis(staying as u64)));
    assert!(order.is_sorted() && order.iter().all(|&number| !left[number as usize]));
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
fn a_slot_is_small() {
    assert_eq!(size_of::<Waiting<Box<()>>>(), 48);
    assert!(size_of::<WaitQueue<Vec<Waiting<Box<()>>>>>() <= 96);
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
