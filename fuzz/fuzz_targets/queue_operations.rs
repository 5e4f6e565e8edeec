//! Operations on both forms of the wait queue, beside a list that is searched from end to end.
#![no_main]

use core::cell::Cell;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use sluicegate_core::{
    BucketState, BucketStep, Decision, Denied, Inspection, Limiter, Nanos, QueueFull, Slots, Ticket, Verdict,
    WaitQueue, Waiting, quota,
};

#[derive(Arbitrary, Debug)]
struct Input {
    bound: u8,
    newest_first: bool,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Operation {
    Push {
        cost: u8,
        deadline: Option<u8>,
    },
    PushHuge {
        cost: u64,
        deadline: Option<u64>,
    },
    PushEvicting {
        cost: u8,
        deadline: Option<u8>,
    },
    /// A wait that goes on or has ended.
    Cancel(u16),
    GrantOne,
    GrantAll,
    Expire,
    Pop,
    Shrink,
    Advance(u8),
    StepBack(u8),
    GoTo(u64),
    /// To the reading that the queue wants to be woken at.
    GoToWake,
    /// Who can never go leaves.
    Refuse,
    /// One more of this cost asks when it could go.
    Forecast(u8),
    /// By a ticket of the same slot and number in another queue.
    CancelStranger,
}

fuzz_target!(|input: Input| {
    let bound = usize::from(input.bound % 40);
    run(WaitQueue::new(bound), &input);
    run(WaitQueue::<heapless::Vec<Waiting<u64>, 5>>::fixed(), &input);
});

fn run<S: Slots<Payload = u64>>(queue: WaitQueue<S>, input: &Input) {
    let queue = if input.newest_first { queue.newest_first() } else { queue };
    let bound = queue.bound();
    let mut bench =
        Bench { queue, bound, newest_first: input.newest_first, waits: Vec::new(), tickets: Vec::new(), now: 100 };
    let bucket = Bucket { step: BucketStep::new(quota!("3/10ns burst 8")), state: Cell::default() };
    for operation in input.operations.iter().take(256) {
        bench.run(*operation, &bucket);
    }
}

struct Bench<S> {
    queue: WaitQueue<S>,
    bound: usize,
    newest_first: bool,
    /// Number, cost and deadline of who waits, oldest first.
    waits: Vec<(u64, u64, Option<u64>)>,
    /// Of every number that ever waited.
    tickets: Vec<Ticket>,
    now: u64,
}

impl<S: Slots<Payload = u64>> Bench<S> {
    fn run(&mut self, operation: Operation, bucket: &Bucket) {
        let now = Nanos::new(self.now);
        let soon = |span: Option<u8>| span.map(|span| self.now.saturating_add(u64::from(span)).saturating_sub(20));
        match operation {
            Operation::Push { cost, deadline } => self.push(u64::from(cost % 10), soon(deadline), false),
            Operation::PushHuge { cost, deadline } => self.push(cost, deadline, false),
            Operation::PushEvicting { cost, deadline } => self.push(u64::from(cost % 10), soon(deadline), true),
            Operation::Cancel(which) if !self.tickets.is_empty() => {
                let number = u64::from(which) % self.tickets.len() as u64;
                let expected = self.waits.iter().position(|&(other, ..)| other == number);
                let ticket = self.tickets[number as usize];
                assert_eq!(self.queue.payload(ticket).copied(), expected.map(|_| number));
                assert_eq!(self.queue.cancel(ticket), expected.map(|index| self.waits.remove(index).0));
            }
            Operation::GrantOne => {
                self.grant_one(bucket);
            }
            Operation::GrantAll => while self.grant_one(bucket) {},
            Operation::Expire => {
                let expected = self.earliest().filter(|&(deadline, _)| deadline <= self.now);
                let expected = expected.map(|(_, index)| self.waits.remove(index).0);
                assert_eq!(self.queue.expire_next_at(now).map(|(_, number)| number), expected);
            }
            Operation::Pop => {
                let expected = self.head().map(|head| self.waits.remove(head).0);
                assert_eq!(self.queue.pop().map(|(_, number)| number), expected);
            }
            Operation::Shrink => self.queue.shrink(),
            Operation::Advance(span) => self.now = self.now.saturating_add(span.into()),
            Operation::StepBack(span) => self.now = self.now.saturating_sub(span.into()),
            Operation::GoTo(reading) => self.now = reading,
            Operation::GoToWake => match self.queue.next_wake_at(now, bucket) {
                None => assert!(self.waits.is_empty()),
                Some(wake) => {
                    assert!(wake >= now);
                    self.now = wake.as_u64();
                    // Past the horizon the bucket's time stands still.
                    assert!(self.grant_one(bucket) || wake > Nanos::HORIZON, "nothing is over at {wake}");
                }
            },
            Operation::Refuse => {
                let mut expected = Vec::new();
                for index in self.in_turn() {
                    expected.extend((self.waits[index].1 > CAPACITY).then_some(self.waits[index].0));
                }
                let mut refused = Vec::new();
                self.queue.refuse_at(now, bucket, |served| {
                    assert!(matches!(
                        served.verdict,
                        Verdict::Refused(Denied::CostExceedsLimit { limit: CAPACITY, .. })
                    ));
                    refused.push(served.payload);
                });
                assert_eq!(refused, expected);
                self.waits.retain(|&(_, cost, _)| cost <= CAPACITY);
            }
            Operation::Forecast(cost) => self.forecast(u64::from(cost) % (CAPACITY + 2), bucket),
            Operation::CancelStranger => {
                let mut other = WaitQueue::new(1);
                let ticket = other.push(1, None, 0).expect("there is room");
                assert_eq!(self.queue.cancel(ticket), None);
            }
            Operation::Cancel(_) => {}
        }
        assert_eq!(self.queue.len(), self.waits.len());
        assert_eq!(self.queue.waiting_cost(), self.waits.iter().map(|&(_, cost, _)| u128::from(cost)).sum::<u128>());
        assert_eq!(self.queue.head(), self.head().map(|head| self.tickets[self.waits[head].0 as usize]));
        assert_eq!(self.queue.next_deadline(), self.earliest().map(|(deadline, _)| Nanos::new(deadline)));
    }

    fn push(&mut self, cost: u64, deadline: Option<u64>, evicting: bool) {
        let (number, until) = (self.tickets.len() as u64, deadline.map(Nanos::new));
        let is_full = self.waits.len() >= self.bound;
        let pushed = if evicting {
            self.queue.push_evicting(cost, until, number)
        } else {
            self.queue.push(cost, until, number).map(|ticket| (ticket, None))
        };
        match pushed {
            Ok((ticket, evicted)) => {
                assert!(evicting || !is_full);
                let expected = is_full.then(|| self.waits.remove(0).0);
                assert_eq!(evicted.map(|(_, number)| number), expected);
                self.tickets.push(ticket);
                self.waits.push((number, cost, deadline));
            }
            Err(QueueFull(payload)) => assert!(is_full && payload == number && (!evicting || self.bound == 0)),
        }
    }

    fn grant_one(&mut self, bucket: &Bucket) -> bool {
        let expected = self.expected(bucket);
        let served = self.queue.grant_next_at(Nanos::new(self.now), bucket);
        let Some(served) = served else {
            assert!(expected.is_none(), "{expected:?}");
            return false;
        };
        let (index, verdict) = expected.expect("somebody was served");
        let (number, ..) = self.waits.remove(index);
        assert_eq!((served.payload, served.ticket), (number, self.tickets[number as usize]));
        let is_same = match (served.verdict, verdict) {
            (Verdict::Granted(_), Verdict::Granted(())) | (Verdict::Expired, Verdict::Expired) => true,
            (Verdict::Refused(denied), Verdict::Refused(expected)) => denied == expected,
            _ => false,
        };
        assert!(is_same);
        true
    }

    fn expected(&self, bucket: &Bucket) -> Option<(usize, Verdict<()>)> {
        if let Some((_, index)) = self.earliest().filter(|&(deadline, _)| deadline < self.now) {
            return Some((index, Verdict::Expired));
        }
        let head = self.head()?;
        match bucket.peek_at(Nanos::new(self.now), self.waits[head].1) {
            Ok(_) => Some((head, Verdict::Granted(()))),
            Err(denied @ Denied::CostExceedsLimit { .. }) => Some((head, Verdict::Refused(denied))),
            Err(_) => {
                let (_, index) = self.earliest().filter(|&(deadline, _)| deadline == self.now)?;
                Some((index, Verdict::Expired))
            }
        }
    }

    fn head(&self) -> Option<usize> {
        if self.newest_first { self.waits.len().checked_sub(1) } else { (!self.waits.is_empty()).then_some(0) }
    }

    /// Of equal deadlines that of who is nearest to the head.
    fn earliest(&self) -> Option<(u64, usize)> {
        let due = |index: usize| self.waits[index].2.map(|deadline| (deadline, index));
        self.in_turn().into_iter().filter_map(due).min_by_key(|&(deadline, _)| deadline)
    }

    fn in_turn(&self) -> Vec<usize> {
        let oldest_first = 0..self.waits.len();
        if self.newest_first { oldest_first.rev().collect() } else { oldest_first.collect() }
    }

    /// The bucket's time and the list are gone through: no newcomer goes before it was told.
    fn forecast(&self, cost: u64, bucket: &Bucket) {
        let now = Nanos::new(self.now);
        let earliest = self.queue.earliest_for_new_at(now, bucket, cost);
        let expected = self.queue.expected_for_new_at(now, bucket, cost);
        let (Ok(earliest), Ok(expected)) = (earliest, expected) else {
            assert!(cost > CAPACITY && earliest == expected);
            return;
        };
        assert!(now <= earliest && earliest <= expected);
        let mut turns: Vec<(u64, Option<u64>)> =
            self.in_turn().into_iter().map(|index| (self.waits[index].1, self.waits[index].2)).collect();
        turns.insert(if self.newest_first { 0 } else { turns.len() }, (cost, None));
        // The newcomer is the last of those that matter.
        turns.truncate(if self.newest_first { 1 } else { turns.len() });
        let bucket = Bucket { step: bucket.step, state: Cell::new(bucket.state.get()) };
        let mut reading = self.now;
        for (cost, deadline) in turns {
            // Its turn comes when whoever was before it has left; then it goes, or never can, or waits until its deadline.
            if deadline.is_some_and(|deadline| deadline < reading) {
                continue;
            }
            let Err(denied) = bucket.try_acquire_at(Nanos::new(reading), cost) else { continue };
            let Some(wait) = denied.retry_after() else { continue };
            let turn = reading.saturating_add(wait.as_nanos() as u64);
            match deadline {
                Some(deadline) if deadline < turn => reading = deadline,
                _ => {
                    reading = turn;
                    let taken = bucket.try_acquire_at(Nanos::new(reading), cost);
                    assert!(taken.is_ok() || reading > Nanos::HORIZON.as_u64());
                }
            }
        }
        // Past the horizon the bucket's time stands still, and nobody's turn comes.
        assert!(earliest.as_u64() <= reading || reading > Nanos::HORIZON.as_u64(), "{earliest} after {reading}");
    }
}

/// The bucket's.
const CAPACITY: u64 = 8;

struct Bucket {
    step: BucketStep,
    state: Cell<BucketState>,
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
