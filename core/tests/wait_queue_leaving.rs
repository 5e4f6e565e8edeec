//! Leaving a wait queue: who gives up or is too late, whose ticket is old or a stranger's, and what stays behind.
#![cfg(feature = "alloc")]

mod support;

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::mem::size_of;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use sluicegate_core::{
    Denied, ManualClock, Nanos, Quota, Served, Ticket, TokenBucket, Verdict, WaitQueue, Waiting, quota,
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
fn b06_a_ticket_of_another_queue_cancels_nobody() {
    let mut queues: Vec<_> = (0..3).map(|_| WaitQueue::new(10)).collect();
    let tickets: Vec<Ticket> = queues.iter_mut().map(|queue| queue.push(1, None, ()).unwrap()).collect();
    for (index, queue) in queues.iter_mut().enumerate() {
        for (other, &ticket) in tickets.iter().enumerate().filter(|&(other, _)| other != index) {
            assert!(!queue.contains(ticket) && queue.payload_mut(ticket).is_none(), "{other} in {index}");
            assert_eq!(queue.cancel(ticket), None);
        }
        assert_eq!((queue.len(), queue.head()), (1, Some(tickets[index])));
    }
    // Nor one of a queue that is gone.
    let gone = core::mem::replace(&mut queues[0], WaitQueue::new(10));
    queues[0].push(1, None, ()).unwrap();
    drop(gone);
    assert_eq!(queues[0].cancel(tickets[0]), None);
    // A copy has the waits that it was made with, by the same tickets.
    let mut copy = queues[1].clone();
    assert_eq!((copy.cancel(tickets[1]), queues[1].cancel(tickets[1])), (Some(()), Some(())));
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
fn a_slot_is_small() {
    assert_eq!(size_of::<Waiting<Box<()>>>(), 48);
    assert!(size_of::<WaitQueue<Vec<Waiting<Box<()>>>>>() <= 128);
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
