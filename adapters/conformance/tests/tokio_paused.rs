//! The suite on tokio's current-thread runtime in paused time: its own clock, timer, tasks and wake-ups.

use core::future::Future;
use core::time::Duration;

use parking_lot::RawMutex;
use sluicegate_conformance::{Executor, suite};
use sluicegate_tokio::{Growing, TokioRuntime};
use tokio::runtime::Builder;

struct Paused;

impl Executor for Paused {
    type Runtime = TokioRuntime;
    type Lock = RawMutex;
    type Room = Growing;
    const GRAIN: Duration = Duration::from_millis(1);

    fn run<C: Future<Output = ()> + Send + 'static>(case: impl FnOnce(TokioRuntime) -> C) {
        let tokio = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        tokio.block_on(async {
            let case = tokio::time::timeout(Duration::from_secs(400 * 86_400), case(TokioRuntime));
            case.await.expect("everybody waits, and nothing is going to happen");
        });
    }
}

suite!(Paused);
