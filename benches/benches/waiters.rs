//! What do a hundred thousand waiters on one limiter take, and when are they served?

extern crate alloc;

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use core::fmt::Write as _;
use core::time::Duration;
use std::sync::Mutex;

use peak_alloc::PeakAlloc;
use sluicegate_benches::keyed::Numbers;
use sluicegate_benches::{is_measuring, record};
use sluicegate_tokio::{Clock, TokenBucket, quota};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn main() -> std::io::Result<()> {
    let (waiters, leaving) = if is_measuring() { (100_000, 10_000) } else { (500, 50) };
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let mut page = record::waiters_head();
    let _ = writeln!(
        page,
        "\n{waiters} tasks wait for one token each of a `TokenBucket` of 50 000 a second, on tokio's executor of one thread; \
         tokio's timer ticks in milliseconds. Expected is the exact instant of a waiter's token. Memory is what the allocator has out, \
         with and without everybody, divided by them; a task that only sleeps is what tokio takes for itself.\n\n\
         | | all stay | {leaving} leave, at random, while others are served |\n|---|--:|--:|",
    );
    let (all, some) = (run(&executor, waiters, 0), run(&executor, waiters, leaving));
    let mut row = |what: &str, of: fn(&Outcome) -> String| {
        let _ = writeln!(page, "| {what} | {} | {} |", of(&all), of(&some));
    };
    row("served", |outcome| outcome.served.to_string());
    row("served out of order", |outcome| outcome.out_of_order.to_string());
    row("ms behind the expected instant, median", |outcome| millis(outcome.late(0.5)));
    row("the same, 99 of 100", |outcome| millis(outcome.late(0.99)));
    row("the same, worst", |outcome| millis(outcome.late(1.0)));
    row("bytes a waiter, its task included", |outcome| format!("{:.0}", outcome.bytes));
    let _ = writeln!(page, "| bytes a task that only sleeps | {:.0} | |", sleeping(&executor, waiters));
    assert_eq!(all.served, waiters);
    assert_eq!(some.served, waiters - leaving);
    assert_eq!(all.out_of_order + some.out_of_order, 0);
    if is_measuring() {
        println!("{page}");
        println!("wrote {}", record::write("waiters.md", &page)?.display());
    }
    Ok(())
}

/// Half a second's tokens.
const BLOCKED: u32 = 25_000;

struct Outcome {
    served: usize,
    out_of_order: usize,
    bytes: f64,
    /// How much later than expected each was served, in nanoseconds, sorted.
    late: Vec<u64>,
}

impl Outcome {
    fn late(&self, part: f64) -> u64 {
        self.late[((self.late.len() - 1) as f64 * part) as usize]
    }
}

fn run(executor: &tokio::runtime::Runtime, waiters: usize, leaving: usize) -> Outcome {
    executor.block_on(async {
        let served = Arc::new(Mutex::new(Vec::with_capacity(waiters)));
        let mut tasks = Vec::with_capacity(waiters);
        let bucket = TokenBucket::of(quota!("50000/1s burst 50000"));
        let before = MEMORY.current_usage();
        let bucket = Arc::new(bucket);
        assert!(bucket.try_acquire(u64::from(BLOCKED) * 2).is_ok());
        let start = bucket.runtime().now();
        // At the head of the line, for as long as it takes until everybody is there.
        let blocking = Arc::clone(&bucket);
        let blocker = tokio::spawn(async move { blocking.acquire(BLOCKED.into()).await.is_ok() });
        for number in 0..waiters {
            let (bucket, served) = (Arc::clone(&bucket), Arc::clone(&served));
            tasks.push(tokio::spawn(async move {
                bucket.acquire(1).await.expect("nobody closes it");
                served.lock().expect("nobody panics").push((number, bucket.runtime().now()));
            }));
        }
        while bucket.waiters() < waiters + 1 {
            tokio::task::yield_now().await;
        }
        let bytes = (MEMORY.current_usage() - before) as f64 / waiters as f64;
        let mut numbers = Numbers::default();
        let mut left = BTreeSet::new();
        while left.len() < leaving {
            // From the back half, so that whoever is told to leave has not been served.
            let number = waiters / 2 + numbers.below(waiters as u64 / 2) as usize;
            tasks[number].abort();
            if left.insert(number) && left.len() % 100 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        assert!(blocker.await.is_ok_and(|is_served| is_served));
        for task in tasks {
            let _ = task.await;
        }
        let served = Arc::into_inner(served).and_then(|served| served.into_inner().ok()).unwrap_or_default();
        let out_of_order = served.windows(2).filter(|pair| pair[0].0 > pair[1].0).count();
        let mut late: Vec<_> = served
            .iter()
            .enumerate()
            .map(|(place, (_, seen))| {
                // By the bucket's law: what was taken before it, and its own token, one every 20 us.
                let expected = start + Duration::from_nanos(20_000 * (u64::from(BLOCKED) + 1 + place as u64));
                seen.saturating_duration_since(expected).as_nanos() as u64
            })
            .collect();
        late.sort_unstable();
        Outcome { served: served.len(), out_of_order, bytes, late }
    })
}

/// What a task that sleeps takes by itself.
fn sleeping(executor: &tokio::runtime::Runtime, tasks: usize) -> f64 {
    executor.block_on(async {
        let before = MEMORY.current_usage();
        let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(tokio::time::sleep(Duration::from_secs(3600)))).collect();
        // The tasks come before this one's turn.
        for _ in 0..tasks.len() / 32 + 1 {
            tokio::task::yield_now().await;
        }
        let bytes = (MEMORY.current_usage() - before) as f64 / tasks.len() as f64;
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        for task in tasks {
            let _ = task.await;
        }
        bytes
    })
}

fn millis(nanos: u64) -> String {
    format!("{:.2}", nanos as f64 / 1e6)
}
