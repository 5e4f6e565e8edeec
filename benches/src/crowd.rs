//! Timing contestants that many threads use at once, in turn.

use alloc::boxed::Box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::interleaved::{Effort, Timing, timings};

/// Calls that any number of threads make at once.
pub struct Crowd<'a> {
    name: &'static str,
    run: Box<dyn Fn(u64) + Sync + 'a>,
}

impl<'a> Crowd<'a> {
    /// A loop over `call`, on each thread.
    pub fn new(name: &'static str, call: impl Fn() + Sync + 'a) -> Self {
        let run = move |calls| {
            for _ in 0..calls {
                call();
            }
        };
        Self { name, run: Box::new(run) }
    }

    /// Nanoseconds from when the first of so many threads begins until the last has made its share, for each of all calls.
    fn time(&self, threads: usize, calls: u64) -> f64 {
        let share = calls.div_ceil(threads as u64);
        let start_together = Barrier::new(threads);
        let spans: Vec<_> = thread::scope(|scope| {
            let on_a_thread = || {
                start_together.wait();
                let start = Instant::now();
                (self.run)(share);
                (start, Instant::now())
            };
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(on_a_thread)).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        let start = spans.iter().map(|(start, _)| *start).min();
        let end = spans.iter().map(|(_, end)| *end).max();
        let span = start.zip(end).map_or(0, |(start, end)| end.duration_since(start).as_nanos());
        span as f64 / (share * threads as u64) as f64
    }
}

impl core::fmt::Debug for Crowd<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Crowd").field(&self.name).finish()
    }
}

/// Gives every contestant a turn in each round, with so many threads and calls of all together, and compares each with `baseline`.
///
/// # Panics
/// If nobody is called `baseline`.
pub fn compare(crowds: &[Crowd<'_>], baseline: &str, threads: usize, effort: Effort) -> Vec<Timing> {
    let mut times = vec![Vec::with_capacity(effort.rounds); crowds.len()];
    for round in 0..effort.rounds {
        for turn in 0..crowds.len() {
            let turn = if round % 2 == 0 { turn } else { crowds.len() - 1 - turn };
            let index = (turn + round) % crowds.len();
            times[index].push(crowds[index].time(threads, effort.calls));
        }
    }
    timings(crowds.iter().map(|crowd| crowd.name), &times, baseline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_thread_makes_its_share() {
        let counts = [const { AtomicU64::new(0) }; 2];
        let crowds = [
            Crowd::new("a", || _ = counts[0].fetch_add(1, Ordering::Relaxed)),
            Crowd::new("b", || _ = counts[1].fetch_add(1, Ordering::Relaxed)),
        ];
        let timings = compare(&crowds, "a", 3, Effort { rounds: 4, calls: 30 });
        assert_eq!(counts.each_ref().map(|count| count.load(Ordering::Relaxed)), [120; 2]);
        assert_eq!(timings[0].ratio, 1.0);
    }
}
