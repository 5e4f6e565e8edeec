//! One bucket in a `static`: a device may send three alarms at once, and one more every 20 seconds.
//!
//! No allocator and no operating system are needed, and nothing has to be set up: the compiler checks the quota and lays
//! out the bucket. Any number of tasks, cores and interrupt handlers may use it; each decision is one atomic step.
//!
//! Here the uptime is set by hand, so that the output is the same everywhere. `hardware_timer.rs` shows a clock over a timer.
//!
//! ```sh
//! cargo run -p sluicegate-core --example bucket_in_a_static
//! ```

use core::fmt;

use sluicegate_core::{Denied, Limit, ManualClock, Nanos, TokenBucket, quota};

static UPTIME: ManualClock = ManualClock::new();
static ALARMS: TokenBucket<&ManualClock> = TokenBucket::with_limit(Limit::Quota(quota!("3/1m")), &UPTIME);

/// Raises alarms at some seconds of uptime and writes what became of them.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    for second in [0, 1, 2, 3, 19, 20, 21, 60] {
        UPTIME.set(Nanos::from_secs(second));
        match ALARMS.try_acquire(1) {
            Ok(admitted) => writeln!(out, "{second:>2} s: sent, {} more at once", admitted.remaining)?,
            Err(Denied::RateLimited { retry_after }) => {
                writeln!(out, "{second:>2} s: held back, the next one in {} s", retry_after.as_secs())?;
            }
            // A cost of 1 is never more than this bucket holds.
            Err(never) => writeln!(out, "{second:>2} s: {never}")?,
        }
    }

    // The radio was switched off before the last alarm went out, so its token goes back.
    ALARMS.refund(1);
    writeln!(out, "given back, {} at once", ALARMS.inspect().level)
}

#[cfg(not(target_os = "none"))]
fn main() -> fmt::Result {
    let mut text = String::new();
    run(&mut text)?;
    print!("{text}");
    Ok(())
}
