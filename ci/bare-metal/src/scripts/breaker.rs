//! A circuit breaker: every way to trip, probes, late results, and a clock that leaps and steps back.

use core::fmt;
use core::time::Duration;

use sluicegate_core::{BreakerOptions, BreakerState, Call, CallOutcome, Nanos, Share};

use crate::Random;

/// By failures in a row, by shares of failures and of slow calls.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    let share = |percent| Share::percent(percent).map_err(|_| fmt::Error);
    let options = BreakerOptions::new().window(Duration::from_secs(3)).probes(2);
    let slow = Duration::from_millis(700);
    for options in [
        options.any_failure_share().consecutive_failures(3),
        options.failure_share(share(40)?).minimum_calls(5),
        options.any_failure_share().slow_calls(slow, share(30)?).minimum_calls(4),
    ] {
        let mut state = BreakerState::new(options.build().map_err(|_| fmt::Error)?);
        drive(out, &mut state)?;
    }
    Ok(())
}

fn drive(out: &mut dyn fmt::Write, state: &mut BreakerState) -> fmt::Result {
    let mut out_there: [Option<Call>; 4] = [const { None }; 4];
    let mut random = Random::new(11);
    let mut now = 1_000_000_000_u64;
    for turn in 0..120 {
        now = match random.below(40) {
            0 => now / 2,
            1 => now.saturating_add(100_000_000_000),
            _ => now.saturating_add(random.below(400_000_000)),
        };
        let at = Nanos::new(now);
        let place = random.below(4) as usize;
        match out_there[place].take() {
            Some(call) if random.below(7) == 0 => {
                state.forget(call);
            }
            Some(call) => {
                let outcomes = [CallOutcome::Success, CallOutcome::Success, CallOutcome::Failure, CallOutcome::Overloaded];
                state.settle(at, call, random.one_of(&outcomes));
            }
            None => match state.try_call(at) {
                Ok(call) => out_there[place] = Some(call),
                Err(denied) => writeln!(out, "{turn}: {denied:?}")?,
            },
        }
        writeln!(out, "{turn}: {:?} after {} trips", state.phase(), state.trips())?;
    }
    Ok(())
}
