//! The suite on smol's tasks and wake-ups, and its timer in real time.

use core::future::Future;
use core::time::Duration;

use parking_lot::RawMutex;
use sluicegate_conformance::{Executor, VirtualTime, suite};
use sluicegate_smol::{Clock, Growing, SmolRuntime, Spawn, TokenBucket, quota};

struct Smol;

impl Executor for Smol {
    type Runtime = VirtualTime;
    type Lock = RawMutex;
    type Room = Growing;
    const GRAIN: Duration = Duration::ZERO;

    fn run<C: Future<Output = ()> + Send + 'static>(case: impl FnOnce(VirtualTime) -> C) {
        VirtualTime::run(|task| SmolRuntime.spawn(task), smol::block_on, case);
    }
}

suite!(Smol);

#[test]
fn the_timer_wakes_when_a_token_is_there() {
    smol::block_on(async {
        let bucket = TokenBucket::of(quota!("100/1s burst 1"));
        let begin = bucket.acquire(1).await.unwrap().at;
        for turn in 1..=3 {
            let at = bucket.acquire(1).await.unwrap().at;
            assert!(at >= begin + Duration::from_millis(10) * turn && at <= SmolRuntime.now());
        }
    });
}
