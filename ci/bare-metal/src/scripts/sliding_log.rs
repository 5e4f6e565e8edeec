//! Sliding logs of a fixed capacity: equal readings, refunds and late readings.

use core::fmt;

use sluicegate_core::{FixedSlidingLog, Nanos, Rate};

use crate::{Random, decision};

/// Every limit at readings of about a tenth of its window apart, and one that does not fit.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for text in ["3/1s", "16/1m", "7/3s", "1/30d", "17/1s"] {
        let rate: Rate = text.parse().map_err(|_| fmt::Error)?;
        match FixedSlidingLog::<16>::with_array(rate) {
            Ok(log) => drive(out, log)?,
            Err(error) => writeln!(out, "-- {text}: {error}")?,
        }
    }
    Ok(())
}

fn drive(out: &mut dyn fmt::Write, mut log: FixedSlidingLog<16>) -> fmt::Result {
    let (tokens, width) = (log.rate().tokens(), log.rate().period_nanos());
    writeln!(out, "-- {}", log.rate())?;
    let mut random = Random::new(tokens);
    let mut now = width;
    for _ in 0..60 {
        let pause = random.below(width / 5);
        now += random.one_of(&[0, 0, 1, pause, width / 10]);
        let late = if random.below(8) == 0 { width / 2 } else { 0 };
        let cost = random.one_of(&[1, 1, 2, 0, tokens / 2, tokens, tokens + 1]);
        let answer = log.try_acquire_at(Nanos::new(now - late), cost);
        decision(out, format_args!("{now} less {late} {cost}"), &answer)?;
        if let (Ok(admitted), 0) = (answer, random.below(5)) {
            log.refund(admitted.at, cost);
            writeln!(out, "refund: {:?}, {} records", log.inspect_at(Nanos::new(now)), log.records())?;
        }
    }
    Ok(())
}
