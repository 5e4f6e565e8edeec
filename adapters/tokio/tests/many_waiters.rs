//! Many tasks wait for one limiter, and some of them leave at random.

extern crate alloc;

use alloc::sync::Arc;
use core::time::Duration;

use sluicegate_tokio::{Clock, TokenBucket, TokioRuntime, quota};
use tokio::task::JoinSet;

/// All are polled once, in order, before time moves. Those who leave are aborted in between, at any time and in any order, some of
/// them after they were served.
#[tokio::test(start_paused = true)]
async fn b06_b07_many_are_served_in_order_and_cancellations_lose_nothing() {
    let bucket = Arc::new(TokenBucket::of(quota!("1000/1s")));
    let begin = bucket.acquire(1000).await.unwrap().at;
    let mut served = JoinSet::new();
    let mut tasks = Vec::new();
    for number in 0..WAITERS {
        let turn = bucket.acquire_owned(cost(number));
        tasks.push(served.spawn(async move { (number, turn.await.unwrap().at) }));
    }
    // The tasks first run in the order in which they were started, and time stands still for as long as they do.
    while bucket.waiters() < WAITERS {
        tokio::task::yield_now().await;
    }

    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % u64::try_from(below).unwrap()).unwrap()
    };
    for _ in 0..CANCELLATIONS {
        tasks[next(WAITERS)].abort();
        tokio::time::sleep(Duration::from_micros(u64::try_from(next(30_000)).unwrap())).await;
    }

    let (mut left, mut ends) = (0, Vec::new());
    while let Some(end) = served.join_next().await {
        match end {
            Ok(end) => ends.push(end),
            Err(error) if error.is_cancelled() => left += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(left > CANCELLATIONS / 4 && left + ends.len() == WAITERS);
    ends.sort_unstable();
    assert!(ends.is_sorted_by_key(|(_, at)| *at), "nobody overtook anybody");
    // The bucket gave as much as flowed in, and no more: not a token was lost with those who left.
    let last = ends.iter().map(|(_, at)| *at).max().unwrap();
    let spent: u64 = ends.iter().map(|(number, _)| cost(*number)).sum();
    let flowed = u64::try_from(last.saturating_duration_since(begin).as_millis()).unwrap();
    assert!(spent <= flowed && flowed <= spent + 1, "{spent} of {flowed}");
    assert_eq!(bucket.waiters(), 0);
    let level = bucket.limiter().inspect_at(TokioRuntime.now()).level;
    assert!(level <= 1, "{level}");
}

fn cost(number: usize) -> u64 {
    [1, 5, 2, 1, 3][number % 5]
}

const WAITERS: usize = 5_000;
const CANCELLATIONS: usize = 500;
