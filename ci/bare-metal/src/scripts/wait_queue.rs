//! A wait queue of a fixed capacity before a bucket: order, deadlines, cancellation, and when to wake.

use core::fmt;

use sluicegate_core::{ManualClock, Nanos, Ticket, TokenBucket, WaitQueue, Waiting, quota};

use crate::Random;

/// Waiters come, leave and are served, at readings about two tokens apart.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    let bucket = TokenBucket::with_clock(quota!("7/3s"), ManualClock::new());
    let mut queue = WaitQueue::<heapless::Vec<Waiting<u32>, 8>>::fixed();
    let mut random = Random::new(11);
    let mut now = Nanos::ZERO;
    let mut last: Option<Ticket> = None;
    for number in 0..120 {
        now = now + core::time::Duration::from_nanos(random.below(800_000_000));
        match random.below(6) {
            0 => {
                let left = last.take().and_then(|ticket| queue.cancel(ticket));
                writeln!(out, "cancelled {left:?}, {} wait for {}", queue.len(), queue.waiting_cost())?;
            }
            1 | 2 => {
                let mut result = Ok(());
                queue.grant_at(now, &bucket, |served| {
                    result = result.and(writeln!(out, "{now}: {} {:?}", served.payload, served.verdict));
                });
                result?;
            }
            _ => {
                let deadline = now + core::time::Duration::from_nanos(random.below(4_000_000_000));
                let cost = random.one_of(&[1, 1, 2, 7, 8]);
                match queue.push(cost, (random.below(2) == 0).then_some(deadline), number) {
                    Ok(ticket) => last = Some(ticket),
                    Err(full) => writeln!(out, "{full}: {}", full.0)?,
                }
            }
        }
        let wake = queue.next_wake_at(now, &bucket).map(Nanos::as_u64);
        writeln!(out, "{now}: {} wait, wake at {wake:?}, deadline {:?}", queue.len(), queue.next_deadline())?;
    }
    Ok(())
}
