//! The suite on tokio's tasks and wake-ups over several threads, and its timer in real time.

use core::future::Future;
use core::time::Duration;

use parking_lot::RawMutex;
use sluicegate_conformance::{Executor, VirtualTime, suite};
use sluicegate_tokio::{Clock, Growing, Spawn, TokenBucket, TokioRuntime, quota};
use tokio::runtime::{Builder, Runtime};

struct Tokio;

fn tokio() -> Runtime {
    Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap()
}

impl Executor for Tokio {
    type Runtime = VirtualTime;
    type Lock = RawMutex;
    type Room = Growing;
    const GRAIN: Duration = Duration::ZERO;

    fn run<C: Future<Output = ()> + Send + 'static>(case: impl FnOnce(VirtualTime) -> C) {
        VirtualTime::run(|task| TokioRuntime.spawn(task), |case| tokio().block_on(case), case);
    }
}

suite!(Tokio);

#[test]
fn the_timer_wakes_when_a_token_is_there() {
    tokio().block_on(async {
        let bucket = TokenBucket::of(quota!("100/1s burst 1"));
        let begin = bucket.acquire(1).await.unwrap().at;
        for turn in 1..=3 {
            let at = bucket.acquire(1).await.unwrap().at;
            assert!(at >= begin + Duration::from_millis(10) * turn && at <= TokioRuntime.now());
        }
    });
}
