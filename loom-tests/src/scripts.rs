//! Short scripts, raced against each other and judged by a sequential count: every outcome must be the one of some order
//! in which the operations could have run one at a time, each thread's in its own order.
//!
//! Nothing is recorded while they run, because a shared log would order the threads and hide what the memory orders
//! allow. What is compared is all that callers can see: every answer, and what is free in the end.

use std::sync::Arc;

use sluicegate_core::{Nanos, PER_SECOND, Quota, Rate};

use crate::{Bucket, Window, promise, race2, race3};

/// One call, all at one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Takes a cost, starting at a shard.
    Acquire(usize, u64),
    /// Gives a cost back, starting at a shard.
    Refund(usize, u64),
    /// Asks whether a cost would be admitted, starting at a shard.
    Peek(usize, u64),
}

/// A limiter on which scripts run; buckets have no shards.
pub trait Door: Send + Sync + 'static {
    /// An unused one.
    fn new(limit: u64) -> Self;
    /// Runs one operation; a refund answers `true`.
    fn run(&self, op: Op) -> bool;
    /// What is free.
    fn free(&self) -> u64;
}

/// A bucket that nothing flows into.
#[derive(Debug)]
pub struct StillBucket<B>(B);

impl<B: Bucket> Door for StillBucket<B> {
    fn new(limit: u64) -> Self {
        let rate = Rate::new(1, PER_SECOND).expect("one a second is a rate");
        Self(B::new(Quota::with_burst(rate, limit).expect("scripts use small limits")))
    }

    fn run(&self, op: Op) -> bool {
        match op {
            Op::Acquire(_, cost) => self.0.try_acquire(NOW, cost).is_ok(),
            Op::Peek(_, cost) => self.0.peek(NOW, cost).is_ok(),
            Op::Refund(_, cost) => {
                self.0.refund(cost);
                true
            }
        }
    }

    fn free(&self) -> u64 {
        self.0.level(NOW)
    }
}

/// One window over two shards.
#[derive(Debug)]
pub struct TwoShards<W>(W);

impl<W: Window> Door for TwoShards<W> {
    fn new(limit: u64) -> Self {
        Self(W::new(limit, 2))
    }

    fn run(&self, op: Op) -> bool {
        match op {
            Op::Acquire(seat, cost) => self.0.try_acquire(seat, NOW, cost).is_ok(),
            Op::Peek(seat, cost) => self.0.peek(seat, NOW, cost).is_ok(),
            Op::Refund(seat, cost) => {
                self.0.refund(seat, NOW, cost);
                true
            }
        }
    }

    fn free(&self) -> u64 {
        self.0.free(0, NOW)
    }
}

/// Scripts to race, and what is run before them.
#[derive(Clone, Debug)]
pub struct Race {
    start: &'static [Op],
    scripts: Vec<Vec<Op>>,
}

impl Race {
    /// Every script of two operations against every one of one, from every start.
    pub fn two_against_one() -> Vec<Self> {
        let race = |start, a, then, b| Self { start, scripts: vec![vec![a, then], vec![b]] };
        triples().map(|(start, [a, then, b])| race(start, a, then, b)).collect()
    }

    /// Every three of the operations that write against each other, from every start; large costs at one shard only.
    pub fn three_at_once() -> Vec<Self> {
        let is_left_out = |op: &Op| matches!(op, Op::Peek(..) | Op::Acquire(1, 2));
        // In which thread an operation runs makes no difference.
        let sorted = triples().filter(|(_, ops)| ops.is_sorted() && !ops.iter().any(is_left_out));
        sorted.map(|(start, ops)| Self { start, scripts: ops.map(|op| vec![op]).into() }).collect()
    }

    /// Runs the race on a new limiter, and judges its outcome.
    pub fn run<D: Door>(&self) {
        let door = Arc::new(D::new(LIMIT));
        follow(self.start.to_vec())(&*door);
        let mut scripts = self.scripts.iter().cloned().map(follow);
        let answers = match [scripts.next(), scripts.next(), scripts.next()] {
            [Some(a), Some(b), None] => <[_; 2]>::from(race2(&door, a, b)).to_vec(),
            [Some(a), Some(b), Some(c)] => <[_; 3]>::from(race3(&door, a, b, c)).to_vec(),
            _ => unreachable!("races are made with two scripts or three"),
        };
        self.judge(&answers, door.free());
    }

    fn judge(&self, answers: &[Vec<bool>], free: u64) {
        let mut count = Count { taken: 0 };
        for &op in self.start {
            count.run(op);
        }
        promise!(
            self.is_explained(count, &mut vec![0; answers.len()], answers, free),
            "no order explains {answers:?} with {free} of {LIMIT} free after {self:?}"
        );
    }

    /// Whether some order of what is left of the scripts, from `done` on, gives `answers` and leaves `free`.
    fn is_explained(&self, count: Count, done: &mut [usize], answers: &[Vec<bool>], free: u64) -> bool {
        let mut is_over = true;
        for (thread, script) in self.scripts.iter().enumerate() {
            let Some(&op) = script.get(done[thread]) else { continue };
            is_over = false;
            let mut next = count;
            if next.run(op) == answers[thread][done[thread]] {
                done[thread] += 1;
                let is_explained = self.is_explained(next, done, answers, free);
                done[thread] -= 1;
                if is_explained {
                    return true;
                }
            }
        }
        is_over && LIMIT - count.taken == free
    }
}

fn triples() -> impl Iterator<Item = (&'static [Op], [Op; 3])> {
    let each = || OPS.into_iter();
    let ops = move || each().flat_map(move |a| each().flat_map(move |b| each().map(move |c| [a, b, c])));
    STARTS.into_iter().flat_map(move |start| ops().map(move |ops| (start, ops)))
}

fn follow<D: Door>(script: Vec<Op>) -> impl FnOnce(&D) -> Vec<bool> {
    move |door| script.into_iter().map(|op| door.run(op)).collect()
}

/// What a limiter is when nobody races.
#[derive(Clone, Copy)]
struct Count {
    taken: u64,
}

impl Count {
    fn run(&mut self, op: Op) -> bool {
        match op {
            Op::Acquire(_, cost) => {
                let fits = self.taken + cost <= LIMIT;
                if fits {
                    self.taken += cost;
                }
                fits
            }
            Op::Peek(_, cost) => self.taken + cost <= LIMIT,
            Op::Refund(_, cost) => {
                self.taken = self.taken.saturating_sub(cost);
                true
            }
        }
    }
}

const LIMIT: u64 = 2;
/// Everything that two shards of one unit each can be asked for.
const OPS: [Op; 6] =
    [Op::Acquire(0, 1), Op::Acquire(1, 1), Op::Acquire(0, 2), Op::Acquire(1, 2), Op::Refund(0, 1), Op::Peek(0, 1)];
/// Nothing taken, one in either shard, and both.
const STARTS: [&[Op]; 4] = [&[], &[Op::Acquire(0, 1)], &[Op::Acquire(1, 1)], &[Op::Acquire(0, 2)]];
const NOW: Nanos = Nanos::from_secs(100);
