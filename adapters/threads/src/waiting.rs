//! Waiting for another thread for a very short time.

use core::hint;
use std::thread;

/// Lets another thread run: hints the processor at first, longer each time, then yields to the operating system.
///
/// A holder needs some tens of instructions, so it is usually done while this spins. If the system has suspended it, no
/// spinning helps, and with more threads than cores it would keep the holder from running.
#[inline]
pub(crate) fn give_way(attempt: u32) {
    if attempt < SPINNING_ATTEMPTS {
        for _ in 0..1_u32 << attempt {
            hint::spin_loop();
        }
    } else {
        thread::yield_now();
    }
}

/// 1 + 2 + … + 32 hints, of 10 to 140 cycles each: about as long as a switch to another thread takes.
const SPINNING_ATTEMPTS: u32 = 6;
