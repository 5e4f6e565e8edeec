//! Ticks of the RISC-V machine timer, where QEMU's `virt` has it.

use super::gap;

/// The interrupt that comes every few thousand instructions; `on_tick!` says what it does.
#[derive(Debug)]
pub struct Ticks;

impl Ticks {
    /// Starts it.
    pub fn start() {
        Self::rearm();
        // SAFETY: the handler exists, and the main program expects it to run at any instruction from here on.
        unsafe {
            riscv::register::mie::set_mtimer();
            riscv::interrupt::enable();
        }
    }

    /// Stops it.
    pub fn stop() {
        // SAFETY: masking an interrupt breaks nobody's assumptions.
        unsafe { riscv::register::mie::clear_mtimer() };
    }

    /// Lets the next one come another while from now.
    #[doc(hidden)]
    pub fn rearm() {
        // SAFETY: these are the timer's registers on this machine, and nothing else here uses them. The upper half of the
        // time stays 0 for seven minutes; it is compared from the first write on, so a tick may come early, but never not.
        unsafe {
            // A period of this timer is longer than one of a processor's clock.
            let next = TIME.read_volatile().wrapping_add(gap() / 8);
            COMPARE.add(1).write_volatile(0);
            COMPARE.write_volatile(next);
        }
    }
}

/// Makes `$handler` what each tick does.
#[macro_export]
macro_rules! on_tick {
    ($handler:path) => {
        #[$crate::machine::riscv_rt::core_interrupt($crate::machine::riscv::interrupt::Interrupt::MachineTimer)]
        fn machine_timer() {
            $handler();
            $crate::machine::Ticks::rearm();
        }
    };
}

const COMPARE: *mut u32 = 0x0200_4000 as *mut u32;
const TIME: *const u32 = 0x0200_bff8 as *const u32;
