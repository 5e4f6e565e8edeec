//! Ours that keep other laws than the token bucket's, beside models of their own laws.

use alloc::collections::VecDeque;

use sluicegate_threads::sluicegate_core::{LeakyBucket, Pacing, SlidingLog};
use sluicegate_threads::{CounterShard, ManualClock, Nanos, sharded_window_with};

use super::grid::{DAY, Grid, SECOND};
use super::patterns::{self, Kind, Poll};

/// What came of one limiter, beside its model: 0 everywhere if it keeps its law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deviation {
    /// Requests.
    pub asked: u64,
    /// Requests that were admitted and should not have been.
    pub over: u64,
    /// Requests that were denied and should not have been.
    pub under: u64,
    /// The most nanoseconds that an item was sent too early.
    pub early: u64,
    /// The most nanoseconds that an item was sent too late.
    pub late: u64,
}

/// A limiter of another law.
#[derive(Clone, Copy, Debug)]
pub struct Other {
    /// What it is.
    pub name: &'static str,
    /// What its law is.
    pub law: &'static str,
    /// How it does on one grid with one pattern.
    pub deviation: fn(&Grid, &[Poll]) -> Deviation,
    /// Whether its law says what a reading that is late brings.
    pub knows_late_readings: bool,
}

/// All of them.
pub const OTHERS: [Other; 4] = [
    Other {
        name: "`ShardedWindow`, 1 shard",
        law: "in each window that the clock names, all of the limit and no more",
        deviation: |grid, polls| window(grid, polls, 1),
        knows_late_readings: true,
    },
    Other {
        name: "`ShardedWindow`, 4 shards",
        law: "the same, asked from one shard after another",
        deviation: |grid, polls| window(grid, polls, 4),
        // Each shard knows the latest window that it was used in; which that is, is no part of the law.
        knows_late_readings: false,
    },
    Other {
        name: "`SlidingLog`",
        law: "in any interval of the window's length, all of the limit and no more",
        deviation: log,
        knows_late_readings: true,
    },
    Other {
        name: "`LeakyBucket`",
        law: "departures as far apart as the rate says, rounded up to nanoseconds, behind a queue of the burst",
        deviation: leaky,
        knows_late_readings: true,
    },
];

/// Limits and widths, and rates and queues.
pub const GRIDS: [Grid; 8] = [
    Grid { text: "3 per 30 days", tokens: 3, period: 30 * DAY, burst: 3 },
    Grid { text: "1000 per day", tokens: 1_000, period: DAY, burst: 1_000 },
    Grid { text: "7 per minute", tokens: 7, period: 60 * SECOND, burst: 7 },
    Grid { text: "1/s", tokens: 1, period: SECOND, burst: 1 },
    Grid { text: "10/s", tokens: 10, period: SECOND, burst: 10 },
    Grid { text: "997/s", tokens: 997, period: SECOND, burst: 997 },
    Grid { text: "97 per 1009 ns", tokens: 97, period: 1_009, burst: 97 },
    Grid { text: "1009 per 7 ms", tokens: 1_009, period: 7_000_000, burst: 1_009 },
];

/// The worst of a limiter on a grid, over all patterns of about `size` tokens that its law covers.
pub fn worst(other: &Other, grid: &Grid, size: u64) -> Deviation {
    let patterns = patterns::all(grid, size).into_iter();
    let covered = patterns.filter(|(kind, _)| other.knows_late_readings || !matches!(kind, Kind::Faulty(_)));
    covered.map(|(_, polls)| (other.deviation)(grid, &polls)).fold(Deviation::default(), |all, one| Deviation {
        asked: all.asked + one.asked,
        over: all.over + one.over,
        under: all.under + one.under,
        early: all.early.max(one.early),
        late: all.late.max(one.late),
    })
}

fn judged(
    polls: &[Poll],
    mut take: impl FnMut(u64, u32) -> bool,
    mut model: impl FnMut(u64, u32, bool) -> bool,
) -> Deviation {
    let mut deviation = Deviation::default();
    for poll in polls {
        for _ in 0..poll.most {
            let is_admitted = take(poll.at, poll.cost);
            let should_be = model(poll.at, poll.cost, is_admitted);
            deviation.asked += 1;
            deviation.over += u64::from(is_admitted && !should_be);
            deviation.under += u64::from(should_be && !is_admitted);
            if !is_admitted {
                break;
            }
        }
    }
    deviation
}

fn window(grid: &Grid, polls: &[Poll], shards: usize) -> Deviation {
    let shards = shards.try_into().expect("not 0");
    let window = sharded_window_with(grid.rate(), shards, ManualClock::new(), CounterShard::new()).expect("a window");
    let (mut number, mut used) = (0, 0_u64);
    judged(
        polls,
        |now, cost| window.try_acquire_at(Nanos::new(now), cost.into()).is_ok(),
        |now, cost, is_admitted| {
            let named = (now / grid.period).max(number);
            let before = if named == number { used } else { 0 };
            if is_admitted {
                (number, used) = (named, before + u64::from(cost));
            }
            before + u64::from(cost) <= grid.tokens.into()
        },
    )
}

fn log(grid: &Grid, polls: &[Poll]) -> Deviation {
    let mut log = SlidingLog::new(grid.rate());
    let (mut taken, mut latest, mut held): (VecDeque<(u64, u64)>, _, _) = (VecDeque::new(), 0, 0_u64);
    judged(
        polls,
        |now, cost| log.try_acquire_at(Nanos::new(now), cost.into()).is_ok(),
        |now, cost, is_admitted| {
            // What was taken at the very beginning of an interval of this length is in it, and at its end no more.
            let now = now.max(latest);
            let aged: u64 = taken.iter().take_while(|(at, _)| at + grid.period <= now).map(|(_, cost)| cost).sum();
            let counted = held - aged;
            if is_admitted {
                while taken.front().is_some_and(|(at, _)| at + grid.period <= now) {
                    taken.pop_front();
                }
                taken.push_back((now, cost.into()));
                (latest, held) = (now, counted + u64::from(cost));
            }
            counted + u64::from(cost) <= grid.tokens.into()
        },
    )
}

fn leaky(grid: &Grid, polls: &[Poll]) -> Deviation {
    let pacing = Pacing::new(grid.rate(), grid.burst.into()).expect("a pacing");
    let bucket = LeakyBucket::with_clock(pacing, ManualClock::new());
    // Where the next slot begins, in nanoseconds times the tokens of a period.
    let (mut next, tokens) = (0_i128, i128::from(grid.tokens));
    let (mut early, mut late) = (0, 0);
    // As for the token bucket.
    let tolerance = if grid.has_common_unit() { 0 } else { tokens / 4 };
    let (period, queue) = (i128::from(grid.period), i128::from(grid.burst));
    let take = |now, cost: u32| -> Option<u64> {
        bucket.try_acquire_at(Nanos::new(now), cost.into()).ok().map(|departure| departure.at.as_u64())
    };
    let mut deviation = Deviation::default();
    for poll in polls {
        for _ in 0..poll.most {
            let now = i128::from(poll.at) * tokens;
            let ahead = next - now - queue * period;
            let sent = take(poll.at, poll.cost);
            deviation.asked += 1;
            deviation.over += u64::from(sent.is_some() && ahead > tolerance);
            deviation.under += u64::from(ahead <= -tolerance && sent.is_none());
            let Some(at) = sent else { break };
            let slot = next.max(now);
            next = slot + i128::from(poll.cost) * period;
            let ideal = slot.unsigned_abs().div_ceil(tokens.unsigned_abs());
            early = early.max(ideal.saturating_sub(at.into()));
            late = late.max(u128::from(at).saturating_sub(ideal));
        }
    }
    let nanos = |span: u128| u64::try_from(span).unwrap_or(u64::MAX);
    Deviation { early: nanos(early), late: nanos(late), ..deviation }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_keeps_its_law() {
        for other in &OTHERS {
            for grid in &GRIDS {
                let worst = worst(other, grid, 4);
                let Deviation { over, under, early, .. } = worst;
                assert_eq!((over, under, early), (0, 0, 0), "{} {}: {worst:?}", other.name, grid.text);
                assert!(worst.late <= 1, "{} {}: {worst:?}", other.name, grid.text);
            }
        }
    }
}
