//! Readings that no clock should give harm nobody.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Waker};
use core::time::Duration;

use sluicegate_async_std::{AsyncStdRuntime, Clock, Nanos, OsClock, Runtime};

#[test]
fn does_not_panic_on_bad_readings() {
    let mut sleep = pin!(AsyncStdRuntime.sleep_until(Nanos::new(u64::MAX)));
    assert!(sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    wait(AsyncStdRuntime.sleep_until(Nanos::ZERO));
}

#[test]
fn it_reads_the_operating_systems_clock() {
    let before = OsClock.now();
    let now = AsyncStdRuntime.now();
    assert!(before <= now && now <= OsClock.now());
    let due = now + Duration::from_millis(5);
    wait(AsyncStdRuntime.sleep_until(due));
    assert!(AsyncStdRuntime.now() >= due);
}

fn wait(sleep: <AsyncStdRuntime as Runtime>::Sleep) {
    async_std::task::block_on(sleep);
}
