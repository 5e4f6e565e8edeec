//! Ticks of the Cortex-M system timer.

use cortex_m::Peripherals;
use cortex_m::peripheral::syst::SystClkSource;

use super::gap;

/// The interrupt that comes every few thousand instructions; `on_tick!` says what it does.
#[derive(Debug)]
pub struct Ticks;

impl Ticks {
    /// Starts it.
    pub fn start() {
        let mut timer = timer();
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(gap());
        timer.clear_current();
        timer.enable_interrupt();
        timer.enable_counter();
    }

    /// Stops it.
    pub fn stop() {
        let mut timer = timer();
        timer.disable_interrupt();
        timer.disable_counter();
    }

    /// Lets the next one come another while from now.
    #[doc(hidden)]
    pub fn rearm() {
        let mut timer = timer();
        timer.set_reload(gap());
        timer.clear_current();
    }
}

fn timer() -> cortex_m::peripheral::SYST {
    // SAFETY: nothing else here uses the system timer, and each access is one write of a register of its own.
    unsafe { Peripherals::steal() }.SYST
}

/// Makes `$handler` what each tick does.
#[macro_export]
macro_rules! on_tick {
    ($handler:path) => {
        #[$crate::machine::cortex_m_rt::exception]
        fn SysTick() {
            $handler();
            $crate::machine::Ticks::rearm();
        }
    };
}
