//! Leaky buckets: departures, their cancellation, slack and a queue that fills.

use core::fmt;
use core::time::Duration;

use sluicegate_core::{LeakyBucket, ManualClock, Nanos, Pacing, Rate};

use crate::Random;

/// Every rate with a short queue and with some slack.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for text in ["7/3s", "100/1s", "999999937/1s", "1/30d"] {
        let rate: Rate = text.parse().map_err(|_| fmt::Error)?;
        for slack in [0, 3] {
            let pacing = Pacing::new(rate, 5).and_then(|pacing| pacing.with_slack(slack)).map_err(|_| fmt::Error)?;
            writeln!(out, "-- {pacing:?}")?;
            drive(out, pacing)?;
        }
    }
    Ok(())
}

fn drive(out: &mut dyn fmt::Write, pacing: Pacing) -> fmt::Result {
    let bucket = LeakyBucket::with_clock(pacing, ManualClock::at(Nanos::from_secs(1_000_003)));
    let token = (pacing.rate().period_nanos() / pacing.rate().tokens()).max(1);
    let mut random = Random::new(token);
    for _ in 0..40 {
        bucket.clock().advance(Duration::from_nanos(random.below(token.saturating_mul(3))));
        let cost = random.one_of(&[0, 1, 1, 1, 2, 5, 9]);
        match bucket.try_acquire(cost) {
            Ok(departure) if random.below(4) == 0 => {
                let was_cancelled = bucket.cancel(departure).is_ok();
                writeln!(out, "cancel {cost}: {was_cancelled}, {:?}", bucket.inspect())?;
            }
            Ok(departure) => writeln!(out, "{cost}: leaves after {}", departure.delay.as_nanos())?,
            Err(denied) => writeln!(out, "{cost}: {denied:?}")?,
        }
    }
    writeln!(out, "state {}", bucket.state().to_bits())
}
