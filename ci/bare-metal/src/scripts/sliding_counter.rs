//! Sliding counters: two windows in one word, with refunds and late readings.

use core::fmt;

use sluicegate_core::{ManualClock, Nanos, SlidingCounter, WindowLimit};

use crate::{Random, decision};

/// Every limit at readings of about a tenth of its window apart.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for text in ["10/1s", "7/3s", "1000/1m", "1/1d"] {
        let limit = WindowLimit::parse(text).map_err(|_| fmt::Error)?;
        let counter = SlidingCounter::with_clock(limit, ManualClock::new()).map_err(|_| fmt::Error)?;
        let (tokens, width) = limit.step().map_or((1, 1), |step| (step.rate().tokens(), step.rate().period_nanos()));
        let mut random = Random::new(tokens);
        let mut now = 5 * width;
        writeln!(out, "-- {text}")?;
        for _ in 0..60 {
            now += random.below(width / 5);
            let late = if random.below(8) == 0 { width } else { 0 };
            let cost = random.one_of(&[1, 1, 2, 0, tokens / 3, tokens, tokens + 1]);
            let answer = counter.try_acquire_at(Nanos::new(now - late), cost);
            decision(out, format_args!("{now} less {late} {cost}"), &answer)?;
            if let (Ok(admitted), 0) = (answer, random.below(5)) {
                counter.refund(admitted.at, cost);
                writeln!(out, "refund: {:?}", counter.inspect_at(Nanos::new(now)))?;
            }
        }
        writeln!(out, "state {}", counter.state().to_bits())?;
    }
    Ok(())
}
