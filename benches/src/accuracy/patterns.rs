//! When limiters are asked: patterns, clocks at fault, and long uptimes.

use sluicegate_threads::Nanos;

use super::grid::{DAY, Grid};

/// Asks at one reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// Nanoseconds since the limiter's clock began.
    pub at: u64,
    /// Tokens of each request.
    pub cost: u32,
    /// Requests at most: the first denial ends them.
    pub most: u32,
}

/// What kind a pattern is of, and its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// By a clock that goes on.
    Steady(&'static str),
    /// By a clock at fault.
    Faulty(&'static str),
    /// By a clock that began years ago.
    Late(&'static str),
}

impl core::fmt::Display for Kind {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (Self::Steady(name) | Self::Faulty(name) | Self::Late(name)) = self;
        f.write_str(name)
    }
}

/// All patterns for a grid, of about `size` tokens each. Nothing is asked past the horizon of 30 years.
pub fn all(grid: &Grid, size: u64) -> Vec<(Kind, Vec<Poll>)> {
    let mut all: Vec<_> = STEADY.map(|(name, make)| (Kind::Steady(name), make(grid, size))).into();
    all.extend(FAULTS.map(|(name, spoil)| (Kind::Faulty(name), spoil(grid, each_token(grid, size)))));
    for (name, years) in UPTIMES {
        let polls = STEADY.into_iter().flat_map(|(_, make)| {
            // One that leaves the state as it was made, and one that has been used up at the beginning.
            let start = years * 365 * DAY + 987_654_321;
            let later = move |poll: Poll| Poll { at: start.saturating_add(poll.at), ..poll };
            make(grid, size / 2).into_iter().map(later)
        });
        let mut polls: Vec<_> = polls.collect();
        polls.sort_by_key(|poll| poll.at);
        all.push((Kind::Late(name), polls));
    }
    for (_, polls) in &mut all {
        polls.retain(|poll| poll.at < Nanos::HORIZON.as_u64());
    }
    all
}

/// One of the patterns by a clock that goes on.
///
/// # Panics
/// Where none has that name.
pub fn named(name: &str, grid: &Grid, size: u64) -> Vec<Poll> {
    STEADY.iter().find(|(each, _)| *each == name).expect("a pattern of this name").1(grid, size)
}

type Make = (&'static str, fn(&Grid, u64) -> Vec<Poll>);

/// Asks so often that no bucket is ever full but at the start: what is handed out in all can be compared.
pub const WITHOUT_PAUSE: &str = "a thousand times a token's time, or every nanosecond";

const STEADY: [Make; 8] = [
    (WITHOUT_PAUSE, |grid, size| {
        let step = (grid.token_time() / 1_000).max(1);
        let polls = if step > 1 { size * 20 } else { size * 40 };
        (0..polls).map(|poll| one(poll * step)).collect()
    }),
    ("prime steps shorter than a token's time", |grid, size| {
        let step = prime_below(grid.token_time() / 5 * 2);
        (0..size * 5).map(|poll| one(poll * step)).collect()
    }),
    ("prime steps longer than a token's time", |grid, size| {
        let step = grid.token_time() + prime_below(grid.token_time() / 2);
        (0..size * 2).map(|poll| if poll % 16 == 15 { drain(poll * step) } else { one(poll * step) }).collect()
    }),
    ("idle, then all that is there", |grid, size| {
        let gap = grid.until(grid.burst.into()) / 3 * 4 + 7;
        (0..few(grid, size)).map(|turn| drain(turn * gap)).collect()
    }),
    ("all that is there, until just full again", |grid, size| {
        let full = grid.until(grid.burst.into());
        let mut polls = vec![drain(0)];
        for turn in 1..few(grid, size) {
            let at = turn * (full + 1);
            polls.extend([drain(at - 1), drain(at), drain(at + 1)]);
        }
        polls
    }),
    ("before and after each token", each_token),
    ("three tokens at a time, before and after", |grid, size| {
        let cost = 3.min(grid.burst);
        let mut polls = vec![drain(0)];
        for turn in 1..=size / 2 {
            let at = grid.until(turn * u64::from(cost));
            polls.extend([Poll { at: at - 1, cost, most: 1 }, Poll { at, cost, most: 1 }]);
        }
        polls
    }),
    ("whole bursts, before and after", |grid, size| {
        let cost = grid.burst;
        let mut polls = vec![Poll { at: 0, cost, most: 1 }];
        for turn in 1..=size / 2 {
            let at = grid.until(turn * u64::from(cost));
            polls.extend([Poll { at: at - 1, cost, most: 1 }, Poll { at, cost, most: 1 }]);
        }
        polls
    }),
];

/// Spends all, then asks a nanosecond before each token and when it is there.
fn each_token(grid: &Grid, size: u64) -> Vec<Poll> {
    let mut polls = vec![drain(0)];
    for token in 1..=size * 4 {
        let at = grid.until(token);
        polls.extend([drain(at - 1), drain(at)]);
    }
    polls
}

type Spoil = (&'static str, fn(&Grid, Vec<Poll>) -> Vec<Poll>);

const FAULTS: [Spoil; 5] = [
    ("steps back, again and again, and goes on from there", |_, polls| {
        let span = polls.last().map_or(0, |poll| poll.at) / 7;
        let spoil = |(number, poll): (usize, Poll)| {
            let back = span * (number as u64 * 11 / 300 % 4);
            Poll { at: poll.at.saturating_sub(back), ..poll }
        };
        polls.into_iter().enumerate().map(spoil).collect()
    }),
    ("leaps ahead once, and back", |_, polls| {
        let (middle, end) = (polls.len() / 2, polls.last().map_or(0, |poll| poll.at));
        let spoil = |(number, poll): (usize, Poll)| {
            if number == middle { Poll { at: end + end / 3, cost: 1, most: 1 } } else { poll }
        };
        polls.into_iter().enumerate().map(spoil).collect()
    }),
    ("leaps ahead and back at every eighth reading, all denied there", |grid, polls| {
        let (leap, cost) = (grid.until(u64::from(grid.burst)) / 2, grid.burst);
        let spoil = |(number, poll): (usize, Poll)| {
            if number % 8 == 3 { Poll { at: poll.at + leap, cost, most: 1 } } else { poll }
        };
        polls.into_iter().enumerate().map(spoil).collect()
    }),
    ("stalls for a while, and catches up", |_, polls| {
        let stall = polls.len() / 10 + 1;
        let readings: Vec<_> = polls.iter().map(|poll| poll.at).collect();
        let spoil = |(number, poll): (usize, Poll)| {
            let stood = number / stall * stall;
            Poll { at: if number / stall % 2 == 1 { readings[stood] } else { poll.at }, ..poll }
        };
        polls.into_iter().enumerate().map(spoil).collect()
    }),
    ("is two, one behind the other", |_, polls| {
        let behind = polls.last().map_or(0, |poll| poll.at) / 50;
        let spoil = |poll: Poll| [poll, Poll { at: poll.at.saturating_sub(behind), ..poll }];
        polls.into_iter().flat_map(spoil).collect()
    }),
];

/// Years that the clock has gone when the first request comes.
pub const UPTIMES: [(&str, u64); 3] = [("1 year", 1), ("10 years", 10), ("29 years", 29)];

/// Turns of a pattern that asks for whole bursts.
fn few(grid: &Grid, size: u64) -> u64 {
    (size * 20 / u64::from(grid.burst)).clamp(3, size.max(3))
}

const fn one(at: u64) -> Poll {
    Poll { at, cost: 1, most: 1 }
}

const fn drain(at: u64) -> Poll {
    Poll { at, cost: 1, most: u32::MAX }
}

/// The largest prime up to some number; 2 for less.
fn prime_below(number: u64) -> u64 {
    let is_prime = |number: u64| (2..).take_while(|part| part * part <= number).all(|part| number % part != 0);
    // A step of a second serves where tokens take longer: more would only take longer to find.
    let mut number = number.clamp(2, 1 << 30);
    while !is_prime(number) {
        number -= 1;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::grid::GRIDS;

    #[test]
    fn primes() {
        assert_eq!([0, 2, 4, 100, 1_000_000].map(prime_below), [2, 2, 3, 97, 999_983]);
    }

    #[test]
    fn every_pattern_asks_something_at_every_rate() {
        for grid in &GRIDS {
            let all = all(grid, 10);
            assert_eq!(all.len(), STEADY.len() + FAULTS.len() + UPTIMES.len());
            for (kind, polls) in all {
                assert!(polls.len() >= 3, "{} {kind}", grid.text);
                let is_monotonic = polls.is_sorted_by_key(|poll| poll.at);
                let may_not_be = matches!(kind, Kind::Faulty(_));
                assert!(is_monotonic || may_not_be, "{} {kind}", grid.text);
            }
        }
    }
}
