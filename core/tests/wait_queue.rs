//! The wait queue against a plain list that is searched from end to end, in both of its forms.
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

use proptest::prelude::*;
use sluicegate_core::{
    BucketState, BucketStep, ConcurrencyLimit, Decision, Denied, FixedShard, Inspection, Limiter, ManualClock, Nanos,
    QueueFull, Quota, Served, Shard, ShardedWindow, Slots, Ticket, TokenBucket, Verdict, WaitQueue, Waiting,
    WindowLimit, quota,
};
use support::{Numbers, cases};

/// A token bucket that can be copied, so that a test can look ahead.
#[derive(Clone)]
struct Bucket {
    step: BucketStep,
    state: Cell<BucketState>,
}

impl Bucket {
    fn full(quota: Quota) -> Self {
        Self { step: BucketStep::new(quota), state: Cell::default() }
    }
}

impl Limiter for Bucket {
    fn try_acquire_at(&self, now: Nanos, cost: u64) -> Decision {
        let (state, decision) = self.step.try_acquire(self.state.get(), now, cost);
        self.state.set(state);
        decision
    }

    fn peek_at(&self, now: Nanos, cost: u64) -> Decision {
        self.step.try_acquire(self.state.get(), now, cost).1
    }

    fn inspect_at(&self, now: Nanos) -> Inspection {
        self.step.inspect(self.state.get(), now)
    }
}

/// Who waits, oldest first. The payload of each wait is its number.
#[derive(Clone, Default)]
struct Naive {
    waits: Vec<Wait>,
    bound: usize,
    newest_first: bool,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    number: u64,
    cost: u64,
    deadline: Option<u64>,
}

impl Naive {
    fn head(&self) -> Option<usize> {
        if self.newest_first { self.waits.len().checked_sub(1) } else { (!self.waits.is_empty()).then_some(0) }
    }

    fn earliest(&self) -> Option<(u64, usize)> {
        let due = |(index, wait): (usize, &Wait)| wait.deadline.map(|deadline| (deadline, index));
        self.waits.iter().enumerate().filter_map(due).min()
    }

    fn next(&mut self, now: u64, limiter: &impl Limiter) -> Option<(u64, Verdict<()>)> {
        if let Some((_, index)) = self.earliest().filter(|&(deadline, _)| deadline < now) {
            return Some((self.waits.remove(index).number, Verdict::Expired));
        }
        let head = self.head()?;
        match limiter.try_acquire_at(Nanos::new(now), self.waits[head].cost) {
            Ok(_) => Some((self.waits.remove(head).number, Verdict::Granted(()))),
            Err(denied @ (Denied::CostExceedsLimit { .. } | Denied::Closed)) => {
                Some((self.waits.remove(head).number, Verdict::Refused(denied)))
            }
            Err(_) => {
                let (_, index) = self.earliest().filter(|&(deadline, _)| deadline == now)?;
                Some((self.waits.remove(index).number, Verdict::Expired))
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Push { cost: u64, deadline: Option<u64>, evicting: bool },
    Cancel(usize),
    CancelStale(usize),
    GrantAll,
    GrantOne,
    Expire,
    Pop,
    Refund(u64),
    Advance(u64),
    StepBack(u64),
    Wake,
    Shrink,
}

fn operation() -> impl Strategy<Value = Operation> {
    let cost = prop_oneof![6 => 0..5_u64, 1 => Just(9), 1 => Just(u64::MAX)];
    let deadline = prop::option::of(prop_oneof![9 => 0..80_u64, 1 => Just(u64::MAX)]);
    let push = |(cost, deadline, evicting)| Operation::Push { cost, deadline, evicting };
    prop_oneof![
        8 => (cost, deadline, prop::bool::weighted(0.2)).prop_map(push),
        3 => any::<usize>().prop_map(Operation::Cancel),
        1 => any::<usize>().prop_map(Operation::CancelStale),
        2 => Just(Operation::GrantAll),
        2 => Just(Operation::GrantOne),
        1 => Just(Operation::Expire),
        1 => Just(Operation::Pop),
        1 => (0..4_u64).prop_map(Operation::Refund),
        4 => (0..30_u64).prop_map(Operation::Advance),
        1 => (0..30_u64).prop_map(Operation::StepBack),
        3 => Just(Operation::Wake),
        1 => Just(Operation::Shrink),
    ]
}

struct Bench<S> {
    queue: WaitQueue<S>,
    naive: Naive,
    bucket: Bucket,
    tickets: Vec<Ticket>,
    now: u64,
}

impl<S: Slots<Payload = u64> + Clone> Bench<S> {
    fn new(queue: WaitQueue<S>, newest_first: bool) -> Self {
        let naive = Naive { bound: queue.bound(), newest_first, ..Naive::default() };
        let queue = if newest_first { queue.newest_first() } else { queue };
        Self { queue, naive, bucket: Bucket::full(quota!("3/10ns burst 8")), tickets: Vec::new(), now: 1_000 }
    }

    fn run(&mut self, operation: &Operation) -> Result<(), TestCaseError> {
        let now = Nanos::new(self.now);
        match *operation {
            Operation::Push { cost, deadline, evicting } => self.push(cost, deadline, evicting)?,
            Operation::Cancel(which) if !self.naive.waits.is_empty() => {
                let number = self.naive.waits.remove(which % self.naive.waits.len()).number;
                let ticket = self.tickets[number as usize];
                prop_assert!(self.queue.contains(ticket));
                prop_assert_eq!(self.queue.payload(ticket), Some(&number));
                prop_assert_eq!(self.queue.payload_mut(ticket).copied(), Some(number));
                prop_assert_eq!(self.queue.cancel(ticket), Some(number));
                prop_assert_eq!(self.queue.cancel(ticket), None);
            }
            Operation::CancelStale(which) if !self.tickets.is_empty() => {
                let number = (which % self.tickets.len()) as u64;
                if !self.naive.waits.iter().any(|wait| wait.number == number) {
                    let ticket = self.tickets[number as usize];
                    prop_assert!(!self.queue.contains(ticket) && self.queue.payload(ticket).is_none());
                    prop_assert!(self.queue.payload_mut(ticket).is_none());
                    prop_assert_eq!(self.queue.cancel(ticket), None);
                }
            }
            Operation::GrantAll => {
                let bucket = self.bucket.clone();
                let mut expected = Vec::new();
                while let Some(served) = self.naive.next(self.now, &bucket) {
                    expected.push(served);
                }
                let mut served = Vec::new();
                let count = self.queue.grant_at(now, &self.bucket, |waiter| served.push(plain(waiter)));
                prop_assert_eq!(count, served.len());
                let numbers: Vec<_> = served.iter().map(|&(_, number, verdict)| (number, verdict)).collect();
                prop_assert_eq!(numbers, expected);
                for (ticket, number, _) in served {
                    prop_assert_eq!(ticket, self.tickets[number as usize]);
                }
                prop_assert_eq!(self.bucket.state.get(), bucket.state.get());
            }
            Operation::GrantOne => {
                let bucket = self.bucket.clone();
                let expected = self.naive.next(self.now, &bucket);
                let served = self.queue.grant_next_at(now, &self.bucket).map(plain);
                prop_assert_eq!(served.map(|(_, number, verdict)| (number, verdict)), expected);
                prop_assert_eq!(self.bucket.state.get(), bucket.state.get());
            }
            Operation::Expire => {
                let due = self.naive.earliest().filter(|&(deadline, _)| deadline <= self.now);
                let expected = due.map(|(_, index)| self.naive.waits.remove(index).number);
                prop_assert_eq!(self.queue.expire_next_at(now).map(|(_, number)| number), expected);
            }
            Operation::Pop => {
                let expected = self.naive.head().map(|head| self.naive.waits.remove(head).number);
                prop_assert_eq!(self.queue.pop().map(|(_, number)| number), expected);
            }
            Operation::Refund(cost) => {
                let state = self.bucket.step.refund(self.bucket.state.get(), cost);
                self.bucket.state.set(state);
            }
            Operation::Advance(span) => self.now += span,
            Operation::StepBack(span) => self.now -= span.min(self.now),
            Operation::Wake => self.check_wake()?,
            Operation::Shrink => self.queue.shrink(),
            Operation::Cancel(_) | Operation::CancelStale(_) => {}
        }
        self.check()
    }

    fn push(&mut self, cost: u64, deadline: Option<u64>, evicting: bool) -> Result<(), TestCaseError> {
        let number = self.tickets.len() as u64;
        let deadline = deadline.map(|span| self.now.saturating_add(span).saturating_sub(10));
        let (until, is_full) = (deadline.map(Nanos::new), self.naive.waits.len() >= self.naive.bound);
        let ticket = if evicting {
            match self.queue.push_evicting(cost, until, number) {
                Ok((ticket, evicted)) => {
                    let expected = is_full.then(|| self.naive.waits.remove(0).number);
                    prop_assert_eq!(evicted.map(|(_, number)| number), expected);
                    if let Some((ticket, number)) = evicted {
                        prop_assert_eq!(ticket, self.tickets[number as usize]);
                    }
                    ticket
                }
                Err(QueueFull(payload)) => {
                    prop_assert!(self.naive.bound == 0 && payload == number);
                    return Ok(());
                }
            }
        } else {
            match self.queue.push(cost, until, number) {
                Ok(ticket) => ticket,
                Err(QueueFull(payload)) => {
                    prop_assert!(is_full && payload == number);
                    return Ok(());
                }
            }
        };
        self.tickets.push(ticket);
        self.naive.waits.push(Wait { number, cost, deadline });
        prop_assert!(self.naive.waits.len() <= self.naive.bound);
        Ok(())
    }

    /// Nothing is over before the reading that `next_wake_at` names, and something is at it.
    fn check_wake(&self) -> Result<(), TestCaseError> {
        let over = |reading: Nanos| self.queue.clone().grant_next_at(reading, &self.bucket.clone()).is_some();
        let now = Nanos::new(self.now);
        match self.queue.next_wake_at(now, &self.bucket) {
            None => prop_assert!(self.naive.waits.is_empty()),
            Some(wake) => {
                prop_assert!(wake >= now && over(wake), "nothing is over at {}", wake);
                let before = wake - Duration::from_nanos(1);
                prop_assert!(wake == now || !over(before), "something is over before {}", wake);
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let (queue, naive) = (&self.queue, &self.naive);
        prop_assert_eq!((queue.len(), queue.is_empty()), (naive.waits.len(), naive.waits.is_empty()));
        prop_assert_eq!(queue.waiting_cost(), naive.waits.iter().map(|wait| u128::from(wait.cost)).sum::<u128>());
        let head = naive.head().map(|head| self.tickets[naive.waits[head].number as usize]);
        prop_assert_eq!(queue.head(), head);
        prop_assert_eq!(queue.next_deadline(), naive.earliest().map(|(deadline, _)| Nanos::new(deadline)));
        for wait in &naive.waits {
            prop_assert_eq!(queue.payload(self.tickets[wait.number as usize]), Some(&wait.number));
        }
        Ok(())
    }
}

fn plain<A>(served: Served<u64, A>) -> (Ticket, u64, Verdict<()>) {
    let verdict = match served.verdict {
        Verdict::Granted(_) => Verdict::Granted(()),
        Verdict::Refused(denied) => Verdict::Refused(denied),
        Verdict::Expired => Verdict::Expired,
    };
    (served.ticket, served.payload, verdict)
}

proptest! {
    #![proptest_config(cases(250))]

    #[test]
    fn b07_serves_as_a_plain_list_that_is_searched(
        bound in 0..12_usize,
        newest_first in any::<bool>(),
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let mut bench = Bench::new(WaitQueue::new(bound), newest_first);
        for operation in &operations {
            bench.run(operation)?;
        }
    }
}

#[cfg(feature = "heapless")]
proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn b07_the_fixed_form_serves_as_the_plain_list(
        newest_first in any::<bool>(),
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let mut bench = Bench::new(WaitQueue::<heapless::Vec<Waiting<u64>, 7>>::fixed(), newest_first);
        for operation in &operations {
            bench.run(operation)?;
        }
    }
}

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
fn a_newcomer_is_told_exactly_when_it_could_go() {
    let mut numbers = Numbers(3);
    for quota in [quota!("10/1s burst 7"), quota!("7/3s burst 20"), quota!("11/1s"), quota!("999_999_937/1s burst 5")] {
        for _ in 0..60 {
            // Costs below the capacity: of what flows in while a full bucket waits for the next nanosecond, a part is lost.
            let largest = quota.capacity().min(20) - 1;
            let (bucket, now) = (bucket(quota), Nanos::from_secs(numbers.below(1_000)));
            let _ = bucket.try_acquire_at(now, numbers.below(quota.capacity().min(30) + 1));
            let mut queue = WaitQueue::new(100);
            for number in 0..numbers.below(12) {
                queue.push(1 + numbers.below(largest), None, number).unwrap();
            }
            let cost = 1 + numbers.below(largest);
            let earliest = queue.earliest_for_new_at(now, &bucket, cost).unwrap();
            // Let all go, each as soon as it can.
            queue.push(cost, None, 99).unwrap();
            let mut reading = now;
            let mut last = None;
            while let Some(wake) = queue.next_wake_at(reading, &bucket) {
                reading = wake;
                queue.grant_at(reading, &bucket, |served| last = Some(served.payload));
            }
            assert_eq!((last, reading), (Some(99), earliest), "{quota}");
            let newest = WaitQueue::<Vec<Waiting<()>>>::new(5).newest_first();
            assert!(newest.earliest_for_new_at(now, &bucket, cost).unwrap() >= now);
        }
    }
    let off = TokenBucket::with_clock(sluicegate_core::Limit::Unlimited, ManualClock::new());
    let queue = WaitQueue::<Vec<Waiting<()>>>::new(5);
    assert_eq!(queue.earliest_for_new_at(Nanos::new(5), &off, u64::MAX), Ok(Nanos::new(5)));
}

#[test]
fn a_lower_bound_is_told_where_the_limiter_knows_no_more() {
    let bucket = Bucket::full(quota!("10/1s"));
    let _ = bucket.try_acquire_at(Nanos::ZERO, 10);
    let mut queue = WaitQueue::new(100);
    assert_eq!(queue.earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_millis(200)));
    queue.push(5, None, ()).unwrap();
    assert_eq!(queue.earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_millis(700)));
    (0..99).for_each(|_| {
        queue.push(u64::MAX, None, ()).unwrap();
    });
    assert_eq!(queue.earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_secs(1)));
    assert_eq!(queue.newest_first().earliest_for_new_at(Nanos::ZERO, &bucket, 2), Ok(Nanos::from_millis(200)));
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
