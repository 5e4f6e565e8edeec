//! What waiting for a limiter costs where nobody has to: on tokio, on one thread.

use alloc::sync::Arc;
use core::hint::black_box;
use core::time::Duration;

use governor::{Quota, RateLimiter};
use parking_lot::RawMutex;
use sluicegate_threads::sluicegate_core::TokenBucket as CoreBucket;
use sluicegate_threads::{CoarseClock, TscClock};
use sluicegate_tokio::{Clock, Growing, Queued, TokioRuntime, WaitOptions, WithClock, quota};
use tokio::runtime::Runtime;

use crate::interleaved::{Contestant, Effort};
use crate::rival;
use crate::single_step::Heat;

type Ours<R> = Queued<CoreBucket<()>, R, RawMutex, Growing>;

const GOVERNOR: &str = "governor `until_ready`, which keeps no order";
const FAIR: &str = "leaky-bucket, fair";
const UNFAIR: &str = "leaky-bucket, unfair";
const OURS: &str = "`acquire`, `TscClock`";
const OURS_ANSWER: &str = "`acquire`, `TscClock`, answer";
const READING: &str = "a reading of `TscClock` alone";
const OURS_COARSE: &str = "`acquire`, `CoarseClock` of 1 ms";
const OURS_TOKIO: &str = "`acquire`, tokio's clock";

/// Tables.
pub fn heats() -> Vec<(Effort, fn() -> Heat)> {
    let effort = Effort { rounds: 501, calls: 6_400 };
    vec![
        (effort, || one_after_another(GOVERNOR)),
        (effort, || one_after_another(FAIR)),
        (effort, || one_after_another(UNFAIR)),
        (effort, many_tasks),
    ]
}

fn one_after_another(baseline: &'static str) -> Heat {
    let (title, targets): (_, &[_]) = match baseline {
        GOVERNOR => ("One task, beside governor", &[(OURS, 1.0)]),
        FAIR => ("One task, beside leaky-bucket's fair mode", &[(OURS, 0.35)]),
        _ => ("One task, beside leaky-bucket's unfair mode", &[(OURS_COARSE, 0.8)]),
    };
    Heat {
        title,
        note: "A task takes one token after another, all of which are there. `answer` hands on the whole result, with the number of tokens that \
               remain; the others ask only whether the task may go on, which is all that governor and leaky-bucket tell. governor reads the counter that `TscClock` reads; \
               leaky-bucket reads tokio's in its fair mode, and none in the other while there is a balance.",
        baseline,
        targets,
        contestants: contestants(1),
    }
}

fn many_tasks() -> Heat {
    Heat {
        title: "64 tasks, beside leaky-bucket",
        note: "Started together on one thread, each takes its share of the tokens, one after another; the starting of the tasks \
               is included.",
        baseline: FAIR,
        targets: &[(OURS, 0.6)],
        contestants: contestants(64),
    }
}

/// A loop over `$call`, which is compiled into it, in one task or in many.
macro_rules! contestant {
    ($name:expr, $tasks:expr, $limiter:expr, |$each:ident| $call:expr) => {{
        let (tasks, limiter, executor) = ($tasks, Arc::new($limiter), executor());
        Contestant::of_turns($name, move |calls| {
            executor.block_on(async {
                if tasks == 1 {
                    let $each = &*limiter;
                    for _ in 0..calls {
                        let _ = black_box($call);
                    }
                    return;
                }
                let start = |_| {
                    let limiter = Arc::clone(&limiter);
                    tokio::spawn(async move {
                        let $each = &*limiter;
                        for _ in 0..calls / tasks {
                            let _ = black_box($call);
                        }
                    })
                };
                let tasks: Vec<_> = (0..tasks).map(start).collect();
                for task in tasks {
                    task.await.expect("it does not panic");
                }
            });
        })
    }};
}

fn contestants(tasks: u64) -> Vec<Contestant<'static>> {
    let coarse = CoarseClock::new(Duration::from_millis(1)).expect("an interval within range, and a thread");
    let quota = Quota::with_period(Duration::from_secs(10)).expect("not 0").allow_burst(rival::count(500_000_000));
    let tsc = || WithClock::new(TscClock::new(), TokioRuntime);
    vec![
        contestant!(GOVERNOR, tasks, RateLimiter::direct(quota), |limiter| limiter.until_ready().await),
        contestant!(FAIR, tasks, leaky(true), |limiter| limiter.acquire_one().await),
        contestant!(UNFAIR, tasks, leaky(false), |limiter| limiter.acquire_one().await),
        contestant!(OURS, tasks, ours(tsc()), |limiter| limiter.acquire(1).await.is_ok()),
        contestant!(OURS_ANSWER, tasks, ours(tsc()), |limiter| limiter.acquire(1).await),
        contestant!(OURS_COARSE, tasks, ours(WithClock::new(coarse, TokioRuntime)), |limiter| {
            limiter.acquire(1).await.is_ok()
        }),
        contestant!(READING, tasks, TscClock::new(), |clock| clock.now()),
        contestant!(OURS_TOKIO, tasks, ours(TokioRuntime), |limiter| limiter.acquire(1).await.is_ok()),
    ]
}

fn ours<R: sluicegate_tokio::Runtime>(runtime: R) -> Ours<R> {
    let quota = quota!("1/10s burst 500000000");
    Ours::new(CoreBucket::with_limit(quota.into(), ()), runtime, WaitOptions::new())
}

fn leaky(is_fair: bool) -> leaky_bucket::RateLimiter {
    let tokens = 500_000_000;
    leaky_bucket::RateLimiter::builder()
        .max(tokens)
        .initial(tokens)
        .refill(1)
        .interval(Duration::from_secs(10))
        .fair(is_fair)
        .build()
}

fn executor() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a timer needs nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_heat_runs_and_names_its_own_contestants() {
        for (_, make) in heats() {
            let mut heat = make();
            let timings = heat.run(Effort::TRIAL);
            for name in heat.targets.iter().map(|(name, _)| *name).chain([heat.baseline]) {
                assert!(timings.iter().any(|timing| timing.name == name), "{}: {name}", heat.title);
            }
        }
    }
}
