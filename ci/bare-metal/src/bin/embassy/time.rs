//! embassy's clock and timer, over the system timer of a Cortex-M: it interrupts at each tick.

use core::cell::RefCell;
use core::task::Waker;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use critical_section::{CriticalSection, Mutex};
use embassy_time_driver::{Driver, time_driver_impl};
use embassy_time_queue_utils::Queue;
use sluicegate_bare_metal::machine::cortex_m_rt;

time_driver_impl!(static DRIVER: SystemTimer = SystemTimer(Mutex::new(RefCell::new(State {
    ticks: 0,
    next: u64::MAX,
    sleepers: Queue::new(),
}))));

/// Lets time pass.
pub(crate) fn start(mut timer: SYST) {
    timer.set_clock_source(SystClkSource::Core);
    timer.set_reload(CYCLES - 1);
    timer.clear_current();
    timer.enable_interrupt();
    timer.enable_counter();
}

struct SystemTimer(Mutex<RefCell<State>>);

struct State {
    ticks: u64,
    /// The tick at which somebody is to be woken.
    next: u64,
    sleepers: Queue,
}

impl SystemTimer {
    fn with<T>(&self, action: impl FnOnce(&mut State) -> T) -> T {
        critical_section::with(|section: CriticalSection<'_>| action(&mut self.0.borrow_ref_mut(section)))
    }
}

impl Driver for SystemTimer {
    fn now(&self) -> u64 {
        self.with(|state| state.ticks)
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        self.with(|state| {
            if state.sleepers.schedule_wake(at, waker) {
                state.next = state.sleepers.next_expiration(state.ticks);
            }
        });
    }
}

#[cortex_m_rt::exception]
fn SysTick() {
    DRIVER.with(|state| {
        state.ticks += 1;
        if state.ticks >= state.next {
            state.next = state.sleepers.next_expiration(state.ticks);
        }
    });
}

/// Processor cycles from tick to tick: some ten thousand instructions, so that whoever is woken is done long before the next.
const CYCLES: u32 = 24_414;
