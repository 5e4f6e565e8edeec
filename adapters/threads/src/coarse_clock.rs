//! One shared reading, refreshed in the background.

use alloc::sync::Arc;
use core::convert::Infallible;
use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

use sluicegate_core::{CachePadded, Clock, ManualClock, Nanos};

use crate::OsClock;

/// A clock that is read by one load, because a thread of its own refreshes a shared reading at an interval.
///
/// Clones share the reading and the thread; cloning counts two references up. The origin is [`OsClock`]'s, and limiters
/// may be given readings of both.
///
/// # How late a reading is
///
/// A reading is never ahead of [`OsClock`]. It is behind by at most `interval + d`, where `d` is how long the operating
/// system takes to run the ticker after its time has come: usually below 0.1 ms, on an overloaded machine as long as the
/// load says. [`staleness`](Self::staleness) tells it at this moment. A ticker that is held up, or a suspended process,
/// only makes the reading stall. For a limiter this means, in true time:
///
/// - a token bucket of N per P ns and capacity C admits in a span of T ns at most `C + N(T + interval + d)/P`;
/// - a window ends later by at most `interval + d`;
/// - a caller who waits exactly `retry_after` may find the reading not there yet and be told to wait for the rest.
///
/// Choose it where a reading of [`OsClock`] costs too much and an error of the interval does not matter. A machine that
/// runs few calls saves power with one of the other clocks, for which no thread wakes up.
///
/// # When it stops
///
/// Dropping the last clone tells the ticker to stop, which it does at once, not at the end of its interval. The drop does
/// not wait for it, so it cannot deadlock, whichever thread it happens on. Clocks in statics run until the process ends.
/// After a `fork` the child has no ticker: make clocks there anew.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use sluicegate_threads::{CoarseClock, CoarseTokenBucket, quota};
///
/// let clock = CoarseClock::new(Duration::from_millis(1))?;
/// let uploads = CoarseTokenBucket::with_clock(quota!("300/1m"), clock.clone());
/// let downloads = CoarseTokenBucket::with_clock(quota!("900/1m"), clock);
/// assert!(uploads.try_acquire(1).is_ok());
/// assert!(downloads.try_acquire(1).is_ok());
/// # Ok::<(), sluicegate_threads::CoarseClockError>(())
/// ```
#[derive(Clone)]
pub struct CoarseClock {
    reading: Arc<Reading>,
    ticker: Arc<Ticker>,
}

/// The reading is a clock that is moved by hand: the ticker's. Padded, because every core reads it.
type Reading = CachePadded<ManualClock>;

impl CoarseClock {
    /// The shortest interval: below it the ticker would do little else than wake up.
    pub const SHORTEST_INTERVAL: Duration = Duration::from_micros(100);

    /// The longest interval: beyond it a reading is hardly one.
    pub const LONGEST_INTERVAL: Duration = Duration::from_secs(10);

    /// Takes a reading and starts the thread that refreshes it every `interval`.
    ///
    /// # Errors
    /// [`CoarseClockError::Interval`] unless the interval lies between [`SHORTEST_INTERVAL`](Self::SHORTEST_INTERVAL) and
    /// [`LONGEST_INTERVAL`](Self::LONGEST_INTERVAL), both included; [`CoarseClockError::Spawn`] when the operating system
    /// gives no thread.
    pub fn new(interval: Duration) -> Result<Self, CoarseClockError> {
        Self::with_source(interval, OsClock)
    }

    fn with_source(interval: Duration, source: impl Clock + Send + 'static) -> Result<Self, CoarseClockError> {
        if !(Self::SHORTEST_INTERVAL..=Self::LONGEST_INTERVAL).contains(&interval) {
            return Err(CoarseClockError::Interval { interval });
        }
        let reading = Arc::new(Reading::new(ManualClock::at(source.now())));
        let (alive, stop) = mpsc::channel::<Infallible>();
        let ticking = Arc::clone(&reading);
        thread::Builder::new()
            .name("sluicegate-tick".into())
            .spawn(move || {
                // Nothing is ever sent: the wait ends early only when the last clone has dropped its end.
                tick(&ticking, &source, || matches!(stop.recv_timeout(interval), Err(RecvTimeoutError::Timeout)));
            })
            .map_err(CoarseClockError::Spawn)?;
        Ok(Self { reading, ticker: Arc::new(Ticker { interval, _alive: alive }) })
    }

    /// The interval at which the reading is refreshed.
    pub fn interval(&self) -> Duration {
        self.ticker.interval
    }

    /// How far the reading is behind [`OsClock`] now; reads both.
    ///
    /// More than some intervals, again and again, means that the ticker gets no processor.
    pub fn staleness(&self) -> Duration {
        // This reading first: otherwise a refresh in between would hide how late it was.
        let reading = self.now();
        OsClock.now().saturating_duration_since(reading)
    }
}

impl Clock for CoarseClock {
    #[inline]
    fn now(&self) -> Nanos {
        self.reading.now()
    }
}

impl fmt::Debug for CoarseClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoarseClock").field("interval", &self.interval()).finish_non_exhaustive()
    }
}

/// What the clones share; dropping it disconnects the ticker's channel.
struct Ticker {
    interval: Duration,
    _alive: mpsc::Sender<Infallible>,
}

/// Copies the source's reading, once after each wait, until a wait says no. A source that steps back moves nothing.
fn tick(reading: &ManualClock, source: &impl Clock, mut wait: impl FnMut() -> bool) {
    while wait() {
        // Only this loop moves the reading, so nothing comes between the comparison and the store.
        let now = source.now();
        if now > reading.now() {
            reading.set(now);
        }
    }
}

/// Why a [`CoarseClock`] could not be made.
///
/// ```
/// use std::time::Duration;
/// use sluicegate_threads::{CoarseClock, CoarseClockError};
///
/// let error = CoarseClock::new(Duration::ZERO).unwrap_err();
/// assert!(matches!(error, CoarseClockError::Interval { interval: Duration::ZERO }));
/// assert_eq!(error.to_string(), "interval of a coarse clock is 0ns; expected 100µs to 10s");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum CoarseClockError {
    /// The interval is out of range: the caller's mistake.
    Interval {
        /// What was asked for.
        interval: Duration,
    },
    /// The operating system gave no thread; it says why. Trying again later may help.
    Spawn(io::Error),
}

impl fmt::Display for CoarseClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interval { interval } => write!(
                f,
                "interval of a coarse clock is {interval:?}; expected {:?} to {:?}",
                CoarseClock::SHORTEST_INTERVAL,
                CoarseClock::LONGEST_INTERVAL
            ),
            Self::Spawn(_) => f.write_str("no thread for the ticker of a coarse clock"),
        }
    }
}

impl core::error::Error for CoarseClockError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Interval { .. } => None,
            Self::Spawn(error) => Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_copies_the_source_and_a_stop_ends_it() {
        let source = ManualClock::at(Nanos::new(5));
        let reading = ManualClock::at(Nanos::new(5));
        // What the source does during each wait, and what the reading is before it: the refresh comes after the wait.
        let mut waits = [(5, 9), (9, 9), (9, 30)].into_iter();
        let (mut seen, mut refreshed) = (0, Vec::new());
        tick(&reading, &source, || {
            refreshed.push(reading.now().as_u64());
            seen += 1;
            waits.next().is_some_and(|(before, then)| {
                assert_eq!(reading.now(), Nanos::new(before));
                source.set(Nanos::new(then));
                true
            })
        });
        assert_eq!((seen, refreshed), (4, vec![5, 9, 9, 30]));
    }

    #[test]
    fn does_not_go_back_with_its_source() {
        let source = ManualClock::at(Nanos::new(100));
        let reading = ManualClock::at(Nanos::new(100));
        let mut waits = [40, 101].into_iter();
        let mut refreshed = Vec::new();
        tick(&reading, &source, || {
            refreshed.push(reading.now().as_u64());
            waits.next().is_some_and(|then| {
                source.set(Nanos::new(then));
                true
            })
        });
        assert_eq!(refreshed, [100, 100, 101]);
    }

    #[test]
    fn starts_with_a_fresh_reading() {
        // A source that has moved on when it is asked again; the ticker never asks within this test's life.
        let clock = CoarseClock::with_source(CoarseClock::LONGEST_INTERVAL, Watched::new().0).unwrap();
        assert_eq!(clock.now(), Nanos::new(1));
        assert_eq!(clock.clone().now(), Nanos::new(1));
    }

    #[test]
    fn ticks_by_itself() {
        let (source, _) = Watched::new();
        let clock = CoarseClock::with_source(CoarseClock::SHORTEST_INTERVAL, source).unwrap();
        // No bound on the time this takes: a ticker that never ticks hangs here.
        while clock.now() < Nanos::new(5) {
            thread::yield_now();
        }
    }

    #[test]
    fn stops_at_once_when_the_last_clone_is_dropped() {
        let (source, gone) = Watched::new();
        let clock = CoarseClock::with_source(CoarseClock::LONGEST_INTERVAL, source).unwrap();
        let clone = clock.clone();
        drop(clock);
        assert_eq!(gone.try_recv(), Err(mpsc::TryRecvError::Empty), "a clone is left");
        drop(clone);
        // The ticker drops its source when it ends. Its whole interval would be 10 s; asked for is just that it ends
        // before its second reading, which is at the end of that interval.
        assert_eq!(gone.recv(), Ok(Nanos::new(1)));
    }

    #[test]
    fn the_last_clone_may_be_dropped_on_the_ticker() {
        /// Drops the clock that it is the source of, when it is asked for its second reading.
        struct Owner(mpsc::Receiver<CoarseClock>, mpsc::Sender<()>, ManualClock);
        impl Clock for Owner {
            fn now(&self) -> Nanos {
                if self.2.now() == Nanos::new(1) {
                    drop(self.0.recv().unwrap());
                }
                self.2.advance(Duration::from_nanos(1));
                self.2.now()
            }
        }
        impl Drop for Owner {
            fn drop(&mut self) {
                self.1.send(()).unwrap();
            }
        }
        let (hand_over, owned) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let owner = Owner(owned, end, ManualClock::new());
        let clock = CoarseClock::with_source(CoarseClock::SHORTEST_INTERVAL, owner).unwrap();
        hand_over.send(clock).unwrap();
        assert_eq!(ended.recv(), Ok(()));
    }

    /// Counts its readings, and when it is dropped sends how many there were.
    struct Watched(ManualClock, mpsc::Sender<Nanos>);

    impl Watched {
        fn new() -> (Self, mpsc::Receiver<Nanos>) {
            let (sender, receiver) = mpsc::channel();
            (Self(ManualClock::new(), sender), receiver)
        }
    }

    impl Clock for Watched {
        fn now(&self) -> Nanos {
            self.0.advance(Duration::from_nanos(1));
            self.0.now()
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            // Nobody listens in tests that do not ask.
            let _ = self.1.send(self.0.now());
        }
    }
}
