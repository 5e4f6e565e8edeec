//! The core's decisions, printed: the same scripts on a microcontroller and on the host.
//!
//! A script drives one algorithm with a fixed sequence of calls and writes every answer. [`run`] runs all of them.
//! `ci/bare-metal.sh` compares what they print on each emulated target with what they print on the host, byte for byte.
//!
//! An algorithm is added by a file in `src/scripts` and a line in the list below.

#![cfg_attr(target_os = "none", no_std)]
#![warn(missing_docs)]

pub mod machine;
mod random;
mod write;

use core::fmt;

pub use random::Random;
pub use write::decision;

/// Declares the scripts' modules and [`run`], which runs them in this order.
macro_rules! scripts {
    ($($(#[$condition:meta])* $path:literal $name:ident)+) => {
        $(
            // In an example `main` is for the host only, and not called from here.
            $(#[$condition])*
            #[path = $path]
            #[allow(dead_code)]
            mod $name;
        )+

        /// Runs every script and writes all that they decide.
        ///
        /// # Errors
        /// Only those of `out`.
        pub fn run(out: &mut dyn fmt::Write) -> fmt::Result {
            $(
                $(#[$condition])*
                {
                    writeln!(out, "== {}", stringify!($name))?;
                    $name::run(out)?;
                }
            )+
            Ok(())
        }
    };
}

scripts! {
    "../../../core/examples/bucket_in_a_static.rs" bucket_in_a_static
    "../../../core/examples/window_for_two_cores.rs" window_for_two_cores
    "../../../core/examples/hardware_timer.rs" hardware_timer
    "scripts/token_bucket.rs" token_bucket
    "scripts/sharded_window.rs" sharded_window
    "scripts/pure_steps.rs" pure_steps
    "scripts/hostile_clock.rs" hostile_clock
    "scripts/texts.rs" texts
    "scripts/adjustable_bucket.rs" adjustable_bucket
    "scripts/hierarchy.rs" hierarchy
    "scripts/leaky_bucket.rs" leaky_bucket
    "scripts/sliding_counter.rs" sliding_counter
    "scripts/concurrency_limit.rs" concurrency_limit
    "scripts/breaker.rs" breaker
    "scripts/adaptive.rs" adaptive
    "scripts/keyed_store.rs" keyed_store
    #[cfg(feature = "heapless")]
    "scripts/sliding_log.rs" sliding_log
    #[cfg(feature = "heapless")]
    "scripts/wait_queue.rs" wait_queue
}
