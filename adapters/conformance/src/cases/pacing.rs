//! Departures, streams and sinks at a limiter's pace.

use alloc::sync::Arc;
use core::convert::Infallible;
use core::future::poll_fn;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll};
use core::time::Duration;

use futures_lite::{Stream, StreamExt, stream};
use futures_sink::Sink;
use parking_lot::Mutex;
use sluicegate_runtime::{
    Clock, Denied, LimitStream, LimitedSink, PER_SECOND, Paced, Pacing, Rate, Refused, Runtime, SinkError, quota,
};

use crate::executor::Executor;
use crate::limiters::{empty, level};
use crate::tasks::{assert_on_time, at_once, pass, spawn, start};

/// One departs each second, and up to so many wait.
fn paced<E: Executor>(runtime: &E::Runtime, bound: u64) -> Arc<Paced<E::Runtime>> {
    let pacing = Pacing::new(Rate::new(1, PER_SECOND).expect("a rate"), bound).expect("a bound");
    Arc::new(Paced::new(pacing, runtime.clone()))
}

/// The newest one's slot is had by the next who comes. Any other's stays empty, and nobody departs earlier or later for it; and who
/// was never polled has none.
pub async fn c06_who_is_dropped_before_it_departs_gives_the_newest_slot_up<E: Executor>(runtime: E::Runtime) {
    let paced = paced::<E>(&runtime, 3);
    let begin = runtime.now();
    assert_eq!(at_once(paced.pace(1)).await, Some(Ok(begin)));
    let unpolled = paced.pace_owned(1);
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let mut pace = Box::pin(paced.pace_owned(1));
        assert_eq!(at_once(&mut pace).await, None);
        waiting.push(pace);
    }
    assert!(matches!(at_once(paced.pace(1)).await, Some(Err(Denied::RateLimited { .. }))));
    let (third, second, first) = (waiting.pop(), waiting.pop(), waiting.pop().expect("three"));
    // The newest: its slot is free again.
    drop(third);
    let third = start::<E, _>(&runtime, paced.pace_owned(1)).await;
    // Not the newest: its slot is nobody's.
    drop(second);
    assert!(matches!(at_once(paced.pace(1)).await, Some(Err(Denied::RateLimited { .. }))));
    let first = start::<E, _>(&runtime, first).await.await;
    assert_eq!(first.with, Ok(begin + Duration::from_secs(1)));
    assert_on_time::<E>(first.at, begin + Duration::from_secs(1));
    let third = third.await;
    assert_eq!(third.with, Ok(begin + Duration::from_secs(3)));
    assert_on_time::<E>(third.at, begin + Duration::from_secs(3));
    let next = start::<E, _>(&runtime, paced.pace_owned(1)).await.await;
    assert_eq!(next.with, Ok(begin + Duration::from_secs(4)));
    drop(unpolled);
}

/// Work that takes longer than the distance shifts those behind it, and what was missed is not made up for in a burst. Two who
/// drain at once share the rate.
pub async fn c06_each_of_many_departs_at_its_turn<E: Executor>(runtime: E::Runtime) {
    let paced = paced::<E>(&runtime, 2);
    let begin = runtime.now();
    let departed = Arc::new(Mutex::new(Vec::new()));
    let drain = |items: core::ops::Range<u64>| {
        let (paced, departed, clock) = (paced.clone(), departed.clone(), runtime.clone());
        async move {
            let work = |item| {
                departed.lock().push((item, clock.now()));
                let until = clock.now() + Duration::from_millis(if item == 1 { 3_500 } else { 0 });
                clock.sleep_until(until)
            };
            paced.for_each(items, work).await
        }
    };
    assert_eq!(drain(0..4).await, Ok(()));
    let ats: Vec<_> = core::mem::take(&mut *departed.lock());
    for ((item, at), (due, millis)) in ats.into_iter().zip((0..).zip([0, 1_000, 4_500, 5_500])) {
        assert_eq!(item, due);
        let due = begin + Duration::from_millis(millis);
        assert!(due <= at && at <= due + 3 * E::GRAIN, "{item} at {at:?}");
    }

    let two = [drain(10..13), drain(20..23)].map(|drain| spawn::<E, _>(&runtime, drain));
    for drain in two {
        assert_eq!(drain.await, Ok(()));
    }
    let ats: Vec<_> = core::mem::take(&mut *departed.lock());
    assert_eq!(ats.len(), 6);
    for pair in ats.windows(2) {
        let apart = pair[1].1.saturating_duration_since(pair[0].1);
        assert!(apart + E::GRAIN >= Duration::from_secs(1) && apart <= Duration::from_secs(1) + E::GRAIN, "{ats:?}");
    }

    // One too many: the items that are left are dropped.
    let waiting =
        [start::<E, _>(&runtime, paced.pace_owned(1)).await, start::<E, _>(&runtime, paced.pace_owned(1)).await];
    assert!(matches!(at_once(drain(30..32)).await, Some(Err(Denied::RateLimited { .. }))));
    assert!(departed.lock().is_empty());
    for waiting in waiting {
        assert!(waiting.await.with.is_ok());
    }
}

/// In order, each when it was granted; one that is idle takes nothing, and one that is dropped while it waits has taken nothing.
pub async fn c06_a_stream_passes_its_items_on_at_the_limiters_pace<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let begin = runtime.now();
    let mut items = Box::pin(stream::iter(0..4_u64).limit_by(Arc::clone(&bucket)));
    assert_eq!(bucket.waiters(), 0, "nothing waits before the first poll");
    for item in 0..3 {
        assert_eq!(items.next().await, Some(Ok(item)));
        assert_on_time::<E>(runtime.now(), begin + Duration::from_secs(item + 1));
    }
    pass::<E>(&runtime, Duration::from_millis(500)).await;
    assert_eq!((at_once(items.next()).await, bucket.waiters()), (None, 1));
    assert_eq!(items.size_hint(), (1, Some(1)), "the one that waits");
    drop(items);
    assert_eq!(bucket.waiters(), 0);
    pass::<E>(&runtime, Duration::from_secs(1)).await;
    assert_eq!(level::<E>(&bucket, runtime.now()), 1);
    let mut idle = Box::pin(stream::pending::<u64>().limit_by(Arc::clone(&bucket)));
    assert_eq!((at_once(idle.next()).await, bucket.waiters()), (None, 0));

    // The first goes at once. The second waits until the limiter is closed, and what is left says so as well.
    let items = Box::pin(stream::iter(0..3_u64).limit_by(Arc::clone(&bucket)));
    let rest = start::<E, _>(&runtime, items.collect::<Vec<_>>()).await;
    bucket.close();
    let refused = |item| Err(Refused { item, denial: Denied::Closed });
    assert_eq!(rest.await.with, [Ok(0), refused(1), refused(2)]);
}

/// It is ready for an item once that was granted, asked as often as one likes; what was granted and not used serves the next.
pub async fn c06_a_sink_takes_items_at_the_limiters_pace<E: Executor>(runtime: E::Runtime) {
    let bucket = empty::<E>(&runtime, quota!("10/10s"));
    let begin = runtime.now();
    let inner = Inner::default();
    let mut sink = Box::pin(LimitedSink::new(inner.clone(), Arc::clone(&bucket)));
    for item in 0..3_u64 {
        assert_eq!(at_once(poll_fn(|context| sink.as_mut().poll_ready(context))).await, None);
        for _ in 0..2 {
            assert_eq!(poll_fn(|context| sink.as_mut().poll_ready(context)).await, Ok(()));
            assert_on_time::<E>(runtime.now(), begin + Duration::from_secs(item + 1));
        }
        assert_eq!(sink.as_mut().start_send(item), Ok(()));
    }
    assert_eq!(poll_fn(|context| sink.as_mut().poll_flush(context)).await, Ok(()));
    // One that cannot take anything keeps no place and takes nothing.
    inner.is_stuck.store(true, Ordering::Relaxed);
    pass::<E>(&runtime, Duration::from_millis(1_500)).await;
    assert_eq!(at_once(poll_fn(|context| sink.as_mut().poll_ready(context))).await, None);
    assert_eq!((level::<E>(&bucket, runtime.now()), bucket.waiters()), (1, 0));
    inner.is_stuck.store(false, Ordering::Relaxed);
    assert_eq!(at_once(poll_fn(|context| sink.as_mut().poll_ready(context))).await, Some(Ok(())));
    assert_eq!(level::<E>(&bucket, runtime.now()), 0);
    bucket.close();
    assert_eq!(at_once(poll_fn(|context| sink.as_mut().poll_ready(context))).await, Some(Ok(())), "that was granted");
    assert_eq!(sink.as_mut().start_send(3), Ok(()));
    let closed = poll_fn(|context| sink.as_mut().poll_ready(context)).await;
    assert_eq!(closed, Err(SinkError::Denied(Denied::Closed)));
    assert_eq!(*inner.items.lock(), [0, 1, 2, 3]);
}

/// A sink that keeps what it is given, and is stuck on demand.
#[derive(Clone, Default)]
struct Inner {
    items: Arc<Mutex<Vec<u64>>>,
    is_stuck: Arc<AtomicBool>,
}

impl Sink<u64> for Inner {
    type Error = Infallible;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.is_stuck.load(Ordering::Relaxed) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn start_send(self: Pin<&mut Self>, item: u64) -> Result<(), Infallible> {
        self.items.lock().push(item);
        Ok(())
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
}
