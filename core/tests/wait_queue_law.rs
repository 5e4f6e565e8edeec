//! The wait queue against a plain list that is searched from end to end, in both of its forms.
#![cfg(feature = "alloc")]

mod support;

use core::time::Duration;

use proptest::prelude::*;
#[cfg(feature = "heapless")]
use sluicegate_core::Waiting;
use sluicegate_core::{Denied, Limiter, Nanos, QueueFull, Served, Slots, Ticket, Verdict, WaitQueue, quota};
use support::cases;
use support::waiting::Bucket;

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

    /// The earliest deadline and whose it is; of equal ones, of who is nearest to the head.
    fn earliest(&self) -> Option<(u64, usize)> {
        let due = |index: usize| self.waits[index].deadline.map(|deadline| (deadline, index));
        // The first of equal ones is the least.
        self.in_turn().into_iter().filter_map(due).min_by_key(|&(deadline, _)| deadline)
    }

    fn in_turn(&self) -> Vec<usize> {
        let oldest_first = 0..self.waits.len();
        if self.newest_first { oldest_first.rev().collect() } else { oldest_first.collect() }
    }

    /// The law: how up to `most` waits end at `now`. First those whose deadline has passed. Then each has its turn, from the head
    /// on: it goes if it can, and its wait ends if it never can or its deadline has come. Behind one that stays nobody goes.
    fn serve(&mut self, now: u64, limiter: &impl Limiter, most: usize) -> Vec<(u64, Verdict<()>)> {
        let mut over = Vec::new();
        while let Some((_, index)) = self.earliest().filter(|&(deadline, _)| deadline < now && over.len() < most) {
            over.push((self.waits.remove(index).number, Verdict::Expired));
        }
        let turns: Vec<Wait> = self.in_turn().into_iter().map(|index| self.waits[index]).collect();
        let mut someone_stays = false;
        for wait in turns {
            if over.len() == most {
                break;
            }
            let decision = if someone_stays { None } else { Some(limiter.try_acquire_at(Nanos::new(now), wait.cost)) };
            let verdict = match decision {
                Some(Ok(_)) => Verdict::Granted(()),
                Some(Err(denied @ (Denied::CostExceedsLimit { .. } | Denied::Closed))) => Verdict::Refused(denied),
                _ if wait.deadline == Some(now) => Verdict::Expired,
                _ => {
                    someone_stays = true;
                    continue;
                }
            };
            over.push((wait.number, verdict));
            self.waits.retain(|other| other.number != wait.number);
        }
        over
    }

    /// Those who can never go, from the head on.
    fn refuse(&mut self, limit: u64) -> Vec<u64> {
        let turns: Vec<Wait> = self.in_turn().into_iter().map(|index| self.waits[index]).collect();
        self.waits.retain(|wait| wait.cost <= limit);
        turns.iter().filter(|wait| wait.cost > limit).map(|wait| wait.number).collect()
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Push {
        cost: u64,
        deadline: Option<u64>,
        evicting: bool,
    },
    Cancel(usize),
    CancelStale(usize),
    GrantAll,
    GrantOne,
    Expire,
    Pop,
    Refund(u64),
    Refuse,
    Advance(u64),
    StepBack(u64),
    /// To the earliest deadline that is to come.
    ToDeadline,
    Wake,
    Forecast(u64),
    Shrink,
}

fn operation() -> impl Strategy<Value = Operation> {
    let cost = prop_oneof![6 => 0..5_u64, 1 => Just(9), 1 => Just(u64::MAX)];
    // Many come at equal readings.
    let deadline = prop::option::of(prop_oneof![9 => (0..8_u64).prop_map(|tens| tens * 10), 1 => Just(u64::MAX)]);
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
        1 => Just(Operation::Refuse),
        3 => prop_oneof![0..30_u64, Just(10)].prop_map(Operation::Advance),
        1 => (0..30_u64).prop_map(Operation::StepBack),
        3 => Just(Operation::ToDeadline),
        3 => Just(Operation::Wake),
        3 => (0..9_u64).prop_map(Operation::Forecast),
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
                let expected = self.naive.serve(self.now, &bucket, usize::MAX);
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
                let expected = self.naive.serve(self.now, &bucket, 1).pop();
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
            Operation::Refuse => {
                let expected = self.naive.refuse(8);
                let mut served = Vec::new();
                let count = self.queue.refuse_at(now, &self.bucket, |waiter| served.push(waiter));
                prop_assert_eq!(count, served.len());
                for waiter in &served {
                    prop_assert_eq!(waiter.ticket, self.tickets[waiter.payload as usize]);
                    let is_refused =
                        matches!(waiter.verdict, Verdict::Refused(Denied::CostExceedsLimit { limit: 8, .. }));
                    prop_assert!(is_refused);
                }
                prop_assert_eq!(served.iter().map(|waiter| waiter.payload).collect::<Vec<_>>(), expected);
            }
            Operation::Advance(span) => self.now += span,
            Operation::StepBack(span) => self.now -= span.min(self.now),
            Operation::ToDeadline => {
                let coming = self.naive.waits.iter().filter_map(|wait| wait.deadline);
                let coming = coming.filter(|deadline| (self.now + 1..1 << 40).contains(deadline));
                self.now = coming.min().unwrap_or(self.now);
            }
            Operation::Wake => self.check_wake()?,
            Operation::Forecast(cost) => self.check_forecast(cost)?,
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

    /// One more is not told a reading after the one at which it goes, nor would it have gone by an earlier deadline.
    fn check_forecast(&self, cost: u64) -> Result<(), TestCaseError> {
        let (now, newcomer) = (Nanos::new(self.now), self.tickets.len() as u64);
        let earliest = self.queue.earliest_for_new_at(now, &self.bucket, cost);
        let expected = self.queue.expected_for_new_at(now, &self.bucket, cost);
        prop_assert!(earliest.is_ok() == (cost <= 8) && earliest.is_ok() == expected.is_ok());
        let (Ok(earliest), Ok(expected)) = (earliest, expected) else { return Ok(()) };
        prop_assert!(now <= earliest && earliest <= expected);
        let mut future = self.naive.clone();
        future.waits.push(Wait { number: newcomer, cost, deadline: None });
        let bucket = self.bucket.clone();
        // One nanosecond after another.
        let is_it = |&(number, _): &(u64, Verdict<()>)| number == newcomer;
        let turn = (self.now..).find(|&reading| future.serve(reading, &bucket, usize::MAX).iter().any(is_it));
        prop_assert!(earliest.as_u64() <= turn.unwrap_or(u64::MAX), "{:?} goes before {}", turn, earliest);
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
    #![proptest_config(cases(200))]

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
        bound in 0..12_usize,
        newest_first in any::<bool>(),
        operations in prop::collection::vec(operation(), 1..120),
    ) {
        let queue = WaitQueue::<heapless::Vec<Waiting<u64>, 7>>::fixed().at_most(bound);
        prop_assert_eq!(queue.bound(), bound.min(7));
        let mut bench = Bench::new(queue, newest_first);
        for operation in &operations {
            bench.run(operation)?;
        }
    }
}
