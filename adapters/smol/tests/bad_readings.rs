//! Readings that no clock should give harm nobody.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Waker};
use core::time::Duration;

use sluicegate_smol::{Clock, Nanos, OsClock, Runtime, SmolRuntime};

#[test]
fn does_not_panic_on_bad_readings() {
    let mut sleep = pin!(SmolRuntime.sleep_until(Nanos::new(u64::MAX)));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    wait(SmolRuntime.sleep_until(Nanos::ZERO));
}

#[test]
fn it_reads_the_operating_systems_clock() {
    let before = OsClock.now();
    let now = SmolRuntime.now();
    assert!(before <= now && now <= OsClock.now());
    let due = now + Duration::from_millis(5);
    wait(SmolRuntime.sleep_until(due));
    assert!(SmolRuntime.now() >= due);
}

fn wait(sleep: <SmolRuntime as Runtime>::Sleep) {
    smol::block_on(sleep);
}
