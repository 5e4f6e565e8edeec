//! Timing several contestants in one process, in turn, so that what disturbs the machine disturbs all of them.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use std::time::Instant;

/// One loop to be timed.
pub struct Contestant<'a> {
    name: Cow<'static, str>,
    run: Box<dyn FnMut(u64) + 'a>,
}

impl<'a> Contestant<'a> {
    /// A loop over `call`. Its parts that the caller of a library would see must go through `black_box`.
    pub fn new(name: impl Into<Cow<'static, str>>, mut call: impl FnMut() + 'a) -> Self {
        // The loop is compiled with the call in it; only entering the loop goes through a pointer.
        let run = move |calls| {
            for _ in 0..calls {
                call();
            }
        };
        Self { name: name.into(), run: Box::new(run) }
    }

    /// A contestant that makes all calls of a turn itself, whose number it is given.
    pub fn of_turns(name: impl Into<Cow<'static, str>>, run: impl FnMut(u64) + 'a) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }

    /// What is timed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes so many calls.
    pub fn run(&mut self, calls: u64) {
        (self.run)(calls);
    }
}

impl core::fmt::Debug for Contestant<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Contestant").field(&self.name).finish()
    }
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How often each contestant has its turn.
    pub rounds: usize,
    /// Calls in one turn.
    pub calls: u64,
}

impl Effort {
    /// Turns of about 0.1 ms, so that most of them see no interrupt, and enough for steady medians.
    pub const FULL: Self = Self { rounds: 1_001, calls: 20_000 };
    /// Only that it runs.
    pub const TRIAL: Self = Self { rounds: 3, calls: 100 };
}

/// What one contestant took.
#[derive(Clone, Debug)]
pub struct Timing {
    /// What was timed.
    pub name: String,
    /// Median over the rounds, in nanoseconds a call, with the loop around it.
    pub nanos: f64,
    /// Half of the rounds lie between these.
    pub middle_half: (f64, f64),
    /// Median over the rounds of this one's time divided by that of the baseline in the same round.
    pub ratio: f64,
}

/// Gives every contestant a turn in each round, and compares each with the one called `baseline`.
///
/// # Panics
/// If nobody is called `baseline`.
pub fn compare(contestants: &mut [Contestant<'_>], baseline: &str, effort: Effort) -> Vec<Timing> {
    let mut times = vec![Vec::with_capacity(effort.rounds); contestants.len()];
    // One turn each that does not count: caches, branch predictors and first-use initialisation.
    for contestant in &mut *contestants {
        contestant.run(effort.calls);
    }
    for round in 0..effort.rounds {
        // Another one begins each round, and every other round goes backwards, so that no neighbour is fixed.
        for turn in 0..contestants.len() {
            let turn = if round % 2 == 0 { turn } else { contestants.len() - 1 - turn };
            let index = (turn + round) % contestants.len();
            let start = Instant::now();
            contestants[index].run(effort.calls);
            times[index].push(start.elapsed().as_nanos() as f64 / effort.calls as f64);
        }
    }
    timings(contestants.iter().map(Contestant::name), &times, baseline)
}

/// What so many rounds' times of each, in nanoseconds a call, come to beside `baseline`.
///
/// # Panics
/// If nobody is called `baseline`.
pub fn timings<'a>(names: impl Iterator<Item = &'a str> + Clone, times: &[Vec<f64>], baseline: &str) -> Vec<Timing> {
    let reference = &times[names.clone().position(|name| name == baseline).expect("a baseline")];
    let timing = |(name, times): (&str, &Vec<f64>)| {
        let ratios = times.iter().zip(reference).map(|(time, reference)| time / reference).collect();
        let quantile = |part| quantile(times.clone(), part);
        Timing {
            name: name.into(),
            nanos: quantile(0.5),
            middle_half: (quantile(0.25), quantile(0.75)),
            ratio: self::quantile(ratios, 0.5),
        }
    };
    names.zip(times).map(timing).collect()
}

/// The value below which `part` of the values lie.
///
/// # Panics
/// Where there are none.
pub fn quantile(mut values: Vec<f64>, part: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * part).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn everybody_has_the_same_turns() {
        let (a, b) = (Cell::new(0), Cell::new(0));
        let mut contestants =
            [Contestant::new("a", || a.set(a.get() + 1)), Contestant::new("b", || b.set(b.get() + 1))];
        let timings = compare(&mut contestants, "b", Effort { rounds: 5, calls: 7 });
        drop(contestants);
        assert_eq!((a.get(), b.get()), (42, 42));
        assert_eq!(timings.iter().map(|timing| timing.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(timings[1].ratio, 1.0);
    }

    #[test]
    fn medians_ignore_the_few() {
        assert_eq!(quantile(vec![9.0, 1.0, 2.0, 3.0, 1000.0], 0.5), 3.0);
        assert_eq!(quantile(vec![4.0, 1.0, 2.0, 3.0, 5.0], 0.25), 2.0);
    }
}
