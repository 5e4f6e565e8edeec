//! What a program here needs from the machine it runs on: where it starts, where its text goes, how it ends.

#[cfg(all(target_os = "none", target_arch = "arm"))]
#[doc(hidden)]
pub use cortex_m_rt;
#[cfg(all(target_os = "none", target_arch = "riscv32"))]
#[doc(hidden)]
pub use riscv_rt;

#[cfg(target_os = "none")]
mod bare;
#[cfg(not(target_os = "none"))]
mod host;

#[cfg(target_os = "none")]
pub use bare::finish;
#[cfg(not(target_os = "none"))]
pub use host::finish;

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
