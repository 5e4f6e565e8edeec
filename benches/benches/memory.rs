//! How many bytes does a limiter take, and a waiter? Counted by the allocator, beside the rivals.

extern crate alloc;

use alloc::sync::Arc;
use core::fmt::Write as _;
use core::hint::black_box;
use core::time::Duration;

use better_bucket::{Bucket, BucketConfig};
use governor::{Quota, RateLimiter};
use peak_alloc::PeakAlloc;
use sluicegate_benches::async_rivals::{Supply, WAITED};
use sluicegate_benches::{is_measuring, record, rival};
use sluicegate_threads::sluicegate_core::{
    AdjustableBucket, ConcurrencyLimit, LeakyBucket, Pacing, SlidingCounter, SlidingLog, TokenBucket, WindowLimit,
};
use sluicegate_threads::{OsClock, Rate, ThreadShard, quota, sharded_window_with};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() -> std::io::Result<()> {
    let mut page = format!(
        "# The memory of limiters and waiters\n\nWhat a key takes is in [keyed-memory.md](keyed-memory.md).\n\n{}",
        record::conditions("memory")
    );
    limiters(&mut page);
    waiters(&mut page, if is_measuring() { 10_000 } else { 100 });
    if is_measuring() {
        println!("{page}\nwrote {}", record::write("memory.md", &page)?.display());
    }
    Ok(())
}

fn limiters(page: &mut String) {
    page.push_str(
        "\n## A limiter\n\n100 per second, on the operating system's clock, or the default one. *In place* is what the type takes, *elsewhere* what it has from \
         the allocator, when it is new and when its 100 tokens are spent.\n\n| | in place | elsewhere, new | elsewhere, spent |\n|---|--:|--:|--:|\n",
    );
    let rate: Rate = "100/1s".parse().expect("a rate");
    let limit = WindowLimit::from_rate(rate).expect("a window");
    let pacing = Pacing::new(rate, 100).expect("a pacing");
    row(page, "`TokenBucket`", || TokenBucket::with_clock(quota!("100/1s"), OsClock), |it| it.try_acquire(1).is_ok());
    row(
        page,
        "`AdjustableBucket`",
        || AdjustableBucket::with_clock(quota!("100/1s"), OsClock),
        |it| it.try_acquire(1).is_ok(),
    );
    let window = || sharded_window_with(rate, 4.try_into().expect("not 0"), OsClock, ThreadShard).expect("a window");
    row(page, "`ShardedWindow` of 4 shards", window, |it| it.try_acquire(1).is_ok());
    let mut now = sluicegate_threads::Nanos::ZERO;
    row(
        page,
        "`SlidingLog`, each at a time of its own",
        || SlidingLog::new(rate),
        |it| {
            now = now + Duration::from_nanos(1);
            it.try_acquire_at(now, 1).is_ok()
        },
    );
    row(
        page,
        "`SlidingCounter`",
        || SlidingCounter::with_clock(limit, OsClock).expect("a counter"),
        |it| it.try_acquire(1).is_ok(),
    );
    row(page, "`LeakyBucket`", || LeakyBucket::with_clock(pacing, OsClock), |it| it.try_acquire(1).is_ok());
    row(page, "`ConcurrencyLimit`", || ConcurrencyLimit::new(100), |it| it.try_acquire(1).is_ok());
    row(page, "governor", || RateLimiter::direct(Quota::per_second(rival::count(100))), |it| it.check().is_ok());
    row(page, "ratelimit", || ratelimit::Ratelimiter::new(100), |it| it.try_wait().is_ok());
    let better =
        || BucketConfig::new(100, 100, Duration::from_secs(1), 100).map(Bucket::from_config).expect("a bucket");
    row(page, "better-bucket", better, |it| it.try_acquire(1));
    let leaky = || leaky_bucket::RateLimiter::builder().max(100).initial(100).refill(100).build();
    row(page, "leaky-bucket", leaky, |it| it.try_acquire(1));
    row(
        page,
        "tokio `Semaphore`",
        || tokio::sync::Semaphore::new(100),
        |it| it.try_acquire().map(|permit| permit.forget()).is_ok(),
    );
}

fn row<L>(page: &mut String, name: &str, make: impl FnOnce() -> L, mut take: impl FnMut(&mut L) -> bool) {
    let executor = executor();
    let _guard = executor.enter();
    let before = MEMORY.current_usage();
    let mut limiter = make();
    let new = MEMORY.current_usage() - before;
    for _ in 0..100 {
        black_box(take(&mut limiter));
    }
    let spent = MEMORY.current_usage() - before;
    let _ = writeln!(page, "| {name} | {} | {new} | {spent} |", size_of::<L>());
}

/// Tasks that all wait for a limiter that has nothing.
fn waiters(page: &mut String, tasks: usize) {
    let _ = writeln!(
        page,
        "\n## A waiter\n\n{tasks} tasks wait for one token each, on tokio's executor of one thread. Bytes that the allocator has out, divided by them, the task \
         included; and what is beyond a task that only sleeps. All futures are boxed, which costs each the same.\n\n| | bytes a waiter | beyond one that \
         sleeps |\n|---|--:|--:|",
    );
    let nothing: sluicegate_benches::async_rivals::Take =
        Arc::new(|_| Box::pin(tokio::time::sleep(Duration::from_secs(3_600))));
    let sleeping = waiting(tasks, |_| nothing);
    let _ = writeln!(page, "| a task that sleeps | {sleeping:.0} | |");
    for waited in WAITED {
        let bytes = waiting(tasks, waited.make);
        let _ = writeln!(page, "| {} | {bytes:.0} | {:+.0} |", waited.name, bytes - sleeping);
    }
}

fn waiting(tasks: usize, make: impl FnOnce(Supply) -> sluicegate_benches::async_rivals::Take) -> f64 {
    executor().block_on(async {
        let take = make(Supply { per_millisecond: 1, burst: 1 });
        let mut all = Vec::with_capacity(tasks);
        let before = MEMORY.current_usage();
        for _ in 0..tasks {
            let take = Arc::clone(&take);
            all.push(tokio::spawn(async move { take(1).await }));
        }
        // The tasks come before this one's turn.
        for _ in 0..tasks / 32 + 1 {
            tokio::task::yield_now().await;
        }
        let bytes = MEMORY.current_usage().saturating_sub(before) as f64;
        let waiting = all.iter().filter(|task| !task.is_finished()).count();
        all.iter().for_each(tokio::task::JoinHandle::abort);
        bytes / waiting.max(1) as f64
    })
}

fn executor() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a timer needs nothing")
}
