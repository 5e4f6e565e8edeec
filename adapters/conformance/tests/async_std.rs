//! The suite on async-std's tasks and wake-ups, and its timer in real time.

use core::future::Future;
use core::time::Duration;

use parking_lot::RawMutex;
use sluicegate_async_std::{AsyncStdRuntime, Clock, Growing, Spawn, TokenBucket, quota};
use sluicegate_conformance::{Executor, VirtualTime, suite};

struct AsyncStd;

impl Executor for AsyncStd {
    type Runtime = VirtualTime;
    type Lock = RawMutex;
    type Room = Growing;
    const GRAIN: Duration = Duration::ZERO;

    fn run<C: Future<Output = ()> + Send + 'static>(case: impl FnOnce(VirtualTime) -> C) {
        VirtualTime::run(|task| AsyncStdRuntime.spawn(task), async_std::task::block_on, case);
    }
}

suite!(AsyncStd);

#[test]
fn the_timer_wakes_when_a_token_is_there() {
    async_std::task::block_on(async {
        let bucket = TokenBucket::of(quota!("100/1s burst 1"));
        let begin = bucket.acquire(1).await.unwrap().at;
        for turn in 1..=3 {
            let at = bucket.acquire(1).await.unwrap().at;
            assert!(at >= begin + Duration::from_millis(10) * turn && at <= AsyncStdRuntime.now());
        }
    });
}
