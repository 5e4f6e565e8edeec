//! Many at once.

use core::time::Duration;

use sluicegate_runtime::{Clock, Nanos, Runtime, quota};

use crate::executor::Executor;
use crate::limiters::{bucket, window};
use crate::tasks::spawn;

/// From a bucket: by trying, and by not waiting.
pub async fn a11_a_limit_of_n_admits_n_of_any_racing_callers<E: Executor>(runtime: E::Runtime) {
    let bucket = bucket::<E>(&runtime, quota!("77/77h"));
    let racers: Vec<_> = (0..200)
        .map(|number| {
            let bucket = bucket.clone();
            spawn::<E, _>(&runtime, async move {
                if number % 2 == 0 {
                    bucket.try_acquire(1).is_ok()
                } else {
                    bucket.acquire_timeout(1, Duration::ZERO).await.is_ok()
                }
            })
        })
        .collect();
    let mut admitted = 0;
    for racer in racers {
        admitted += u32::from(racer.await);
    }
    assert_eq!((admitted, bucket.waiters()), (77, 0));
}

/// From a window over eight shards, each asking until it has been denied three times.
pub async fn a17_n_of_200_racing_callers_are_admitted<E: Executor>(runtime: E::Runtime) {
    race_for_a_window::<E>(runtime, 200).await;
}

/// As with 200.
pub async fn a17_n_of_400_racing_callers_are_admitted<E: Executor>(runtime: E::Runtime) {
    race_for_a_window::<E>(runtime, 400).await;
}

async fn race_for_a_window<E: Executor>(runtime: E::Runtime, callers: u32) {
    let limit = quota!("150/1h");
    let window = window::<E>(&runtime, limit, 8);
    for _ in 0..3 {
        let racers: Vec<_> = (0..callers)
            .map(|number| {
                let window = window.clone();
                spawn::<E, _>(&runtime, async move {
                    let (mut admitted, mut denied) = (0, 0);
                    while denied < 3 {
                        let answer = match number % 2 {
                            0 => window.try_acquire(1),
                            _ => window.acquire_timeout(1, Duration::ZERO).await,
                        };
                        match answer {
                            Ok(_) => admitted += 1,
                            Err(_) => denied += 1,
                        }
                    }
                    admitted
                })
            })
            .collect();
        let mut admitted = 0;
        for racer in racers {
            admitted += racer.await;
        }
        assert_eq!((admitted, window.waiters()), (limit.capacity(), 0));
        // The denied ones have not run the next window away.
        let next = (runtime.now().as_u64() / HOUR + 1) * HOUR;
        runtime.sleep_until(Nanos::new(next)).await;
    }
}

/// Four hundred tasks come at once and wait: each window admits its limit, and nobody is forgotten.
pub async fn a17_racing_waiters_get_the_limit_in_each_window<E: Executor>(runtime: E::Runtime) {
    let window = window::<E>(&runtime, quota!("150/1h"), 8);
    let first = runtime.now().as_u64() / HOUR;
    let racers: Vec<_> = (0..400)
        .map(|_| {
            let (window, clock) = (window.clone(), runtime.clone());
            spawn::<E, _>(&runtime, async move {
                assert!(window.acquire(1).await.is_ok());
                clock.now().as_u64() / HOUR
            })
        })
        .collect();
    let mut served = [0; 3];
    for racer in racers {
        served[usize::try_from(racer.await - first).expect("a few windows")] += 1;
    }
    assert_eq!(served, [150, 150, 100]);
    assert_eq!(window.waiters(), 0);
}

const HOUR: u64 = 3_600_000_000_000;
