//! A clock over a hardware timer that counts microseconds in 32 bits, and so starts over every 71 minutes.
//!
//! An interrupt counts the half turns: one when the counter passes 2^31, one when it starts over. The counter's top bit tells
//! which kind of half it is in, so a reader notices when an interrupt is due that has not run yet: because interrupts are
//! masked, because the reader is a handler of higher priority, or because it was interrupted between its two reads. The
//! interrupt may be late by up to half a turn. Nothing here needs compare-and-swap or a lock.
//!
//! The counter's register is a static here, so that this runs everywhere; on a chip it is one volatile read.
//!
//! ```sh
//! cargo run -p sluicegate-core --example hardware_timer
//! ```

use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use sluicegate_core::{Clock, Limit, Nanos, TokenBucket, quota};

static TIMER: Timer = Timer { half_turns: AtomicU32::new(0) };
static SENT: TokenBucket<&Timer> = TokenBucket::with_limit(Limit::Quota(quota!("2/1s")), &TIMER);

/// Microseconds since reset.
struct Timer {
    /// Written by the timer's interrupt only.
    half_turns: AtomicU32,
}

impl Clock for Timer {
    fn now(&self) -> Nanos {
        // This order: whatever happens after the first read makes the counter later, never earlier. Acquire keeps it.
        let counted = self.half_turns.load(Ordering::Acquire);
        let counter = COUNTER.load(Ordering::Relaxed);
        let is_due = counter >> 31 != counted & 1;
        let half_turns = u64::from(counted) + u64::from(is_due);
        let microseconds = (half_turns << 31) | u64::from(counter & 0x7fff_ffff);
        Nanos::new(microseconds.saturating_mul(1_000))
    }
}

impl Timer {
    /// What the interrupt does.
    fn on_half_turn(&self) {
        // A load and a store: nobody else writes. They order nothing else.
        let counted = self.half_turns.load(Ordering::Relaxed);
        self.half_turns.store(counted.wrapping_add(1), Ordering::Relaxed);
    }
}

/// Sends around the moment at which the counter starts over, before and after its interrupt has run.
pub(crate) fn run(out: &mut dyn fmt::Write) -> fmt::Result {
    COUNTER.store(0x8000_0000, Ordering::Relaxed);
    TIMER.on_half_turn();
    for (counter, interrupts) in [
        (u32::MAX - 500_000, 0),
        (u32::MAX, 0),
        // It started over, and the interrupt has not run.
        (0, 0),
        (499_998, 0),
        // It has.
        (499_999, 1),
        (500_000, 0),
        (0x8000_0000, 1),
    ] {
        COUNTER.store(counter, Ordering::Relaxed);
        for _ in 0..interrupts {
            TIMER.on_half_turn();
        }
        let now = TIMER.now();
        match SENT.try_acquire_at(now, 1) {
            Ok(admitted) => writeln!(out, "{now}: sent, {} left", admitted.remaining)?,
            Err(denied) => writeln!(out, "{now}: {denied}")?,
        }
    }
    Ok(())
}

#[cfg(not(target_os = "none"))]
fn main() -> fmt::Result {
    let mut text = String::new();
    run(&mut text)?;
    print!("{text}");
    Ok(())
}

/// Stands for the timer's counter register.
static COUNTER: AtomicU32 = AtomicU32::new(0);
