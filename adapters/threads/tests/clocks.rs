//! The clocks, as far as they can be tested without asserting how long something takes.

use core::time::Duration;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use sluicegate_threads::{Clock, CoarseClock, CoarseClockError, Nanos, OsClock, TokenBucket, quota};

#[test]
fn readings_do_not_go_back_on_one_thread() {
    never_goes_back(&OsClock);
    never_goes_back(&CoarseClock::new(CoarseClock::SHORTEST_INTERVAL).unwrap());
    // Of the time-stamp counter this is promised for one core only, so nothing can be asserted here.
}

#[test]
fn readings_of_the_operating_system_agree_between_threads() {
    let (sender, receiver) = mpsc::channel();
    let reader = thread::spawn(move || {
        for _ in 0..10_000 {
            // Taken before it is received: in every order of the two threads this one is the earlier.
            let sent: Nanos = receiver.recv().unwrap();
            assert!(OsClock.now() >= sent);
        }
    });
    for _ in 0..10_000 {
        sender.send(OsClock.now()).unwrap();
    }
    reader.join().unwrap();
}

#[test]
fn a05_readings_are_no_date() {
    // The date is more than half a century after its origin; this clock's origin is in this process.
    assert!(OsClock.now() < Nanos::from_secs(365 * 86_400));
}

#[test]
fn an_instant_has_one_reading() {
    let (before, instant, after) = (OsClock.now(), Instant::now(), OsClock.now());
    let reading = OsClock::reading_of(instant);
    assert!(before <= reading && reading <= after, "{before} {reading} {after}");
    let Some(early) = instant.checked_sub(Duration::from_secs(3_600)) else { return };
    assert_eq!(OsClock::reading_of(early), Nanos::ZERO, "before the origin");
}

#[test]
fn a_coarse_reading_is_never_ahead() {
    let clock = CoarseClock::new(CoarseClock::SHORTEST_INTERVAL).unwrap();
    for _ in 0..10_000 {
        let coarse = clock.now();
        assert!(coarse <= OsClock.now());
    }
    // It is behind by some amount that this thread cannot know; the reading and its staleness make up one instant.
    let before = OsClock.now();
    let staleness = clock.staleness();
    assert!(before <= clock.now() + staleness + Duration::from_secs(3_600));
}

#[test]
fn a_coarse_clock_of_absurd_interval_is_an_error() {
    let (shortest, longest) = (CoarseClock::SHORTEST_INTERVAL, CoarseClock::LONGEST_INTERVAL);
    let tick = Duration::from_nanos(1);
    for interval in [Duration::ZERO, shortest - tick, longest + tick, Duration::MAX] {
        match CoarseClock::new(interval) {
            Err(CoarseClockError::Interval { interval: named }) => assert_eq!(named, interval),
            other => panic!("{interval:?}: {other:?}"),
        }
    }
    for interval in [shortest, longest] {
        assert_eq!(CoarseClock::new(interval).unwrap().interval(), interval);
    }
}

#[test]
fn clones_share_one_reading() {
    let clock = CoarseClock::new(CoarseClock::LONGEST_INTERVAL).unwrap();
    let clone = clock.clone();
    // Whether or not the ticker moves it, the second of three readings lies between the others.
    let (first, second, third) = (clock.now(), clone.now(), clock.now());
    assert!(first <= second && second <= third);
    drop(clock);
    assert!(clone.now() >= third);
}

#[cfg(feature = "tsc")]
#[test]
fn counters_share_one_origin() {
    use sluicegate_threads::TscClock;

    let first = TscClock::new();
    let reading = first.now();
    assert!(reading < Nanos::from_secs(365 * 86_400));
    // A clock made later, on another thread, does not start anew: it goes on from about there. The counters of two cores
    // may be some nanoseconds apart, so wait until the reading has moved by far more than that.
    while first.now() < reading + Duration::from_millis(2) {
        thread::yield_now();
    }
    let later = thread::spawn(|| TscClock::default().now()).join().unwrap();
    assert!(later > reading + Duration::from_millis(1));
}

#[test]
fn a_bucket_refills_by_itself() {
    let bucket = TokenBucket::new(quota!("1000/1s burst 1"));
    // No bound on the time this takes: a clock that stands still hangs here.
    for _ in 0..3 {
        while let Err(denied) = bucket.try_acquire(1) {
            thread::sleep(denied.retry_after().expect("a cost of 1 fits"));
        }
    }
}

fn never_goes_back(clock: &impl Clock) {
    let mut last = clock.now();
    for _ in 0..100_000 {
        let now = clock.now();
        assert!(now >= last);
        last = now;
    }
}
