//! The suite on the executor of `sluicegate-runtime`'s example, which is written by hand.

extern crate alloc;

use alloc::sync::Arc;
use core::future::Future;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use parking_lot::RawMutex;
use sluicegate_conformance::{Executor, suite};
use sluicegate_runtime::{Growing, Spawn};

#[allow(dead_code, reason = "the example's own program is not run here")]
#[path = "../../runtime/examples/custom_runtime.rs"]
mod custom_runtime;

use custom_runtime::Tiny;

struct Custom;

impl Executor for Custom {
    type Runtime = Tiny;
    type Lock = RawMutex;
    type Room = Growing;
    const GRAIN: Duration = Duration::ZERO;

    fn run<C: Future<Output = ()> + Send + 'static>(case: impl FnOnce(Tiny) -> C) {
        let tiny = Tiny::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let case = case(tiny.clone());
        tiny.spawn({
            let is_over = Arc::clone(&is_over);
            async move {
                case.await;
                is_over.store(true, Ordering::Relaxed);
            }
        });
        tiny.run();
        assert!(is_over.load(Ordering::Relaxed), "everybody waits, and nothing is going to happen");
    }
}

suite!(Custom);
