//! A concurrency limit: permits of several costs, released in any order, under a limit that changes.

use core::fmt;

use sluicegate_core::{ConcurrencyLimit, Outcome, Permit};

use crate::Random;

/// Takes, releases, drops and changes of the limit.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    let limit = ConcurrencyLimit::new(6);
    let mut permits: [Option<Permit<&ConcurrencyLimit>>; 4] = [const { None }; 4];
    let mut random = Random::new(5);
    for _ in 0..120 {
        let place = random.below(4) as usize;
        match (permits[place].take(), random.below(6)) {
            (permit, 0) => {
                permits[place] = permit;
                let changed = random.below(9) as u32;
                writeln!(out, "limit {changed}: {:?}", limit.set_limit(changed))?;
            }
            (Some(permit), _) => {
                let (cost, outcome) = (permit.cost(), random.one_of(&[Outcome::Success, Outcome::Ignored]));
                if random.below(3) == 0 {
                    drop(permit);
                } else {
                    permit.release(outcome);
                }
                writeln!(out, "back {cost}: {:?}", limit.usage())?;
            }
            (None, _) => {
                let cost = random.one_of(&[1, 1, 2, 3, 0, 10]);
                match limit.try_acquire(cost) {
                    Ok(permit) => permits[place] = Some(permit),
                    Err(denied) => writeln!(out, "take {cost}: {denied:?}")?,
                }
                writeln!(out, "take {cost}: {:?}", limit.inspect())?;
            }
        }
    }
    Ok(())
}
