//! One window of one shard: a limit known to the compiler, a static, one decision after another.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU32, Ordering};

use semihosting as _;
use sluicegate_core::{Clock, FixedShard, Nanos, Shard, ShardedWindow, WindowLimit};

sluicegate_bare_metal::forever!(work);

static WINDOW: ShardedWindow<[Shard; 1], Milliseconds, FixedShard> = ShardedWindow::with_array(
    match WindowLimit::parse("300/1m") {
        Ok(limit) => limit,
        Err(_) => panic!("not a limit for a window"),
    },
    Milliseconds,
    FixedShard(0),
);

fn work() {
    let wait = match WINDOW.try_acquire(1) {
        Ok(_) => 0,
        Err(denied) => denied.retry_after().map_or(u32::MAX, |wait| wait.as_secs() as u32 + 1),
    };
    core::hint::black_box(&WAIT).store(wait, Ordering::Relaxed);
}

struct Milliseconds;

impl Clock for Milliseconds {
    fn now(&self) -> Nanos {
        Nanos::from_millis(core::hint::black_box(&TIME).load(Ordering::Relaxed).into())
    }
}

/// Stands for a timer's register.
static TIME: AtomicU32 = AtomicU32::new(0);
/// Stands for what is to be limited: seconds until it may go on.
static WAIT: AtomicU32 = AtomicU32::new(0);
