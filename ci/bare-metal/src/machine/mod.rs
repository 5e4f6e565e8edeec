//! What a program here needs from the machine it runs on: where it starts, where its text goes, how it ends.

#[cfg(all(target_os = "none", target_arch = "arm"))]
#[doc(hidden)]
pub use cortex_m_rt;
#[cfg(all(target_os = "none", target_arch = "riscv32"))]
#[doc(hidden)]
pub use {riscv, riscv_rt};

#[cfg(target_os = "none")]
mod bare;
#[cfg(not(target_os = "none"))]
mod host;
#[cfg(target_os = "none")]
#[cfg_attr(target_arch = "arm", path = "ticks_arm.rs")]
#[cfg_attr(target_arch = "riscv32", path = "ticks_riscv.rs")]
mod ticks;

#[cfg(target_os = "none")]
pub use bare::finish;
#[cfg(not(target_os = "none"))]
pub use host::finish;
#[cfg(target_os = "none")]
pub use ticks::Ticks;

/// Makes `$main`, a function that writes text and tells whether all went well, the program.
#[macro_export]
macro_rules! program {
    ($main:path) => {
        #[cfg(not(target_os = "none"))]
        fn main() {
            $crate::machine::finish($main);
        }

        #[cfg(all(target_os = "none", target_arch = "arm"))]
        #[$crate::machine::cortex_m_rt::entry]
        fn start() -> ! {
            $crate::machine::finish($main)
        }

        #[cfg(all(target_os = "none", target_arch = "riscv32"))]
        #[$crate::machine::riscv_rt::entry]
        fn start() -> ! {
            $crate::machine::finish($main)
        }
    };
}

/// Makes a program that calls `$work` for ever and prints nothing: to be measured, not to be run.
#[macro_export]
macro_rules! forever {
    ($work:path) => {
        #[cfg_attr(target_arch = "arm", $crate::machine::cortex_m_rt::entry)]
        #[cfg_attr(target_arch = "riscv32", $crate::machine::riscv_rt::entry)]
        fn start() -> ! {
            loop {
                $work();
            }
        }
    };
}

/// How long until the next tick, in periods of the timer: another number each time, so that ticks come everywhere.
#[cfg(target_os = "none")]
fn gap() -> u32 {
    use core::sync::atomic::{AtomicU32, Ordering};

    static LAST: AtomicU32 = AtomicU32::new(1);
    // A linear congruential generator (Numerical Recipes), of which the high bits are good enough here. One caller at a time.
    let next = LAST.load(Ordering::Relaxed).wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    LAST.store(next, Ordering::Relaxed);
    // Some are shorter than a decision. Most must not be: it starts again when a tick took from the same limiter.
    200 + (next >> 19)
}
