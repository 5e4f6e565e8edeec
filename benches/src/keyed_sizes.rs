//! Decisions for one of a thousand to ten million keys, each as likely as the others, or some much more than others.

use core::hint::black_box;

use governor::{Quota, RateLimiter};
use sluicegate_threads::{KeyedOptions, SeededState, TscClock, quota};

use crate::interleaved::Contestant;
use crate::keyed::{Numbers, Ours};
use crate::rival;
use crate::single_step::Heat;

/// How keys are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likely {
    /// Each as likely as the others.
    Uniform,
    /// The k-th with a likelihood of about 1/k.
    Zipf,
}

/// Tables: titles, keys, and how they are asked for. Each is made when it is its turn, because some take much memory.
pub const TABLES: [(&str, u64, Likely); 7] = [
    ("1000 keys, uniform", 1_000, Likely::Uniform),
    ("10 000 keys, uniform", 10_000, Likely::Uniform),
    ("100 000 keys, uniform", 100_000, Likely::Uniform),
    ("A million keys, uniform", 1_000_000, Likely::Uniform),
    ("Ten million keys, uniform", 10_000_000, Likely::Uniform),
    ("10 000 keys, Zipf", 10_000, Likely::Zipf),
    ("A million keys, Zipf", 1_000_000, Likely::Zipf),
];

const GOVERNOR: &str = "governor";
const OURS: &str = "`KeyedTokenBucket`";
const EACH: &str = "`try_acquire_each` of 256";

/// A table with so many keys, which all stores know already.
pub fn heat(title: &'static str, keys: u64, likely: Likely) -> Heat {
    // Nobody is ever denied, and no key is full again and dropped.
    let governed =
        RateLimiter::<u64, _, _, _>::keyed(Quota::per_second(rival::count(1)).allow_burst(rival::count(500_000_000)));
    let store = || {
        let options =
            KeyedOptions::new(quota!("1/1s burst 500000000")).cap(usize::try_from(keys * 2).unwrap_or(usize::MAX));
        Ours::<u64, SeededState, _>::with_clock(options, TscClock::new())
    };
    let (one_by_one, many_at_once) = (store(), store());
    for key in 0..keys {
        black_box(governed.check_key(&key).is_ok());
        black_box(one_by_one.try_acquire(&key, 2).is_ok());
        black_box(many_at_once.try_acquire(&key, 2).is_ok());
    }
    let (mut first, mut second, mut third) =
        (Draw::new(keys, likely), Draw::new(keys, likely), Draw::new(keys, likely));
    let mut decisions = Vec::new();
    Heat {
        title,
        note: "Everybody as shipped: governor's keyed limiter with its default hasher and clock, ours with `SeededState` and `TscClock`. All keys are there.",
        baseline: GOVERNOR,
        targets: if keys == 1_000_000 && likely == Likely::Uniform { &[(OURS, 0.4), (EACH, 0.25)] } else { &[] },
        contestants: vec![
            Contestant::new(GOVERNOR, move || _ = black_box(governed.check_key(&first.key()).is_ok())),
            Contestant::new(OURS, move || _ = black_box(one_by_one.try_acquire(&second.key(), 1).is_ok())),
            Contestant::of_turns(EACH, move |calls| {
                for _ in 0..calls / 256 {
                    let keys: [u64; 256] = core::array::from_fn(|_| third.key());
                    many_at_once.try_acquire_each(&keys.each_ref().map(|key| (key, 1)), &mut decisions);
                    black_box(&decisions);
                }
            }),
        ],
    }
}

/// Draws keys, which costs a nanosecond or two for every contestant.
struct Draw {
    numbers: Numbers,
    keys: u64,
    /// For Zipf, drawn beforehand and gone through again and again.
    drawn: Vec<u32>,
    next: usize,
}

impl Draw {
    fn new(keys: u64, likely: Likely) -> Self {
        let mut numbers = Numbers::default();
        let drawn = match likely {
            Likely::Uniform => Vec::new(),
            Likely::Zipf => (0..DRAWN).map(|_| zipf(&mut numbers, keys)).collect(),
        };
        Self { numbers, keys, drawn, next: 0 }
    }

    #[inline]
    fn key(&mut self) -> u64 {
        if self.drawn.is_empty() {
            return self.numbers.below(self.keys);
        }
        self.next = (self.next + 1) % DRAWN;
        self.drawn[self.next].into()
    }
}

/// Half a megabyte of them, gone through in order: the processor fetches them ahead.
const DRAWN: usize = 1 << 17;

/// The inverse of a likelihood of 1/k, taken for continuous: `keys` to the power of a number between 0 and 1.
fn zipf(numbers: &mut Numbers, keys: u64) -> u32 {
    let part = numbers.below(1 << 32) as f64 / (1_u64 << 32) as f64;
    let key = (keys as f64).powf(part) as u64;
    u32::try_from(key.min(keys) - 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interleaved::Effort;

    #[test]
    fn every_contestant_runs() {
        for likely in [Likely::Uniform, Likely::Zipf] {
            assert_eq!(heat("", 1_000, likely).run(Effort { rounds: 3, calls: 512 }).len(), 3);
        }
    }

    #[test]
    fn low_keys_are_drawn_as_often_as_zipf_says() {
        let mut numbers = Numbers::default();
        let drawn: Vec<_> = (0..100_000).map(|_| zipf(&mut numbers, 1_000_000)).collect();
        let share = |below: u32| drawn.iter().filter(|key| **key < below).count() as f64 / 1e5;
        // ln(10^3) is half of ln(10^6).
        assert!((share(999) - 0.5).abs() < 0.01 && (share(9) - 1.0 / 6.0).abs() < 0.01);
        assert!(drawn.contains(&0) && drawn.iter().all(|key| *key < 1_000_000));
    }
}
