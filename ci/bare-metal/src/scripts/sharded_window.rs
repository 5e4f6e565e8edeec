//! Sharded windows: uneven load, costs over several shards, refunds, late readings.

use core::cell::Cell;
use core::fmt;
use core::time::Duration;

use sluicegate_core::{ManualClock, Nanos, Shard, ShardId, ShardedWindow, WindowLimit};

use crate::{Random, decision};

/// Every limit over 1, 2, 3 and 8 shards.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for text in ["10/1s", "1/1ms", "7/3s", "1000003/1m", "5/1ns", "deny", "off"] {
        let Ok(limit) = WindowLimit::parse(text) else {
            return Err(fmt::Error);
        };
        drive::<1>(out, limit)?;
        drive::<2>(out, limit)?;
        drive::<3>(out, limit)?;
        drive::<8>(out, limit)?;
    }
    Ok(())
}

fn drive<const N: usize>(out: &mut dyn fmt::Write, limit: WindowLimit) -> fmt::Result {
    let window: ShardedWindow<[Shard; N], _, _> =
        ShardedWindow::with_array(limit, ManualClock::at(Nanos::from_secs(1_000_000)), Chosen(Cell::new(0)));
    write!(out, "-- {limit} over {N}:")?;
    for cap in window.caps() {
        write!(out, " {cap}")?;
    }
    writeln!(out)?;

    let (tokens, width) = limit.step().map_or((1, 1), |step| (step.rate().tokens(), step.rate().period_nanos()));
    let mut random = Random::new(tokens + N as u64);
    let mut taken_at = Nanos::ZERO;
    for _ in 0..40 {
        window.clock().advance(Duration::from_nanos(random.below(width / 4 + 1)));
        window.shard_id().0.set(random.below(N as u64 + 1) as usize);
        let cost = random.one_of(&[1, 1, 1, 2, 0, tokens, tokens / 2, tokens / N as u64 + 1, tokens + 1]);
        match random.below(8) {
            0 => {
                window.refund(taken_at, cost);
                writeln!(out, "refund {cost} of {}: {:?}", taken_at.as_u64(), window.inspect())?;
            }
            1 => decision(out, format_args!("peek {cost}"), &window.peek(cost))?,
            2 => {
                let late = sluicegate_core::Clock::now(window.clock()) - Duration::from_nanos(width);
                decision(out, format_args!("late {cost}"), &window.try_acquire_at(late, cost))?;
            }
            _ => {
                let answer = window.try_acquire(cost);
                decision(out, format_args!("take {cost}"), &answer)?;
                taken_at = answer.map_or(taken_at, |admitted| admitted.at);
            }
        }
    }
    Ok(())
}

/// The shard that the script has chosen.
struct Chosen(Cell<usize>);

impl ShardId for Chosen {
    fn shard(&self) -> usize {
        self.0.get()
    }
}
