//! From readings to ticks and back.

use critical_section as _;
use embassy_time::{MockDriver, TICK_HZ};
use sluicegate_embassy::{Nanos, nanos_of_ticks, ticks_of_nanos};

#[test]
fn a_sleep_ends_at_the_first_tick_that_is_not_too_early() {
    // This program has a clock, too, or it would not link.
    MockDriver::get().reset();
    let mut at = 1_u64;
    for step in 0..100_000_u64 {
        // All magnitudes, and both sides of each tick.
        at = if step % 3 == 0 {
            at.rotate_left(7) ^ step.wrapping_mul(0x9E37_79B9_7F4A_7C15)
        } else {
            at.saturating_add(1)
        };
        let reading = Nanos::new(at >> (step % 61));
        let tick = ticks_of_nanos(reading);
        assert!(nanos_of_ticks(tick) >= reading, "{reading:?} is after its tick");
        assert!(tick == 0 || nanos_of_ticks(tick - 1) < reading, "an earlier tick would do for {reading:?}");
    }
}

#[test]
fn what_no_reading_can_tell_is_the_last_one() {
    assert_eq!(nanos_of_ticks(u64::MAX), Nanos::MAX);
    assert_eq!(nanos_of_ticks(0), Nanos::ZERO);
    assert_eq!(ticks_of_nanos(Nanos::ZERO), 0);
    assert!(u128::from(ticks_of_nanos(Nanos::MAX)) * 1_000_000_000 >= u128::from(u64::MAX) * u128::from(TICK_HZ));
}
